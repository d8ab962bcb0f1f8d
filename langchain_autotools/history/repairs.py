"""The passes that repair a history, each a pure function with one purpose."""

import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
    message_chunk_to_message,
)

from ..chunks import sum_chunks
from ..messages.blocks import holds_call
from ..messages.calls import call_ids, calls_of
from ..messages.metadata import own_metadata, with_own_metadata
from ..messages.run_messages import open_run
from ..strict_json import read_object
from .pairing import (
    Finding,
    Item,
    Problem,
    ids_of_vendors_calls,
    is_call,
    is_result_block,
    messages_of,
    pair,
    says_in_blocks,
    valid_or_invalid,
)

_NAMESPACE = uuid.UUID("0d0d5b0c-3d9b-5b7e-8a4e-6a0f4f5d2c11")


_REMOVE_ALL = "__remove_all__"  # langgraph.graph.message.REMOVE_ALL_MESSAGES


_NO_NAME = "unnamed_tool"


# ---------------------------------------------------------------------------------------------- chunks and removals


def fold_chunks(items: list[Item]) -> Finding:
    """Add up loose chunks of a stream, as stored one by one, to the message they form.

    The chunks of one message follow each other up to the one whose `chunk_position` is "last"; two ids end a message too.
    """
    folded: list[Item] = []
    problems: list[Problem] = []
    for group in _chunk_groups(items):
        source, first = group[0]
        if len(group) == 1 or not isinstance(first, AIMessageChunk):
            folded += group
            continue
        joined = _joined_chunks([chunk for _, chunk in group if isinstance(chunk, AIMessageChunk)])
        folded += [(source, message) for message in joined]
        problems.append(Problem(source, "loose_chunks", f"{len(group)} chunks of one message; they are joined"))
    return folded, problems


def _joined_chunks(chunks: Sequence[AIMessageChunk]) -> list[BaseMessage]:
    """Return the message that the chunks form together; each as a message if core cannot add them up."""
    try:
        return [sum_chunks(chunks)]
    except (TypeError, ValueError):  # one key with values of two types: a history may come from anywhere
        return [message_chunk_to_message(chunk) for chunk in chunks]


def _chunk_groups(items: list[Item]) -> list[list[Item]]:
    groups: list[list[Item]] = []
    for item in items:
        left, right = groups[-1][-1][1] if groups else None, item[1]
        chunks = isinstance(left, AIMessageChunk) and isinstance(right, AIMessageChunk) and left.chunk_position != "last"
        if left is not None and chunks and (not left.id or not right.id or left.id == right.id):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def apply_removals(items: list[Item], *, last: bool = False) -> Finding:
    """Apply each RemoveMessage: remove it and the earlier messages with its id.

    Args:
        items: The history.
        last: Whether those that find nothing to remove are left out too; else they stay.
    """
    if not any(isinstance(message, RemoveMessage) for _, message in items):
        return items, []
    kept: list[Item] = []
    problems: list[Problem] = []
    for source, message in items:
        if not isinstance(message, RemoveMessage):
            kept.append((source, message))
            continue
        left = [] if message.id == _REMOVE_ALL else [item for item in kept if item[1].id != message.id]
        if len(left) < len(kept):
            problems.append(Problem(source, "removal", f"a removal of message {message.id!r}, not a message; it is carried out"))
        elif last:
            problems.append(Problem(source, "removal", f"a removal of message {message.id!r}, which is not there"))
        else:
            left.append((source, message))
        kept = left
    return kept, problems


# ---------------------------------------------------------------------------------------------- the legacy function form


def translate_functions(items: list[Item]) -> Finding:
    """Convert calls and results in OpenAI's former function form (`function_call`, FunctionMessage) to tool calls and results."""
    translated: list[Item] = []
    problems: list[Problem] = []
    open_calls: dict[str, str] = {}  # name of each function that was called and not yet answered -> id of the call
    for source, message in items:
        new: BaseMessage = message
        call: Any = message.additional_kwargs.get("function_call")
        name = call.get("name") if isinstance(call, dict) else None
        if isinstance(message, FunctionMessage) and message.name in open_calls:
            fields = {name: value for name, value in message.__dict__.items() if name != "type"}
            new = ToolMessage(tool_call_id=open_calls.pop(message.name), **fields)
        elif isinstance(message, AIMessage) and isinstance(name, str) and name and not valid_or_invalid(message):
            open_calls = {name: _derived_id(len(translated), 0)}
            entry = _call_entry(name, str(call.get("arguments") or "{}"), open_calls[name])
            extra = {key: value for key, value in message.additional_kwargs.items() if key != "function_call"}
            new = _with_calls(message, [entry]).model_copy(update={"additional_kwargs": extra})
        if new is not message:
            problems.append(Problem(source, "legacy_function", "the former function form; it is rewritten as a tool call or its result"))
        translated.append((source, new))
    return (translated if problems else items), problems


# ---------------------------------------------------------------------------------------------- ids and names of calls


def name_calls(items: list[Item]) -> Finding:
    """Give every call a name and an id that is unique within its message.

    New ids depend on positions alone, so the same history always gets the same ones, and a longer history keeps them. The
    results of such calls get the same ids.
    """
    messages = messages_of(items)
    named = list(items)
    problems: list[Problem] = []
    for turn in pair(messages).turns:
        source, message = items[turn.at]
        assert isinstance(message, AIMessage)
        ids = _unique(turn.ids, turn.at)
        changed = [number for number, call_id in enumerate(ids) if call_id != turn.ids[number]]
        nameless = not all(call["name"] for call in (*message.tool_calls, *message.invalid_tool_calls))
        if not changed and not nameless:
            continue
        named[turn.at] = (source, with_call_ids(message, turn.ids, ids))
        for number in changed:
            old = turn.ids[number]
            what = f"two calls have the id {old!r}; the later one" if old else "a call without an id; it"
            problems.append(Problem(source, "call_id", f"{what} gets the id {ids[number]!r}"))
        problems += [Problem(source, "call_name", f"a call without a name; it is called {_NO_NAME!r}")] if nameless else []
        for place, call_id in [(turn.results[number], ids[number]) for number in changed]:
            if place is not None:
                named[place] = (named[place][0], named[place][1].model_copy(update={"tool_call_id": call_id}))
    return (named if problems else items), problems


def _unique(ids: Sequence[str], at: int) -> list[str]:
    used: set[str] = {""}
    unique = []
    for number, call_id in enumerate(ids):
        unique.append(_derived_id(at, number) if call_id in used else call_id)
        used.add(call_id)
    return unique


def _derived_id(at: int, number: int) -> str:
    return f"call_{uuid.uuid5(_NAMESPACE, f'{at} {number}').hex}"


def _call_entry(name: str, arguments: Any, call_id: str) -> dict[str, Any]:
    """Return an entry of `tool_calls`; of `invalid_tool_calls` if the arguments are neither an object nor its JSON text.

    Args:
        name: The tool's name.
        arguments: The arguments, as an object or as text.
        call_id: The call's id.
    """
    args = read_object(arguments) if isinstance(arguments, str) else arguments
    if isinstance(args, dict):
        return {"type": "tool_call", "name": name, "args": args, "id": call_id}
    return {"type": "invalid_tool_call", "name": name, "args": str(arguments), "id": call_id, "error": None}


def _with_calls(message: AIMessage, entries: Sequence[Mapping[str, Any]]) -> AIMessage:
    """Return the message with its calls replaced by these entries from `_call_entry`."""
    valid = [entry for entry in entries if entry["type"] == "tool_call"]
    invalid = [entry for entry in entries if entry["type"] != "tool_call"]
    plain = cast("AIMessage", message_chunk_to_message(message))  # chunks keep their calls a second time
    return plain.model_copy(update={"tool_calls": valid, "invalid_tool_calls": invalid})


def with_call_ids(message: AIMessage, old: Sequence[str], new: Sequence[str]) -> AIMessage:
    """Return the message with new call ids in all its fields, and a name for every call.

    Args:
        message: The message.
        old: The ids that its calls have, in their order.
        new: The id of each from now on.
    """
    plain = cast("AIMessage", message_chunk_to_message(message))
    calls = _with_ids([*plain.tool_calls, *plain.invalid_tool_calls], old, new)
    update: dict[str, Any] = {
        "tool_calls": calls[: len(plain.tool_calls)],
        "invalid_tool_calls": calls[len(plain.tool_calls) :],
        "additional_kwargs": {key: value for key, value in plain.additional_kwargs.items() if key != "tool_calls"},
    }
    if isinstance(plain.content, list):
        update["content"] = _with_ids(plain.content, old, new)
    own = own_metadata(plain)
    if "calls" in own:
        renamed = {**own, "calls": _with_ids(own["calls"], old, new)}
        update["response_metadata"] = with_own_metadata(plain.response_metadata, renamed)
    return plain.model_copy(update=update)


def _with_ids(entries: Iterable[Any], old: Sequence[str], new: Sequence[str]) -> list[Any]:
    """Return calls, or data about calls, with new ids; entries of one old id get its new ones in order."""
    waiting: dict[str, list[str]] = {}
    for before, after in zip(old, new, strict=True):
        waiting.setdefault(before, []).append(after)
    return [_with_id(entry, waiting) if is_call(entry) else entry for entry in entries]


def _with_id(entry: Mapping[str, Any], waiting: Mapping[str, list[str]]) -> dict[str, Any]:
    field = "call_id" if "call_id" in entry else "id"  # a block of OpenAI's Responses API has both, and pairs by call_id
    ids = waiting.get(str(entry.get(field) or ""))
    name = {"name": _NO_NAME} if "name" in entry and not entry["name"] else {}
    return {**entry, **name, **({field: ids.pop(0)} if ids else {})}


# ---------------------------------------------------------------------------------------------- blocks
# Calls and results that exist only in content blocks, as programs for Anthropic's or OpenAI's own client write them.
#
# There the assistant's content holds the calls (`tool_use`, `function_call`) and the user's content their results (`tool_result`).
# LangChain makes messages of such dicts without looking into their blocks, so that `tool_calls` is empty. Here they become what they say:
# calls of the message, and tool messages.


def read_blocks(items: list[Item]) -> Finding:
    """Convert calls and results that exist only in content blocks to LangChain's fields and messages."""
    read: list[Item] = []
    problems: list[Problem] = []
    for source, message in items:
        if not says_in_blocks(message):
            read.append((source, message))
        elif isinstance(message, AIMessage) and call_ids(message):
            vendors = ids_of_vendors_calls(message.content)  # as calls of the caller's they would be sent twice under one id
            valid = [call for call in message.tool_calls if call["id"] not in vendors]
            invalid = [call for call in message.invalid_tool_calls if call["id"] not in vendors]
            read.append((source, message.model_copy(update={"tool_calls": valid, "invalid_tool_calls": invalid})))
            problems.append(Problem(source, "call_in_content", _VENDORS))
        elif isinstance(message, AIMessage):
            read.append((source, _with_calls(message, [_call_in(block) for block in message.content if holds_call(block)])))
            problems.append(Problem(source, "call_in_content", "calls that are in its content alone; they are read from there"))
        else:
            rest = [block for block in message.content if not is_result_block(block)]
            read += [(source, _tool_message(block, message)) for block in message.content if is_result_block(block)]
            read += [(source, message.model_copy(update={"content": rest}))] if rest and isinstance(message, HumanMessage) else []
            problems.append(Problem(source, "result_in_content", "results of calls in its content; each becomes a tool message"))
    return (read if problems else items), problems


_VENDORS = "a call that the vendor has answered itself, in its content, is among its calls too; it is the vendor's alone"


def _call_in(block: Mapping[str, Any]) -> dict[str, Any]:
    raw = next((block[key] for key in ("input", "args", "arguments") if block.get(key)), block.get("partial_json") or {})
    return _call_entry(str(block.get("name") or ""), raw, str(block.get("call_id") or block.get("id") or ""))


def _tool_message(block: Mapping[str, Any], message: BaseMessage) -> ToolMessage:
    content, mark = block.get("content") or "", block.get("cache_control")
    content = content if isinstance(content, str | list) else str(content)
    if mark:  # also on a result without content
        blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        last = blocks[-1] if isinstance(blocks[-1], dict) else {"type": "text", "text": str(blocks[-1])}
        content = [*blocks[:-1], {**last, "cache_control": mark}]
    failed = block.get("is_error") or getattr(message, "status", None) == "error"
    identifier = block.get("tool_use_id") or getattr(message, "tool_call_id", "")
    return ToolMessage(content=content, tool_call_id=str(identifier), name=message.name, status="error" if failed else "success")


# ---------------------------------------------------------------------------------------------- the pairing
# These passes mend the pairing of calls and results. Their order matters: what answers no call goes first (`orphans_dropped`), then what
# is left is put in its place (`results_ordered`), and only then can what is missing be added in the places that are free
# (`dangling_answered`).


_INTERRUPTED = "This call was interrupted: no result was recorded. Call the tool again if the result is still needed."


_NOT_EXECUTABLE = "This call did not run: {why}. Call the tool again with complete arguments if the result is still needed."


_NOT_OURS = "a result for a tool of the vendor's own; it becomes an item in a user's message"


_DUPLICATE = "a second result for call {0.tool_call_id!r}; the first counts, this one is left out"


_MISPLACED = "it does not follow its AI message directly; it is moved there"


def orphans_dropped(items: list[Item], *, open_start: bool = False, open_end: bool = False) -> Finding:
    """Remove the results that answer no earlier call.

    Args:
        items: The history.
        open_start: Keep the results before the first AI message: they answer calls that only the server knows.
        open_end: Keep the answers to calls of the vendor's own tools that the history ends in: other calls may wait beside these.
    """
    start = next((place for place, (_, message) in enumerate(items) if isinstance(message, AIMessage)), len(items))
    doomed = {place for place in pair(messages_of(items)).orphans if not (open_start and place < start)}
    doomed |= {place for place, (_, message) in enumerate(items) if isinstance(message, FunctionMessage)}
    contents = [message.content for _, message in items if doomed and isinstance(message, AIMessage)]
    blocks = [block.get("value", block) for content in contents for block in content if isinstance(block, dict)]  # not of a text
    in_content = {str(block[key]) for block in blocks if isinstance(block, dict) for key in ("call_id", "id") if block.get(key)}
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


def _orphan_text(message: BaseMessage) -> str:
    call = f"call {message.tool_call_id!r}" if isinstance(message, ToolMessage) else f"function {message.name!r}"
    return f"a result for {call}, which nothing before it made; it is left out"


def _answer_to_vendor(message: BaseMessage, call_ids: Collection[str]) -> HumanMessage | None:
    """Return a result for a call of the vendor's own tool as a block of a user's message; None if its type is unknown.

    The block has the type that the result says, the call's id, the result's content as `output`, and `is_error`; its wire shapes it.
    """
    kind = message.additional_kwargs.get("type")
    if not kind or not isinstance(message, ToolMessage) or message.tool_call_id not in call_ids:
        return None
    output = {"output": message.content, "is_error": message.status == "error"}
    return HumanMessage([{"type": kind, "call_id": message.tool_call_id, **output, **message.additional_kwargs}])


def results_ordered(items: list[Item], *, strict: bool = True) -> Finding:
    """Move every result directly after its AI message, in call order, and keep only the first result of each call.

    Args:
        items: The history.
        strict: Also where all results of a message follow it directly, in another order: those of a run that was resumed twice do.
    """
    doomed = pair(messages_of(items)).duplicates
    unasked = [place for place in doomed if open_run(items[place][1]) is None]  # the run inside the others went on
    problems = [Problem(items[place][0], "duplicate_result", _DUPLICATE.format(items[place][1])) for place in unasked]
    kept = [item for place, item in enumerate(items) if place not in doomed] if doomed else items
    results = {turn.at: [place for place in turn.results if place is not None] for turn in pair(messages_of(kept)).turns}
    if not strict:
        results = {at: sorted(places) if _follow(at, places) else places for at, places in results.items()}
    moved = [place for at, places in results.items() for number, place in enumerate(places, at + 1) if place != number]
    problems += [Problem(kept[place][0], "misplaced_result", _MISPLACED) for place in moved]
    if moved:
        placed = {place for places in results.values() for place in places}
        order = [one for place in range(len(kept)) if place not in placed for one in (place, *results.get(place, ()))]
        kept = [kept[place] for place in order]
    return kept, sorted(problems, key=lambda problem: problem.index)


def dangling_answered(items: list[Item], *, open_end: bool) -> Finding:
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
        placed = [result for result in turn.results if result is not None]
        turned = _follow(turn.at, placed) and placed != sorted(placed)
        before = max(placed) if turned else turn.at  # the answer goes behind this one: the AI message, or the last result in its place
        for call_id, result in zip(turn.ids, turn.results, strict=True):
            if result is None:
                call = calls[call_id]
                why = _INTERRUPTED if call.args is not None else _NOT_EXECUTABLE.format(why=(call.why or "").rstrip("."))
                content = json.dumps({"error": why}, ensure_ascii=False)
                interrupted = ToolMessage(content=content, tool_call_id=call.id, name=call.name or None, status="error")
                answers.setdefault(before, []).append((source, interrupted))
                text = f"call {call_id!r} of {call.name!r} has no result; it is answered with an error"
                problems.append(Problem(source, "unanswered_call", text))
            elif result == before + 1:
                before = result
    return [one for place, item in enumerate(items) for one in (item, *answers.get(place, ()))], problems


def _follow(at: int, places: Collection[int]) -> bool:
    """Whether results follow their AI message directly, in whatever order."""
    return set(places) == set(range(at + 1, at + 1 + len(places)))
