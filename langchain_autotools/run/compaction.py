"""What a run sends of a long history: `compact=`, by which old results become lines that the model can open again.

Where that is not enough, a summary stands for the oldest turns. The history itself stays whole. What was cut of a request is recorded on
the AI message that answers it, so that the next request, also of another run or process, cuts the same and begins with the same bytes.
"""

import re
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, ClassVar, Final, TypeVar, cast

from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import ValidationError

from ..errors import ConfigurationError
from ..event_types import ContextCompacted
from ..executor.names import own_name, tool_name
from ..executor.plan import Answer, PlannedCall
from ..executor.results import ToolCallResult, failed
from ..executor.user_functions import UserCall
from ..history.cuts import Cut, Part, Reading, SentMessages, first_cut, read_part, results_cut
from ..history.summaries import Summary, next_summary
from ..messages.calls import ToolCallRecord
from ..messages.incremental import GrowingHistory, Kept, growing
from ..messages.metadata import COMPACTED, own_metadata, with_own_metadata, with_rejected
from .summaries import RunSummaries, amake_all, asking, make_all
from .turn_wrappers import AsyncProceed, Mark, Notice, Proceed, TurnPart, TurnRequest, TurnWrapper

_Message = TypeVar("_Message", bound=AIMessage)

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
NO_RUN: Final = (
    "compact= needs a model with tools of its own, tools=[...] or handlers={...}: where tools are only declared there is no run in which "
    "the model could read again what was left out"
)
"""Why a model without tools of its own has no compaction."""


@dataclass(frozen=True)
class Compaction:
    """How requests are kept shorter than the context window of the model that gets them.

    Attributes:
        at: The part of the context window at which a request is shortened.
        keep: The number of the newest results that stay as they are.
        summary: Whether the model is asked for a summary of the oldest turns where cutting results is not enough.
        tool_name: The name of the tool by which the model reads what was left out.

    Raises:
        ConfigurationError: One of them cannot work.
    """

    at: float = 0.8
    keep: int = 4
    summary: bool = True
    tool_name: str = "read_result"

    def __post_init__(self) -> None:
        if isinstance(self.at, bool) or not isinstance(self.at, int | float) or not 0 < self.at <= 1:
            raise ConfigurationError(f"at of a Compaction must be a number above 0, at most 1, not {self.at!r}")
        if isinstance(self.keep, bool) or not isinstance(self.keep, int) or self.keep < 0:
            raise ConfigurationError(f"keep of a Compaction must be a whole number, 0 or more, not {self.keep!r}")
        if not isinstance(self.summary, bool):
            raise ConfigurationError(f"summary of a Compaction must be True or False, not {self.summary!r}")
        if not isinstance(self.tool_name, str) or not _NAME.fullmatch(self.tool_name):
            words = "a name that every vendor takes for a tool: letters, digits, _ and -, at most 64"
            raise ConfigurationError(f"tool_name of a Compaction must be {words}, not {self.tool_name!r}")

    def wrapper(self) -> TurnWrapper:
        """Raise, because a model that makes no run of its own has none.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError(NO_RUN)


def checked_compaction(value: Any) -> Compaction | None:
    """Return the compaction that a setting asks for; None for none.

    Raises:
        ConfigurationError: It is no such value.
    """
    if value is None or isinstance(value, bool):
        return Compaction() if value else None
    if not isinstance(value, Compaction):
        raise ConfigurationError(f"compact must be True, False or a Compaction, not {value!r}")
    return value


# ---------------------------------------------------------------------------------------------- a run with it


def with_compaction(settings: Any, profiled: Callable[[Any, Mapping[str, Any]], int | None]) -> Any:
    """Return the settings of a run whose requests are shortened, with our tool declared behind all others.

    Args:
        settings: The `RunSettings` without it.
        profiled: Returns the context window of a model's profile for the keywords of a request.

    Raises:
        ConfigurationError: The server keeps the history or takes no tools, or the name of our tool is taken or asked for.
    """
    values, plan, request, counted = settings.values, settings.plan, settings.request, settings.values["usage_limits"]
    model, form, given = request.model, request.form, values["compact"]
    name = given.tool_name
    _check_parameters(model, request.keywords)
    if name in {*settings.executor.tools, *plan.caller_tools, *map(tool_name, form.tools)}:
        raise ConfigurationError(
            f"there is a tool {name!r}, as compact= declares one: name ours otherwise, compact=Compaction(tool_name=...)"
        )
    choice = request.tool_choice
    if name in (choice, own_name(choice) if isinstance(choice, Mapping) else None):
        raise ConfigurationError(f"tool_choice cannot ask for {name!r}: the model reads what was left out when it needs it")
    compactor = Compactor(
        given,
        model,
        values["context_window"] if "context_window" in counted else None,
        profiled,
        is_forced=form.choice.forced,
        reads_sent=values["before_turn"] is not None or bool(model.middleware),
    )
    tool, executor = reading_tool(name), copy(settings.executor)
    executor._declared = {**executor._declared, name: tool}
    executor.on_executed = executor.on_executed and compactor.told(executor.on_executed)
    form = replace(form, tools=[*form.tools, model.format_tool(tool)])
    compactor.request = replace(request, tools=[*request.tools, tool], form=form)
    return replace(
        settings,
        values={**values, "compact": compactor, "usage_limits": [one for one in counted if one != "context_window"]},  # it is estimated
        plan=replace(plan, meant=partial(executor.meant, only=form.choice.allowed), compaction=compactor, own=frozenset({name})),
        executor=executor,
        request=compactor.request,
        lists_content=model.answers_in_blocks(form.tools),
    )


_kept: Kept = {}  # of histories as they are; what is sent of them ends in the same messages


_KEEPS = "the server keeps the history"
_RULE_OUT: Final[Mapping[str, str]] = {
    **dict.fromkeys(("use_previous_response_id", "previous_response_id", "conversation"), _KEEPS),
    **dict.fromkeys(("cached_content", "cachedContent"), "the server refuses declared tools"),
}
"""Parameters of vendors with which no history can be shortened here, and why."""


def _check_parameters(model: Any, keywords: Mapping[str, Any]) -> None:
    """Raise if a parameter of the model or of a call rules compaction out.

    Raises:
        ConfigurationError: One does.
    """
    own = vars(model)
    places = [own, *(body for body in (own.get("model_kwargs"), own.get("extra_body"), keywords.get("extra_body")) if body), keywords]
    given = {name: value for place in places if isinstance(place, Mapping) for name, value in place.items() if name in _RULE_OUT}
    for name, value in given.items():
        if value:
            raise ConfigurationError(f"compact= cannot shorten the history with {name}: {_RULE_OUT[name]}")


# ---------------------------------------------------------------------------------------------- requests


class Compactor(TurnWrapper):
    """The compaction of one run: a wrapper of its turns, what admits its calls of `read_result`, and what knows the size of its requests.

    Args:
        settings: The settings.
        model: The run's own model.
        window: The context window that the caller has set; None for none.
        profiled: Returns the context window of a model's profile for the keywords of a request.
        is_forced: Whether the first turn must call one of the caller's tools.
        reads_sent: Whether something may change the messages of a request: then what was sent may be read, and no more.

    Attributes:
        settings: The given settings.
        is_forced: As given.
        request: The run's requests, but for their messages, choice and configuration.
        summaries: The summaries of the run that no reply records yet.
    """

    layer: ClassVar[str] = "compaction"

    def __init__(
        self,
        settings: Compaction,
        model: Any,
        window: int | None,
        profiled: Callable[[Any, Mapping[str, Any]], int | None],
        *,
        is_forced: bool,
        reads_sent: bool,
    ) -> None:
        self.settings = settings
        self.is_forced = is_forced
        self._model = model
        self._given = window
        self._profiled = profiled
        self._reads_sent = reads_sent
        self._learned: dict[str, int] = {}
        self._window: int | None = None
        self.request: TurnRequest
        self._history: Sequence[BaseMessage] = ()
        self._sent: Sequence[BaseMessage] | None = None
        self._declared: tuple[Any, int] = None, 0
        self._reads: Counter[str] = Counter()
        self.summaries = RunSummaries()
        self._named: tuple[Any, str] = model, model_name(model)
        self._own_name = self._named[1]

    def wrapper(self) -> TurnWrapper:
        """Return this wrapper."""
        return self

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[TurnPart]:
        """Make the turn of the shortened request; after the server's error that it is too long, of one that is shortened once more."""
        turn = _ShortenedTurn(self, request)
        while not turn.is_over:
            if turn.wants_summary:
                make_all(turn.summing(), proceed)
            yield from turn.notices()
            try:
                yield from map(turn.part, proceed(turn.request))
                turn.is_over = True
            except ContextOverflowError as error:
                turn.shorten(error)

    async def awrap_turn(self, request: TurnRequest, proceed: AsyncProceed) -> AsyncIterator[TurnPart]:
        """Like `wrap_turn`, asynchronously."""
        turn = _ShortenedTurn(self, request)
        while not turn.is_over:
            if turn.wants_summary:
                await amake_all(turn.summing(), proceed)
            for notice in turn.notices():
                yield notice
            try:
                async with aclosing(cast("AsyncGenerator[TurnPart, None]", proceed(turn.request))) as parts:
                    async for part in parts:
                        yield turn.part(part)
                turn.is_over = True
            except ContextOverflowError as error:
                turn.shorten(error)

    # ------------------------------------------------------------------------------------------ the run

    def follow(self, history: Sequence[BaseMessage]) -> None:
        """Take the run's own list of messages, which grows."""
        self._history = history

    def tokens(self, history: Sequence[BaseMessage] | None = None) -> int:
        """Return the tokens of the next request of the run's own model, after what is cut of it."""
        asked = replace(self.request, messages=list(self._history if history is None else history))
        return _Shape(self, asked).planned_size

    def tokens_to_pay(self, history: Sequence[BaseMessage]) -> int:
        """Return the tokens of the next request, and of the one for a summary that comes before it."""
        shape = _Shape(self, replace(self.request, messages=list(history)))
        return shape.planned_size + shape.asked_size

    def declared(self, request: TurnRequest) -> int:
        """Return the estimated tokens of the tools of a request."""
        form, tokens = self._declared
        if form is not request.form:
            tokens = self._model._estimated_tokens([], request.form.tools)
            self._declared = request.form, tokens
        return tokens

    def window(self, request: TurnRequest, windows: Mapping[str, int]) -> int | None:
        """Return the context window of the model that makes a request; None if it is not known.

        Args:
            request: The request.
            windows: What servers have told, by the records of the history.
        """
        name = self._name(request.model)
        is_own = self._given is not None and name == self._own_name
        of_profile = None if is_own else self._profiled(request.model, request.keywords)
        known = (self._given, of_profile, windows.get(name), self._learned.get(name))
        return min((size for size in known if size is not None), default=None)

    def learn(self, request: TurnRequest, size: int) -> None:
        """Remember the context window of the model that makes a request."""
        self._learned[self._name(request.model)] = size

    def _name(self, model: Any) -> str:
        known, name = self._named
        if known is not model:
            self._named = model, (name := model_name(model))
        return name

    @property
    def learned(self) -> Mapping[str, int]:
        """The context windows that servers have told in this run, by the model's name."""
        return self._learned

    def take_summary(self, reading: Reading, summary: Summary) -> None:
        """Take a summary of the messages of a request, or one without text, which was asked for and not made."""
        self.summaries.take(reading, summary, len(self._history))

    @property
    def are_summaries_stored(self) -> bool:
        """Whether the messages of the run have a record of its new summary."""
        return self.summaries.are_stored(self._history)

    def noted(self, request: TurnRequest, window: int | None, *, is_cut: bool) -> None:
        """Note what a request has sent."""
        self._sent, self._window = request.messages, window
        if is_cut:
            self._reads.clear()

    # ------------------------------------------------------------------------------------------ calls

    @property
    def repeats(self) -> int:
        """How often one part of a result was read since the last cut."""
        return max(self._reads.values(), default=0)

    def told(self, listener: Callable[[ToolCallResult], Any]) -> Callable[[ToolCallResult], Any]:
        """Return a listener of the caller's for results as one that is not told of ours."""
        return lambda result: None if result.call.name == self.settings.tool_name else listener(result)

    def admit(self, answers: Sequence[Answer]) -> Generator[UserCall, Any, Sequence[Answer]]:
        """Answer the calls of `read_result`; nothing of the caller's runs for them."""
        return [replace(answer, planned=[self._answered(one) for one in answer.planned]) for answer in answers]
        yield  # makes it a generator

    def _answered(self, planned: PlannedCall) -> PlannedCall:
        call = planned.call
        if call.name != self.settings.tool_name or call.args is None or call.waits:
            return planned
        return replace(planned, rejected=self._result(call))

    def _result(self, call: ToolCallRecord) -> ToolCallResult:
        messages = self._history
        if self._reads_sent:
            if self._sent is None:
                return failed(call, f"Not read: the run has gone on elsewhere since. Call {call.spelling} again.", LookupError)
            messages = self._sent
        try:
            wanted = Part.model_validate(call.args)
            content = read_part(messages, wanted, self._window)
        except ValidationError as error:
            problems = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            return failed(call, f"These arguments cannot be read: {'; '.join(problems)}", ValueError)
        except LookupError as error:
            return failed(call, str(error.args[0]), LookupError)
        self._reads[wanted.model_dump_json()] += 1
        message = ToolMessage(content=cast("Any", content), tool_call_id=call.id, name=call.spelling)
        return ToolCallResult(call, message, executed=False, attempts=0)  # none of the caller's tools has run


def model_name(model: Any) -> str:
    """Return the name of a model in records, `<vendor>/<model>`."""
    params = model._get_ls_params()
    return f"{params.get('ls_provider')}/{params.get('ls_model_name') or type(model).__name__}"


_LONGEST_SUMMARY: Final = 4000
"""Tokens that a summary is to have at most; less where the window is small."""

_WORTH: Final = 1 / 8
"""The part of the limit that a summary must save: less is not worth a request."""

_AGAIN: Final = 1 / 2
"""The part of the limit that the turns which it covers must have grown by before a summary that was not made is asked for again."""

_ROOM: Final = 4
"""How many times the room that cutting results leaves a summary must leave: with less room nearly each request would cut another result,
and begin with other bytes than the one before."""


class _Shape:
    """What is sent of the messages of a request.

    Args:
        compactor: The run's compaction.
        request: The request.
        limit: The most tokens that it may have; None: as the settings say.
        sums: Whether a summary may be asked for.

    Attributes:
        cut: What is cut.
        size: Its tokens.
        before: Its tokens without what this request cuts for the first time.
        window: The context window; None if it is not known.
        plan: The summary to ask for first, without text; None where none is.
        planned_size: The tokens of the request once it is made.
        tried: The number of messages of the last summary that was asked for and not made.
    """

    def __init__(self, compactor: Compactor, request: TurnRequest, limit: float | None = None, *, sums: bool = True) -> None:
        model, settings = request.model, compactor.settings
        self.history: GrowingHistory = growing(request.messages, _kept)
        key = ("compaction", type(model), getattr(model, "custom_get_token_ids", None))
        self.reading: Reading = self.history.derive(key, partial(Reading, lambda one: model._estimated_tokens([one], ())))
        self._declared = compactor.declared(request)
        self.window = compactor.window(request, self.reading.windows)
        self.before = self.reading.size(self.reading.cut, self._declared)
        self.cut, self.tried = compactor.summaries.known_of(self.reading)
        if not sums:  # with a new summary the prefix changes anyway
            self.cut = first_cut(replace(self.reading, cut=self.cut), settings.keep)
        self.size = self.reading.size(self.cut, self._declared)
        self.plan: Summary | None = None
        most = limit if limit is not None or self.window is None else settings.at * self.window
        self._limit = most
        if most is not None and self.size > most:
            window = most if limit is not None or self.window is None else self.window
            self.cut = self._shortened(self.cut, settings.keep, most, window)
            self.size = self.reading.size(self.cut, self._declared)
            if settings.summary and sums:
                self.plan = self._planned(settings.keep, most, window)
        self.planned_size = self.size if self.plan is None else self.reading.size(replace(self.cut, summary=self.plan), self._declared)

    def _shortened(self, cut: Cut, keep: int, most: float, window: float) -> Cut:
        """Return what to cut beside what is cut already."""
        return results_cut(replace(self.reading, cut=cut), keep, lambda one: self.reading.size(one, self._declared), most, window)

    def _planned(self, keep: int, most: float, window: float) -> Summary | None:
        """Return the summary to ask for; None where none is worth it, or where one was tried and little has come since."""
        reading, count = self.reading, len(self.reading.covered)
        first = first_cut(replace(reading, cut=self.cut), keep)
        plan = next_summary(
            reading.outline,
            self.cut.summary,
            reading.covered[reading.seen] - 1 if reading.seen < count else len(reading.chain),
            reading.covered[max(0, count - keep)] - 1 if keep and count else len(reading.chain),
            lambda one: reading.size(replace(first, summary=one), self._declared),
            most,
            self.summary_tokens,
        )
        if plan is None:
            return None
        planned = reading.size(replace(self.cut, summary=plan), self._declared)
        if self.size - planned < most * _WORTH or most - planned < _ROOM * (most - self.size):
            return None
        places, tokens = reading.outline.places, reading.tokens
        is_early = self.tried and tokens[places[plan.messages]] - tokens[places[self.tried]] < most * _AGAIN
        return None if is_early else plan

    @property
    def summary_tokens(self) -> int:
        """The tokens that a summary is to have at most."""
        return min(_LONGEST_SUMMARY, int(self.window or self._limit or 0) // 16)

    @property
    def asked_size(self) -> int:
        """The tokens of the request for the summary; 0 where none is asked for."""
        if self.plan is None:
            return 0
        rest = self.reading.tokens[-1] - self.reading.tokens[self.reading.outline.places[self.plan.messages]]
        return max(0, self.before - rest) + self.summary_tokens

    def prefix(self, cut: Cut, tool_name: str) -> list[BaseMessage]:
        """Return the messages to sum up, as they are sent with a cut."""
        fold = SentMessages.of(self.history, self.reading, cut, tool_name)
        fold.read(self.history[: self.reading.outline.places[cast("Summary", self.plan).messages]])
        return fold.messages

    def fits(self, messages: Sequence[BaseMessage], model: Any) -> bool:
        """Whether a request for a summary with these messages fits the window."""
        size = model._estimated_tokens(messages, ()) + self._declared
        return bool(size * self.reading.ratio(self._declared) + 2 * self.summary_tokens + 300 <= (self.window or self._limit or 0))

    @property
    def is_new(self) -> bool:
        """Whether the request cuts something for the first time."""
        return self.cut != self.reading.cut

    def messages(self, tool_name: str) -> list[BaseMessage]:
        """Return the messages to send. What is kept of a history goes on from here."""
        cut, sent = self.cut, [*self.history]
        if cut.end or cut.summary is not None:
            sent = [
                *self.history.derive(
                    ("sent", cut, tool_name), partial(SentMessages.of, self.history, self.reading, cut, tool_name)
                ).messages
            ]
        self.history.keep()
        return sent

    def notices(self) -> Iterator[TurnPart]:
        """Yield what listeners are told of what the request cuts for the first time."""
        old, new, reading = self.reading.cut, self.cut, self.reading
        covered = reading.summed_results(new)
        lines = sum(1 for one in range(max(old.before, covered), new.end) if new.has(one) and not old.has(one) and reading.saving(one))
        tokens: dict[str, Any] = {"from_tokens": self.before, "to_tokens": self.size, "window": self.window}
        if new.summary != old.summary:
            yield Notice(ContextCompacted(run_id="", what="summary", results=covered - reading.summed_results(old), **tokens))
        if lines:
            yield Notice(ContextCompacted(run_id="", what="results", results=lines, **tokens))


class _ShortenedTurn:
    """One turn, whose request is shortened, once more where the server finds it too long.

    Args:
        compactor: The run's compaction.
        request: The request as it came.

    Attributes:
        is_over: Whether the turn has its end.
        request: The request to make.
    """

    def __init__(self, compactor: Compactor, request: TurnRequest) -> None:
        self.is_over = False
        self._compactor = compactor
        self._asked = request
        self._limit: float | None = None
        self._error: ContextOverflowError | None = None
        self._refused = 0
        self._has_left = False
        self._set(_Shape(compactor, request))

    def _set(self, shape: _Shape) -> None:
        self._shape = shape
        self.request = replace(self._asked, messages=shape.messages(self._compactor.settings.tool_name))
        self._compactor.noted(self._asked, shape.window, is_cut=shape.is_new)
        windows = {**shape.reading.windows, **self._compactor.learned}
        tried = shape.tried if shape.tried > shape.reading.tried else 0
        self._record = shape.reading.record(shape.cut, windows, tried, is_stored=self._compactor.are_summaries_stored)

    @property
    def wants_summary(self) -> bool:
        """Whether a summary is to be asked for before the request."""
        return self._shape.plan is not None

    def summing(self) -> Generator[TurnRequest, AIMessage | None, None]:
        """Ask for the summary, and shorten the request by it. Yield the requests to make; their replies are sent."""
        shape, compactor, name = self._shape, self._compactor, self._compactor.settings.tool_name
        plan = cast("Summary", shape.plan)
        prefixes = [shape.prefix(cut, name) for cut in (compactor.summaries.known_of(shape.reading)[0], shape.cut)]
        prefix = next((one for one in prefixes if shape.fits(one, self._asked.model)), None)
        window, replies = int(shape.window or shape.size), compactor.summaries.unpaid
        text = yield from asking(self._asked, prefix, prefixes[1], shape.summary_tokens, window, replies)
        summary = replace(plan, text=text or "", tokens=shape.reading.estimate(HumanMessage(text)) if text else 0)
        if text and shape.reading.size(replace(shape.cut, summary=summary), compactor.declared(self._asked)) >= shape.size:
            summary = replace(plan, text="", tokens=0)  # it is longer than what it stands for
        compactor.take_summary(shape.reading, summary)
        self._set(_Shape(compactor, self._asked, self._limit, sums=False))
        if self._error is not None:
            self._check(self._error)

    def notices(self) -> Iterator[TurnPart]:
        """Yield what listeners are told before the request."""
        yield from self._shape.notices()

    def part(self, part: TurnPart) -> TurnPart:
        """Return a part of the turn; the last one of the reply with the record of what was cut."""
        if isinstance(part, Mark):
            return part
        self._has_left = True
        if getattr(part, "chunk_position", "last") != "last":
            return part
        part = part if self._record is None else with_record(part, self._record)
        return with_rejected(part, self._compactor.summaries.take_unpaid())

    def shorten(self, error: ContextOverflowError) -> None:
        """Shorten the request once more, after the server's error that it is too long.

        Raises:
            ContextOverflowError: The error, where the request cannot be shortened, was shortened already, or its reply has begun.
        """
        if self._has_left or self._error is not None:
            raise error
        shape, said = self._shape, window_said(error)
        self._error, self._refused = error, shape.reading.saved(shape.cut)
        self._compactor.learn(self._asked, said or shape.size)
        self._limit = min(shape.size * 3 / 4, self._compactor.settings.at * (said or shape.size))
        self._set(_Shape(self._compactor, self._asked, self._limit))
        if self._shape.plan is None:
            self._check(error)

    def _check(self, error: ContextOverflowError) -> None:
        """Raise the server's error, where the request is no shorter than the one that was too long."""
        if self._shape.reading.saved(self._shape.cut) <= self._refused:
            raise error


def with_record(message: _Message, record: Mapping[str, Any]) -> _Message:
    """Return a message or chunk with the record of what was cut of its request."""
    own = {**own_metadata(message), COMPACTED: dict(record)}
    return message.model_copy(update={"response_metadata": with_own_metadata(message.response_metadata, own)})


_SAID = (
    re.compile(r"(?:maximum|max|limit|context (?:length|window|size)|n_ctx|allowed)\D{0,60}?(\d[\d,]*)", re.IGNORECASE),
    re.compile(r"(\d[\d,]*)\D{0,20}(?:maximum|limit)", re.IGNORECASE),
)


def window_said(error: BaseException) -> int | None:
    """Return the context window that the words of a server's error name; None if they name none."""
    found = next((match for pattern in _SAID if (match := pattern.search(str(error)))), None)
    size = 0 if found is None else int(found[1].replace(",", ""))
    return size if size > 1 else None


# ---------------------------------------------------------------------------------------------- the tool that reads results


_ABOUT = (  # small models call the tool for results that are there, unless the first word says when not to
    "Only for results that were left out: a line in the conversation says so and names the handle. Returns the result again, whole or in "
    "parts."
)


_ARGUMENTS: Final[Mapping[str, Any]] = {  # shorter than what pydantic makes of the class, for it is sent with every request
    "type": "object",
    "properties": {
        "handle": {"type": "string", "description": "The handle, as the line names it."},
        "find": {"type": "string", "description": "Only the lines that contain this text, in upper or lower case, with their numbers."},
        "start": {"type": "integer", "description": "The number of the first line to read, from 1 on."},
        "lines": {"type": "integer", "description": "How many lines to read at most."},
    },
    "required": ["handle"],
}


@lru_cache(maxsize=16)
def reading_tool(name: str) -> BaseTool:
    """Return the tool to declare under this name. Runs answer its calls themselves."""

    def unread(**_: Any) -> str:
        """Raise, because only a run has results."""
        raise LookupError("only a run with compact= can read its results")

    return StructuredTool(name=name, description=_ABOUT, args_schema=dict(_ARGUMENTS), func=unread)
