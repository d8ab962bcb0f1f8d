"""Mutants kept in a table with what became of them, and found again after the code has moved."""

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .mutants import PACKAGE, Mutant, Spot, spots
from .notes import Tried

_COLUMNS = ("function", "nth", "among", "kind", "place", "fate", "statement", "was", "becomes")


@dataclass(frozen=True)
class Kept:
    """A row of a table: a mutant as it was, and what became of it."""

    function: str
    nth: int
    among: int
    kind: int
    place: int
    fate: str
    statement: str
    was: str
    becomes: str

    @property
    def killed(self) -> bool:
        """Whether a test noticed it."""
        return self.fate.startswith("killed")


def keep(table: Path, tried: Mapping[Mutant, Tried]) -> None:
    """Write a table of what became of mutants."""
    with table.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(_COLUMNS)
        for one, result in tried.items():
            what = (one.function, one.nth, one.among, one.kind, one.place)
            rows.writerow([*what, result.fate, one.statement, one.was, one.becomes])


def kept(table: Path) -> list[Kept]:
    """Read a table."""
    with table.open(encoding="utf-8", newline="") as file:
        rows = [[row[name] for name in _COLUMNS] for row in csv.DictReader(file)]
    return [Kept(function, int(nth), int(among), int(kind), int(place), *texts) for function, nth, among, kind, place, *texts in rows]


def found(rows: Iterable[Kept]) -> tuple[dict[Mutant, Kept], list[Kept]]:
    """The same mutants in the package of now, in whichever module, and those that are not there.

    A mutant is the same where function, statement and change read the same. Else it is the change of the same number in a function of the
    same name with as many changes, as names inside may have changed. Else it is where statement and change read so in one place alone.
    """
    exact: dict[tuple[tuple[str, str, str, int], int], Spot] = {}
    counted: dict[tuple[str, int, int, int], list[Spot]] = defaultdict(list)
    read: dict[tuple[str, str, int], list[Spot]] = defaultdict(list)
    for spot in spots(sorted(PACKAGE.rglob("*.py"))):
        exact[spot.read, spot.place] = spot
        counted[spot.function, spot.nth, spot.among, spot.read[3]].append(spot)
        read[spot.read[1:]].append(spot)
    there, gone = dict[Mutant, Kept](), list[Kept]()
    for row in rows:
        same = exact.get(((row.function, row.statement, row.was, row.kind), row.place))
        alike = counted[row.function, row.nth, row.among, row.kind] if row.function else []
        alone = read[row.statement, row.was, row.kind]
        one = same or next((several[0] for several in (alike, alone) if len(several) == 1), None)
        if one:
            there[one.mutant()] = row
        else:
            gone.append(row)
    return there, gone


def compared(tried: Mapping[Mutant, Tried], before: Mapping[Mutant, Kept], gone: Iterable[Kept]) -> str:
    """What is otherwise than in the table, in lines."""
    new = [one for one in tried if before[one].killed and not tried[one].killed]
    lines = [f"lives now, was {before[one].fate}: {one.path}:{one.line} {one.key}" for one in new]
    lines += [f"not found: {row.function or '-'}: {row.statement}: {row.was} -> {row.becomes}" for row in gone]
    return "\n".join([*lines, f"{len(new)} new survivors; {sum(one.killed for one in tried.values())} of {len(tried)} are killed"])
