"""`deadline` bounds the reply of a model without tools of its own, as `cancel` does there."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import pytest
from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from pydantic import BaseModel

from langchain_autotools import Agent, ChatOpenAI, ConfigurationError, LimitReachedError, events, new_messages, stop_reason
from langchain_autotools.event_types import RunEnded
from langchain_autotools.testing import ScriptedChatModel
from tests.support.at_once import at_once
from tests.support.endless import REPLIES, EndlessServer, ended, endless, head, silent
from tests.support.endless_chat import CLASSES, Way, ainvoke, astream, event, every_way, invoke, load_sdks, look, stream

SECONDS = 1.0
"""Enough for the connection: anyio 4.14 may leave one open that is cancelled while it is made."""
EVERY_WAY = (invoke, stream, ainvoke, astream)
ENOUGH = 20.0
"""A reply that ends within this time, where its server never would, was ended by its deadline: machines are slow at times."""


def model_of(server: EndlessServer, **more: Any) -> ChatOpenAI:
    """A model without tools, with a deadline."""
    return ChatOpenAI(**{"model": "any", "base_url": f"{server.address}/v1", "api_key": "key", "deadline": SECONDS, **more})


@pytest.fixture(autouse=True, scope="module")
def _ready() -> None:
    """The SDKs are loaded."""
    load_sdks()


@pytest.fixture(autouse=True)
def _ends_in_time() -> Iterator[None]:
    """Every test here ends, and soon."""
    started = time.monotonic()
    yield
    assert time.monotonic() - started < ENOUGH


def test_no_reply_outlives_the_deadline() -> None:
    """Whatever the server sends meanwhile, in every way and on every wire: the message is empty, and the connection is left."""

    def ends(cls: Any, way: Way, reply: Callable[[], Any]) -> None:
        with EndlessServer(lambda _: reply()) as server:
            address = f"{server.address}/v1" if cls is ChatOpenAI else server.address
            message, new = way(cls(model="any", base_url=address, api_key="key", deadline=SECONDS))
            assert (stop_reason(message), message.text, [type(one) for one in new]) == ("deadline", "", [AIMessage])
            assert message.id and server.requests <= 1
            assert not server.requests or server.left.wait(ENOUGH)

    first = {(ChatOpenAI, way, words): reply for way in EVERY_WAY for words, reply in REPLIES.items()}
    others = {(cls, way, "white space for ever"): REPLIES["white space for ever"] for cls in CLASSES[1:] for way in EVERY_WAY}
    at_once({f"{case}": lambda case=case, reply=reply: ends(*case[:2], reply) for case, reply in {**first, **others}.items()})


def test_the_text_that_had_come_is_kept() -> None:
    """The message has it, and says that it was cut."""
    pieces = [head(), event({"role": "assistant", "content": "Let me "}), event({"content": "see"})]

    def keeps(way: Way) -> None:
        with EndlessServer(lambda _: endless(*pieces, piece=b": \n\n")) as server:
            message, (new,) = way(model_of(server, deadline=1))
        assert (message.text, new.text, stop_reason(message), stop_reason(new)) == ("Let me see", "Let me see", "deadline", "deadline")

    at_once({way.__name__: partial(keeps, way) for way in (stream, astream)})


def test_a_keyword_of_the_call_bounds_it_too() -> None:
    """Where the field says nothing, or another time; None lifts it."""

    def bounds(way: Way, deadline: float | None) -> None:
        with EndlessServer(lambda _: silent()) as server:
            assert stop_reason(way(model_of(server, deadline=deadline), deadline=SECONDS)[0]) == "deadline"

    at_once({f"{way} {field}": partial(bounds, way, field) for way in EVERY_WAY for field in (60, None)})
    for way in EVERY_WAY:
        for deadline in (60, None):
            message, new = way(ScriptedChatModel(replies=["Fine."], deadline=0.000001), deadline=deadline)
            assert (stop_reason(message), [one.text for one in new]) == ("complete", ["Fine."])


def test_at_a_limit_that_raises_it_raises() -> None:
    """`on_limit="raise"` holds here as in a run."""

    def raises(way: Way) -> None:
        with EndlessServer(lambda _: silent()) as server, pytest.raises(LimitReachedError) as caught:
            way(model_of(server, on_limit="raise"))
        assert caught.value.stop_reason == "deadline"

    at_once({way.__name__: partial(raises, way) for way in EVERY_WAY})


def test_a_retry_is_not_waited_for() -> None:
    """A server that asks for more time than there is gets no second request."""
    with EndlessServer(lambda _: ended(429, {"error": {"message": "slow down"}}, retry_after="30")) as server:
        assert stop_reason(model_of(server, deadline=15).invoke("Hi")) == "deadline"
        assert server.requests == 1


class _Answer(BaseModel):
    """An answer."""

    text: str


def test_whoever_asks_through_something_else_is_bounded_too() -> None:
    """Declared tools, an agent, events, a batch, a tool of another model; structured output that was cut is an error."""
    half = [head(), event({"role": "assistant", "content": '{"text": "ha'})]
    with EndlessServer(lambda _: silent()) as server, EndlessServer(lambda _: endless(*half, piece=b": \n\n")) as begins:
        model = model_of(server)

        def cut_output() -> None:
            with pytest.raises(OutputParserException):
                list(model_of(begins, deadline=1).with_structured_output(_Answer).stream("Hi"))

        def told() -> None:
            read = events(model.stream("Hi"))
            assert [event.stop_reason for event in read if isinstance(event, RunEnded)] == ["deadline"]

        def asked() -> None:
            asks = AIMessage("", tool_calls=[{"name": "ask", "args": {}, "id": "1"}])
            outer = ScriptedChatModel(tools={"ask": lambda: model.invoke("Hi")}, replies=[asks, "Done."])
            (result,) = [one for one in new_messages(outer.invoke("Hi")) if one.type == "tool"]
            assert "deadline" in result.text

        def same(ask: Callable[[], BaseMessage]) -> Callable[[], None]:
            def check() -> None:
                assert stop_reason(ask()) == "deadline"

            return check

        at_once(
            {
                "declared": same(lambda: model.bind_tools([look]).invoke("Hi")),
                "bound": same(lambda: model_of(server, deadline=None).bind(deadline=SECONDS).invoke("Hi")),
                "agent": same(lambda: Agent(model).run("Hi").message),
                "batch": same(lambda: model.batch(["Hi"])[0]),
                "structured": cut_output,
                "events": told,
                "nested": asked,
            }
        )


def test_generate_refuses_what_would_have_no_effect_there() -> None:
    """As it refuses `cancel`."""
    with pytest.raises(ConfigurationError, match="deadline is for invoke"):
        ScriptedChatModel(replies=["Fine."]).generate([[]], deadline=1)


# ---------------------------------------------------------------------------------------------- models of one's own


class _Slow(ScriptedChatModel):
    """A synchronous stream of one piece, which takes longer than there is time."""

    def raw_stream(self, messages: Any, stop: Any = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """Say one thing, late."""
        time.sleep(0.1)
        yield AIMessageChunk("Late.")

    async def araw_stream(self, messages: Any, stop: Any = None, **kwargs: Any) -> AsyncIterator[AIMessageChunk]:
        """The same, asynchronously."""
        await asyncio.sleep(0.1)
        yield AIMessageChunk("Late.")


@every_way
@pytest.mark.parametrize("tools", [[look], None])
def test_a_late_reply_of_ones_own_model_ends_as_deadline_in_every_way(way: Way, tools: Any) -> None:
    """It is looked at between the pieces of a synchronous stream, also where the reply is handed out whole."""
    message, new = way(_Slow(tools=tools, deadline=0.05))
    assert stop_reason(message) == "deadline"
    kept = [] if way in (ainvoke, astream) else ["Late."]
    assert [one.text for one in new if one.text] == kept
    assert stop_reason(way(_Slow(tools=tools, deadline=60))[0]) == "complete"
