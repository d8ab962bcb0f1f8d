"""The growing output items of one streamed reply: the item of each event, and the part already handed on.

Servers name an item by its place (`output_index`), by its id, by both or, for some events, by neither; ids may differ between
two events of one item, and an item may come only at its end or only in the reply as a whole (wire quirks P-01, P-03, P-04; llama.cpp
sends no output_index). The item as it stands in `output_item.done` is the truth, deltas are for display (wire quirk P-02).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ....turn.partial_calls import CallPiece
from .item_parts import custom_piece
from .items import CALL_TYPES, CUSTOM_CALL, parts_of, text_of_item
from .wire import Item, ResponseEvent


@dataclass(slots=True, eq=False)
class Slot:
    """One output item.

    Attributes:
        number: Its place among the items, in the order in which they came.
        index: Its `output_index`, where the server says one.
        item: The item as far as it is known.
        done: Whether `item` is complete.
        text_length: The number of characters of its text that were handed on.
        thought_length: The number of characters of its reasoning that were handed on.
        thinks_in: The text that is handed on as its reasoning, "summary" or "content": the first to arrive.
        refusal_length: The number of characters of its refusal that were handed on.
        pieces: Fragments of a call's arguments.
        shown: Whether it was shown as a call that is being written.
    """

    number: int
    index: int | None
    item: Item
    done: bool = False
    text_length: int = 0
    thought_length: int = 0
    thinks_in: Literal["content", "summary"] | None = None
    refusal_length: int = 0
    pieces: list[str] = field(default_factory=list)
    shown: bool = False

    @property
    def kind(self) -> str | None:
        """The item's type."""
        return self.item.get("type")

    def unsaid(self) -> str:
        """Return the part of a complete item's text that no chunk has contained yet."""
        return text_of_item(self.item)[self.text_length :]

    def unrefused(self) -> str:
        """Return the part of a complete item's refusal that no chunk has contained yet."""
        refusal = "".join(str(part.get("refusal") or "") for part in parts_of(self.item) if part.get("type") == "refusal")
        return refusal[self.refusal_length :]

    def unthought(self) -> list[str]:
        """Return the part of a complete item's reasoning that has not been handed on: its parts, or the remainder as one."""
        parts = thoughts_of(self.item, self.thinks_in)
        if not self.thought_length:
            return [part for part in parts if part]
        rest = "".join(parts)[self.thought_length :]
        return [rest] if rest else []

    def piece(self, text: str, *, ended: bool = False) -> CallPiece | None:
        """Return a piece of a call that is being written; None if there is nothing to show.

        Args:
            text: The piece of the arguments; of a custom tool's input, which becomes the JSON of one argument.
            ended: Whether the item is complete.
        """
        kind, call_id, name = self.item.get("type"), self.item.get("call_id"), self.item.get("name")
        if kind not in CALL_TYPES or not call_id or not name:
            return None
        if kind == CUSTOM_CALL:
            text = custom_piece(text if self.pieces or not ended else str(self.item.get("input") or ""), first=not self.shown, last=ended)
        elif ended:
            return None
        first, self.shown = not self.shown, True
        return CallPiece(call_id, name if first else None, text)

    def as_item(self) -> Item:
        """Return the item; one without an end event gets the streamed arguments."""
        if self.done or self.kind not in CALL_TYPES:
            return self.item
        written = "".join(self.pieces)
        if self.kind == CUSTOM_CALL:
            return {**self.item, "input": self.item.get("input") or written}
        return {**self.item, "arguments": self.item.get("arguments") or written}


def thoughts_of(item: Item, kind: Literal["content", "summary"] | None) -> list[str]:
    """Return the parts of a reasoning item's text: of its summary, else of its content.

    Args:
        item: The item.
        kind: The text to return; None: the first that is not empty.
    """
    keys: tuple[Literal["content", "summary"], ...] = (kind,) if kind else ("summary", "content")
    for key in keys:
        texts = [str(part.get("text") or "") for part in parts_of(item, key)]
        if any(texts):
            return texts
    return []


class Slots:
    """The items of one reply."""

    def __init__(self) -> None:
        self._slots: list[Slot] = []
        self._by_index: dict[int, Slot] = {}
        self._by_id: dict[str, Slot] = {}

    def of(self, event: ResponseEvent, kind: str) -> Slot:
        """Return the slot of the item that an event belongs to; `kind` is the item's type.

        Args:
            event: The event.
            kind: The type of the item that it is about.
        """
        found = self._find(event.get("output_index"), event.get("item_id"))
        if found is None and event.get("item_id") is None and event.get("output_index") is None:
            found = next((slot for slot in reversed(self._slots) if slot.kind == kind and not slot.done), None)
        return found if found is not None else self._new(event.get("output_index"), {"type": kind, "id": event.get("item_id")})

    def open(self, event: ResponseEvent, item: Item) -> Slot:
        """Return the slot of an item that begins.

        Args:
            event: The event that says so.
            item: The item as it begins.
        """
        found = self._find(event.get("output_index"), item.get("id"))
        if found is None:
            return self._new(event.get("output_index"), item)
        found.item = {**found.item, **item}
        return found

    def close(self, event: ResponseEvent, item: Item) -> Slot:
        """Return the slot of an item that is complete.

        Args:
            event: The event that says so.
            item: The whole item.
        """
        slot = self._find(event.get("output_index"), item.get("id")) or self._same_call(item) or self._new(event.get("output_index"), item)
        return self._complete(slot, item)

    def complete_from(self, output: Sequence[Item]) -> list[Slot]:
        """Complete the items from the whole reply and return the slots that were incomplete."""
        if len(output) <= len(self._slots) and all(slot.done for slot in self._slots):
            return []
        completed = []
        for position, item in enumerate(output):
            slot = self._by_id.get(item.get("id") or "")
            slot = slot or self._same_call(item) or self._at(position, item) or self._new(position, item)
            if not slot.done:
                completed.append(self._complete(slot, item))
        return completed

    def ordered(self) -> list[Slot]:
        """Return all slots in the order of the reply."""
        if any(slot.index is None for slot in self._slots):
            return self._slots
        return sorted(self._slots, key=lambda slot: slot.index or 0)

    def _find(self, index: int | None, identifier: str | None) -> Slot | None:
        found = self._by_index.get(index) if index is not None else None
        return found if found is not None or not identifier else self._by_id.get(identifier)

    def _same_call(self, item: Item) -> Slot | None:
        """Return the open slot of the same call, for servers that change an item's id at the end."""
        wanted = item.get("call_id")
        return next((slot for slot in self._slots if wanted and not slot.done and slot.item.get("call_id") == wanted), None)

    def _at(self, position: int, item: Item) -> Slot | None:
        ordered = self.ordered()
        return ordered[position] if position < len(ordered) and ordered[position].kind == item.get("type") else None

    def _new(self, index: int | None, item: Item) -> Slot:
        slot = Slot(len(self._slots), index if isinstance(index, int) else None, item)
        self._slots.append(slot)
        if index is not None:
            self._by_index[index] = slot
        if identifier := item.get("id"):
            self._by_id[identifier] = slot
        return slot

    def _complete(self, slot: Slot, item: Item) -> Slot:
        slot.item, slot.done = item, True
        if identifier := item.get("id"):
            self._by_id[identifier] = slot
        return slot
