"""Refuses what Anthropic's Messages API refuses, with its words (from its documentation and from reports of its errors)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from tests.support.strict import Rejection
from tests.support.strict_schema import check_schema, is_recursive, walk

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_TOOLSET = re.compile(r"(?:computer|browser)_toolset_\d+")
_REQUEST = {
    *("model", "max_tokens", "messages", "system", "tools", "tool_choice", "stream", "temperature", "top_k", "top_p", "metadata"),
    *("stop_sequences", "thinking", "output_config", "mcp_servers", "context_management", "container", "service_tier", "cache_control"),
    *("inference_geo",),
}
_TOOL = {
    *("type", "name", "description", "input_schema", "cache_control", "strict", "defer_loading", "eager_input_streaming"),
    *("input_examples", "allowed_callers"),
}
_KEYS = {
    "text": {"text", "citations"},
    "image": {"source"},
    "document": {"source", "title", "context", "citations"},
    "tool_use": {"id", "name", "input", "caller", "toolset_name"},
    "tool_result": {"tool_use_id", "content", "is_error", "toolset_name"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
    "search_result": {"source", "title", "content", "citations"},
    "server_tool_use": {"id", "name", "input", "caller"},
    **{f"{tool}_tool_result": {"tool_use_id", "content", "caller"} for tool in ("web_search", "web_fetch", "code_execution")},
}
THOUGHTS = {"thinking", "redacted_thinking"}
_EXPECTED = "Expected `thinking` or `redacted_thinking`"
_PRECEDES = (
    "When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` "
    "and `tool_result` blocks)."
)
_WRITTEN = {*THOUGHTS, "server_tool_use"}
_OF_ASSISTANT = {"text", "tool_use", *_WRITTEN, *(kind for kind in _KEYS if kind.endswith("_tool_result"))}
_OF_USER = {"text", "image", "document", "tool_result", "search_result"}
_OF_RESULT = {"text", "image", "document", "search_result"}
_BOUNDS = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems", "uniqueItems"}
_NO_KEYS = {
    *("oneOf", "not", "if", "then", "else", "prefixItems", "patternProperties", "propertyNames", "contains", "dependentRequired"),
    *("dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "minProperties", "maxProperties"),
}
_TYPED = {"type", "anyOf", "allOf", "enum", "const", "$ref"}
_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
_SOURCES = {"base64": {"media_type", "data"}, "url": {"url"}, "file": {"file_id"}, "text": {"media_type", "data"}, "content": {"content"}}
_IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}


Written = Collection[str] | None
"""What `opaque` says of all blocks that a server wrote and knows again; None: it takes any."""


def opaque(block: Mapping[str, Any]) -> str | None:
    """What of a block the vendor has signed, so that it must come back unchanged; None of any other block."""
    if block["type"] not in _WRITTEN and not block["type"].endswith("_tool_result"):
        return None
    return json.dumps({key: value for key, value in block.items() if key != "cache_control"}, sort_keys=True)


def check_request(body: bytes, signed: Written = None) -> dict[str, Any]:
    """The parsed body, or the vendor's `Rejection`.

    Args:
        body: The request's JSON.
        signed: What the server wrote and signed, see `opaque`; None takes any signature.
    """
    try:
        request = json.loads(body)
    except ValueError:
        raise Rejection("The request body is not valid JSON") from None
    need(isinstance(request, dict), "The request body is not valid JSON")
    for key in ("model", "max_tokens", "messages"):
        need(key in request, f"{key}: Field required")
    known(request, _REQUEST, "")
    need(isinstance(request["max_tokens"], int) and request["max_tokens"] >= 1, "max_tokens: Input should be greater than or equal to 1")
    need(0 <= request.get("temperature", 1) <= 1, "temperature: range: 0..1")
    for position, stop in enumerate(request.get("stop_sequences", ())):
        need(bool(stop.strip()), f"stop_sequences.{position}: each stop sequence must contain non-whitespace")
    _check_tools(request)
    _check_format(request)
    _check_thinking(request)
    for block in request.get("system", ()) if isinstance(request.get("system"), list) else ():
        _check_block(block, "system.0", {"text"}, signed)
    _check_messages(request["messages"], signed)
    _check_order_of_thinking(request)
    need(body.count(b'"cache_control"') <= 4, "A maximum of 4 blocks with cache_control may be provided.")
    return request  # type: ignore[no-any-return]


def need(holds: bool, message: str) -> None:
    """Refuse with this message unless it holds."""
    if not holds:
        raise Rejection(message)


def known(value: Mapping[str, Any], keys: Collection[str], where: str) -> None:
    """No key but these."""
    for key in value:
        need(key in keys, f"{where + '.' if where else ''}{key}: Extra inputs are not permitted")


def _check_tools(request: Mapping[str, Any]) -> None:
    names = set()
    for position, tool in enumerate(request.get("tools", ())):
        where = f"tools.{position}"
        if tool.get("type", "custom") == "custom":
            known(tool, _TOOL, f"{where}.custom")
            schema = tool.get("input_schema")
            need(isinstance(schema, dict), f"{where}.custom.input_schema: Input does not match the expected shape.")
            need(schema.get("type") == "object", f"{where}.custom.input_schema.type: Field required")
            check_schema({"properties": {}, **schema}, False, partial(_no_schema, where), ())
            _check_strict(tool, where)
            combined = {"anyOf", "oneOf", "allOf"} & schema.keys()
            need(not combined, f"{where}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level")
        if _TOOLSET.fullmatch(tool.get("type", "")):
            known(tool, {"type", "configs", "cache_control"}, where)
            continue
        need(bool(_NAME.fullmatch(tool.get("name", ""))), f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        need(tool["name"] not in names, "tools: Tool names must be unique.")
        names.add(tool["name"])
    choice = request.get("tool_choice")
    if choice is None:
        return
    need(bool(request.get("tools")), "tool_choice: may only be specified while providing tools")
    kind = choice.get("type")
    need(kind in {"auto", "any", "tool", "none"}, "tool_choice: Input tag does not match any of the expected tags")
    allowed = {"type"} | ({"name"} if kind == "tool" else set()) | (set() if kind == "none" else {"disable_parallel_tool_use"})
    known(choice, allowed, f"tool_choice.{kind}")
    need(kind != "tool" or choice.get("name") in names, f"Tool '{choice.get('name')}' not found in provided tools")


def _no_schema(where: str, reason: str) -> Rejection:
    return Rejection(f"{where}.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12. {reason}")


def _check_format(request: Mapping[str, Any]) -> None:
    form = (request.get("output_config") or {}).get("format")
    if form is not None:
        known(form, {"type", "schema"}, "output_config.format")
        need(form.get("type") == "json_schema" and isinstance(form.get("schema"), dict), "output_config.format.schema: Field required")
        _check_closed(form["schema"], "output_config.format.schema")


def _check_closed(schema: Mapping[str, Any], where: str) -> None:
    """What constrained output asks of a schema: https://platform.claude.com/docs/en/build-with-claude/structured-outputs, "JSON Schema
    limitations"."""
    need(not is_recursive(schema), f"{where}.custom: Recursive schemas are not supported")
    for place, part in walk(schema, ()):
        need(isinstance(part, dict), f"{where}.custom: schema must be an object ({place})")
        barred = sorted(_NO_KEYS & part.keys())
        need(not barred, f"{where}.custom: {barred} are not supported ({place})")
        need(not place or bool(part.keys() & _TYPED), f"{where}.custom: a schema must have a type ({place})")
        values = [*(part.get("enum") or ()), part.get("const")]
        need(not any(isinstance(value, list | dict) for value in values), f"{where}.custom: complex types in enums are not supported")
        need(part.get("minItems", 0) in (0, 1), f"{where}.custom: minItems may be 0 or 1 ({place})")
        need(part.get("format", "date") in _FORMATS, f"{where}.custom: format {part.get('format')!r} is not supported ({place})")
        need(not re.search(r"\(\?[=!<]|\\[bB1-9]", part.get("pattern", "")), f"{where}.custom: the pattern is not supported ({place})")
        need(not any("$ref" in inner for inner in part.get("allOf", ())), f"{where}.custom: allOf with $ref is not supported ({place})")
    _check_bounds(schema, where)


def _check_strict(tool: Mapping[str, Any], where: str) -> None:
    if tool.get("strict"):
        _check_closed(tool["input_schema"], where)


def _check_bounds(schema: Mapping[str, Any], where: str) -> None:
    for place, part in walk(schema, ()):
        closed = part.get("additionalProperties") is False or not (part.get("type") == "object" or "properties" in part)
        need(closed, f"{where}.custom: For 'object' type, 'additionalProperties' must be explicitly set to false ({place})")
        bounds = _BOUNDS & part.keys()
        need(not bounds, f"{where}.custom: For '{part.get('type')}' type, properties {sorted(bounds)} are not supported")


def _check_thinking(request: Mapping[str, Any]) -> None:
    thinking = request.get("thinking")
    if thinking is None or thinking["type"] == "disabled":
        return
    forced = request.get("tool_choice", {}).get("type") in {"any", "tool"}
    need(not forced, "Thinking may not be enabled when tool_choice forces tool use.")
    need(request.get("temperature", 1) == 1, "`temperature` may only be set to 1 when thinking is enabled.")
    if thinking["type"] == "enabled":
        need(thinking.get("budget_tokens", 0) >= 1024, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        need(request["max_tokens"] > thinking["budget_tokens"], "`max_tokens` must be greater than `thinking.budget_tokens`.")


def _check_order_of_thinking(request: Mapping[str, Any]) -> None:
    """Thinking comes first in a message that has any; with `enabled` a tool loop that is still open begins with it."""
    kinds = [[block["type"] for block in _blocks(message, "", last=False)] for message in request["messages"]]
    for number, found in enumerate(kinds):
        thinks = request["messages"][number]["role"] == "assistant" and THOUGHTS & {*found}
        need(not thinks or found[0] in THOUGHTS, f"messages.{number}.content.0.type: {_EXPECTED}, but found `{found[0]}`.")
    asked = max((number for number, found in enumerate(kinds) if _is_asked(request["messages"][number], found)), default=-1)
    if (request.get("thinking") or {}).get("type") == "enabled" and asked + 1 < len(kinds) - 1:
        first = kinds[asked + 1][0]
        need(first in THOUGHTS, f"messages.{asked + 1}.content.0.type: {_EXPECTED}, but found `{first}`. {_PRECEDES}")


def _is_asked(message: Mapping[str, Any], kinds: Sequence[str]) -> bool:
    """Whether a message is the user's own, and not results alone."""
    return message["role"] == "user" and {*kinds} != {"tool_result"}


# ---------------------------------------------------------------------------------------------- messages


def _check_messages(messages: Any, signed: Written) -> None:
    need(isinstance(messages, list) and bool(messages), "messages: at least one message is required")
    need(messages[0].get("role") == "user", 'messages: first message must use the "user" role')
    waiting: dict[str, str | None] = {}
    used: set[str] = set()
    for position, message in enumerate(messages):
        where = f"messages.{position}"
        known(message, {"role", "content"}, where)
        need(message.get("role") in {"user", "assistant"}, f"{where}.role: Input should be 'user' or 'assistant'")
        blocks = _blocks(message, where, last=position == len(messages) - 1)
        of_user = message["role"] == "user"
        for number, block in enumerate(blocks):
            _check_block(block, f"{where}.content.{number}", _OF_USER if of_user else _OF_ASSISTANT, signed)
        if of_user:
            _check_results(blocks, waiting, where)
            waiting = {}
        else:
            need(not waiting, _unanswered(where, waiting))
            calls = [block for block in blocks if block["type"] == "tool_use"]
            waiting = {block["id"]: block.get("toolset_name") for block in calls}
            need(len(waiting) == len(calls) and used.isdisjoint(waiting), f"{where}: `tool_use` ids must be unique")
            used.update(waiting)
    need(not waiting, _unanswered(f"messages.{len(messages) - 1}", waiting))
    _check_server_tools(messages)


def _check_server_tools(messages: Sequence[Mapping[str, Any]]) -> None:
    """What a tool of the server's own was asked has its result, unless the conversation ends there: then the server goes on.

    Code that calls the client's tools waits for them over many messages.
    """
    contents = [content if isinstance(content := message["content"], list) else [{"type": "text"}] for message in messages]
    answered = {block.get("tool_use_id") for content in contents for block in content}
    answered |= {(block.get("caller") or {}).get("tool_id") for content in contents for block in content}
    end = max(number for number, content in enumerate(contents) if any(block["type"] != "tool_result" for block in content))
    for number, content in enumerate(contents[:end]):
        for block in content:
            if block["type"] == "server_tool_use" and block["id"] not in answered:
                kind = f"`{block['name']}` tool use with id `{block['id']}`"
                raise Rejection(f"messages.{number}: {kind} was found without a corresponding `{block['name']}_tool_result` block")


def _unanswered(where: str, waiting: Collection[str]) -> str:
    text = "`tool_use` ids were found without `tool_result` blocks immediately after"
    return (
        f"{where}: {text}: {', '.join(waiting)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )


def _blocks(message: Mapping[str, Any], where: str, *, last: bool) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    need(isinstance(content, list) and bool(content), f"{where}: all messages must have non-empty content")
    if last and message["role"] == "assistant" and content[-1]["type"] == "text":
        text = content[-1]["text"]
        need(text == text.rstrip(), "messages: final assistant content cannot end with trailing whitespace")
    return content  # type: ignore[no-any-return]


def _check_results(blocks: Sequence[Mapping[str, Any]], waiting: Mapping[str, str | None], where: str) -> None:
    kinds = [block["type"] == "tool_result" for block in blocks]
    need(kinds == sorted(kinds, reverse=True), f"{where}: `tool_result` blocks must come before all other content")
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    for identifier in answered:
        need(identifier in waiting, f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {identifier}.")
    for block in blocks:
        repeated = block["type"] != "tool_result" or block.get("toolset_name") == waiting[block["tool_use_id"]]
        need(repeated, f"{where}: `toolset_name` of a `tool_result` must match that of its `tool_use`")
    need(len({*answered}) == len(answered), f"{where}: each tool_use must have a single result")
    missing = [identifier for identifier in waiting if identifier not in answered]
    need(not missing, _unanswered(where, missing))


def _check_block(block: Any, where: str, kinds: Collection[str], signed: Written) -> None:
    kind = block.get("type")
    need(kind in kinds, f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {sorted(kinds)}")
    known(block, {"type", "cache_control", *_KEYS[kind]}, f"{where}.{kind}")
    if kind == "text":
        need(bool(block["text"]), "messages: text content blocks must be non-empty")
        need(bool(block["text"].strip()), "messages: text content blocks must contain non-whitespace text")
    elif kind in {"image", "document"}:
        _check_source(block["source"], kind, f"{where}.{kind}.source")
    elif kind == "thinking":
        need(bool(block.get("signature")), f"{where}.thinking.signature: Field required")
    elif kind == "tool_use":
        need(bool(_ID.fullmatch(block["id"])), f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        need(bool(_NAME.fullmatch(block["name"])), f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        need(isinstance(block["input"], dict), f"{where}.tool_use.input: Input should be a valid dictionary")
    elif kind == "tool_result":
        _check_result(block, where, signed)
    if signed is not None and (said := opaque(block)) is not None and kind != "tool_result":
        need(said in signed, f"{where}: Invalid `signature` in `{kind}` block")


def _check_result(block: Mapping[str, Any], where: str, signed: Written) -> None:
    content = block.get("content", "")
    need(bool(content) or not block.get("is_error"), f"{where}: content cannot be empty if `is_error` is true")
    for number, inner in enumerate(content if isinstance(content, list) else ()):
        # https://github.com/vellum-ai/vellum-assistant/pull/18387
        need(inner["type"] == "text" or not block.get("is_error"), f"{where}: all content must be type `text` if `is_error` is true")
        _check_block(inner, f"{where}.tool_result.content.{number}", _OF_RESULT, signed)


def _check_source(source: Mapping[str, Any], kind: str, where: str) -> None:
    need(source.get("type") in _SOURCES, f"{where}: Input tag '{source.get('type')}' does not match any of the expected tags")
    known(source, {"type", *_SOURCES[source["type"]]}, where)
    if source["type"] == "base64":
        allowed = _IMAGES if kind == "image" else {"application/pdf"}
        need(source["media_type"] in allowed, f"{where}.base64.media_type: Input should be {' or '.join(sorted(allowed))}")
        need(bool(re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", source["data"])), f"{where}.base64.data: invalid base64 data")
