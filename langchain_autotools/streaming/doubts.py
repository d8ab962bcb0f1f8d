"""Calls that can be read in two ways: marked with a doubt, so that they do not run."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from .slots import Progress, Slot

__all__ = ["COPY", "MIXED", "OPENER", "doubt_copies", "doubt_openers"]

MIXED: Final = "it is unclear which of the calls the arguments belong to"
COPY: Final = "it may be the call before it, sent once more"
OPENER: Final = "it may be only the beginning of the call that follows"


def doubt_openers(slots: Sequence[Slot]) -> None:
    """Mark calls without arguments that may be placeholders.

    A server that starts every call with an empty header or a `{}`, and names the tool on every fragment, sends the very same
    as one that makes a call without arguments and then another of the same tool. It is the first kind only if every call with
    arguments has such a beginning.
    """
    waiting: dict[str | None, list[Slot]] = {}
    openers: list[Slot] = []
    for slot in slots:
        if slot.copied or (slot.pieces and slot.first.strip() in ("", "{}") and slot.fragments > 1):
            return
        if slot.fragments == 1 and slot.progress in (Progress.EMPTY, Progress.BARE):
            waiting.setdefault(slot.name, []).append(slot)
        elif not waiting.get(slot.name):
            return
        else:
            openers.append(waiting[slot.name].pop())
    for slot in openers:
        slot.doubt = OPENER


def doubt_copies(slots: Sequence[Slot]) -> None:
    """Mark the later of equal calls where every call comes at least twice: the server may send all arguments once more."""
    counts = Counter(_key(slot) for slot in slots)
    if min(counts.values()) < 2:
        return
    seen: set[tuple[str | None, str]] = set()
    for slot in slots:
        key = _key(slot)
        if key in seen:
            slot.doubt = slot.doubt or COPY
        seen.add(key)


def _key(slot: Slot) -> tuple[str | None, str]:
    found = slot.arguments
    return slot.name, repr(found.value) if found else f"broken {id(slot)}"
