"""What OpenAI's chat completions asks of `messages`: roles, content, tool calls and that every call is answered in its place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.strict import (
    Rejection,
    Rules,
    array,
    known_keys,
    mapping,
    missing,
    name,
    need,
    not_one_of,
    one_of,
    string,
    wrong_type,
)

_KEYS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "refusal", "audio", "tool_calls", "function_call"},
    "tool": {"role", "content", "tool_call_id"},
    "function": {"role", "content", "name"},
}
_ROLES = ("system", "assistant", "user", "function", "tool", "developer")
_PARTS = {
    "system": ("text",),
    "developer": ("text",),
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "tool": ("text",),
}
_DATA = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,[A-Za-z0-9+/]+={0,2}")


def check_messages(value: Any, rules: Rules) -> None:
    """Raise the vendor's `Rejection` of the first message that is wrong."""
    messages = array(value, "messages", longest=2048)
    for position, message in enumerate(messages):
        _check_message(mapping(message, f"messages[{position}]"), position, rules)
    _check_pairing(messages, rules)


def _check_message(message: Mapping[str, Any], position: int, rules: Rules) -> None:
    where = f"messages[{position}]"
    role = need(message, "role", where)
    if role not in _ROLES:
        raise not_one_of(f"{where}.role", role, _ROLES)
    known_keys(message, _KEYS[role] | set(rules.message_keys), where)
    if "name" in message and role != "function":
        string(message["name"], f"{where}.name", longest=64)
    if role == "assistant":
        _check_assistant(message, position, rules)
    elif role == "function":
        name(need(message, "name", where), f"{where}.name")
    elif role == "tool":
        _check_tool_call_id(message, position)
    if role not in {"assistant", "function"}:
        _check_content(message.get("content"), role, position, rules)


def _check_tool_call_id(message: Mapping[str, Any], position: int) -> None:
    where = f"messages.[{position}].tool_call_id"
    if "tool_call_id" not in message:
        raise Rejection("Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.", where)
    string(message["tool_call_id"], where)


def _check_content(content: Any, role: str, position: int, rules: Rules) -> None:
    where = f"messages[{position}].content"
    if isinstance(content, str):
        return
    if content is None:
        raise Rejection("Invalid value for 'content': expected a string, got null.", f"messages.[{position}].content")
    if not isinstance(content, list):
        raise wrong_type(where, "one of a string or array of objects", content)
    for number, part in enumerate(array(content, where)):
        _check_part(mapping(part, f"{where}[{number}]"), role, f"{where}[{number}]", rules)


def _check_part(part: Mapping[str, Any], role: str, where: str, rules: Rules) -> None:
    kind = need(part, "type", where)
    if kind == "image_url" and role != "user":
        reason = f"Image URLs are only allowed for messages with role 'user', but this message with role '{role}' contains an image URL."
        path = where.partition(".")[0]
        raise Rejection(f"Invalid '{path}'. {reason}", path, "invalid_value")
    if kind not in _PARTS[role]:
        raise not_one_of(f"{where}.type", kind, _PARTS[role])
    known_keys(part, {"type", kind, *rules.part_keys}, where)
    value = need(part, kind, where)
    if kind in {"text", "refusal"}:
        string(value, f"{where}.{kind}", empty=True)
    else:
        _MEDIA[kind](mapping(value, f"{where}.{kind}"), f"{where}.{kind}")


def _check_image(image: Mapping[str, Any], where: str) -> None:
    known_keys(image, {"url", "detail"}, where)
    url = string(need(image, "url", where), f"{where}.url")
    if not url.startswith(("https://", "http://")) and not (url.startswith("data:image/") and _DATA.fullmatch(url)):
        reason = "Expected a base64-encoded data URL with an image MIME type, but got a value without the 'data:image/' prefix."
        raise Rejection(f"Invalid '{where}.url'. {reason}", f"{where}.url", "invalid_value")
    if "detail" in image:
        one_of("auto", "low", "high")(image["detail"], f"{where}.detail")


def _check_audio(audio: Mapping[str, Any], where: str) -> None:
    known_keys(audio, {"data", "format"}, where)
    string(need(audio, "data", where), f"{where}.data")
    one_of("wav", "mp3")(need(audio, "format", where), f"{where}.format")


def _check_file(file: Mapping[str, Any], where: str) -> None:
    known_keys(file, {"file_data", "file_id", "filename"}, where)
    if "file_id" in file:
        string(file["file_id"], f"{where}.file_id")
        return
    data = string(need(file, "file_data", where), f"{where}.file_data")
    string(need(file, "filename", where), f"{where}.filename")
    # https://developers.openai.com/api/docs/guides/file-inputs: chat completions takes PDF alone
    if not _DATA.fullmatch(data) or not data.startswith("data:application/pdf;"):
        reason = "Expected a base64-encoded data URL with an application/pdf MIME type"
        raise Rejection(f"Invalid '{where}.file_data'. {reason}, but got a value without one.", f"{where}.file_data", "invalid_value")


_MEDIA = {"image_url": _check_image, "input_audio": _check_audio, "file": _check_file}


def _check_assistant(message: Mapping[str, Any], position: int, rules: Rules) -> None:
    acts = [key for key in ("tool_calls", "function_call", "refusal", "audio") if message.get(key) is not None]
    if message.get("content") is not None or not acts:
        _check_content(message.get("content"), "assistant", position, rules)
    if message.get("tool_calls") is not None or "tool_calls" in message:
        where = f"messages[{position}].tool_calls"
        for number, call in enumerate(array(message["tool_calls"], where, longest=128)):
            _check_call(mapping(call, f"{where}[{number}]"), f"{where}[{number}]", rules)


def _check_call(call: Mapping[str, Any], where: str, rules: Rules) -> None:
    string(need(call, "id", where), f"{where}.id", longest=rules.longest_id)
    kind = need(call, "type", where)
    one_of("function", "custom")(kind, f"{where}.type")
    known_keys(call, {"id", "type", kind, *rules.call_keys}, where)
    where = f"{where}.{kind}"
    body = mapping(call[kind] if kind in call else _absent(where), where)
    field = "arguments" if kind == "function" else "input"
    known_keys(body, {"name", field}, where)
    name(need(body, "name", where), f"{where}.name")
    text = string(need(body, field, where), f"{where}.{field}", empty=True)
    if kind == "function" and rules.json_arguments and not _is_object(text):
        raise Rejection(f"Invalid '{where}.arguments': not a JSON object: {text[:80]!r}.", f"{where}.arguments", "invalid_value")


def _absent(where: str) -> Any:
    raise missing(where)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, parse_constant=_refuse_constant), dict)
    except ValueError:
        return False


def _refuse_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _check_pairing(messages: Sequence[Mapping[str, Any]], rules: Rules) -> None:
    """Each tool message answers, once, a call of the assistant message that it follows, and no call stays open."""
    answers: dict[str, int | None] = {}
    for position, message in enumerate(messages):
        if message["role"] == "tool":
            _answer(message["tool_call_id"], answers, position, rules)
            continue
        _check_answered(answers, f"messages.[{position}].role")
        calls = message.get("tool_calls") or [] if message["role"] == "assistant" else []
        answers = {}
        for call in calls:
            if call["id"] in answers:
                text = f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call['id']}', in messages[{position}]."
                raise Rejection(text, f"messages.[{position}].tool_calls")
            answers[call["id"]] = None
    _check_answered(answers, f"messages.[{len(messages) - 1}].role")


def _answer(identifier: str, answers: dict[str, int | None], position: int, rules: Rules) -> None:
    """Note a tool message; `answers` holds, for each call of the assistant message before it, where it was answered."""
    where = f"messages.[{position}]"
    if not answers:
        text = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
        raise Rejection(text, f"{where}.role")
    if identifier not in answers:
        text = f"Invalid parameter: 'tool_call_id' of '{identifier}' not found in 'tool_calls' of previous message."
        raise Rejection(text, f"{where}.tool_call_id")
    if (earlier := answers[identifier]) is not None:
        text = f"Duplicate value for 'tool_call_id' of '{identifier}', in messages[{earlier}] and messages[{position}]."
        raise Rejection(f"Invalid parameter: {text}", f"{where}.tool_call_id")
    first = next(call for call, answered in answers.items() if answered is None)
    if rules.ordered_results and first != identifier:
        raise Rejection(f"The result of '{identifier}' is out of order: '{first}' comes first.", f"{where}.tool_call_id")
    answers[identifier] = position


def _check_answered(answers: Mapping[str, int | None], where: str) -> None:
    if waiting := [identifier for identifier, answered in answers.items() if answered is None]:
        text = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
        raise Rejection(f"{text} The following tool_call_ids did not have response messages: {', '.join(waiting)}", where)
