"""The pairing of results with calls: by it a history is judged sound or not.

Pairing is positional: a result answers the latest call before it that carries its id. So ids may come back in later turns
(servers that number their calls do that), and a result without a call before it answers nothing that could be proved.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias, TypeGuard

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, FunctionMessage, HumanMessage, RemoveMessage, ToolMessage

from ..errors import ConfigurationError
from ..messages.blocks import NAMED_CALLS, holds_call
from ..messages.calls import call_ids, calls_of
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
            _place(pairing, latest.get(message.tool_call_id), position, message, messages)
        elif isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls):
            ids = [call_id or "" for call_id in call_ids(message)]
            turn = Turn(position, ids, [None] * len(ids))
            pairing.turns.append(turn)
            latest.update((call_id, (turn, [], message)) for call_id in ids)
            for number, call_id in enumerate(ids):
                latest[call_id][1].append(number)
    return pairing


def _place(pairing: Pairing, entry: _Open | None, position: int, result: ToolMessage, messages: Sequence[BaseMessage]) -> None:
    if entry is None:
        pairing.orphans.append(position)
        return
    turn, waiting, message = entry
    if not waiting:  # a second result does not count, unless a run waited inside the call at the first
        places = [place for place in turn.results if place is not None]
        first = next(place for place in reversed(places) if getattr(messages[place], "tool_call_id", None) == result.tool_call_id)
        if open_run(messages[first]) is not None:
            turn.results[turn.results.index(first)] = position
        pairing.duplicates.append(position if open_run(messages[first]) is None else first)
        return
    number = waiting[0]
    if len(waiting) > 1:  # several calls with one id: the first with the result's name is meant, else the first
        calls = calls_of(message)
        number = next((number for number in waiting if calls[number].name == result.name), number)
    waiting.remove(number)
    turn.results[number] = position


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


@dataclass(slots=True, eq=False, repr=False)
class Soundness:
    """A fold that finds out whether a history certainly needs no repair. One fast pass, because it precedes every request.

    Attributes:
        sound: Whether it needs none so far.
        as_sent: Whether it is also sent so: with results in call order, and no message of the model's that says nothing.
    """

    _started: bool = False
    sound: bool = True
    as_sent: bool = True
    _awaited: list[str] = field(default_factory=list)  # ids of the calls still to be answered, the next one last
    _loose: bool = False

    def copy(self) -> "Soundness":
        """Return an independent copy."""
        return Soundness(self._started, self.sound, self.as_sent, [*self._awaited], self._loose)

    def is_sound(self, open_end: bool) -> bool:
        """Whether the messages need no repair.

        Args:
            open_end: Whether calls that the history ends in may be unanswered.
        """
        return self.sound and (open_end or not self._awaited)

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages, up to the first that needs a full check."""
        kinds, awaited, loose, known = _KINDS, self._awaited, self._loose, self.sound
        self.sound = False
        for message in messages if known else ():
            kind = kinds[type(message)]
            if kind == "result":
                if not self._started or (awaited and awaited[-1] == message.tool_call_id):  # type: ignore[attr-defined]  # a ToolMessage
                    del awaited[-1:]
                elif message.tool_call_id in awaited:  # type: ignore[attr-defined]  # of a run that was resumed twice, say
                    awaited.remove(message.tool_call_id)  # type: ignore[attr-defined]
                    self.as_sent = False
                else:
                    return
            elif awaited or kind == "refused" or (loose and kind == "chunk"):
                return
            if message.content.__class__ is list and says_in_blocks(message):
                return
            if kind in _AI_KINDS:
                self._started = True
                ids = _sound_calls(message)  # type: ignore[arg-type]  # an AIMessage
                if ids is None:
                    return
                if not ids and _is_empty(message):  # type: ignore[arg-type]
                    self.as_sent = False
                awaited = ids
            loose = kind == "chunk" and message.chunk_position != "last"  # type: ignore[attr-defined]  # an AIMessageChunk
        self._awaited, self._loose, self.sound = awaited, loose, known


def soundness(messages: Sequence[BaseMessage], open_start: bool) -> Soundness:
    """Return the fold over a history.

    Args:
        messages: The history.
        open_start: Whether results before the first AI message may answer calls that are not there.
    """
    return fold_over(messages, ("sound", open_start), partial(Soundness, not open_start))


def _sound_calls(message: AIMessage) -> list[str] | None:
    """Return the ids of the message's calls in reverse order; None if the message needs a full check."""
    own = message.response_metadata.get(KEY)
    if own is not None and (type(own) is not dict or "messages" in own):
        return None
    calls = message.tool_calls
    if not calls and not message.invalid_tool_calls:
        return None if "function_call" in message.additional_kwargs else []
    for call in (*calls, *message.invalid_tool_calls):
        if not call["name"]:
            return None
    ids = call_ids(message)
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
    for block in [content] if isinstance(content, str) else content:
        is_text = isinstance(block, dict) and block.keys() <= _TEXT_KEYS and block.get("type") == "text"
        if block and not (is_text and not block.get("text")):  # type: ignore[union-attr]  # more than a text without any
            return False
    return not any(message.additional_kwargs.values())


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
