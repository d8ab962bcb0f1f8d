"""Streams whose every fragment is a whole call: separation of distinct calls from repetitions.

A server that sends whole calls writes the header of each alike. One that sends a call once more leaves parts of its header out: the
`type`, most often. So fragments with the header of the first one are calls, and later ones with less of it may be copies.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from .ambiguity import COPY, mark_openers
from .arguments import spell_text
from .fragments import Fragment
from .slot import Slot

_Said = tuple[str | None, str | None]  # a tool's name, and arguments in one spelling


def whole_calls(entries: Mapping[int | None, Sequence[Fragment | str]], order: Sequence[int | None]) -> list[Fragment]:
    """Return all fragments of a stream if each names a tool and has complete arguments; else an empty list.

    Args:
        entries: The fragments by index; those that are nothing but text as that text.
        order: The index of every fragment.
    """
    waiting = {key: iter(group) for key, group in entries.items()}
    found: list[Fragment] = []
    for key in order:
        entry = next(waiting[key])
        if isinstance(entry, str) or entry.name is None or spell_text(entry.text) is None:
            return []
        found.append(entry)
    return found


def without_resent(fragments: Sequence[Fragment]) -> list[Fragment]:
    """Return the calls without repetitions that have fewer header fields.

    A server that does so does it with all of its calls; else an equal call may be meant, and nothing is left out.

    Args:
        fragments: Whole calls, at least one.
    """
    header = fragments[0].header
    calls = [fragment for fragment in fragments if fragment.header == header]
    again = [fragment for fragment in fragments if fragment.header != header]
    originals: dict[_Said, list[Fragment]] = {}
    for call in calls:
        originals.setdefault(_said(call), []).append(call)
    repeated = Counter(map(_said, again))
    if any(repeated[text] < len(alike) for text, alike in originals.items()):
        return [*fragments]
    return calls if all(_repeats(fragment, originals.get(_said(fragment), ())) for fragment in again) else [*fragments]


def _repeats(fragment: Fragment, originals: Sequence[Fragment]) -> bool:
    """Whether a fragment equals one of `originals` except for missing header fields."""
    return any(
        fragment.header < original.header and fragment.id in (None, original.id) and fragment.index in (None, original.index)
        for original in originals
    )


def are_alike(fragments: Sequence[Fragment]) -> bool:
    """Whether no id, and no index above 0, distinguishes these whole calls."""
    return all(fragment.id is None and fragment.index in (None, 0) for fragment in fragments)


def read_alike(fragments: Sequence[Fragment], declared: Collection[str]) -> list[Slot]:
    """Return one call per fragment; equal calls are ambiguous unless all fragments have the same header.

    Args:
        fragments: Whole calls, at least one.
        declared: The names of the declared tools.
    """
    slots: list[Slot] = []
    known: set[tuple[_Said, int]] = set()
    has_one_header = len({fragment.header for fragment in fragments}) == 1
    for fragment in fragments:
        slot = Slot()
        slot.add(fragment, declared)
        slots.append(slot)
        key = _said(fragment), fragment.twin
        if key in known and not has_one_header:
            slot.ambiguity = COPY
        known.add(key)
    mark_openers(slots)
    return slots


def _said(fragment: Fragment) -> _Said:
    return fragment.name, spell_text(fragment.text)
