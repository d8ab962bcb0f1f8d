"""Repair passes over a history, each a pure function with one purpose.

Three of them mend the pairing of calls and results. Their order matters: what answers no call goes first (`drop_orphans`),
then what is left is put in its place (`order_results`), and only then can what is missing be added in the places that are
free (`answer_dangling`).
"""

import json
from collections.abc import Collection

from langchain_core.messages import AIMessage, BaseMessage, FunctionMessage, HumanMessage, ToolMessage

from ..messages.calls import ToolCallRecord, calls_of
from ..messages.open_runs import open_run
from .pairing import Finding, Item, Problem, messages_of, pair

_INTERRUPTED = "This call was interrupted: no result was recorded. Call the tool again if the result is still needed."
_NOT_EXECUTABLE = "This call did not run: {why}. Call the tool again with complete arguments if the result is still needed."

_NOT_OURS = "a result for a tool of the vendor's own; it becomes an item in a user's message"
_DUPLICATE = "a second result for call {0.tool_call_id!r}; the first counts, this one is left out"
_MISPLACED = "it does not follow its AI message directly and in call order; it is moved there"


def drop_orphans(items: list[Item], *, open_start: bool = False, open_end: bool = False) -> Finding:
    """Remove the results that answer no earlier call.

    Args:
        items: The history.
        open_start: Keep the results before the first AI message: they answer calls that only the server knows.
        open_end: Keep the answers to calls of the vendor's own tools that the history ends in: other calls may wait beside these.
    """
    start = next((place for place, (_, message) in enumerate(items) if isinstance(message, AIMessage)), len(items))
    doomed = {place for place in pair(messages_of(items)).orphans if not (open_start and place < start)}
    doomed |= {place for place, (_, message) in enumerate(items) if isinstance(message, FunctionMessage)}
    in_content = _ids_in_content(items) if doomed else frozenset()
    answers = {place: answer for place in doomed if (answer := _answer_to_vendor(items[place][1], in_content)) is not None}
    if open_end and answers:
        kept_from = next(place for place in range(len(items), 0, -1) if not isinstance(items[place - 1][1], ToolMessage))
        doomed -= {place for place in answers if place >= kept_from}
        answers = {place: answer for place, answer in answers.items() if place in doomed}
    problems = [
        Problem(items[place][0], "vendor_result", _NOT_OURS)
        if place in answers
        else Problem(items[place][0], "orphan_result", _orphan_text(items[place][1]))
        for place in sorted(doomed)
    ]
    kept = ((place, (source, answers.get(place, message))) for place, (source, message) in enumerate(items))
    return [item for place, item in kept if place not in doomed or place in answers], problems


def _ids_in_content(items: list[Item]) -> frozenset[str]:
    """Return the ids of calls that exist only in the content of AI messages: those of the vendor's own tools."""
    contents = [message.content for _, message in items if isinstance(message, AIMessage) and isinstance(message.content, list)]
    blocks = [block.get("value", block) for content in contents for block in content if isinstance(block, dict)]
    return frozenset(str(block[key]) for block in blocks if isinstance(block, dict) for key in ("call_id", "id") if block.get(key))


def _answer_to_vendor(message: BaseMessage, call_ids: Collection[str]) -> HumanMessage | None:
    """Return a result for a call of the vendor's own tool as a block of a user's message; None if its type is unknown.

    The block has the type that the result says, the call's id, the result's content as `output`, and `is_error`; its wire shapes it.
    """
    kind = message.additional_kwargs.get("type")
    if not kind or not isinstance(message, ToolMessage) or message.tool_call_id not in call_ids:
        return None
    output = {"output": message.content, "is_error": message.status == "error"}
    return HumanMessage([{"type": kind, "call_id": message.tool_call_id, **output, **message.additional_kwargs}])


def _orphan_text(message: BaseMessage) -> str:
    call = f"call {message.tool_call_id!r}" if isinstance(message, ToolMessage) else f"function {message.name!r}"
    return f"a result for {call}, which nothing before it made; it is left out"


def answer_dangling(items: list[Item], *, open_end: bool) -> Finding:
    """Add an error result for every call without a result.

    Args:
        items: The history.
        open_end: Leave the calls alone that the history ends in: those of its last message other than results.
    """
    messages = messages_of(items)
    last = next((place for place in range(len(messages) - 1, -1, -1) if not isinstance(messages[place], ToolMessage)), -1)
    answers: dict[int, list[Item]] = {}
    problems: list[Problem] = []
    for turn in pair(messages).turns:
        if None not in turn.results or (open_end and turn.at == last):
            continue
        source, message = items[turn.at]
        assert isinstance(message, AIMessage)
        calls = {call.id: call for call in calls_of(message)}
        before = turn.at  # the answer goes behind this one: the AI message, or the last result in its place
        for call_id, result in zip(turn.ids, turn.results, strict=True):
            if result is None:
                answers.setdefault(before, []).append((source, _interrupted_result(calls[call_id])))
                text = f"call {call_id!r} of {calls[call_id].name!r} has no result; it is answered with an error"
                problems.append(Problem(source, "unanswered_call", text))
            elif result == before + 1:
                before = result
    return [one for place, item in enumerate(items) for one in (item, *answers.get(place, ()))], problems


def _interrupted_result(call: ToolCallRecord) -> ToolMessage:
    text = _INTERRUPTED if call.args is not None else _NOT_EXECUTABLE.format(why=(call.why or "").rstrip("."))
    content = json.dumps({"error": text}, ensure_ascii=False)
    return ToolMessage(content=content, tool_call_id=call.id, name=call.name or None, status="error")


def order_results(items: list[Item]) -> Finding:
    """Move every result directly after its AI message, in call order, and keep only the first result of each call."""
    doomed = pair(messages_of(items)).duplicates
    unasked = [place for place in doomed if open_run(items[place][1]) is None]  # the run inside the others went on
    problems = [Problem(items[place][0], "duplicate_result", _DUPLICATE.format(items[place][1])) for place in unasked]
    kept = [item for place, item in enumerate(items) if place not in doomed] if doomed else items
    results = {turn.at: [place for place in turn.results if place is not None] for turn in pair(messages_of(kept)).turns}
    moved = [place for at, places in results.items() for number, place in enumerate(places, at + 1) if place != number]
    problems += [Problem(kept[place][0], "misplaced_result", _MISPLACED) for place in moved]
    if moved:
        placed = {place for places in results.values() for place in places}
        order = [one for place in range(len(kept)) if place not in placed for one in (place, *results.get(place, ()))]
        kept = [kept[place] for place in order]
    return kept, sorted(problems, key=lambda problem: problem.index)
