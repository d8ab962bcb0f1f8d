"""Refuses what OpenAI's Responses API refuses, with its status and its words (from its documentation and from reports of its errors)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.support.strict import (
    Rejection,
    Rules,
    array,
    boolean,
    known_keys,
    mapping,
    missing,
    name,
    need,
    not_one_of,
    number,
    one_of,
    string,
    wrong_type,
)
from tests.support.strict_pairing import check_pairing
from tests.support.strict_schema import check_schema

Item = Mapping[str, Any]

_DATA = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,[A-Za-z0-9+/]+={0,2}")
_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
_KEYS = {
    "reasoning": {"type", "id", "summary", "content", "encrypted_content"},
    "function_call": {"type", "id", "call_id", "name", "arguments", "namespace", "status", "caller"},
    "custom_tool_call": {"type", "id", "call_id", "name", "input", "namespace", "status"},
    "function_call_output": {"type", "id", "call_id", "output", "status", "caller"},
    "custom_tool_call_output": {"type", "id", "call_id", "output", "status"},
}
_HOSTED = (
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
    "compaction",
)
_CHANGES = ("additional_tools", "configuration_update")
_ANSWERS = (
    "mcp_approval_request",
    "mcp_approval_response",
    "computer_call",
    "computer_call_output",
    "tool_search_call",
    "tool_search_output",
    *("shell_call", "shell_call_output", "local_shell_call", "local_shell_call_output", "apply_patch_call", "apply_patch_call_output"),
)
_PARTS = {
    "user": ("input_text", "input_image", "input_file", "input_audio"),
    "system": ("input_text",),
    "developer": ("input_text",),
    "assistant": ("output_text", "refusal"),
    "tool": ("input_text", "input_image", "input_file"),
}


class Memory:
    """The items that a server has sent: each with the one before it and the one after it in its reply."""

    def __init__(self) -> None:
        self.sent: dict[str, tuple[Item, Item | None, Item | None]] = {}
        self.sealed: dict[str, Item] = {}
        self.responses: set[str] = set()

    def note(self, response: str, items: Sequence[Item], *, stored: bool) -> None:
        """Remember a reply."""
        for position, item in enumerate(items):
            before = items[position - 1] if position else None
            after = items[position + 1] if position + 1 < len(items) else None
            if stored:
                self.sent[item["id"]] = (item, before, after)
            if item.get("encrypted_content"):
                self.sealed[item["encrypted_content"]] = item
        if stored:
            self.responses.add(response)


def check_responses_request(body: bytes, rules: Rules, memory: Memory) -> dict[str, Any]:
    """The parsed body, or the vendor's `Rejection`."""
    try:
        request = json.loads(body)
    except ValueError:
        request = None
    if not isinstance(request, dict):
        raise Rejection("We could not parse the JSON body of your request.")
    for key in ("model", "input"):
        if key not in request:
            raise missing(key)
    known_keys(request, {"input", *_CHECKS, *rules.request_keys}, "")
    for key, value in request.items():
        if key in _CHECKS and value is not None:
            _CHECKS[key](value, key)
    previous = request.get("previous_response_id")
    if previous is not None and previous not in memory.responses:
        raise Rejection(f"Previous response with id '{previous}' not found.", "previous_response_id", "previous_response_not_found")
    if "tool_choice" in request and "tools" not in request:
        raise Rejection("Tool choice is only allowed when 'tools' are specified.", "tool_choice")
    _check_input(request["input"], rules, memory, continued=previous is not None)
    return request


# ---------------------------------------------------------------------------------------------- input


def _check_input(value: Any, rules: Rules, memory: Memory, *, continued: bool) -> None:
    if isinstance(value, str):
        return
    items = array(value, "input")
    for position, item in enumerate(items):
        _check_item(mapping(item, f"input[{position}]"), f"input[{position}]", rules)
    check_pairing(items, continued)
    for position, item in enumerate(items):
        _check_remembered(item, items, position, memory)


def _check_item(item: Item, where: str, rules: Rules) -> None:
    kind = item.get("type", "message")
    if kind == "message":
        _check_message(item, where)
    elif kind in _KEYS:
        known_keys(item, _KEYS[kind] | set(rules.call_keys), where)
        _check_known(item, kind, where, rules)
    elif kind not in (*_HOSTED, *_ANSWERS, *_CHANGES):
        raise not_one_of(f"{where}.type", kind, ("message", *_KEYS, *_HOSTED, *_ANSWERS, *_CHANGES))
    elif kind == "additional_tools":
        one_of("developer")(need(item, "role", where), f"{where}.role")
    prefix = _PREFIXES.get(kind)
    if prefix and "id" in item and not string(item["id"], f"{where}.id", longest=64).startswith(prefix):
        text = f"Invalid '{where}.id': '{item['id']}'. Expected an ID that begins with '{prefix}'."
        raise Rejection(text, f"{where}.id", "invalid_value")


def _check_message(item: Item, where: str) -> None:
    role = need(item, "role", where)
    one_of("assistant", "system", "developer", "user")(role, f"{where}.role")
    known_keys(item, {"type", "id", "role", "content", "status", "phase"}, where)
    content = need(item, "content", where)
    if not isinstance(content, str):
        _check_parts(content, role, f"{where}.content")


def _check_parts(value: Any, role: str, where: str) -> None:
    for position, part in enumerate(array(value, where)):
        place = f"{where}[{position}]"
        kind = need(mapping(part, place), "type", place)
        if kind not in _PARTS[role]:
            raise not_one_of(f"{place}.type", kind, _PARTS[role])
        _PART_CHECKS[kind](part, place)


def _check_text(part: Item, where: str) -> None:
    known_keys(part, {"type", "text", "annotations", "prompt_cache_breakpoint"}, where)
    string(need(part, "text", where), f"{where}.text", empty=True)


def _check_refusal(part: Item, where: str) -> None:
    known_keys(part, {"type", "refusal"}, where)


def _check_image(part: Item, where: str) -> None:
    known_keys(part, {"type", "image_url", "file_id", "detail", "prompt_cache_breakpoint"}, where)
    url = part.get("image_url")
    if url is None:
        string(need(part, "file_id", where), f"{where}.file_id")
    elif not isinstance(url, str):
        raise wrong_type(f"{where}.image_url", "a string", url)
    elif not url.startswith(("https://", "http://")) and not (url.startswith("data:image/") and _DATA.fullmatch(url)):
        raise Rejection(f"Invalid '{where}.image_url'. Expected a valid URL, but got a value with an invalid format.", f"{where}.image_url")


def _check_file(part: Item, where: str) -> None:
    known_keys(part, {"type", "file_data", "file_id", "file_url", "filename", "detail", "prompt_cache_breakpoint"}, where)
    if "file_data" not in part:
        if not ("file_id" in part or "file_url" in part):
            raise missing(f"{where}.file_id")
        return
    string(need(part, "filename", where), f"{where}.filename")
    # https://developers.openai.com/api/docs/guides/file-inputs; texts are read too, but not by every server of this wire
    if not part["file_data"].startswith(
        ("data:application/pdf", "data:application/vnd.", "data:application/msword", "data:application/rtf")
    ):
        raise Rejection(f"Invalid '{where}.file_data'. Unsupported file type.", f"{where}.file_data", "unsupported_file")
    if not _DATA.fullmatch(part["file_data"]):
        raise Rejection(f"Invalid '{where}.file_data'. Expected a base64-encoded data URL.", f"{where}.file_data", "invalid_value")


def _check_audio(part: Item, where: str) -> None:
    known_keys(part, {"type", "input_audio"}, where)
    audio = mapping(need(part, "input_audio", where), where)
    known_keys(audio, {"data", "format"}, f"{where}.input_audio")
    one_of("wav", "mp3")(need(audio, "format", where), f"{where}.input_audio.format")


_PART_CHECKS: dict[str, Callable[[Item, str], None]] = {
    "input_text": _check_text,
    "output_text": _check_text,
    "refusal": _check_refusal,
    "input_image": _check_image,
    "input_file": _check_file,
    "input_audio": _check_audio,
}


def _check_known(item: Item, kind: str, where: str, rules: Rules) -> None:
    if kind == "reasoning":
        array(need(item, "summary", where), f"{where}.summary", empty=True)
        return
    string(need(item, "call_id", where), f"{where}.call_id", longest=rules.longest_id)
    if kind.endswith("_output"):
        output = need(item, "output", where)
        if not isinstance(output, str):
            _check_parts(output, "tool", f"{where}.output")
        return
    name(need(item, "name", where), f"{where}.name")
    text = string(need(item, "input" if kind == "custom_tool_call" else "arguments", where), f"{where}.arguments", empty=True)
    if kind == "function_call" and rules.json_arguments and not _is_object(text):
        raise Rejection(f"Invalid '{where}.arguments': not a JSON object: {text[:80]!r}.", f"{where}.arguments", "invalid_value")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _check_remembered(item: Item, items: Sequence[Item], position: int, memory: Memory) -> None:
    """An item that the server sent comes back as it was, with its neighbours."""
    sealed = item.get("encrypted_content")
    if sealed is not None:
        if sealed not in memory.sealed:
            raise Rejection("The encrypted content could not be verified.", f"input[{position}]", "invalid_encrypted_content")
        if position + 1 == len(items) or items[position + 1].get("role") == "user":
            raise _lonely("reasoning", sealed)
    if item.get("id") is not None and item.get("type") != "local_shell_call_output":  # that id is its call's
        _check_id(item, items, position, memory)
    elif item.get("type") == "reasoning" and sealed is None and not item.get("content"):
        raise missing(f"input[{position}].id")


def _check_id(item: Item, items: Sequence[Item], position: int, memory: Memory) -> None:
    kind, identifier = item.get("type", "message"), item["id"]
    if identifier not in memory.sent:
        if item.get("encrypted_content") is not None:
            return
        text = f"Item with id '{identifier}' not found. Items are not persisted when `store` is set to false."
        raise Rejection(text, "input", status=404)
    known, before, after = memory.sent[identifier]
    if any(item[key] != known.get(key) for key in item if key not in ("status", "content", "type")) or not _same_content(item, known):
        raise Rejection(f"Item '{identifier}' was changed.", f"input[{position}]", "invalid_value")
    following = items[position + 1].get("id") if position + 1 < len(items) else None
    if kind == "reasoning" and after is not None and following != after["id"]:
        raise _lonely(kind, identifier)
    if before is not None and before["type"] == "reasoning" and (position == 0 or items[position - 1].get("id") != before["id"]):
        text = f"Item '{identifier}' of type '{kind}' was provided without its required 'reasoning' item: '{before['id']}'."
        raise Rejection(text, "input")


def _lonely(kind: str, identifier: str) -> Rejection:
    return Rejection(f"Item '{identifier}' of type '{kind}' was provided without its required following item.", "input")


def _same_content(item: Item, known: Item) -> bool:
    def texts(value: Any) -> Any:
        return [part.get("text", part.get("refusal")) for part in value] if isinstance(value, list) else value

    return texts(item.get("content")) == texts(known.get("content"))


# ---------------------------------------------------------------------------------------------- parameters


def _check_tools(value: Any, where: str) -> None:
    names: set[str] = set()
    for position, tool in enumerate(array(value, where, longest=128)):
        place = f"{where}[{position}]"
        if need(mapping(tool, place), "type", place) == "function":
            found = _check_function(tool, place)
        elif tool["type"] == "custom":
            known_keys(tool, {"type", "name", "description", "format", "defer_loading"}, place)
            found = name(need(tool, "name", place), f"{place}.name")
        else:
            continue
        if found in names:
            raise Rejection(f"Invalid '{where}': duplicate function name '{found}'.", where, "invalid_value")
        names.add(found)


def _check_function(tool: Item, where: str) -> str:
    keys = {"type", "name", "description", "parameters", "strict", "defer_loading", "async", "allowed_callers", "output_schema"}
    known_keys(tool, keys, where)
    found = name(need(tool, "name", where), f"{where}.name")
    for key in ("parameters", "strict"):
        need(tool, key, where)

    def fail(reason: str) -> Rejection:
        return Rejection(f"Invalid schema for function '{found}': {reason}", f"{where}.parameters", "invalid_function_parameters")

    check_schema(mapping(tool["parameters"], f"{where}.parameters"), bool(tool["strict"]), fail)
    return found


def _check_choice(value: Any, where: str) -> None:
    if isinstance(value, str):
        one_of("none", "auto", "required")(value, where)
        return
    kind = need(mapping(value, where), "type", where)
    if kind in ("function", "custom"):
        known_keys(value, {"type", "name"}, where)
        name(need(value, "name", where), f"{where}.name")
    elif kind == "allowed_tools":
        known_keys(value, {"type", "mode", "tools"}, where)
        array(need(value, "tools", where), f"{where}.tools")


def _check_text_config(value: Any, where: str) -> None:
    known_keys(mapping(value, where), {"format", "verbosity"}, where)
    if "verbosity" in value:
        one_of("low", "medium", "high")(value["verbosity"], f"{where}.verbosity")
    form = value.get("format")
    if form is None:
        return
    kind = need(mapping(form, f"{where}.format"), "type", f"{where}.format")
    one_of("text", "json_object", "json_schema")(kind, f"{where}.format.type")
    if kind == "json_schema":
        known_keys(form, {"type", "name", "description", "schema", "strict"}, f"{where}.format")
        title = name(need(form, "name", f"{where}.format"), f"{where}.format.name")

        def fail(reason: str) -> Rejection:
            return Rejection(f"Invalid schema for response_format '{title}': {reason}", f"{where}.format.schema")

        check_schema(need(form, "schema", f"{where}.format"), bool(form.get("strict")), fail)


def _check_reasoning(value: Any, where: str) -> None:
    known_keys(mapping(value, where), {"effort", "summary", "generate_summary", "context", "mode"}, where)


def _check_stream_options(value: Any, where: str) -> None:
    known_keys(mapping(value, where), {"include_obfuscation"}, where)


def _any(value: Any, where: str) -> None:
    """Left to other checks."""


_CHECKS: dict[str, Callable[[Any, str], None]] = {
    "background": boolean,
    "context_management": lambda value, where: [None for _ in array(value, where)] and None,
    "conversation": _any,
    "include": lambda value, where: [string(entry, where) for entry in array(value, where)] and None,
    "instructions": lambda value, where: string(value, where, empty=True) and None,
    "max_output_tokens": number(1, whole=True),
    "max_tool_calls": number(1, whole=True),
    "metadata": _any,
    "model": lambda value, where: string(value, where) and None,
    "parallel_tool_calls": boolean,
    "previous_response_id": lambda value, where: string(value, where) and None,
    "prompt_cache_key": _any,
    "prompt_cache_options": _any,
    "reasoning": _check_reasoning,
    "safety_identifier": _any,
    "service_tier": one_of("auto", "default", "flex", "scale", "priority"),
    "store": boolean,
    "stream": boolean,
    "stream_options": _check_stream_options,
    "temperature": number(0, 2),
    "text": _check_text_config,
    "tool_choice": _check_choice,
    "tools": _check_tools,
    "top_logprobs": number(0, 20, whole=True),
    "top_p": number(0, 1),
    "truncation": one_of("auto", "disabled"),
    "user": _any,
}
