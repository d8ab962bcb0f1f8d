"""The pairing of results with calls: by it a history is judged sound or not, then repaired.

Pairing is positional: a result answers the latest call before it that carries its id. So ids may come back in later turns
(servers that number their calls do that), and a result without a call before it answers nothing that could be proved.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias, TypeGuard

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)

from ..errors import ConfigurationError
from ..messages.blocks import NAMED_CALLS, holds_call
from ..messages.calls import ToolCallRecord, call_ids, calls_of
from ..messages.incremental import fold_over
from ..messages.metadata import KEY, own_metadata
from ..messages.run_messages import open_run

_TEXT_KEYS = frozenset({"type", "text", "index", "id", "annotations"})

ProblemKind: TypeAlias = Literal[
    "loose_chunks",
    "removal",
    "unreadable_run",
    "foreign_message",
    "legacy_function",
    "call_in_content",
    "result_in_content",
    "vendor_result",
    "call_id",
    "call_name",
    "orphan_result",
    "duplicate_result",
    "unanswered_call",
    "misplaced_result",
]
"""The kinds of problems in a history. `Problem.text` describes each one."""

Item: TypeAlias = tuple[int, BaseMessage]
"""A message, with the position of its source message in the caller's list."""


@dataclass(frozen=True)
class Problem:
    """One problem that vendors reject and `repair` mends.

    Attributes:
        index: Position of the message in the given list (of the run message, for a message that it carries).
        kind: The kind of the problem, for programs.
        text: A description of the problem and its repair, for people.
    """

    index: int
    kind: ProblemKind
    text: str


Finding: TypeAlias = tuple[list[Item], list[Problem]]
"""The result of a pass: the items after it, and the problems that it mended."""


@dataclass
class Turn:
    """One AI message with tool calls, and their results.

    Attributes:
        at: Its position in the list.
        ids: The ids of its calls in call order; an empty text where a call has none.
        results: The position of each call's result, None where there is none.
    """

    at: int
    ids: list[str]
    results: list[int | None]


@dataclass
class Pairing:
    """The turns of a history, with the results that answer no call (orphans) or an answered one (duplicates)."""

    turns: list[Turn] = field(default_factory=list)
    orphans: list[int] = field(default_factory=list)
    duplicates: list[int] = field(default_factory=list)


_Open: TypeAlias = tuple[Turn, list[int], AIMessage]  # a turn, its calls of one id that have no result yet, its message


def pair(messages: Sequence[BaseMessage]) -> Pairing:
    """Pair every call with its result."""
    pairing = Pairing()
    latest: dict[str, _Open] = {}
    for position, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            _place(pairing, latest.get(message.tool_call_id), position, messages)
        elif isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls):
            ids = [call_id or "" for call_id in call_ids(message)]
            turn = Turn(position, ids, [None] * len(ids))
            pairing.turns.append(turn)
            latest.update((call_id, (turn, [], message)) for call_id in ids)
            for number, call_id in enumerate(ids):
                latest[call_id][1].append(number)
    return pairing


def _place(pairing: Pairing, entry: _Open | None, position: int, messages: Sequence[BaseMessage]) -> None:
    if entry is None:
        pairing.orphans.append(position)
        return
    turn, waiting, message = entry
    result = messages[position]
    assert isinstance(result, ToolMessage)
    if not waiting:
        pairing.duplicates.append(_replaced(turn, position, messages))
        return
    number = waiting[0] if len(waiting) == 1 else _best(waiting, message, result)
    waiting.remove(number)
    turn.results[number] = position


def _replaced(turn: Turn, position: int, messages: Sequence[BaseMessage]) -> int:
    """Return the position of the result that does not count: a second one, unless a run waited inside the call at the first."""
    known = {messages[place].tool_call_id: place for place in turn.results if place is not None}  # type: ignore[attr-defined]  # results
    first = known[messages[position].tool_call_id]  # type: ignore[attr-defined]  # a ToolMessage
    if open_run(messages[first]) is None:
        return position
    turn.results[turn.results.index(first)] = position
    return first


def _best(waiting: list[int], message: AIMessage, result: ToolMessage) -> int:
    """Return the best of several waiting calls with one id: the first with the result's name, else the first."""
    calls = calls_of(message)
    return next((number for number in waiting if calls[number].name == result.name), waiting[0])


# ---------------------------------------------------------------------------------------------- passes
# Repair passes over a history, each a pure function with one purpose.
#
# Three of them mend the pairing of calls and results. Their order matters: what answers no call goes first (`orphans_dropped`), then what
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
                answers.setdefault(before, []).append((source, _interrupted_result(calls[call_id])))
                text = f"call {call_id!r} of {calls[call_id].name!r} has no result; it is answered with an error"
                problems.append(Problem(source, "unanswered_call", text))
            elif result == before + 1:
                before = result
    return [one for place, item in enumerate(items) for one in (item, *answers.get(place, ()))], problems


def _follow(at: int, places: Collection[int]) -> bool:
    """Whether results follow their AI message directly, in whatever order."""
    return set(places) == set(range(at + 1, at + 1 + len(places)))


def _interrupted_result(call: ToolCallRecord) -> ToolMessage:
    text = _INTERRUPTED if call.args is not None else _NOT_EXECUTABLE.format(why=(call.why or "").rstrip("."))
    content = json.dumps({"error": text}, ensure_ascii=False)
    return ToolMessage(content=content, tool_call_id=call.id, name=call.name or None, status="error")


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


# ---------------------------------------------------------------------------------------------- the quick look

_Kind: TypeAlias = Literal["ai", "chunk", "result", "refused", "other"]


class _Kinds(dict[type[BaseMessage], _Kind]):
    """The kind of each message class, cached because pydantic's `isinstance` costs more than the rest of the check."""

    def __missing__(self, cls: type[BaseMessage]) -> _Kind:
        if not issubclass(cls, BaseMessage):
            raise ConfigurationError(f"a history holds LangChain messages, not {cls.__name__}: convert_to_messages makes them")
        if issubclass(cls, AIMessage):
            kind: _Kind = "chunk" if issubclass(cls, AIMessageChunk) else "ai"
        elif issubclass(cls, ToolMessage):
            kind = "result"
        else:
            kind = "refused" if issubclass(cls, FunctionMessage | RemoveMessage) else "other"
        self[cls] = kind
        return kind


_KINDS = _Kinds()
_AI_KINDS = ("ai", "chunk")


class Soundness:
    """A fold that finds out whether a history certainly needs no repair. One fast pass, because it precedes every request.

    Args:
        open_start: Whether results before the first AI message may answer calls that are not there.

    Attributes:
        sound: Whether it needs none so far.
        as_sent: Whether it is also sent so: with results in call order, and no message of the model's that says nothing.
    """

    __slots__ = ("_awaited", "_loose", "_started", "as_sent", "sound")

    def __init__(self, open_start: bool = False) -> None:
        self.sound = True
        self.as_sent = True
        self._started = not open_start
        self._awaited: list[str] = []  # ids of the calls still to be answered, the next one last
        self._loose = False

    def copy(self) -> "Soundness":
        """Return an independent copy."""
        made = Soundness()
        made.sound, made._started, made._awaited, made._loose = self.sound, self._started, [*self._awaited], self._loose
        made.as_sent = self.as_sent
        return made

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages, up to the first that needs a full check."""
        self.sound = self.sound and self._reads(messages)

    def is_sound(self, open_end: bool) -> bool:
        """Whether the messages need no repair.

        Args:
            open_end: Whether calls that the history ends in may be unanswered.
        """
        return self.sound and (open_end or not self._awaited)

    def _reads(self, messages: Sequence[BaseMessage]) -> bool:
        kinds, awaited, loose = _KINDS, self._awaited, self._loose
        for message in messages:
            kind = kinds[type(message)]
            if kind == "result":
                if not self._started or (awaited and awaited[-1] == message.tool_call_id):  # type: ignore[attr-defined]  # a ToolMessage
                    del awaited[-1:]
                elif message.tool_call_id in awaited:  # type: ignore[attr-defined]  # of a run that was resumed twice, say
                    awaited.remove(message.tool_call_id)  # type: ignore[attr-defined]
                    self.as_sent = False
                else:
                    return False
            elif awaited or kind == "refused" or (loose and kind == "chunk"):
                return False
            if message.content.__class__ is list and says_in_blocks(message):
                return False
            if kind in _AI_KINDS:
                self._started = True
                ids = _sound_calls(message)  # type: ignore[arg-type]  # an AIMessage
                if ids is None:
                    return False
                if not ids and _is_empty(message):  # type: ignore[arg-type]
                    self.as_sent = False
                awaited = ids
            loose = kind == "chunk" and message.chunk_position != "last"  # type: ignore[attr-defined]  # an AIMessageChunk
        self._awaited, self._loose = awaited, loose
        return True


def needs_no_repair(messages: Sequence[BaseMessage], open_end: bool, open_start: bool = False) -> bool:
    """Whether a history certainly needs no repair.

    Args:
        messages: The history.
        open_end: Whether calls that the history ends in may be unanswered.
        open_start: Whether results before the first AI message may answer calls that are not there.
    """
    return fold_over(messages, ("sound", open_start), partial(Soundness, open_start)).is_sound(open_end)


def soundness(messages: Sequence[BaseMessage], open_start: bool) -> Soundness:
    """Return the fold over a history; `open_start` as of `needs_no_repair`."""
    return fold_over(messages, ("sound", open_start), partial(Soundness, open_start))


def _sound_calls(message: AIMessage) -> list[str] | None:
    """Return the ids of the message's calls in reverse order; None if the message needs a full check."""
    own = message.response_metadata.get(KEY)
    if own is not None and (type(own) is not dict or "messages" in own):
        return None
    calls = message.tool_calls
    if message.invalid_tool_calls:
        names = [call["name"] for call in (*calls, *message.invalid_tool_calls)]
        return _sound_ids(call_ids(message)) if all(names) else None
    if not calls:
        return None if "function_call" in message.additional_kwargs else []
    for call in calls:
        if not call["name"]:
            return None
    return _sound_ids([call["id"] for call in calls])


def _sound_ids(ids: list[str | None]) -> list[str] | None:
    if not all(ids) or (len(ids) > 1 and len(set(ids)) != len(ids)):
        return None
    ids.reverse()
    return ids  # type: ignore[return-value]  # none of them is None


def is_run(message: BaseMessage) -> bool:
    """Whether a message is a run message that carries messages."""
    if _KINDS[type(message)] not in _AI_KINDS:
        return False
    return "messages" in own_metadata(message)


def _is_empty(message: AIMessage) -> bool:
    """Whether an AI message without calls is empty: no content, and no other data that could matter."""
    content = message.content
    if content and (isinstance(content, str) or not all(map(_is_blank, content))):
        return False
    return not any(message.additional_kwargs.values())


def _is_blank(block: str | dict[str, object]) -> bool:
    """Whether a content block is an empty text without extra data such as a signature."""
    return not block or (isinstance(block, dict) and set(block) <= _TEXT_KEYS and block.get("type") == "text" and not block.get("text"))


def is_call(entry: object) -> bool:
    """Whether a content block, or an entry of a list of calls, is a call of one of the caller's tools."""
    return isinstance(entry, dict) and entry.get("type", "tool_call") in NAMED_CALLS


def says_in_blocks(message: BaseMessage) -> bool:
    """Whether calls or results of a message exist only in its content blocks, or a call of the vendor's own among its calls too."""
    content = message.content
    if not content or isinstance(content, str):
        return False
    if isinstance(message, AIMessage):
        if message.tool_calls or message.invalid_tool_calls:
            vendors = ids_of_vendors_calls(content)
            return bool(vendors) and any(call_id in vendors for call_id in call_ids(message))
        return any(map(holds_call, content))
    if isinstance(message, ToolMessage):
        return all(map(is_result_block, content))
    return isinstance(message, HumanMessage) and any(map(is_result_block, content))


def messages_of(items: Iterable[Item]) -> list[BaseMessage]:
    """Return the messages without their positions."""
    return [message for _, message in items]


def drop_empty(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages without AI messages that have no content: no text, no calls, nothing beside them."""
    return [one for one in messages if not isinstance(one, AIMessage) or valid_or_invalid(one) or not _is_empty(one)]


def valid_or_invalid(message: AIMessage) -> Sequence[Mapping[str, Any]]:
    """Return the calls of a message, or else those whose arguments nobody could read."""
    return message.tool_calls or message.invalid_tool_calls


_VENDORS_CALLS = frozenset({"server_tool_call", "server_tool_use", "mcp_tool_use"})


def ids_of_vendors_calls(content: str | list[Any]) -> set[str]:
    """Return the ids of the calls in a message's content that the vendor has executed itself."""
    blocks = content if isinstance(content, list) else ()
    return {str(block.get("id")) for block in blocks if isinstance(block, Mapping) and block.get("type") in _VENDORS_CALLS}


def is_result_block(block: object) -> TypeGuard[dict[str, Any]]:
    """Whether a content block is a tool result, which in Anthropic's form belongs to the content of the user's message."""
    return isinstance(block, dict) and block.get("type") == "tool_result"
