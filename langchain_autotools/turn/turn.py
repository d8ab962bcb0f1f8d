"""One turn of a model: from its messages to a request, from raw chunks to those that leave or are stored.

This is the part of `ToolsAndMessagesMixin` that its synchronous and asynchronous methods share: everything but the `await`s.
"""

import hashlib
import json
import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Self, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, InvalidToolCall, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCall, invalid_tool_call, tool_call
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from ..chunks import copier, new_chunk, sum_chunks
from ..deadline import current_deadline, is_last
from ..event_bus import current_scope
from ..executor.names import tool_name
from ..history import to_send
from ..messages.blocks import STANDARD_CALLS, unnumbered, whole_content, without_provisional
from ..messages.calls import call_ids, calls_of
from ..messages.incremental import fold_over
from ..messages.metadata import KEY, REJECTED, CarrierDict, with_own_metadata
from ..messages.run_messages import adds_to_message
from ..strict_json import read_json
from ..tool_calls.slot import as_text
from .accumulator import CallPiece, PartialCalls, TurnAccumulator, as_message, is_restart, keep_events, restart_chunk

_logger = logging.getLogger("langchain_autotools")
_NAMESPACE = uuid.UUID("0f6b5f0a-3c53-5c0e-8c0f-7b8c2f1d9a44")
_of_text = copier(ChatGenerationChunk(message=AIMessageChunk(content=""), text=""), ("message", "text"))


class Turn:
    """One request and its reply.

    Args:
        messages: The input as core hands it over; run messages are expanded, what a vendor would reject is repaired.
        keywords: The request's keyword arguments; `tools` names what is declared.
        blocks: Whether content leaves as v1 content blocks.
        new_id: Makes the id by which a call is known whose server gave it none of its own.
        whole: Gives the whole message the form in which it leaves.
        open_start: Whether the messages go on with a conversation that the server keeps.
        runs: Whether a run goes on from this turn.

    Attributes:
        messages: The messages to send.
        runs: Whether a run goes on from this turn.
        feed: Processes a raw chunk, or a whole message in its place, and returns the chunk that may leave at once. Raises a
            `ConfigurationError` if it is neither, nor a text, nor what LangChain's `_stream` and `_generate` give.
    """

    def __init__(
        self,
        messages: Sequence[BaseMessage],
        keywords: Mapping[str, Any],
        *,
        blocks: bool,
        new_id: Callable[[], str],
        whole: Callable[[AIMessage], AIMessage],
        open_start: bool,
        runs: bool,
    ) -> None:
        self.messages = to_send(messages, open_start=open_start)
        self.runs = runs
        self._whole = whole
        names = {tool_name(tool) for tool in keywords.get("tools") or ()}
        self._accumulator = TurnAccumulator(
            declared=names,
            is_used=self._is_used,
            is_taken=self._is_taken,
            new_id=lambda _: new_id(),
            sent_id=self._sent_id,
            runs=runs,
        )
        self._writer = BlockWriter() if blocks else None
        self._partial_calls = None if current_scope.get() is None else PartialCalls(self._is_used)
        self.feed = self._way()

    def of_langchain(self) -> Self:
        """Return the turn configured for chunks of a LangChain `_stream`: usage comes in parts, and core creates the content blocks."""
        self._writer = None
        self._accumulator.adds_usage = True
        self.feed = self._way()
        return self

    def _way(self) -> Callable[[object], AIMessageChunk | None]:
        """Return the function that processes raw chunks: the accumulator's where nothing stands around it."""
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
            keep_events(cast("AIMessage", result.generations[0].message), left)
        return result

    def _is_used(self, call_id: str) -> bool:
        return call_id in self._used_ids.of_calls

    def _is_taken(self, message_id: str) -> bool:
        return message_id in self._used_ids.of_messages

    @cached_property
    def _used_ids(self) -> "_UsedIds":
        """The ids of all messages of the history and their calls, collected on first access."""
        return fold_over(self.messages, _UsedIds, _UsedIds)

    @cached_property
    def _digest(self) -> str:
        """The digest of the history, computed on first access."""
        return fold_over(self.messages, _Digest, _Digest).state.hexdigest()

    def _sent_id(self, position: int) -> str:
        """Return the id to send for the turn's call at `position`, derived from the history so that a replay gives the same."""
        return f"call_{uuid.uuid5(_NAMESPACE, f'{self._digest}:{position}').hex[:24]}"


class _UsedIds:
    """A fold that collects the ids of messages, and those of their calls."""

    __slots__ = ("of_calls", "of_messages")

    def __init__(self, of_messages: Iterable[str | None] = (), of_calls: Iterable[str | None] = ()) -> None:
        self.of_messages = {*of_messages}
        self.of_calls = {*of_calls}

    def copy(self) -> "_UsedIds":
        return _UsedIds(self.of_messages, self.of_calls)

    def read(self, messages: Sequence[BaseMessage]) -> None:
        for message in messages:
            self.of_messages.add(message.id)
            if isinstance(message, AIMessage):
                self.of_calls.update(call_ids(message))


class _Digest:
    """A fold that makes a digest of the messages' content: without message ids, usage and metadata."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = hashlib.sha256()

    def copy(self) -> "_Digest":
        made = _Digest()
        made.state = self.state.copy()
        return made

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
    message = message if whole is None else whole(message)
    made = ChatGeneration(message=message, generation_info=_generation_info(message.response_metadata))
    return ChatResult(generations=[made], llm_output=_llm_output(message.response_metadata))


# -------------------------------------------------------------------------------- `generation_info` and `llm_output`, for callback handlers
#
# All of it stands in the message's `response_metadata` too: LangChain's core puts both back there, which must change nothing.


_OF_END = ("finish_reason", "logprobs")
_OF_STREAM = (*_OF_END, "model_name", "system_fingerprint", "service_tier")
_OF_MESSAGE = frozenset({*_OF_END, KEY, "headers", "output_version"})


def _generation_info(metadata: Mapping[str, Any], *, streamed: bool = False) -> dict[str, Any] | None:
    """Return the finish reason of a turn; for a streamed one, which has no `llm_output`, also the model."""
    return {name: metadata[name] for name in (_OF_STREAM if streamed else _OF_END) if name in metadata} or None


def _llm_output(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata of the reply: the model's name, token counts in the vendor's form, ids."""
    return {name: value for name, value in metadata.items() if name not in _OF_MESSAGE}


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


# ---------------------------------------------------------------------------------------------- stored messages
#
# The form in which a turn's message is stored: calls by the turn's verdict, content in the model's configured form.
#
# That form is plain text, or numbered v1 content blocks. Core decides it by the handlers that happen to be attached (its event bridge
# always makes v1 blocks). What is stored and sent must not depend on that, so it is set here, from the model's `output_version` alone.

_MEDIA = frozenset({"audio", "video"})
_REASONING = "reasoning_content"
_ALONE = frozenset({"calls", "blocked", "origin", REJECTED})


def stored_message(message: AIMessage, output_version: str | None, *, brief: bool = False) -> AIMessage:
    """Return a turn's message in its stored form: calls by the verdict, content in the model's configured form."""
    return with_output_version(canonical_message(message, stored=True, brief=brief), output_version)


def canonical_message(message: AIMessage, *, stored: bool = False, brief: bool = False) -> AIMessage:
    """Return a finished turn as one plain message, its calls rebuilt from the verdict.

    Args:
        message: The sum of a turn's chunks, or a message that core made of them. Without a verdict its calls stay as they are.
        stored: Whether to keep of the verdict only what a stored message keeps: ids and argument texts.
        brief: Whether to keep of that only what the message does not say itself.
    """
    message = without_provisional(message)
    values = {name: getattr(message, name) for name in AIMessage.model_fields if name != "type"}
    values["usage_metadata"] = _without_cost(message.usage_metadata)
    verdict = message.response_metadata.get(KEY)
    if isinstance(verdict, Mapping) and "blocked" in verdict:
        records = verdict["calls"]
        values["tool_calls"] = [_valid(record) for record in records if record["ok"]]
        values["invalid_tool_calls"] = [_invalid(record) for record in records if not record["ok"]]
        if stored:
            values["response_metadata"] = _stored(message.response_metadata, verdict, brief=brief)
    return AIMessage(**values)


def caller_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of a turn's last chunk for a caller who executes the calls: a brief message's, and why calls must not run."""
    verdict = metadata.get(KEY)
    if not isinstance(verdict, Mapping) or "blocked" not in verdict:
        return metadata
    return _stored(metadata, verdict, brief=True, reasons=True)


def _without_cost(usage: UsageMetadata | None) -> Mapping[str, Any] | None:
    """Return the usage without the cost that core adds on a cache hit: sent on, it would change the cache key."""
    if not usage or "total_cost" not in usage:
        return usage
    return {key: value for key, value in usage.items() if key != "total_cost"} or None


def _valid(record: Mapping[str, Any]) -> ToolCall:
    return tool_call(name=record["name"], args=read_json(record["arguments"]), id=record["id"])


def _invalid(record: Mapping[str, Any]) -> InvalidToolCall:
    return invalid_tool_call(name=record["name"], args=record["arguments"], id=record["id"], error=record["why"])


def _stored(metadata: Mapping[str, Any], verdict: Mapping[str, Any], *, brief: bool, reasons: bool = False) -> dict[str, Any]:
    records = verdict["calls"]
    brief = brief and not verdict.keys() - _ALONE  # what a wire remembers of a reply holds for the calls as they were written
    kept = [_stored_entry(record, brief=brief, reasons=reasons) for record in records]
    if brief and not adds_to_message(kept, mixed=len({record["ok"] for record in records}) > 1):
        kept = []
    own = {key: value for key, value in verdict.items() if key not in ("calls", "blocked")} | ({"calls": kept} if kept else {})
    return with_own_metadata(metadata, own)


def _stored_entry(record: Mapping[str, Any], *, brief: bool, reasons: bool) -> dict[str, Any]:
    names = ["id", "sent_id", "arguments", "wire_id", "extra", *(["why"] if reasons else [])]
    if brief and (not record["ok"] or as_text(read_json(record["arguments"])) == record["arguments"]):
        names.remove("arguments")
    return {key: record[key] for key in names if key in record}


# ---------------------------------------------------------------------------------------------- the content by the output version


def with_output_version(message: AIMessage, version: str | None) -> AIMessage:
    """Return the message with content for `version`: v1 blocks for "v1", else text if the blocks contain only text.

    Blocks that say more, for a vendor's signature stands in them, stay v1 blocks: nothing is lost, and mappers read both.
    """
    own = message.response_metadata.get("output_version")
    if version == "v1":
        blocks = _with_extras(message, list(map(_without_wrapper, message.content_blocks)))
        blocks = [block for block in blocks if block["type"] not in STANDARD_CALLS]
        plain = unnumbered(blocks)
        calls = [{**call, "type": "tool_call"} for call in message.tool_calls]
        invalid = [{**call, "type": "invalid_tool_call"} for call in message.invalid_tool_calls]
        metadata = {**message.response_metadata, "output_version": "v1"}
        return message.model_copy(update={"content": [*plain, *calls, *invalid], "response_metadata": metadata})
    if own != "v1" or not isinstance(message.content, list):
        return message
    text = _unblocked(message)
    return text if _meaning(text) == _meaning(message) else message


def _meaning(message: AIMessage) -> list[Any]:
    """Return the kinds of a message's standard blocks, and the data that only blocks can hold (signatures, citations).

    Reasoning without a signature needs no block: it stands under `reasoning_content`.
    """
    blocks: list[Any] = message.content_blocks
    meanings = [(block["type"], block.get("extras"), block.get("annotations")) for block in blocks if block["type"] != "invalid_tool_call"]
    return [one for one in meanings if one != ("reasoning", None, None)]


def _unblocked(message: AIMessage) -> AIMessage:
    blocks = [block if isinstance(block, dict) else {"type": "text", "text": block} for block in message.content]
    blocks = [block for block in blocks if block.get("type") not in STANDARD_CALLS]
    reasoning = "".join(str(block.get("reasoning", "")) for block in blocks if block.get("type") == "reasoning")
    others = [block for block in blocks if block.get("type") not in ("text", "reasoning")]
    text = "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
    content = unnumbered(blocks) if others else text
    extra = {_REASONING: reasoning, **message.additional_kwargs} if reasoning and not others else message.additional_kwargs
    metadata = {key: value for key, value in message.response_metadata.items() if key != "output_version"}
    return message.model_copy(update={"content": content, "additional_kwargs": extra, "response_metadata": metadata})


class BlockWriter:
    """Converts the chunks of one turn to v1 blocks with one counter, so that no two blocks merge by accident."""

    def __init__(self) -> None:
        self._index = -1
        self._open: object = None
        self._numbers: dict[object, int] = {}

    def chunk(self, chunk: AIMessageChunk) -> AIMessageChunk:
        """Return the chunk with its reasoning, text and calls as blocks."""
        extra = dict(chunk.additional_kwargs)
        blocks = [self._with_number(block) for block in self._unnumbered(chunk, extra)]
        metadata = {**chunk.response_metadata, "output_version": "v1"}
        return chunk.model_copy(update={"content": blocks, "additional_kwargs": extra, "response_metadata": metadata})

    def _unnumbered(self, chunk: AIMessageChunk, extra: dict[str, Any]) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        if isinstance(extra.get(_REASONING), str):
            blocks.append({"type": "reasoning", "reasoning": extra.pop(_REASONING)})
        if isinstance(chunk.content, str):
            blocks += [{"type": "text", "text": chunk.content}] if chunk.content else []
        else:
            blocks += [block for block in map(_as_block, _standard(chunk)) if block["type"] not in STANDARD_CALLS]
        return blocks + _calls_of_chunk(chunk)

    def _with_number(self, block: dict[str, Any]) -> dict[str, Any]:
        """Return the block with its number: fragments of text, or of one wire block, share one; a call has its own."""
        kind, index = block["type"], block.get("index")
        key = None if kind in STANDARD_CALLS else (kind, index)
        if index is not None and key in self._numbers:  # more of an earlier block
            return {**block, "index": self._numbers[key]}
        if key is None or key != self._open:
            self._index += 1
        self._open = key
        if index is not None:
            self._numbers[key] = self._index
        return {**block, "index": self._index}


def _calls_of_chunk(chunk: AIMessageChunk) -> list[dict[str, Any]]:
    """Return the calls of a chunk, for the last chunk the whole executable calls.

    Core completes calls only when it adds up chunks, and a turn with calls alone may be one chunk."""
    whole = {call["id"]: call for call in chunk.tool_calls} if chunk.chunk_position == "last" else {}
    return [
        {**whole[call["id"]], "type": "tool_call"} if call["id"] in whole else {**call, "type": "tool_call_chunk"}
        for call in chunk.tool_call_chunks
    ]


def _standard(chunk: AIMessageChunk) -> list[Any]:
    """Return the chunk's blocks; a vendor's own as the standard blocks that core makes of them."""
    metadata = chunk.response_metadata
    of_vendor = "model_provider" in metadata and metadata.get("output_version") != "v1"
    return _with_extras(chunk, list(map(_without_wrapper, chunk.content_blocks))) if of_vendor else list(chunk.content)


def _without_wrapper(block: Any) -> Any:
    """Return a standard media block without the wrapper that core adds where it expects a vendor's own."""
    value = block.get("value") if block["type"] == "non_standard" else None
    if not isinstance(value, dict) or value.get("type") not in _MEDIA or not value.get("base64"):
        return block
    return {**value, **({"index": block["index"]} if "index" in block else {})}


def _with_extras(message: AIMessage, blocks: list[Any]) -> list[Any]:
    """Return standard blocks with the `extras` of their sources, of which core drops some, signatures included."""
    if not isinstance(message.content, list):
        return blocks
    made = [block for block in blocks if block["type"] not in STANDARD_CALLS]
    for source, block in zip(message.content, made, strict=False) if len(made) == len(message.content) else ():
        if isinstance(source, dict) and source.get("extras") and block["type"] != "non_standard":
            block["extras"] = {**source["extras"], **(block.get("extras") or {})}
    return blocks


def _as_block(part: Any) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return part if "type" in part else {"type": "non_standard", "value": part}
