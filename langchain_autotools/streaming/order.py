"""Fragments read into calls by their order: each starts a call or continues one that is not whole yet.

A fragment that names no call belongs to the only call that is still to be completed. If there are several, it is unclear
which of them: all are in doubt, and so is every call that gets such a fragment from then on.
"""

from collections.abc import Collection, Sequence

from .arguments import read_arguments
from .doubts import COPY, MIXED, doubt_empty, doubt_openers
from .fragments import Fragment
from .json_text import same
from .slots import Progress, Slot, spelling

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
        self._said: set[str | None] = set()
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
        self._set_aside(latest)
        named = [slot for slot in self._unfinished if fragment.name is None or slot.name in (None, fragment.name)]
        if not named and latest.may_be_named_on(fragment.name or "", self._declared):
            named = [latest]
        if not named:
            self._surplus(fragment)
            return
        target = named[-1]
        unclear = len(named) > 1 or self._mixed or self._was_said(fragment.text, target)
        target.add(fragment, self._declared)
        if unclear:
            for slot in named:
                slot.doubt = MIXED
            self._mixed = True
            self._unfinished = [slot for slot in self._unfinished if slot is target or slot not in named]

    def _set_aside(self, latest: Slot) -> None:
        """Set aside the calls that are whole, and remember what they say."""
        unfinished = []
        for slot in self._unfinished:
            if self._may_go_on(slot, latest):
                unfinished.append(slot)
            else:
                self._said.add(slot.said or "{}")
        self._unfinished = unfinished

    def _was_said(self, text: str, target: Slot) -> bool:
        """Whether `text` may be the arguments of an earlier call once more, and not the next part of `target`."""
        again = _spelled(text)
        if again is None:
            return text.strip() == "{}" and "{}" in self._said and target.progress is Progress.OPEN
        return again in self._said

    def _may_go_on(self, slot: Slot, latest: Slot) -> bool:
        progress = slot.progress
        if progress in (Progress.OPEN, Progress.CLOSED):
            return progress is Progress.OPEN
        return slot.fragments == 1 and (slot is latest or progress is self._waits)

    def _surplus(self, fragment: Fragment) -> None:
        """Text that comes when every call is whole: a copy, or too much."""
        again = _spelled(fragment.text)
        alike = [slot for slot in self._slots if fragment.name in (None, slot.name)] or self._slots
        original = next((slot for slot in reversed(alike) if again and slot.said == again), None)
        if original is not None:
            original.copied = True
            original.learn(fragment.extra)
            return
        latest = alike[-1]
        bare_again = latest.progress is Progress.BARE and fragment.text.strip() == "{}"
        latest.add(fragment, self._declared)
        if fragment.text.lstrip().startswith("{") and not bare_again:
            latest.doubt = MIXED


def _spelled(text: str) -> str | None:
    """What a fragment says if it is whole arguments by itself."""
    return spelling(read_arguments([text])) if text.lstrip()[:1] in ("{", '"') else None


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
        self._copies: set[int] = set()
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
        self._doubt_the_broken()
        return self._slots

    def _doubt_the_broken(self) -> None:
        """Where a call makes no sense, fragments of it may be in later calls of its tool, or be missing in those without arguments."""
        broken: set[str | None] = set()
        for slot in self._slots:
            if slot.name in broken:
                slot.doubt = slot.doubt or MIXED
            if slot.arguments is None:
                broken.add(slot.name)
        if self._mixed or not all(slot.arguments for slot in self._slots):
            doubt_empty(self._slots)

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
        if begins and (not slot.grows_to(fragment.text) or self._original(slot.name, fragment.text)):
            self._mix(slot)  # two calls of one tool, one inside the other, or an object inside the arguments
        slot.add(fragment, self._declared)

    def _fill(self, slot: Slot, fragment: Fragment) -> None:
        if fragment.text and (slot.fragments > 1 or self._original(slot.name, fragment.text)):
            self._mix(slot)  # two headers, and then arguments; or a header, and then those of another call once more
        slot.add(fragment, self._declared)

    def _mix(self, slot: Slot) -> None:
        slot.doubt = MIXED
        self._mixed.add(slot.name)

    def _after(self, slot: Slot, fragment: Fragment) -> None:
        """A fragment of a tool whose last call is whole."""
        text = fragment.text.strip()
        if not text or (text == "{}" and slot.progress is Progress.BARE):
            slot.bare_again += bool(text)
            slot.learn(fragment.extra)
            return
        original = self._original(slot.name, text)
        if original is not None:
            original.copied = original.said is not None
            self._copies.add(len(self._slots))
            self._begin(fragment)
        elif text.startswith("{") or slot.progress is Progress.EMPTY:
            self._begin(fragment)
        else:
            slot.add(fragment, self._declared)

    def _original(self, name: str | None, text: str) -> Slot | None:
        """The whole call of a tool that `text` says once more."""
        again = _spelled(text)
        for slot in self._slots:
            if slot.name != name or slot.progress is Progress.OPEN:
                continue
            if slot.said == again if again else text.strip() == "{}" and slot.progress is Progress.BARE:
                return slot
        return None

    def _settle_copies(self) -> None:
        """A server that sends whole calls once more does so with all of them; else an equal call may be meant."""
        originals = [slot for number, slot in enumerate(self._slots) if number not in self._copies]
        if all(slot.copied or slot.progress in (Progress.EMPTY, Progress.BARE) for slot in originals):
            self._slots = originals
            return
        for number in self._copies:
            self._slots[number].doubt = COPY
