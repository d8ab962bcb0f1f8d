"""Refuses what OpenAI's chat completions refuses, with its status and its words (from its documentation and from reports of its errors)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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
from tests.support.strict_messages import check_messages
from tests.support.strict_schema import check_schema


def check_request(body: bytes, rules: Rules) -> dict[str, Any]:
    """The parsed body, or the vendor's `Rejection`."""
    try:
        request = json.loads(body)
    except ValueError:
        request = None
    if not isinstance(request, dict):
        hint = "This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload."
        raise Rejection(f"We could not parse the JSON body of your request. (HINT: {hint})")
    if "model" not in request:
        raise Rejection("you must provide a model parameter")
    string(request["model"], "model")
    if "messages" not in request:
        raise missing("messages")
    known_keys(request, {"model", "messages", *_CHECKS, *rules.request_keys}, "")
    for key, value in request.items():
        if key in _CHECKS and not (value is None and key in _NULLABLE):
            _CHECKS[key](value, key)
    check_messages(request["messages"], rules)
    _check_together(request)
    return request


def _check_together(request: Mapping[str, Any]) -> None:
    """What holds between parameters."""
    if request.get("stream_options") is not None and not request.get("stream"):
        raise Rejection("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")
    if request.get("max_tokens") is not None and request.get("max_completion_tokens") is not None:
        raise Rejection(
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
            "max_tokens",
            "invalid_parameter_combination",
        )
    if request.get("top_logprobs") is not None and not request.get("logprobs"):
        raise Rejection("The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.", "top_logprobs")
    for key, tools in (("tool_choice", "tools"), ("parallel_tool_calls", "tools"), ("function_call", "functions")):
        if key in request and tools not in request:
            raise Rejection(f"Invalid value for '{key}': '{key}' is only allowed when '{tools}' are specified.", key)
    if "tool_choice" in request:
        _check_named(request["tool_choice"], {_name_of(tool) for tool in request["tools"]})
    if (request.get("response_format") or {}).get("type") == "json_object" and "json" not in json.dumps(request["messages"]).lower():
        text = "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
        raise Rejection(text, "messages")


def _name_of(tool: Mapping[str, Any]) -> str:
    return str(tool[tool["type"]]["name"])


def _check_named(choice: Any, declared: set[str]) -> None:
    if isinstance(choice, str):
        return
    entries = choice["allowed_tools"]["tools"] if choice["type"] == "allowed_tools" else [choice]
    for entry in entries:
        if _name_of(entry) not in declared:
            raise Rejection(f"Tool choice '{_name_of(entry)}' not found in 'tools' parameter.", "tool_choice")


def _check_tools(value: Any, where: str) -> None:
    names: set[str] = set()
    for position, tool in enumerate(array(value, where, longest=128)):
        found = _check_tool(mapping(tool, f"{where}[{position}]"), f"{where}[{position}]")
        if found in names:
            raise Rejection(f"Invalid '{where}': duplicate function name '{found}'.", where, "invalid_value")
        names.add(found)


def _check_tool(tool: Mapping[str, Any], where: str) -> str:
    kind = need(tool, "type", where)
    one_of("function", "custom")(kind, f"{where}.type")
    known_keys(tool, {"type", kind}, where)
    if kind not in tool:
        raise missing(f"{where}.{kind}")
    body = mapping(tool[kind], f"{where}.{kind}")
    return _check_custom(body, f"{where}.custom") if kind == "custom" else _check_function(body, f"{where}.function")


def _check_custom(custom: Mapping[str, Any], where: str) -> str:
    known_keys(custom, {"name", "description", "format"}, where)
    return name(need(custom, "name", where), f"{where}.name")


def _check_function(function: Mapping[str, Any], where: str) -> str:
    known_keys(function, {"name", "description", "parameters", "strict"}, where)
    found = name(need(function, "name", where), f"{where}.name")
    string(function.get("description", ""), f"{where}.description", longest=1024, empty=True)
    if function.get("strict") is not None:
        boolean(function["strict"], f"{where}.strict")
    if "parameters" in function:

        def fail(reason: str) -> Rejection:
            return Rejection(f"Invalid schema for function '{found}': {reason}", f"{where}.parameters", "invalid_function_parameters")

        check_schema(mapping(function["parameters"], f"{where}.parameters"), bool(function.get("strict")), fail)
    return found


def _check_functions(value: Any, where: str) -> None:
    for position, function in enumerate(array(value, where, longest=128)):
        _check_function(mapping(function, f"{where}[{position}]"), f"{where}[{position}]")


def _check_choice(value: Any, where: str) -> None:
    if isinstance(value, str):
        one_of("none", "auto", "required")(value, where)
        return
    if not isinstance(value, dict):
        raise wrong_type(where, "one of an object or string", value)
    kind = need(value, "type", where)
    one_of("function", "custom", "allowed_tools")(kind, f"{where}.type")
    known_keys(value, {"type", kind}, where)
    body = mapping(need(value, kind, where), f"{where}.{kind}")
    if kind == "allowed_tools":
        known_keys(body, {"mode", "tools"}, f"{where}.{kind}")
        one_of("auto", "required")(need(body, "mode", f"{where}.{kind}"), f"{where}.{kind}.mode")
        array(need(body, "tools", f"{where}.{kind}"), f"{where}.{kind}.tools")
    else:
        known_keys(body, {"name"}, f"{where}.{kind}")
        name(need(body, "name", f"{where}.{kind}"), f"{where}.{kind}.name")


def _check_format(value: Any, where: str) -> None:
    form = mapping(value, where)
    kind = need(form, "type", where)
    one_of("json_object", "json_schema", "text")(kind, f"{where}.type")
    known_keys(form, {"type", "json_schema"} if kind == "json_schema" else {"type"}, where)
    if kind != "json_schema":
        return
    inner = mapping(need(form, "json_schema", where), f"{where}.json_schema")
    known_keys(inner, {"name", "description", "schema", "strict"}, f"{where}.json_schema")
    title = name(need(inner, "name", f"{where}.json_schema"), f"{where}.json_schema.name")

    def fail(reason: str) -> Rejection:
        return Rejection(f"Invalid schema for response_format '{title}': {reason}", where)

    if "schema" in inner or inner.get("strict"):
        check_schema(need(inner, "schema", f"{where}.json_schema"), bool(inner.get("strict")), fail)


def _check_stop(value: Any, where: str) -> None:
    stops = [value] if isinstance(value, str) else array(value, where, longest=4)
    for position, stop in enumerate(stops):
        string(stop, f"{where}[{position}]")


def _check_stream_options(value: Any, where: str) -> None:
    known_keys(mapping(value, where), {"include_usage", "include_obfuscation"}, where)
    for key, switch in value.items():
        boolean(switch, f"{where}.{key}")


def _check_metadata(value: Any, where: str) -> None:
    if len(mapping(value, where)) > 16:
        raise Rejection(
            f"Invalid '{where}': too many properties. Expected an object with at most 16 properties.", where, "object_above_max_properties"
        )
    for key, text in value.items():
        string(key, f"{where}.{key}", longest=64)
        string(text, f"{where}.{key}", longest=512, empty=True)


def _check_bias(value: Any, where: str) -> None:
    for token, bias in mapping(value, where).items():
        number(-100, 100)(bias, f"{where}.{token}")


def _check_modalities(value: Any, where: str) -> None:
    for position, mode in enumerate(array(value, where)):
        if mode not in {"text", "audio"}:
            raise not_one_of(f"{where}[{position}]", mode, ("text", "audio"))


def _any_object(value: Any, where: str) -> None:
    mapping(value, where)


def _any_string(value: Any, where: str) -> None:
    string(value, where, empty=True)


def _anything(value: Any, where: str) -> None:
    """Left to other checks."""


_CHECKS: dict[str, Callable[[Any, str], None]] = {
    "audio": _any_object,
    "frequency_penalty": number(-2, 2),
    "function_call": _anything,
    "functions": _check_functions,
    "logit_bias": _check_bias,
    "logprobs": boolean,
    "max_completion_tokens": number(1, whole=True),
    "max_tokens": number(1, whole=True),
    "metadata": _check_metadata,
    "modalities": _check_modalities,
    "moderation": _any_object,
    "n": number(1, 128, whole=True),
    "parallel_tool_calls": boolean,
    "prediction": _any_object,
    "presence_penalty": number(-2, 2),
    "prompt_cache_key": _any_string,
    "prompt_cache_options": _any_object,
    "prompt_cache_retention": one_of("in_memory", "24h"),
    "reasoning_effort": one_of("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    "response_format": _check_format,
    "safety_identifier": _any_string,
    "seed": number(-(2**63), 2**63 - 1, whole=True),
    "service_tier": one_of("auto", "default", "flex", "scale", "priority", "fast"),
    "stop": _check_stop,
    "store": boolean,
    "stream": boolean,
    "stream_options": _check_stream_options,
    "temperature": number(0, 2),
    "tool_choice": _check_choice,
    "tools": _check_tools,
    "top_logprobs": number(0, 20, whole=True),
    "top_p": number(0, 1),
    "user": _any_string,
    "verbosity": one_of("low", "medium", "high"),
    "web_search_options": _any_object,
}
_NULLABLE = set(_CHECKS) - {"tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "response_format", "user"}
