"""The names of tools: as declared, or as a model spells them inexactly (wire quirk N-03)."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

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

    An exact match always wins. Else what servers and models add (white space, special tokens, known prefixes, numbers) is
    taken off step by step, and at last letter case, `-` and `_` are ignored, if that leaves one tool only.
    """
    if name in tools:
        return name
    candidates = list(_candidates(name))
    for candidate in candidates:
        if candidate in tools:
            return candidate
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
