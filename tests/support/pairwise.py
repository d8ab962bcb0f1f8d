"""Fewer cases than a product has: every two values of different axes meet in one of them."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import pytest

Case = Mapping[Any, Hashable]


def pairwise(cases: Sequence[Case]) -> set[int]:
    """Return the positions of cases that hold together every pair of values that any of them holds.

    The case with the most pairs that are still missing is next, the first of equal ones: the same cases give the same choice.
    """
    pairs = [frozenset(combinations(sorted(case.items(), key=lambda axis: axis[0]), 2)) for case in cases]
    missing = set().union(*pairs)
    chosen: set[int] = set() if missing else set(range(len(cases)))
    while missing:
        best = max(range(len(cases)), key=lambda place: len(pairs[place] & missing))
        chosen.add(best)
        missing -= pairs[best]
    return chosen


def by_turns(*axes: Iterable[Any]) -> list[Any]:
    """Return the cases of a product as pytest's parameters: each value of the first axis meets half of the others by default, by turns."""
    cases = enumerate(product(*(enumerate(axis) for axis in axes)))
    rows = [([value for _, value in case], sum(place for place, _ in case) % 2) for _, case in cases]
    return [pytest.param(*values, marks=pytest.mark.exhaustive if later else ()) for values, later in rows]


WAYS = ("invoke", "stream", "ainvoke", "astream")
OPPOSITES = (("stream", "ainvoke"), ("invoke", "astream"))
"""Two ways each: a stream and a whole body, in a thread and on an event loop."""
OWN_WIRES = ("openai-chat", "openai-responses", "anthropic", "ollama", "google")
"""The rows whose wire is read and written by code of their own. The others are data for it: an address, a dialect."""
_FEW = 3
_MANY = 8
"""So many cases of two axes stay a whole product."""


def further(cases: Sequence[tuple[Sequence[str], str | None]], turn: int) -> set[int]:
    """Return the positions of a function's cases that show nothing which another of its cases does not show too.

    A case is the parts of its id, and the wire that it runs over, if any. The wires that have code of their own stay, and one of the
    others. What a case has beside its way meets one way, by turns, or two opposite ones where that is little. Of three other axes every two
    values meet, of two every second pair where there are many. `turn` is another number for the next function.
    """
    kept = _rows(cases, turn)
    kept = _ways([(place, cases[place][0]) for place in kept], turn)
    return {*range(len(cases))} - _products([(place, cases[place][0]) for place in kept])


def _rows(cases: Sequence[tuple[Sequence[str], str | None]], turn: int) -> list[int]:
    shared = list(dict.fromkeys(wire for _, wire in cases if wire is not None and wire not in OWN_WIRES))
    has_own = any(wire in OWN_WIRES for _, wire in cases)
    kept = {*OWN_WIRES, None, shared[turn % len(shared)]} if shared and has_own else {wire for _, wire in cases}
    return [place for place, (_, wire) in enumerate(cases) if wire in kept]


def _ways(cases: Sequence[tuple[int, Sequence[str]]], turn: int) -> list[int]:
    groups: dict[tuple[str, ...], dict[str, int]] = {}
    for place, ids in cases:
        way = next((part for part in ids if part in WAYS), "")
        groups.setdefault(tuple(part for part in ids if part not in WAYS), {})[way] = place
    if sum(map(len, groups.values())) < len(cases):  # two ways in one case, or ids that are not unique
        return [place for place, _ in cases]
    return [place for number, group in enumerate(groups.values()) for place in _of_ways(group, turn + number, few=len(groups) < _FEW)]


def _of_ways(group: Mapping[str, int], turn: int, *, few: bool) -> Iterable[int]:
    if few and len(group) == len(WAYS):
        return [group[way] for way in OPPOSITES[turn % len(OPPOSITES)]]
    return list(group.values()) if few else [list(group.values())[turn % len(group)]]


def _products(cases: Sequence[tuple[int, Sequence[str]]]) -> set[int]:
    axes = [tuple(part for part in ids if part not in WAYS) for _, ids in cases]
    if any(len(case) > 2 for case in axes):
        return {cases[chosen][0] for chosen in pairwise([dict(enumerate(case)) for case in axes])}
    if len(cases) <= _MANY or any(len(case) < 2 for case in axes):
        return {place for place, _ in cases}
    numbers: list[dict[str, int]] = [{}, {}]
    sums = [sum(known.setdefault(part, len(known)) for known, part in zip(numbers, case, strict=True)) for case in axes]
    return {place for (place, _), total in zip(cases, sums, strict=True) if total % 2 == 0}
