"""Encoding of a run's events as the AI SDK's UI message stream, version 1, for `useChat` of the npm package `ai`.

What the chunks are is said by that package's `uiMessageChunkSchema`; what a page makes of them by its `processUIMessageStream`.
"""

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, overload

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata, add_usage

from .. import event_types as kinds
from ..addresses import is_page
from ..event_types import NOTHING, EventTable, RunEvent
from ..executor.pending import APPROVABLE, ELICITATION, Decision, PendingCall, full_name, is_apart, page_id
from ..messages.blocks import standard_blocks
from ..messages.calls import ToolCallRecord
from ..messages.metadata import without_cost
from ..messages.run_messages import open_run
from ..strict_json import read_object
from .posted import signature_of
from .public import plain, to_json, told_of_tool
from .streaming import Failure, WholeTurns, encoded

Chunk = dict[str, Any]
"""A chunk of the UI message stream."""

AI_SDK_HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
        "x-vercel-ai-ui-message-stream": "v1",
    }
)
"""The required headers of a response with the output of `ai_sdk`."""

_FINISH_REASONS = {
    "complete": "stop",
    "return_direct": "stop",
    "calls_pending": "tool-calls",
    "refused": "content-filter",
    "length": "length",
    "incomplete": "error",
}
_BY_VENDOR: Final[Chunk] = {"providerExecuted": True}
_FILES: Final = ("image", "audio", "video", "file")
_UNKNOWN: Final = "application/octet-stream"


@overload
def ai_sdk(
    events: Iterable[RunEvent],
    *,
    message_id: str | None = None,
    heartbeat: float | None = 15.0,
    details: bool = False,
    whole_turns: bool = False,
) -> Generator[bytes, None, None]: ...


@overload
def ai_sdk(
    events: AsyncIterable[RunEvent],
    *,
    message_id: str | None = None,
    heartbeat: float | None = 15.0,
    details: bool = False,
    whole_turns: bool = False,
) -> AsyncGenerator[bytes, None]: ...


def ai_sdk(
    events: Iterable[RunEvent] | AsyncIterable[RunEvent],
    *,
    message_id: str | None = None,
    heartbeat: float | None = 15.0,
    details: bool = False,
    whole_turns: bool = False,
) -> Generator[bytes, None, None] | AsyncGenerator[bytes, None]:
    """Encode events as the AI SDK's UI message stream, version 1, for a response with `AI_SDK_HEADERS`.

    One stream is one assistant message. A run that goes on after decisions (`resume=`) goes on with the message that asked for them. Where
    the reading process shuts down (`EventsInterruptedError`) the bytes end without `finish` and `[DONE]`, so that the page can resume.

    Args:
        events: What `events` or `aevents` returned. Closing the bytes, as a server does when its client is gone, ends the run.
        message_id: The id of the assistant message; None leaves it to the page. For a resumed run it must be that of the message that
            goes on.
        heartbeat: The seconds in which nothing is sent after which a comment keeps the connection open, of asynchronous events; None for
            never.
        details: Whether the text of an exception is sent, besides its class.
        whole_turns: Whether the text, the reasoning and the calls of a turn are sent only when the turn is complete. For durable runs:
            a reply that dies with its process is asked for again, and the protocol has no way to take back what was sent of it.

    Returns:
        A generator of bytes, asynchronous for asynchronous events.

    Raises:
        ConfigurationError: `events` is no iterable, or `heartbeat` no number of seconds.
    """
    encoder = _Encoder(message_id)
    return encoded(events, WholeTurns(encoder) if whole_turns else encoder, heartbeat=heartbeat, details=details)


class _Encoder:
    heartbeat = b": heartbeat\n\n"

    def __init__(self, message_id: str | None) -> None:
        self._chunks = UIMessageChunks(message_id)

    def encode(self, event: RunEvent) -> bytes:
        return _frames(self._chunks.feed(event))

    def end(self) -> bytes:
        return _frames(self._chunks.end()) + b"data: [DONE]\n\n"

    def fail(self, failure: Failure) -> bytes:
        if failure.interrupted:
            return b""
        details = "" if failure.details is None else f" {failure.details}"
        return _frames(self._chunks.end(f"{failure.name}: {failure.text}{details}")) + b"data: [DONE]\n\n"


def _frames(chunks: Iterable[Chunk]) -> bytes:
    return b"".join(f"data: {to_json(chunk)}\n\n".encode() for chunk in chunks)


# ---------------------------------------------------------------------------------------------- the chunks of a UI message
#
# Three ways of the SDK's decide how the chunks are ordered:
#
# - A part of a call is looked for in the current step only while the call is written, so no step begins while one is.
# - `tool-input-available` makes a page run a tool of its own (`onToolCall`). A call of an earlier message that a resumed run goes on with
#   was announced before, so it is shown without that chunk, and only once there is news of it. The page goes on with the message it has,
#   or, if it has none, gets a part for the call.
# - A call that was asked about carries the answer, whoever gave it: the request and the answer go before its output or
#   `tool-output-denied`.


class UIMessageChunks:
    """Creates the chunks of one UI message: pass it the events of a stream, then call `end`.

    Args:
        message_id: The id of the UI message; None leaves it to the page.
    """

    def __init__(self, message_id: str | None = None) -> None:
        self._message_id = message_id
        self._begun = False
        self._in_step = False
        self._messages: set[str] = set()  # the messages that have had their step
        self._open: dict[str, tuple[str, str]] = {}  # by message: the kind and the id of the part that is being written
        self._parts = 0
        self._written: dict[str, list[str]] = {}  # calls that are being written: their names and the pieces of their arguments
        self._held: dict[str, kinds.CallReady] = {}  # calls that are known, and not yet whether they are new
        self._shown: set[str] = set()
        self._reminded: set[str] = set()  # of these, those of an earlier message
        self._usage: UsageMetadata | None = None
        self._ended: kinds.RunEnded | None = None
        self._vendor_calls: set[str] = set()  # the vendor's own that have begun and not ended
        self._sources: set[tuple[str, Any]] = set()
        self._files: dict[str, list[kinds.FileMade]] = {}  # by message: files whose data only the message has
        self._seen: set[str] = set()
        self._inside: dict[str, Chunk] = {}  # by run inside a tool: its data part

    def feed(self, event: RunEvent) -> Iterator[Chunk]:
        """Yield the chunks for an event."""
        part, made = self._part_of(event), _CHUNKS.get(type(event))
        if made is None:
            return
        if part is not None:
            if made.inside is not None and (chunk := made.inside(part, event)) is not None:
                yield chunk
        elif made.of_run is not None:
            yield from self._begin()
            yield from made.of_run(self, event)

    def end(self, error: str | None = None) -> Iterator[Chunk]:
        """Yield the chunks after the last event.

        Args:
            error: What went wrong, in a sentence; None where nothing did.
        """
        yield from self._begin()
        for message_id in list(self._open):
            yield from self._close(message_id)
        yield from self._end_step()
        if error is not None:
            yield {"type": "error", "errorText": error}
            yield {"type": "finish", "finishReason": "error"}
        elif self._ended is not None and self._ended.stop_reason == "cancelled":
            yield {"type": "message-metadata", "messageMetadata": _metadata(self._ended)}
            yield {"type": "abort", "reason": "cancelled"}
        elif self._ended is not None:
            reason = _FINISH_REASONS.get(self._ended.stop_reason, "other")
            yield {"type": "finish", "finishReason": reason, "messageMetadata": _metadata(self._ended)}
        else:
            yield {"type": "finish", "finishReason": "other"}

    @staticmethod
    def user_message(message: BaseMessage) -> Chunk:
        """Return the UI message that a message of the user is."""
        is_text = isinstance(message.content, str)
        parts = [{"type": "text", "text": message.content}] if is_text else [*map(_user_part, standard_blocks(message))]
        return {"id": message.id, "role": "user", "parts": parts or [{"type": "text", "text": ""}]}

    # ------------------------------------------------------------------------------------------ runs and steps

    def _begin(self) -> Iterator[Chunk]:
        if not self._begun:
            self._begun = True
            yield {"type": "start"} if self._message_id is None else {"type": "start", "messageId": self._message_id}

    def _run_started(self, event: kinds.RunStarted) -> Iterator[Chunk]:
        self._usage = None
        if self._ended is not None:  # a chain with two models: one message tells of both
            yield {"type": "message-metadata", "messageMetadata": _metadata(self._ended)}
            self._ended = None

    def _run_ended(self, event: kinds.RunEnded) -> Iterator[Chunk]:
        self._ended = event
        yield from ()

    def _turn_usage(self, event: kinds.TurnUsage) -> Iterator[Chunk]:
        self._usage = add_usage(self._usage, without_cost(event.usage))
        yield {"type": "message-metadata", "messageMetadata": {"turns": event.turn, "usage": self._usage}}

    def _step(self, message_id: str) -> Iterator[Chunk]:
        """Begin the step of a message at its first event."""
        if message_id in self._messages or self._written or self._vendor_calls:
            return
        self._messages.add(message_id)
        yield from self._end_step()
        self._in_step = True
        yield {"type": "start-step"}

    def _end_step(self) -> Iterator[Chunk]:
        if self._in_step:
            self._in_step = False
            yield {"type": "finish-step"}

    def _part_of(self, event: RunEvent) -> Chunk | None:
        """Return the data part of the run of an event; None for a run that no tool made."""
        if event.run_id not in self._inside and event.run_id not in self._seen:
            self._seen.add(event.run_id)
            if event.parent_run_id in self._seen:
                place = {"runId": event.run_id, "parentRunId": event.parent_run_id, "toolCallId": event.parent_call_id}
                self._inside[event.run_id] = {**place, "state": "running", "text": "", "calls": []}
        return self._inside.get(event.run_id)

    # ------------------------------------------------------------------------------------------ text

    def _delta(self, kind: str, event: kinds.TextDelta | kinds.ReasoningDelta, separator: str) -> Iterator[Chunk]:
        opened, part = self._open.get(event.message_id, ("", ""))
        if opened != kind:
            yield from self._enter(event.message_id)
            part = f"{event.message_id}-{self._parts}"
            self._parts += 1
            self._open[event.message_id] = (kind, part)
            metadata: Chunk = {"providerMetadata": {"autotools": {"separator": separator}}} if separator else {}
            yield {"type": f"{kind}-start", "id": part, **metadata}
        yield {"type": f"{kind}-delta", "id": part, "delta": event.text}

    def _enter(self, message_id: str) -> Iterator[Chunk]:
        """Begin something of a message that is no piece of an open text, in the step of the message."""
        yield from self._close(message_id)
        yield from self._step(message_id)

    def _close(self, message_id: str) -> Iterator[Chunk]:
        if message_id in self._open:
            kind, part = self._open.pop(message_id)
            yield {"type": f"{kind}-end", "id": part}

    def _message_done(self, event: kinds.MessageDone) -> Iterator[Chunk]:
        """End a reply. The user's message, which the run took, is a part between two steps."""
        if isinstance(event.message, HumanMessage):
            yield from self._end_step()
            yield {"type": "data-user-message", "id": event.message_id, "data": plain(self.user_message(event.message))}
        if not isinstance(event.message, AIMessage):
            return
        yield from self._enter(event.message_id)
        for ready in [one for one in self._held.values() if one.message_id == event.message_id]:
            yield from self._announce(self._held.pop(ready.call_id).call)
        for made in self._files.pop(event.message_id, ()):
            if (file := made.found_in(event.message)) is not None:
                yield from self._file(file)

    def _message_discarded(self, event: kinds.MessageDiscarded) -> Iterator[Chunk]:
        """Notify the page: the protocol has no way to take text back."""
        yield from self._close(event.message_id)
        yield {"type": "data-message-discarded", "data": {"messageId": event.message_id, "attempt": event.attempt}}

    def _model_changed(self, event: kinds.ModelChanged) -> Iterator[Chunk]:
        data = {"from": event.from_model, "to": event.to_model, "afterText": event.after_text, "turn": event.turn}
        yield {"type": "data-model-changed", "data": data}

    def _compacted(self, event: kinds.ContextCompacted) -> Iterator[Chunk]:
        data = {"what": event.what, "results": event.results, "from": event.from_tokens, "to": event.to_tokens, "turn": event.turn}
        yield {"type": "data-context-compacted", "data": data}

    def _prefix_changed(self, event: kinds.PrefixChanged) -> Iterator[Chunk]:
        data = {"reason": event.reason, "index": event.index, "messageId": event.message_id, "turn": event.turn}
        yield {"type": "data-prefix-changed", "data": data, "transient": True}

    # ------------------------------------------------------------------------------------------ calls being made

    def _call_started(self, event: kinds.CallStarted) -> Iterator[Chunk]:
        yield from self._close(event.message_id)
        if event.provisional:
            yield from self._step(event.message_id)
            self._written[event.call_id] = [event.name]
            yield {"type": "tool-input-start", "toolCallId": event.call_id, "toolName": event.name}

    def _arguments(self, event: kinds.CallArgumentsDelta) -> Iterator[Chunk]:
        self._written[event.call_id].append(event.text)
        yield {"type": "tool-input-delta", "toolCallId": event.call_id, "inputTextDelta": event.text}

    def _call_ready(self, event: kinds.CallReady) -> Iterator[Chunk]:
        if event.call_id in self._written:
            del self._written[event.call_id]
            yield from self._announce(event.call)
        else:
            self._held[event.call_id] = event

    def _discarded(self, event: kinds.CallDiscarded) -> Iterator[Chunk]:
        if event.call_id in self._written:
            name, *pieces = self._written.pop(event.call_id)
            call_fields = {"toolCallId": event.call_id, "toolName": name, "input": "".join(pieces), "errorText": event.reason}
            yield {"type": "tool-input-error", **call_fields, "toolMetadata": {"discarded": True}}
        else:  # a whole call without an answer: the run ended before it had one
            yield from self._remind(event.call_id)
            yield {"type": "tool-output-error", "toolCallId": event.call_id, "errorText": event.reason}

    def _announce(self, call: ToolCallRecord) -> Iterator[Chunk]:
        self._shown.add(call.id)
        call_fields: Chunk = {"toolCallId": call.id, "toolName": call.spelling}
        if call.args is None:
            yield {"type": "tool-input-error", **call_fields, "input": call.arguments, "errorText": call.why or ""}
        else:
            yield {"type": "tool-input-available", **call_fields, "input": safe_json(call.args)}

    def _remind(self, call_id: str) -> Iterator[Chunk]:
        """Repeat a call of an earlier message that has news."""
        ready = self._held.pop(call_id, None)
        if ready is None:
            return
        self._shown.add(call_id)
        self._reminded.add(call_id)
        call = ready.call
        written = call.arguments if call.args is None else to_json(safe_json(call.args))
        yield {"type": "tool-input-start", "toolCallId": call_id, "toolName": call.spelling}
        yield {"type": "tool-input-delta", "toolCallId": call_id, "inputTextDelta": written}

    # ------------------------------------------------------------------------------------------ what became of calls

    def _progress(self, event: kinds.CallProgress) -> Iterator[Chunk]:
        yield from self._remind(event.call_id)
        yield {"type": "tool-output-available", "toolCallId": event.call_id, "output": safe_json(event.value), "preliminary": True}

    def _result(self, event: kinds.CallResult) -> Iterator[Chunk]:
        yield from self._remind(event.call_id)
        call, decision = event.call, event.call.decision
        if event.edited_arguments is not None:
            data = {"toolCallId": call.id, "input": safe_json(event.edited_arguments)}
            yield {"type": "data-edited-arguments", "id": call.id, "data": data}
        rejected = decision is not None and decision.action == "reject"
        if rejected or (decision is not None and decision.uuid and call.id in self._reminded):
            yield from self._answered(decision)
        if rejected:
            yield {"type": "tool-output-denied", "toolCallId": call.id}
        elif open_run(event.message) is not None:
            text = error_text(event.message.content)
            yield {"type": "tool-output-available", "toolCallId": call.id, "output": text, "preliminary": True}
        elif event.message.status == "error":
            yield {"type": "tool-output-error", "toolCallId": call.id, "errorText": error_text(event.message.content)}
        else:
            yield {"type": "tool-output-available", "toolCallId": call.id, "output": safe_json(event.message.content)}

    def _answered(self, decision: Decision) -> Iterator[Chunk]:
        """Yield the chunks for a decision about a call, whoever made it."""
        approval, rejected = decision.uuid or decision.id, decision.action == "reject"
        answer = {"approved": not rejected, **({"reason": decision.value} if rejected and decision.value else {})}
        yield {"type": "tool-approval-request", "approvalId": approval, "toolCallId": decision.id}
        yield {"type": "tool-approval-response", "approvalId": approval, **answer}

    def _pending(self, event: kinds.CallsPending) -> Iterator[Chunk]:
        for pending in event.calls:
            yield from self._waits(pending)

    def _waits(self, pending: PendingCall) -> Iterator[Chunk]:
        needs_answer, call_id, args = pending.kind in ("approval", "queued"), page_id(pending), safe_json(pending.args)
        whole = {"type": "tool-input-available", "toolCallId": call_id, "toolName": full_name(pending), "input": args}
        if pending.kind == ELICITATION:  # left to the page like a call of its own tool: the answer is the output
            yield {**whole, "providerMetadata": {"autotools": {"kind": ELICITATION}}}
        elif is_apart(pending):
            yield {"type": "tool-input-start", "toolCallId": call_id, "toolName": full_name(pending)}
            yield {"type": "tool-input-delta", "toolCallId": call_id, "inputTextDelta": to_json(args)}
        elif pending.id not in self._held and pending.id not in self._shown:  # an item of a vendor's own
            yield whole
        elif needs_answer:
            yield from self._remind(pending.id)
        else:
            self._held.pop(pending.id, None)
        if told := told_of_tool(pending):
            yield {"type": "data-tool-definition", "id": call_id, "data": {"toolCallId": call_id, **told}}
        request = {"type": "tool-approval-request", "approvalId": pending.uuid, "toolCallId": call_id}
        if pending.kind in APPROVABLE:
            yield {**request, "signature": signature_of(pending)}
        elif needs_answer:  # it runs, without a decision of its own, once those before it are decided
            yield {**request, "isAutomatic": True}
            yield {"type": "tool-approval-response", "approvalId": pending.uuid, "approved": True}

    # ------------------------------------------------------------------------------------------ what a vendor does by itself
    #
    # Of a tool part of the vendor's the schema wants the input whole (`tool-input-available`), which is known at the end of the call; until
    # then the page has the part with the pieces of the input. A partial image, and a word about the state of a call, are transient data
    # parts, which a page gets through `onData` and does not keep.

    def _vendor_call_started(self, event: kinds.VendorCallStarted) -> Iterator[Chunk]:
        yield from self._enter(event.message_id)
        self._vendor_calls.add(event.call_id)
        yield {"type": "tool-input-start", "toolCallId": event.call_id, "toolName": event.name, **_BY_VENDOR}

    def _vendor_call_progress(self, event: kinds.VendorCallProgress) -> Iterator[Chunk]:
        if event.text and event.call_id in self._vendor_calls:
            yield {"type": "tool-input-delta", "toolCallId": event.call_id, "inputTextDelta": event.text}
        if event.status or event.image:
            image = {"image": f"data:{event.mime_type};base64,{event.image}"} if event.image else {}
            data = {"toolCallId": event.call_id, "status": event.status, **image}
            yield {"type": "data-vendor-call-progress", "data": data, "transient": True}

    def _vendor_call_done(self, event: kinds.VendorCallDone) -> Iterator[Chunk]:
        self._vendor_calls.discard(event.call_id)
        call: Chunk = {"toolCallId": event.call_id, **_BY_VENDOR}
        yield {"type": "tool-input-available", **call, "toolName": event.name, "input": safe_json(event.args or {})}
        if event.failed:
            why = "The call did not end." if event.output is None else to_json(safe_json(event.output))
            yield {"type": "tool-output-error", **call, "errorText": why}
        else:
            yield {"type": "tool-output-available", **call, "output": safe_json(event.output)}

    def _source(self, event: kinds.SourceFound) -> Iterator[Chunk]:
        """Yield a source, once for each message. One whose address may not be a link is a document."""
        yield from self._enter(event.message_id)
        key = event.message_id, event.url or event.document or event.title
        if key in self._sources or key[1] is None:
            return
        self._sources.add(key)
        known: Chunk = {"sourceId": f"{event.message_id}-source-{len(self._sources)}"}
        if is_page(event.url):
            yield {"type": "source-url", **known, "url": event.url, **({"title": event.title} if event.title else {})}
        else:
            yield {"type": "source-document", **known, "mediaType": "text/plain", "title": event.title or event.document or event.url}

    def _file(self, event: kinds.FileMade) -> Iterator[Chunk]:
        """Yield a file. One without data or a page's address is in its message, or is known to the vendor alone."""
        yield from self._enter(event.message_id)
        url = event.url if is_page(event.url) else (f"data:{event.mime_type};base64,{event.data}" if event.data else None)
        if url is not None:
            yield {"type": "file", "url": url, "mediaType": event.mime_type}
        elif event.size:
            self._files.setdefault(event.message_id, []).append(event)
        else:
            known = {"name": event.name, "mediaType": event.mime_type, **({"url": event.url} if event.url else {})}
            yield {"type": "data-vendor-file", "data": {"messageId": event.message_id, "fileId": event.file_id, **known}}


# ---------------------------------------------------------------------------------------------- runs inside tools
#
# They are data parts of the UI message, and have no parts of their own in it. A part `data-run` has the run's id, and is sent anew when its
# run begins, ends, or something of it is whole; the text between comes as transient parts `data-run-text`, which a page gets through
# `onData` and does not keep.


def _run_part(part: Chunk, **changed: Any) -> Chunk:
    """Return the chunk of a run's data part, with what has changed of it."""
    part.update(changed)
    return {"type": "data-run", "id": part["runId"], "data": part}


def _text_inside(part: Chunk, event: kinds.TextDelta) -> Chunk:
    data = {"runId": event.run_id, "toolCallId": event.parent_call_id, "messageId": event.message_id, "text": event.text}
    if event.separator:
        part["text"] += event.separator
        data["separator"] = event.separator
    return {"type": "data-run-text", "data": data, "transient": True}


def _call_inside(part: Chunk, event: kinds.CallReady) -> Chunk:
    call = event.call
    written = call.arguments if call.args is None else safe_json(call.args)
    return _run_part(part, calls=[*part["calls"], {"toolCallId": call.id, "toolName": call.spelling, "input": written}])


def _result_inside(part: Chunk, event: kinds.CallResult) -> Chunk:
    made = {one["toolCallId"]: one for one in part["calls"]}.get(event.call_id, {})
    failed = event.message.status == "error"
    made |= {"errorText": error_text(event.message.content)} if failed else {"output": safe_json(event.message.content)}
    if event.edited_arguments is not None:
        made |= {"input": safe_json(event.edited_arguments), "edited": True}
    return _run_part(part)


def _metadata(ended: kinds.RunEnded) -> Chunk:
    metadata = {"stop_reason": ended.stop_reason, "max_turns_reached": ended.max_turns_reached, "turns": ended.turns}
    return metadata if ended.usage is None else {**metadata, "usage": ended.usage}


class _Made(NamedTuple):
    """What is made of a kind of event.

    Attributes:
        of_run: Yields the chunks of one of a run that no tool made; None for nothing.
        inside: Returns the chunk of one of a run inside a tool, of the run's data part; None for nothing.
    """

    of_run: Callable[[UIMessageChunks, Any], Iterator[Chunk]] | None
    inside: Callable[[Chunk, Any], Chunk | None] | None = None


_CHUNKS: Final = EventTable(
    "AI SDK",
    {
        kinds.RunStarted: _Made(UIMessageChunks._run_started, lambda part, event: _run_part(part, name=event.name)),
        kinds.TextDelta: _Made(lambda chunks, event: chunks._delta("text", event, event.separator), _text_inside),
        kinds.ReasoningDelta: _Made(lambda chunks, event: chunks._delta("reasoning", event, "")),
        kinds.CallStarted: _Made(UIMessageChunks._call_started),
        kinds.CallArgumentsDelta: _Made(UIMessageChunks._arguments),
        kinds.CallReady: _Made(UIMessageChunks._call_ready, _call_inside),
        kinds.CallDiscarded: _Made(UIMessageChunks._discarded),
        kinds.CallProgress: _Made(UIMessageChunks._progress),
        kinds.CallResult: _Made(UIMessageChunks._result, _result_inside),
        kinds.MessageDone: _Made(
            UIMessageChunks._message_done,
            lambda part, event: _run_part(part, text=part["text"] + event.message.text) if isinstance(event.message, AIMessage) else None,
        ),
        kinds.MessageDiscarded: _Made(UIMessageChunks._message_discarded),
        kinds.ModelChanged: _Made(UIMessageChunks._model_changed),
        kinds.ContextCompacted: _Made(UIMessageChunks._compacted),
        kinds.PrefixChanged: _Made(UIMessageChunks._prefix_changed),
        kinds.MessagesAdded: NOTHING,
        kinds.TurnUsage: _Made(UIMessageChunks._turn_usage),
        kinds.CallsPending: _Made(UIMessageChunks._pending),
        kinds.VendorCallStarted: _Made(UIMessageChunks._vendor_call_started),
        kinds.VendorCallProgress: _Made(UIMessageChunks._vendor_call_progress),
        kinds.VendorCallDone: _Made(UIMessageChunks._vendor_call_done),
        kinds.SourceFound: _Made(UIMessageChunks._source),
        kinds.FileMade: _Made(UIMessageChunks._file),
        kinds.RunEnded: _Made(
            UIMessageChunks._run_ended, lambda part, event: _run_part(part, state="ended", stop_reason=event.stop_reason)
        ),
        kinds.RunFailed: _Made(NOTHING, lambda part, event: _run_part(part, state="failed", errorText=type(event.error).__name__)),
    },
)


# ---------------------------------------------------------------------------------------------- the user's messages


def _user_part(block: Mapping[str, Any]) -> Chunk:
    """Return a block as a part; one that a page has no form for as text."""
    if block["type"] == "text":
        return {"type": "text", "text": block["text"]}
    if block["type"] not in _FILES:
        return {"type": "text", "text": to_json(block.get("value", block))}
    known, data, address = block.get("extras") or {}, block.get("base64"), block.get("url")
    about = {"mediaType": block.get("mime_type") or _UNKNOWN, **({"filename": known["filename"]} if known.get("filename") else {})}
    if data or is_page(address):
        return {"type": "file", "url": address if is_page(address) else f"data:{about['mediaType']};base64,{data}", **about}
    return {"type": "data-vendor-file", "data": {"fileId": block.get("file_id"), **about, **({"url": address} if address else {})}}


# ---------------------------------------------------------------------------------------------- values that the SDK takes


def safe_json(value: Any) -> Any:
    """Return a value as plain JSON for the AI SDK, as text if it has certain keys with which the SDK gives up a whole stream."""
    made = plain(value)
    return to_json(made) if _is_refused(made) else made


def _is_refused(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_refused, value))
    if not isinstance(value, dict):
        return False
    maker = value.get("constructor")
    return "__proto__" in value or (isinstance(maker, dict) and "prototype" in maker) or any(map(_is_refused, value.values()))


def error_text(content: Any) -> str:
    """Return the text of an error result."""
    if not isinstance(content, str):
        return to_json(content)
    parsed = read_object(content)
    return parsed["error"] if parsed is not None and list(parsed) == ["error"] and isinstance(parsed["error"], str) else content
