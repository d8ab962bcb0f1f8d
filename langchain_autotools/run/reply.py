"""The single reply of a model without tools: the side of the driver that has no loop, no run message and no trace of its own.

Core gets the input as the caller gave it, and the chunks leave as they are. There is no stop reason: as of any reply that broke off, the
message's finish reason says how it ended.
"""

import logging
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import RunnableConfig

from ..chunks import ChunkSum
from ..compat import should_stream
from ..errors import ConfigurationError, LimitReachedError
from ..executor import pending_calls
from ..messages.calls import awaited_calls, calls_of
from ..messages.endings import stop_reason
from ..messages.live import attach_messages, known_reply
from ..turn.accumulator import caller_metadata
from ..turn.tool_choice import ToolChoice
from ..turn.tools import format_request_tools
from .composing import RunParts, compose
from .keywords import drop_settings
from .loop import Action, CallModel
from .phases import Chunks, Phase
from .tracing import Trace
from .turn_wrappers import NOTHING_DECLARED, Emitted, Stored, TurnPart, TurnRequest, WireForm

_logger = logging.getLogger("langchain_autotools")


class Reply:
    """The state of one reply of a model without tools. Never shared.

    Args:
        model: The model.
        input: The input, as the caller gave it.
        keywords: The keywords of the call. All run settings are removed from them.
        streamed: Whether the caller streams the reply.
        async_api: Whether the caller is asynchronous.

    Raises:
        ConfigurationError: A keyword cannot work.
    """

    def __init__(self, model: Any, input: LanguageModelInput, keywords: dict[str, Any], *, streamed: bool, async_api: bool) -> None:
        if keywords.pop("resume", None) is not None:
            raise ConfigurationError("resume takes a model with tools=[...] or handlers={...}; elsewhere a message answers a call")
        cancel, limits = keywords.pop("cancel", None), drop_settings(model, keywords) or model
        self._seconds, self._raises = limits.deadline, limits.on_limit == "raise"
        self._parts: RunParts = compose(cancel, self._seconds, wrappers=model._turn_wrappers())
        self._observer = self._parts.observer
        self._stored_form = model._reply_message
        self._streamed = streamed
        self._actions: list[Action] = [CallModel((), "requested")]
        self._request = _request_of(model, input, keywords, self._parts, streamed=streamed, async_api=async_api)
        self._chunks = ChunkSum()
        self._last: AIMessageChunk | None = None
        self._whole: AIMessage | None = None
        self._message: AIMessage | None = None

    def trace(self, model: BaseChatModel, config: RunnableConfig | None) -> Trace:
        """Return the trace: the caller's own, with the reply's LLM run in it."""
        return Trace(model, config)

    async def atrace(self, model: BaseChatModel, config: RunnableConfig | None) -> Trace:
        """Like `trace`."""
        return Trace(model, config)

    def begin(self, trace: Trace) -> Chunks:
        """Begin the reply."""
        if self._observer.listens:
            self._observer.begin(*trace.identity())
        return ()

    def next(self) -> Action | None:
        """Return the request, once."""
        self._observer.check()
        return self._actions.pop() if self._actions else None

    def phase(self, action: Action, config: RunnableConfig | None) -> Phase:
        """Return the processing of the turn."""
        return Phase(self._parts.turns.make(replace(self._request, config=config)), self.part, self.turn_done)

    def aphase(self, action: Action, config: RunnableConfig | None) -> Phase:
        """Return the processing of the turn by an asynchronous driver."""
        return Phase(self._parts.turns.amake(replace(self._request, config=config)), self.part, self.turn_done)

    def part(self, part: TurnPart) -> Chunks:
        """Process a part of the turn (a chunk, the whole message or a mark); return the chunk, unless it is the last."""
        if isinstance(part, AIMessageChunk):
            self._chunks.add(part)
            if part.__dict__["chunk_position"] != "last":
                return (part,)
            self._last = part
        elif isinstance(part, AIMessage):
            self._whole = part
        elif isinstance(part, Stored):
            self._message = part.message
        elif isinstance(part, Emitted) and self._observer.due:
            return (part.chunk,)
        return ()

    def turn_done(self) -> Chunks:
        """End the turn; return its last chunk, which knows the whole message, or the message that came in place of chunks."""
        if self._last is None and self._whole is None and self._parts.end.cut is not None:
            self.part(self._cut())
        whole = self._message or self._whole or self._chunks.message()
        self._message = message = self._stored_form(whole)
        if self._observer.listens:
            self._observed(message)
        last = self._last
        if last is None:
            if self._streamed and self._whole is not None:
                attach_messages(message, [message])
            return () if self._whole is None else (cast("AIMessageChunk", message),)  # as core hands on what `invoke` returns
        last.__dict__["response_metadata"] = caller_metadata(last.response_metadata)
        attach_messages(last, [message])
        return (last,)

    def _cut(self) -> AIMessageChunk:
        """Return the last chunk of a reply that the deadline or the caller has cut."""
        reason = self._parts.end.reason
        if reason == "deadline":
            _logger.warning("a reply has ended at its limit deadline=%s", self._seconds)
        last = known_reply(self._parts.end.reply) or AIMessageChunk(content="")
        last.id = self._chunks.message().id or str(uuid.uuid4())
        last.response_metadata["finish_reason"] = reason
        last.chunk_position = "last"
        return last

    def _observed(self, message: AIMessage) -> None:
        """Notify the observer of the whole message, and of the end, as of a run of one turn."""
        observer = self._observer
        observer.turn_done(message)
        if pending_calls(message):
            observer.pending(message, [*(call for call in calls_of(message) if call.args is not None), *awaited_calls(message)])
        observer.ended(stop_reason(message) or "complete", 1, message.usage_metadata, lambda: message)

    def end(self) -> Chunks:
        """Return no chunks.

        Raises:
            LimitReachedError: The deadline has cut the reply, and that is an error.
        """
        if self._raises and self._message is not None and stop_reason(self._message) == "deadline":
            raise LimitReachedError("the reply reached its limit: deadline", "deadline")
        return ()

    def message(self, chunks: Sequence[AIMessageChunk]) -> AIMessage:
        """Return the whole message."""
        return cast("AIMessage", self._message)

    def failed(self, error: BaseException, *, streamed: bool) -> None:
        """Attach a message that the caller does not have to the exception."""
        if not streamed and self._message is not None:
            attach_messages(error, [self._message])
        self._observer.stopped(error)

    def left(self) -> None:
        """Record that the reply was left before its end."""
        self._observer.leave()


def _request_of(
    model: Any, input: LanguageModelInput, keywords: dict[str, Any], parts: RunParts, *, streamed: bool, async_api: bool
) -> TurnRequest:
    streams = (streamed or parts.observer.listens) and should_stream(model, keywords, async_api=async_api)
    declared = keywords.pop("tools") if keywords.get("tools") else ()
    choice = keywords.pop("tool_choice") if keywords.get("tool_choice") is not None else None
    form = NOTHING_DECLARED
    if declared or choice is not None:
        form = WireForm(model, format_request_tools(model, declared), ToolChoice(asked=choice))
    return TurnRequest(
        model=model,
        messages=input,
        choice="requested",
        keywords=keywords,
        end=parts.end,
        tools=declared,
        tool_choice=choice,
        form=form,
        streams=streams,
        output_version=model.output_version,
    )
