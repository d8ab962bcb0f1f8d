"""Fragments by the index they came under, read into calls.

An index tells calls apart if names came under two or more of them: then each index is one call, whatever else its fragments
say. If not, it is missing, or the same for all calls, and `reading` looks at everything else.
"""

from collections.abc import Collection, Sequence
from typing import TypeAlias

from .arguments import spell_text
from .doubts import MIXED, OPENER
from .fragments import Fragment
from .json_text import same
from .reading import read_as_one, read_group
from .slots import Progress, Slot

__all__ = ["Groups", "read_groups"]

Groups: TypeAlias = dict[int | None, list[Fragment | str]]
"""Fragments by index, in the order of their first appearance; those that are nothing but text as that text."""


def read_groups(groups: Groups, order: Sequence[int | None], declared: Collection[str]) -> tuple[list[Slot], str]:
    """The calls of a turn, and by which rule they were told apart.

    Args:
        groups: The fragments by index.
        order: The index of every fragment, in the order they came.
        declared: The names of the tools that the model was told of.
    """
    named = {key for key, group in groups.items() if _is_named(group)}
    mixed: set[int | None] = set()
    if named and len(named) < len(groups):
        groups, mixed = _Adoption(groups, named).run(order)
    if len(named) < 2:
        slots = [slot for key, group in groups.items() for slot in _marked(read_group(_fragments(key, group), declared), key in mixed)]
        return slots, "id, name or order"
    slots = []
    for key, group in groups.items():
        read = read_group if key is None else _read_index
        slots += _marked(read(_fragments(key, group), declared), key in mixed)
    return _without_copies(slots), "index"


def _is_named(group: Sequence[Fragment | str]) -> bool:
    return any(type(entry) is not str and entry.name is not None for entry in group)  # type: ignore[union-attr]


def _fragments(key: int | None, group: Sequence[Fragment | str]) -> list[Fragment]:
    return [Fragment(None, key, None, entry) if isinstance(entry, str) else entry for entry in group]


def _marked(slots: list[Slot], mixed: bool) -> list[Slot]:
    if mixed:
        for slot in slots:
            slot.doubt = MIXED
    return slots


def _read_index(fragments: Sequence[Fragment], declared: Collection[str]) -> list[Slot]:
    """One call, unless the fragments under this index cannot be one and can be several."""
    whole = read_as_one(fragments, declared)
    if whole.arguments or len(fragments) == 1:
        return [whole]
    slots = read_group(fragments, declared)
    if whole.misnamed or all(slot.arguments and slot.doubt is None for slot in slots):
        return slots
    return [whole]


class _Adoption:
    """Gives the fragments under an index that never gets a name to the call they go on with (quirk A-20).

    That is the only named call that is not whole yet. If there are several it is unclear which.
    """

    def __init__(self, groups: Groups, named: set[int | None]) -> None:
        self._waiting = {key: iter(group) for key, group in groups.items()}
        self._named = named
        self._groups: Groups = {}
        self._slots: dict[int | None, Slot] = {}
        self._mixed: set[int | None] = set()

    def run(self, order: Sequence[int | None]) -> tuple[Groups, set[int | None]]:
        """The groups with those fragments in their new places, and the groups that are in doubt."""
        for key in order:
            entry = next(self._waiting[key])
            fragment = Fragment(None, key, None, entry) if isinstance(entry, str) else entry
            if key in self._named:
                self._put(key, fragment)
            else:
                self._adopt(key, fragment)
        return self._groups, self._mixed

    def _put(self, key: int | None, fragment: Fragment) -> None:
        self._groups.setdefault(key, []).append(fragment)
        self._slots.setdefault(key, Slot()).add(fragment)

    def _adopt(self, key: int | None, fragment: Fragment) -> None:
        known = [one for one in self._slots if one in self._named]
        begins = fragment.text.lstrip().startswith("{")
        wanting = (Progress.OPEN, Progress.EMPTY, Progress.BARE) if begins else (Progress.OPEN,)
        unfinished = [one for one in known if self._slots[one].progress in wanting] if fragment.text else known[-1:]
        if len(unfinished) > 1:
            self._mixed.update(unfinished)
        if unfinished:
            self._put(unfinished[-1], fragment)
        elif begins and spell_text(fragment.text) in {self._slots[one].said for one in known} - {None}:
            return
        else:
            self._put(key if begins or not known else known[-1], fragment)


def _without_copies(slots: list[Slot]) -> list[Slot]:
    """The calls without those that came again under another index (quirk A-22): the same id, name and arguments.

    Where only the arguments differ they are two calls under one id (quirk A-23); halves that are one object together are joined.
    """
    kept: list[Slot] = []
    known: dict[tuple[str, str | None], Slot] = {}
    for slot in slots:
        first = known.setdefault((slot.id, slot.name), slot) if slot.id else slot
        if first is slot or not _absorbs(first, slot):
            kept.append(slot)
    return kept


def _absorbs(first: Slot, again: Slot) -> bool:
    """Whether `again` is `first` once more, or its other half. A call without arguments may be only its header, and is in doubt."""
    one, two = first.arguments, again.arguments
    if one and two:
        if not one.value and two.value:
            first.doubt = OPENER
        return same(one.value, two.value)
    if one or two:
        return not again.pieces
    both = Slot()
    both.name, both.pieces = first.name, first.pieces + again.pieces
    if both.arguments is None:
        return False
    first.absorb(again)
    return True
