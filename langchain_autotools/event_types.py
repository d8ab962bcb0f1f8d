"""The events of a run, for pages, notebooks, terminals and other programs that show it live.

Every event names its run. A run that a tool made (a model or an agent inside it) tells of itself in the same stream: its events name the
run and the call around it.

Every start has its end, whatever happens: a `RunStarted` is followed by one `RunEnded` or `RunFailed` of the same run, a `CallStarted` by
one `CallReady` or `CallDiscarded`, and a `CallReady` by one `CallResult`, by one `CallsPending` that lists the call, or, where the run ends
before it is answered, by one `CallDiscarded`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import jiter
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata

from .executor.approval.pending import PendingCall
from .messages.artifacts import portable_result
from .messages.calls import ToolCallRecord
from .messages.stop_reasons import StopReason


@dataclass(frozen=True, kw_only=True)
class RunEvent:
    """The base class of all events.

    Attributes:
        run_id: The run that it is about: the id that LangChain's callbacks have for it where the model has tools of its own, else an id
            made for the events.
        parent_run_id: The run around it, one of whose tools made this one; None for a run that no tool made.
        parent_call_id: The call of that run whose tool made this one.
        position: Where it stands among the events of a run or a conversation that is kept (`langchain_autotools.durable`), whose readers
            go on behind it. None for all others.
    """

    run_id: str
    parent_run_id: str | None = None
    parent_call_id: str | None = None
    position: str | None = field(default=None, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {name: portable_result(value) for name, value in vars(self).items()}


@dataclass(frozen=True, kw_only=True)
class RunStarted(RunEvent):
    """A run begins.

    Attributes:
        name: The model's name in LangChain's traces.
    """

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

    call_id: str
    value: Any


@dataclass(frozen=True, kw_only=True)
class CallResult(RunEvent):
    """A call has its result. Results come in the order in which the calls end.

    Attributes:
        call: The call as the model made it; `decision` is what somebody decided about it, where somebody did.
        index: The position of the call among the calls of its message.
        message: The result as it will stand in the history.
        duration: How many seconds the tool took; 0 where nothing ran.
        executed: Whether a tool ran.
    """

    call: ToolCallRecord
    index: int
    message: ToolMessage
    duration: float = 0.0
    executed: bool = False

    @property
    def call_id(self) -> str:
        """The call's id."""
        return self.call.id


@dataclass(frozen=True, kw_only=True)
class MessageDone(RunEvent):
    """A new message of the history is complete, as from `new_messages`. Messages come in the order of the history.

    Attributes:
        message: The message.
    """

    message: AIMessage | ToolMessage

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

    from_model: str
    to_model: str
    error: BaseException | None = None
    after_text: bool = False
    turn: int = 0


@dataclass(frozen=True, kw_only=True)
class MessagesAdded(RunEvent):
    """Messages were added to a conversation from outside, by `langchain_autotools.durable.Conversations` or as a question to an `Agent`.

    Attributes:
        messages: The messages: those that the run answers, or that were appended. The run that answers them starts after this event.
    """

    messages: Sequence[BaseMessage]


@dataclass(frozen=True, kw_only=True)
class TurnUsage(RunEvent):
    """The tokens that a turn used, if its reply reports any.

    Attributes:
        message_id: The id of the turn's message.
        turn: The number of the turn in its run, from 1 on.
        usage: The tokens.
    """

    message_id: str
    turn: int
    usage: UsageMetadata


@dataclass(frozen=True, kw_only=True)
class CallsPending(RunEvent):
    """The run is about to end with calls that wait for approval, or that are left to the caller.

    Attributes:
        calls: The calls, as `pending_calls` gives them; decisions are made of them.
    """

    calls: Sequence[PendingCall]


@dataclass(frozen=True, kw_only=True)
class RunEnded(RunEvent):
    """A run has ended.

    Attributes:
        stop_reason: Why.
        turns: How many requests it made.
        usage: The tokens of all turns together; None where no reply told of any.
    """

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
