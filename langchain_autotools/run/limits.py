"""Limits of a run, and the check whether its progress has reached one.

Pure bookkeeping: the time is passed in, nothing here waits, reads a clock or knows a model.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from inspect import iscoroutinefunction
from typing import Literal, get_args

from langchain_core.messages import BaseMessage
from langchain_core.messages.ai import UsageMetadata, add_usage

from ..errors import ConfigurationError
from ..messages.inner_usage import InnerUsage
from ..messages.stop_reasons import StopReason

_logger = logging.getLogger("langchain_autotools")


@dataclass(frozen=True)
class RunSoFar:
    """A run after a turn whose calls are answered, for `stop_when`.

    Attributes:
        messages: The new messages of the run, the results of the last turn included.
        turns: The number of requests made.
        tool_calls: The number of calls that were admitted, with those of models and agents as tools.
        usage: The tokens of all turns together, likewise; None if none were reported.
    """

    messages: Sequence[BaseMessage]
    turns: int
    tool_calls: int
    usage: UsageMetadata | None


OnLimit = Literal["answer", "return", "raise"]
"""Action when a limit is reached: one last answer without tools, the run as it is, or `LimitReachedError`."""


@dataclass(frozen=True)
class Limits:
    """The limits of one run. None switches a limit off.

    Attributes:
        max_turns: Maximum number of turns that may call tools.
        max_tool_calls: Maximum number of executed tool calls; later ones are answered as not run.
        token_budget: Maximum number of tokens of all turns together.
        max_cost: Maximum cost of the run in US dollars. A request that would exceed it is not made, for a last answer neither.
        context_window: Maximum number of tokens in the context: the last turn's input and output.
        deadline: Maximum duration of the run in seconds. It ends then, whatever it waits for, without a last answer.
        no_progress: Number of turns in a row with the same calls and results, or paused by the server without new content, after which
            the run ends.
        polling_tools: Names of tools exempt from the no-progress check.
        on_limit: Action when a limit is reached.
        stop_when: Called with a `RunSoFar` after each turn whose calls are answered; the run ends if it returns True.
    """

    max_turns: int | None = 25
    max_tool_calls: int | None = None
    token_budget: int | None = None
    max_cost: float | Decimal | None = None
    context_window: int | None = None
    deadline: float | None = None
    no_progress: int | None = 3
    polling_tools: Collection[str] = ()
    on_limit: OnLimit = "answer"
    stop_when: Callable[[RunSoFar], bool] | None = None

    def __post_init__(self) -> None:
        if self.on_limit not in get_args(OnLimit):
            raise ConfigurationError(f"on_limit must be one of {', '.join(get_args(OnLimit))}, not {self.on_limit!r}")
        for name in ("max_turns", "token_budget", "max_cost", "context_window", "deadline"):
            _check(name, getattr(self, name), 0, "greater than 0")
        if isinstance(self.polling_tools, str) or not isinstance(self.polling_tools, Collection):
            raise ConfigurationError(f"polling_tools must be a list of names of tools, not {self.polling_tools!r}")
        _check("max_tool_calls", self.max_tool_calls, -1, "0 or more")
        _check("no_progress", self.no_progress, 1, "2 or more")
        if self.stop_when is not None and (not callable(self.stop_when) or iscoroutinefunction(self.stop_when)):
            raise ConfigurationError(f"stop_when must be a function that returns True or False at once, not {self.stop_when!r}")


def _check(name: str, value: float | Decimal | None, above: float, words: str) -> None:
    if value is None:
        return
    # Decimal's NaN refuses to be compared by size
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or value != value or not value > above:
        raise ConfigurationError(f"{name} must be {words}, or None for no limit, not {value!r}")


_NAMES = frozenset(one.name for one in fields(Limits)) & frozenset(get_args(StopReason)) - {"stop_when"}


@dataclass
class Progress:
    """The consumption of a run so far.

    `started` is the time, in seconds, at which it began; `cancelled` returns whether its caller has cancelled it."""

    limits: Limits
    started: float
    cancelled: Callable[[], bool] | None = field(default=None, repr=False)
    turns: int = 0
    tool_calls: int = 0
    usage: UsageMetadata | None = None
    context: int = 0
    _last: object = field(default=None, repr=False)
    _repeats: int = field(default=0, repr=False)
    _refused_calls: bool = field(default=False, repr=False)

    def count_turn(self, usage: UsageMetadata | None, *, goes_on: bool = False) -> None:
        """Count one model turn and its reported tokens. Of a reply with which another one goes on only the tokens count."""
        self.turns += not goes_on
        if usage is not None:
            self.usage = add_usage(self.usage, usage) if self.usage else usage
            self.context = usage["input_tokens"] + usage["output_tokens"]

    def count_inside(self, used: InnerUsage) -> None:
        """Count what runs inside the tools have used: their tokens and tool calls. The context is this run's own."""
        for reply in used.replies:
            if reply["usage_metadata"] is not None:
                self.usage = add_usage(self.usage, reply["usage_metadata"])
        self.tool_calls += used.tool_calls

    def admit(self, calls: int) -> int:
        """Count these calls and return how many, from the first on, may still be executed."""
        allowed = calls
        if self.limits.max_tool_calls is not None:
            allowed = max(0, min(allowed, self.limits.max_tool_calls - self.tool_calls))  # runs inside may have made more
        self._refused_calls = self._refused_calls or allowed < calls
        self.tool_calls += allowed
        return allowed

    def count_results(self, results: Sequence[tuple[str, str, str]]) -> None:
        """Record the results of one turn, as (name, arguments, result), to detect repetition in the next turn."""
        self._note([result for result in results if result[0] not in self.limits.polling_tools] or None)

    def count_pause(self, text: str) -> None:
        """Record the content of a turn that the server has paused, to detect whether the next one adds any."""
        self._note(("pause", text))

    def _note(self, signature: object) -> None:
        if signature is None:
            self._last, self._repeats = None, 0
        elif signature == self._last:
            self._repeats += 1
        else:
            self._last, self._repeats = signature, 1

    def stops(self, messages: Callable[[], Sequence[BaseMessage]]) -> bool:
        """Whether the caller's condition ends the run; `messages` returns the run's new messages.

        Raises:
            ConfigurationError: The condition says neither True nor False.
        """
        if self.limits.stop_when is None:
            return False
        said = self.limits.stop_when(RunSoFar(messages(), self.turns, self.tool_calls, self.usage))
        if not isinstance(said, bool):
            raise ConfigurationError(f"stop_when must return True or False, not {type(said).__name__}")
        return said

    def overdue(self, now: float) -> bool:
        """Whether the deadline has passed."""
        return self.limits.deadline is not None and now - self.started >= self.limits.deadline

    def reached(self, now: float) -> StopReason | None:
        """Return the stop reason that rules out another ordinary turn, by the caller or a limit; None if there is none."""
        limits = self.limits
        checks: list[tuple[StopReason, bool]] = [
            ("cancelled", self.cancelled is not None and self.cancelled()),
            ("deadline", self.overdue(now)),
            ("max_tool_calls", self._refused_calls),
            ("no_progress", limits.no_progress is not None and self._repeats >= limits.no_progress),
            ("token_budget", limits.token_budget is not None and self._total_tokens() >= limits.token_budget),
            ("context_window", limits.context_window is not None and self.context >= limits.context_window),
            ("max_turns", limits.max_turns is not None and self.turns >= limits.max_turns),
        ]
        return next((reason for reason, hit in checks if hit), None)

    def note_end(self, reason: StopReason) -> None:
        """Log the end of the run if a limit has ended it."""
        if reason not in _NAMES:
            return
        value = getattr(self.limits, reason)
        shown = reason if value is None else f"{reason}={value}"  # the deadline may be that of a run around this one
        _logger.warning("a run has ended at its limit %s, after %d turns and %d tool calls", shown, self.turns, self.tool_calls)

    def _total_tokens(self) -> int:
        return self.usage["total_tokens"] if self.usage else 0
