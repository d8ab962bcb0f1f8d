"""Tools and tool choices in chat completions' form.

Wire facts: a function is `{"type": "function", "function": {name, description, parameters, strict}}`, a custom tool
`{"type": "custom", "custom": {name, description, format}}`; names match `[a-zA-Z0-9_-]{1,64}`; a choice is "none", "auto",
"required", a named tool, or `{"type": "allowed_tools", "allowed_tools": {mode, tools}}`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from ...errors import ConfigurationError
from ...executor.names import own_name, tool_name
from .._encode.choices import format_choice, unknown_choice
from .._encode.functions import Function, declaring, function_of
from .strict import strict_schema
from .wire import ToolChoice

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_EXTRAS = ("defer_loading", "async", "allowed_callers", "output_schema")
_CUSTOM_KEYS = ("name", "description", "format")
_POINTERS = ("function", "custom", "tool", None)
_MODES = {"any": "required", "required": "required", "auto": "auto", "none": "none"}


def format_tool(tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
    """Return a tool in the form of a request.

    Args:
        tool: A function, a pydantic class, a TypedDict, a `BaseTool`, a JSON schema with a title, or a dict in the form of
            OpenAI, Anthropic or Bedrock. A builtin tool of the vendor (a dict of another `type`) is returned untouched.
        strict: Whether the server must hold the model to the schema. None leaves that as the tool or the vendor has it.

    Raises:
        ConfigurationError: The tool cannot be declared: its name is illegal, or its arguments have no JSON schema.
    """
    if isinstance(tool, dict) and _is_builtin(tool):
        return tool
    with declaring(tool):
        declared = _declared(tool, strict)
    name = own_name(declared)
    if not isinstance(name, str) or not _LEGAL_NAME.fullmatch(name):
        raise ConfigurationError(f"tool name {name!r} cannot be sent: it must have 1 to 64 letters, digits, '_' or '-'")
    return declared


def _is_builtin(tool: Mapping[str, Any]) -> bool:
    """Whether a dict is one of the vendor's own tools: by its type, and neither a function, a schema nor another vendor's tool."""
    kind = tool.get("type")
    if not isinstance(kind, str) or kind in ("function", "object"):
        return False
    if "parameters" in tool and "name" not in tool and "title" not in tool:
        return True  # no function, which has a name: `tool_search` with `execution: "client"` takes parameters
    return not ({"input_schema", "properties", "parameters"} & tool.keys())


def _declared(tool: Any, strict: bool | None) -> dict[str, Any]:
    if isinstance(tool, dict) and tool.get("type") == "function":
        inner = tool.get("function", tool)  # the wire's own form, or the flat one of Responses
        around = {key: tool[key] for key in _EXTRAS if key in tool}
        return {"type": "function", "function": _function(inner, strict), **around}
    if _is_custom(tool):
        declared = convert_to_openai_tool(tool)
        declared = {"type": "custom", "custom": {key: declared[key] for key in _CUSTOM_KEYS if key in declared}}
    else:
        declared = {"type": "function", "function": _function(tool, strict)}
    extras = tool.extras if isinstance(tool, BaseTool) else None
    return {**declared, **{key: extras[key] for key in _EXTRAS if key in extras}} if extras else declared


def _is_custom(tool: Any) -> bool:
    """Whether a tool's input is free text rather than JSON."""
    return isinstance(tool, BaseTool) and (tool.metadata or {}).get("type") == "custom_tool"


def _function(tool: Any, strict: bool | None) -> Function:
    function = function_of(tool, strict=strict)
    if not strict:
        return function
    return {**function, "parameters": strict_schema(function.get("parameters") or {"type": "object", "properties": {}})}


# ---------------------------------------------------------------------------------------------- choices


def format_tool_choice(choice: Any, tools: Sequence[Mapping[str, Any]]) -> str | ToolChoice | None:
    """Return a tool choice in the form of a request.

    Args:
        choice: None or False (the vendor decides), True, "any" or "required" (some tool), "auto", "none", the name of a tool,
            the type of a builtin tool, or a dict in the form of chat completions, Responses or Anthropic.
        tools: The declared tools, as `format_tool` made them.

    Returns:
        The value to send; None: send nothing.

    Raises:
        ConfigurationError: The choice names no declared tool, or is of no known form.
    """
    return format_choice(choice, tools, any_tool=lambda _: "required", named=_choice_by_name, from_mapping=_choice_from_mapping)


def _choice_by_name(choice: str, tools: Sequence[Mapping[str, Any]]) -> str | ToolChoice:
    """Return a choice given by one word; a tool's name takes precedence over the vendor's keywords."""
    for tool in tools:
        if own_name(tool) == choice:
            return _pointer(tool, choice)
    if choice in _MODES:
        return _MODES[choice]
    if any(tool.get("type") == choice for tool in tools):
        return {"type": choice}
    if not tools:
        return {"type": "function", "function": {"name": choice}}
    servers = [tool for tool in tools if tool.get("type") == "mcp"]
    if len(servers) == 1:  # it knows its tools' names
        return {"type": "mcp", "server_label": servers[0].get("server_label"), "name": choice}
    names = [tool_name(tool) for tool in tools]
    raise unknown_choice(choice, names, _MODES)


def _pointer(tool: Mapping[str, Any], name: str) -> ToolChoice:
    if tool.get("type") == "custom":
        return {"type": "custom", "custom": {"name": name}}
    return {"type": "function", "function": {"name": name}}


def _choice_from_mapping(choice: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]) -> str | ToolChoice:
    kind = choice.get("type")
    if kind == "allowed_tools":
        return _allowed(choice, tools)
    inner = choice.get("function") or choice.get("custom")
    default = {"type": "custom" if "custom" in choice else "function"} if isinstance(inner, Mapping) else {}
    given: Any = {**default, **choice}
    own: ToolChoice = given
    if default:
        return own
    if isinstance(choice.get("name"), str) and kind in _POINTERS:  # flat: Responses, Anthropic's {"type": "tool"}, or a bare name
        declared = next((tool for tool in tools if own_name(tool) == choice["name"]), {"type": kind})
        return _pointer(declared, choice["name"])
    if kind in _MODES and choice.keys() <= {"type", "disable_parallel_tool_use"}:
        return _MODES[kind]
    if kind is None:
        raise ConfigurationError(f"tool_choice {dict(choice)!r} names no tool")
    return own


def _allowed(choice: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]) -> ToolChoice:
    """Return the choice of allowed tools, also from the flat form (Responses) and bare names."""
    inner = choice.get("allowed_tools")
    body = inner if isinstance(inner, Mapping) else choice
    allowed = [_allowed_tool(tool, tools) for tool in body.get("tools") or ()]
    if not allowed:
        raise ConfigurationError(f"tool_choice {dict(choice)!r} names no tool: 'none' allows none")
    return {"type": "allowed_tools", "allowed_tools": {"mode": body.get("mode") or "auto", "tools": allowed}}


def _allowed_tool(tool: Any, tools: Sequence[Mapping[str, Any]]) -> str | ToolChoice:
    """Return one allowed tool, from its name, a reference, or the tool itself."""
    if isinstance(tool, Mapping):
        return _choice_from_mapping(tool, tools)
    return _choice_by_name(tool if isinstance(tool, str) else str(getattr(tool, "name", None) or getattr(tool, "__name__", tool)), tools)
