"""Normalized fragments of tool calls, from any wire's form.

Wire shapes (wire quirks A-10, A-11, A-26, A-28, N-02): the nested `{index, id, type, function: {name, arguments}}`, the flat
`{index, id, name, args | arguments}`, the id or index inside `function`, the index as a string, arguments as an object,
and `""`, `"null"` or `"None"` where nothing is meant.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .arguments import as_text, spell_text

_NOTHING = frozenset({"", "null", "None"})
_KNOWN = frozenset({"id", "index", "type", "function", "name", "args", "arguments", "error"})
_ARGUMENTS = frozenset({"function", "args", "arguments"})
_KINDS = (None, "", "function", "custom", "function_call", "tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call")


@dataclass(slots=True)
class Fragment:
    """A fragment of a call.

    Attributes:
        id: The id it names, None where it names none.
        index: The index it names.
        name: The tool's name or a part of it, without white space around it.
        text: Its part of the argument text; an object on the wire as its JSON text.
        extra: Keys that are no part of a call as this package knows it, which go back to the server with the call; and a `type` that is no
            word for a function.
        twin: The number of equal entries before it in its list, which are distinct calls (`read_list`).
        header: The keys that it has beside its arguments, the `type` with its value; nothing where it has no name, or where it comes from
            a message that says again what the stream has said.
    """

    id: str | None
    index: int | None
    name: str | None
    text: str
    extra: Mapping[str, Any] | None = None
    twin: int = 0
    header: frozenset[str] = frozenset()


def is_header(entry: Fragment | str) -> bool:
    """Whether a fragment has an id or a name; a string has neither."""
    return not isinstance(entry, str) and (entry.id is not None or entry.name is not None)


def text_at(raw: Mapping[str, Any]) -> tuple[int, str] | None:
    """Return the index and the text of a fragment that brings nothing but text for the call at an index, as most do; None for others."""
    if raw.__class__ is not dict or len(raw) != 2:
        return None
    function, index = raw.get("function"), raw.get("index")
    if function.__class__ is not dict or len(function) != 1 or index.__class__ is not int:
        return None
    text = function.get("arguments")
    return (index, text) if text.__class__ is str else None


def read_fragment(raw: Mapping[str, Any]) -> Fragment:
    """Return a raw dict as a `Fragment`. Accepts any content."""
    inner = raw.get("function")
    if not isinstance(inner, Mapping):
        inner = raw
    arguments = inner.get("arguments")
    if arguments is None:
        arguments = inner.get("args")
    name = _text_or_none(inner.get("name")) or _text_or_none(raw.get("name"))
    return Fragment(
        id=_text_or_none(raw.get("id")) or _text_or_none(inner.get("id")),
        index=_index(raw.get("index", inner.get("index"))),
        name=name,
        text=as_text(arguments),
        extra=_extra(raw) if raw.keys() - _KNOWN or raw.get("type") not in _KINDS else None,
        header=frozenset() if name is None else _header(raw, inner),
    )


def _extra(raw: Mapping[str, Any]) -> dict[str, Any]:
    extra = {key: value for key, value in raw.items() if key not in _KNOWN and value is not None}
    return extra if raw.get("type") in _KINDS else {**extra, "type": raw["type"]}


def _header(raw: Mapping[str, Any], inner: Mapping[str, Any]) -> frozenset[str]:
    keys = {"name"}
    for key, value in raw.items():
        if value is not None and key not in _ARGUMENTS:
            keys.add(f"type {value}" if key == "type" else key)
    for key in ("id", "index"):
        if inner.get(key) is not None:
            keys.add(key)
    return frozenset(keys)


def read_list(raws: Sequence[Mapping[str, Any]]) -> list[Fragment]:
    """Return the fragments of one list. Equal whole calls, without ids or each with its own, are distinct calls.

    A server that sends a call once more does so in a later chunk, or (where chunks were put together on the way) without the `type`
    that a call begins with.
    """
    fragments = [read_fragment(raw) for raw in raws]
    alike: dict[tuple[int | None, str, str, str], list[str | None]] = {}
    for raw, fragment in zip(raws, fragments, strict=True):
        spelled = spell_text(fragment.text)
        if fragment.name is None or spelled is None:
            continue
        ids = alike.setdefault((fragment.index, str(raw.get("type")), fragment.name, spelled), [])
        if not any(ids) if fragment.id is None else None not in ids and fragment.id not in ids:
            fragment.twin = len(ids)
        ids.append(fragment.id)
    return fragments


def _text_or_none(value: object) -> str | None:
    """Return a name or an id; None if it is missing."""
    if not isinstance(value, str):
        return None if value is None or isinstance(value, bool) else str(value)
    value = value.strip()
    return None if value in _NOTHING else value


def _index(value: Any) -> int | None:
    """Return an index, also from text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None
