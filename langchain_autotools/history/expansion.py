"""Expansion of run messages in a history to the messages that they carry.

So a history that stored a run message and one that stored its parts are the same history. What the user changed in the run
message after the run (its text, its name, the arguments of calls left to him) is changed in the parts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.utils import message_chunk_to_message

from ..messages.carrier import carried_messages, without_carrier
from ..messages.joints import Joints
from ..messages.metadata import own_metadata, text_of
from .normalize import fold_chunks
from .pairing import Finding, Item, Problem, is_call, is_run, messages_of

_Mark = tuple[str | None, ...]  # what a message is known by: its generation and id; a result: also those of its AI message and call


def expand_runs(items: list[Item]) -> Finding:
    """Replace every run message by the messages it carries, in place. An unreadable one stays.

    Messages that the history already holds are not added again: they are known by their id and their generation (some
    servers give every reply the same id), results also by the call they answer. A text edited after the run wins: the last
    message takes it, and earlier messages of the run lose the text that the edit removed. The sum of the chunks of a stream
    is a run message too; if the stream was cut, text after its last complete message becomes an AI message of its own.
    """
    problems: list[Problem] = []
    runs = {place: _carried(message, source, problems) for place, (source, message) in enumerate(items) if is_run(message)}
    return (_unfold(items, runs) if runs else items), problems


def expand(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages with every run message replaced by the messages that it carries: one pass of `repair`."""
    return messages_of(expand_runs(list(enumerate(messages)))[0])


def _carried(message: BaseMessage, source: int, problems: list[Problem]) -> list[BaseMessage]:
    """Return the messages in a run message; the message itself, without carrier, if they cannot be read."""
    try:
        brought = carried_messages(message)
        parts = _without_chunks(brought)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):  # a history may come from anywhere
        parts = None
    if parts is None or any("messages" in own_metadata(part) for part in parts):
        problems.append(Problem(source, "unreadable_run", "the messages that it carries cannot be read; it stands for itself"))
        return [without_carrier(message)]
    if len(brought or ()) != len(own_metadata(message)["messages"]):
        problems.append(Problem(source, "foreign_message", "it carries messages that no run makes; these are left out"))
    return parts


def _without_chunks(parts: list[BaseMessage] | None) -> list[BaseMessage] | None:
    """Return the carried messages with chunks, which only a client can have put there, converted to messages."""
    joined = None if parts is None else messages_of(fold_chunks(list(enumerate(parts)))[0])
    return joined and [message_chunk_to_message(part) for part in joined]


def _unfold(items: list[Item], runs: Mapping[int, list[BaseMessage]]) -> list[Item]:
    """Replace each run by its parts, except those already in the history."""
    known = {mark for _, marks in _with_marks(message for place, (_, message) in enumerate(items) if place not in runs) for mark in marks}
    unfolded: list[Item] = []
    edits: dict[_Mark, BaseMessage] = {}
    for place, (source, message) in enumerate(items):
        if place not in runs:
            unfolded.append((source, message))
            continue
        parts = runs[place]
        edited = _with_text_edit(message, _with_call_edits(message, parts)) if isinstance(message, AIMessage) else parts
        for number, (part, marks) in enumerate(_with_marks(edited)):
            if number >= len(parts) or part is not parts[number]:
                edits.update((mark, part) for mark in _loosely(marks))
            if known.isdisjoint(_loosely(marks)):
                unfolded.append((source, part))
            known.update(marks)
    return _with_replaced(unfolded, edits) if edits else unfolded


def _with_marks(messages: Iterable[BaseMessage]) -> Iterator[tuple[BaseMessage, list[_Mark]]]:
    """Yield each message with all keys that identify it."""
    owner: str | None = None
    for message in messages:
        noted = message.response_metadata.get("generation_id")
        generation = noted if isinstance(noted, str) else None
        marks: list[_Mark] = [(generation, message.id)] if message.id else []
        if isinstance(message, AIMessage):
            owner = message.id
        elif isinstance(message, ToolMessage) and owner:
            marks.append((generation, owner, message.tool_call_id))
        yield message, marks


def _loosely(marks: Sequence[_Mark]) -> list[_Mark]:
    """Return the keys, and those of a copy that was stored without its generation."""
    return [*marks, *((None, *mark[1:]) for mark in marks)]


def _with_replaced(items: list[Item], edits: Mapping[_Mark, BaseMessage]) -> list[Item]:
    """Return the items with every copy of an edited message replaced by the edited one."""
    marks_of = [marks for _, marks in _with_marks(messages_of(items))]
    return [
        (source, next((edits[mark] for mark in marks if mark in edits), message))
        for (source, message), marks in zip(items, marks_of, strict=True)
    ]


# ---------------------------------------------------------------------------------------------- edits made after the run


def _with_call_edits(run: AIMessage, parts: list[BaseMessage]) -> list[BaseMessage]:
    """Return the parts with the run message's name and edited calls (those left to the caller) set on its last AI message."""
    last = next((number for number in range(len(parts) - 1, -1, -1) if isinstance(parts[number], AIMessage)), None)
    if last is None:
        return parts
    message = parts[last]
    assert isinstance(message, AIMessage)
    update: dict[str, Any] = {}
    if run.name is not None and run.name != message.name:
        update["name"] = run.name
    edited = {call["id"]: call for call in run.tool_calls}
    calls = [edited.get(call["id"], call) for call in message.tool_calls]
    if calls != message.tool_calls:
        update["tool_calls"] = calls
    return [*parts[:last], message.model_copy(update=update), *parts[last + 1 :]] if update else parts


def _with_text_edit(run: AIMessage, parts: list[BaseMessage]) -> list[BaseMessage]:
    """Return the parts with the text of the run message if it was edited."""
    record, text = own_metadata(run), text_of(run)
    spoken = [number for number, part in enumerate(parts) if _is_part_of_text(parts, number, record)]
    texts = [text_of(parts[number]) for number in spoken]
    if _is_joined(text, [parts[number] for number in spoken]):
        return parts
    kept, rest = _common_start(text, texts)
    if "stop_reason" not in record and kept == len(texts):
        return [*parts, AIMessage(rest)] if rest else parts
    if not spoken:
        return parts
    kept = min(kept, len(spoken) - 1)
    _, rest = _common_start(text, texts[:kept])
    edited = list(parts)
    for number in spoken[kept:-1]:
        edited[number] = _with_new_text(edited[number], "")
    edited[spoken[-1]] = _with_new_text(edited[spoken[-1]], rest)
    return edited


def _is_part_of_text(parts: Sequence[BaseMessage], number: int, record: Mapping[str, Any]) -> bool:
    """Whether a part's text belongs to the run's text: AI messages, and the final results of a `return_direct` run."""
    if isinstance(parts[number], AIMessage):
        return True
    return record.get("stop_reason") == "return_direct" and all(isinstance(part, ToolMessage) for part in parts[number:])


def _is_joined(text: str, spoken: Sequence[BaseMessage]) -> bool:
    """Whether `text` is the run's text made of these messages: of all, or (structured output) of the last one only.

    At each joint stands one and the same separator. Which one the model used is not recorded, so any will do.
    """
    pieces, joints = _joints(spoken)
    if pieces and text == pieces[-1]:
        return True
    if not joints:
        return text == "".join(pieces)
    missing = len(text) - sum(map(len, pieces))
    start = sum(map(len, pieces[: min(joints)]))
    separator = text[start : start + missing // len(joints)] if missing > 0 else ""
    return text == "".join(separator + piece if number in joints else piece for number, piece in enumerate(pieces))


def _joints(spoken: Sequence[BaseMessage]) -> tuple[list[str], set[int]]:
    """Return the texts of the messages, and the indices of those that a separator precedes in a run."""
    pieces: list[str] = []
    joints: set[int] = set()
    followed = Joints("any")
    for message in spoken:
        piece = text_of(message)
        if isinstance(message, ToolMessage):
            followed.ask()
        if followed.before(piece):
            joints.add(len(pieces))
        if piece:
            pieces.append(piece)
        if isinstance(message, AIMessage):
            followed.ended(message)
    return pieces, joints


def _common_start(text: str, texts: Sequence[str]) -> tuple[int, str]:
    """Return the number of `texts` that `text` begins with, in order, and the remainder."""
    for number, piece in enumerate(texts):
        following = text if text.startswith(piece) else text.lstrip()
        if not following.startswith(piece):
            return number, text.lstrip()
        text = following[len(piece) :]
    return len(texts), text.lstrip()


def _with_new_text(message: BaseMessage, text: str) -> BaseMessage:
    """Return the message with its text replaced; everything else in it stays."""
    if isinstance(message.content, str):
        return message.model_copy(update={"content": text})
    blocks = message.content
    first = next((number for number, block in enumerate(blocks) if _is_text_block(block) or is_call(block)), len(blocks))
    new: list[str | dict[Any, Any]] = [{"type": "text", "text": text}] if text else []
    kept = [*blocks[:first], *new, *(block for block in blocks[first:] if not _is_text_block(block))]
    return message.model_copy(update={"content": kept})


def _is_text_block(block: str | dict[Any, Any]) -> bool:
    return isinstance(block, str) or block.get("type") == "text"
