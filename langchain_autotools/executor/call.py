"""The execution of one tool call, from its input to its result.

Nothing here decides when a call runs, or in which thread or task: `batch` and `batch_drivers` do.
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from ..compat import is_graph_signal, raised_by_handler
from ..deadline import DeadlinePassed
from ..errors import AlreadyResumedError, ConfigurationError
from ..messages.calls import ToolCallRecord
from .context import AsyncProgress, Progress, Reporting
from .nested_runs import InnerBudget, NestedRuns, current_nested_runs
from .policies import CachedCall, ToolPolicy
from .results import InvalidError, ToolCallResult, cancelled_result, describe, failed, has_other_effects, tool_message_of, with_note
from .signatures import InjectionContext, tool_runtime
from .tool import Cancelled, NoException, PreparedTool, current_call
from .user_functions import Home

_logger = logging.getLogger("langchain_autotools")

NOT_CONTINUED = (ConfigurationError, AlreadyResumedError)
"""The errors of a run inside a call that does not go on with what was decided, and waits as before."""


@dataclass(eq=False, repr=False)
class ToolRun:
    """One execution of one tool call.

    Attributes:
        call: The call.
        prepared: The prepared tool.
        timeout: The timeout in seconds; None for no limit.
        home: Gives the event loop that the tool belongs to, if that is known.
        policy: The rest of the tool's policy; None if there is none.
        cached: The sharing of its result with equal calls; None if it is not shared.
        found: Whether it was found in a run's input.
        executed: Whether the tool's own code began to run.
        tried: The number of finished attempts.
        ended: Whether it has ended.
        stopped_by: Why it is being stopped, if so.
        started: When it began to run, by `time.perf_counter`.
        is_late: Whether it took too long.
        ends_with_batch: Whether the time it may take is all that there is for its batch.
        reporting: Takes what its tool reports; None where that reports nothing.
        messages: The conversation so far.
        approvals: The approvals of the run that made the call; None for none.
        context: What the program supplies to the tool.
        within: The runs among which that run is, inside a tool; None outside of tools.
        budget: What bounds and counts runs inside; None if nothing does.
    """

    call: ToolCallRecord
    prepared: PreparedTool
    config: InitVar[RunnableConfig]
    messages: Sequence[BaseMessage]
    tools: InitVar[Mapping[str, BaseTool]]
    timeout: float | None
    home: Home
    approvals: Any = None
    found: bool = field(default=False, kw_only=True)
    budget: InnerBudget | None = field(default=None, init=False)
    policy: ToolPolicy | None = field(default=None, init=False)
    cached: CachedCall | None = field(default=None, init=False)
    tried: int = field(default=0, init=False)
    ended: bool = field(default=False, init=False)
    stopped_by: Exception | None = field(default=None, init=False)
    is_late: bool = field(default=False, init=False)
    ends_with_batch: bool = field(default=False, init=False)
    reporting: Reporting | None = field(default=None, init=False)

    def __post_init__(self, config: RunnableConfig, tools: Mapping[str, BaseTool]) -> None:
        self.within = current_nested_runs.get()
        self.executed = not self.prepared.observed  # where its code is not seen, it must be taken to have run
        self.started = time.perf_counter()
        self.context = InjectionContext(self.call, config, self.messages, tuple(tools.values()))
        self._nested = NestedRuns(self)
        self._late = f"timed out after {self.timeout:g} s" if self.timeout is not None else ""

    def change(self, call: ToolCallRecord) -> None:
        """Set the arguments of a changed call; its result is then not shared with equal calls."""
        self.call, self.cached, self.context = call, None, replace(self.context, call=call)
        if self.reporting is not None:
            self.reporting.context.call = call

    def end_within(self, seconds: float) -> None:
        """Limit the call to this many seconds, whatever its own timeout: the run ends then."""
        if self.timeout is None or seconds < self.timeout:
            self.ends_with_batch = True
            self.timeout, self._late = seconds, "stopped: the time for this run is over; what it did until then may remain"

    def begin_anew(self) -> None:
        """Reset the outcome of a finished attempt before the next one."""
        self.tried += int(self.executed)
        self.executed = not self.prepared.observed
        self.ended = self.is_late = False
        self.stopped_by = None
        self._nested = NestedRuns(self)

    def graph_runtime(self) -> Any:
        """Return the runtime that a tool of a graph would get, of LangGraph's class; requires that the program has loaded it."""
        return tool_runtime(self.context)

    def report_to(self, reports: Progress | AsyncProgress, index: int, turn: int | None) -> None:
        """Enable progress reports of the tool.

        Args:
            reports: Takes it.
            index: The place of the call in its batch.
            turn: The number of the model's turn that made the call, where there is one.
        """
        about: dict[str, Any] = {"messages": tuple(self.messages), "turn": turn, "config": self.context.config}
        self.reporting = Reporting(reports, index, self.call, yields=self.prepared.yields, **about)

    def invoke(self) -> ToolCallResult:
        """Run the tool in this thread. Requires a context of its own.

        Raises:
            BaseException: what must not be told to the model: what is no `Exception` (KeyboardInterrupt, SystemExit; not a stray
                GeneratorExit), and what `_failed` lets pass.
        """
        try:
            tool, call, config = self._begin()
            return self._answered(tool.invoke(call, config))
        except BaseException as error:
            return self._failed(error)
        finally:
            self.ended = True

    async def ainvoke(self) -> ToolCallResult:
        """Run the tool on the running loop. Requires a task of its own.

        Raises:
            BaseException: what must not be told to the model: what is no `Exception` (KeyboardInterrupt, SystemExit; not a stray
                GeneratorExit), and what `_failed` lets pass.
        """
        try:
            tool, call, config = self._begin()
            return self._answered(await tool.ainvoke(call, config))
        except BaseException as error:
            return self._failed(error)
        finally:
            self.ended = True

    def stop_for_good(self) -> None:
        """Record that the result is no longer awaited: a call that has not begun never will."""
        self.stopped_by = Cancelled("cancelled")

    def stop_for_timeout(self) -> None:
        """Record, before a cancellation, that the call timed out."""
        self.stopped_by = TimeoutError(self._late)

    def timed_out(self) -> ToolCallResult:
        """Return the result of a call that timed out."""
        self.is_late = True
        error = TimeoutError(self._late)
        return failed(self.call, str(error), error, duration=self.duration(), executed=self.executed)

    def _begin(self) -> tuple[Any, Any, RunnableConfig]:
        self.started = time.perf_counter()
        _logger.debug("tool %s starts, call %s", self.prepared.tool.name, self.call.id)
        current_call.set(self)
        current_nested_runs.set(self._nested)
        if self.reporting is not None:
            self.context = replace(self.context, progress=self.reporting.context)
        prepared = self.prepared
        tool, args = prepared.runnable(prepared.arguments.read(self.call.args or {}), self.context)
        call = {"name": prepared.tool.name, "args": args, "id": self.call.id, "type": "tool_call"}
        return tool, call, self.context.config

    def duration(self) -> float:
        """Return the seconds that the call has run so far."""
        return time.perf_counter() - self.started

    def _answered(self, output: Any) -> ToolCallResult:
        message, commands = tool_message_of(self.call, output)
        if (note := self._nested.note(self.call)) is not None:
            message = with_note(message, note)
        duration = self.duration()
        if _logger.isEnabledFor(logging.DEBUG):
            size = len(str(message.content))
            _logger.debug("tool %s ends, call %s: %s, %d characters, %.3f s", message.name, self.call.id, message.status, size, duration)
        if any(map(has_other_effects, commands)):
            _logger.warning("tool %s returned a graph command; a model takes its tool message and leaves the rest", self.prepared.tool.name)
        direct = self.prepared.tool.return_direct and message.status != "error"
        return ToolCallResult(self.call, message, None, duration, direct, self.executed, commands, attempts=int(self.executed))

    def _failed(self, error: BaseException) -> ToolCallResult:
        if isinstance(error, DeadlinePassed) and error.deadline.reason == "deadline":  # that of a run around, in a run inside the tool
            return self.timed_out()
        if isinstance(error, asyncio.CancelledError | Cancelled | DeadlinePassed):
            return cancelled_result(self.call, executed=self.executed, duration=self.duration())
        if isinstance(error, NoException):
            error = error.args[0]
        # an interrupt or a parent command of LangGraph, or what a callback handler with `raise_error=True` raised
        ends_run = not isinstance(error, Exception | GeneratorExit) or is_graph_signal(error) or raised_by_handler(error, __name__)
        if ends_run or (self.call.run is not None and isinstance(error, NOT_CONTINUED)):
            raise error
        _logger.debug("tool %s fails, call %s", self.prepared.tool.name, self.call.id, exc_info=error)
        text = " ".join(filter(None, [self._explained(error), self._nested.note(self.call)]))
        return failed(self.call, text, error, duration=self.duration(), executed=self.executed)

    def _explained(self, error: BaseException) -> str:
        if isinstance(error, InvalidError):
            schema = getattr(error, "title", None) or getattr(getattr(error, "model", None), "__name__", None)
            # of the call's arguments, and not of something that the tool did with them
            if not self.executed if self.prepared.observed else schema == self.prepared.arguments.title:
                return self.prepared.arguments.described(error, self.call.name)
        return str(error) if isinstance(error, ConfigurationError) else describe(error)
