"""Expansion of run messages in a history to the messages that they carry, whole or split by turns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypedDict

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    BaseMessageChunk,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
    message_chunk_to_message,
    messages_from_dict,
)

from ..errors import ConfigurationError
from ..messages.calls import call_ids
from ..messages.metadata import own_metadata, text_of
from ..messages.run_messages import Separators, carried_messages, generation_id, may_repeat, serialize_messages, without_carrier
from .pairing import Finding, Item, Problem, is_call, is_run, messages_of
from .repairs import fold_chunks


class GenerationRow(TypedDict):
    """One message of a history, as plain data.

    Attributes:
        position: The message's number in the history.
        generation_id: The model turn that it belongs to; None for a message of the system or the user.
        message_order_idx: Its number within the turn: 0 for the AI message, then its results.
        tool_call_idx: The position of a result's call among the calls of the turn; else None.
        message: The message, as `langchain_core.messages.messages_to_dict` writes it.
    """

    position: int
    generation_id: str | None
    message_order_idx: int
    tool_call_idx: int | None
    message: dict[str, Any]


def split_generations(messages: Sequence[BaseMessage], *, start: int = 0) -> list[GenerationRow]:
    """Turn a history into rows, one for each message.

    A message that says itself where it is (those of a run do) is believed; for all others that is derived from the history, the same
    each time. The messages are not changed.

    Args:
        messages: The history. A run message is replaced by the messages that it carries, a loose chunk by the message that it is.
        start: The number of the first message, where rows of the messages before it are stored already.

    Returns:
        The rows, in order. An artifact that is not plain data is marked in its row, not kept.
    """
    plain = [message_chunk_to_message(message) if isinstance(message, BaseMessageChunk) else message for message in expand(messages)]
    rows: list[GenerationRow] = []
    turn: AIMessage | None = None
    generation: str | None = None
    results = 0
    for position, (message, data) in enumerate(zip(plain, serialize_messages(plain), strict=True), start):
        call: int | None = None
        number = 0
        if isinstance(message, AIMessage):
            turn, results = message, 0
            generation = message.response_metadata.get("generation_id") or generation_id(message, position)
        elif isinstance(message, ToolMessage) and turn is not None:
            call, ids = message.response_metadata.get("tool_call_idx"), call_ids(turn)
            if not isinstance(call, int):  # without such a call its place is its own among the results
                call = ids.index(message.tool_call_id) if message.tool_call_id in ids else results
            results += 1
            number = message.response_metadata.get("message_order_idx", call + 1)
        else:
            turn = generation = None
        rows.append(GenerationRow(position=position, generation_id=generation, message_order_idx=number, tool_call_idx=call, message=data))
    return rows


def join_generations(rows: Iterable[GenerationRow]) -> list[BaseMessage]:
    """Return the history of these rows, given in any order.

    Args:
        rows: Rows as `split_generations` makes them; a database may have added columns.

    Raises:
        ConfigurationError: A row has no message or no position, or two rows have the same one.
    """
    by_position: dict[int, dict[str, Any]] = {}
    for row in rows:
        try:
            position, message = row["position"], row["message"]
        except (KeyError, TypeError, IndexError):
            raise ConfigurationError(f"a row of a history has a position and a message, not {row!r:.200}") from None
        if by_position.setdefault(position, message) is not message:
            raise ConfigurationError(f"two rows have the position {position!r}")
    return messages_from_dict([by_position[position] for position in sorted(by_position)])


# ---------------------------------------------------------------------------------------------- expansion
# Expansion of run messages in a history to the messages that they carry.
#
# So a history that stored a run message and one that stored its parts are the same history. What the user changed in the run message
# after the run (its text, its name, the arguments of calls left to him) is changed in the parts.


_Mark = tuple[str | None, ...]  # what a message is known by: its generation and id; a result: also those of its AI message and call
_Marked = tuple[BaseMessage, list[_Mark], list[_Mark]]  # a message, what it is known by, and what a copy without its generation is known by
_OF_RUNS = (AIMessage, ToolMessage, FunctionMessage, RemoveMessage)  # no input of one


def expand_runs(items: list[Item]) -> Finding:
    """Replace every run message by the messages it carries, in place. An unreadable one stays.

    Messages stored beside their run message are not added again: they are known by their id and their generation, results also by
    the call they answer, and where servers may give several replies one id by their content too. Another run's messages are others,
    whatever their ids: the input before a run message separates it from what is before that. A text edited after the run wins: the last
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
        joined = None if brought is None else messages_of(fold_chunks(list(enumerate(brought)))[0])
        parts = joined and [message_chunk_to_message(part) for part in joined]  # a client can have put chunks there
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):  # a history may come from anywhere
        parts = None
    if parts is None or any("messages" in own_metadata(part) for part in parts):
        problems.append(Problem(source, "unreadable_run", "the messages that it carries cannot be read; it stands for itself"))
        return [without_carrier(message)]
    if len(brought or ()) != len(own_metadata(message)["messages"]):
        problems.append(Problem(source, "foreign_message", "it carries messages that no run makes; these are left out"))
    return parts


def _unfold(items: list[Item], runs: Mapping[int, list[BaseMessage]]) -> list[Item]:
    """Replace each run by its parts, except those that are beside it: an input, unless a run took it, separates one run's messages
    from another's."""
    taken = {part.id for parts in runs.values() for part in parts if isinstance(part, HumanMessage)}
    unfolded: list[Item] = []
    beside: list[tuple[Item, list[BaseMessage] | None]] = []
    for place, item in enumerate(items):
        if isinstance(item[1], _OF_RUNS) or (item[1].id in taken and isinstance(item[1], HumanMessage)):
            beside.append((item, runs.get(place)))
        else:
            unfolded += [*_unfold_beside(beside), item]
            beside = []
    return [*unfolded, *_unfold_beside(beside)]


def _unfold_beside(items: Sequence[tuple[Item, list[BaseMessage] | None]]) -> list[Item]:
    """Replace each run by its parts, each given with the run, except those already among the items."""
    others = [message for (_, message), parts in items if parts is None]
    known = {mark for _, marks, _ in _with_marks(others) for mark in marks}
    unfolded: list[Item] = []
    edits: dict[_Mark, BaseMessage] = {}
    for (source, message), parts in items:
        if parts is None:
            unfolded.append((source, message))
            continue
        edited = _with_text_edit(message, _with_call_edits(message, parts)) if isinstance(message, AIMessage) else parts
        originals: list[_Marked] = [*_with_marks(parts), (message, [], [])]  # behind them, what the edit has added
        for part, (original, marks, loose) in zip(edited, originals, strict=False):
            if part is not original:
                edits.update((mark, part) for mark in (*marks, *loose))
            if known.isdisjoint((*marks, *loose)):
                unfolded.append((source, part))
            known.update(marks)
    if not edits:
        return unfolded
    marked = zip(unfolded, _with_marks(messages_of(unfolded)), strict=True)  # every copy of an edited message is replaced by the edited one
    return [(source, next((edits[mark] for mark in marks if mark in edits), message)) for (source, message), (_, marks, _) in marked]


def _with_marks(messages: Iterable[BaseMessage]) -> Iterator[_Marked]:
    """Yield each message with the keys that identify it among those of one run, and with those of a copy without its generation."""
    owner: tuple[str | None, str | None] = None, None
    for message in messages:
        name, generation = _name(message), message.response_metadata.get("generation_id")
        if isinstance(message, AIMessage):
            owner = message.id, name
        loose = _marks(message, None, name, owner[1])
        yield message, _marks(message, generation, message.id, owner[0]) if isinstance(generation, str) else loose, loose


def _marks(message: BaseMessage, generation: str | None, name: str | None, owner: str | None) -> list[_Mark]:
    """Return the keys of a message, by its own name and, of a result, by that of the message with its call."""
    marks: list[_Mark] = [(generation, name)] if name else []
    return [*marks, (generation, owner, message.tool_call_id)] if isinstance(message, ToolMessage) and owner else marks


def _name(message: BaseMessage) -> str | None:
    """Return the id of a message; where others may have the same one, with the message's text and calls."""
    if not message.id or not may_repeat(message.id):
        return message.id
    calls = call_ids(message) if isinstance(message, AIMessage) else []
    return "\x1e".join([message.id, text_of(message), *map(str, calls)])


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
    last = max((number for number, part in enumerate(parts) if not isinstance(part, ToolMessage)), default=-1)
    direct = record.get("stop_reason") == "return_direct"  # then the last results belong to the text
    spoken = [number for number, part in enumerate(parts) if isinstance(part, AIMessage) or (direct and number > last)]
    texts = [text_of(parts[number]) for number in spoken]
    if _is_joined(text, [part for number, part in enumerate(parts) if number in spoken or isinstance(part, HumanMessage)]):
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


def _is_joined(text: str, spoken: Sequence[BaseMessage]) -> bool:
    """Whether `text` is the run's text made of these messages: of all, or (structured output) of the last one only.

    Each joint has one and the same separator. Which one the model used is not recorded, so any will do.
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
    """Return the texts of the messages but the user's, and the indices of those that a separator precedes in a run."""
    pieces: list[str] = []
    joints: set[int] = set()
    followed = Separators("any")
    for message in spoken:
        if not isinstance(message, AIMessage):
            followed.ask()
        piece = "" if isinstance(message, HumanMessage) else text_of(message)
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
