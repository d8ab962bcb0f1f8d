"""A grid of the ways in which servers cut tool calls into stream fragments, and random streams for each of its cells.

A cell says, independently: where ids are, what the index is, where names are, how arguments are cut, how the fragments of
several calls lie in the chunks, and how a call without arguments is written. Most cells are nobody's habit; they are here
because a merger that is right in the common ones by luck is wrong in some of these.

    for case in streams(seed=1, per_cell=3):
        case.label, case.chunks, case.calls, case.reason

`reason` is None where the stream carries enough to tell its calls apart; else it says what is missing. It depends on the cell
alone (`Cell.reason`), not on what any merger makes of it.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Fragment = dict[str, Any]
Call = tuple[str, dict[str, Any]]

IDS = ("first", "all", "none", "empty", "empty after the first", "drifting")
INDEX = ("right", "missing", "all 0", "1-based", "gapped")
NAMES = ("first", "all", "empty after the first")
ARGUMENTS = ("fragments", "header then fragments", "whole", "cumulative", "object", "resent whole", "brace first", "{} placeholder")
LAYOUT = ("in sequence", "interleaved", "one chunk", "pairs")
NOTHING = ("{}", "")
"""How a call without arguments is written: as an empty object, or not at all."""
CALLS = ("several", "one")
"""How many calls the stream makes: with one, an index tells nothing."""

TOOLS = ("get", "get_weather", "search", "write_file")

_SINGLE = ("whole", "object")


@dataclass(frozen=True)
class Cell:
    """One way of cutting."""

    ids: str
    index: str
    names: str
    arguments: str
    layout: str
    nothing: str = "{}"
    calls: str = "several"

    @property
    def label(self) -> str:
        """The cell in words."""
        parts = f"ids {self.ids} / index {self.index} / names {self.names} / {self.arguments} / {self.layout}"
        return f"{parts} / no arguments as {self.nothing!r} / {self.calls}"

    @property
    def reason(self) -> str | None:
        """What is missing to tell the calls apart, or None. From what the fragments carry, never from results."""
        if self.ids == "all" or self._telling_index:
            return None
        if self._anonymous and self._written_as_nothing:
            return "a call without arguments, written as nothing, is the header that another server puts before the arguments"
        if self.arguments in _SINGLE:
            return None
        if self.ids == "drifting" and self.names == "all":
            return "every fragment looks like a header: an id of its own, and a name"
        if self._anonymous and self.names == "all" and self.arguments == "{} placeholder":
            return "a placeholder under a repeated name is a call without arguments before another call of its tool"
        if self.calls == "several" and self.layout in ("interleaved", "pairs"):
            return "nothing on a fragment says which of the calls that have begun it belongs to"
        if self.calls == "several" and self._begins_as_nothing:
            return "a call without arguments looks like one whose arguments are still to come, and they say no call"
        return None

    @property
    def _telling_index(self) -> bool:
        return self.calls == "several" and self.index in ("right", "1-based", "gapped")

    @property
    def _anonymous(self) -> bool:
        return self.ids in ("none", "empty")

    @property
    def _written_as_nothing(self) -> bool:
        return self.calls == "several" and self.nothing == "" and (self.names == "all" or self.arguments in _SINGLE)

    @property
    def _begins_as_nothing(self) -> bool:
        """Whether the first fragment of every call is what this cell writes for a call without arguments."""
        return self.arguments == "{} placeholder" or (self.arguments == "header then fragments" and self.nothing == "")


@dataclass(frozen=True)
class Case:
    """A stream of a cell: the fragments of each chunk, the calls that were meant, and what is missing to tell them (or None)."""

    cell: Cell
    label: str
    chunks: list[list[Fragment]]
    calls: list[Call]
    reason: str | None


def cells() -> list[Cell]:
    """The whole grid."""
    return list(itertools.starmap(Cell, itertools.product(IDS, INDEX, NAMES, ARGUMENTS, LAYOUT, NOTHING, CALLS)))


def streams(seed: int = 0, per_cell: int = 1, *, every: int = 1, alike: bool = False) -> Iterator[Case]:
    """Random streams of every cell, each of one call or of two to four.

    Args:
        seed: The same seed gives the same streams.
        per_cell: How many streams of each cell.
        every: Of how many cells one is taken; a prime meets every column of the grid.
        alike: Whether calls and fragments are small and much alike, so that fragments of one call often fit into another.
    """
    for number, cell in itertools.islice(enumerate(cells()), 0, None, every):
        for script in range(per_cell):
            draw = random.Random(f"{seed}/{number}/{script}")
            count = 1 if cell.calls == "one" else draw.choice((2, 2, 3, 4))
            meant = _alike_calls(draw, count) if alike else random_calls(draw, count)
            yield Case(cell, f"{cell.label} #{seed}.{script}", cut(cell, meant, draw), meant, cell.reason)


# ---------------------------------------------------------------------------------------------- scripts


def random_calls(draw: random.Random, count: int) -> list[Call]:
    """Calls of a few tools, some twice with different arguments, some without arguments; no two are equal."""
    calls: list[Call] = []
    while len(calls) < count:
        name = draw.choice([*TOOLS, *(call[0] for call in calls)])
        call = (name, {} if draw.random() < 0.15 else random_object(draw))
        if call not in calls:
            calls.append(call)
    return calls


_ALIKE: tuple[dict[str, Any], ...] = (
    *({}, {"a": 1}, {"b": 2}, {"a": {"b": 2}}, {"a": {"a": 1}}, {"a": [{"b": 2}]}),
    *({"a": []}, {"a": "{"}, {"a": "}"}, {"a": "{}"}, {"a": {}}, {"b": {}}),
)


def _alike_calls(draw: random.Random, count: int) -> list[Call]:
    names = TOOLS[: draw.randint(1, 3)]
    return draw.sample([(name, args) for name in names for args in _ALIKE], count)


def random_object(draw: random.Random, depth: int = 0) -> dict[str, Any]:
    """A JSON object with one to three entries, nested at most three deep."""
    return {draw.choice(_KEYS): _random_value(draw, depth) for _ in range(draw.randint(1, 3))}


_KEYS = ("q", "city", "a", "path", "naïve", "{", '"', "options")
_TEXTS = ("", "Paris", "a b", "{}", '{"q":1}', "}{", "\\", '\\"', "line\nbreak", "é€😀", "[1]", "</function>", "null", "\t", "{{", "x" * 30)


def _random_value(draw: random.Random, depth: int) -> Any:
    if depth < 2 and draw.random() < 0.25:
        return random_object(draw, depth + 1)
    if depth < 2 and draw.random() < 0.15:
        return [_random_value(draw, depth + 1) for _ in range(draw.randint(0, 3))]
    return draw.choice([*_TEXTS, 1, 0, -2.5, 1234567890, True, False, None, 1e-7])


# ---------------------------------------------------------------------------------------------- cutting


def cut(cell: Cell, calls: list[Call], draw: random.Random) -> list[list[Fragment]]:
    """The chunks of a stream that makes these calls in the way of the cell."""
    rows = [_fragments(cell, position, call, draw) for position, call in enumerate(calls)]
    if cell.layout == "one chunk":
        return [[fragment for row in rows for fragment in row]]
    if cell.layout == "pairs":
        pairs = [rows[start : start + 2] for start in range(0, len(rows), 2)]
        return [[one for one in step if one is not None] for pair in pairs for step in itertools.zip_longest(*pair)]
    if cell.layout == "interleaved":
        return [[fragment] for fragment in _shuffled(rows, draw)]
    return [[fragment] for row in rows for fragment in row]


def _shuffled(rows: list[list[Fragment]], draw: random.Random) -> list[Fragment]:
    """The rows mixed: each keeps its order, and calls begin in order."""
    waiting = [list(row) for row in rows]
    begun: int = 0
    mixed: list[Fragment] = []
    while any(waiting):
        number = draw.choice([number for number, row in enumerate(waiting[: begun + 1]) if row])
        begun = max(begun, number + 1)
        mixed.append(waiting[number].pop(0))
    return mixed


def _fragments(cell: Cell, position: int, call: Call, draw: random.Random) -> list[Fragment]:
    name, args = call
    pieces = _pieces(cell, args, draw)
    header, drift = f"call_{position}_{draw.randrange(10**6)}", draw.random() < 0.5
    fragments: list[Fragment] = []
    for number, piece in enumerate(pieces):
        fragment: Fragment = {} if cell.index == "missing" else {"index": _index(cell, position)}
        fragment |= _id(cell, header, number, f"{header}_{'z' if drift else number}")
        if not number:
            fragment["type"] = "function"
        fragment["function"] = {**_name(cell, name, number), "arguments": piece}
        fragments.append(fragment)
    return fragments


def _index(cell: Cell, position: int) -> int:
    return {"right": position, "all 0": 0, "1-based": position + 1, "gapped": 2 + 3 * position}[cell.index]


def _id(cell: Cell, header: str, number: int, drifted: str) -> Fragment:
    if cell.ids == "none" or (number and cell.ids == "first"):
        return {}
    if cell.ids == "empty" or (number and cell.ids == "empty after the first"):
        return {"id": ""}
    return {"id": drifted if number and cell.ids == "drifting" else header}


def _name(cell: Cell, name: str, number: int) -> Fragment:
    if not number or cell.names == "all":
        return {"name": name}
    return {} if cell.names == "first" else {"name": ""}


def _pieces(cell: Cell, args: dict[str, Any], draw: random.Random) -> list[Any]:
    """The arguments of one call, fragment by fragment."""
    text = json.dumps(args, ensure_ascii=draw.random() < 0.5, separators=draw.choice([(",", ":"), (", ", ": ")]))
    if not args and cell.nothing == "":
        return [""] if cell.arguments != "{} placeholder" else ["{}"]
    match cell.arguments:
        case "whole":
            return [text]
        case "object":
            return [args]
        case "header then fragments":
            return ["", *_cut(text, draw)]
        case "brace first":
            return [text[0], *_cut(text[1:], draw)]
        case "cumulative":
            return list(itertools.accumulate(_cut(text, draw)))
        case "resent whole":
            return [*_cut(text, draw), text]
        case "{} placeholder":
            return [draw.choice(["{}", {}]), *([] if not args else _cut(text, draw))]
        case _:
            return _cut(text, draw)


def _cut(text: str, draw: random.Random) -> list[str]:
    """A text in one to six pieces."""
    edges = sorted(draw.sample(range(1, len(text)), min(len(text) - 1, draw.randint(0, 5))))
    return [text[start:end] for start, end in itertools.pairwise([0, *edges, len(text)])]
