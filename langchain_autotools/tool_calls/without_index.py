"""Assignment of fragments to calls without the help of an index.

What identifies a call here is its id, its name, its place in the order, or the shape of its text; which of them a server uses is
decided by looking at all of its fragments. Where they can be read in two ways, calls that only one of the ways contains are
marked as ambiguous, and do not run.
"""

from collections.abc import Collection, Sequence

from ..strict_json import same
from .ambiguity import MIXED, mark_copies, mark_empty, mark_openers
from .by_order import read_in_order
from .by_shape import read_by_shape
from .fragments import Fragment, is_header
from .slot import Slot


def read_as_one(entries: Sequence[Fragment | str], declared: Collection[str]) -> Slot:
    """Return all fragments as one call. Fragments with only text may be given as strings."""
    slot = Slot()
    for entry in entries:
        if isinstance(entry, str):
            slot.add_text(entry)
        else:
            slot.add(entry, declared)
    return slot


def read_group(entries: Sequence[Fragment | str], declared: Collection[str]) -> list[Slot]:
    """Return the calls in fragments without a useful index, in order of appearance."""
    if sum(map(is_header, entries)) == 1 and not isinstance(entries[0], str):
        return [read_as_one(entries, declared)]
    return _read_apart([Fragment(None, None, None, entry) if isinstance(entry, str) else entry for entry in entries], declared)


def _read_apart(fragments: Sequence[Fragment], declared: Collection[str]) -> list[Slot]:
    with_id = sum(fragment.id is not None for fragment in fragments)
    if 0 < with_id < len(fragments):
        return read_in_order(fragments, declared, by_id=True)
    if not with_id:
        return _without_ids(fragments, declared)
    slots = _by_id(fragments, declared)
    if any(slot.name is None or (slot.misnamed and len(slots) > 1) for slot in slots):
        return _without_ids(fragments, declared)  # ids drift: a call goes on under an id that nothing started
    if len(slots) == 1:
        return _one_id(fragments, slots, declared)
    if any(fragment.name is None for fragment in fragments):
        return slots
    return _named_by_id(fragments, slots, declared)


def _without_ids(fragments: Sequence[Fragment], declared: Collection[str]) -> list[Slot]:
    if any(fragment.name is None for fragment in fragments):
        return read_in_order(fragments, declared, by_id=False)
    return read_by_shape(fragments, declared)


def _by_id(fragments: Sequence[Fragment], declared: Collection[str]) -> list[Slot]:
    slots: dict[str | None, Slot] = {}
    for fragment in fragments:
        slots.setdefault(fragment.id, Slot()).add(fragment, declared)
    return list(slots.values())


def _one_id(fragments: Sequence[Fragment], slots: list[Slot], declared: Collection[str]) -> list[Slot]:
    """Return one call, or several if a server gives the same id to all of them (wire quirk A-23)."""
    if all(slot.arguments for slot in slots):
        return slots
    others = _without_ids(fragments, declared)
    return others if all(slot.arguments for slot in others) else slots


def _named_by_id(fragments: Sequence[Fragment], slots: list[Slot], declared: Collection[str]) -> list[Slot]:
    """Return the calls in fragments with id and name each: separated by id, unless ids drift while names repeat."""
    if all(slot.arguments for slot in slots):
        mark_openers(slots)
        mark_copies(slots, readable=True)
        return slots
    others = _without_ids(fragments, declared)
    if all(slot.arguments and slot.ambiguity is None for slot in others):
        return others
    drifts = any(fragment.text.strip() and not fragment.text.lstrip().startswith("{") for fragment in fragments)
    for slot in slots:
        if drifts and not any(_agree(slot, other) for other in others):
            slot.ambiguity = slot.ambiguity or MIXED
    mark_empty(slots)
    mark_copies(slots, readable=False)
    return slots


def _agree(slot: Slot, other: Slot) -> bool:
    one, two = slot.arguments, other.arguments
    return bool(one and two and other.ambiguity is None and slot.name == other.name and same(one.value, two.value))
