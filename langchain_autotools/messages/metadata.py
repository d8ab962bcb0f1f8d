"""What the package keeps beside a message: records in its metadata, objects of this process.

- Of a turn as it leaves the accumulator: `{"calls": [...], "blocked": reason | None}`, the verdict.
- Of a stored AI message: `{"calls": [{"id", "sent_id"?, "arguments", "wire_id"?, "extra"?}]}`, the arguments as the model wrote them;
  `sent_id` is what a call is sent with whose `id` was made here.
- Of an AI message whose request could not force a call that it was to force, also `"unforced": True`.
- Of an AI message where another model took over, also `"failover"`: which, and after what.
- Of an AI message whose request was shortened, also `"compacted"`: what was cut of it, see `history.cuts`.
- Of an AI message whose turn was made again, also `"rejected"`: the replies that were not taken.
- Of a reply from LangChain's cache, until a run hands it out, also `"cached_id"`: the id under which it was cached.
- Of a run message: `{"messages": [...], "stop_reason", "turns", "usage", "asked"?, "open_calls"?}`, the carrier.
- Of the result of a call inside which a run waits: `{"open_run": {...}}`, see `run_messages.open_run`.
- Of the result of a call inside which runs were made, `"used_inside"`: what these have used.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, ClassVar, Final, TypeVar

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage

from ..compat import whole_reply
from ..pickling import unportable
from .blocks import is_call_block

_M = TypeVar("_M", bound=BaseMessage)

KEY = "autotools"
"""The key of this package's metadata in `response_metadata`."""

ASKED = "asked"
"""The key, in a run message's metadata, of the id of the message whose calls it leaves open, if no turn of the run made them."""

CACHED_ID = "cached_id"
"""The key of the id of the reply in LangChain's cache, in the metadata of a message made of it."""


UNFORCED = "unforced"
"""The key, in an AI message's metadata, that says that its server refused a request that forced a call, and was asked without force."""


COMPACTED: Final = "compacted"
"""The key, in an AI message's metadata, of the record of what was cut of the request that it answers."""


def text_of(message: BaseMessage) -> str:
    """Return the text of a message: its string content, or its text blocks joined."""
    return message.content if isinstance(message.content, str) else str(message.text)


def own_metadata(message: BaseMessage) -> Mapping[str, Any]:
    """Return the package's metadata of a message; empty if it is missing or invalid."""
    own = message.response_metadata.get(KEY)
    return own if isinstance(own, Mapping) else {}


def with_own_metadata(metadata: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return `response_metadata` with the package's part replaced by `own`."""
    foreign = {name: value for name, value in metadata.items() if name != KEY}
    return {**foreign, KEY: own} if own else foreign


def without_cached_id(message: _M) -> _M:
    """Return the message without the id of the reply in the cache."""
    own = {name: value for name, value in own_metadata(message).items() if name != CACHED_ID}
    return message.model_copy(update={"response_metadata": with_own_metadata(message.response_metadata, own)})


# ---------------------------------------------------------------------------------------------- failover
# Marks of failover in messages: which model took over from which, and whether the reply was cut off after text.
#
# A mark is among the package's metadata of an AI message: of the reply that was cut off after text, or of the first reply of a model
# that took over before any text. The request to go on with a cut reply is in no history: it is derived from the mark for each
# request.


FAILOVER: Final = "failover"
"""The key of the mark, in the package's metadata of an AI message."""

OF_RUN: Final = "of_run"
"""The key of True in the metadata of a human message that the run itself has added to a request: no new run begins with it."""

_Reply = TypeVar("_Reply", bound=AIMessage)


def failover_mark_of(message: BaseMessage) -> Mapping[str, Any]:
    """Return the mark of a message; empty if it has none."""
    mark = own_metadata(message).get(FAILOVER)
    return mark if isinstance(mark, Mapping) else {}


def is_cut_reply(message: BaseMessage) -> bool:
    """Whether a message is a reply that was cut off after text, with which another model goes on."""
    return failover_mark_of(message).get("after_text") is True


def with_failover_mark(message: _Reply, mark: Mapping[str, Any]) -> _Reply:
    """Return a message or chunk with a mark."""
    own = {**own_metadata(message), FAILOVER: dict(mark)}
    return message.model_copy(update={"response_metadata": with_own_metadata(message.response_metadata, own)})


def last_failover_mark(messages: Sequence[BaseMessage]) -> Mapping[str, Any]:
    """Return the last mark of the messages since the user's last one; empty if there is none.

    This is asked of a whole run before each of its requests, so it calls no function for a turn without a mark.
    """
    for message in reversed(messages):
        if message.type not in ("ai", "tool") and isinstance(message, HumanMessage) and not own_metadata(message).get(OF_RUN):
            break
        about = message.response_metadata
        may_say = KEY in about and (about[KEY].__class__ is not dict or FAILOVER in about[KEY])
        if may_say and isinstance(message, AIMessage) and (mark := failover_mark_of(message)):
            return mark
    return {}


def open_cuts(messages: Sequence[BaseMessage]) -> list[Mapping[str, Any]]:
    """Return the marks of the cut replies that messages end in, in order: the same turn is to be gone on with."""
    cuts = takewhile(lambda message: isinstance(message, AIMessage) and is_cut_reply(message), reversed(messages))
    return [*map(failover_mark_of, cuts)][::-1]


# ---------------------------------------------------------------------------------------------- rejected
# Records of rejected replies: whole replies that were paid for and are no messages, because their turn was made again.
#
# They are among the package's metadata of the message that took their place, and hold what tokens and prices are counted by.


REJECTED: Final = "rejected"
"""The key of the records, in the package's metadata of an AI message."""

_NOT_BILLED_APART = frozenset({"text", "reasoning", "thinking", "redacted_thinking"})
_BILLED_BY = ("type", "name", "action", "args", "extras")
"""What tells of a block of the vendor's own how it is billed."""


def with_rejected(message: _Reply, replies: Sequence[AIMessage]) -> _Reply:
    """Return a message or chunk with records of the replies whose place it takes; the same object without replies."""
    if not replies:
        return message
    own = own_metadata(message)
    records = [record for reply in replies for record in _recorded_replies(reply)]
    records += _valid_reply_records(own.get(REJECTED))
    metadata = with_own_metadata(message.response_metadata, {**own, REJECTED: records})
    return message.model_copy(update={"response_metadata": metadata})


def rejected_replies(message: AIMessage) -> Sequence[AIMessage]:
    """Return the replies whose place a message takes, in order, each with its usage and metadata alone."""
    return [AIMessage(**record) for record in _valid_reply_records(own_metadata(message).get(REJECTED))]


def _recorded_replies(message: AIMessage) -> Sequence[dict[str, Any]]:
    """Return records of a reply and of those whose place it takes, in order."""
    metadata = {key: value for key, value in message.response_metadata.items() if key not in (KEY, "logprobs")}
    billed = [
        {key: block[key] for key in _BILLED_BY if key in block}
        for block in (message.content if isinstance(message.content, list) else ())
        if isinstance(block, dict) and block.get("type") not in _NOT_BILLED_APART and not is_call_block(block)
    ]
    record = {"content": billed, "response_metadata": metadata, "usage_metadata": message.usage_metadata}
    return (*_valid_reply_records(own_metadata(message).get(REJECTED)), record)


def without_cost(usage: Any) -> Any:
    """Return usage without the note of core's that a reply from its cache has cost nothing; the same object where there is none.

    Usage is added up without it, and so are the messages of a request, whose cache key it would change.
    """
    if not usage or "total_cost" not in usage:
        return usage
    return {key: value for key, value in usage.items() if key != "total_cost"} or None


def _valid_reply_records(records: Any) -> Sequence[dict[str, Any]]:
    """Return those of some records that are records of replies: a history may come from a client."""
    return [record for record in records if _is_reply_record(record)] if isinstance(records, list | tuple) else ()


def _is_reply_record(record: Any) -> bool:
    try:
        AIMessage(**record)
    except (TypeError, ValueError):
        return False
    return True


# ---------------------------------------------------------------------------------------------- inner usage
# What runs inside tools have used, as recorded in the metadata of the results of these calls.
#
# A run counts what the runs of its models and agents as tools have used: the record holds their replies, as rejected replies are
# recorded, and the number of their tool calls. A result says what was used since the one before it.


_USED_INSIDE: Final = "used_inside"
"""The key of the record, in the package's metadata of a result."""

_Result = TypeVar("_Result", bound=ToolMessage)


@dataclass
class InnerUsage:
    """What runs inside one tool call have used so far.

    Attributes:
        ended: Records of the replies of those that have ended.
        calls: The number of tool calls that they have made.
        inside: What runs inside the calls of one that has not ended have used.
    """

    ended: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0
    inside: list["InnerUsage"] = field(default_factory=list)
    _begun: list[dict[str, Any]] = field(default_factory=list)

    @property
    def replies(self) -> Sequence[dict[str, Any]]:
        """Records of all replies, those of a run that has not ended and of runs inside its calls too."""
        return (*self.ended, *self._begun, *(reply for one in self.inside for reply in one.replies))

    @property
    def tool_calls(self) -> int:
        """The number of all tool calls, likewise."""
        return self.calls + sum(one.tool_calls for one in self.inside)

    def count_calls(self, calls: int) -> None:
        """Count tool calls."""
        self.calls += calls

    def note(self, reply: AIMessage) -> None:
        """Count a reply of a run that has not ended."""
        self._begun += _recorded_replies(reply)

    def end(self, messages: Iterable[BaseMessage]) -> None:
        """Count the replies among the new messages of a run that has ended, in place of what was counted of it before."""
        self.calls = self.tool_calls
        self._begun, self.inside = [], []
        for message in messages:
            self.ended += _recorded_replies(message) if isinstance(message, AIMessage) else _usage_record(message).get("replies", ())

    def as_messages(self) -> Sequence[AIMessage]:
        """Return the replies, each with its usage and metadata alone."""
        return [AIMessage(**reply) for reply in self.replies]

    def on(self, message: _Result) -> _Result:
        """Return the result of the call with the record; the same object if nothing was used."""
        replies, calls = [*self.replies], self.tool_calls
        if not replies and not calls:
            return message
        record = {"replies": replies, "tool_calls": calls}
        metadata = with_own_metadata(message.response_metadata, {**own_metadata(message), _USED_INSIDE: record})
        return message.model_copy(update={"response_metadata": metadata})


def inner_usage(messages: Iterable[BaseMessage]) -> InnerUsage:
    """Return what runs inside the calls of these results have used together."""
    records = [_usage_record(message) for message in messages]
    replies = [reply for record in records for reply in record.get("replies", ())]
    return InnerUsage(replies, sum(record.get("tool_calls", 0) for record in records))


def paid_replies(messages: Iterable[BaseMessage]) -> Iterator[AIMessage]:
    """Yield all replies that were paid for in a run, of its new messages: rejected ones, and those of runs inside its tools, too."""
    for message in messages:
        if isinstance(message, AIMessage):
            yield from (*rejected_replies(message), message)
        elif isinstance(message, ToolMessage):
            yield from replies_inside(message)


def replies_inside(message: BaseMessage) -> Sequence[AIMessage]:
    """Return the replies of the runs inside the call of a result, each with its usage and metadata alone."""
    return inner_usage([message]).as_messages()


def _usage_record(message: BaseMessage) -> dict[str, Any]:
    own = message.response_metadata.get(KEY)
    record = own.get(_USED_INSIDE) if isinstance(own, dict) else None
    if not isinstance(record, dict):
        return {}
    calls = record.get("tool_calls")
    return {"replies": _valid_reply_records(record.get("replies")), "tool_calls": calls if isinstance(calls, int) else 0}


# ---------------------------------------------------------------------------------------------- attached
#
# Objects of this process that are attached to messages, chunks or errors without being sent or stored.
#
# A note rides on a dict that the message has anyway, as an attribute of a subclass of `dict`. Nothing else goes all the way. A field of our
# own would need a subclass of the message, which leaves the package. An attribute in the message's `__dict__` becomes a field of whatever
# `message_chunk_to_message` makes of a chunk, and is pickled and copied with it. Private attributes of pydantic's make equal messages
# differ. Of the dict nobody sees the difference: it is equal to a plain one, and `+`, a dump, a pickle, a deep copy and a checkpoint make a
# plain one of it, without the note.
#
# What a core that copied chunks would cost is in `tests/unit/test_compat_copies.py`.


class Note:
    """Base class of notes attached to a chunk or a message, beside its data.

    Attributes:
        beside: The field whose dict carries notes of this class. Core gives each chunk of a stream new `response_metadata` and leaves
            `additional_kwargs` alone: what a turn says to its run goes there. What stands for a part of the metadata goes with that:
            whoever replaces the metadata drops both.
    """

    beside: ClassVar[str] = "additional_kwargs"


_N = TypeVar("_N", bound=Note)


class CarrierDict(dict[str, Any]):
    """A dict that carries a note."""

    __slots__ = ("note",)
    note: Note

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def __repr__(self) -> str:
        """Return a dict's repr, with the number of a run message's messages in their place, because the data of a run is long."""
        return repr({key: _brief(value) for key, value in self.items()})


class _Omitted(str):
    """The placeholder of an omitted value in a repr."""

    __slots__ = ()
    __repr__ = str.__str__


def _brief(value: Any) -> Any:
    messages = value.get("messages") if isinstance(value, dict) else None
    return {**value, "messages": _Omitted(f"<{len(messages)} messages>")} if messages and isinstance(messages, list) else value


def attach(message: BaseMessage, note: Note) -> None:
    """Attach a note to a chunk or a message, in place of any other beside the same field."""
    fields = message.__dict__
    carrier = fields[note.beside] = CarrierDict(fields[note.beside])
    carrier.note = note


def note_of(message: BaseMessage, kind: type[_N]) -> _N | None:
    """Return the note of this class that is attached to a chunk or a message; None if there is none."""
    carrier = message.__dict__[kind.beside]
    note = carrier.note if isinstance(carrier, CarrierDict) else None
    return note if isinstance(note, kind) else None


# ---------------------------------------------------------------------------------------------- artifacts
# Artifacts of tool results: objects for the program, which may not be serializable.


_UNCARRIED = "artifact not carried"


def without_artifact(message: ToolMessage) -> ToolMessage:
    """Return the message with its artifact replaced by a mark that names the artifact's type."""
    return message.model_copy(update={"artifact": {KEY: _UNCARRIED, "type": type(message.artifact).__qualname__}})


def portable_result(value: Any) -> Any:
    """Return a value for a pickle: a result with an artifact that cannot be pickled gets a mark; other values are unchanged."""
    if not isinstance(value, ToolMessage) or unportable("artifact", {"": value.artifact}) is None:
        return value
    return without_artifact(value)


# ---------------------------------------------------------------------------------------------- live
# Live messages attached to chunks, messages and errors: the objects of this process, artifacts included.
#
# They are in no data: a sum, a copy that serialises, a pickle, a checkpoint have what the data says.


_LIVE: Final = "_autotools_messages"  # attribute of an error
_CUT_REPLY: Final = "_autotools_cut_reply"  # likewise
_WHOLE_REPLY: Final = "_autotools_whole_reply"  # likewise


@dataclass(eq=False, repr=False)
class _LiveMessages(Note):
    """New messages, beside the metadata that carries their data."""

    beside = "response_metadata"
    messages: list[BaseMessage]
    shown: bool = False


class _Attached(list[BaseMessage]):
    """Messages attached to an error, which may go to another process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _Attached, ([portable_result(message) for message in self],)


def attach_messages(holder: BaseMessage | BaseException, messages: Iterable[BaseMessage]) -> None:
    """Attach messages to a chunk, a message or an exception, for `new_messages` to find.

    Args:
        holder: What they are attached to.
        messages: The messages.
    """
    if isinstance(holder, BaseMessage):
        attach(holder, _LiveMessages([*messages]))
    else:
        holder.__dict__[_LIVE] = _Attached(messages)


def attached_messages(holder: object) -> list[BaseMessage] | None:
    """Return the messages attached to `holder`; None if there are none."""
    if isinstance(holder, BaseMessage):
        note = note_of(holder, _LiveMessages)
        return None if note is None else [*note.messages]
    messages = getattr(holder, "__dict__", {}).get(_LIVE)
    return None if messages is None else [*messages]


def mark_shown(message: BaseMessage) -> None:
    """Record that the messages attached to a message were displayed while they were streamed."""
    if (note := note_of(message, _LiveMessages)) is not None:
        note.shown = True


def was_shown(message: BaseMessage) -> bool:
    """Whether the messages attached to a message were displayed while they were streamed."""
    note = note_of(message, _LiveMessages)
    return note is not None and note.shown


def attach_cut_reply(error: BaseException, last: AIMessageChunk) -> None:
    """Attach to an error what was known of the reply that it cut off: usage and metadata, without content and calls."""
    error.__dict__[_CUT_REPLY] = _counted(last)


def keep_reply(error: BaseException) -> None:
    """Attach to an error that ended an LLM run of core the reply that it took with it, if that was whole."""
    if (reply := whole_reply(error)) is not None:
        error.__dict__[_WHOLE_REPLY] = reply


def take_reply(error: BaseException) -> AIMessage | None:
    """Return the whole reply that an error took with it, and detach it; None if there is none."""
    reply: AIMessage | None = error.__dict__.pop(_WHOLE_REPLY, None)
    return reply


def known_of_cut_reply(reply: Callable[[], AIMessageChunk] | None) -> AIMessageChunk | None:
    """Return what is known of a reply that a deadline has cut, without its content, its calls and its end; None if nothing is.

    Args:
        reply: Returns its last chunk; None where no reply was read.
    """
    with suppress(Exception):  # what the end of a cut reply would raise is no news
        return None if reply is None else _counted(reply(), "finish_reason")
    return None


def _counted(last: AIMessageChunk, *but: str) -> AIMessageChunk:
    """Return what of a last chunk counts: its usage, and its metadata but for some."""
    metadata = {name: value for name, value in last.response_metadata.items() if name not in but}
    return AIMessageChunk(content="", response_metadata=metadata, usage_metadata=last.usage_metadata)


def cut_reply(error: BaseException | None) -> AIMessageChunk | None:
    """Return what was known of the reply that an error, or one of its causes, cut off; None if nothing was."""
    while error is not None:
        if (known := error.__dict__.get(_CUT_REPLY)) is not None:
            return known if isinstance(known, AIMessageChunk) else None
        error = error.__cause__
    return None
