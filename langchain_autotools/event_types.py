"""The events of a run, for pages, notebooks, terminals or other programs that show it live.

Every event names its run. A run that a tool made (a model or an agent inside it) tells of itself in the same stream: its events name the
run and the call around it.

Every start has its end, whatever happens. A `RunStarted` is followed by one `RunEnded` or `RunFailed` of the same run, a `CallStarted` by
one `CallReady` or `CallDiscarded`. A `CallReady` is followed by one `CallResult`, by one `CallsPending` that lists the call, or, where the
run ends before it is answered, by one `CallDiscarded`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar

import jiter
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata

from .executor.pending import PendingCall
from .messages.blocks import LARGE, large_files, size_of
from .messages.calls import ToolCallRecord
from .messages.metadata import portable_result
from .messages.run_messages import StopReason

__all__ = [
    "CallArgumentsDelta",
    "CallDiscarded",
    "CallProgress",
    "CallReady",
    "CallResult",
    "CallStarted",
    "CallsPending",
    "ContextCompacted",
    "FileMade",
    "MessageDiscarded",
    "MessageDone",
    "MessagesAdded",
    "ModelChanged",
    "PrefixChanged",
    "ReasoningDelta",
    "RunEnded",
    "RunEvent",
    "RunFailed",
    "RunStarted",
    "SourceFound",
    "TextDelta",
    "TurnUsage",
    "VendorCallDone",
    "VendorCallProgress",
    "VendorCallStarted",
    "partial_arguments",
]


@dataclass(frozen=True, kw_only=True)
class Wire:
    """How events of a kind are written where they are sent: every field under its name, in order.

    Attributes:
        name: The name of the kind.
        brief: The fields that are left out where they are None or empty.
        absent: The fields that are always left out.
        renamed: The fields that have other names, with these.
        also: Properties that are written before the fields.
        is_piece: Whether the event tells of a part of a message that is being written, and is void where the message is.
        ends_run: Whether the event is the last of its run.
    """

    name: str
    brief: Sequence[str] = ()
    absent: Sequence[str] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    also: Sequence[str] = ()
    is_piece: bool = False
    ends_run: bool = False


@dataclass(frozen=True, kw_only=True)
class RunEvent:
    """The base class of all events.

    Attributes:
        run_id: The run that it is about: the id that LangChain's callbacks have for it where the model has tools of its own, else an id
            made for the events.
        parent_run_id: The run around it, one of whose tools made this one; None for a run that no tool made.
        parent_call_id: The call of that run whose tool made this one.
        position: Where it is among the events of a run or a conversation that is kept (`langchain_autotools.durable`), whose readers
            go on behind it. None for all others.
    """

    run_id: str
    parent_run_id: str | None = None
    parent_call_id: str | None = None
    position: str | None = field(default=None, compare=False, repr=False)

    wire: ClassVar[Wire | None] = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: portable_result(value) for name, value in vars(self).items()}


@dataclass(frozen=True, kw_only=True)
class RunStarted(RunEvent):
    """A run begins.

    Attributes:
        name: The model's name in LangChain's traces.
    """

    wire = Wire(name="run_start")

    name: str


@dataclass(frozen=True, kw_only=True)
class TextDelta(RunEvent):
    """An increment of a message's text. The increments of a message in order are its text.

    Attributes:
        message_id: The id that the message will have.
        text: The piece.
        separator: What the run's text has before the piece: the model's `message_separator` at the first piece after tool calls, else
            nothing. `separator + text` of all pieces of a run, in order, is the text of its run message, save the results of
            `return_direct` tools and what a run for structured output says before its last message.
    """

    wire = Wire(name="text", brief=("separator",), is_piece=True)

    message_id: str
    text: str
    separator: str = ""


@dataclass(frozen=True, kw_only=True)
class ReasoningDelta(RunEvent):
    """An increment of the reasoning that a vendor shows.

    Attributes:
        message_id: The id that the message will have.
        text: The piece.
    """

    wire = Wire(name="reasoning", is_piece=True)

    message_id: str
    text: str


@dataclass(frozen=True, kw_only=True)
class CallStarted(RunEvent):
    """The model begins a tool call.

    Attributes:
        message_id: The id that the message will have.
        call_id: The id that the call will have.
        name: The tool's name as the model wrote it.
        index: How many calls of the message began before it.
        provisional: Whether the call is still being written: the end of the turn may show that it is none (`CallDiscarded`). False
            where the call is known whole.
    """

    wire = Wire(name="tool_call_start", is_piece=True)

    message_id: str
    call_id: str
    name: str
    index: int
    provisional: bool


@dataclass(frozen=True, kw_only=True)
class CallArgumentsDelta(RunEvent):
    """An increment of the argument text of a call that is being written.

    For display only. What runs, and what the messages say, is decided at the end of the turn: see `CallReady`. There are pieces only where
    the wire itself says which call they belong to.

    Attributes:
        message_id: The id that the message will have.
        call_id: The call's id.
        text: The piece, as it is on the wire.
        provisional: Always True.
    """

    wire = Wire(name="tool_call_delta", absent=("provisional",), is_piece=True)

    message_id: str
    call_id: str
    text: str
    provisional: Literal[True] = field(default=True, init=False)


@dataclass(frozen=True, kw_only=True)
class CallReady(RunEvent):
    """A tool call is complete: its turn has ended, or a resumed run continues with it.

    Attributes:
        message_id: The id of the message that makes it.
        call: The call, under the name that the model wrote. With `args` None it will not run: `why` says why.
        index: The position of the call among the calls of its message.
    """

    wire = Wire(name="tool_call")

    message_id: str
    call: ToolCallRecord
    index: int

    @property
    def call_id(self) -> str:
        """The call's id."""
        return self.call.id


@dataclass(frozen=True, kw_only=True)
class CallDiscarded(RunEvent):
    """A call was dropped: its reply broke off or changed its meaning, or the run ended before the call was answered.

    Attributes:
        message_id: The id that the message would have.
        call_id: The call's id.
        reason: Why, in words.
    """

    wire = Wire(name="tool_call_discarded")

    message_id: str
    call_id: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class CallProgress(RunEvent):
    """A running tool reports progress (`ToolContext.report`, or a generator's values).

    Attributes:
        call_id: The call's id.
        value: What was reported.
    """

    wire = Wire(name="tool_progress")

    call_id: str
    value: Any = None


@dataclass(frozen=True, kw_only=True)
class CallResult(RunEvent):
    """A call has its result. Results come in the order in which the calls end.

    Attributes:
        call: The call as the model made it; `decision` is what somebody decided about it, where somebody did.
        index: The position of the call among the calls of its message.
        message: The result as it will be in the history.
        duration: How many seconds the tool took; 0 where nothing ran.
        executed: Whether a tool ran.
    """

    wire = Wire(name="tool_result")

    call: ToolCallRecord
    index: int
    message: ToolMessage
    duration: float = 0.0
    executed: bool = False

    @property
    def call_id(self) -> str:
        """The call's id."""
        return self.call.id

    @property
    def edited_arguments(self) -> Mapping[str, Any] | None:
        """The arguments that somebody gave the call in place of the model's; None for a call as the model made it."""
        return self.carried_out.args if self.carried_out.edited else None

    @property
    def carried_out(self) -> ToolCallRecord:
        """The call with the arguments that it ran with, marked as edited where these are not the model's."""
        decision = self.call.decision
        if decision is not None and decision.action == "edit" and decision.value != self.call.args:
            return replace(self.call, args=decision.value, edited=True)
        return self.call.carried_out(self.message)


@dataclass(frozen=True, kw_only=True)
class MessageDone(RunEvent):
    """A new message of the history is complete, as from `new_messages`. Messages come in the order of the history.

    Attributes:
        message: The message: a reply, a result, or the user's message that the run has taken (`message=`, `inbox=`).
    """

    wire = Wire(name="message", also=("message_id",))

    message: AIMessage | ToolMessage | HumanMessage

    @property
    def message_id(self) -> str:
        """The message's id."""
        return str(self.message.id)


@dataclass(frozen=True, kw_only=True)
class MessageDiscarded(RunEvent):
    """The events of a message so far are void, because its reply is requested again. Drop its text and its reasoning.

    The process that read the reply has died (`langchain_autotools.durable`), or the model has failed before any text and one of its
    `fallbacks` is asked: then what is void is reasoning, or an output by a schema.

    Attributes:
        message_id: The id that the message would have had.
        attempt: Which attempt at the reply this was, from 1 on.
    """

    wire = Wire(name="message_discarded")

    message_id: str
    attempt: int


@dataclass(frozen=True, kw_only=True)
class ModelChanged(RunEvent):
    """A model has failed, and the next of its `fallbacks` is asked.

    Attributes:
        from_model: The model that failed, as `<vendor>/<model>`.
        to_model: The model that is asked next.
        error: The error of the one that failed; None if it was not asked because it cools down. Its text may hold what no reader should
            see.
        after_text: Whether text had left: then its message follows, and the other model goes on with it.
        turn: The number of the turn in its run, from 1 on.
    """

    wire = Wire(name="model_changed", renamed={"from_model": "from", "to_model": "to"})

    from_model: str
    to_model: str
    error: BaseException | None = None
    after_text: bool = False
    turn: int = 0


@dataclass(frozen=True, kw_only=True)
class ContextCompacted(RunEvent):
    """A request would have outgrown the context window, and is sent with less of the history (`compact=`).

    The cached prefix of the request before ends at the first result that is left out. The history itself stays whole.

    Attributes:
        what: What was left out: `results`, or with `summary` the oldest turns, which a summary of the model's replaces.
        results: The number of results in whose place a line is sent from now on, or which the summary covers.
        from_tokens: The tokens of the request as it would have been sent, by the last reply's usage and an estimate of what is new.
        to_tokens: Those of the request as it is sent.
        window: The context window of the model that gets it; None if it is not known.
        turn: The number of the turn in its run, from 1 on.
    """

    wire = Wire(name="context_compacted", renamed={"from_tokens": "from", "to_tokens": "to"})

    what: Literal["results", "summary"]
    results: int
    from_tokens: int
    to_tokens: int
    window: int | None = None
    turn: int = 0


PrefixChange = Literal["tools_changed", "system_changed", "messages_changed", "compacted"]
"""What has changed of a request, compared with the one before."""


@dataclass(frozen=True, kw_only=True)
class PrefixChanged(RunEvent):
    """A request does not begin with the one before it: the vendor's prompt cache has at most what precedes the change.

    The request before is that of the same model in the same run, or the last one of the run before, where this process has seen it for
    somebody who listened. Compared are tools and messages as the model gets them; cache marks do not count.

    Attributes:
        reason: What has changed: the declared tools, a system message at the start, a message behind it (edited, removed or inserted), or
            messages that `compact=` has shortened.
        index: The position of the first message that differs, among the messages as they are sent. 0 where the tools have changed, which
            precede all messages.
        message_id: The id of the message that is there now, where it has one and the tools are the same.
        turn: The number of the turn in its run, from 1 on.
    """

    wire = Wire(name="prefix_changed", brief=("message_id",))

    reason: PrefixChange
    index: int
    message_id: str | None = None
    turn: int = 0


@dataclass(frozen=True, kw_only=True)
class MessagesAdded(RunEvent):
    """Messages were added to a conversation from outside, by `langchain_autotools.durable.Conversations` or as a question to an `Agent`.

    Attributes:
        messages: The messages: those that the run answers, or that were appended. The run that answers them starts after this event.
    """

    wire = Wire(name="messages")

    messages: Sequence[BaseMessage]


@dataclass(frozen=True, kw_only=True)
class TurnUsage(RunEvent):
    """The tokens that a turn used, if its reply reports any.

    Attributes:
        message_id: The id of the turn's message.
        turn: The number of the turn in its run, from 1 on.
        usage: The tokens.
    """

    wire = Wire(name="usage")

    message_id: str
    turn: int
    usage: UsageMetadata


@dataclass(frozen=True, kw_only=True)
class CallsPending(RunEvent):
    """The run is about to end with calls that wait for approval, or that are left to the caller.

    Attributes:
        calls: The calls, as `pending_calls` gives them; decisions are made of them.
    """

    wire = Wire(name="pending")

    calls: Sequence[PendingCall]


@dataclass(frozen=True, kw_only=True)
class RunEnded(RunEvent):
    """A run has ended.

    Attributes:
        stop_reason: Why.
        turns: How many requests it made.
        usage: The tokens of all turns together; None where no reply told of any.
    """

    wire = Wire(name="run_end", also=("max_turns_reached",), ends_run=True)

    stop_reason: StopReason
    turns: int
    usage: UsageMetadata | None = None

    @property
    def max_turns_reached(self) -> bool:
        """Whether the run ended at its limit of turns."""
        return self.stop_reason == "max_turns"


@dataclass(frozen=True, kw_only=True)
class RunFailed(RunEvent):
    """A run has failed. The exception is raised after this event.

    Attributes:
        error: The exception. Its text may hold what no reader should see: show its class, or a sentence of your own.
    """

    wire = Wire(name="run_error", ends_run=True)

    error: BaseException


def partial_arguments(text: str) -> dict[str, Any]:
    """Return the arguments of an unfinished call, for display while the rest is being written.

    Args:
        text: All `CallArgumentsDelta` pieces of the call so far, joined.

    Returns:
        The object that the text begins, the last string of it as far as it goes; empty where there is none yet, or the text is no object.
    """
    try:
        value = jiter.from_json(text.encode(errors="replace"), partial_mode="trailing-strings")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


# -------------------------------------------------------------------------------------------- what a vendor does by itself while it answers
#
# These are told from the wire while somebody listens. What a message holds is told with it: nothing of a conversation depends on them.


@dataclass(frozen=True, kw_only=True)
class VendorCallStarted(RunEvent):
    """The vendor begins a call of one of its own tools: a search, code, an image, a call of a remote MCP server.

    Attributes:
        message_id: The id that the message will have.
        call_id: The call's id, as the vendor's or made for the events.
        name: The tool's name: `web_search`, `file_search`, `code_interpreter`, `image_generation`, `mcp.<tool>` and others.
        args: What it is called with, where that is known at the start.
    """

    wire = Wire(name="vendor_call_start", is_piece=True)

    message_id: str
    call_id: str
    name: str
    args: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class VendorCallProgress(RunEvent):
    """A call of the vendor's goes on.

    Attributes:
        message_id: The id that the message will have.
        call_id: The call's id.
        status: The vendor's word for what it does now, such as `searching`; empty for none.
        text: An increment of what it writes, such as code.
        image: A partial image, as base64; the next one, or the `FileMade` of the whole image, takes its place. Only live events have it.
        mime_type: The type of the image.
    """

    wire = Wire(name="vendor_call_progress", brief=("status", "text", "image", "mime_type"), is_piece=True)

    message_id: str
    call_id: str
    status: str = ""
    text: str = ""
    image: str | None = None
    mime_type: str | None = None


@dataclass(frozen=True, kw_only=True)
class VendorCallDone(RunEvent):
    """A call of the vendor's has ended.

    Attributes:
        message_id: The id that the message will have.
        call_id: The call's id.
        name: The tool's name.
        args: What it was called with, as far as the vendor says.
        output: What came of it, as plain data; None where the vendor does not say.
        failed: Whether it failed, or its reply or run ended before it had.
    """

    wire = Wire(name="vendor_call")

    message_id: str
    call_id: str
    name: str
    args: Mapping[str, Any] | None = None
    output: Any = None
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class SourceFound(RunEvent):
    """A message cites a source, or is grounded in one. A source that is cited at several places has several events.

    Attributes:
        message_id: The id of the message.
        url: The source's address, as the vendor has it: show it as a link only where it begins with `http://` or `https://`.
        title: Its title.
        document: The name or the id of a document, where the source is none of the web.
        quote: The cited text of the source.
        start: Where in the message's text the citing words begin, where the vendor says so.
        end: Where they end.
    """

    wire = Wire(name="source", brief=("url", "title", "document", "quote", "start", "end"), is_piece=True)

    message_id: str
    url: str | None = None
    title: str | None = None
    document: str | None = None
    quote: str | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, kw_only=True)
class FileMade(RunEvent):
    """The model or one of the vendor's tools has made a file: an image, sound, or any other.

    Attributes:
        message_id: The id of the message that holds it.
        mime_type: Its type.
        data: The file as base64; None for one that the vendor keeps, and where events are kept or sent for one above 256 kB: then the
            message holds it.
        size: The size of the data in bytes; 0 where they are not known.
        sha256: The SHA-256 of the base64 text as hexadecimal digits, where it is left out; else None.
        url: Its address, where the vendor gives one in place of the data.
        file_id: The vendor's id of it.
        name: Its name.
        call_id: The call of the vendor's that made it.
    """

    wire = Wire(name="file", brief=("data", "sha256", "url", "file_id", "name", "call_id"), is_piece=True)

    message_id: str
    mime_type: str
    data: str | None = None
    size: int = 0
    sha256: str | None = None
    url: str | None = None
    file_id: str | None = None
    name: str | None = None
    call_id: str | None = None

    def by_reference(self) -> "FileMade":
        """Return the event without data above 256 kB."""
        return self if self.data is None or self.size <= LARGE else replace(self, data=None, sha256=_sha256(self.data))

    def found_in(self, message: BaseMessage) -> "FileMade | None":
        """Return the event with the data that its message holds; None if the message does not hold them."""
        data = next((data for data in large_files(message) if size_of(data) == self.size and self.sha256 in (None, _sha256(data))), None)
        return None if data is None else replace(self, data=data, sha256=None)


def _sha256(data: str) -> str:
    return sha256(data.encode()).hexdigest()


# ---------------------------------------------------------------------- tables of what each consumer of events does with each kind of event
#
# A table is the consumer's dispatch: it names every kind of `RunEvent`, so that a new kind is not overlooked. tests/test_event_tables.py
# compares all tables with the kinds that there are.


Entry = TypeVar("Entry")

NOTHING: Final = None
"""The entry of a kind with which a consumer has nothing to do."""


class EventTable(dict[type[RunEvent], Entry | None], Generic[Entry]):
    """The entries of one consumer, by kind of event. A kind that a program has defined itself has none: look entries up with `get`.

    Args:
        consumer: The name of the consumer, for the test that compares the tables.
        entries: The entry of each kind; `NOTHING` for a kind with which the consumer has nothing to do.
    """

    def __init__(self, consumer: str, entries: Mapping[type[RunEvent], Entry | None]) -> None:
        super().__init__(entries)
        self.consumer = consumer
