"""A reply of a model without tools: what core, its handlers and its cache get, what leaves, and the wrappers of turns around it."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from threading import Event
from typing import Any, ClassVar

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage

from langchain_autotools import LimitReachedError, events, new_messages, stop_reason
from langchain_autotools.errors import ConfigurationError
from langchain_autotools.event_types import CallProgress
from langchain_autotools.run.turn_wrappers import Notice, Proceed, Stored, TurnRequest, TurnWrapper
from langchain_autotools.testing import ScriptedChatModel

CALL = {"name": "look", "args": {}, "id": "1"}
OPEN = [HumanMessage("Look!"), AIMessage("", tool_calls=[CALL])]
"""A history that ends in a call without a result."""


def look() -> str:
    """Look."""
    return "A door."


class Wrapped(ScriptedChatModel):
    """A model without tools whose turns are wrapped."""

    wrappers: Any = ()

    def _turn_wrappers(self) -> Any:
        return self.wrappers


class Inputs(BaseCallbackHandler):
    """Keeps the messages that handlers see of each request, and the parents of the runs."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.parents: list[Any] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, *, parent_run_id: Any = None, **_: Any) -> None:
        """Keep them."""
        self.seen.append(messages[0])
        self.parents.append(parent_run_id)


def _ainvoked(model: Any, *arguments: Any, **keywords: Any) -> list[Any]:
    return [asyncio.run(model.ainvoke(*arguments, **keywords))]


def _astreamed(model: Any, *arguments: Any, **keywords: Any) -> list[Any]:
    async def read() -> list[Any]:
        return [chunk async for chunk in model.astream(*arguments, **keywords)]

    return asyncio.run(read())


WAYS: dict[str, Callable[..., list[Any]]] = {
    "invoke": lambda model, *arguments, **keywords: [model.invoke(*arguments, **keywords)],
    "stream": lambda model, *arguments, **keywords: list(model.stream(*arguments, **keywords)),
    "ainvoke": _ainvoked,
    "astream": _astreamed,
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
Way = Callable[..., list[Any]]


@every_way
def test_handlers_see_the_history_as_the_caller_gave_it(way: Way) -> None:
    """Open calls are answered in the request alone: no handler sees the answer, nothing hands it out, and the reply has no parent run."""
    model, handler = ScriptedChatModel(replies=["I see."]), Inputs()
    out = way(model, OPEN, {"callbacks": [handler]})
    assert handler.seen == [OPEN] and handler.parents == [None]
    assert [message.type for message in model.requests[0].messages] == ["human", "ai", "tool"]
    assert [message.text for chunk in out for message in new_messages(chunk)] == ["I see."]


@every_way
def test_the_cache_key_is_that_of_the_history_as_it_was_given(way: Way) -> None:
    """A history whose open call the caller answers is another entry than the one with the call left open."""
    cache = InMemoryCache()
    model = ScriptedChatModel(replies=["First.", "Second."], cache=cache)
    answered = [*OPEN, ToolMessage("A door.", tool_call_id="1")]
    assert "".join(part.text for part in way(model, OPEN)) == "First."
    assert model.invoke(answered).text == "Second."
    assert not [prompt for prompt, _ in cache._cache if "interrupted" in prompt]


@every_way
def test_wrappers_stand_around_a_reply_too(way: Way) -> None:
    """They get the input as the caller gave it, and chunks leave as they change them."""
    requests: list[TurnRequest] = []

    class Louder(TurnWrapper):
        layer: ClassVar[str] = "middleware"

        def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[Any]:
            requests.append(request)
            for part in proceed(request):
                yield louder(part)

        async def awrap_turn(self, request: TurnRequest, proceed: Any) -> AsyncIterator[Any]:
            requests.append(request)
            async for part in proceed(request):
                yield louder(part)

    def louder(part: Any) -> Any:
        return part.model_copy(update={"content": part.text.upper()})

    out = way(Wrapped(replies=["Hello there."], wrappers=[Louder()]), OPEN)
    assert "".join(part.text for part in out) == "HELLO THERE."
    assert [message.text for part in out for message in new_messages(part)] == ["HELLO THERE."]
    assert [request.messages for request in requests] == [OPEN]


@pytest.mark.further
@every_way
def test_a_model_that_does_not_stream_hands_its_message_on(way: Way) -> None:
    """Whole, once, and with itself as the new message."""
    (message,) = way(ScriptedChatModel(replies=["I see."], disable_streaming=True), "Look!")
    assert message.text == "I see." and new_messages(message) == [message]


@every_way
def test_a_stored_message_stands_in_place_of_the_sum(way: Way) -> None:
    """Chunks stay as they left; the last one brings the stored message, which `invoke` returns."""

    class Storing(TurnWrapper):
        layer: ClassVar[str] = "failover"

        def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[Any]:
            yield from proceed(request)
            yield Stored(AIMessage("Stored.", id="kept"))

        async def awrap_turn(self, request: TurnRequest, proceed: Any) -> AsyncIterator[Any]:
            async for part in proceed(request):
                yield part
            yield Stored(AIMessage("Stored.", id="kept"))

    out = way(Wrapped(replies=["As it was written."], wrappers=[Storing()]), "Go!")
    assert [(message.text, message.id) for part in out for message in new_messages(part)] == [("Stored.", "kept")]
    if isinstance(out[0], AIMessageChunk):
        assert "".join(part.text for part in out) == "As it was written."


def test_a_notice_of_a_reply_is_an_event() -> None:
    """What a wrapper gives notice of, whoever listens gets; it is no part of the reply."""

    class Noticing(TurnWrapper):
        layer: ClassVar[str] = "middleware"

        def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[Any]:
            yield Notice(CallProgress(run_id="r", parent_run_id=None, parent_call_id=None, call_id="c", value=50))
            yield from proceed(request)

    model = Wrapped(replies=["Done.", "Done."], wrappers=[Noticing()])
    assert [event.value for event in events(model.stream("Go!")) if isinstance(event, CallProgress)] == [50]
    assert "".join(chunk.text for chunk in model.stream("Go!")) == "Done."


@every_way
def test_a_reply_that_is_cancelled_says_so_and_is_told_of_whole(way: Way) -> None:
    """A cancelled reply ends with that finish reason and the message so far; whoever listens sees the run end as cancelled."""
    cancelled = Event()
    cancelled.set()
    out = way(ScriptedChatModel(replies=["Never."]), "Go!", cancel=cancelled)
    assert stop_reason(out[-1]) == "cancelled" and out[-1].response_metadata["finish_reason"] == "cancelled"
    assert [message.text for part in out for message in new_messages(part)] == [""]


@pytest.mark.parametrize("way", [WAYS["invoke"], WAYS["ainvoke"]], ids=["invoke", "ainvoke"])
def test_the_error_of_a_deadline_brings_the_message_so_far(way: Way) -> None:
    """Who asked for a whole reply and set `on_limit="raise"` finds what had come in the error."""
    with pytest.raises(LimitReachedError) as caught:
        way(ScriptedChatModel(replies=["Late."], deadline=1e-9, on_limit="raise"), "Go!")
    assert [stop_reason(message) for message in new_messages(caught.value)] == ["deadline"]


@every_way
def test_decisions_need_a_model_with_tools(way: Way) -> None:
    """A model without tools executes no call, so that decisions about calls are refused."""
    with pytest.raises(ConfigurationError, match="takes a model with tools"):
        way(ScriptedChatModel(replies=["Never."]), OPEN, resume={"1": True})


@pytest.mark.parametrize("tools", [[], [look]], ids=["no tools", "tools"])
def test_core_converts_no_message_of_a_turn_again(tools: list[Any]) -> None:
    """A history of messages reaches core as a prompt: what it does for a message is not done for each message of each turn."""
    converted: list[str] = []

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_name == "_convert_to_message":
            converted.append(frame.f_code.co_filename)

    model = ScriptedChatModel(replies=["Hello."], tools=tools)
    sys.setprofile(note)
    try:
        answer = model.invoke([HumanMessage("Hi"), AIMessage("Hello?"), HumanMessage("Hi!")])
    finally:
        sys.setprofile(None)
    assert answer.text == "Hello."
    assert len(converted) <= (3 if tools else 0)  # a run reads its own input once
