"""The names of tools: as declared, or as a model spells them inexactly (wire quirk N-03)."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar, cast

_T = TypeVar("_T")

# `functions.f`, `tools.f`, `default_api:f`; `mcp_mcp_f`. The separator is required: without it real names would be cut.
_PREFIX = re.compile(r"(?:(?:functions|function|tools|tool|default_api)[.:/]|mcp_)")
_NUMBER = re.compile(r":\d+$")  # `functions.f:0`
_MARKER = "<|"  # `f<|channel|>commentary`
_LONGEST = 1000  # no vendor takes a name of more than 128 characters; what is longer means no tool
_SUFFIX = re.compile(r"(?:[_-]tool|(?<=[a-z0-9])Tool)$")  # `f_tool`, `GetWeatherTool`


def own_name(tool: Mapping[str, Any]) -> str | None:
    """Return the name of a declared tool, in any wire's form; None for a builtin tool without a name."""
    nested = tool.get("function") or tool.get("custom") or tool.get("toolSpec")
    inner = nested if isinstance(nested, Mapping) else tool
    return str(inner["name"]) if inner.get("name") else None


def tool_name(tool: Mapping[str, Any]) -> str:
    """Return the name of a declared tool; for a builtin tool without one, its type."""
    return own_name(tool) or str(tool.get("type") or "")


def find_name(name: str, tools: Mapping[str, _T]) -> str | None:
    """Return the key of `tools` that `name` refers to; None if it is unknown or ambiguous.

    An exact match always wins, then another name of a tool (`other_names`). Else what servers and models add (white space, special
    tokens, known prefixes, numbers) is taken off step by step, and at last letter case, `-` and `_` are ignored, if that leaves one
    tool only.
    """
    if name in tools:
        return name
    others = _by_other_name(tools)
    candidates = list(_candidates(name))
    for candidate in (name, *candidates):
        if candidate in tools:
            return candidate
        if candidate in others:
            return others[candidate][0] if len(others[candidate]) == 1 else None
    folded = Counter(map(_folded, tools)) if candidates else {}
    for candidate in map(_folded, candidates):
        if candidate in folded:
            return next(key for key in tools if _folded(key) == candidate) if folded[candidate] == 1 else None
    return None


def _candidates(name: str) -> Iterator[str]:
    text = name.split(_MARKER, 1)[0].strip()
    if not 0 < len(text) <= _LONGEST:
        return
    yield text
    text = _NUMBER.sub("", text)
    while text:
        yield text
        if _SUFFIX.search(text):
            yield _SUFFIX.sub("", text)
        prefix = _PREFIX.match(text)
        text = text[prefix.end() :].strip() if prefix else ""


def _folded(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "")


# ---------------------------------------------------------------------------------------------- other names
# A tool whose owner calls it by a name that no vendor takes is declared under another one. Whoever knows it by the owner's may use that.


class OtherwiseNamed:
    """A tool, or its declaration, that is known by `other_names` besides the name by which a model is told of it."""


class OtherwiseDeclared(dict[str, Any], OtherwiseNamed):
    """The declaration of a tool with other names, in a wire's form.

    Attributes:
        other_names: The other names of the tool.
    """

    def __init__(self, declaration: Mapping[str, Any], other_names: Collection[str]) -> None:
        super().__init__(declaration)
        self.other_names = other_names

    def __reduce__(self) -> Any:
        return OtherwiseDeclared, (dict(self), self.other_names)


def other_names(tool: object) -> Collection[str]:
    """Return the names of a tool, or of its declaration, besides the one by which a model is told of it."""
    return cast("Any", tool).other_names if isinstance(tool, OtherwiseNamed) else ()


def _by_other_name(tools: Mapping[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, tool in tools.items():
        for name in other_names(tool):
            found.setdefault(name, []).append(key)
    return found


def tool_keys(names: Iterable[str], tools: Mapping[str, Any], *, exact_first: bool = True) -> list[str]:
    """Return the keys of `tools` that names in a rule mean: the key itself, else those of all tools that have it as another name.

    Args:
        names: The names. One that no tool has stays as it is.
        tools: The tools.
        exact_first: Whether a key means that tool alone; else also the tools that have it as another name.
    """
    given = list(names)
    if exact_first and all(name in tools for name in given):
        return given
    others = _by_other_name(tools)
    found: list[str] = []
    for name in given:
        meant = [] if exact_first and name in tools else others.get(name, [])
        found += meant if meant and name not in tools else [name, *meant]
    return found


# What a tool choice may say in place of a name, in any vendor's form.
_WORDS = frozenset({"auto", "none", "any", "required", "validated"})
_NO_NAMES = frozenset({"type", "mode"})


def with_tool_keys(choice: Any, tools: Iterable[Mapping[str, Any]]) -> Any:
    """Return a tool choice, in any form, with the names of declared tools in place of their other names."""
    declared = {tool_name(tool): tool for tool in tools}
    others = {name: keys[0] for name, keys in _by_other_name(declared).items() if len(keys) == 1 and name not in declared}
    return _renamed(choice, {name: key for name, key in others.items() if name not in _WORDS}) if others else choice


def _renamed(choice: Any, keys: Mapping[str, str]) -> Any:
    if isinstance(choice, str):
        return keys.get(choice, choice)
    if isinstance(choice, Mapping) and choice.get("type") != "mcp":  # the vendor's own way to such tools
        return {name: value if name in _NO_NAMES else _renamed(value, keys) for name, value in choice.items()}
    return [_renamed(one, keys) for one in choice] if isinstance(choice, list | tuple) else choice
