"""One turn of a model: from its messages to a request, from raw chunks to those that leave.

This is the part of `ToolsAndMessagesMixin` that its synchronous and asynchronous methods share: everything but the `await`s.
"""

import hashlib
import json
import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Self, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from ..chunks import copier, new_chunk, sum_chunks
from ..deadline import current_deadline, is_last
from ..event_bus import current_scope
from ..executor.names import tool_name
from ..history import to_send
from ..messages.blocks import whole_content
from ..messages.calls import call_ids, calls_of
from ..messages.incremental import fold_over
from ..messages.metadata import KEY, CarrierDict
from .accumulator import CallPiece, PartialCalls, TurnAccumulator, as_message, is_restart, keep_pieces, restart_chunk
from .stored_messages import BlockWriter, canonical_message

_logger = logging.getLogger("langchain_autotools")
_NAMESPACE = uuid.UUID("0f6b5f0a-3c53-5c0e-8c0f-7b8c2f1d9a44")
_of_text = copier(ChatGenerationChunk(message=AIMessageChunk(content=""), text=""), ("message", "text"))


class Turn:
    """One request and its reply.

    Args:
        model: The model, which says whether content leaves as v1 content blocks, whether the messages go on with a conversation that the
            server keeps, and what form a whole message leaves in.
        messages: The input as core hands it over; run messages are expanded, what a vendor would reject is repaired.
        keywords: The request's keyword arguments; `tools` names what is declared.
        runs: Whether a run goes on from this turn.
        new_id: Makes the id by which a call is known whose server gave it none of its own.

    Attributes:
        messages: The messages to send.
        runs: Whether a run goes on from this turn.
        feed: Processes a raw chunk, or a whole message in its place, and returns the chunk that may leave at once. Raises a
            `ConfigurationError` if it is neither, nor a text, nor what LangChain's `_stream` and `_generate` give.
    """

    def __init__(
        self,
        model: Any,
        messages: Sequence[BaseMessage],
        keywords: Mapping[str, Any],
        *,
        runs: bool,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        self.messages = to_send(messages, open_start=model.continues_conversation(keywords))
        self.runs = runs
        self._whole: Callable[[AIMessage], AIMessage] = model._whole_message
        names = {tool_name(tool) for tool in keywords.get("tools") or ()}
        self._accumulator = TurnAccumulator(
            declared=names,
            is_used=self._is_used,
            is_taken=lambda message_id: message_id in self._used_ids.of_messages,
            new_id=lambda _: f"call_{uuid.uuid4().hex}" if new_id is None else new_id(),
            sent_id=lambda position: f"call_{uuid.uuid5(_NAMESPACE, f'{self._digest}:{position}').hex[:24]}",
            runs=runs,
        )
        self._writer = BlockWriter() if model.output_version == "v1" else None
        self._partial_calls = None if current_scope.get() is None else PartialCalls(self._is_used)
        self.feed = self._way()

    def of_langchain(self) -> Self:
        """Return the turn configured for chunks of a LangChain `_stream`: usage comes in parts, and core creates the content blocks."""
        self._writer = None
        self._accumulator.adds_usage = True
        self.feed = self._way()
        return self

    def _way(self) -> Callable[[object], AIMessageChunk | None]:
        """Return the function that processes raw chunks: the accumulator's where nothing wraps it."""
        if self._partial_calls is not None:
            return partial(self._feed_shown, self._partial_calls)
        return self._accumulator.feed if self._writer is None else self._feed_written

    def _feed_written(self, chunk: object) -> AIMessageChunk | None:
        """Process a raw chunk, and return the chunk that may leave at once, in the form of the model's output version."""
        left = self._accumulator.feed(chunk)
        return left if left is None or self._writer is None else self._writer.chunk(left)

    def _feed_shown(self, partial_calls: PartialCalls, chunk: object) -> AIMessageChunk | None:
        """Process a raw chunk for listeners, who may see fragments of calls."""
        raw = chunk if type(chunk) is AIMessageChunk else as_message(chunk)
        fields, accumulator = raw.__dict__, self._accumulator
        extra = fields["additional_kwargs"]
        if extra.__class__ is dict and "tool_calls" not in extra and not fields.get("tool_call_chunks"):  # text or reasoning alone
            return accumulator.feed(raw) if self._writer is None else self._feed_written(raw)
        if extra.__class__ is CarrierDict and extra.note.__class__ is CallPiece and accumulator.named and not fields["content"]:
            fields["id"] = accumulator.message_id
            return raw if partial_calls.admits(extra.note) else None  # type: ignore[return-value]  # messages have no pieces
        if is_restart(raw):
            accumulator.restart()
            self._partial_calls = PartialCalls(self._is_used)
            self.feed = self._way()
            return restart_chunk(accumulator.message_id)
        left = accumulator.feed(raw)
        if left is not None and self._writer is not None:
            left = self._writer.chunk(left)
        shown = partial_calls.shown(raw, left, accumulator.message_id)
        accumulator.named = accumulator.named or shown is not None  # listeners know the message by this chunk's id
        return shown

    def finish(self) -> AIMessageChunk:
        """Return the turn's last chunk, with its calls and their verdict. A turn without any earlier chunk has broken off."""
        if not self._accumulator.begun:
            self.feed(new_chunk("", {}, None, {"finish_reason": "incomplete"}))
        last = self._accumulator.finish()
        if last.response_metadata.get("finish_reason") == "incomplete":
            _logger.warning("the reply %s broke off before its end: it is kept as far as it came, and none of its calls runs", last.id)
        return last if self._writer is None else self._writer.chunk(last)

    def known(self) -> AIMessageChunk:
        """Return what the reply has brought so far of usage and metadata."""
        return self._accumulator.known()

    def result(self, chunks: Iterable[object]) -> ChatResult:
        """Return the turn as one generation, from all its raw chunks."""
        left = [out for chunk in chunks if (out := self.feed(chunk)) is not None]
        result = result_of([*left, self.finish()], self._whole)
        if self._partial_calls is not None:
            keep_pieces(cast("AIMessage", result.generations[0].message), left)
        return result

    def _is_used(self, call_id: str) -> bool:
        return call_id in self._used_ids.of_calls

    @cached_property
    def _used_ids(self) -> "_UsedIds":
        """The ids of all messages of the history and their calls, collected on first access."""
        return fold_over(self.messages, _UsedIds, _UsedIds)

    @cached_property
    def _digest(self) -> str:
        """The digest of the history, computed on first access: ids to send are derived from it, so that a replay gives the same."""
        return str(fold_over(self.messages, _Digest, _Digest).state.hexdigest())


@dataclass(slots=True, eq=False, repr=False)
class _UsedIds:
    """A fold that collects the ids of messages, and those of their calls."""

    of_messages: set[str | None] = field(default_factory=set)
    of_calls: set[str | None] = field(default_factory=set)

    def copy(self) -> "_UsedIds":
        return _UsedIds({*self.of_messages}, {*self.of_calls})

    def read(self, messages: Sequence[BaseMessage]) -> None:
        for message in messages:
            self.of_messages.add(message.id)
            if isinstance(message, AIMessage):
                self.of_calls.update(call_ids(message))


@dataclass(slots=True, eq=False, repr=False)
class _Digest:
    """A fold that makes a digest of the messages' content: without message ids, usage and metadata."""

    state: Any = field(default_factory=hashlib.sha256)

    def copy(self) -> "_Digest":
        return _Digest(self.state.copy())

    def read(self, messages: Sequence[BaseMessage]) -> None:
        for message in messages:
            self.state.update(_content_of(message))


def _content_of(message: BaseMessage) -> bytes:
    """Return a message's content as JSON, the same for a whole message and for the sum of its chunks."""
    content = [message.type, whole_content(message.content) or ""]
    if isinstance(message, AIMessage):
        content += [[call.id, call.name, call.arguments] for call in calls_of(message)]
    if isinstance(message, ToolMessage):
        content.append(message.tool_call_id)
    return json.dumps(content, ensure_ascii=True, default=str, separators=(",", ":")).encode()


def in_time(chunks: Iterable[AIMessage]) -> Iterator[AIMessage]:
    """Yield the raw chunks of a reply that is returned whole, up to the first one after the deadline or a cancellation.

    A cancellation after the last chunk has no effect."""
    deadline = current_deadline()
    for chunk in chunks:
        yield chunk
        if deadline is None or (passed := deadline.passed()) is None:
            continue
        if passed.reason == "deadline" or not is_last(chunk):
            yield new_chunk("", {}, None, {"finish_reason": passed.reason})
            getattr(chunks, "close", lambda: None)()
            return


def generation(message: AIMessageChunk) -> ChatGenerationChunk:
    """Return a turn's chunk in core's form."""
    text = _text_alone(message.content)
    if text is not None and not message.response_metadata:
        return _of_text({"message": message, "text": text})
    return ChatGenerationChunk(message=message, generation_info=_generation_info(message.response_metadata, streamed=True))


def _text_alone(content: str | list[Any]) -> str | None:
    """Return content that is one text, as a string or as one block; None otherwise. (Faster than core's way.)"""
    if isinstance(content, str):
        return content
    block = content[0] if len(content) == 1 else None
    text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
    return text if isinstance(text, str) else None


def result_of(chunks: Iterable[AIMessageChunk], whole: Callable[[AIMessage], AIMessage] | None = None) -> ChatResult:
    """Return a turn as one generation, from the chunks that left it.

    Args:
        chunks: The chunks.
        whole: Gives the message the form of a whole one. None: it is the sum of the chunks.
    """
    message = canonical_message(sum_chunks(chunks))
    content, message = message.content, message if whole is None else whole(message)
    if content is not message.content:
        keep_pieces(message, content=content)
    made = ChatGeneration(message=message, generation_info=_generation_info(message.response_metadata))
    output = {name: value for name, value in message.response_metadata.items() if name not in _OF_MESSAGE}
    return ChatResult(generations=[made], llm_output=output)


# ---------------------------------------------------------------------------------------------- what callback handlers get
#
# All of it is in the message's `response_metadata` too: LangChain's core puts both back there, which must change nothing.


_OF_END = ("finish_reason", "logprobs")
_OF_STREAM = (*_OF_END, "model_name", "system_fingerprint", "service_tier")
_OF_MESSAGE = frozenset({*_OF_END, KEY, "headers", "output_version"})


def _generation_info(metadata: Mapping[str, Any], *, streamed: bool = False) -> dict[str, Any] | None:
    """Return the finish reason of a turn; for a streamed one, which has no `llm_output`, also the model."""
    return {name: metadata[name] for name in (_OF_STREAM if streamed else _OF_END) if name in metadata} or None


def combined_outputs(outputs: Iterable[Mapping[str, Any] | None]) -> dict[str, Any]:
    """Return the `llm_output` of several prompts: the sum of their tokens, and the first one's model."""
    known = [output for output in outputs if output]  # of streams there is none
    usages = [output["token_usage"] for output in known if isinstance(output.get("token_usage"), Mapping)]
    combined: dict[str, Any] = {"token_usage": _sum(usages)} if usages else {}
    for name in ("model_name", "system_fingerprint"):
        combined |= next(({name: output[name]} for output in known if output.get(name)), {})
    return combined


def _sum(usages: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sum of nested counts; for other values the first."""
    total: dict[str, Any] = {}
    for usage in usages:
        for name, value in usage.items():
            if isinstance(value, Mapping):
                total[name] = _sum([total.get(name) or {}, value])
            elif isinstance(value, int | float) and not isinstance(value, bool):
                total[name] = (total.get(name) or 0) + value
            else:
                total.setdefault(name, value)
    return total
