"""Validation of functions as tools: signatures that no model could call are rejected.

A model gives arguments by name, in one JSON object, and LangChain keeps some names for itself.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from ..errors import ConfigurationError

_TAKEN = ("args", "kwargs")
_INSTEAD = "wrap it in a function whose parameters have names"


def check_signature(tool: object) -> None:
    """Raise for a function, or a tool made of one, that cannot be called with arguments by name.

    Raises:
        ConfigurationError: It cannot; the text says why.
    """
    if isinstance(tool, StructuredTool):
        function = tool.func or tool.coroutine
        why = None if function is None else _obstacle_of_tool(tool, function)
        name = tool.name
    elif isinstance(tool, BaseTool | Mapping | type) or not callable(tool):
        return
    else:
        why = _obstacle(tool)
        name = str(getattr(tool, "__qualname__", None) or getattr(tool, "__name__", None) or tool)
    if why is not None:
        raise ConfigurationError(f"{name!r} cannot be called as a tool: {why}")


def _obstacle_of_tool(tool: StructuredTool, function: Callable[..., Any]) -> str | None:
    """Return the obstacle in a tool's function, unless its schema hides or renames the parameter."""
    if _obstacle(function) is None:
        return None
    schema = tool.args_schema
    shown = set(schema.get("properties") or ()) if isinstance(schema, Mapping) else set(tool.args)
    if any(name.startswith("v__") for name in shown):  # pydantic's substitutes for the names that it keeps for itself
        return _obstacle(function)
    return _obstacle(function, shown)


def _obstacle(function: Callable[..., Any], shown: Collection[str] | None = None) -> str | None:
    """Return why a function cannot be called with arguments by name; None if it can.

    Args:
        function: The function.
        shown: The arguments that a model is told of, where these are not simply all.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # without a signature there is no schema either, which is said elsewhere
        return None
    first = parameters[0].name if parameters else ""
    if _is_in_class(function) and first in ("self", "cls") and first not in (shown or ()):
        return "it is a method without its object: give that of an object, as in [thing.method]"
    for one in parameters:
        if shown is not None and one.name not in shown:
            continue
        if one.kind is one.POSITIONAL_ONLY:
            return f"its parameter {one.name!r} cannot be given by name: {_INSTEAD}"
        if one.kind is one.VAR_POSITIONAL:
            return f"a model gives arguments by name, and *{one.name} takes none: {_INSTEAD}"
        if shown is None and one.kind is not one.VAR_KEYWORD and one.name in _TAKEN:
            return f"LangChain keeps the name {one.name!r} for itself: give the parameter another"
    return None


def _is_in_class(function: Callable[..., Any]) -> bool:
    """Whether a plain function is defined in a class's body."""
    return inspect.isfunction(function) and "." in function.__qualname__.rpartition("<locals>.")[2]
