"""Assignment of fragments to calls by their order, for dialects that mark the first fragment of a call by its id or name.

A fragment that names no call belongs to the only call that is still to be completed. If there are several, it is unclear
which of them: all are in doubt, and so is every call that gets such a fragment from then on.
"""

from collections.abc import Collection, Iterable, Sequence

from .ambiguity import COPY, MIXED
from .arguments import spell_text
from .fragments import Fragment
from .slot import Progress, Slot

_WAITING = {"": Progress.EMPTY, "{}": Progress.BARE}


def read_in_order(fragments: Sequence[Fragment], declared: Collection[str], *, by_id: bool) -> list[Slot]:
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
        if known is not None and not self._is_another(known, fragment):
            known.add(fragment, self._declared)
        elif known is not None or not self.slots or self._starts(fragment):
            self._begin(fragment)
        else:
            self._continue(fragment)

    def _is_another(self, slot: Slot, fragment: Fragment) -> bool:
        """Whether a fragment with the id of `slot` names another tool: two calls under one id (wire quirk A-23)."""
        named = fragment.name is not None and slot.name is not None and fragment.name != slot.name
        return named and not slot.may_be_named_on(fragment.name or "", self._declared)

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
        target = candidates[-1]
        unclear = len(candidates) > 1 or self._mixed or self._is_copy(fragment.text, target)
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

    def _is_copy(self, text: str, target: Slot) -> bool:
        """Whether `text` may repeat the arguments of an earlier call rather than continue `target`."""
        again = spell_text(text)
        return again in self._whole and (again != "{}" or target.progress is Progress.OPEN)

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
