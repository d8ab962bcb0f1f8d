"""What a reply says besides its content is kept under the wire's names, of each turn and of the last one on the run message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from langchain_autotools import ChatGoogleGenerativeAI, ChatOllama, ChatOpenAI, new_messages
from langchain_autotools.messages.metadata import KEY
from tests.support.anthropic_server import AnthropicServer
from tests.support.google_server import GoogleServer
from tests.support.ollama_server import OllamaServer
from tests.support.openai_server import OpenAIServer
from tests.support.responses_server import ResponsesServer
from tests.support.script import Events, Turn
from tests.vendor_types.reading import RUNS, look_up
from tests.vendor_types.rows import ROWS, Body, Row

WAYS = pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
SPENT = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
FLAGGED = {"type": "moderation_results", "model": "m", "results": [{"flagged": True, "categories": {"violence": True}}]}
MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
REPLIES: dict[str, tuple[Callable[[], Any], Body, Body]] = {
    "Chat completions": (
        OpenAIServer,
        {"id": "c1", "object": "chat.completion", "model": "m", "created": 1, "usage": SPENT}
        | {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi."}}]},
        {"moderation": {"input": FLAGGED}, "usage_breakdown": {"models": [{"model": "m"}]}, "x_groq": {"id": "req_1"}},
    ),
    "Responses": (
        ResponsesServer,
        {"id": "resp_1", "object": "response", "model": "m", "created_at": 1, "status": "completed", "usage": None}
        | {"output": [{**MESSAGE, "content": [{"type": "output_text", "text": "Hi.", "annotations": []}]}]},
        {
            "moderation": {"input": FLAGGED},
            "tool_usage": {"web_search": {"num_requests": 2}},
            "conversation": {"id": "conv_1"},
            "top_p": 1.0,
        },
    ),
    "Messages": (
        AnthropicServer,
        {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "stop_sequence": None}
        | {"content": [{"type": "text", "text": "Hi."}], "usage": {"input_tokens": 1, "output_tokens": 2}},
        {"diagnostics": {"cache_miss_reason": {"type": "tools_changed"}}},
    ),
    "generateContent": (
        GoogleServer,
        {"responseId": "r1", "modelVersion": "m", "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3}}
        | {"candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [{"text": "Hi."}]}}]},
        {"modelStatus": {"modelStage": "STABLE"}, "promptFeedback": {"safetyRatings": [{"blocked": True}]}},
    ),
    "/api/chat": (
        OllamaServer,
        {"model": "m", "created_at": "now", "done": True, "done_reason": "stop", "message": {"role": "assistant", "content": "Hi."}},
        {"queue": {"position": 0}, "cached": False},
    ),
}
NAMES = pytest.mark.parametrize("name", list(REPLIES))
OF_OURS: Body = {KEY: {"calls": [{"id": "x"}], "blocked": None}, "output_version": "v1", "generation_id": "theirs", "headers": {"a": "b"}}


def row_of(name: str) -> Row:
    """The wire of a reply."""
    return next(row for row in ROWS if row.name == name)


async def conversation(name: str, way: str, said: Body) -> tuple[AIMessage, list[AIMessage], list[Body]]:
    """The run message of two turns, their AI messages, and the requests, none of which the strict server refused."""
    serve, body, _ = REPLIES[name]
    row = row_of(name)
    with serve() as server:
        server.extend(row.script({**body, **said}))
        run = await RUNS[way](row.model(server.url, tools=[look_up], **row.arguments))
        assert server.rejections == []
        return run, [message for message in new_messages(run) if isinstance(message, AIMessage)], server.requests


def snake(said: Body) -> Body:
    """Keys as the message has them."""
    names = {
        "modelStatus": "model_status",
        "promptFeedback": "prompt_feedback",
        "modelStage": "model_stage",
        "safetyRatings": "safety_ratings",
    }
    return {names.get(key, key): snake(value) if isinstance(value, dict) else value for key, value in said.items()}


@WAYS
@NAMES
async def test_what_a_reply_says_is_kept_and_not_sent_back(name: str, way: str) -> None:
    """Flagged input, billed tools, states of the model: on the message of each turn, once, of the last on the run message; requests have
    nothing of it."""
    _, _, said = REPLIES[name]
    run, replies, requests = await conversation(name, way, said)
    assert len(replies) == len(requests) == 2
    for message in (*replies, run):
        assert {key: message.response_metadata.get(key) for key in snake(said)} == snake(said)
    assert not set(said) & {
        key for turn in requests[1].get("messages") or requests[1].get("input") or requests[1]["contents"] for key in turn
    }


@WAYS
@NAMES
async def test_a_server_does_not_set_what_is_ours(name: str, way: str) -> None:
    """Metadata that the package and LangChain's core act on is not taken from a reply."""
    run, replies, _ = await conversation(name, way, OF_OURS)
    assert [message.text for message in replies] == ["Hi.", "Hi."]
    for message in replies:
        assert not {"output_version", "headers"} & message.response_metadata.keys()
        assert message.response_metadata["generation_id"] != "theirs"
        assert {"id": "x"} not in message.response_metadata.get(KEY, {}).get("calls", [])
    assert run.response_metadata[KEY]["stop_reason"] == "complete"


@pytest.mark.parametrize("way", ["invoke", "stream"])
async def test_a_repetition_of_the_request_is_not_kept(way: str) -> None:
    """Of settings and tools that come back only what the request did not say is kept; a tier and the caller's metadata always are."""
    _, body, _ = REPLIES["Responses"]
    row = row_of("Responses")
    with ResponsesServer() as server:
        model: Any = ChatOpenAI(
            model="any",
            base_url=server.url,
            api_key="key",
            use_responses_api=True,
            temperature=0.5,
            service_tier="flex",
            metadata={"a": "b"},
        )
        server.extend(row.script(body)[1:])
        await RUNS[way](model.bind_tools([look_up]))
        (tool,) = server.requests[0]["tools"]
        said = {
            "temperature": 0.5,
            "top_p": 1.0,
            "tools": [{**tool, "defer_loading": False}],
            "service_tier": "flex",
            "metadata": {"a": "b"},
        }
        server.extend(row.script({**body, **said})[1:])
        message = await RUNS[way](model.bind_tools([look_up]))
    kept = {key: value for key, value in message.response_metadata.items() if key in said}
    assert kept == {"top_p": 1.0, "tools": [{"defer_loading": False}], "service_tier": "flex", "metadata": {"a": "b"}}


@pytest.mark.parametrize("way", ["invoke", "stream"])
async def test_what_stands_beside_a_part_is_kept_with_its_block(way: str) -> None:
    """A speaker, a place in a document, and that a picture is a thought: extras of the block, and metadata in each event is not glued."""
    _, body, said = REPLIES["generateContent"]
    part = {"inlineData": {"mimeType": "image/png", "data": "aW1hZ2U="}, "thought": True, "speechMetadata": {"speaker": "Ann"}}
    (candidate,) = body["candidates"]
    whole = {**body, **said, "candidates": [{**candidate, "content": {"role": "model", "parts": [part]}}]}
    with GoogleServer(row_of("generateContent").script(whole)[1:]) as server:
        message = await RUNS[way](ChatGoogleGenerativeAI(model="any", base_url=server.url, api_key="key"))
    (block,) = [block for block in message.content if block["type"] == "image_url"]
    assert block["extras"] == {"thought": True, "speech_metadata": {"speaker": "Ann"}}
    assert message.response_metadata["model_status"] == {"model_stage": "STABLE"}


@WAYS
async def test_images_of_ollama_are_kept(way: str) -> None:
    """Images are content, of the run message too, and go back with it."""
    row = row_of("/api/chat")
    _, body, _ = REPLIES["/api/chat"]
    drawn = {**body, "message": {**body["message"], "images": ["aW1hZ2U="]}}
    with OllamaServer(row.script(drawn)) as server:
        run = await RUNS[way](ChatOllama(model="any", base_url=server.url, tools=[look_up]))
        assert server.requests[1]["messages"][1]["images"] == ["aW1hZ2U="]
        assert server.rejections == []
    for message in (run, *new_messages(run)[::2]):
        assert {block["base64"] for block in message.content_blocks if block["type"] == "image"} == {"aW1hZ2U="}


@pytest.mark.parametrize("way", ["invoke", "stream"])
async def test_keys_of_a_delta_that_nobody_knows_are_kept(way: str) -> None:
    """Of an object the last counts, and lists come together; a whole message has the same. Words are notes on the stream's progress."""
    deltas: list[Body] = [
        {"role": "assistant", "mood": "gl", "state": {"a": 1}, "places": [1]},
        {"content": "Hi.", "mood": "ad", "state": {"b": 2}, "places": [2]},
    ]
    head = {"id": "c1", "object": "chat.completion.chunk", "model": "m", "created": 1}
    events = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": SPENT})
    said = {"content": "Hi.", "role": "assistant", "state": {"b": 2}, "places": [1, 2]}
    whole = {**head, "object": "chat.completion", "choices": [{"index": 0, "message": said, "finish_reason": "stop"}], "usage": SPENT}
    with OpenAIServer([Events(events, whole)]) as server:
        message = await RUNS[way](ChatOpenAI(model="any", base_url=server.url, api_key="key"))
    kept = message.response_metadata
    assert (kept.get("mood"), kept["state"], kept["places"], message.text) == (None, {"b": 2}, [1, 2], "Hi.")


@pytest.mark.parametrize("way", ["invoke", "stream"])
@pytest.mark.parametrize(("word", "kind"), [("chat.completion", "function"), ("reply", "builtin_function")])
async def test_words_that_the_api_does_not_have_are_kept(word: str, kind: str, way: str) -> None:
    """What a reply and a call are is news only where it is another word than the API's. The call runs, and goes back as a function's."""
    call = {"id": "call_1", "type": kind, "function": {"name": "look_up", "arguments": '{"key":"a"}'}}
    head, said = {"id": "c1", "object": word, "model": "m", "created": 1}, {"role": "assistant", "content": None, "tool_calls": [call]}
    begun = {"index": 0, "delta": {**said, "tool_calls": [{**call, "index": 0}]}, "finish_reason": None}
    ends = [{**head, "choices": [begun]}, {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}]
    whole = {**head, "choices": [{"index": 0, "message": said, "finish_reason": "tool_calls"}]}
    with OpenAIServer([Events(ends, whole), Turn("Done.")]) as server:
        run = await RUNS[way](ChatOpenAI(model="any", base_url=server.url, api_key="key", tools=[look_up]))
        assert server.rejections == []
    first, result, _ = new_messages(run)
    assert result.content == "found a"
    kept = (first.response_metadata.get("object"), first.response_metadata[KEY]["calls"][0].get("extra"))
    assert kept == ((None, None) if kind == "function" else (word, {"type": kind}))


async def test_the_sum_of_the_chunks_is_the_whole_reply() -> None:
    """`invoke` and the sum of `stream` have the same metadata, on every wire (law 2)."""
    for name, (_, _, said) in REPLIES.items():
        told = [await conversation(name, way, said) for way in ("invoke", "stream")]
        first, second = ({key: value for key, value in run.response_metadata.items() if key != KEY} for run, _, _ in told)
        assert first == second, name
