"""Fewer cases than a product has: every two values of different axes meet in one of them."""

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import Any

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
