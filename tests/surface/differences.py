"""What differs between both sides of a pair, and the stored list of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.surface.observed import ABSENT, Seen
from tests.surface.pairs import Stage

THERE = "there"
RAISES = "raises"
ONLY_THEIRS = frozenset({"name", "fact", "callbacks"})
"""What ours has besides is no difference in these sections."""
Probe = Callable[[Stage], Iterator[tuple[str, str, Seen]]]
"""What one side shows: case, way, and what is seen at each path."""


@dataclass(frozen=True, order=True)
class Difference:
    """One place at which ours shows something else than theirs.

    Attributes:
        section: What was probed.
        path: Where in it.
        theirs: What theirs shows.
        ours: What ours shows.
        pair: The pair.
        case: The reply, argument or method.
        way: How it was asked.
    """

    section: str
    path: str
    theirs: str
    ours: str
    pair: str
    case: str
    way: str

    @property
    def where(self) -> str:
        """What the patterns of rules are compared with."""
        return f"{self.pair}/{self.section}/{self.case}/{self.way}/{self.path}: {self.theirs} => {self.ours}"


def compare(section: str, stages: tuple[Stage, Stage], probe: Probe) -> list[Difference]:
    """Probe both sides; every place at which they differ."""
    theirs, ours = ({(case, way): seen for case, way, seen in probe(stage)} for stage in stages)
    pair = stages[0].pair.name
    found = []
    for case, way in theirs.keys() & ours.keys() if section == "argument" else theirs.keys():
        wanted = theirs[case, way]
        for path, one, other in unequal(wanted, ours.get((case, way), {}), more=section not in ONLY_THEIRS):
            found.append(Difference(section, path, one, other, pair, case, way))
    return found


def unequal(theirs: Seen, ours: Seen, *, more: bool = True) -> Iterator[tuple[str, str, str]]:
    """Each path that differs, with both values; what one side lacks altogether once; what ours has besides only where `more` counts."""
    if (RAISES in theirs) != (RAISES in ours):
        yield RAISES, theirs.get(RAISES, "nothing"), ours.get(RAISES, "nothing")
        return
    caught = [set(side.get(RAISES, "").split()) for side in (theirs, ours)]
    told = {RAISES} if caught[0] <= caught[1] else set()
    for path in sorted(theirs.keys() | ours.keys()):
        one, other = theirs.get(path, ABSENT), ours.get(path, ABSENT)
        if one == other or (one == ABSENT and not more):
            continue
        if ABSENT in (one, other):
            path = _whole(path, theirs if one == ABSENT else ours)
            one, other = (ABSENT, THERE) if one == ABSENT else (THERE, ABSENT)
        if path not in told:
            yield path, one, other
        told.add(path)


def _whole(path: str, lacking: Seen) -> str:
    """The shortest beginning of a path under which a side has nothing."""
    parts = path.split(".")
    for count in range(1, len(parts)):
        head = ".".join(parts[:count])
        if head not in lacking and not any(known.startswith(f"{head}.") for known in lacking):
            return head
    return path
