"""When ChatOpenAI makes a request again: before anything has reached the caller, and never after."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.exceptions import ModelAPIError, ModelConnectionError, ModelError, ModelRateLimitError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import ChatOpenAI, RetryPolicy, StreamError
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.providers._encode.encoder import origin_of
from tests.support.http_server import Exchange
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import Asked, chunk_of, event
from tests.support.script import Cut, Events, Failure, Raw, Reply, Turn

ASKED = Asked(0, "any", True, False)
ROLE = chunk_of(ASKED, {"role": "assistant", "content": ""})
HELLO = chunk_of(ASKED, {"content": "Hello"})
ERROR = {"error": {"message": "overloaded", "type": "server_error", "code": 503}}
FAST = RetryPolicy(wait_scale=0)


def model_of(server: OpenAIServer, **more: Any) -> ChatOpenAI:
    """A model that talks to the server and never waits."""
    return ChatOpenAI(**{"model": "any", "base_url": server.url, "api_key": "key", "retry": FAST, **more})


def invoke(model: ChatOpenAI, messages: Any = "Hi") -> str:
    """One whole reply."""
    return str(model.invoke(messages).content)


def stream(model: ChatOpenAI, messages: Any = "Hi") -> str:
    """One stream."""
    return "".join(str(chunk.content) for chunk in model.stream(messages))


def ainvoke(model: ChatOpenAI, messages: Any = "Hi") -> str:
    """One whole reply, asynchronously."""

    async def run() -> str:
        return str((await model.ainvoke(messages)).content)

    return asyncio.run(run())


def astream(model: ChatOpenAI, messages: Any = "Hi") -> str:
    """One stream, asynchronously."""

    async def run() -> str:
        return "".join([str(chunk.content) async for chunk in model.astream(messages)])

    return asyncio.run(run())


Way = Callable[..., str]
every_way = pytest.mark.parametrize("way", [invoke, stream, ainvoke, astream])
streamed = pytest.mark.parametrize("way", [stream, astream])


@every_way
@pytest.mark.parametrize(
    "failure",
    [
        Failure(500),
        Failure(503),
        Failure(408),
        Failure(409),
        Failure(429, code="rate_limit_exceeded", headers={"retry-after": "20"}),
        Failure(400, headers={"x-should-retry": "true"}),
        Failure(400, code="tool_use_failed"),
        Cut(Turn("Hello"), after=0),
    ],
    ids=["500", "503", "408", "409", "429", "server says so", "unreadable call", "connection breaks"],
)
def test_what_may_pass_is_tried_again(way: Way, failure: Reply) -> None:
    """Two failures, then the reply."""
    with OpenAIServer([failure, failure, Turn("Hello")]) as server:
        assert way(model_of(server)) == "Hello"
        assert len(server.requests) == 3


@every_way
@pytest.mark.parametrize(
    "failure",
    [
        Failure(400),
        Failure(401),
        Failure(404),
        Failure(422),
        Failure(500, headers={"x-should-retry": "false"}),
        Failure(429, code="insufficient_quota"),
        Failure(429, headers={"retry-after": "3600"}),
    ],
    ids=["400", "401", "404", "422", "server says no", "no credit", "an hour's wait"],
)
def test_what_will_not_pass_is_raised_at_once(way: Way, failure: Failure) -> None:
    """One request, one error."""
    with OpenAIServer([failure, Turn("Hello")]) as server:
        with pytest.raises(ModelError):
            way(model_of(server))
        assert len(server.requests) == 1


@every_way
@pytest.mark.parametrize(
    ("settings", "requests"),
    [({"max_retries": 0}, 1), ({"max_retries": 1}, 2), ({}, 3), ({"retry": RetryPolicy(attempts=4, wait_scale=0)}, 4)],
)
def test_the_number_of_attempts(way: Way, settings: dict[str, Any], requests: int) -> None:
    """`max_retries` counts retries, `RetryPolicy.attempts` all attempts; three unless said otherwise."""
    with OpenAIServer([Failure(500)] * 9) as server:
        with pytest.raises(ModelAPIError):
            way(model_of(server, **settings))
        assert len(server.requests) == requests


@streamed
@pytest.mark.parametrize(
    "broken",
    [
        Events([ROLE, ERROR]),
        Events([ERROR]),
        Cut(Events([ROLE, HELLO]), after=len(event(ROLE)) + 5),
        Raw([b"<html>"], "text/html"),
        Raw([]),
    ],
    ids=["error after the role", "error first", "breaks before content", "a page", "empty"],
)
def test_a_stream_that_fails_before_its_first_content_is_tried_again(way: Way, broken: Reply) -> None:
    """A role alone is no content: nothing has reached the caller yet (wire quirk E-08)."""
    with OpenAIServer([broken, Turn("Hello")]) as server:
        assert way(model_of(server)) == "Hello"
        assert len(server.requests) == 2


@streamed
@pytest.mark.parametrize(
    ("broken", "error"),
    [
        (Events([ROLE, HELLO, ERROR]), ModelAPIError),
        (Events([ROLE, chunk_of(ASKED, {"reasoning_content": "Hm"}), ERROR]), ModelAPIError),
        (Cut(Events([HELLO, HELLO]), after=len(event(HELLO)) + 5), ModelConnectionError),
        (Raw([event(HELLO), b"data: {broken\n\n"]), StreamError),
    ],
    ids=["error after text", "error after reasoning", "breaks after text", "broken event after text"],
)
def test_a_stream_is_never_restarted_after_its_first_content(way: Way, broken: Reply, error: type[Exception]) -> None:
    """The caller has the first chunk: the error is theirs."""
    with OpenAIServer([broken, Turn("Hello")]) as server:
        with pytest.raises(error):
            way(model_of(server))
        assert len(server.requests) == 1


def test_every_attempt_sends_the_same_bytes() -> None:
    """A retry repeats the request to the byte."""
    with OpenAIServer([Failure(500), Failure(500), Turn("Hello")]) as server:
        model_of(server).invoke("Hi")
        assert len({exchange.body for exchange in server.exchanges}) == 1


def test_what_the_server_asked_stands_on_the_error() -> None:
    """A wait that is too long to obey is told to the caller."""
    with OpenAIServer([Failure(429, headers={"retry-after": "3600"})]) as server:
        with pytest.raises(ModelRateLimitError) as raised:
            model_of(server).invoke("Hi")
        assert raised.value.retry_after == 3600  # type: ignore[attr-defined]


# ---------------------------------------------------------------------------------------------- other forms of a request

CALL = {"type": "tool_call", "id": "call_1", "name": "look", "args": {}}


def history(server: OpenAIServer, **extra: Any) -> list[BaseMessage]:
    """A history with a call and no text, as this server's model made it."""
    call = AIMessage("", tool_calls=[CALL], additional_kwargs=extra, response_metadata={KEY: {"origin": origin_of(server.url, "any")}})
    return [HumanMessage("Hi"), call, ToolMessage("ok", tool_call_id="call_1")]


class Picky:
    """Refuses a request whose assistant message has `key` with a value that `refuses` it, and says so."""

    def __init__(self, key: str, said: str, refuses: Callable[[Any], bool]) -> None:
        self.key, self.said, self.refuses = key, said, refuses

    def __call__(self, exchange: Exchange) -> Reply:
        """The reply to a request."""
        message = next(message for message in json.loads(exchange.body)["messages"] if message["role"] == "assistant")
        if self.key in message and self.refuses(message[self.key]):
            return Failure(400, self.said, "invalid_request_error")
        return Turn("ok")


NO_NULL = Picky("content", "messages.1.content: Input should be a valid string", lambda value: value is None)
NO_REASONING = Picky("reasoning_content", "messages.1.reasoning_content: Extra inputs are not permitted", lambda value: True)


@every_way
@pytest.mark.parametrize("server_rule", [NO_NULL, NO_REASONING], ids=["no null content", "no reasoning"])
def test_a_form_that_a_server_refuses_is_changed_and_kept(way: Way, server_rule: Picky) -> None:
    """The refused request is sent in the other form at once, retries or not; later requests start with it (wire quirks H-03, R-03)."""
    with OpenAIServer(server_rule, rules=None) as server:
        model = model_of(server, max_retries=0)
        messages = history(server, reasoning_content="Hm")
        assert way(model, messages) == "ok"
        assert way(model, messages) == "ok"
        assert len(server.requests) == 3


def test_a_refusal_that_no_form_helps_is_raised() -> None:
    """Each other form is tried once."""
    stubborn = Picky("content", "messages.1.content: must be a string, and nothing pleases me", lambda value: True)
    with OpenAIServer(stubborn, rules=None) as server:
        with pytest.raises(ModelError, match="nothing pleases me"):
            model_of(server).invoke(history(server))
        assert [request["messages"][1]["content"] for request in server.requests] == [None, ""]


def test_a_refusal_about_something_else_changes_nothing() -> None:
    """Only a 400 or 422 that names the part in question leads to another form."""
    with OpenAIServer(lambda exchange: Failure(400, "You asked too much."), rules=None) as server:
        with pytest.raises(ModelError):
            model_of(server).invoke(history(server))
        assert len(server.requests) == 1
