"""Assignment of fragments to calls by the shape of their text, for dialects that mark fragments only with the tool's name.

Fragments of different tools are told apart by the name, even if they alternate. A call of the same tool starts where a text
begins anew after the one before it was whole.
"""

from collections.abc import Collection, Sequence

from .ambiguity import COPY, MIXED, mark_empty, mark_openers
from .arguments import spell_text
from .fragments import Fragment
from .json_text import has_other_split
from .slot import Progress, Slot


def read_by_shape(fragments: Sequence[Fragment], declared: Collection[str]) -> list[Slot]:
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
            self._fill(slot, fragment)
        else:
            self._after(slot, fragment)

    def finish(self) -> list[Slot]:
        """Return the calls in order of appearance."""
        for slot in self._latest.values():
            self._judge(slot)
        self._settle_copies()
        mark_openers(self._slots)
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

    def _fill(self, slot: Slot, fragment: Fragment) -> None:
        if fragment.text and (slot.fragments > 1 or self._original(slot, fragment.text)):
            self._mix(slot)  # two headers, and then arguments; or a header, and then those of another call once more
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
            mark_empty(self._slots)
