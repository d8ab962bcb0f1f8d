"""The assembly of a stream's fragments to tool calls, in any server's dialect.

No single field identifies a call: index, id, name, position and the end of the JSON text are each broken on some server, and each is the
only thing that tells on another. So nothing is decided before the stream has ended. Then an index is believed if it tells calls apart;
where it does not, the calls are read by id, by name, by order or by shape (`assignment`), and their arguments by a closed list of ways
(`arguments`). A call that could be read in two ways is not `ok`: it must not run.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..messages.calls import ToolCallRecord
from .arguments import Arguments, agreed
from .assignment import Groups, read_groups
from .slot import MIXED, REPEATS, Fragment, Progress, Slot, read_fragment, read_list, text_at

_logger = logging.getLogger("langchain_autotools")

_NAMELESS = "it names no tool"
_MISNAMED = "it names two tools"


@dataclass(eq=False, repr=False)
class ToolCallAssembler:
    """Assembles the calls of one turn, in linear time.

    Args:
        declared: The names of the tools that the model was told of; they help to tell a name in parts from two names.
    """

    _declared: Collection[str] = ()
    _groups: Groups = field(default_factory=dict)
    _order: list[int | None] = field(default_factory=list)
    _ids: dict[str, int | None] = field(default_factory=dict)
    _again: list[Fragment] = field(default_factory=list)

    @property
    def begun(self) -> bool:
        """Whether any fragment has arrived."""
        return bool(self._groups)

    def feed(self, fragments: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> None:
        """Add the fragments of one chunk in their wire form, as a list or as a single one."""
        if fragments.__class__ is not list and isinstance(fragments, Mapping):
            fragments = (fragments,)
        texts = list(map(text_at, fragments))
        if len(texts) > 1 and None in texts:
            for raw, fragment in zip(fragments, read_list(fragments), strict=True):
                if REPEATS in raw:
                    self._again.append(fragment)
                else:
                    self._add(fragment)
            return
        for raw, more in zip(fragments, texts, strict=True):
            if more is None and REPEATS in raw:
                self._again.append(read_fragment(raw))
                continue
            if more is None or more[0] not in self._groups:
                self._add(read_fragment(raw))
                continue
            index, text = more
            self._groups[index].append(text)
            self._order.append(index)

    def feed_again(self, calls: Sequence[Mapping[str, Any]]) -> None:
        """Add the calls of a whole message that follows fragments and may repeat them."""
        self._again += read_list(calls)

    def _add(self, fragment: Fragment) -> None:
        key = fragment.index
        if fragment.id in self._ids and key not in self._groups and (key is None or fragment.name is None):
            key = self._ids[fragment.id]
        self._groups.setdefault(key, []).append(fragment)
        self._order.append(key)
        if fragment.id is not None:
            self._ids.setdefault(fragment.id, key)

    def finish(self) -> list[ToolCallRecord]:
        """Return the calls of the turn in the model's order, with the server's ids or "".

        Call it once, when all fragments are in.
        """
        slots, rule = read_groups(self._groups, self._order, self._declared)
        if self._again:
            self._compare(slots)
        alone = not any(slot.progress is Progress.EMPTY for slot in slots)
        if any(found.cumulative for slot in slots for found in slot.calls):
            for slot in slots:
                slot.calls[:] = [found.otherwise or found for found in slot.calls]
        calls = [call for slot in slots for call in _assembled(slot, alone=alone)]
        if calls:
            _logger.debug("%d tool calls told apart by %s, %d may run", len(calls), rule, sum(call.args is not None for call in calls))
        return calls

    def _compare(self, slots: list[Slot]) -> None:
        """Compare the calls of a whole message with those of its stream, by id or else in their order; append those that are new."""
        waiting, whole = [*slots], len(slots) == len(self._again)
        for fragment in self._again:
            slot = _repeated_slot(fragment, waiting, whole=whole)
            if slot is None:
                slots.append(Slot())
                slots[-1].add(fragment, self._declared)
                continue
            waiting.remove(slot)
            text, doubt = agreed([slot.pieces, [fragment.text]])
            slot.name, slot.id = slot.name or fragment.name, slot.id or fragment.id
            slot.ambiguity = slot.ambiguity or doubt or fragment.doubt or (_MISNAMED if fragment.name not in (None, slot.name) else None)
            slot.learn(fragment.extra)
            slot.replace_text(text)


def _repeated_slot(fragment: Fragment, slots: Sequence[Slot], *, whole: bool) -> Slot | None:
    """Return the call of a stream that a call of its whole message repeats; `whole`: whether there are as many of them."""
    same_id = next((slot for slot in slots if slot.id is not None and slot.id == fragment.id), None)
    if same_id is not None or not slots:
        return same_id
    may_be = whole or (None in (slots[0].id, fragment.id) and slots[0].name == fragment.name)
    return slots[0] if may_be else None


def _assembled(slot: Slot, *, alone: bool) -> list[ToolCallRecord]:
    """Return the calls in a slot: usually one, none for an empty slot, several if its text contains several objects.

    Args:
        slot: All fragments of what is taken for one call.
        alone: Whether no other call of the turn lacks arguments; if one does, the second object may be its.
    """
    if slot.name is None and not slot.pieces:
        return []
    found = slot.calls
    ambiguity = slot.ambiguity
    if slot.name is None:
        ambiguity = _NAMELESS
    elif slot.misnamed:
        ambiguity = _MISNAMED
    elif len(found) > 1 and not alone:
        ambiguity = MIXED
    if ambiguity is not None:
        found = [Arguments(slot.text, None, f"the call was not run: {ambiguity}")]
    return [
        ToolCallRecord("" if number else slot.id or "", slot.name or "", one.raw, one.value, one.why, extra=slot.extra)
        for number, one in enumerate(found)
    ]
