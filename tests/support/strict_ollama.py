"""Refuses what Ollama refuses, with its words (server/routes.go, api/types.go and reports of its errors).

The real server ignores keys that it does not know, and drops what a parameter's schema says in other words than its own. Both are
refused here too: what is dropped in silence is lost. So are results that its templates would pair with other calls.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tests.support.strict import Rejection
from tests.support.strict_schema import resolves, walk

_REQUEST = {
    *("model", "messages", "stream", "format", "keep_alive", "tools", "options", "think", "truncate", "shift", "logprobs", "top_logprobs"),
}
_MESSAGE = {"role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"}
_ROLES = {"system", "user", "assistant", "tool"}
_INTEGERS = {"mirostat", "num_ctx", "num_gpu", "num_thread", "num_predict", "repeat_last_n", "seed", "top_k", "num_keep", "num_batch"}
_FLOATS = {"mirostat_eta", "mirostat_tau", "repeat_penalty", "temperature", "tfs_z", "top_p", "min_p", "typical_p"}
_SCHEMA = {"type", "description", "enum", "items", "properties", "required", "anyOf"}
_EFFORTS = ("high", "medium", "low", "max")


def check_request(body: bytes, models: Collection[str] = ()) -> dict[str, Any]:
    """The parsed body, or the vendor's `Rejection`.

    Args:
        body: The request's JSON.
        models: The models that the server has; empty for any.
    """
    if not body:
        raise Rejection("missing request body")
    try:
        request = json.loads(body)
    except ValueError as error:
        raise Rejection(f"invalid character in request body: {error}") from None
    typed(request, dict, "ChatRequest")
    known(request, _REQUEST, "")
    need(isinstance(request.get("model"), str) and bool(request["model"]), "model is required")
    need(not models or request["model"] in models, f"model '{request['model']}' not found", 404)
    _check_parameters(request)
    _check_options(request.get("options", {}))
    for tool in typed(request.get("tools", []), list, "tools"):
        _check_tool(tool)
    for message in typed(request.get("messages", []), list, "messages"):
        _check_message(message)
    _check_pairing(request.get("messages", []))
    return request  # type: ignore[no-any-return]


def need(holds: bool, message: str, status: int = 400) -> None:
    """Refuse with this message unless it holds."""
    if not holds:
        raise Rejection(message, status=status)


def typed(value: Any, kind: type, where: str) -> Any:
    """A value of its type, as Go reads it."""
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise Rejection(f"json: cannot unmarshal {type(value).__name__} into Go struct field ChatRequest.{where} of type {kind.__name__}")
    return value


def known(value: Mapping[str, Any], keys: Collection[str], where: str) -> None:
    """No key but these: others are dropped."""
    for key in value:
        need(key in keys, f"{where}{key}: the server does not know this key and would drop it")


def _check_parameters(request: Mapping[str, Any]) -> None:
    typed(request.get("stream", True), bool, "stream")
    form = request.get("format", "")
    need(form in ("", "json") or isinstance(form, dict), f'invalid format: {form!r}; expected "json" or a valid JSON Schema object', 500)
    for _, part in walk(form, ()) if isinstance(form, dict) else ():  # ollama/ollama, llama/llama.cpp/common/json-schema-to-grammar.cpp
        target = part.get("$ref", "#") if isinstance(part, dict) else "#"
        need(resolves(target, form), f"Error resolving ref {target}", 500)
    think = request.get("think", True)
    said = f'invalid think value: {think!r} (must be "high", "medium", "low", "max", true, or false)'
    need(isinstance(think, bool) or think in _EFFORTS, said)
    need(0 <= request.get("top_logprobs", 0) <= 20, "top_logprobs must be between 0 and 20")


def _check_options(options: Any) -> None:
    for name, value in typed(options, dict, "options").items():
        need(name in {*_INTEGERS, *_FLOATS, "stop"}, f"invalid option provided: {name}")
        number = isinstance(value, int | float) and not isinstance(value, bool)
        need(name not in _INTEGERS or number, f'option "{name}" must be of type integer')
        need(name not in _FLOATS or number, f'option "{name}" must be of type float32')
        strings = isinstance(value, list) and all(isinstance(item, str) for item in value)
        need(name != "stop" or strings, 'option "stop" must be of type array')


# ---------------------------------------------------------------------------------------------- tools


def _check_tool(tool: Any) -> None:
    known(typed(tool, dict, "tools"), {"type", "function"}, "tools.")
    need(tool.get("type") == "function", "tools.type: only functions are tools")
    function = typed(tool.get("function"), dict, "tools.function")
    known(function, {"name", "description", "parameters"}, "tools.function.")
    need(bool(typed(function.get("name"), str, "tools.function.name")), "tools.function.name is empty")
    typed(function.get("description", ""), str, "tools.function.description")
    parameters = typed(function.get("parameters"), dict, "tools.function.parameters")
    need(parameters.get("type") == "object", "tools.function.parameters.type must be object")
    typed(parameters.get("properties"), dict, "tools.function.parameters.properties")
    _check_schema(parameters, "parameters")


def _check_schema(schema: Any, where: str) -> None:
    known(typed(schema, dict, where), _SCHEMA, f"{where}.")
    kind = schema.get("type", "")
    need(isinstance(kind, str) or (isinstance(kind, list) and all(isinstance(one, str) for one in kind)), f"{where}.type is no type")
    for name, inner in schema.get("properties", {}).items():
        _check_schema(inner, f"{where}.{name}")
    for inner in [*schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])]:
        _check_schema(inner, f"{where}[]")


# ---------------------------------------------------------------------------------------------- messages


def _check_message(message: Any) -> None:
    known(typed(message, dict, "messages"), _MESSAGE, "messages.")
    need(message.get("role") in _ROLES, f"invalid role: {message.get('role')!r}, must be one of {sorted(_ROLES)}")
    for key in ("content", "thinking", "tool_name", "tool_call_id"):
        typed(message.get(key, ""), str, f"messages.{key}")
    for image in typed(message.get("images", []), list, "messages.images"):
        need(bool(image), "messages.images: image data is empty")
        try:
            base64.b64decode(typed(image, str, "messages.images"), validate=True)
        except ValueError:
            raise Rejection("illegal base64 data at input byte 0") from None
    for call in typed(message.get("tool_calls", []), list, "messages.tool_calls"):
        known(typed(call, dict, "messages.tool_calls"), {"id", "type", "function"}, "messages.tool_calls.")
        typed(call.get("id", ""), str, "messages.tool_calls.id")
        function = typed(call.get("function"), dict, "messages.tool_calls.function")
        known(function, {"index", "name", "arguments"}, "messages.tool_calls.function.")
        typed(function.get("index", 0), int, "messages.tool_calls.function.index")
        typed(function.get("name"), str, "messages.tool_calls.function.name")
        typed(function.get("arguments"), dict, "messages.tool_calls.function.arguments")


def _check_pairing(messages: Sequence[Mapping[str, Any]]) -> None:
    """Each result follows its call, in order and under its name and id, once; no call stays open."""
    waiting: list[Mapping[str, Any]] = []
    for position, message in enumerate(messages):
        if message["role"] == "tool":
            need(bool(waiting), f"messages[{position}]: a result without a call")
            call = waiting.pop(0)
            name = call["function"]["name"]
            need(message.get("tool_name", "") == name, f"messages[{position}]: the result of {message.get('tool_name')!r}, not of {name!r}")
            need(message.get("tool_call_id", "") == call.get("id", ""), f"messages[{position}]: the result of another call")
            continue
        need(not waiting, f"messages[{position}]: calls without results before it")
        waiting = list(message.get("tool_calls", []))
    need(not waiting, "calls without results at the end")
