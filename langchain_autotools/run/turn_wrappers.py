"""Wrappers around each model turn: the request, the parts of its reply, and the wrappers that both pass through.

A wrapper gets a neutral request and a function that makes the turn of it. It may change the request, make the turn more than once
or not at all, and change the parts. The innermost layer is one LLM run of core: the model that makes the request writes the form
of its wire.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, cast

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import RunnableConfig

from ..deadline import Deadline, DeadlinePassed
from ..event_bus import NobodyListens
from ..executor.names import tool_name
from ..messages.metadata import KEY
from ..turn.partial_calls import is_restart
from ..turn.tool_choice import ToolChoice
from .loop import Choice
from .narrowing import narrowed

ORDER = (
    "observer",  # sees each part as it goes out, also of a turn that the journal has; there only while somebody listens
    "journal",  # records what came of the turn, the end that cut it included, and makes nothing of what is inside where it has the turn
    "end",  # the deadline and the caller's cancellation: all that is inside, another attempt or another model too, has to be in time
    "before_turn",  # changes what is sent, whichever model it is sent to
    "failover",  # chooses the model
    "middleware",  # stands around each attempt of each model
)
"""The places of wrappers, outermost first. Inside the last one is the LLM run of core."""

_OURS = ORDER.index("end")  # what is inside of this place may be anybody's, and may not swallow an end that has come
ENDS = (DeadlinePassed, NobodyListens)
"""What ends a run from outside, raised inside a turn. A wrapper lets it through."""
_NO_CHOICE = ToolChoice()


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
    """

    model: Any
    messages: Any
    choice: Choice
    keywords: Mapping[str, Any]
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


# ---------------------------------------------------------------------------------------------- parts


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


# ---------------------------------------------------------------------------------------------- wrappers


class TurnWrapper:
    """A wrapper around each turn of a run. The inherited methods pass everything through.

    Attributes:
        layer: Where it stands, one of `ORDER`.
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


class Turns:
    """The turns of one run, each inside the wrappers.

    Args:
        wrappers: The wrappers in any order; those of one place stand as they are given, the first outermost.

    Attributes:
        make: Makes the parts of a turn.
        amake: Makes them asynchronously.
    """

    def __init__(self, wrappers: Iterable[TurnWrapper] = ()) -> None:
        ordered = sorted(wrappers, key=lambda one: ORDER.index(one.layer), reverse=True)
        self._others = [one for one in ordered if ORDER.index(one.layer) > _OURS]
        self.make: Proceed = self._guarded if self._others else _core
        self.amake: AsyncProceed = self._aguarded if self._others else _acore
        for wrapper in ordered[len(self._others) :]:
            self.make, self.amake = partial(wrapper.wrap_turn, proceed=self.make), partial(wrapper.awrap_turn, proceed=self.amake)

    def _guarded(self, request: TurnRequest) -> Iterator[TurnPart]:
        """Yield a turn inside arbitrary wrappers: generators they leave open are closed, and an end that has come is raised."""
        guard = _Guard(request)
        with ExitStack() as opened:

            def opening(make: Proceed, request: TurnRequest) -> Iterator[TurnPart]:
                guard.check()
                parts = iter(make(request))
                opened.callback(getattr(parts, "close", _nothing))
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
        guard = _Guard(request)
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


class _Guard:
    """The guard of one turn: whatever wrappers do, the end that has come is an end, and a call runs only if its tool was declared.

    Args:
        request: The turn's request, outside of the wrappers.
    """

    def __init__(self, request: TurnRequest) -> None:
        self._end: BaseException | None = None
        self._request = request

    def check(self) -> None:
        """Raise the end if it has come."""
        if self._end is not None:
            raise self._end

    def noted(self, request: TurnRequest) -> Iterator[TurnPart]:
        """Yield one LLM run of core, the innermost layer, with its notes about the turn as marks."""
        with self._noting(), closing(cast("Generator[AIMessage, None, None]", _core(request))) as parts:
            for part in parts:
                yield Restart() if is_restart(part) else self._narrowed(part, request)

    async def anoted(self, request: TurnRequest) -> AsyncIterator[TurnPart]:
        """Like `noted`, asynchronously."""
        with self._noting():
            async with aclosing(cast("AsyncGenerator[AIMessage, None]", _acore(request))) as parts:
                async for part in parts:
                    yield Restart() if is_restart(part) else self._narrowed(part, request)

    def _narrowed(self, part: AIMessage, request: TurnRequest) -> AIMessage:
        """Return a part of the turn; of its calls only those run whose tools a wrapper has left."""
        whole, left = self._request.form, request.form
        if whole is left or KEY not in part.response_metadata:
            return part
        return narrowed(part, whole.names, left.names, request.caller_tools)

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


def _nothing() -> None: ...


async def _anothing() -> None: ...


def _core(request: TurnRequest) -> Iterator[AIMessage]:
    """Return one LLM run of core."""
    parts: Iterator[AIMessage] = request.model._turn_parts(request)
    return parts


def _acore(request: TurnRequest) -> AsyncIterator[AIMessage]:
    parts: AsyncIterator[AIMessage] = request.model._aturn_parts(request)
    return parts
