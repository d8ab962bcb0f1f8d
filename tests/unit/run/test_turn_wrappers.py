"""What wraps turns: the order, the parts, what is closed, and the ends that nobody can swallow."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk

from langchain_autotools import ChatOpenAI, events, new_messages
from langchain_autotools.event_types import CallProgress
from langchain_autotools.run.turn_wrappers import ORDER, Notice, Proceed, Stored, TurnRequest, TurnWrapper
from langchain_autotools.testing import ScriptedChatModel
from tests.support.endless import EndlessServer, endless, head
from tests.support.endless_chat import Way, event, every_way, look, stop_reason, streamed

ENOUGH = 10.0
TALK = [head(), event({"role": "assistant", "content": "Let me see"})]


class Wrapped(ScriptedChatModel):
    """A model whose turns are wrapped."""

    wrappers: Any = ()

    def _turn_wrappers(self) -> Any:
        return self.wrappers


class WrappedChatOpenAI(ChatOpenAI):
    """A model that makes requests, and whose turns are wrapped."""

    wrappers: Any = ()

    def _turn_wrappers(self) -> Any:
        return self.wrappers


def model_of(server: EndlessServer, *wrappers: TurnWrapper, **fields: Any) -> WrappedChatOpenAI:
    """A model of an endless server."""
    return WrappedChatOpenAI(
        model="any", api_key="x", base_url=server.address, tools=[look], wrappers=wrappers, max_retries=0, timeout=60, **fields
    )


# ---------------------------------------------------------------------------------------------- the order


def noting(name: str, log: list[str]) -> TurnWrapper:
    """A wrapper of one place that notes when a turn comes to it."""

    class Noting(TurnWrapper):
        layer: ClassVar[str] = name

        def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[Any]:
            log.append(name)
            return proceed(request)

        def awrap_turn(self, request: TurnRequest, proceed: Any) -> AsyncIterator[Any]:
            log.append(name)
            return proceed(request)  # type: ignore[no-any-return]

    return Noting()


@every_way
def test_wrappers_stand_in_one_order(way: Way) -> None:
    """However they are given; those of one place keep the order that they are given in, and each turn comes to each of them."""
    log: list[str] = []
    names = [*reversed(ORDER), ORDER[-1]]
    replies = [AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}]), "Done."]
    model = Wrapped(tools=[look], replies=replies, wrappers=[noting(name, log) for name in names])
    assert way(model)[0].text == "Done."
    assert log == [*ORDER, ORDER[-1]] * 2


def test_no_wrapper_stands_at_a_place_that_there_is_not() -> None:
    """A misspelt place is an error, not a place at the end."""
    with pytest.raises(ValueError, match="not in tuple"):
        Wrapped(tools=[look], replies=["Hi"], wrappers=[noting("nowhere", [])]).invoke("Hi")


# ---------------------------------------------------------------------------------------------- requests and parts


class Elsewhere(TurnWrapper):
    """Has another model make the request."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[Any]:
        """Make the request by the other model."""
        return proceed(replace(request, model=self.model))


class OtherWire(ScriptedChatModel):
    """A model whose wire has a form of its own."""

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """A tool in this form."""
        return {"called": tool.name, "name": tool.name}

    def format_tool_choice(self, choice: Any, tools: Any) -> Any:
        """A choice in this form."""
        return choice if isinstance(choice, dict) else {"must": choice}


def test_the_model_that_makes_a_request_writes_it() -> None:
    """Its tools and its choice have the form of that model's wire, whoever was asked first."""
    other = OtherWire(replies=["There."])
    model = Wrapped(tools=[look], replies=[], wrappers=[Elsewhere(other)])
    assert model.invoke("Hi", tool_choice="any").text == "There."
    (request,) = other.requests
    assert (list(request.tools), request.tool_choice) == ([{"called": "look", "name": "look"}], {"must": "any"})
    assert model.requests == []


class Storing(TurnWrapper):
    """Has another message stored than the one that left."""

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[Any]:
        """Make the turn."""
        yield from proceed(request)
        yield Stored(AIMessage("Kept.", id="kept"))

    async def awrap_turn(self, request: TurnRequest, proceed: Any) -> AsyncIterator[Any]:
        """Make the turn."""
        async for part in proceed(request):
            yield part
        yield Stored(AIMessage("Kept.", id="kept"))


@every_way
def test_a_stored_message_stands_in_place_of_the_sum(way: Way) -> None:
    """What has left stays as it left: the run's text is what the caller has seen."""
    message, new = way(Wrapped(tools=[look], replies=["Said."], wrappers=[Storing()]))
    assert (message.text, [one.text for one in new]) == ("Said.", ["Kept."])


class Noticing(TurnWrapper):
    """Has something to tell."""

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[Any]:
        """Make the turn."""
        yield Notice(CallProgress(run_id="run", call_id="call", value="half"))
        yield from proceed(request)


def test_a_notice_is_an_event_for_whoever_listens() -> None:
    """Where nobody does, it is nothing."""
    model = Wrapped(tools=[look], replies=["Said.", "Said."], wrappers=[Noticing()])
    assert [one.value for one in events(model.stream("Hi")) if isinstance(one, CallProgress)] == ["half"]
    assert model.invoke("Hi").text == "Said."


# ---------------------------------------------------------------------------------------------- what is open, and what has ended


class Careless(TurnWrapper):
    """Begins a turn, and gives its own answer: what it has opened stays open, and is not forgotten either."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[Any]:
        """Make the turn."""
        self.kept.append(proceed(request))
        yield next(self.kept[0])
        yield AIMessageChunk("!", chunk_position="last")

    async def awrap_turn(self, request: TurnRequest, proceed: Any) -> AsyncIterator[Any]:
        """Make the turn."""
        self.kept.append(proceed(request))
        yield await anext(self.kept[0])
        yield AIMessageChunk("!", chunk_position="last")


@streamed
def test_the_requests_of_a_careless_wrapper_are_closed(way: Way) -> None:
    """Its turn is over, and so is what it had open."""
    with EndlessServer(lambda _: endless(*TALK, piece=event({"content": " and see"}))) as server:
        message, _ = way(model_of(server, Careless()))
        assert message.text == "Let me see!"
        assert server.left.wait(ENOUGH)


class Stubborn(TurnWrapper):
    """Asks again whatever happens, and answers by itself in the end."""

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[Any]:
        """Make the turn."""
        for _ in range(3):
            try:
                yield from proceed(request)
            except Exception:
                yield AIMessageChunk("Again! ")
        yield AIMessage("Never mind.")

    async def awrap_turn(self, request: TurnRequest, proceed: Any) -> AsyncIterator[Any]:
        """Make the turn."""
        for _ in range(3):
            try:
                async for part in proceed(request):
                    yield part
            except Exception:
                yield AIMessageChunk("Again! ")
        yield AIMessage("Never mind.")


@pytest.mark.parametrize("end", ["deadline", "cancelled"])
@every_way
def test_no_wrapper_swallows_an_end_that_has_come(way: Way, end: str) -> None:
    """The run ends with what it had, and asks for nothing more."""
    with EndlessServer(lambda _: endless(*TALK, piece=b": \n\n")) as server:
        keywords: dict[str, Any] = {"deadline": 0.5} if end == "deadline" else {"cancel": lambda: server.requests > 0}
        message, _ = way(model_of(server, Stubborn(), Stubborn()), **keywords)
        assert stop_reason(message) == end
        assert server.requests <= 1
        assert message.text in ("", "Let me see")


def test_an_end_is_raised_again_at_each_attempt() -> None:
    """Also of one who asks again after he was told, and never yields."""

    class Deaf(TurnWrapper):
        attempts = 0

        def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[Any]:
            for _ in range(3):
                try:
                    return iter(list(proceed(request)))
                except Exception:
                    self.attempts += 1
            return iter([AIMessage("Never mind.")])

    deaf = Deaf()
    with EndlessServer(lambda _: endless(*TALK, piece=b": \n\n")) as server:
        message = model_of(server, deaf).invoke("Hi", cancel=lambda: server.requests > 0)
        assert (stop_reason(message), deaf.attempts, server.requests) == ("cancelled", 3, 1)


def test_an_error_of_a_wrapper_is_the_runs() -> None:
    """It is no end of the run's own; what a wrapper has open is closed then too."""

    class Failing(Careless):
        def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[Any]:
            self.kept.append(proceed(request))
            yield next(self.kept[0])
            raise LookupError("lost")

    with EndlessServer(lambda _: endless(*TALK, piece=event({"content": " and see"}))) as server:
        with pytest.raises(LookupError, match="lost"):
            list(model_of(server, Failing()).stream("Hi"))
        assert server.left.wait(ENOUGH)


def test_a_wrapper_may_limit_an_attempt_itself() -> None:
    """A timeout of its own is no end of the run: it may ask again."""

    class Patient(TurnWrapper):
        async def awrap_turn(self, request: TurnRequest, proceed: Any) -> AsyncIterator[Any]:
            for attempt in range(2):
                parts: list[Any] = []
                try:
                    async with asyncio.timeout(60) as scope:
                        async for part in proceed(request):
                            parts.append(part)
                            if not attempt:
                                scope.reschedule(asyncio.get_running_loop().time())
                except TimeoutError:
                    assert not attempt
            for part in parts:
                yield part

    replies = [endless(*TALK, piece=b": \n\n"), [*TALK, event({}, "stop"), b"data: [DONE]\n\n"]]
    with EndlessServer(lambda number: replies[number]) as server:
        chunks = asyncio.run(_all(model_of(server, Patient()).astream("Hi", deadline=60)))
        assert ("".join(chunk.text for chunk in chunks), server.requests) == ("Let me see", 2)
        assert [one.text for chunk in chunks for one in new_messages(chunk)] == ["Let me see"]


async def _all(stream: Any) -> list[Any]:
    return [chunk async for chunk in stream]
