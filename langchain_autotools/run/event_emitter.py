"""The emission of a run's events for its listeners."""

import json
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing
from dataclasses import replace
from hashlib import blake2b
from itertools import repeat
from typing import Any, ClassVar, Final, NamedTuple, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata

from .. import event_types as kinds
from ..deadline import DeadlinePassed
from ..event_bus import NobodyListens, Scope, current_scope
from ..event_types import CallArgumentsDelta, RunEvent, TextDelta
from ..executor import ToolCallResult, pending_calls
from ..executor.batch import CallObserver
from ..messages.blocks import deltas_of, whole_content
from ..messages.calls import ToolCallRecord, awaited_calls, calls_of
from ..messages.incremental import fold_over, growing
from ..messages.metadata import FAILOVER, KEY, CarrierDict, is_cut_reply, text_of
from ..messages.run_messages import Separators, StopReason
from ..turn.accumulator import CallPiece, is_restart, pieces_of
from .turn_wrappers import AsyncProceed, Discarded, Emitted, Mark, Notice, Proceed, Restart, RunObserver, TurnPart, TurnRequest, TurnWrapper

_NOT_WHOLE = "the reply ended before the call was whole"
_AGAIN = "the reply broke off, and is asked for again"
_ANOTHER = "the reply as a whole means no such call"
_NO_ANSWER = "the run ended before the call was answered"
_LEFT = "the run was left before the call was answered"
_new, _set = object.__new__, object.__setattr__
_CONCERN_ONE_ANOTHER = (
    "sending",
    "part",
    "turn_done",
    "turn_cut",
    "calls_begin",
    "progressed",
    "result_done",
    "messages_taken",
    "pending",
    "ended",
    "stopped",
    "leave",
)


class RunEvents(RunObserver, TurnWrapper):
    """Emits the events of one run, as its observer, as that of its calls, and as a wrapper of its turns.

    Args:
        place: The position of the run, with its listener.
        separator: The separator between the texts of two turns.

    Attributes:
        place: The given place.
        requests: The wrapper that observes each request as its model gets it.
    """

    layer: ClassVar[str] = "observer"
    listens = True

    def __init__(self, place: Scope, separator: str = "") -> None:
        self.place = place
        self._joints = Separators(separator)
        self._separator = ""  # before the next text
        self._run_id = ""
        self._about: dict[str, Any] = {}
        self._listener = place.listener
        self._lock = threading.RLock()
        self._over = True  # until it begins
        self._tell: Callable[[Any], None] = self._listener.tell
        if place.call_id is not None:
            self._tell = self._tell_inside
            for method in _CONCERN_ONE_ANOTHER:  # its tool may be given up while it goes on
                setattr(self, method, _locked(self._lock, getattr(self, method)))
        self.requests = _Requests(self)
        self._prefixes: dict[object, _Prefix] | None = None  # of the last request to each model; None before the first one
        self._model_key: tuple[Any, object] = (None, None)
        self._is_compacted = False  # since the last request
        self._last_id: str | None = None  # of the last AI message
        self._vendor_calls = _VendorCalls()
        self._turn = 0
        self._message_id: str | None = None
        self._attempt = 0  # at the current reply
        self._written: dict[str, str] = {}  # the calls that are being written, and the ids of their messages
        self._waiting: dict[str, tuple[ToolCallRecord, int, str]] = {}  # the calls without an answer so far
        self._tell_delta: Callable[[TextDelta | CallArgumentsDelta], None] = (
            self._listener.waiting.append if place.is_read_alone else self._tell
        )
        self._of_text: dict[str, Any] = {}
        self._is_read_alone = place.is_read_alone

    def begin(self, run_id: str, name: str) -> None:
        """Observe that the run begins."""
        place, self._run_id = self.place, run_id
        self._about = {"run_id": run_id, "parent_run_id": place.run_id, "parent_call_id": place.call_id}
        with self._lock:
            self._over = False
            self._listener.begin(run_id, self)
            if place.run_id is not None and place.call_id is not None and self._listener.has_left(place.run_id, place.call_id):
                self._over = True
                self._listener.end(run_id)
            self._tell(kinds.RunStarted(**self._about, name=name))

    @property
    def due(self) -> bool:  # type: ignore[override]
        """Whether events wait for a reader who gets them with the next chunk, or the reader has left."""
        return (self.place.hands_over and bool(self._listener.waiting)) or self._listener.is_left

    def check(self) -> None:
        """End the run if its reader has left and its stream is not the closed one.

        Raises:
            NobodyListens: The reader has left.
        """
        if self._listener.is_left:
            raise NobodyListens

    def _tell_inside(self, event: Any) -> None:
        """Emit an event of a run inside a tool, unless it was left."""
        if not self._over:
            self._listener.tell(event)

    # ------------------------------------------------------------------------------------------ a turn

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[TurnPart]:
        """Yield the parts of a turn, and emit the events of each."""
        return map(self.part, proceed(request))

    async def awrap_turn(self, request: TurnRequest, proceed: AsyncProceed) -> AsyncIterator[TurnPart]:
        """Like `wrap_turn`, asynchronously."""
        async with aclosing(cast("AsyncGenerator[TurnPart, None]", proceed(request))) as parts:
            async for part in parts:
                yield self.part(part)

    def sending(self, request: TurnRequest) -> None:
        """Emit that a request leaves the prefix of the one before, if it does."""
        messages = request.messages
        if not isinstance(messages, list | tuple) or not all(map(isinstance, messages, repeat(BaseMessage))):
            return  # the only request of a model without tools, over input that is no history
        if request.model is not self._model_key[0]:
            known = request.model._get_ls_params()
            self._model_key = request.model, (known.get("ls_provider"), known.get("ls_model_name"))
        if self._prefixes is None:
            self._prefixes = dict(_prefixes_before(messages))
        key = (self._model_key[1], request.keywords.get("model"))
        before, history = self._prefixes.get(key), growing(messages)
        tools = request.form.tools
        digest = before.digest if before is not None and before.tools is tools else _digest(tools)
        now = self._prefixes[key] = _Prefix(tools, digest, fold_over(history, _Records, _Records).all)
        history.keep()
        is_compacted, self._is_compacted = self._is_compacted, False
        if before is not None and (found := now.leaves(before)) is not None:
            reason, index = found
            if reason == "messages_changed" and is_compacted:
                reason = "compacted"
            message_id = messages[index].id if reason != "tools_changed" else None
            self._tell(kinds.PrefixChanged(**self._about, reason=reason, index=index, message_id=message_id, turn=self._turn + 1))

    def part(self, part: TurnPart) -> TurnPart:
        """Emit the events of a part of a turn (a piece of the reply, the whole reply, or a mark), and return the part.

        Raises:
            NobodyListens: The reader has left.
        """
        if not self._is_read_alone:
            self.check()
        if isinstance(part, Mark):
            return self._marked(part)
        fields = part.__dict__
        message_id = self._message_id
        if message_id is None:
            message_id = self._message_id = str(fields["id"])
            self._of_text = {**self._about, "message_id": message_id}
        content, extra = fields["content"], fields["additional_kwargs"]
        text = content
        if content.__class__ is list and len(content) == 1 and content[0].__class__ is dict and content[0].get("type") == "text":
            text = content[0].get("text")
        if text.__class__ is str and not extra and extra.__class__ is dict:
            if text:
                delta, values = _new(TextDelta), self._of_text.copy()  # as the dataclass does it, at a third of its price
                values["text"] = text
                if self._separator:
                    values["separator"], self._separator = self._separator, ""
                _set(delta, "__dict__", values)
                self._tell_delta(delta)
            return part
        for kind, text in deltas_of(content, extra) if content or extra else ():
            if kind == "text":
                separator, self._separator = self._separator, ""
                self._tell(TextDelta(**self._about, message_id=message_id, text=text, separator=separator))
            else:
                self._tell(kinds.ReasoningDelta(**self._about, message_id=message_id, text=text))
        return part if extra.__class__ is dict else self._noted(part, message_id)

    def _noted(self, part: AIMessage, message_id: str) -> TurnPart:
        """Emit what a part brings beside its data: pieces of calls, what the vendor does, or the mark of a restart."""
        extra = part.__dict__["additional_kwargs"]
        if extra.__class__ is CarrierDict and extra.note.__class__ is CallPiece:
            piece = extra.note
            if piece.name is not None or piece.call_id not in self._written:
                self._piece(message_id, piece)
            elif piece.text:
                delta = _new(CallArgumentsDelta)  # see `part`
                _set(delta, "__dict__", {**self._of_text, "call_id": piece.call_id, "text": piece.text})
                self._tell_delta(delta)
            return part if part.content else Emitted(cast("AIMessageChunk", part))
        for one in pieces_of(part):
            if isinstance(one, RunEvent):
                self._tell_all(self._vendor_calls.of(replace(one, **{**self._about, "message_id": message_id})))
            else:
                self._piece(message_id, one)
        return self._marked(Restart()) if is_restart(part) else part

    def _tell_all(self, events: Iterator[RunEvent]) -> None:
        for event in events:
            self._tell(event)

    def _marked(self, mark: Mark) -> Mark:
        if isinstance(mark, Restart):
            self._tell_all(self._vendor_calls.left())
            self._discard(_AGAIN)
        elif isinstance(mark, Discarded):
            self._void()
        elif isinstance(mark, Notice):
            self._is_compacted = self._is_compacted or isinstance(mark.event, kinds.ContextCompacted)
            self._tell(mark.event if mark.event.run_id else self._placed(mark.event))
        return mark

    def _placed(self, event: RunEvent) -> RunEvent:
        """Return an event of a turn with the run and the turn that it is about."""
        place: dict[str, Any] = {"turn": self._turn + 1} if hasattr(event, "turn") else {}
        return replace(event, **self._about, **place)

    def _void(self) -> None:
        """Emit that the reply so far is void."""
        self._tell_all(self._vendor_calls.left())
        self._discard(_AGAIN)
        if self._message_id is not None:
            self._attempt += 1
            self._tell(kinds.MessageDiscarded(**self._about, message_id=self._message_id, attempt=self._attempt))
            self._message_id = None

    def _piece(self, message_id: str, piece: Any) -> None:
        about = {**self._about, "message_id": message_id, "call_id": piece.call_id}
        if piece.name is not None and piece.call_id not in self._written:
            self._tell(kinds.CallStarted(**about, name=piece.name, index=len(self._written), provisional=True))
            self._written[piece.call_id] = message_id
        if piece.text and piece.call_id in self._written:
            self._tell(CallArgumentsDelta(**about, text=piece.text))

    def turn_done(self, message: AIMessage) -> None:
        """Emit the end of a turn, with its stored message."""
        self._ready(message, list(enumerate(calls_of(message))))
        self._turn_done(message, _ANOTHER)

    def turn_cut(self, message: AIMessage | None) -> None:
        """Emit the end of a cut turn, with its remaining message."""
        self._tell_all(self._vendor_calls.left())
        self._turn_done(message, _NOT_WHOLE)

    def _turn_done(self, message: AIMessage | None, why_discarded: str) -> None:
        turn = self._turn + 1
        self._message_id, self._attempt = None, 0
        self._discard(why_discarded)
        if message is None or FAILOVER not in (message.response_metadata.get(KEY) or ()) or not is_cut_reply(message):
            self._turn = turn
        if message is not None:
            self._last_id = message.id
            self._joints.before(text_of(message))
            self._joints.ended(message)
            self._separator = self._joints.pending
            self._tell(kinds.MessageDone(**self._about, message=message))
            if message.usage_metadata is not None:
                self._tell(kinds.TurnUsage(**self._about, message_id=str(message.id), turn=turn, usage=message.usage_metadata))

    def _discard(self, reason: str) -> None:
        """Emit that unfinished calls were discarded."""
        written, self._written = self._written, {}
        for call_id, message_id in written.items():
            self._tell(kinds.CallDiscarded(**self._about, message_id=message_id, call_id=call_id, reason=reason))

    def _ready(self, message: AIMessage, calls: Sequence[tuple[int, ToolCallRecord]]) -> None:
        about = {**self._about, "message_id": str(message.id)}
        for index, call in calls:
            if self._written.pop(call.id, None) is None:
                self._tell(kinds.CallStarted(**about, call_id=call.id, name=call.spelling, index=index, provisional=False))
            self._waiting[call.id] = call, index, str(message.id)
            self._tell(kinds.CallReady(**about, call=call, index=index))

    # ------------------------------------------------------------------------------------------ calls

    def calls_begin(self, message: AIMessage, calls: Sequence[ToolCallRecord]) -> None:
        """Emit that these calls of a message are answered now, announcing those of the run's input."""
        found = {call.id for call in calls} - self._waiting.keys()
        every = [*calls_of(message), *awaited_calls(message)]
        self._ready(message, [(index, call) for index, call in enumerate(every) if call.id in found])

    def watch(self) -> CallObserver:
        """Return the observer of one turn's calls."""
        return self

    def waking(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Return a context in which a function is called at each event."""
        return self._listener.waking(wake)

    def entered(self, call: ToolCallRecord) -> None:
        """Record that a call begins, in the context in which its tools will run: runs inside them are told of, if anybody listens."""
        listener = self._listener.for_tools
        current_scope.set(None if listener is None else Scope(listener, self._run_id, call.id, is_outermost=False))

    def progressed(self, call: ToolCallRecord, value: Any) -> None:
        """Emit a tool's progress report."""
        self._tell(kinds.CallProgress(**self._about, call_id=call.id, value=value))

    def answered(self, result: ToolCallResult) -> None:
        """Emit the result of a call, once."""
        call_id = result.call.id
        with self._lock:
            call, index, _ = self._waiting.pop(call_id, (None, 0, ""))
            if call is not None:
                self._listener.leave(self._run_id, call_id)
                call = call if result.call.decision is None else replace(call, decision=result.call.decision)
                outcome: dict[str, Any] = {"message": result.message, "duration": result.duration, "executed": result.executed}
                self._tell(kinds.CallResult(**self._about, call=call, index=index, **outcome))

    def result_done(self, result: ToolCallResult) -> None:
        """Emit that a result's message is complete."""
        self.answered(result)
        self._tell(kinds.MessageDone(**self._about, message=result.message))

    def messages_taken(self, messages: Sequence[HumanMessage]) -> None:
        """Emit that messages of the user have joined the run."""
        self._joints.ask()
        self._separator = self._joints.pending
        self._tell_all(kinds.MessageDone(**self._about, message=message) for message in messages)

    # ------------------------------------------------------------------------------------------ the end

    def pending(self, message: AIMessage, calls: Sequence[ToolCallRecord], opened: Sequence[ToolMessage] = ()) -> None:
        """Emit that the run is about to end with these calls, announcing the vendor's own items first."""
        self.calls_begin(message, [call for call in calls if call.answer is None])
        waiting = {call.id for call in calls}
        shown = [one for one in pending_calls(message) if one.id in waiting]
        for one in shown:
            self._waiting.pop(one.id, None)
        if shown or opened:
            self._tell(kinds.CallsPending(**self._about, calls=(*shown, *pending_calls(opened))))

    def ended(self, reason: StopReason, turns: int, usage: UsageMetadata | None, message: Callable[[], AIMessage]) -> None:
        """Emit the end of the run; `message` returns the run message on request."""
        if self.place.is_outermost:
            self._listener.come_to(message)
        if self._last_id and self._prefixes:
            _keep_prefixes(self._last_id, self._prefixes)
        self._end(kinds.RunEnded(**self._about, stop_reason=reason, turns=turns, usage=usage), _NO_ANSWER)

    def stopped(self, error: BaseException) -> None:
        """Emit a failure of the run, unless the error means that the run was left."""
        if isinstance(error, Exception) and not isinstance(error, DeadlinePassed):
            self._end(kinds.RunFailed(**self._about, error=error), _NO_ANSWER)
        else:
            self.leave()

    def is_inside(self, run_id: str, call_id: str) -> bool:
        """Whether the run belongs to a call's tool."""
        return (self.place.run_id, self.place.call_id) == (run_id, call_id)

    def leave(self) -> None:
        """Emit that the run was left, and nothing after that."""
        self._end(kinds.RunEnded(**self._about, stop_reason="cancelled", turns=self._turn), _LEFT)

    def _end(self, event: kinds.RunEnded | kinds.RunFailed, reason: str) -> None:
        if self._over:
            return
        self._tell_all(self._vendor_calls.left())
        self._discard(_NOT_WHOLE)
        waiting, self._waiting = self._waiting, {}
        for call_id, (_, _, message_id) in waiting.items():
            self._listener.leave(self._run_id, call_id)
            self._tell(kinds.CallDiscarded(**self._about, message_id=message_id, call_id=call_id, reason=reason))
        self._listener.end(self._run_id)
        self._tell(event)
        self._over = True


def _locked(lock: threading.RLock, method: Callable[..., Any]) -> Callable[..., Any]:
    def locked(*args: Any) -> Any:
        with lock:
            return method(*args)

    return locked


# ----------------------------------------------------------------------------------- the vendor's own calls, so that each start has its end


class _VendorCalls:
    """Keeps the open calls of the vendor's own tools in a run. One may end in a later turn than it began in."""

    def __init__(self) -> None:
        self._open: dict[str, kinds.VendorCallStarted] = {}

    def of(self, event: RunEvent) -> Iterator[RunEvent]:
        """Yield the event of a turn, behind the start that it lacks."""
        rule = _RULES.get(type(event))
        return iter((event,)) if rule is None else rule(self, event)

    def left(self) -> Iterator[RunEvent]:
        """Yield the ends of the calls that are open: nothing more comes of them."""
        calls, self._open = self._open, {}
        for call in calls.values():
            yield kinds.VendorCallDone(**{**vars(call), "failed": True})

    def _begin(self, event: kinds.VendorCallStarted) -> Iterator[RunEvent]:
        begun = self._open.get(event.call_id)
        self._open[event.call_id] = event if begun is None or event.args is not None else begun
        if begun is None:  # a second one only adds what it is called with
            yield event

    def _end(self, event: kinds.VendorCallDone) -> Iterator[RunEvent]:
        begun = self._open.pop(event.call_id, None)
        if begun is None:
            yield kinds.VendorCallStarted(**{name: value for name, value in vars(event).items() if name not in ("output", "failed")})
            yield event
        else:  # a result in a later reply says neither the name nor the arguments
            yield replace(event, name=begun.name, args=begun.args if event.args is None else event.args)


_RULES: Mapping[type[RunEvent], Callable[[_VendorCalls, Any], Iterator[RunEvent]]] = {
    kinds.VendorCallStarted: _VendorCalls._begin,
    kinds.VendorCallDone: _VendorCalls._end,
}


# ----------------------------------------------------------------------------------- requests, compared with what the prompt cache has
#
# A vendor's cache has the last request from its start: first the tools, then the messages. Of each message there is one record of a fixed
# length, so that whether a request begins with the one before is one comparison of bytes, and a turn reads only the new messages.


_RECORD: Final = 16
"""The length of a message's record: a byte that says whether it is a system message, and a digest."""

_MOST_CONVERSATIONS: Final = 256
"""The number of runs whose last requests are kept for the next run over their history."""


_SENT = ("type", "role", "content", "additional_kwargs", "name", "tool_calls", "invalid_tool_calls", "tool_call_id", "status")
"""The fields of messages of which a vendor is sent something."""


class _Requests(TurnWrapper):
    """Shows each request as its model gets it, inside of all other wrappers, to the events of its run."""

    layer: ClassVar[str] = "request"

    def __init__(self, events: RunEvents) -> None:
        self._events = events

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[TurnPart]:
        """Observe the request, and make the turn."""
        self._events.sending(request)
        return proceed(request)

    def awrap_turn(self, request: TurnRequest, proceed: AsyncProceed) -> AsyncIterator[TurnPart]:
        """Like `wrap_turn`, asynchronously."""
        self._events.sending(request)
        return proceed(request)


class _Prefix(NamedTuple):
    """What a request had the vendor cache.

    Attributes:
        tools: The declared tools.
        digest: Their digest.
        records: The records of its messages.
    """

    tools: Sequence[Mapping[str, Any]]
    digest: bytes
    records: bytes

    def leaves(self, before: "_Prefix") -> tuple[kinds.PrefixChange, int] | None:
        """Return why and at which message this request leaves another one's prefix; None where one begins with the other."""
        if self.digest != before.digest:
            return "tools_changed", 0
        ours, theirs = self.records, before.records
        size = min(len(ours), len(theirs))
        if ours.startswith(theirs) or theirs.startswith(ours):
            return None
        place = next(start for start in range(0, size, _RECORD) if ours[start : start + _RECORD] != theirs[start : start + _RECORD])
        at_start = ours[:place:_RECORD].strip(b"S") == b""
        is_system = at_start and b"S" in (ours[place : place + 1], theirs[place : place + 1])
        return "system_changed" if is_system else "messages_changed", place // _RECORD


class _Records:
    """A fold that makes the records of messages.

    Attributes:
        all: The records, joined.
    """

    __slots__ = ("all",)

    def __init__(self, known: bytes = b"") -> None:
        self.all = known

    def copy(self) -> "_Records":
        """Return an independent copy."""
        return _Records(self.all)

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""
        self.all += b"".join(map(_message_record, messages))


def _message_record(message: BaseMessage) -> bytes:
    """Return the record of a message: of what a vendor is sent of it, without cache marks."""
    fields = vars(message)
    sent = {name: value for name in _SENT if (value := fields.get(name))}
    return (b"S" if isinstance(message, SystemMessage) else b"-") + _digest(sent)


def _digest(value: Any) -> bytes:
    """Return the digest of data, without cache marks."""
    text = json.dumps(value, default=_of_no_json)
    if '"type": "text"' in text or "cache_control" in text or "cachePoint" in text:
        text = json.dumps(_unmarked(value), default=_of_no_json)
    return blake2b(text.encode(), digest_size=_RECORD - 1).digest()


def _of_no_json(value: Any) -> str:
    """Return what stands for a value that is not JSON: nothing that differs between two equal ones."""
    return type(value).__name__


def _unmarked(value: Any) -> Any:
    """Return data without marks of where to cache, and one plain block of text as the text, for which the mark may have made it."""
    if isinstance(value, Mapping):
        return {key: _unmarked(one) for key, one in value.items() if key not in ("cache_control", "cachePoint")}
    if not isinstance(value, list | tuple):
        return value
    made = [_unmarked(one) for one in value]
    return whole_content([one for one, given in zip(made, value, strict=True) if one != {} or given == {}])


_prefixes: dict[str, dict[object, _Prefix] | None] = {}  # by the last AI message of a run; None where several runs ended with one id


def _keep_prefixes(message_id: str, prefixes: dict[object, _Prefix]) -> None:
    """Keep what the last requests of a run were, for the next run over its history."""
    _prefixes[message_id] = prefixes if message_id not in _prefixes else None
    if len(_prefixes) > _MOST_CONVERSATIONS:
        _prefixes.pop(next(iter(_prefixes)), None)


def _prefixes_before(messages: Sequence[BaseMessage]) -> Mapping[object, _Prefix]:
    """Return the last requests of the run whose messages these go on from, as far as they are kept."""
    last = next((one.id for one in reversed(messages) if isinstance(one, AIMessage)), None)
    return _prefixes.get(last or "") or {}
