"""Fragments read into calls by their order: each starts a call or continues one that is not whole yet.

A fragment that names no call belongs to the only call that is still to be completed. If there are several, it is unclear
which of them: all are in doubt, and so is every call that gets such a fragment from then on.
"""

from collections.abc import Collection, Sequence

from .doubts import COPY, MIXED, doubt_openers
from .fragments import Fragment
from .json_text import same
from .slots import Progress, Slot

__all__ = ["read_in_order"]

_BARE_STARTS = {"": Progress.EMPTY, "{}": Progress.BARE}


def read_in_order(fragments: Sequence[Fragment], declared: Collection[str], *, by_id: bool = False) -> list[Slot]:
    """The calls that the fragments make, in order of appearance.

    Args:
        fragments: At least one.
        declared: The names of the tools that the model was told of.
        by_id: Whether an id that is new starts a call. Otherwise ids say nothing: a name starts a call; and where every
            fragment has a name, an argument text that begins anew.
    """
    if by_id:
        return _ByHeader(fragments, declared, by_id=True).read()
    if any(fragment.name is None for fragment in fragments):
        return _ByHeader(fragments, declared, by_id=False).read()
    return _ByShape(fragments, declared).read()


class _ByHeader:
    """The first fragment of a call says so: by its id, or by its name."""

    def __init__(self, fragments: Sequence[Fragment], declared: Collection[str], *, by_id: bool) -> None:
        self._fragments = fragments
        self._declared = declared
        self._by_id = by_id
        self._slots: list[Slot] = []
        self._ids: dict[str, Slot] = {}
        self._unfinished: list[Slot] = []
        self._mixed = False
        self._waits = self._waiting_state()

    def read(self) -> list[Slot]:
        """The calls, in order of appearance."""
        for fragment in self._fragments:
            known = self._ids.get(fragment.id) if fragment.id and self._by_id else None
            if known is not None and not self._is_another(known, fragment):
                known.add(fragment, self._declared)
            elif known is not None or not self._slots or self._starts(fragment):
                self._begin(fragment)
            else:
                self._continue(fragment)
        if not self._by_id:
            _doubt_repeats(self._slots)
        return self._slots

    def _waiting_state(self) -> Progress | None:
        """How a call looks that has begun and waits for its arguments, if all calls begin alike; else a call that looks so is whole."""
        if self._by_id:
            headers = {fragment.id: fragment for fragment in reversed(self._fragments) if fragment.id and fragment.name}.values()
        else:
            headers = [fragment for fragment in self._fragments if fragment.name]  # type: ignore[assignment]
        texts = {fragment.text.strip() for fragment in headers}
        return _BARE_STARTS.get(texts.pop()) if len(texts) == 1 else None

    def _is_another(self, slot: Slot, fragment: Fragment) -> bool:
        """Whether a fragment with the id of `slot` names another tool: two calls under one id (quirk A-23)."""
        named = fragment.name is not None and slot.name is not None and fragment.name != slot.name
        return named and not slot.may_be_named_on(fragment.name or "", self._declared)

    def _starts(self, fragment: Fragment) -> bool:
        latest = self._slots[-1]
        if self._by_id and fragment.id is not None:
            # an id without a name goes on with a call that has none yet, or drifts; or it is ahead of its name
            return fragment.name is not None or latest.progress is Progress.CLOSED
        if fragment.name is None or latest.name is None or latest.may_be_named_on(fragment.name, self._declared):
            return False
        alike = [slot for slot in self._slots if slot.name == fragment.name]
        if self._by_id:
            return not alike
        begins = not fragment.text or fragment.text.lstrip().startswith("{")
        return begins or not any(slot.progress is Progress.OPEN for slot in alike)

    def _begin(self, fragment: Fragment) -> None:
        slot = Slot()
        slot.add(fragment, self._declared)
        self._slots.append(slot)
        self._unfinished.append(slot)
        if fragment.id is not None:
            self._ids[fragment.id] = slot

    def _continue(self, fragment: Fragment) -> None:
        latest = self._slots[-1]
        if not fragment.text:
            latest.add(fragment, self._declared)
            return
        self._unfinished = [slot for slot in self._unfinished if self._may_go_on(slot, latest)]
        named = [slot for slot in self._unfinished if fragment.name is None or slot.name in (None, fragment.name)]
        if not named and latest.may_be_named_on(fragment.name or "", self._declared):
            named = [latest]
        if not named:
            self._surplus(fragment)
            return
        target = named[-1]
        target.add(fragment, self._declared)
        if len(named) > 1 or self._mixed:
            for slot in named:
                slot.doubt = MIXED
            self._mixed = True
            self._unfinished = [slot for slot in self._unfinished if slot is target or slot not in named]

    def _may_go_on(self, slot: Slot, latest: Slot) -> bool:
        progress = slot.progress
        if slot is latest or progress is Progress.OPEN:
            return progress is not Progress.CLOSED
        return progress is self._waits and slot.fragments == 1

    def _surplus(self, fragment: Fragment) -> None:
        """Text that comes when every call is whole: a copy, or too much."""
        alike = [slot for slot in self._slots if fragment.name in (None, slot.name)] or self._slots
        if fragment.text.lstrip()[:1] in ("{", '"'):
            for slot in reversed(alike):
                if slot.says(fragment.text):
                    slot.copied = True
                    slot.learn(fragment.extra)
                    return
        alike[-1].add(fragment, self._declared)


def _doubt_repeats(slots: Sequence[Slot]) -> None:
    """Mark a call that came whole in one fragment and equals one before it: it may be that one, sent once more."""
    for number, slot in enumerate(slots):
        if slot.fragments == 1 and slot.arguments and slot.arguments.value:
            wanted = slot.arguments.value
            equal = (one.arguments for one in slots[:number] if one.name == slot.name)
            if any(found and same(found.value, wanted) for found in equal):
                slot.doubt = slot.doubt or COPY


class _ByShape:
    """Every fragment names its tool, and nothing else tells calls apart: a call starts where a text begins anew."""

    def __init__(self, fragments: Sequence[Fragment], declared: Collection[str]) -> None:
        self._fragments = fragments
        self._declared = declared
        self._slots: list[Slot] = []
        self._latest: dict[str | None, Slot] = {}
        self._copies: dict[int, Slot] = {}
        self._mixed: set[str | None] = set()
        first = {fragment.name: fragment.text for fragment in reversed(fragments)}
        self._headers_first = not any(first.values())

    def read(self) -> list[Slot]:
        """The calls, in order of appearance."""
        for fragment in self._fragments:
            slot = self._latest.get(fragment.name)
            if slot is None:
                self._first_of_name(fragment)
            elif slot.progress is Progress.OPEN:
                self._go_on(slot, fragment)
            elif slot.progress is Progress.EMPTY and self._headers_first:
                self._fill(slot, fragment)
            else:
                self._after(slot, fragment)
        self._settle_copies()
        doubt_openers(self._slots)
        return self._slots

    def _begin(self, fragment: Fragment) -> Slot:
        slot = Slot()
        slot.add(fragment, self._declared)
        if fragment.name in self._mixed:
            slot.doubt = MIXED
        self._slots.append(slot)
        self._latest[fragment.name] = slot
        return slot

    def _first_of_name(self, fragment: Fragment) -> None:
        previous = self._slots[-1] if self._slots else None
        if previous and self._declared and previous.may_be_named_on(fragment.name or "", self._declared):
            previous.add(fragment, self._declared)
            self._latest[fragment.name] = self._latest[previous.name] = previous
        else:
            self._begin(fragment)

    def _go_on(self, slot: Slot, fragment: Fragment) -> None:
        begins = not fragment.text or fragment.text.lstrip().startswith("{")
        if begins and not slot.grows_to(fragment.text):
            self._mix(slot)  # two calls of one tool, one inside the other, or an object inside the arguments
        slot.add(fragment, self._declared)

    def _fill(self, slot: Slot, fragment: Fragment) -> None:
        if fragment.text and slot.fragments > 1:
            self._mix(slot)  # two headers, and then arguments
        slot.add(fragment, self._declared)

    def _mix(self, slot: Slot) -> None:
        slot.doubt = MIXED
        self._mixed.add(slot.name)

    def _after(self, slot: Slot, fragment: Fragment) -> None:
        """A fragment of a tool whose last call is whole."""
        text = fragment.text.strip()
        if not text or (text == "{}" and slot.progress is Progress.BARE):
            slot.learn(fragment.extra)
        elif original := next((one for one in self._slots if one.name == slot.name and one.says(text)), None):
            original.copied = True
            self._copies[len(self._slots)] = original
            self._begin(fragment)
        elif text.startswith("{") or slot.progress is Progress.EMPTY:
            self._begin(fragment)
        else:
            slot.add(fragment, self._declared)

    def _settle_copies(self) -> None:
        """A server that sends whole calls once more does so with all of them; else an equal call may be meant."""
        originals = [slot for number, slot in enumerate(self._slots) if number not in self._copies]
        if all(slot.copied or slot.progress in (Progress.EMPTY, Progress.BARE) for slot in originals):
            self._slots = originals
            return
        for number in self._copies:
            self._slots[number].doubt = COPY
