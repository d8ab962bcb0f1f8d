"""Repair of message histories for any vendor, in pure passes over a list of messages.

Every pass takes a list of messages and gives a new one. None of them changes a message, waits, reads a clock or draws a
random number; the same history always gives the same result, and a second time changes nothing. What is wrong for
everybody is mended here; what only one wire wants is shaped by that wire's mapper.

The order of the passes in `repair`, and why:

1. Loose chunks are joined: only then there are messages.
2. Removals are carried out before run messages are unfolded (a removed run message goes with all it carries) and again
   after it (a message that was carried can be removed alone).
3. Run messages are unfolded: from here on the history is the one that will be sent.
4. The former function form is rewritten, and calls and results that stand in content blocks alone are read from there.
5. Every call gets an id and a name of its own: from here on ids tell calls apart.
6. Orphans are dropped, then results put in their place, then dangling calls answered; see `passes`.

What is valid is not always sent as it stands: a request has the results of a message in call order, which servers go by that count them,
and no message of the model's that says nothing, which several vendors refuse.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from langchain_core.messages import BaseMessage

from ..messages.incremental import growing
from . import repairs
from .expansion import expand, expand_runs
from .pairing import Finding, Item, Problem, ProblemKind, messages_of, needs_no_repair, soundness
from .repairs import apply_removals, drop_empty, fold_chunks, name_calls, read_blocks, translate_functions
from .sent import as_sent, grown_as_sent, merge_runs

__all__ = [
    "Problem",
    "ProblemKind",
    "answer_dangling",
    "as_sent",
    "drop_orphans",
    "expand",
    "explain",
    "merge_runs",
    "order_results",
    "repair",
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
    if needs_no_repair(growing(messages), open_end, open_start):
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
        return grown_as_sent(known)
    repaired = [*messages] if found.is_sound(False) else _repaired(messages, False, open_start)
    return as_sent(messages_of(repairs.order_results(list(enumerate(drop_empty(repaired))))[0]))


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
    if needs_no_repair(messages, open_end, open_start):
        return []
    return sorted(_mended(messages, open_end, open_start)[1], key=lambda problem: problem.index)


def explain(messages: Sequence[BaseMessage]) -> str:
    """Return the problems of a history as text, one line each."""
    problems = validate(messages)
    if not problems:
        return f"Nothing to repair in {len(messages)} messages."
    lines = [f"message {problem.index} ({type(messages[problem.index]).__name__}): {problem.text}" for problem in problems]
    return "\n".join([f"{len(problems)} to repair in {len(messages)} messages:", *lines])


def drop_orphans(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages without results that answer no call: one pass of `repair`."""
    return messages_of(repairs.drop_orphans(list(enumerate(messages)))[0])


def order_results(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages with every result directly after its AI message, in call order. Calls get unique ids first."""
    return messages_of(repairs.order_results(name_calls(list(enumerate(messages)))[0])[0])


def answer_dangling(messages: Sequence[BaseMessage], *, open_end: bool = False) -> list[BaseMessage]:
    """Return the messages with an answer for every call without a result. Calls get unique ids first.

    Args:
        messages: The history.
        open_end: Whether the calls of the last AI message may stay without results.
    """
    return messages_of(repairs.answer_dangling(name_calls(list(enumerate(messages)))[0], open_end=open_end)[0])


def _mended(messages: Sequence[BaseMessage], open_end: bool, open_start: bool) -> Finding:
    steps: tuple[Callable[[list[Item]], Finding], ...] = (
        fold_chunks,
        apply_removals,
        expand_runs,
        partial(apply_removals, last=True),
        translate_functions,
        read_blocks,
        name_calls,
        partial(repairs.drop_orphans, open_start=open_start, open_end=open_end),
        partial(repairs.order_results, strict=False),
        partial(repairs.answer_dangling, open_end=open_end),
    )
    items: list[Item] = list(enumerate(messages))
    problems: list[Problem] = []
    for step in steps:
        items, found = step(items)
        problems += found
    return items, problems
