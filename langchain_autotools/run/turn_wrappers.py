"""The wrappers that the turns of a run may have: their interface, their order, what passes through them.

A wrapper gets a neutral request and a function that makes the turn of it. It may change the request, make the turn more than once
or not at all, and change the parts. The innermost layer is one LLM run of core: the model that makes the request writes the form
of its wire.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.runnables import RunnableConfig

from ..deadline import Deadline, DeadlinePassed
from ..errors import ConfigurationError
from ..event_bus import NobodyListens
from ..executor import ToolCallResult
from ..executor.batch import CallObserver
from ..executor.claims import Claims
from ..executor.names import tool_name
from ..executor.plan import Meaning, forbidden
from ..executor.steps import CallWrapper
from ..messages.calls import AWAITS, ToolCallRecord
from ..messages.metadata import KEY
from ..messages.run_messages import StopReason
from ..strict_json import read_object
from ..turn.accumulator import ai_message, is_restart
from ..turn.tools import ToolChoice
from .loop import Choice

ORDER = (
    "observer",  # sees each part as it goes out, also of a turn that the journal has; there only while somebody listens
    "journal",  # records what came of the turn, the end that cut it included, and makes nothing of what is inside where it has the turn
    "end",  # the deadline and the caller's cancellation: all that is inside, another attempt or another model too, has to be in time
    "before_turn",  # changes what is sent, whichever model it is sent to
    "failover",  # chooses the model
    "middleware",  # wraps each attempt of each model
    "compaction",  # cuts what all of these have left of the history, for the window of the model that gets it
    "request",  # sees each request as its model gets it, and adds nothing to the parts; there only while somebody listens
)
"""The places of wrappers, outermost first. Inside the last one is the LLM run of core."""

_OURS = ORDER.index("end")  # what is inside of this place may be anybody's, and may not swallow an end that has come
_INNERMOST = ORDER.index("request")  # what is there is ours again

ENDS = (DeadlinePassed, NobodyListens)
"""What ends a run from outside, raised inside a turn. A wrapper lets it through."""

_NO_CHOICE = ToolChoice()


# ---------------------------------------------------------------------------------------------- what a turn is asked for


@dataclass(frozen=True)
class WireForm:
    """The parameters of a run's requests besides the messages, in the form of one model's wire.

    Attributes:
        model: The model that wrote it.
        tools: All declared tools, constructor tools first.
        choice: The caller's tool choice, and which tools it allows.
        last_choice: The choice of the last request at a limit: the word that forbids calls, or for the call that must end the run.
        first_request_only: The names of parameters that later requests are sent without.
    """

    model: Any = None
    tools: Sequence[Mapping[str, Any]] = ()
    choice: ToolChoice = _NO_CHOICE
    last_choice: Any = "none"
    first_request_only: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """The names of the declared tools whose calls are allowed."""
        names = frozenset(map(tool_name, self.tools))
        return names if self.choice.allowed is None else names.intersection(self.choice.allowed)

    def by_name(self) -> dict[str, Mapping[str, Any]]:
        """Return the declared tools whose calls are allowed, by name."""
        names = self.names
        return {name: tool for tool in self.tools if (name := tool_name(tool)) in names}

    def insisting(self) -> "WireForm":
        """Return the form with its tool choice in every request, also after the first."""
        return replace(self, choice=replace(self.choice, lasting=self.choice.asked))

    def keywords(self, choice: Choice) -> dict[str, Any]:
        """Return the keyword arguments of a request with this choice."""
        is_given = self.tools or getattr(self.model, "tools", None)  # else a model declares its own
        keywords: dict[str, Any] = {"tools": list(self.tools)} if is_given else {}
        own = self.choice
        choice_of_turn = {"requested": own.asked, "auto": own.lasting, "none": self.last_choice}[choice]
        if choice != "requested":
            keywords |= dict.fromkeys(self.first_request_only)
        return keywords if choice_of_turn is None and own.asked is None else {**keywords, "tool_choice": choice_of_turn}


NOTHING_DECLARED = WireForm()
"""The wire form of a model without tools."""


@dataclass(frozen=True)
class TurnRequest:
    """One request to a model, in vendor-neutral form.

    Attributes:
        model: The model that makes it.
        messages: The messages to send; for a model without tools of its own the input as the caller gave it.
        choice: `requested` for the caller's tool choice, `auto` for what stays of it after the first turn, `none` for what leads to an end.
        keywords: The caller's keyword arguments for the vendor.
        end: The deadline of the run, and its cancellation.
        tools: The declared tools: objects where they are known as such, else as the caller declared them.
        caller_tools: The names of those whose calls are left to the caller.
        tool_choice: The tool choice as the caller gave it.
        form: What the run's own model writes of the tools and the choice.
        config: LangChain's configuration of the LLM run.
        streams: Whether the reply is streamed.
        output_version: The output version of stored messages.
        number: The number of the request in its run, from 1 on.
        insists: Whether the tool choice is that of this turn, and is sent whatever its number is.
        recorded: Returns the reply to a further request of the turn, for these messages: the one that the run's journal has, or the one
            that a function makes, which is recorded. None where nothing is recorded.
    """

    model: Any
    messages: Any
    choice: Choice
    keywords: Mapping[str, Any] = field(repr=False)
    end: Deadline
    tools: Sequence[Any] = ()
    caller_tools: frozenset[str] = frozenset()
    tool_choice: Any = None
    form: WireForm = NOTHING_DECLARED
    config: RunnableConfig | None = None
    streams: bool = False
    output_version: str | None = None
    number: int = 1
    insists: bool = False
    recorded: "RecordedReply | None" = field(default=None, repr=False, compare=False)


RecordedReply = Callable[[Sequence[BaseMessage], Callable[[], AIMessage | None]], AIMessage | None]
"""A function that returns the reply to a request for messages, which another function makes unless it is known; None for no reply."""


# ---------------------------------------------------------------------------------------------- the parts of a turn


class Mark:
    """A part of a turn that belongs to no message."""

    chunk_position: ClassVar[None] = None  # it is not the last part of a turn, as a whole message is


class Restart(Mark):
    """A mark that the reply starts again: the calls that it began are void."""


class Discarded(Mark):
    """A mark that the reply so far is void, and another one begins. The chunks stay as they left; no message has them."""


@dataclass(frozen=True)
class Notice(Mark):
    """A mark with an event for listeners.

    Attributes:
        event: The event, a `RunEvent`. Where its `run_id` is empty, the listener's side says which run and which `turn` it is about.
    """

    event: Any


@dataclass(frozen=True)
class Emitted(Mark):
    """A mark in place of a chunk that brought nothing but what was emitted as events.

    Attributes:
        chunk: The chunk.
    """

    chunk: AIMessageChunk


@dataclass(frozen=True)
class Stored(Mark):
    """The last part of a turn whose stored message is not the sum of its chunks. The chunks stay as they left.

    Attributes:
        message: The message to store.
    """

    message: AIMessage


TurnPart = AIMessage | Mark
"""A part of a turn: a chunk, the whole message, or a mark."""

Proceed = Callable[[TurnRequest], Iterator[TurnPart]]
"""A function that makes a turn."""

AsyncProceed = Callable[[TurnRequest], AsyncIterator[TurnPart]]
"""A function that makes a turn asynchronously."""

_T = TypeVar("_T")


# ---------------------------------------------------------------------------------------------- wrappers


class TurnWrapper:
    """A wrapper around each turn of a run. The inherited methods pass everything through.

    Attributes:
        layer: Where it is, one of `ORDER`.
    """

    layer: ClassVar[str] = "middleware"

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[TurnPart]:
        """Make the parts of a turn.

        Args:
            request: The request.
            proceed: Makes the turn of a request; may be called more than once. What it returns is closed when the turn is over.
        """
        return proceed(request)

    def awrap_turn(self, request: TurnRequest, proceed: AsyncProceed) -> AsyncIterator[TurnPart]:
        """Make the parts of a turn asynchronously; see `wrap_turn`."""
        return proceed(request)


class RunJournal(TurnWrapper):
    """The journal that records one run for a later process: its turns, the results of its calls, its clock.

    A run that is given a journal (the keyword `journal`) does what it always does. Where it would make a request or run a tool it asks the
    journal, which has the answer from an earlier process or lets it be made. How a journal keeps what it records is its own matter.
    """

    layer: ClassVar[str] = "journal"

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[TurnPart]:
        """Yield the parts of a turn and record their sum, or yield the recorded message.

        Args:
            request: The request. Its `end` tells what has cut the turn; a turn that is in the journal as cut is cut again.
            proceed: Makes the turn.
        """
        raise NotImplementedError

    def awrap_turn(self, request: TurnRequest, proceed: AsyncProceed) -> AsyncIterator[TurnPart]:
        """Raise, because turns of an asynchronous run cannot be recorded.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError("a journal is for invoke and stream: an asynchronous run has none")

    def entries(self, count: int) -> Sequence[CallWrapper]:
        """Return the wrappers that record the outcomes (a result, or `LEFT`) of this number of calls, in call order.

        It is called before any of the calls begins, in the thread of the run.
        """
        raise NotImplementedError

    def uuid(self, message_id: str, call_id: str) -> str:
        """Return a UUID for a waiting call, the same in every process that continues the run."""
        raise NotImplementedError

    def now(self) -> float:
        """Return the seconds since the run first began; during replay those at which the replayed entry was written."""
        raise NotImplementedError

    def left(self, seconds: float | None) -> float | None:
        """Return the rest of a run's time limit; negative after its end."""
        raise NotImplementedError

    def is_cancelled(self) -> bool:
        """Whether the run has been cancelled; never during replay."""
        raise NotImplementedError


class RunObserver:
    """Observes one run. This base class does nothing.

    Its methods are synchronous, return nothing that the run waits for, and raise nothing but `NobodyListens`, which says that the reader
    has left.

    Attributes:
        listens: Whether it does anything.
        due: Whether a reader waits for the next chunk to be handed over.
    """

    listens: bool = False
    due: bool = False

    def begin(self, run_id: str, name: str) -> None:
        """Observe that the run begins."""

    def check(self) -> None:
        """Raise if the reader has left."""

    def turn_done(self, message: AIMessage) -> None:
        """Observe the end of a turn, with its stored message."""

    def turn_cut(self, message: AIMessage | None) -> None:
        """Observe the end of a cut turn, with its remaining message."""

    def calls_begin(self, message: AIMessage, calls: Sequence[ToolCallRecord]) -> None:
        """Observe that these calls of a message are about to be answered."""

    def watch(self) -> CallObserver | None:
        """Return the observer of one turn's calls; None where nobody observes them."""
        return None

    def result_done(self, result: ToolCallResult) -> None:
        """Observe that a result's message is complete."""

    def messages_taken(self, messages: Sequence[HumanMessage]) -> None:
        """Observe that messages of the user have joined the run."""

    def pending(self, message: AIMessage, calls: Sequence[ToolCallRecord], opened: Sequence[ToolMessage] = ()) -> None:
        """Observe that the run is about to end with these calls of a message, and with runs that wait inside others."""

    def ended(self, reason: StopReason, turns: int, usage: UsageMetadata | None, message: Callable[[], AIMessage]) -> None:
        """Observe the end of the run; `message` returns the run message."""

    def stopped(self, error: BaseException) -> None:
        """Observe an exception that ended the run."""

    def leave(self) -> None:
        """Observe that the run was left before its end."""


class EndRun(NamedTuple):
    """An action behind those of the loop: tell the store of claims that the run has ended.

    Attributes:
        value: What the run has brought; None where calls wait that it was to answer.
    """

    value: dict[str, Any] | None


class RunClaims:
    """What a run has claimed in the caller's store: nothing here.

    Attributes:
        claims: The claims; None where nothing is claimed.
    """

    claims: Claims | None = None

    def ending(self, value: Mapping[str, Any] | None) -> Iterable[Any]:
        """Tell the store what the run has brought; None where calls wait again. Return no steps."""
        return ()

    def aending(self, value: Mapping[str, Any] | None) -> AsyncGenerator[Any, None]:
        """Like `ending`, asynchronously."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Give up what is still claimed, where the run has failed or was left."""

    async def aabandon(self) -> None:
        """Like `abandon`, asynchronously."""


# ---------------------------------------------------------------------------------------------- turns inside their wrappers


class Turns:
    """The turns of one run, each inside the wrappers.

    Args:
        wrappers: The wrappers in any order; those of one place keep the order that they are given in, the first outermost.

    Attributes:
        make: Makes the parts of a turn.
        amake: Makes them asynchronously.
    """

    def __init__(self, wrappers: Iterable[TurnWrapper] = ()) -> None:
        ordered = sorted(wrappers, key=lambda one: ORDER.index(one.layer), reverse=True)
        self._others = [one for one in ordered if _OURS < ORDER.index(one.layer) < _INNERMOST]
        self.make: Proceed = lambda request: request.model._turn_parts(request)
        self.amake: AsyncProceed = lambda request: request.model._aturn_parts(request)
        self._wrap(one for one in ordered if ORDER.index(one.layer) == _INNERMOST)
        self._send, self._asend = self.make, self.amake
        if self._others:
            self.make, self.amake = self._guarded, self._aguarded
        self._wrap(one for one in ordered if ORDER.index(one.layer) <= _OURS)

    def _wrap(self, wrappers: Iterable[TurnWrapper]) -> None:
        """Put wrappers around what makes the parts of a turn, the innermost first."""
        for wrapper in wrappers:
            self.make, self.amake = partial(wrapper.wrap_turn, proceed=self.make), partial(wrapper.awrap_turn, proceed=self.amake)

    def _guarded(self, request: TurnRequest) -> Iterator[TurnPart]:
        """Yield a turn inside arbitrary wrappers: generators they leave open are closed, and an end that has come is raised."""
        guard = _Guard(request, self._send, self._asend)
        with ExitStack() as opened:

            def opening(make: Proceed, request: TurnRequest) -> Iterator[TurnPart]:
                guard.check()
                parts = iter(make(request))
                opened.callback(getattr(parts, "close", tuple))
                return parts

            proceed: Proceed = partial(opening, guard.noted)
            for wrapper in self._others:
                proceed = partial(opening, partial(wrapper.wrap_turn, proceed=proceed))
            with guard.raising():
                for part in proceed(request):
                    guard.check()
                    yield part

    async def _aguarded(self, request: TurnRequest) -> AsyncIterator[TurnPart]:
        """Like `_guarded`, asynchronously."""
        guard = _Guard(request, self._send, self._asend)
        async with AsyncExitStack() as opened:

            def opening(make: AsyncProceed, request: TurnRequest) -> AsyncIterator[TurnPart]:
                guard.check()
                parts = aiter(make(request))
                opened.push_async_callback(getattr(parts, "aclose", _anothing))
                return parts

            proceed: AsyncProceed = partial(opening, guard.anoted)
            for wrapper in self._others:
                proceed = partial(opening, partial(wrapper.awrap_turn, proceed=proceed))
            with guard.raising():
                async for part in proceed(request):
                    guard.check()
                    yield part


@dataclass(eq=False, repr=False)
class _Guard:
    """The guard of one turn: whatever wrappers do, the end that has come is an end, and a call runs only if its tool was declared.

    Args:
        request: The turn's request, outside of the wrappers.
        send: Makes one LLM run of core.
        asend: Makes it asynchronously.
    """

    _request: TurnRequest
    _send: Proceed
    _asend: AsyncProceed
    _end: BaseException | None = None

    def check(self) -> None:
        """Raise the end if it has come."""
        if self._end is not None:
            raise self._end

    def noted(self, request: TurnRequest) -> Iterator[TurnPart]:
        """Yield one LLM run of core, the innermost layer, with its notes about the turn as marks."""
        with self._noting(), closing(cast("Generator[AIMessage, None, None]", self._send(request))) as parts:
            for part in parts:
                yield Restart() if is_restart(part) else self._narrowed(part, request)

    async def anoted(self, request: TurnRequest) -> AsyncIterator[TurnPart]:
        """Like `noted`, asynchronously."""
        with self._noting():
            async with aclosing(cast("AsyncGenerator[AIMessage, None]", self._asend(request))) as parts:
                async for part in parts:
                    yield Restart() if is_restart(part) else self._narrowed(part, request)

    def _narrowed(self, part: BaseMessage, request: TurnRequest) -> AIMessage:
        """Return a part of the turn as an AI message; of its calls only those run whose tools a wrapper has left."""
        if not isinstance(part, AIMessage):
            return ai_message(part)
        whole, left = self._request.form, request.form
        if whole is left or KEY not in part.response_metadata:
            return part
        return _restrict_calls(part, whole.by_name(), left.by_name(), request.caller_tools)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except ENDS as end:
            if isinstance(end, NobodyListens) or end.deadline.ends_run:
                self._end = self._end or end
            raise

    @contextmanager
    def raising(self) -> Iterator[None]:
        """A context manager that raises the end in place of all other exceptions or a return."""
        try:
            yield
        except Exception:
            self.check()
            raise
        self.check()


async def _anothing() -> None: ...


# ---------------------------------------------------------------------------------------------- calls of tools that a wrapper has left out


def _restrict_calls(part: AIMessage, known: Mapping[str, Any], allowed: Mapping[str, Any], caller_tools: Collection[str]) -> AIMessage:
    """Return a part of a turn whose verdict lets only calls of allowed tools run, however they are written.

    Args:
        part: The part; one without a verdict is returned as it is.
        known: The declarations of the run's tools, by name.
        allowed: Those that the turn's request has left.
        caller_tools: The names of those whose calls are left to the caller.
    """
    verdict = part.response_metadata[KEY]
    meaning = Meaning({**known, **allowed}, caller_tools, allowed)
    changed: dict[str, Any] = {}
    if "blocked" in verdict and verdict["calls"]:
        changed["calls"] = [{**record, **_refusal(record, meaning)} for record in verdict["calls"]]
    if AWAITS in verdict:
        changed[AWAITS] = []
        for entry in verdict[AWAITS]:  # of the vendor's own items: each says which tools make such items
            declared = [name for name in known if name in entry.get("tools", ())]
            changed[AWAITS].append({**entry, **_left_out(str(entry["answer"]).removesuffix("_output"), declared, allowed)})
    return part.model_copy(update={"response_metadata": {**part.response_metadata, KEY: {**verdict, **changed}}}) if changed else part


def _refusal(record: Mapping[str, Any], meaning: Meaning) -> dict[str, Any]:
    """Return the reason why a call must not run, as an entry of its verdict; empty if it may."""
    arguments = record["arguments"]
    call = ToolCallRecord(record["id"], record["name"], arguments, read_object(arguments), extra=record.get("extra", {}))
    if not record["ok"] or call.args is None:
        return {}
    if call.toolset is not None:
        declared = [name for name in meaning.tools if name == call.toolset or name.startswith(f"{call.toolset}_toolset")]
        return _left_out(call.name, declared, meaning.only)
    meant = meaning.of(call)
    refused = [one.why for one in meant.inner or (meant,) if one.args is None]
    return {"why": refused[0]} if refused else {}


def _left_out(name: str, declared: Collection[str], allowed: Any) -> dict[str, Any]:
    """The same of a call of a tool of the vendor's that is declared under one of these names, or not at all."""
    return {"why": forbidden(name, allowed)} if declared and not any(one in allowed for one in declared) else {}
