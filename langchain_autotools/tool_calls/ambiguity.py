"""Detection of ambiguous calls, which are marked so that they do not run."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from ..strict_json import canonical
from .slot import Progress, Slot

MIXED: Final = "it is unclear which of the calls the arguments belong to"
COPY: Final = "it may be the call before it, sent once more"
OPENER: Final = "it may be only the beginning of the call that follows"


def mark_openers(slots: Sequence[Slot]) -> None:
    """Mark calls without arguments that may be only the beginning of another call.

    A server that starts every call with an empty header, or with `{}`, and names the tool on every fragment, sends the very
    same as one that makes a call without arguments and then another of the same tool. It is the first kind only if every call
    with arguments has such a beginning.
    """
    for opening in ("", "{}"):
        for slot in _openers(slots, opening):
            slot.ambiguity = OPENER


def _openers(slots: Sequence[Slot], opening: str) -> list[Slot]:
    """Return the calls that are only beginnings, if this server starts every call with `opening`."""
    waiting: dict[str | None, list[Slot]] = {}
    openers: list[Slot] = []
    for slot in slots:
        begins = slot.first.strip() == opening
        if slot.copied or (begins and slot.fragments > 1):
            return []
        if begins:
            waiting.setdefault(slot.name, []).extend([slot] * (1 + slot.bare_again))
        elif waiting.get(slot.name):
            openers.append(waiting[slot.name].pop())
        elif slot.progress is not Progress.EMPTY:
            return []
    return openers


def mark_empty(slots: Sequence[Slot]) -> None:
    """Mark all calls without arguments if some fragments could not be assigned, because these may be their arguments."""
    for slot in slots:
        if slot.fragments == 1 and slot.progress in (Progress.EMPTY, Progress.BARE):
            slot.ambiguity = slot.ambiguity or OPENER


def mark_copies(slots: Sequence[Slot], *, readable: bool) -> None:
    """Mark the later of equal calls if every call occurs at least twice: the server may repeat all arguments.

    Args:
        slots: All calls of a group.
        readable: Whether all of them make sense; if not, one copy is enough to mark it.
    """
    keys = [_likeness(slot) for slot in slots]
    counts = Counter(key for key, slot in zip(keys, slots, strict=True) if slot.arguments and slot.arguments.value) or Counter(keys)
    if readable and min(counts.values()) < 2:
        return
    earlier: set[tuple[str | None, str, int]] = set()
    for key, slot in zip(keys, slots, strict=True):
        if key in earlier:
            slot.ambiguity = slot.ambiguity or COPY
        earlier.add(key)


def _likeness(slot: Slot) -> tuple[str | None, str, int]:
    found = slot.arguments
    return slot.name, canonical(found.value) if found else f"broken {id(slot)}", slot.twin
