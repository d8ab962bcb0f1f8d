"""What the vendors with a preset refuse and send otherwise than OpenAI, as a table for `VendorServer` (vendor_server.py).

Facts: wire quirks A-12, A-23, B-03, E-07, E-12, H-05, H-09, R-01 to R-04, the vendors' documentation and reports of their errors.
A vendor's `translate` refuses what the vendor refuses, and gives what is left in OpenAI's words, which OpenAI's rules then check.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_autotools import ChatCohere, ChatDeepSeek, ChatFireworks, ChatGroq, ChatMistralAI, ChatOpenRouter, ChatTogether, ChatXAI
from tests.support.strict import Rejection, Rules

Body = dict[str, Any]
Sent = Mapping[tuple[int, tuple[str, ...]], str]
"""The reasoning that a server has sent, by its message's place in the conversation and the names of the calls it sent with it. (Ids do
not tell: where another server has used the same ones before, a request has others.)"""

_JSON_FORMATS = {"json_object", "json_schema"}
_AFTER_ASSISTANT = {"assistant", "user", "tool"}
_AFTER_TOOL = {"assistant", "tool"}


@dataclass(frozen=True)
class Vendor:
    """One vendor.

    Attributes:
        name: Its name, as `model_provider` says it.
        chat_model: The provider class.
        key: The environment variable of its key.
        rules: What it accepts besides what OpenAI does.
        translate: Refuses a request, or gives it in OpenAI's words. It is told what reasoning the server has sent.
        delta: A delta or message as this vendor sends it, of one as OpenAI does.
        call_id: The id of a call, by the request's number and the call's position.
        style: How the calls of a stream are cut (wire_styles.py).
        shape: The form of its errors: `error` (OpenAI's), `flat`, `detail` or `coded`.
        json: Whether JSON output may be beside tools.
        developer: Whether messages may have the role `developer`.
    """

    name: str
    chat_model: type[Any]
    key: str
    rules: Rules = Rules()  # noqa: RUF009 - frozen
    translate: Callable[[Body, Sent], Body] = field(default=lambda body, sent: body)
    delta: Callable[[Body], Body] = field(default=lambda delta: delta)
    call_id: Callable[[int, int], str] = field(default=lambda number, position: f"call_{number:04d}{position:02d}")
    style: str = "standard"
    shape: str = "error"
    json: bool = True
    developer: bool = False

    @property
    def has_schemas(self) -> bool:
        """Whether JSON output can be held to a schema beside tools."""
        preset = getattr(self.chat_model, "preset", None)
        return self.json and (preset is None or "json_schema" in preset.methods)


def _unknown(body: Mapping[str, Any], *names: str, status: int = 400) -> None:
    """Refuse parameters."""
    for name in names:
        if name in body:
            raise Rejection(f"unknown field: parameter '{name}' is not a valid field", name, status=status)


def _renamed(body: Body, names: Mapping[str, str]) -> Body:
    return {names.get(name, name): value for name, value in body.items()}


def _own(body: Body, sent: Sent) -> Iterator[tuple[Body, str]]:
    """The messages that this server has sent with calls and reasoning, and the reasoning."""
    for place, message in enumerate(body["messages"]):
        told = sent.get((place, tuple(call["function"]["name"] for call in message.get("tool_calls") or ())))
        if told:
            yield message, told


# ---------------------------------------------------------------------------------------------- Cohere


def _cohere(body: Body, sent: Sent) -> Body:
    _unknown(body, "max_completion_tokens", "parallel_tool_calls", "logit_bias", "top_logprobs", "store", "service_tier", status=422)
    for tool in body.get("tools") or ():
        _unknown(tool["function"], "strict", status=422)
    if not isinstance(body.get("tool_choice", "none"), str) or body.get("tool_choice") == "auto":
        raise Rejection("invalid tool_choice: it must be one of REQUIRED and NONE", "tool_choice", status=422)
    return body


def _null_arguments(delta: Body) -> Body:
    """A call without arguments as Cohere writes it."""
    for call in delta.get("tool_calls") or ():
        if call["function"].get("arguments") == "{}":
            call["function"]["arguments"] = "null"
    return delta


# ---------------------------------------------------------------------------------------------- Mistral


def _mistral(body: Body, sent: Sent) -> Body:
    _unknown(body, "max_completion_tokens", "seed", "stream_options", "logit_bias", status=422)
    _check_order(body["messages"])
    for message in body["messages"]:
        _unknown(message, "name", status=422)
        for identifier in [message.get("tool_call_id"), *(call["id"] for call in message.get("tool_calls") or ())]:
            if identifier is not None and not re.fullmatch("[a-zA-Z0-9]{9}", identifier):
                text = f"Tool call id was {identifier} but must be a-z, A-Z, 0-9, with a length of 9."
                raise Rejection(text, code="3280")
    if isinstance(body.get("safe_prompt", False), bool):
        body = {name: value for name, value in body.items() if name != "safe_prompt"}
    body = _renamed(body, {"random_seed": "seed"})
    choice = {"tool_choice": "required"} if body.get("tool_choice") == "any" else {}
    told = {"stream_options": {"include_usage": True}} if body.get("stream") else {}  # it tells the usage unasked
    return {**body, **choice, **told, "messages": [_without_own_media(_without_thinking(message)) for message in body["messages"]]}


def _without_own_media(message: Body) -> Body:
    """Sound is base64 alone (https://docs.mistral.ai/studio/audio/speech_to_text/offline_transcription.md), a document has an address."""
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if part["type"] == "input_audio" and not isinstance(part["input_audio"], str):
            raise Rejection("input_audio: Input should be a valid string", status=422)
        if part["type"] == "file" and "file_id" not in part:
            raise Rejection("file_id: Field required", status=422)
    if not isinstance(content, list):
        return message
    own = ("input_audio", "document_url")
    return {**message, "content": [{"type": "text", "text": "media"} if part["type"] in own else part for part in content]}


def _check_order(messages: list[Body]) -> None:
    """As the vendor's published validator has it."""
    roles = [message["role"] for message in messages]
    for before, role in itertools.pairwise(roles):
        allowed = _AFTER_TOOL if before == "tool" else _AFTER_ASSISTANT if before == "assistant" else None
        if allowed is not None and role not in allowed:
            raise Rejection(f"Unexpected role '{role}' after role '{before}'", code="3230")
    if roles[-1] not in ("user", "tool") and not messages[-1].get("prefix"):
        raise Rejection(f"Expected last role User or Tool (or Assistant with prefix True) for serving but got {roles[-1]}", code="3230")


def _without_thinking(message: Body) -> Body:
    content = message.get("content")
    if message["role"] != "assistant" or not isinstance(content, list):
        return message
    for part in content:
        if part["type"] == "thinking" and not all(inner["type"] == "text" for inner in part["thinking"]):
            raise Rejection("invalid thinking", "messages", status=422)
    texts = [part["text"] for part in content if part["type"] == "text"]
    return {**message, "content": "".join(texts)}


def _content_list(delta: Body) -> Body:
    """Reasoning as parts of the content."""
    if thought := delta.pop("reasoning_content", None):
        parts: list[Body] = [{"type": "thinking", "thinking": [{"type": "text", "text": thought}]}]
        delta["content"] = parts + ([{"type": "text", "text": delta["content"]}] if delta.get("content") else [])
    return delta


# ---------------------------------------------------------------------------------------------- Groq


def _groq(body: Body, sent: Sent) -> Body:
    _unknown(body, "logit_bias", "logprobs", "top_logprobs")
    own = {id(message): told for message, told in _own(body, sent)}
    for message in body["messages"]:
        for key in ("name", "reasoning_content", "reasoning_details"):
            if key in message:
                raise Rejection(f"property '{key}' is unsupported", f"messages.{key}")
        if message.get("reasoning") != own.get(id(message)):
            raise Rejection("reasoning is not supported with this model", "messages.reasoning")
    if (body.get("response_format") or {}).get("type") in _JSON_FORMATS:
        if body.get("tools"):
            raise Rejection("json mode cannot be combined with tool/function calling", "response_format")
        if body.get("stream"):
            raise Rejection("response_format does not support streaming", "response_format")
    return {name: value for name, value in body.items() if name != "reasoning_format"}


def _reasoning(delta: Body) -> Body:
    if "reasoning_content" in delta:
        delta["reasoning"] = delta.pop("reasoning_content")
    return delta


# ---------------------------------------------------------------------------------------------- OpenRouter


def _openrouter(body: Body, sent: Sent) -> Body:
    for message, told in _own(body, sent):
        details = message.get("reasoning_details") or []
        if "".join(one["text"] for one in details) != told or {one.get("signature") for one in details} != {"signed"}:
            raise Rejection("Provider returned error: the reasoning_details of the tool calls must not be changed", "messages")
    extra = ("provider", "plugins", "route", "session_id", "trace", "reasoning")
    if "image" in body.get("modalities", ()):  # https://openrouter.ai/docs/features/multimodal/image-generation
        extra = (*extra, "modalities")
    body = {name: value for name, value in body.items() if name not in extra}
    return {**body, "messages": [_without_media_of_openrouter(message) for message in body["messages"]]}


def _without_media_of_openrouter(message: Body) -> Body:
    """Videos, PDFs by URL and more formats of sound (https://openrouter.ai/docs/features/multimodal/overview)."""
    content = message.get("content")
    if not isinstance(content, list) or message["role"] != "user":
        return message
    sounds = {"aac", "aiff", "flac", "ogg", "m4a"}
    own = [
        part["type"] == "video_url"
        or (part["type"] == "input_audio" and part["input_audio"]["format"] in sounds)
        or (part["type"] == "file" and part["file"].get("file_data", "").startswith("https://"))
        for part in content
    ]
    return {
        **message,
        "content": [{"type": "text", "text": "media"} if is_own else part for is_own, part in zip(own, content, strict=True)],
    }


def _details(delta: Body) -> Body:
    if thought := delta.pop("reasoning_content", None):
        delta["reasoning"] = thought
        delta["reasoning_details"] = [{"type": "reasoning.text", "text": thought, "format": "some-v1", "index": 0, "signature": "signed"}]
    return delta


# ---------------------------------------------------------------------------------------------- DeepSeek and xAI


def _deepseek(body: Body, sent: Sent) -> Body:
    for position, message in enumerate(body["messages"]):
        if message.get("tool_calls") and not isinstance(message.get("reasoning_content"), str):
            raise Rejection(f"Missing `reasoning_content` field in the assistant message at message index {position}.", "messages")
    for message, told in _own(body, sent):
        if message["reasoning_content"] != told:
            raise Rejection("The `reasoning_content` in the thinking mode must be passed back to the API.", "messages")
    if (body.get("response_format") or {}).get("type") == "json_schema":
        raise Rejection("This response_format type is unavailable now", "response_format")
    return {name: value for name, value in body.items() if name != "thinking"}


def _xai(body: Body, sent: Sent) -> Body:
    if "stop" in body and str(body["model"]).startswith("grok-4"):
        raise Rejection("Model does not support parameter stop.", "stop")
    return body


VENDORS = (
    Vendor(
        "cohere",
        ChatCohere,
        "COHERE_API_KEY",
        translate=_cohere,
        delta=_null_arguments,
        call_id=lambda number, position: f"tool_call_{number}",
        style="whole",
        shape="flat",
    ),
    Vendor(
        "mistralai",
        ChatMistralAI,
        "MISTRAL_API_KEY",
        rules=Rules(request_keys={"top_k"}, message_keys={"prefix"}),
        translate=_mistral,
        delta=_content_list,
        call_id=lambda number, position: f"a{number:06d}{position:02d}",
        style="no_index",
        shape="flat",
    ),
    Vendor(
        "groq",
        ChatGroq,
        "GROQ_API_KEY",
        rules=Rules(message_keys={"reasoning"}),
        translate=_groq,
        delta=_reasoning,
        style="whole",
        json=False,
        developer=True,
    ),
    Vendor(
        "openrouter",
        ChatOpenRouter,
        "OPENROUTER_API_KEY",
        rules=Rules(request_keys={"top_k"}, message_keys={"reasoning", "reasoning_details"}),
        translate=_openrouter,
        delta=_details,
    ),
    Vendor(
        "together", ChatTogether, "TOGETHER_API_KEY", rules=Rules(request_keys={"top_k"}, message_keys={"reasoning_content"}), style="whole"
    ),
    Vendor(
        "fireworks",
        ChatFireworks,
        "FIREWORKS_API_KEY",
        rules=Rules(request_keys={"top_k"}, message_keys={"reasoning_content"}),
        style="id_and_name_repeated",
    ),
    Vendor("deepseek", ChatDeepSeek, "DEEPSEEK_API_KEY", rules=Rules(message_keys={"reasoning_content"}), translate=_deepseek),
    Vendor(
        "xai",
        ChatXAI,
        "XAI_API_KEY",
        rules=Rules(message_keys={"reasoning_content"}),
        translate=_xai,
        style="whole",
        shape="coded",
    ),
)
