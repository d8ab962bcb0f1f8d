"""Conversion of tools and tool choices to the form of a model's wire."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable

from ..errors import ConfigurationError
from ..executor.names import own_name
from ..executor.signatures import check_signature
from ..executor.sources import GivenAsTool, ToolSource
from ..executor.tools import as_tool
from ..executor.wrapped import tool_inside
from .tool_choice import ToolChoice

_logger = logging.getLogger("langchain_autotools")


_OF_FUNCTIONS = frozenset({"name", "title", "parameters", "function_declarations", "functionDeclarations"})


class Formatter(Protocol):
    """The interface of a model that converts tools to its wire's form, and of its setting for invalid tools."""

    skip_invalid_tools: bool

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """Return a tool's declaration in the wire's form."""

    def format_tool_choice(self, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
        """Return a tool choice in the wire's form."""

    def answers_in_blocks(self, tools: Sequence[Mapping[str, Any]]) -> bool:
        """Whether replies to requests with these tools always have a list of blocks as content."""

    def client_tool_names(self, tools: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
        """Return the names of the vendor's tools that run on the caller's machine, each with the kind of its handlers."""

    def read_added_tools(self, messages: Sequence[BaseMessage]) -> set[str]:
        """The names of the tools that messages declare by themselves."""

    def read_tool_choice(self, choice: Any) -> ToolChoice:
        """Return the effect of a wire choice on a run."""

    def take_tool_choice(self, keywords: dict[str, Any]) -> Any:
        """Remove the tool choice from the keywords of a call and return it."""


def format_tools(model: Formatter, tools: Iterable[Any], *, strict: bool | None = None) -> list[Mapping[str, Any]]:
    """Return the tools in the wire's form, optionally omitting and logging those that the vendor rejects.

    Args:
        model: The model whose wire it is.
        tools: Functions, classes, `BaseTool`s, models and agents, sources of tools, or dicts in the wire's form.
        strict: Whether the vendor must hold to the schemas; None leaves that to the vendor.

    Raises:
        ConfigurationError: A tool cannot be declared.
    """
    found: list[Mapping[str, Any]] = []
    for tool in listed(tools):
        if isinstance(tool, ToolSource):
            found += format_tools(model, tool.tools(), strict=strict)
            continue
        try:
            inside = as_tool(tool) if isinstance(tool, GivenAsTool) else tool_inside(tool) or tool
            check_signature(inside)
            found.append(model.format_tool(inside, strict=strict))
        except ConfigurationError as error:
            if not model.skip_invalid_tools:
                raise
            _logger.warning("a tool is left out: %s", error)
    return found


def listed(tools: Any) -> list[Any]:
    """Return the tools that a call declares, read once.

    Raises:
        ConfigurationError: They are no list.
    """
    if isinstance(tools, str | Mapping | Runnable) or not isinstance(tools, Iterable):
        raise ConfigurationError(f"tools must be a list of tools, not {type(tools).__name__}")
    return list(tools)


def is_builtin(tool: object) -> bool:
    """Whether a tool is one that the vendor executes: a dict with its own type, or without a function's name."""
    if not isinstance(tool, Mapping) or tool.get("type") == "function" or "function" in tool:
        return False
    return "type" in tool or not _OF_FUNCTIONS & tool.keys()


def format_request_tools(model: Formatter, tools: Sequence[Any] | None) -> list[Mapping[str, Any]]:
    """Return the `tools` of one call in the wire's form; a dict is assumed to have it."""
    return [one for tool in listed(tools or ()) for one in ([tool] if isinstance(tool, Mapping) else format_tools(model, [tool]))]


def format_tool_choice(model: Formatter, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
    """Return the `tool_choice` of one call in the wire's form.

    Args:
        model: The model whose wire it is.
        choice: The choice; None for none.
        tools: The tools of the request, in the wire's form.
    """
    return None if choice is None else model.format_tool_choice(choice, tools)


def distinct_tools(tools: Iterable[Any]) -> list[Any]:
    """Return the declared tools, each once: no vendor accepts two with one name."""
    distinct: dict[object, Any] = {}
    for tool in tools:
        name = own_name(tool) if isinstance(tool, Mapping) else None
        first = distinct.setdefault(name or object(), tool)
        if first is not tool and _essence(first) != _essence(tool):
            raise ConfigurationError(f"two tools are named {name!r}: the model could not tell which one it calls; rename one")
    return list(distinct.values())


def _essence(value: Any) -> Any:
    """Return a declaration without the titles that pydantic derives from names, which some forms of a tool lack."""
    if isinstance(value, Mapping):
        return {key: _essence(inner) for key, inner in value.items() if not (key == "title" and isinstance(inner, str))}
    return [_essence(inner) for inner in value] if isinstance(value, list) else value
