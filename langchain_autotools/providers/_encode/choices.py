"""Validation and conversion of tool choices in every spelling, for a vendor's `format_tool_choice`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

from ...errors import ConfigurationError

_Choice = TypeVar("_Choice")
Tools = Sequence[Mapping[str, Any]]
"""Declared tools, in a wire's form."""


def format_choice(
    choice: Any,
    tools: Tools,
    *,
    any_tool: Callable[[Tools], _Choice],
    named: Callable[[str, Tools], _Choice],
    from_mapping: Callable[[Mapping[str, Any], Tools], _Choice],
    forms: str = "a string, a bool or a dict",
) -> _Choice | None:
    """Return a tool choice in a wire's form; None if nothing was chosen.

    Args:
        choice: None or False (the vendor decides), True (some tool), a word or a tool's name, or a dict.
        tools: The declared tools.
        any_tool: The choice of some tool.
        named: The choice by one word.
        from_mapping: The choice that a dict says.
        forms: The accepted forms, for the error's text.

    Raises:
        ConfigurationError: The choice names no declared tool, or is of no known form.
    """
    if choice is None or choice is False:
        return None
    if choice is True:
        return any_tool(tools)
    if isinstance(choice, str):
        return named(choice, tools)
    if isinstance(choice, Mapping):
        return from_mapping(choice, tools)
    raise ConfigurationError(f"tool_choice must be {forms}, not {choice!r}")


def unknown_choice(choice: str, names: Sequence[str], words: Iterable[str]) -> ConfigurationError:
    """Return the error for a tool choice that is neither a declared tool's name nor a known word."""
    near = get_close_matches(choice, [*names, *words], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return ConfigurationError(f"tool_choice {choice!r} is none of the declared tools {names}{hint}")
