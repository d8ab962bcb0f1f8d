"""Conversion of a request's tools, with the choice among them, to the form of a model's wire.

A choice either *asks* (call some tool, call this one), which holds for the first turn only: kept, it would never let a run end.
Or it *restricts* (no tool, these tools only, no calls side by side), which holds on every turn. Only a wire knows its own words
for it; the words here are those that a model uses which does not say otherwise.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable

from ..errors import ConfigurationError
from ..executor.names import OtherwiseDeclared, tool_name, with_tool_keys
from ..executor.tools import SourceTool, ToolSource, declarable, without_equal_names

_logger = logging.getLogger("langchain_autotools")
_FREE = (None, "auto")
_OF_FUNCTIONS = frozenset({"name", "title", "parameters", "function_declarations", "functionDeclarations"})


@dataclass(frozen=True)
class ToolChoice:
    """A tool choice in a wire's form, and its effect on a run.

    Attributes:
        asked: The choice in the first request; None: none.
        lasting: The choice in every later request; None: none.
        allowed: Names of the tools that may be called, on every turn; None for all.
        forced: Whether the first turn must call a tool.
        single: Whether several calls in one turn are ruled out: the executor runs them one after another, whatever the server sends.
    """

    asked: Any = None
    lasting: Any = None
    allowed: Collection[str] | None = None
    forced: bool = False
    single: bool = False

    def within(self, outer: "ToolChoice") -> "ToolChoice":
        """Return this choice within an outer one, from a place farther from the call: the restrictions of both hold."""
        if self.asked is None or outer.allowed is None:
            return outer if self.asked is None else self
        is_free = not self.forced and self.allowed is None
        if is_free or not outer.allowed:
            return ToolChoice(outer.lasting, outer.lasting, outer.allowed)
        if self.allowed is None:
            return replace(self, lasting=outer.lasting, allowed=outer.allowed)
        return replace(self, allowed=[name for name in self.allowed if name in outer.allowed])


def read_choice(choice: Any) -> ToolChoice:
    """Parse a choice: a word, a mapping for one tool, or one of `type` "allowed_tools" (flat, or nested under that key)."""
    word = choice.get("type") if isinstance(choice, Mapping) else choice
    if isinstance(word, str | None) and word in _FREE:
        return ToolChoice(choice, choice)
    if word == "none":
        return ToolChoice(choice, choice, ())
    if word == "allowed_tools" and isinstance(choice, Mapping):
        return _read_allowed(choice)
    return ToolChoice(choice, forced=True)


def _read_allowed(choice: Mapping[str, Any]) -> ToolChoice:
    nested = choice.get("allowed_tools")
    body = nested if isinstance(nested, Mapping) else choice
    tools: Sequence[Any] = body.get("tools") or ()
    free = {**body, "mode": "auto"}
    lasting = {**choice, "allowed_tools": free} if body is nested else free
    names = [tool_name(tool) if isinstance(tool, Mapping) else str(tool) for tool in tools]
    return ToolChoice(choice, lasting, names, forced=body.get("mode") in ("required", "any"))


# ---------------------------------------------------------------------------------------------- declarations


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


def format_tools(model: Formatter, tools: Iterable[Any], *, strict: bool | None = None, checked: bool = False) -> list[Mapping[str, Any]]:
    """Return the tools in the wire's form, optionally omitting and logging those that the vendor rejects.

    Args:
        model: The model whose wire it is.
        tools: Functions, classes, `BaseTool`s, models and agents, sources of tools, or dicts in the wire's form.
        strict: Whether the vendor must hold to the schemas; None leaves that to the vendor.
        checked: Whether they are an executor's, so that no argument of theirs is looked at again.

    Raises:
        ConfigurationError: A tool cannot be declared.
    """
    found: list[Mapping[str, Any]] = []
    offered: list[Mapping[str, Any]] = []
    given = listed(tools)
    for number, tool in enumerate(given):
        if isinstance(tool, ToolSource):
            again = any(one is tool for one in given[:number])
            made = [] if again else format_tools(model, tool.tools(), strict=strict)
            found += made
            offered += made
            continue
        try:
            declared = model.format_tool(tool if checked else declarable(tool), strict=strict)
        except ConfigurationError as error:
            if not (model.skip_invalid_tools or isinstance(tool, SourceTool)):
                raise
            _logger.warning("a tool is left out: %s", error)
        else:
            has_others = isinstance(tool, SourceTool) and tool.other_names
            found.append(OtherwiseDeclared(declared, tool.other_names) if has_others else declared)
    return without_equal_names(found, offered, tool_name) if offered else found


def format_request_tools(model: Formatter, tools: Sequence[Any] | None) -> list[Mapping[str, Any]]:
    """Return the `tools` of one call in the wire's form; a dict is assumed to have it."""
    found: list[Mapping[str, Any]] = []
    offered: list[Mapping[str, Any]] = []
    for tool in listed(tools or ()):
        made = [tool] if isinstance(tool, Mapping) else format_tools(model, [tool])
        found += made
        offered += made if isinstance(tool, ToolSource) else ()
    return without_equal_names(found, offered, tool_name) if offered else found


@contextmanager
def declaring(tool: Any) -> Iterator[None]:
    """Add the tool's name to any error raised in the body.

    Raises:
        ConfigurationError: Something did.
    """
    try:
        yield
    except Exception as error:
        raise ConfigurationError(f"tool {_label(tool)!r} cannot be declared: {error}") from error


def _label(tool: Any) -> str:
    if isinstance(tool, Mapping):
        return str(tool.get("name") or tool.get("title") or tool)
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", None) or tool)


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


def format_tool_choice(model: Formatter, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
    """Return the `tool_choice` of one call in the wire's form.

    Args:
        model: The model whose wire it is.
        choice: The choice; None for none.
        tools: The tools of the request, in the wire's form. Objects, which a partner's class converts itself, have no other names.
    """
    named = [tool for tool in tools if isinstance(tool, Mapping)]
    return None if choice is None else model.format_tool_choice(with_tool_keys(choice, named), named)
