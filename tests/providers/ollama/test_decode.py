"""What events of /api/chat mean: text, thinking, calls in every shape that servers send, ends, errors."""

from __future__ import annotations

import json
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelInvalidRequestError,
    ModelNotFoundError,
)
from langchain_core.messages import AIMessage, message_chunk_to_message

from langchain_autotools import ChatOllama, StreamError
from langchain_autotools.messages.calls import calls_of
from tests.support.ollama_server import OllamaServer
from tests.support.script import Raw

DONE = {
    "model": "m",
    "message": {"role": "assistant", "content": ""},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 3,
    "eval_count": 2,
}


def event(**message: Any) -> dict[str, Any]:
    """An event with a part of a message."""
    return {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": "", **message}, "done": False}


def call(name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    """A call as it is in an event."""
    return {"function": {"name": name, "arguments": arguments}, **more}


def read(*events: Any, **model: Any) -> AIMessage:
    """The message that a stream of these lines gives, over HTTP."""
    lines = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in events)
    with OllamaServer([Raw([lines], "application/x-ndjson")]) as server:
        chunks = list(ChatOllama(model="m", base_url=server.url, max_retries=0, **model).stream("x"))
    return message_chunk_to_message(reduce(add, chunks))  # type: ignore[return-value]


def calls(message: AIMessage) -> list[tuple[str, Any]]:
    """Name and arguments of each call; None where it cannot run."""
    return [(one.name, one.args) for one in calls_of(message)]


CALLS = {
    "id and place": (
        [event(tool_calls=[call("f", {"q": 1}, id="a")]), event(tool_calls=[call("g", {}, id="b")])],
        [("f", {"q": 1}), ("g", {})],
    ),
    "neither id nor place": ([event(tool_calls=[call("f", {"q": 1}), call("f", {"q": 2})])], [("f", {"q": 1}), ("f", {"q": 2})]),
    "equal calls in two events": ([event(tool_calls=[call("f", {})]), event(tool_calls=[call("f", {})])], [("f", {}), ("f", {})]),
    "equal calls in one event": ([event(tool_calls=[call("f", {"q": 1}), call("f", {"q": 1})])], [("f", {"q": 1})] * 2),
    "in the last event": (
        [{**DONE, "message": {"role": "assistant", "content": "", "tool_calls": [call("f", {"q": 1})]}}],
        [("f", {"q": 1})],
    ),
    "all at place 0": (
        [
            event(tool_calls=[{"id": "a", "function": {"index": 0, "name": "f", "arguments": {}}}]),
            event(tool_calls=[{"id": "b", "function": {"index": 0, "name": "g", "arguments": {}}}]),
        ],
        [("f", {}), ("g", {})],
    ),
    "arguments as text": ([event(tool_calls=[call("f", '{"q": 1}')])], [("f", {"q": 1})]),
    "arguments null": ([event(tool_calls=[call("f", None)])], [("f", {})]),
    "arguments a list": ([event(tool_calls=[call("f", [1])])], [("f", None)]),
    "one object, no list": ([event(tool_calls=call("f", {"q": 1}))], [("f", {"q": 1})]),
    "no calls": ([event(tool_calls=None), event(tool_calls=[])], []),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_in_every_shape(name: str) -> None:
    """Each call is read once and whole, whatever tells it apart; ids are each used once (wire quirks O-01, O-02, O-09)."""
    events, expected = CALLS[name]
    message = read(*events, DONE)
    assert calls(message) == expected
    ids = [one.id for one in calls_of(message)]
    assert all(ids) and len({*ids}) == len(ids)


def test_text_thinking_and_what_is_said_once() -> None:
    """Text and thinking grow; reason, model, counts and durations are once in the metadata."""
    message = read(
        event(thinking="Let "), event(thinking="me."), event(content="Hi"), event(content=" you", remote="?"), {**DONE, "load_duration": 7}
    )
    assert (message.text, message.additional_kwargs) == ("Hi you", {"reasoning_content": "Let me."})
    assert message.usage_metadata == {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    metadata = message.response_metadata
    assert {key: metadata[key] for key in ("finish_reason", "done_reason", "model_name", "model", "model_provider", "load_duration")} == {
        "finish_reason": "stop", "done_reason": "stop", "model_name": "m", "model": "m", "model_provider": "ollama", "load_duration": 7,
    }  # fmt: skip


def test_a_prompt_from_the_cache_has_no_count() -> None:
    """A server that leaves out the count of the prompt is read all the same; one that counts nothing gives no usage."""
    assert read({**{key: value for key, value in DONE.items() if key != "prompt_eval_count"}}).usage_metadata == {
        "input_tokens": 0, "output_tokens": 2, "total_tokens": 2,
    }  # fmt: skip
    assert read({"model": "m", "message": {"role": "assistant", "content": "x"}, "done": True}).usage_metadata is None


def test_log_probabilities_leave_with_their_text() -> None:
    """Each event's log probabilities come with its chunk and add up to the whole list."""
    one, two = [{"token": "a", "logprob": -1.0}], [{"token": "b", "logprob": -2.0}]
    message = read({**event(content="a"), "logprobs": one}, {**event(content="b"), "logprobs": two}, DONE)
    assert (message.text, message.response_metadata["logprobs"]) == ("ab", [*one, *two])


def test_events_without_a_message_and_blank_lines() -> None:
    """A model that was only loaded, and blank lines, are no error (wire quirk O-03)."""
    message = read({"model": "m", "created_at": "t", "done": True, "done_reason": "load"}, b"\n\n")
    assert (message.text, message.response_metadata["finish_reason"]) == ("", "load")


def test_standard_blocks_keep_their_order() -> None:
    """As v1 blocks a reply is its thinking, its text and its calls."""
    message = read(event(thinking="Hm."), event(content="Hi"), event(tool_calls=[call("f", {})]), DONE, output_version="v1")
    assert [block["type"] for block in message.content_blocks] == ["reasoning", "text", "tool_call"]


# ---------------------------------------------------------------------------------------------- ends and errors


def test_a_stream_without_its_end_runs_nothing() -> None:
    """A stream that just ends keeps its text; its calls cannot run."""
    message = read(event(content="Hi"), event(tool_calls=[call("f", {"q": 1})]))
    assert (message.text, calls(message), message.response_metadata["finish_reason"]) == ("Hi", [("f", None)], "incomplete")


def test_a_limit_runs_nothing() -> None:
    """A reply that was cut by its limit keeps its calls from running."""
    message = read(event(tool_calls=[call("f", {"q": 1})]), {**DONE, "done_reason": "length"})
    assert calls(message) == [("f", None)]


ERRORS = [
    ({"error": "an error was encountered while running the model: CUDA error"}, ModelAPIError, 500),
    ({"error": "model 'x' not found"}, ModelNotFoundError, 404),
    ({"error": "m does not support tools"}, ModelInvalidRequestError, 400),
    ({"error": "the input length exceeds the context length"}, ContextOverflowError, 400),
    ({"error": "unauthorized"}, ModelAuthenticationError, 401),
    ({"error": {"message": "server busy, please try again"}}, ModelAPIError, 503),
    ({"error running model": "out of memory"}, ModelAPIError, 500),
]


@pytest.mark.parametrize(("line", "kind", "status"), ERRORS, ids=[str(number) for number in range(len(ERRORS))])
def test_errors_in_a_stream_are_typed(line: dict[str, Any], kind: type[Exception], status: int) -> None:
    """An error line, whatever its key, is raised as the error that it would have been outside, in its own words.

    Wire quirks O-03, O-08.
    """
    import ollama

    with pytest.raises(kind) as raised:
        read(event(content="Hi"), line)
    assert isinstance(raised.value, ollama.ResponseError) and raised.value.status_code == status
    words = next(iter(line.values()))
    assert (words["message"] if isinstance(words, dict) else words) in str(raised.value)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html><body>Bad gateway</body></html>", "Bad gateway"),
        (b"", "empty"),
        (b'{"models": []}', "/api/chat"),
        (b"[1, 2]\n", "no JSON object"),
    ],
    ids=["html", "nothing", "another reply", "a list"],
)
def test_a_body_that_is_no_chat_is_told(body: bytes, said: str) -> None:
    """What is no reply of this wire is an error that shows it, streamed and whole."""
    for stream in (True, False):
        with OllamaServer(lambda _: Raw([body], "text/html")) as server:
            model = ChatOllama(model="m", base_url=server.url, max_retries=0)
            with pytest.raises(StreamError, match=r"reply") as raised:
                list(model.stream("x")) if stream else model.invoke("x")
        assert said in str(raised.value) or not stream


MISTAKES = [
    {"error": 'error parsing tool call: raw=\'{"city": "Par\', err=unexpected end of JSON input'},
    {"error parsing tool call": "invalid character 'c' looking for beginning of value"},
]


@pytest.mark.parametrize("line", MISTAKES, ids=["under error", "as a key"])
def test_a_call_that_the_server_cannot_read_is_the_models_mistake(line: dict[str, Any]) -> None:
    """It becomes a call that cannot run, with what the model wrote where the server tells it; nothing is raised (wire quirk T-07)."""
    message = read(event(content="Hi"), line)
    assert (message.text, message.tool_calls, len(message.invalid_tool_calls)) == ("Hi", [], 1)
    raw = calls_of(message)[0].arguments
    assert raw == '{"city": "Par' or "invalid character 'c'" in raw
