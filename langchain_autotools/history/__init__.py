"""Repair of message histories for any vendor, in pure passes over a list of messages.

Every pass takes a list of messages and gives a new one. None of them changes a message, waits, reads a clock or draws a
random number; the same history always gives the same result, and a second time changes nothing. What is wrong for
everybody is mended here; what only one wire wants is shaped by that wire's mapper.

The order of the passes in `repair`, and why:

1. Loose chunks are joined: only then there are messages.
2. Removals are carried out before run messages are unfolded (a removed run message goes with all it carries) and again
   after it (a message that was carried can be removed alone).
3. Run messages are unfolded: from here on the history is the one that will be sent.
4. The former function form is rewritten, and calls and results that are in content blocks alone are read from there.
5. Every call gets an id and a name of its own: from here on ids tell calls apart.
6. Orphans are dropped, then results put in their place, then dangling calls answered; see `repairs`.

What is valid is not always sent as it is. A request has the results of a message in call order, because servers that count them go by it.
It has no message of the model's that says nothing, because several vendors refuse it.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from ..messages.calls import call_ids
from ..messages.incremental import MessageMemo, growing
from ..messages.metadata import FAILOVER, is_cut_reply, own_metadata
from .expansion import expand, expand_runs, join_generations, split_generations
from .pairing import Finding, Item, Problem, ProblemKind, drop_empty, messages_of, soundness
from .repairs import (
    apply_removals,
    dangling_answered,
    fold_chunks,
    name_calls,
    orphans_dropped,
    read_blocks,
    results_ordered,
    translate_functions,
    with_call_ids,
)

__all__ = [
    "Problem",
    "ProblemKind",
    "answer_dangling",
    "as_sent",
    "drop_orphans",
    "expand",
    "explain",
    "join_generations",
    "merge_runs",
    "order_results",
    "repair",
    "split_generations",
    "validate",
]

_logger = logging.getLogger("langchain_autotools")

_LOSSES: frozenset[ProblemKind] = frozenset({"orphan_result", "duplicate_result"})
"""Problems whose repair removes a message with content."""


def repair(messages: Sequence[BaseMessage], *, open_end: bool = False, open_start: bool = False) -> list[BaseMessage]:
    """Return a history that the models of every vendor take: each call answered exactly once, directly after its AI message.

    A result that answers no call, or one that is answered already, is left out with a WARNING. An AI message that says nothing stays, and
    so does the order in which the results of one message came: both are mended in each request.

    Args:
        messages: Any history. Run messages are replaced by the messages they carry.
        open_end: Leave the calls unanswered that the history ends in (to execute them, or to answer them otherwise).
        open_start: Keep the results before the first AI message: the messages go on with a conversation that a server keeps, and
            answer its calls.

    Returns:
        A new list; a valid history comes back with the same objects. The given list and its messages are not changed.
    """
    if soundness(growing(messages), open_start).is_sound(open_end):
        return list(messages)
    return _repaired(messages, open_end, open_start)


def to_send(messages: Sequence[BaseMessage], *, open_start: bool = False) -> list[BaseMessage]:
    """Return the messages of a request: repaired, and with the call ids that are sent to the server.

    What is derived from them goes on from the request before, where they begin with its messages.

    Args:
        messages: Any history.
        open_start: As of `repair`.
    """
    known = growing(messages)
    found = soundness(known, open_start)
    if found.is_sound(False) and found.as_sent:
        known.keep()
        fold = known.derive(_SentCopies, _SentCopies)
        return fold.with_requests(known) if fold.cuts else known.replaced(fold.copies) if fold.copies else known
    repaired = [*messages] if found.is_sound(False) else _repaired(messages, False, open_start)
    return as_sent(messages_of(results_ordered(list(enumerate(drop_empty(repaired))))[0]))


def _repaired(messages: Sequence[BaseMessage], open_end: bool, open_start: bool) -> list[BaseMessage]:
    items, problems = _mended(messages, open_end, open_start)
    for problem in problems:
        if problem.kind in _LOSSES:
            _logger.warning("message %d of a history: %s", problem.index, problem.text)
    return messages_of(items)


def validate(messages: Sequence[BaseMessage], *, open_end: bool = False, open_start: bool = False) -> list[Problem]:
    """Return the problems that `repair` would mend, in the order of the messages; empty for a valid history.

    A run message is no problem: it stands for the messages it carries, and problems of these are reported at its position.

    Args:
        messages: Any history.
        open_end: Whether calls that the history ends in may be unanswered.
        open_start: Whether results before the first AI message may answer calls that are not there.
    """
    if soundness(messages, open_start).is_sound(open_end):
        return []
    return sorted(_mended(messages, open_end, open_start)[1], key=lambda problem: problem.index)


def explain(messages: Sequence[BaseMessage]) -> str:
    """Return the problems of a history as text, one line each."""
    problems = validate(messages)
    if not problems:
        return f"Nothing to repair in {len(messages)} messages."
    lines = [f"message {problem.index} ({type(messages[problem.index]).__name__}): {problem.text}" for problem in problems]
    return "\n".join([f"{len(problems)} to repair in {len(messages)} messages:", *lines])


def _mended(messages: Sequence[BaseMessage], open_end: bool, open_start: bool) -> Finding:
    steps: tuple[Callable[[list[Item]], Finding], ...] = (
        fold_chunks,
        apply_removals,
        expand_runs,
        partial(apply_removals, last=True),
        fold_chunks,  # between which something was removed
        translate_functions,
        read_blocks,
        name_calls,
        partial(orphans_dropped, open_start=open_start, open_end=open_end),
        partial(results_ordered, strict=False),
        partial(dangling_answered, open_end=open_end),
    )
    items: list[Item] = list(enumerate(messages))
    problems: list[Problem] = []
    for step in steps:
        items, found = step(items)
        problems += found
    return items, problems


def drop_orphans(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages without results that answer no call: one pass of `repair`."""
    return messages_of(orphans_dropped(list(enumerate(messages)))[0])


def order_results(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages with every result directly after its AI message, in call order. Calls get unique ids first."""
    return messages_of(results_ordered(name_calls(list(enumerate(messages)))[0])[0])


def answer_dangling(messages: Sequence[BaseMessage], *, open_end: bool = False) -> list[BaseMessage]:
    """Return the messages with an answer for every call without a result. Calls get unique ids first.

    Args:
        messages: The history.
        open_end: Whether the calls of the last AI message may stay without results.
    """
    return messages_of(dangling_answered(name_calls(list(enumerate(messages)))[0], open_end=open_end)[0])


# ---------------------------------------------------------------------------------------------- sent
#
# The form in which a stored history is sent.
#
# A call whose server gave it no id of its own is known by a random one. What is sent for it is derived from its place instead and
# remembered beside it, so that the same conversation makes the same requests, whoever had it.

_memo: MessageMemo[BaseMessage] = MessageMemo()  # the same copy in every turn, so that what was encoded of it is found again


@dataclass(slots=True, eq=False, repr=False)
class _SentCopies:
    """A fold that makes the copies of messages with the call ids that are sent, by their places.

    Attributes:
        copies: The copies.
        cuts: The places of replies that were cut off, after which a request to go on may follow: what is sent then need not begin with what
            was sent.
    """

    copies: dict[int, BaseMessage] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    _sent: Mapping[str, str] = field(default_factory=dict)
    _count: int = 0

    def copy(self) -> "_SentCopies":
        """Return an independent copy."""
        return _SentCopies({**self.copies}, [*self.cuts], self._sent, self._count)

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""
        sent = self._sent
        for place, message in enumerate(messages, self._count):
            if isinstance(message, AIMessage):
                own = own_metadata(message)
                if FAILOVER in own and is_cut_reply(message):
                    self.cuts.append(place)
                sent = _sent_ids(message, own)
                if sent:
                    self.copies[place] = _with_ids_sent(message, sent)
            elif sent and isinstance(message, ToolMessage) and message.tool_call_id in sent:
                self.copies[place] = _with_ids_sent(message, {message.tool_call_id: sent[message.tool_call_id]})
        self._sent = sent
        self._count += len(messages)

    def with_requests(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return the messages that were read as they are sent: with a request to go on after each cut reply that nothing else follows."""
        made: list[BaseMessage] = []
        for place, message in enumerate(messages):
            made.append(self.copies.get(place, message))
            if place in self.cuts and all(isinstance(one, AIMessage) for one in messages[place + 1 : place + 2]):
                made.append(GO_ON)
        return made


GO_ON: Final = HumanMessage(
    "Your reply above was cut off by a technical fault, and is shown as far as it came. Go on exactly where it stops, so that both parts "
    "read as one reply: repeat nothing of it, say nothing about the interruption, and call tools where that is the next step."
)
"""The request to go on with a reply that was cut off."""


def as_sent(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return a repaired history as it is sent to the server, with the call ids that it is to have. A reply that was cut off (`fallbacks`)
    and that no message of the user follows is followed by a request to go on.

    Returns:
        A new list. Messages that are not touched are the same objects.
    """
    fold = _SentCopies()
    fold.read(messages)
    return fold.with_requests(messages)


def _with_ids_sent(message: BaseMessage, sent: Mapping[str, str]) -> BaseMessage:
    """Return the message with its call ids replaced."""
    copy = _memo.get(message, sent)
    if copy is None:
        if isinstance(message, AIMessage):
            copy = with_call_ids(message, list(sent), list(sent.values()))
        else:
            (call_id,) = sent.values()
            copy = message.model_copy(update={"tool_call_id": call_id})
        _memo.put(message, sent, copy)
    return copy


def _sent_ids(message: AIMessage, own: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the sent id of each call, by its id; empty if all are unchanged, or if two calls would get the same id."""
    entries = own.get("calls")
    recorded: dict[str, str] = {}
    for entry in entries if isinstance(entries, list) else ():  # not `records_of`: this is done for every message of every request
        if isinstance(entry, Mapping) and entry.get("sent_id"):
            recorded[str(entry.get("id"))] = str(entry["sent_id"])
    if not recorded:
        return recorded
    sent = {call_id: recorded.get(call_id, call_id) for call_id in call_ids(message) if call_id}
    return sent if len(set(sent.values())) == len(sent) and list(sent) != list(sent.values()) else {}


# ---------------------------------------------------------------------------------------------- merging
# Merging of consecutive messages with one role, for wires on which the roles must alternate.
#
# No general repair: most vendors take messages of one role in a row, and joining would change what was sent before.


def merge_runs(messages: Sequence[BaseMessage], *, separator: str = "\n\n") -> list[BaseMessage]:
    """Merge consecutive human, system and AI messages of the same kind.

    Texts are joined by `separator`, lists of content blocks one after another. The joined message keeps the id of the
    first and, of everything else that both have, what the last one says. An AI message with calls only ends a run: its
    results must follow it. Tool results are never joined.

    Returns:
        A new list. Messages that are not joined are the same objects.
    """
    merged: list[BaseMessage] = []
    for message in messages:
        left = merged[-1] if merged else None
        has_calls = isinstance(left, AIMessage) and (left.tool_calls or left.invalid_tool_calls)
        alike = any(isinstance(left, role) and isinstance(message, role) for role in (HumanMessage, SystemMessage, AIMessage))
        if left is not None and alike and not has_calls:
            merged[-1] = _merged_pair(left, message, separator)
        else:
            merged.append(message)
    return merged


def _merged_pair(left: BaseMessage, right: BaseMessage, separator: str) -> BaseMessage:
    texts = [one.content for one in (left, right) if isinstance(one.content, str)]
    both_texts = len(texts) == 2
    update: dict[str, Any] = {
        "id": left.id,
        "content": separator.join(filter(None, texts)) if both_texts else [*_as_blocks(left.content), *_as_blocks(right.content)],
        "additional_kwargs": {**left.additional_kwargs, **right.additional_kwargs},
        "response_metadata": {**left.response_metadata, **right.response_metadata},
        "name": left.name if left.name == right.name else None,
    }
    return right.model_copy(update=update)


def _as_blocks(content: str | list[Any]) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content
