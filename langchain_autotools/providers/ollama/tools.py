"""Tools and tool choices in /api/chat's form.

Wire facts: a tool is `{"type": "function", "function": {name, description, parameters}}`; there are no tools of the server's own and no
tool choice: whoever must not call gets no tools, and nobody can be forced. A choice is therefore kept in a form of our own (that of
chat completions), which `request` reads and does not send.
"""

from collections.abc import Mapping
from typing import Any

from ...errors import ConfigurationError
from ...executor.names import tool_name
from .._encode.choices import Tools, format_choice, unknown_choice
from .._encode.functions import declaring, function_of, heading
from .schemas import tool_parameters
from .wire import Choice, Tool

_MODES = {"any": "required", "required": "required", "auto": "auto", "none": "none"}


def format_tool(tool: Any) -> Tool:
    """Return a tool in the form of a request.

    Args:
        tool: A function, a pydantic class, a TypedDict, a `BaseTool`, a JSON schema with a title, or a dict in the form of
            OpenAI or Anthropic.

    Raises:
        ConfigurationError: The tool cannot be declared: it is another vendor's own, it has no name, or its schema is no object's.
    """
    with declaring(tool):
        function = None if _is_foreign(tool) else function_of(tool)
        if function is None or not function.get("name"):
            raise ConfigurationError("Ollama has no tools of its own, only functions with a name")
    declared = heading(function)
    declared["parameters"] = tool_parameters(function["name"], function.get("parameters") or {})
    return {"type": "function", "function": declared}


def _is_foreign(tool: Any) -> bool:
    """Whether a tool is one that another vendor executes: it has a type of its own, and no function."""
    if not isinstance(tool, Mapping) or tool.get("type") in (None, "function", "object"):
        return False
    return not {"function", "parameters", "input_schema", "properties"} & tool.keys()


# ---------------------------------------------------------------------------------------------- choices


def is_forced(choice: Choice | None) -> bool:
    """Whether a choice from `format_tool_choice` demands a call."""
    return choice not in (None, "auto", "none")


def format_tool_choice(choice: Any, tools: Tools) -> Choice | None:
    """Return a tool choice in one form, from any vendor's.

    Args:
        choice: None or False (the model decides), True, "any" or "required" (some tool), "auto", "none", the name of a declared
            tool, or a dict in the form of chat completions, Responses or Anthropic.
        tools: The declared tools, as `format_tool` made them.

    Returns:
        "auto", "none", "required", `{"type": "function", "function": {"name": ...}}`, or None where nothing was chosen.

    Raises:
        ConfigurationError: The choice names no declared tool, or is of no known form.
    """
    return format_choice(choice, tools, any_tool=lambda _: "required", named=_named, from_mapping=_from_mapping)


def _from_mapping(choice: Mapping[str, Any], tools: Tools) -> Choice:
    inner = choice.get("function")
    name = inner.get("name") if isinstance(inner, Mapping) else choice.get("name") or choice.get("type")
    return _named(str(name), tools)


def _named(choice: str, tools: Tools) -> Choice:
    """Return a choice given by one word; a tool's name takes precedence over a keyword."""
    names = [tool_name(tool) for tool in tools]
    if choice in names or (not tools and choice not in _MODES):
        return {"type": "function", "function": {"name": choice}}
    if choice in _MODES:
        return _MODES[choice]
    raise unknown_choice(choice, names, _MODES)
