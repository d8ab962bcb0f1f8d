"""The assignment of fragments to calls: by index, by order, or by the shape of their text.

An index tells calls apart if names came under two or more of them: then each index is one call, whatever else its fragments
say. If not, it is missing, or the same for all calls, and everything else is looked at.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from ..strict_json import canonical, same
from .arguments import has_other_split, spell_text
from .slot import COPY, MIXED, Fragment, Progress, Slot

Groups: TypeAlias = dict[int | None, list[Fragment | str]]
"""Fragments by index, in the order of their first appearance; a fragment with only text is given as a string."""


def read_groups(groups: Groups, order: Sequence[int | None], declared: Collection[str]) -> tuple[list[Slot], str]:
    """Return the calls of a turn, and the name of the rule that separated them.

    Args:
        groups: The fragments by index.
        order: The index of every fragment, in the order they came.
        declared: The names of the declared tools.
    """
    whole = _whole_calls(groups, order)
    distinct = _without_resent(whole) if whole else whole
    if distinct and all(one.id is None and one.index in (None, 0) for one in distinct):  # which nothing tells apart
        return _read_alike(distinct, declared), "whole calls"
    if len(distinct) < len(whole):
        order = [fragment.index for fragment in distinct]
        groups = {key: [] for key in order}
        for fragment in distinct:
            groups[fragment.index].append(fragment)
    named = {key for key, group in groups.items() if any(not isinstance(entry, str) and entry.name is not None for entry in group)}
    mixed: set[int | None] = set()
    if named and any(not _is_header(group[0]) for group in groups.values()):
        groups, mixed = _Adoption(groups, named).run(order)
    slots: list[Slot] = []
    for key, group in groups.items():
        found = _read_group(group, declared) if key is None or len(named) < 2 else _read_index(group, declared)
        for slot in found if key in mixed else ():
            slot.ambiguity = MIXED
        slots += found
    if len(named) > 1:
        return _without_copies(slots), "index"
    if any(slot.name is None and slot.pieces for slot in slots):
        _mark_empty(slots)
    return slots, "id, name or order"


def _read_index(fragments: Sequence[Fragment | str], declared: Collection[str]) -> list[Slot]:
    """Return one call, unless the fragments under this index must be several."""
    whole = _read_as_one(fragments, declared)
    if whole.arguments or len(fragments) == 1:
        return [whole]
    slots = _read_group(fragments, declared)
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
            at_home = key in self._named and (key in self._slots or _is_header(fragment))
            self._put(key if at_home else self._home(key, fragment), fragment)
        return self._groups, self._mixed

    def _put(self, key: int | None, fragment: Fragment) -> None:
        self._groups.setdefault(key, []).append(fragment)
        if key in self._named:
            slot = self._slots.get(key)
            other_id = slot is not None and fragment.name is not None and None not in (fragment.id, slot.id) and fragment.id != slot.id
            if slot is None or (other_id and slot.progress is Progress.CLOSED):  # another call under its index (wire quirk A-35)
                self._set_aside()
                self._slots.pop(key, None)
                self._slots[key] = Slot()
                self._unfinished.append(key)
            self._slots[key].add(fragment)

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


_OPENER: Final = "it may be only the beginning of the call that follows"


def _absorbs(first: Slot, again: Slot) -> bool:
    """Whether `again` repeats or completes `first`. A call without arguments may be only a header, and is ambiguous."""
    one, two = first.arguments, again.arguments
    if one and two:
        if not one.value and two.value:
            first.ambiguity = _OPENER
        return same(one.value, two.value)
    if one or two:
        return not again.pieces
    both = Slot()
    both.name, both.pieces = first.name, first.pieces + again.pieces
    if both.arguments is None:
        return False
    first.absorb(again)
    return True


# ---------------------------------------------------------------------------------------------- whole calls
# Streams whose every fragment is a whole call: separation of distinct calls from repetitions.
#
# A server that sends whole calls writes the header of each alike. One that sends a call once more leaves parts of its header out: the
# `type`, most often. So fragments with the header of the first one are calls, and later ones with less of it may be copies.


_NameAndArguments = tuple[str | None, str | None]  # a tool's name, and arguments in one spelling


def _whole_calls(entries: Mapping[int | None, Sequence[Fragment | str]], order: Sequence[int | None]) -> list[Fragment]:
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


def _without_resent(fragments: Sequence[Fragment]) -> list[Fragment]:
    """Return the calls without repetitions that have fewer header fields.

    A server that does so does it with all of its calls; else an equal call may be meant, and nothing is left out.

    Args:
        fragments: Whole calls, at least one.
    """
    header = fragments[0].header
    calls = [fragment for fragment in fragments if fragment.header == header]
    again = [fragment for fragment in fragments if fragment.header != header]
    originals: dict[_NameAndArguments, list[Fragment]] = {}
    for call in calls:
        originals.setdefault(_name_and_arguments(call), []).append(call)
    repeated = Counter(map(_name_and_arguments, again))
    if any(repeated[text] < len(alike) for text, alike in originals.items()):
        return [*fragments]
    return calls if all(_repeats(fragment, originals.get(_name_and_arguments(fragment), ())) for fragment in again) else [*fragments]


def _repeats(fragment: Fragment, originals: Sequence[Fragment]) -> bool:
    """Whether a fragment equals one of `originals` except for missing header fields."""
    return any(
        fragment.header < original.header and fragment.id in (None, original.id) and fragment.index in (None, original.index)
        for original in originals
    )


def _read_alike(fragments: Sequence[Fragment], declared: Collection[str]) -> list[Slot]:
    """Return one call per fragment; equal calls are ambiguous unless all fragments have the same header.

    Args:
        fragments: Whole calls, at least one.
        declared: The names of the declared tools.
    """
    slots: list[Slot] = []
    known: set[tuple[_NameAndArguments, int]] = set()
    has_one_header = len({fragment.header for fragment in fragments}) == 1
    for fragment in fragments:
        slot = Slot()
        slot.add(fragment, declared)
        slots.append(slot)
        key = _name_and_arguments(fragment), fragment.twin
        if key in known and not has_one_header:
            slot.ambiguity = COPY
        known.add(key)
    _mark_openers(slots)
    return slots


def _name_and_arguments(fragment: Fragment) -> _NameAndArguments:
    return fragment.name, spell_text(fragment.text)


# ---------------------------------------------------------------------------------------------- without index
# Assignment of fragments to calls without the help of an index.
#
# What identifies a call here is its id, its name, its place in the order, or the shape of its text; which of them a server uses is
# decided by looking at all of its fragments. Where they can be read in two ways, calls that only one of the ways contains are marked as
# ambiguous, and do not run.


def _read_as_one(entries: Sequence[Fragment | str], declared: Collection[str]) -> Slot:
    """Return all fragments as one call. Fragments with only text may be given as strings."""
    slot = Slot()
    for entry in entries:
        if isinstance(entry, str):
            slot.add_text(entry)
        else:
            slot.add(entry, declared)
    return slot


def _read_group(entries: Sequence[Fragment | str], declared: Collection[str]) -> list[Slot]:
    """Return the calls in fragments without a useful index, in order of appearance."""
    if sum(map(_is_header, entries)) == 1 and not isinstance(entries[0], str):
        return [_read_as_one(entries, declared)]
    return _read_apart([Fragment(None, None, None, entry) if isinstance(entry, str) else entry for entry in entries], declared)


def _is_header(entry: Fragment | str) -> bool:
    """Whether a fragment has an id or a name; a string has neither."""
    return not isinstance(entry, str) and (entry.id is not None or entry.name is not None)


def _read_apart(fragments: Sequence[Fragment], declared: Collection[str]) -> list[Slot]:
    with_id = sum(fragment.id is not None for fragment in fragments)
    if 0 < with_id < len(fragments):
        return _read_in_order(fragments, declared, by_id=True)
    if not with_id:
        return _without_ids(fragments, declared)
    slots = _by_id(fragments, declared)
    if any(slot.name is None or (slot.misnamed and len(slots) > 1) for slot in slots):
        return _without_ids(fragments, declared)  # ids drift: a call goes on under an id that nothing started
    if len(slots) == 1:
        if slots[0].arguments:
            return slots
        others = _without_ids(fragments, declared)  # several, if a server gives the same id to all of them (wire quirk A-23)
        return others if all(slot.arguments for slot in others) else slots
    if any(fragment.name is None for fragment in fragments):
        return slots
    return _named_by_id(fragments, slots, declared)


def _without_ids(fragments: Sequence[Fragment], declared: Collection[str]) -> list[Slot]:
    if any(fragment.name is None for fragment in fragments):
        return _read_in_order(fragments, declared, by_id=False)
    return _read_by_shape(fragments, declared)


def _by_id(fragments: Sequence[Fragment], declared: Collection[str]) -> list[Slot]:
    slots: dict[str | None, Slot] = {}
    for fragment in fragments:
        slots.setdefault(fragment.id, Slot()).add(fragment, declared)
    return list(slots.values())


def _named_by_id(fragments: Sequence[Fragment], slots: list[Slot], declared: Collection[str]) -> list[Slot]:
    """Return the calls in fragments with id and name each: separated by id, unless ids drift while names repeat."""
    if all(slot.arguments for slot in slots):
        _mark_openers(slots)
        _mark_copies(slots, readable=True)
        return slots
    others = _without_ids(fragments, declared)
    if all(slot.arguments and slot.ambiguity is None for slot in others):
        return others
    drifts = any(fragment.text.strip() and not fragment.text.lstrip().startswith("{") for fragment in fragments)
    for slot in slots:
        one = slot.arguments
        alike = [other.arguments for other in others if one and other.ambiguity is None and other.name == slot.name]
        if drifts and not any(one and two and same(one.value, two.value) for two in alike):
            slot.ambiguity = slot.ambiguity or MIXED
    _mark_empty(slots)
    _mark_copies(slots, readable=False)
    return slots


def _mark_copies(slots: Sequence[Slot], *, readable: bool) -> None:
    """Mark the later of equal calls if every call occurs at least twice: the server may repeat all arguments.

    Args:
        slots: All calls of a group.
        readable: Whether all of them make sense; if not, one copy is enough to mark it.
    """
    keys = [(slot.name, canonical(one.value) if (one := slot.arguments) else f"broken {id(slot)}", slot.twin) for slot in slots]
    counts = Counter(key for key, slot in zip(keys, slots, strict=True) if slot.arguments and slot.arguments.value) or Counter(keys)
    if readable and min(counts.values()) < 2:
        return
    earlier: set[tuple[str | None, str, int]] = set()
    for key, slot in zip(keys, slots, strict=True):
        if key in earlier:
            slot.ambiguity = slot.ambiguity or COPY
        earlier.add(key)


# ---------------------------------------------------------------------------------------------- by order
# Assignment of fragments to calls by their order, for dialects that mark the first fragment of a call by its id or name.
#
# A fragment that names no call belongs to the only call that is still to be completed. If there are several, it is unclear which of them:
# all are in doubt, and so is every call that gets such a fragment from then on.


_WAITING = {"": Progress.EMPTY, "{}": Progress.BARE}


def _read_in_order(fragments: Sequence[Fragment], declared: Collection[str], *, by_id: bool) -> list[Slot]:
    """Return the calls in the fragments, in order of appearance.

    Args:
        fragments: At least one.
        declared: The names of the declared tools.
        by_id: Whether an id that is new starts a call. Otherwise ids say nothing and a name starts a call.
    """
    reader = _InOrder(fragments, declared, by_id=by_id)
    for fragment in fragments:
        reader.feed(fragment)
    if not by_id:
        _mark_repeats(reader.slots)
    return reader.slots


class _InOrder:
    """The calls so far, with those that are still incomplete."""

    def __init__(self, fragments: Sequence[Fragment], declared: Collection[str], *, by_id: bool) -> None:
        self.slots: list[Slot] = []
        self._declared = declared
        self._by_id = by_id
        self._ids: dict[str, Slot] = {}
        self._names: dict[str, Slot] = {}
        self._unfinished: list[Slot] = []
        self._whole: dict[str, Slot] = {}
        self._mixed = False
        self._waits = _waiting_state(fragments, by_id=by_id)

    def feed(self, fragment: Fragment) -> None:
        """Start a call with the fragment, or continue one."""
        known = self._ids.get(fragment.id) if fragment.id and self._by_id else None
        named = known is not None and None not in (fragment.name, known.name) and fragment.name != known.name
        if known is not None and (not named or known.may_be_named_on(fragment.name or "", self._declared)):
            known.add(fragment, self._declared)
        elif known is not None or not self.slots or self._starts(fragment):
            self._begin(fragment)
        else:
            self._continue(fragment)

    def _starts(self, fragment: Fragment) -> bool:
        latest = self.slots[-1]
        if self._by_id and fragment.id is not None:
            # an id without a name goes on with a call that has none yet, or drifts; or it is ahead of its name
            return fragment.name is not None or latest.progress is Progress.CLOSED
        if fragment.name is None or latest.name is None:
            return False
        alike = self._names.get(fragment.name)
        if alike is None:
            return not self._names_on(latest, fragment.name)
        if self._by_id:
            return False
        return not fragment.text or fragment.text.lstrip().startswith("{") or alike.progress is not Progress.OPEN

    def _names_on(self, latest: Slot, name: str) -> bool:
        """Whether `name` continues the latest call's name; without ids, only if the result is a declared name."""
        return bool(self._declared or self._by_id) and latest.may_be_named_on(name, self._declared)

    def _begin(self, fragment: Fragment) -> None:
        slot = Slot()
        slot.add(fragment, self._declared)
        self.slots.append(slot)
        self._unfinished.append(slot)
        if fragment.id is not None:
            self._ids[fragment.id] = slot
        if fragment.name is not None:
            self._names[fragment.name] = slot

    def _continue(self, fragment: Fragment) -> None:
        latest = self.slots[-1]
        if not fragment.text:
            latest.add(fragment, self._declared)
            return
        self._set_aside(latest)
        candidates = [slot for slot in self._unfinished if fragment.name is None or slot.name in (None, fragment.name)]
        if not candidates and fragment.name not in self._names and self._names_on(latest, fragment.name or ""):
            candidates = [latest]
        if not candidates:
            self._surplus(fragment)
            return
        target, again = candidates[-1], spell_text(fragment.text)
        is_copy = again in self._whole and (again != "{}" or target.progress is Progress.OPEN)  # of an earlier call's arguments
        unclear = len(candidates) > 1 or self._mixed or is_copy
        target.add(fragment, self._declared)
        if unclear:
            for slot in candidates:
                slot.ambiguity = MIXED
            self._mixed = True
            self._unfinished = [slot for slot in self._unfinished if slot is target or slot not in candidates]

    def _set_aside(self, latest: Slot) -> None:
        """Set aside the complete calls and record their arguments."""
        unfinished = []
        for slot in self._unfinished:
            if self._may_go_on(slot, latest):
                unfinished.append(slot)
            else:
                self._whole.setdefault(slot.spelled_arguments or "{}", slot)
        self._unfinished = unfinished

    def _may_go_on(self, slot: Slot, latest: Slot) -> bool:
        progress = slot.progress
        if progress in (Progress.OPEN, Progress.CLOSED):
            return progress is Progress.OPEN
        return slot.fragments == 1 and (slot is latest or progress is self._waits)

    def _surplus(self, fragment: Fragment) -> None:
        """Handle text that arrives when every call is complete: a copy, or surplus."""
        again = spell_text(fragment.text)
        original = self._whole.get(again) if again else None
        if original is not None and again != "{}" and fragment.name in (None, original.name):
            original.copied = True
            original.learn(fragment.extra)
            return
        latest = self._names.get(fragment.name or "", self.slots[-1])
        if fragment.text.lstrip().startswith("{") and (again != "{}" or latest.progress is not Progress.BARE):
            latest.ambiguity = MIXED
        latest.add_surplus(fragment, self._declared)


def _waiting_state(fragments: Sequence[Fragment], *, by_id: bool) -> Progress | None:
    """Return the state of a call that waits for its arguments, if all calls begin alike; None if such a call is complete."""
    named = [fragment for fragment in fragments if fragment.name]
    headers: Iterable[Fragment] = named
    if by_id:
        headers = {fragment.id: fragment for fragment in reversed(named) if fragment.id}.values()
    texts = {fragment.text.strip() for fragment in headers}
    return _WAITING.get(texts.pop()) if len(texts) == 1 else None


def _mark_repeats(slots: Sequence[Slot]) -> None:
    """Mark a call that arrived whole in one fragment and equals an earlier one: it may be a repetition."""
    earlier: set[tuple[str | None, str, int]] = set()
    for slot in slots:
        if slot.spelled_arguments is not None:
            key = (slot.name, slot.spelled_arguments, slot.twin)
            if key in earlier and slot.fragments == 1:
                slot.ambiguity = slot.ambiguity or COPY
            earlier.add(key)


# ---------------------------------------------------------------------------------------------- by shape
# Assignment of fragments to calls by the shape of their text, for dialects that mark fragments only with the tool's name.
#
# Fragments of different tools are told apart by the name, even if they alternate. A call of the same tool starts where a text begins anew
# after the one before it was whole.


def _read_by_shape(fragments: Sequence[Fragment], declared: Collection[str]) -> list[Slot]:
    """Return the calls in the fragments, in order of appearance.

    Args:
        fragments: At least one; all with a name.
        declared: The names of the declared tools.
    """
    reader = _ByShape(fragments, declared)
    for fragment in fragments:
        reader.feed(fragment)
    return reader.finish()


class _ByShape:
    """The state of an assembly by shape: the calls so far, and the latest call of each tool."""

    def __init__(self, fragments: Sequence[Fragment], declared: Collection[str]) -> None:
        self._declared = declared
        self._slots: list[Slot] = []
        self._latest: dict[str | None, Slot] = {}
        self._whole: dict[tuple[str | None, str, int], Slot] = {}
        self._bare_twins: dict[Slot, list[Fragment]] = {}
        self._copies: set[int] = set()
        self._inner: set[Slot] = set()
        self._mixed: set[str | None] = set()
        first = {fragment.name: fragment.text for fragment in reversed(fragments)}
        self._headers_first = not any(first.values())

    def feed(self, fragment: Fragment) -> None:
        """Start a call with the fragment, or continue one."""
        slot = self._latest.get(fragment.name)
        if slot is None:
            self._first_of_name(fragment)
        elif slot.progress is Progress.OPEN:
            self._go_on(slot, fragment)
        elif slot.progress is Progress.EMPTY and self._headers_first:
            if fragment.text and (slot.fragments > 1 or self._original(slot, fragment.text)):
                self._mix(slot)  # two headers, and then arguments; or a header, and then those of another call once more
            slot.add(fragment, self._declared)
        else:
            self._after(slot, fragment)

    def finish(self) -> list[Slot]:
        """Return the calls in order of appearance."""
        for slot in self._latest.values():
            self._judge(slot)
        self._settle_copies()
        _mark_openers(self._slots)
        self._mark_broken()
        return [each for slot in self._slots for each in (slot, *self._twins_of(slot))]

    def _twins_of(self, slot: Slot) -> list[Slot]:
        """Return the other calls of the tool that have no arguments at all either; none if this call may be incomplete."""
        if slot.ambiguity or slot.progress is not Progress.BARE:
            return []
        twins = [Slot() for _ in self._bare_twins.get(slot, ())]
        for twin, fragment in zip(twins, self._bare_twins.get(slot, ()), strict=True):
            twin.add(fragment, self._declared)
        return twins

    def _begin(self, fragment: Fragment) -> None:
        slot = Slot()
        slot.add(fragment, self._declared)
        if fragment.name in self._mixed:
            slot.ambiguity = MIXED
        self._slots.append(slot)
        self._latest[fragment.name] = slot

    def _first_of_name(self, fragment: Fragment) -> None:
        previous = self._slots[-1] if self._slots else None
        if previous and self._declared and previous.may_be_named_on(fragment.name or "", self._declared):
            previous.add(fragment, self._declared)
            self._latest[fragment.name] = self._latest[previous.name] = previous
        else:
            self._begin(fragment)

    def _go_on(self, slot: Slot, fragment: Fragment) -> None:
        """Continue an open call, unless the fragment may begin another."""
        text = fragment.text.strip()
        if not fragment.text or self._original(slot, text):
            self._mix(slot)
        elif text.startswith("{") and not slot.grows_to(fragment.text):
            if text == "{}":
                self._mix(slot)
            self._inner.add(slot)
        slot.add(fragment, self._declared)

    def _mix(self, slot: Slot) -> None:
        slot.ambiguity = MIXED
        self._mixed.add(slot.name)

    def _judge(self, slot: Slot) -> None:
        """Mark a call that may contain another: an inner object belongs to its arguments only if nothing else is possible."""
        if slot in self._inner and has_other_split(slot.pieces):
            self._mix(slot)

    def _after(self, slot: Slot, fragment: Fragment) -> None:
        """Handle a fragment for a tool whose last call is complete."""
        self._judge(slot)
        text = fragment.text.strip()
        if not text or (text == "{}" and slot.progress is Progress.BARE):
            slot.bare_again += bool(text)
            slot.learn(fragment.extra)
            twins = self._bare_twins.setdefault(slot, [])
            if fragment.twin > len(twins):
                twins.append(fragment)
            return
        if slot.progress is not Progress.EMPTY and not slot.ambiguity:
            self._whole.setdefault((slot.name, slot.spelled_arguments or "{}", slot.twin), slot)
        original = self._original(slot, text, fragment.twin)
        if original is not None:
            original.copied = original.spelled_arguments is not None
            self._copies.add(len(self._slots))
            self._begin(fragment)
        elif text.startswith("{") or spell_text(text) is not None:
            self._begin(fragment)
        else:
            slot.add_surplus(fragment, self._declared)

    def _original(self, slot: Slot, text: str, twin: int = 0) -> Slot | None:
        """Return the complete call of the same tool that `text` repeats."""
        again = spell_text(text)
        return self._whole.get((slot.name, again, twin)) if again else None

    def _settle_copies(self) -> None:
        """Resolve repeated calls: a server that repeats whole calls repeats all of them; else an equal call may be intended."""
        originals = [slot for number, slot in enumerate(self._slots) if number not in self._copies]
        if all(slot.copied or slot.progress in (Progress.EMPTY, Progress.BARE) for slot in originals):
            self._slots = originals
            return
        for number in self._copies:
            self._slots[number].ambiguity = COPY

    def _mark_broken(self) -> None:
        """Mark later or empty calls of a tool with an invalid call, because fragments may be assigned wrongly among them."""
        broken: set[str | None] = set()
        for slot in self._slots:
            if slot.name in broken:
                slot.ambiguity = slot.ambiguity or MIXED
            if slot.arguments is None:
                broken.add(slot.name)
        if self._mixed or broken:
            _mark_empty(self._slots)


def _mark_openers(slots: Sequence[Slot]) -> None:
    """Mark calls without arguments that may be only the beginning of another call.

    A server that starts every call with an empty header, or with `{}`, and names the tool on every fragment, sends the very
    same as one that makes a call without arguments and then another of the same tool. It is the first kind only if every call
    with arguments has such a beginning.
    """
    for opening in ("", "{}"):
        for slot in _openers(slots, opening):
            slot.ambiguity = _OPENER


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


def _mark_empty(slots: Sequence[Slot]) -> None:
    """Mark all calls without arguments if some fragments could not be assigned, because these may be their arguments."""
    for slot in slots:
        if slot.fragments == 1 and slot.progress in (Progress.EMPTY, Progress.BARE):
            slot.ambiguity = slot.ambiguity or _OPENER
