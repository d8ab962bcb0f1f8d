"""What a caller may ask for on each wire: the parameters, tools and messages of the vendors' request types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import Any, get_args

from anthropic.types.beta import BetaContentBlock, BetaContentBlockParam, BetaTextBlockParam, BetaToolUnionParam
from anthropic.types.beta.beta_tool_result_block_param import Content as ResultContent
from anthropic.types.beta.message_create_params import MessageCreateParamsBase
from google.genai.types import FunctionResponsePart, GenerateContentConfig, Part, Tool
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from ollama import Message, Options
from ollama import Tool as OllamaTool
from ollama._types import ChatRequest
from openai.types.chat import (
    ChatCompletionAssistantMessageParam,
    ChatCompletionContentPartParam,
    ChatCompletionContentPartTextParam,
    ChatCompletionDeveloperMessageParam,
    ChatCompletionSystemMessageParam,
    ChatCompletionToolUnionParam,
    ChatCompletionUserMessageParam,
)
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses import (
    ResponseInputContentParam,
    ResponseInputItemParam,
    ResponseOutputItem,
    ResponseOutputMessageParam,
    ToolParam,
)
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from langchain_autotools import ChatAnthropic, ChatGoogleGenerativeAI, ChatOllama, ChatOpenAI
from langchain_autotools.providers.google.decode import snake
from tests.vendor_types.asking import Asked, Given
from tests.vendor_types.giving import fields_without, function, give_message, give_parameter, give_tool
from tests.vendor_types.replies import beta_message_saying, chat_saying, completion_saying, content_saying, response_saying
from tests.vendor_types.rows import ROWS
from tests.vendor_types.samples import Rules, fields_of, name_of

_WIRES = {row.name: row for row in ROWS}


def _members(union: Any) -> list[Any]:
    """The members of a union, of unions in it too."""
    args = get_args(get_args(union)[0]) if hasattr(union, "__metadata__") else get_args(union)
    return [inner for one in args for inner in (_members(one) if get_args(one) else [one])]


def _kinds(union: Any) -> set[str]:
    """The words that the members of a union give as their `type`."""
    return {str(word) for one in _members(union) for word in get_args(fields_of(one)["type"])}


def _of_kinds(union: Any, fits: Callable[[str], bool]) -> Any:
    """The union of those members whose `type` fits."""
    return reduce(or_, (one for one in _members(union) if any(map(fits, map(str, get_args(fields_of(one)["type"]))))))


_OUTPUTS = ("_output", "mcp_approval_response", "additional_tools", "compaction")
_ON_CLIENT = ("computer_call", "local_shell_call", "shell_call", "apply_patch_call")


def _response_parts() -> Mapping[str, Any]:
    said = _kinds(ResponseOutputItem)
    items = reduce(or_, (one for one in _members(ResponseInputItemParam) if "type" in fields_of(one) and name_of(one) != "message"))
    return {
        "user": ResponseInputContentParam,
        "result": ResponseInputContentParam,
        "system": ResponseInputContentParam,
        "item": _of_kinds(items, lambda kind: kind not in said or kind.endswith(_OUTPUTS)),
        "reply": ResponseOutputMessageParam | _of_kinds(items, lambda kind: kind in said),
    }


def _response_message(path: str, value: Any, in_constructor: bool) -> Given:
    if path == "reply" and value["type"] in _ON_CLIENT:  # which nobody but the caller answers
        return Given(
            said=[value], then=[HumanMessage([{"type": f"{value['type']}_output", "call_id": value["call_id"], "output": "done"}])]
        )
    if path != "item":
        return give_message(path, value, in_constructor)
    content = SystemMessage if value["type"] == "additional_tools" else HumanMessage
    return Given(history=[content([value]), *(["Hello"] if content is SystemMessage else [])], keywords={"previous_response_id": "resp_0"})


_BY_SERVER = {"server_tool_use": "web_search_tool_result", "mcp_tool_use": "mcp_tool_result"}


def _beta_block(path: str, value: Any, in_constructor: bool) -> Given:
    if path == "reply" and value["type"] in _BY_SERVER:  # which is left out where nothing answers it
        return Given(said=[value, {"type": _BY_SERVER[value["type"]], "tool_use_id": value["id"], "content": []}])
    if path == "assistant":
        return Given(history=["Hello", AIMessage([value]), "Go on"])
    if path == "user" and value["type"] == "tool_result":  # of a call of the same toolset
        call = {"type": "tool_use", "id": value.get("tool_use_id", "call_1"), "name": "look_up", "input": {}}
        return Given(history=["Hello", AIMessage([{**call, "toolset_name": value.get("toolset_name")}]), HumanMessage([value])])
    return give_message(path, value, in_constructor)


def _beta_parts() -> Mapping[str, Any]:
    said = _kinds(BetaContentBlock)
    return {
        "user": _of_kinds(BetaContentBlockParam, lambda kind: kind not in said or kind == "text"),
        "system": BetaTextBlockParam,
        "result": ResultContent,
        "assistant": BetaTextBlockParam,
        "reply": _of_kinds(BetaContentBlockParam, lambda kind: kind in said),
    }


def _chat_message(path: str, value: Any, in_constructor: bool) -> Given:
    if path == "reply":
        return give_message(path, value, in_constructor)
    pictures = [{"type": "image", "base64": picture, "mime_type": "image/png"} for picture in value["images"]]
    return Given(history=[HumanMessage([{"type": "text", "text": value["content"]}, *pictures])])


def _completion_parts() -> Mapping[str, Any]:
    return {
        "user": ChatCompletionContentPartParam,
        "result": ChatCompletionContentPartTextParam,
        "message": (
            ChatCompletionDeveloperMessageParam
            | ChatCompletionSystemMessageParam
            | ChatCompletionUserMessageParam
            | ChatCompletionAssistantMessageParam
        ),
        "reply": ChatCompletionAssistantMessageParam,
    }


_ASSISTANT = "message<ChatCompletionAssistantMessageParam>"
TWO_WAYS = ("invoke", "astream")
_PICTURE = "iVBORw0KGgo="
UNTITLED = {"type": "object", "properties": {"place": {"type": "string"}}}
_SCHEMA = {**UNTITLED, "title": "reply"}
_OF_MODELS = ("functionCall", "functionResponse", "executableCode", "codeExecutionResult", "toolCall", "toolResponse")
ASKED = (
    Asked(
        name="Chat completions: parameters",
        wire=_WIRES["Chat completions"],
        type=CompletionCreateParamsBase,
        members=fields_without(CompletionCreateParamsBase, "messages", "tools"),
        give=give_parameter(ChatOpenAI),
        places=("not", "messages", "tools"),
        reply=completion_saying,
        rules=Rules(only={"tool_choice<allowed_tools>.allowed_tools.tools[]": function("other")}),
        streamed=frozenset({"stream_options"}),
    ),
    Asked(
        name="Chat completions: tools",
        ways=TWO_WAYS,
        wire=_WIRES["Chat completions"],
        type=CompletionCreateParamsBase,
        members=lambda: {"tools": ChatCompletionToolUnionParam},
        give=give_tool,
        places=("tools",),
        reply=completion_saying,
        rules=Rules(only={"tools<function>.function.parameters": UNTITLED}),
    ),
    Asked(
        name="Chat completions: messages",
        ways=TWO_WAYS,
        wire=_WIRES["Chat completions"],
        type=CompletionCreateParamsBase,
        members=_completion_parts,
        give=give_message,
        places=("messages",),
        reply=completion_saying,
        rules=Rules(
            only={f"reply.{place}.arguments": '{"key":"there"}' for place in ("function_call", "tool_calls[]<function>.function")},
            absent=frozenset({"reply.name", "reply.content"}) | {f"{_ASSISTANT}.{key}" for key in ("audio", "function_call", "tool_calls")},
            one_of={
                "ChatCompletionAssistantMessageParam": frozenset(fields_of(ChatCompletionAssistantMessageParam)) - {"name", "role"},
                "FileFile": frozenset({"file_id", "file_data"}),
            },
        ),
    ),
    Asked(
        name="Responses: parameters",
        wire=_WIRES["Responses"],
        type=ResponseCreateParamsBase,
        members=fields_without(ResponseCreateParamsBase, "input", "tools"),
        give=give_parameter(ChatOpenAI),
        places=("not", "input", "tools"),
        reply=response_saying,
        rules=Rules(only={"tool_choice<allowed_tools>.tools[]": {"type": "function", "name": "other"}}),
        streamed=frozenset({"stream_options"}),
    ),
    Asked(
        name="Responses: tools",
        ways=TWO_WAYS,
        wire=_WIRES["Responses"],
        type=ResponseCreateParamsBase,
        members=lambda: {"tools": ToolParam},
        give=give_tool,
        places=("tools",),
        reply=response_saying,
        rules=Rules(only={"tools<function>.parameters": UNTITLED}),
    ),
    Asked(
        name="Responses: input",
        ways=TWO_WAYS,
        wire=_WIRES["Responses"],
        type=ResponseCreateParamsBase,
        members=_response_parts,
        give=_response_message,
        places=("input",),
        reply=response_saying,
        rules=Rules(only={"reply<function_call>.arguments": '{"key":"there"}'}),
    ),
    Asked(
        name="Messages: parameters",
        wire=_WIRES["Messages"],
        type=MessageCreateParamsBase,
        members=fields_without(MessageCreateParamsBase, "messages", "tools"),
        give=give_parameter(ChatAnthropic),
        places=("not", "messages", "tools"),
        reply=beta_message_saying,
    ),
    Asked(
        name="Messages: tools",
        ways=TWO_WAYS,
        wire=_WIRES["Messages"],
        type=MessageCreateParamsBase,
        members=lambda: {"tools": BetaToolUnionParam},
        give=give_tool,
        places=("tools",),
        reply=beta_message_saying,
        rules=Rules(only={"tools<custom>.input_schema": UNTITLED}),
    ),
    Asked(
        name="Messages: messages",
        ways=TWO_WAYS,
        wire=_WIRES["Messages"],
        type=MessageCreateParamsBase,
        members=_beta_parts,
        give=_beta_block,
        places=("messages", "system"),
        reply=beta_message_saying,
        rules=Rules(
            absent=frozenset({"reply<text>.cache_control"}),  # no reply has one: it is set in a history
            one_of={"BetaToolResultBlockParam": frozenset({"cache_control", "content"})},
        ),
    ),
    Asked(
        name="generateContent: parameters",
        wire=_WIRES["generateContent"],
        type=GenerateContentConfig,
        members=fields_without(GenerateContentConfig, "tools"),
        give=give_parameter(ChatGoogleGenerativeAI, name=snake),
        places=("not", "contents", "tools"),
        reply=content_saying,
        rules=Rules(
            only={"responseSchema": UNTITLED, "responseJsonSchema": UNTITLED, "responseModalities[]": "TEXT", "topK": 40},
        ),
    ),
    Asked(
        name="generateContent: tools",
        ways=TWO_WAYS,
        wire=_WIRES["generateContent"],
        type=GenerateContentConfig,
        members=lambda: {"tools": Tool},
        give=give_tool,
        places=("tools",),
        reply=content_saying,
        rules=Rules(
            only={f"tools.functionDeclarations[].{key}JsonSchema": _SCHEMA for key in ("parameters", "response")},
            one_of={"Tool": frozenset(fields_of(Tool)), "FunctionDeclaration": frozenset({"parameters", "parametersJsonSchema"})},
        ),
    ),
    Asked(
        name="generateContent: contents",
        ways=TWO_WAYS,
        wire=_WIRES["generateContent"],
        type=GenerateContentConfig,
        members=lambda: {"user": Part, "reply": Part, "result": FunctionResponsePart},
        give=give_message,
        places=("contents",),
        reply=content_saying,
        rules=Rules(
            only={"reply.functionCall.args": {"key": "there"}, "reply.functionCall.willContinue": False, "reply.thought": False},
            absent=frozenset({f"user.{name}" for name in _OF_MODELS} | {"reply.functionResponse", "reply.functionCall.partialArgs"}),
            one_of=_WIRES["generateContent"].rules.one_of,
        ),
    ),
    Asked(
        name="/api/chat: parameters",
        wire=_WIRES["/api/chat"],
        type=ChatRequest,
        members=lambda: {**fields_without(ChatRequest, "messages", "tools", "options", "stream")(), "options": Options},
        give=give_parameter(ChatOllama),
        places=("not", "messages", "tools"),
        reply=chat_saying,
    ),
    Asked(
        name="/api/chat: tools",
        ways=TWO_WAYS,
        wire=_WIRES["/api/chat"],
        type=ChatRequest,
        members=lambda: {"tools": OllamaTool},
        give=give_tool,
        places=("tools",),
        reply=chat_saying,
        rules=Rules(
            only={
                **{f"tools.function.parameters.{key}": UNTITLED for key in ("$defs", "items", "properties{}.items")},
                "tools.function.parameters.properties{}.type": "array",
            },
            absent=frozenset({"tools.type"}),
        ),
    ),
    Asked(
        name="/api/chat: messages",
        ways=TWO_WAYS,
        wire=_WIRES["/api/chat"],
        type=ChatRequest,
        members=lambda: {"user": Message, "reply": Message},
        give=_chat_message,
        places=("messages",),
        reply=chat_saying,
        rules=Rules(
            only={"user.images[]": _PICTURE, "reply.images[]": _PICTURE},
            absent=frozenset({"user.role", "reply.role", "user.thinking", "user.tool_name", "user.tool_calls", "reply.tool_name"}),
        ),
    ),
)
