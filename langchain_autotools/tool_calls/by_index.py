"""Assignment of fragments to calls by their index.

An index tells calls apart if names came under two or more of them: then each index is one call, whatever else its fragments
say. If not, it is missing, or the same for all calls, and `reading` looks at everything else.
"""

from collections.abc import Collection, Sequence
from typing import TypeAlias

from ..strict_json import same
from .ambiguity import MIXED, OPENER, mark_empty
from .arguments import spell_text
from .fragments import Fragment, is_header
from .slot import Progress, Slot
from .whole_calls import are_alike, read_alike, whole_calls, without_resent
from .without_index import read_as_one, read_group

Groups: TypeAlias = dict[int | None, list[Fragment | str]]
"""Fragments by index, in the order of their first appearance; a fragment with only text is given as a string."""


def read_groups(groups: Groups, order: Sequence[int | None], declared: Collection[str]) -> tuple[list[Slot], str]:
    """Return the calls of a turn, and the name of the rule that separated them.

    Args:
        groups: The fragments by index.
        order: The index of every fragment, in the order they came.
        declared: The names of the declared tools.
    """
    whole = whole_calls(groups, order)
    distinct = without_resent(whole) if whole else whole
    if distinct and are_alike(distinct):
        return read_alike(distinct, declared), "whole calls"
    if len(distinct) < len(whole):
        groups, order = _by_index(distinct), [fragment.index for fragment in distinct]
    named = {key for key, group in groups.items() if _has_name(group)}
    mixed: set[int | None] = set()
    if named and any(not is_header(group[0]) for group in groups.values()):
        groups, mixed = _Adoption(groups, named).run(order)
    if len(named) < 2:
        slots = [slot for key, group in groups.items() for slot in _marked_if(read_group(group, declared), key in mixed)]
        if any(slot.name is None and slot.pieces for slot in slots):
            mark_empty(slots)
        return slots, "id, name or order"
    slots = []
    for key, group in groups.items():
        read = read_group if key is None else _read_index
        slots += _marked_if(read(group, declared), key in mixed)
    return _without_copies(slots), "index"


def _by_index(fragments: Sequence[Fragment]) -> Groups:
    groups: Groups = {}
    for fragment in fragments:
        groups.setdefault(fragment.index, []).append(fragment)
    return groups


def _has_name(group: Sequence[Fragment | str]) -> bool:
    return any(not isinstance(entry, str) and entry.name is not None for entry in group)


def _marked_if(slots: list[Slot], mixed: bool) -> list[Slot]:
    if mixed:
        for slot in slots:
            slot.ambiguity = MIXED
    return slots


def _read_index(fragments: Sequence[Fragment | str], declared: Collection[str]) -> list[Slot]:
    """Return one call, unless the fragments under this index must be several."""
    whole = read_as_one(fragments, declared)
    if whole.arguments or len(fragments) == 1:
        return [whole]
    slots = read_group(fragments, declared)
    if whole.misnamed or all(slot.arguments and slot.ambiguity is None for slot in slots):
        return slots
    return [whole]


class _Adoption:
    """Assigns the fragments under an index without a name to the call that they continue (wire quirk A-20).

    That is the only named call that is not whole yet. If there are several it is unclear which, from then on.
    """

    def __init__(self, groups: Groups, named: set[int | None]) -> None:
        self._waiting = {key: iter(group) for key, group in groups.items()}
        self._named = named
        self._groups: Groups = {}
        self._slots: dict[int | None, Slot] = {}
        self._unfinished: list[int | None] = []
        self._whole: dict[str, int | None] = {}
        self._mixed: set[int | None] = set()

    def run(self, order: Sequence[int | None]) -> tuple[Groups, set[int | None]]:
        """Return the groups with reassigned fragments, and the keys of the ambiguous groups."""
        for key in order:
            entry = next(self._waiting[key])
            fragment = Fragment(None, key, None, entry) if isinstance(entry, str) else entry
            at_home = key in self._named and (key in self._slots or is_header(fragment))
            self._put(key if at_home else self._home(key, fragment), fragment)
        return self._groups, self._mixed

    def _put(self, key: int | None, fragment: Fragment) -> None:
        self._groups.setdefault(key, []).append(fragment)
        if key in self._named:
            if key not in self._slots or _begins_another(self._slots[key], fragment):
                self._begin(key)
            self._slots[key].add(fragment)

    def _begin(self, key: int | None) -> None:
        """Begin a call under an index; an earlier call under the same index is complete."""
        self._set_aside()
        self._slots.pop(key, None)
        self._slots[key] = Slot()
        self._unfinished.append(key)

    def _home(self, key: int | None, fragment: Fragment) -> int | None:
        """Return the index of the call that a fragment under the nameless index `key` continues."""
        if not self._slots:
            return key
        latest = next(reversed(self._slots))
        if not fragment.text:
            return latest
        self._set_aside()
        begins = fragment.text.lstrip().startswith("{")
        candidates = [one for one in self._unfinished if begins or self._slots[one].progress is Progress.OPEN]
        if len(candidates) > 1 or (candidates and self._mixed):
            self._mixed.update(candidates)
            self._unfinished = [one for one in self._unfinished if one is candidates[-1] or one not in self._mixed]
        if candidates:
            return candidates[-1]
        return self._whole.get(spell_text(fragment.text) or "", key if begins else latest)

    def _set_aside(self) -> None:
        unfinished = []
        for key in self._unfinished:
            if self._slots[key].progress is Progress.CLOSED:
                self._whole.setdefault(self._slots[key].spelled_arguments or "{}", key)
            else:
                unfinished.append(key)
        self._unfinished = unfinished


def _begins_another(slot: Slot, fragment: Fragment) -> bool:
    """Whether a fragment with a name and a new id begins another call under the index of a complete one (wire quirk A-35)."""
    if fragment.name is None or None in (fragment.id, slot.id) or fragment.id == slot.id:
        return False
    return slot.progress is Progress.CLOSED


def _without_copies(slots: list[Slot]) -> list[Slot]:
    """Return the calls without repetitions under another index, with the same id, name and arguments (wire quirk A-22).

    Where only the arguments differ they are two calls under one id (wire quirk A-23); halves that are one object together are joined.
    """
    kept: list[Slot] = []
    known: dict[tuple[str, str | None], Slot] = {}
    for slot in slots:
        first = known.setdefault((slot.id, slot.name), slot) if slot.id else slot
        if first is slot or not _absorbs(first, slot):
            kept.append(slot)
    return kept


def _absorbs(first: Slot, again: Slot) -> bool:
    """Whether `again` repeats or completes `first`. A call without arguments may be only a header, and is ambiguous."""
    one, two = first.arguments, again.arguments
    if one and two:
        if not one.value and two.value:
            first.ambiguity = OPENER
        return same(one.value, two.value)
    if one or two:
        return not again.pieces
    both = Slot()
    both.name, both.pieces = first.name, first.pieces + again.pieces
    if both.arguments is None:
        return False
    first.absorb(again)
    return True
