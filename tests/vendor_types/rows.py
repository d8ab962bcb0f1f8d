"""The wires whose types the machine knows: what a whole reply is, and how the same reply is streamed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ollama
from anthropic.types.beta import BetaMessage
from google.genai.types import GenerateContentResponse
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response

from langchain_autotools import ChatAnthropic, ChatGoogleGenerativeAI, ChatOllama, ChatOpenAI
from tests.support.anthropic_server import AnthropicServer
from tests.support.google_server import GoogleServer
from tests.support.ollama_server import OllamaServer
from tests.support.openai_server import OpenAIServer
from tests.support.responses_server import ResponsesServer
from tests.support.script import Events
from tests.support.scripted_server import ScriptedServer
from tests.vendor_types.samples import Rules

Body = dict[str, Any]

WHOLE, STREAMED = ("invoke", "ainvoke"), ("stream", "astream")
CALL = {"name": "look_up", "arguments": {"key": "here"}}
"""The call that the first of two replies makes besides what it says."""


@dataclass(frozen=True)
class Row:
    """One type of reply.

    Attributes:
        name: Its name on the page.
        distribution: The package that defines it.
        type: The type.
        serve: A server of the wire.
        model: Our model and its arguments; `base_url` is the server's.
        partner: The module and class of LangChain's package.
        partner_arguments: The arguments of that class.
        events: The stream that brings a reply.
        with_call: A reply that makes a call too.
        ways: The ways in which it is read.
        rules: What its samples observe.
        apart: Top-level keys that end a turn otherwise, each sent by itself.
    """

    name: str
    distribution: str
    type: type[Any]
    serve: Callable[[], AbstractContextManager[ScriptedServer]]
    model: Callable[..., Any]
    arguments: Mapping[str, Any]
    partner: tuple[str, str]
    partner_arguments: Mapping[str, Any]
    events: Callable[[Body], list[Body]]
    with_call: Callable[[Body], Body]
    ways: tuple[str, ...] = (*WHOLE, *STREAMED)
    rules: Rules = field(default_factory=Rules)
    apart: frozenset[str] = frozenset()

    def script(self, body: Body) -> list[Events]:
        """The replies of a conversation: one that makes a call besides what it says, and one that makes none."""
        return [Events(self.events(one), one) for one in (self.with_call(body), body)]


# ---------------------------------------------------------------------------------------------- chat completions


def completion_with_call(body: Body) -> Body:
    """A reply, or a chunk with all of it, that makes a call too."""
    (choice,) = body["choices"]
    key = "delta" if "delta" in choice else "message"
    entry = {"id": "call_look", "type": "function", "function": {"name": CALL["name"], "arguments": '{"key":"here"}'}}
    before = [{**one, "index": place} if key == "delta" else one for place, one in enumerate(choice[key].get("tool_calls") or ())]
    said = {**choice[key], "tool_calls": [*before, {**entry, "index": len(before)} if key == "delta" else entry]}
    reason = "tool_calls" if choice["finish_reason"] == "stop" else choice["finish_reason"]
    return {**body, "choices": [{**choice, key: said, "finish_reason": reason}]}


def completion_events(body: Body) -> list[Body]:
    """A text in two chunks, each with everything that is said of the reply as a whole."""
    (choice,) = body["choices"]
    if "delta" not in choice:
        choice = {**{key: value for key, value in choice.items() if key != "message"}, "delta": choice["message"]}
        if choice["delta"].get("tool_calls"):
            calls = [{**call, "index": place} for place, call in enumerate(choice["delta"]["tool_calls"])]
            choice["delta"] = {**choice["delta"], "tool_calls": calls}
        body = {**body, "object": "chat.completion.chunk"}
    first, last = {**choice, "finish_reason": None}, {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    return [{**body, "choices": [one]} for one in (first, last)]


# ---------------------------------------------------------------------------------------------- Responses


def _response_with_call(body: Body) -> Body:
    item = {"type": "function_call", "id": "fc_look", "call_id": "call_look", "name": CALL["name"], "arguments": '{"key":"here"}'}
    return {**body, "id": f"{body['id']}-1", "output": [*body["output"], {**item, "status": "completed"}]}


def _response_events(body: Body) -> list[Body]:
    """The events that every reply has, and those that bring texts and arguments; the rest comes with whole items."""
    head = {**body, "output": [], "status": "in_progress", "usage": None}
    found: list[Body] = [{"type": "response.created", "response": head}, {"type": "response.in_progress", "response": head}]
    for place, item in enumerate(body["output"]):
        found.append({"type": "response.output_item.added", "output_index": place, "item": _unwritten(item)})
        found += [{**event, "output_index": place, "item_id": item.get("id")} for event in _written(item)]
        found.append({"type": "response.output_item.done", "output_index": place, "item": item})
    end = "incomplete" if body.get("status") == "incomplete" else "failed" if body.get("error") else "completed"
    found.append({"type": f"response.{end}", "response": body})
    return [{**event, "sequence_number": number} for number, event in enumerate(found)]


def _unwritten(item: Body) -> Body:
    """An item before anything of it is written."""
    empty = {"message": {"content": []}, "reasoning": {"summary": []}, "function_call": {"arguments": ""}}
    return {**item, **empty.get(item["type"], {})}


def _written(item: Body) -> Iterator[Body]:
    """The events that bring the texts of an item."""
    if item["type"] == "function_call":
        yield {"type": "response.function_call_arguments.delta", "delta": item["arguments"]}
    for key, head in (("summary", "reasoning_summary"), ("content", "content")):
        for place, part in enumerate(item.get(key) or () if item["type"] in ("message", "reasoning") else ()):
            at = {f"{key}_index": place}
            text = {name: "" for name in ("text", "refusal") if name in part}
            yield {"type": f"response.{head}_part.added", **at, "part": {**part, **text}}
            yield {"type": f"response.{_NAMES[part['type']]}.delta", **at, "delta": part.get("text") or part.get("refusal")}
            yield {"type": f"response.{head}_part.done", **at, "part": part}


_NAMES = {
    "output_text": "output_text",
    "refusal": "refusal",
    "summary_text": "reasoning_summary_text",
    "reasoning_text": "reasoning_text",
    "text": "reasoning_text",
}


# ---------------------------------------------------------------------------------------------- Messages


def _message_with_call(body: Body) -> Body:
    block = {"type": "tool_use", "id": "toolu_look", "name": CALL["name"], "input": CALL["arguments"]}
    reason = "tool_use" if body.get("stop_reason") == "end_turn" else body.get("stop_reason")
    return {**body, "id": f"{body['id']}-1", "content": [*body["content"], block], "stop_reason": reason}


_OF_BLOCKS = {
    "text": ("text", "text_delta"),
    "thinking": ("thinking", "thinking_delta"),
    "tool_use": ("input", "input_json_delta"),
}
_COMPACTED = ("content", "encrypted_content")
_AT_THE_END = ("stop_reason", "stop_sequence", "stop_details", "container")


def _message_events(body: Body) -> list[Body]:
    at_end = {key: value for key, value in body.items() if key in _AT_THE_END}
    beside = {key: value for key, value in body.items() if key == "context_management"}
    head = {key: value for key, value in body.items() if key not in (*at_end, *beside)}
    found: list[Body] = [{"type": "message_start", "message": {**head, "content": [], "stop_reason": None, "stop_sequence": None}}]
    for place, block in enumerate(body["content"]):
        found += [{**event, "index": place} for event in _block_events(block)]
    return [*found, {"type": "message_delta", "delta": at_end, "usage": body.get("usage"), **beside}, {"type": "message_stop"}]


def _block_events(block: Body) -> Iterator[Body]:
    kind = block["type"]
    key, delta = _OF_BLOCKS.get(kind, ("", ""))
    start = {**block, **({key: {} if key == "input" else ""} if key else {})}
    if kind == "thinking":
        start["signature"] = ""
    citations = start.pop("citations", None) or []
    compacted = {name: start.pop(name, None) for name in _COMPACTED} if kind == "compaction" else {}
    yield {"type": "content_block_start", "content_block": start}
    if key:
        piece = json.dumps(block[key]) if key == "input" else block[key]
        yield {"type": "content_block_delta", "delta": {"type": delta, "partial_json" if key == "input" else key: piece}}
    if compacted:
        yield {"type": "content_block_delta", "delta": {"type": "compaction_delta", **compacted}}
    for citation in citations:
        yield {"type": "content_block_delta", "delta": {"type": "citations_delta", "citation": citation}}
    if kind == "thinking":
        yield {"type": "content_block_delta", "delta": {"type": "signature_delta", "signature": block["signature"]}}
    yield {"type": "content_block_stop"}


# ---------------------------------------------------------------------------------------------- generateContent


_DATA_OF_PART = frozenset(
    {
        "text",
        "inlineData",
        "fileData",
        "functionCall",
        "functionResponse",
        "executableCode",
        "codeExecutionResult",
        "toolCall",
        "toolResponse",
    }
)


def _content_with_call(body: Body) -> Body:
    (candidate,) = body["candidates"]
    part = {"functionCall": {"name": CALL["name"], "args": CALL["arguments"], "id": "look"}}
    content = {**candidate["content"], "parts": [*candidate["content"]["parts"], part]}
    return {**body, "responseId": f"{body['responseId']}-1", "candidates": [{**candidate, "content": content}]}


def _content_events(body: Body) -> list[Body]:
    """The parts, then the end; both with everything that is said of the reply as a whole."""
    (candidate,) = body["candidates"]
    first = {key: value for key, value in candidate.items() if key != "finishReason"}
    last = {key: value for key, value in candidate.items() if key != "content"}
    return [{**body, "candidates": [one]} for one in (first, last)]


# ---------------------------------------------------------------------------------------------- /api/chat


def _chat_with_call(body: Body) -> Body:
    entry = {"id": "call_look", "function": {"index": 0, "name": CALL["name"], "arguments": CALL["arguments"]}}
    return {**body, "message": {**body["message"], "tool_calls": [*(body["message"].get("tool_calls") or ()), entry]}}


def _chat_events(body: Body) -> list[Body]:
    first = {key: body[key] for key in ("model", "created_at", "message", "logprobs") if key in body}
    rest = {key: value for key, value in body.items() if key != "logprobs"}
    return [{**first, "done": False}, {**rest, "message": {"role": "assistant", "content": ""}}]


def model_of(kind: type[Any], base_url: str, **more: Any) -> Any:
    """A model of a class that asks a server."""
    return kind(**{"model": "any", "base_url": base_url, **more})


KEYED = {"api_key": "key", "max_retries": 0}

ROWS = (
    Row(
        name="Chat completions",
        distribution="openai",
        type=ChatCompletion,
        serve=partial(OpenAIServer, rules=None),
        model=partial(model_of, ChatOpenAI, **KEYED, stream_usage=True),
        arguments={},
        partner=("langchain_openai", "ChatOpenAI"),
        partner_arguments={**KEYED, "stream_usage": True},
        events=completion_events,
        with_call=completion_with_call,
        ways=WHOLE,
        rules=Rules(only={"choices[].finish_reason": "stop", "choices[].index": 0}),
    ),
    Row(
        name="Chat completions, chunks",
        distribution="openai",
        type=ChatCompletionChunk,
        serve=partial(OpenAIServer, rules=None),
        model=partial(model_of, ChatOpenAI, **KEYED, stream_usage=True),
        arguments={},
        partner=("langchain_openai", "ChatOpenAI"),
        partner_arguments={**KEYED, "stream_usage": True},
        events=completion_events,
        with_call=completion_with_call,
        ways=STREAMED,
        rules=Rules(
            only={
                "choices[].finish_reason": "stop",
                "choices[].index": 0,
                "choices[].delta.role": "assistant",
                "choices[].delta.tool_calls[].index": 0,
            }
        ),
    ),
    Row(
        name="Responses",
        distribution="openai",
        type=Response,
        serve=partial(ResponsesServer, rules=None),
        model=partial(model_of, ChatOpenAI, **KEYED, stream_usage=True),
        arguments={"use_responses_api": True},
        partner=("langchain_openai", "ChatOpenAI"),
        partner_arguments={**KEYED, "use_responses_api": True},
        events=_response_events,
        with_call=_response_with_call,
        rules=Rules(only={"status": "completed"}),
        apart=frozenset({"error"}),
    ),
    Row(
        name="Messages",
        distribution="anthropic",
        type=BetaMessage,
        serve=partial(AnthropicServer, strict=False),
        model=partial(model_of, ChatAnthropic, **KEYED),
        arguments={},
        partner=("langchain_anthropic", "ChatAnthropic"),
        partner_arguments={**KEYED, "betas": ["context-management-2025-06-27"]},
        events=_message_events,
        with_call=_message_with_call,
        rules=Rules(only={"stop_reason": "end_turn"}),
    ),
    Row(
        name="generateContent",
        distribution="google-genai",
        type=GenerateContentResponse,
        serve=partial(GoogleServer, strict=False),
        model=partial(model_of, ChatGoogleGenerativeAI, **KEYED),
        arguments={},
        partner=("langchain_google_genai", "ChatGoogleGenerativeAI"),
        partner_arguments=KEYED,
        events=_content_events,
        with_call=_content_with_call,
        rules=Rules(
            only={
                "candidates[].finishReason": "STOP",
                "candidates[].content.role": "model",
                "candidates[].index": 0,
                "candidates[].content.parts[].functionCall.willContinue": False,
                "candidates[].content.parts[].functionCall.partialArgs[].willContinue": False,
                "candidates[].content.parts[].functionCall.partialArgs[].jsonPath": "$.place",
            },
            absent=frozenset({"sdkHttpResponse", "automaticFunctionCallingHistory", "parsed"}),
            one_of={
                "Part": _DATA_OF_PART,
                "FunctionCall": frozenset({"args", "partialArgs"}),
                "PartialArg": frozenset({"boolValue", "nullValue", "numberValue", "stringValue"}),
            },
        ),
    ),
    Row(
        name="/api/chat",
        distribution="ollama",
        type=ollama.ChatResponse,
        serve=partial(OllamaServer, strict=False),
        model=partial(model_of, ChatOllama, max_retries=0),
        arguments={},
        partner=("langchain_ollama", "ChatOllama"),
        partner_arguments={},
        events=_chat_events,
        with_call=_chat_with_call,
        rules=Rules(
            only={"done": True, "done_reason": "stop", "message.role": "assistant", "message.images[]": "aW1hZ2U="},
            one_of={"Message": frozenset({"content", "images"})},
        ),
    ),
)
