"""How servers of the OpenAI family cut the tool calls of a turn into stream fragments: one function per habit.

A style takes wire calls (`{id, type, function: {name, arguments}}`) and gives the fragments of each chunk. Each style carries enough to
tell the calls apart; the numbers are those of docs/wire_quirks.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

WireCall = dict[str, Any]
Chunks = list[list[dict[str, Any]]]


def _pieces(text: str, size: int = 5) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _header(call: WireCall, **more: Any) -> dict[str, Any]:
    known = {"id": call["id"], "type": "function"}
    return {**more, **known, **_extra(call), "function": {"name": call["function"]["name"], "arguments": ""}}


def _extra(call: WireCall) -> dict[str, Any]:
    return {key: value for key, value in call.items() if key not in {"id", "type", "function"}}


def _fragment(text: str, **more: Any) -> dict[str, Any]:
    return {**more, "function": {"arguments": text}}


def _parts(position: int, call: WireCall) -> Chunks:
    rest = [[_fragment(piece, index=position)] for piece in _pieces(call["function"]["arguments"])]
    return [[_header(call, index=position)], *rest]


def standard(calls: Sequence[WireCall]) -> Chunks:
    """A header with id and name, then arguments by index (A-01)."""
    return [chunk for position, call in enumerate(calls) for chunk in _parts(position, call)]


def interleaved(calls: Sequence[WireCall]) -> Chunks:
    """All headers in one chunk, then a fragment of each call in turn (A-01)."""
    rows = zip_longest(*(_parts(position, call) for position, call in enumerate(calls)))
    return [[entry for chunk in row if chunk for entry in chunk] for row in rows]


def whole(calls: Sequence[WireCall]) -> Chunks:
    """Each call complete in one chunk (A-02)."""
    return [[{"index": position, **call}] for position, call in enumerate(calls)]


def one_chunk(calls: Sequence[WireCall]) -> Chunks:
    """All calls complete in the same chunk (A-06)."""
    return [[{"index": position, **call} for position, call in enumerate(calls)]]


def empty_ids(calls: Sequence[WireCall]) -> Chunks:
    """Complete calls, ids empty, all at index 0, in one chunk (A-06)."""
    return [[{**call, "index": 0, "id": ""} for call in calls]]


def no_ids(calls: Sequence[WireCall]) -> Chunks:
    """An index, never an id (A-05)."""
    return [[{key: value for key, value in entry.items() if key != "id"} for entry in chunk] for chunk in standard(calls)]


def no_index(calls: Sequence[WireCall]) -> Chunks:
    """An id on the header, no index anywhere, calls in sequence (A-03)."""
    return [[{key: value for key, value in entry.items() if key != "index"} for entry in chunk] for chunk in standard(calls)]


def index_zero(calls: Sequence[WireCall]) -> Chunks:
    """Different ids on the headers, everything at index 0, calls in sequence (A-09)."""
    return [[{**entry, "index": 0} for entry in chunk] for chunk in standard(calls)]


def one_based(calls: Sequence[WireCall]) -> Chunks:
    """Indices that begin at 1 and leave gaps (A-19)."""
    return [[{**entry, "index": 1 + 2 * entry["index"]} for entry in chunk] for chunk in standard(calls)]


def id_repeated(calls: Sequence[WireCall]) -> Chunks:
    """The id on every fragment (A-12)."""
    return [[{**entry, "id": calls[entry["index"]]["id"]} for entry in chunk] for chunk in standard(calls)]


def id_and_name_repeated(calls: Sequence[WireCall]) -> Chunks:
    """Id and name on every fragment (A-13)."""
    return [
        [{**entry, "function": {"name": calls[entry["index"]]["function"]["name"], **entry["function"]}} for entry in chunk]
        for chunk in id_repeated(calls)
    ]


def empty_after_first(calls: Sequence[WireCall]) -> Chunks:
    """Fragments whose id and name are empty strings (A-10)."""
    filled = [[{**entry, "id": entry.get("id", "")} for entry in chunk] for chunk in standard(calls)]
    return [[{**entry, "function": {"name": "", **entry["function"]}} for entry in chunk] for chunk in filled]


def cumulative(calls: Sequence[WireCall]) -> Chunks:
    """Every fragment repeats the arguments so far (B-08)."""
    chunks: Chunks = []
    for position, call in enumerate(calls):
        text = call["function"]["arguments"]
        chunks.append([_header(call, index=position)])
        chunks += [[_fragment(text[: end + 5], index=position)] for end in range(0, len(text), 5)]
    return chunks


def resent(calls: Sequence[WireCall]) -> Chunks:
    """Fragments, then all arguments once more (B-09)."""
    again = [[_fragment(call["function"]["arguments"], index=position)] for position, call in enumerate(calls)]
    return [chunk for position, call in enumerate(calls) for chunk in [*_parts(position, call), again[position]]]


def placeholder(calls: Sequence[WireCall]) -> Chunks:
    """A `{}` in the header, then the real arguments (B-05)."""
    chunks = standard(calls)
    for chunk in chunks:
        for entry in chunk:
            if "id" in entry and calls[entry["index"]]["function"]["arguments"] != "{}":
                entry["function"]["arguments"] = "{}"
    return chunks


def objects(calls: Sequence[WireCall]) -> Chunks:
    """Arguments as a JSON object where they parse to one (B-04)."""
    return [
        [{**entry, "function": {**entry["function"], "arguments": _object(entry["function"]["arguments"])}}] for [entry] in whole(calls)
    ]


def _object(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


STYLES: dict[str, Callable[[Sequence[WireCall]], Chunks]] = {
    style.__name__: style
    for style in (
        standard, interleaved, whole, one_chunk, empty_ids, no_ids, no_index, index_zero, one_based,
        id_repeated, id_and_name_repeated, empty_after_first, cumulative, resent, placeholder, objects,
    )
}  # fmt: skip
