"""The form in which a turn's message is stored: calls by the turn's verdict, content in the model's configured form.

That form is plain text, or numbered v1 content blocks. Core decides it by the handlers that happen to be attached (its event bridge
always makes v1 blocks). What is stored and sent must not depend on that, so it is set here, from the model's `output_version` alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.tool import invalid_tool_call, tool_call

from ..messages.blocks import STANDARD_CALLS, unnumbered, without_provisional
from ..messages.metadata import COMPACTED, KEY, REJECTED, with_own_metadata, without_cost
from ..messages.run_messages import adds_to_message
from ..strict_json import read_json
from ..tool_calls.arguments import as_text

_Message = TypeVar("_Message", bound=AIMessage)
_MEDIA = frozenset({"audio", "video"})


_REASONING = "reasoning_content"
_REFUSAL = "refusal"


_ALONE = frozenset({"calls", "blocked", "origin", REJECTED, COMPACTED})


def canonical_message(message: AIMessage, *, stored: bool = False, brief: bool = False) -> AIMessage:
    """Return a finished turn as one plain message, its calls rebuilt from the verdict.

    Args:
        message: The sum of a turn's chunks, or a message that core made of them. Without a verdict its calls stay as they are.
        stored: Whether to keep of the verdict only what a stored message keeps: ids and argument texts.
        brief: Whether to keep of that only what the message does not say itself.
    """
    message = without_provisional(message)
    values = {name: getattr(message, name) for name in AIMessage.model_fields if name != "type"}
    values["usage_metadata"] = message.usage_metadata if without_cost(message.usage_metadata) else None  # a cost alone counts nothing
    verdict = message.response_metadata.get(KEY)
    if isinstance(verdict, Mapping) and "blocked" in verdict:
        records = verdict["calls"]
        values["tool_calls"] = [
            tool_call(name=record["name"], args=read_json(record["arguments"]), id=record["id"]) for record in records if record["ok"]
        ]
        values["invalid_tool_calls"] = [
            invalid_tool_call(name=record["name"], args=record["arguments"], id=record["id"], error=record["why"])
            for record in records
            if not record["ok"]
        ]
    made = AIMessage(**values)
    return stored_form(made, brief=brief) if stored else made


def stored_form(message: AIMessage, *, brief: bool = False) -> AIMessage:
    """Return a canonical message with what of the verdict a stored message keeps; `brief` as of `canonical_message`."""
    verdict = message.response_metadata.get(KEY)
    if not isinstance(verdict, Mapping) or "blocked" not in verdict:
        return message
    return message.model_copy(update={"response_metadata": _stored(message.response_metadata, verdict, brief=brief)})


def caller_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of a turn's last chunk for a caller who executes the calls: a brief message's, and why calls must not run."""
    verdict = metadata.get(KEY)
    if not isinstance(verdict, Mapping) or "blocked" not in verdict:
        return metadata
    return _stored(metadata, verdict, brief=True, reasons=True)


def _stored(metadata: Mapping[str, Any], verdict: Mapping[str, Any], *, brief: bool, reasons: bool = False) -> dict[str, Any]:
    records = verdict["calls"]
    brief = brief and not verdict.keys() - _ALONE  # what a wire remembers of a reply holds for the calls as they were written
    names = ("id", "sent_id", "arguments", "wire_id", "extra", *(["why"] if reasons else []))
    kept = [{name: record[name] for name in names if name in record} for record in records]
    for entry, record in zip(kept, records, strict=True) if brief else ():
        if not record["ok"] or as_text(read_json(record["arguments"])) == record["arguments"]:
            del entry["arguments"]
    if brief and not adds_to_message(kept, mixed=len({record["ok"] for record in records}) > 1):
        kept = []
    own = {key: value for key, value in verdict.items() if key not in ("calls", "blocked")} | ({"calls": kept} if kept else {})
    return with_own_metadata(metadata, own)


# ---------------------------------------------------------------------------------------------- the content by the output version


def with_output_version(message: AIMessage, version: str | None) -> AIMessage:
    """Return the message with content for `version`: v1 blocks for "v1", else text if the blocks contain only text.

    Blocks that say more, for a vendor's signature is in them, stay v1 blocks: nothing is lost, and mappers read both.
    """
    own = message.response_metadata.get("output_version")
    if version == "v1":
        message = _with_text_blocks(message)
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


def _with_text_blocks(message: _Message) -> _Message:
    """Return the message with each bare text of its content as a block: core's readers of vendors' contents pass over such a text."""
    if not any(isinstance(part, str) for part in message.content if isinstance(message.content, list)):
        return message
    return message.model_copy(update={"content": [_as_block(part) if isinstance(part, str) else part for part in message.content]})


def _meaning(message: AIMessage) -> list[Any]:
    """Return the kinds of a message's standard blocks, and the data that only blocks can hold (signatures, citations).

    Reasoning without a signature needs no block: it is under `reasoning_content`.
    """
    blocks: list[Any] = message.content_blocks
    meanings = [(block["type"], block.get("extras"), block.get("annotations")) for block in blocks if block["type"] != "invalid_tool_call"]
    return [one for one in meanings if one != ("reasoning", None, None)]


def _unblocked(message: AIMessage) -> AIMessage:
    blocks = [block if isinstance(block, dict) else {"type": "text", "text": block} for block in message.content]
    blocks = [block for block in blocks if block.get("type") not in STANDARD_CALLS]
    reasoning = "".join(str(block.get("reasoning", "")) for block in blocks if block.get("type") == "reasoning")
    refusal = "".join(str(block.get(_REFUSAL, "")) for block in blocks if block.get("type") == _REFUSAL)
    others = [block for block in blocks if block.get("type") not in ("text", "reasoning", _REFUSAL)]
    text = "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
    content = unnumbered(blocks) if others else text
    beside = {name: value for name, value in ((_REASONING, reasoning), (_REFUSAL, refusal)) if value and not others}
    extra = {**beside, **message.additional_kwargs}
    metadata = {key: value for key, value in message.response_metadata.items() if key != "output_version"}
    return message.model_copy(update={"content": content, "additional_kwargs": extra, "response_metadata": metadata})


@dataclass(eq=False, repr=False)
class BlockWriter:
    """Converts the chunks of one turn to v1 blocks with one counter, so that no two blocks merge by accident."""

    _index: int = -1
    _open: object = None
    _numbers: dict[object, int] = field(default_factory=dict)

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
        refusal = extra.get(_REFUSAL)
        if isinstance(chunk.content, str):
            blocks += [{"type": "text", "text": chunk.content}] if chunk.content else []
        else:
            # core reads also what is beside the content
            alone = chunk.model_copy(update={"additional_kwargs": {}}) if blocks or refusal else chunk
            blocks += [block for block in map(_as_block, _standard(alone)) if block["type"] not in STANDARD_CALLS]
        if refusal and isinstance(refusal, str):
            blocks.append({"type": _REFUSAL, _REFUSAL: refusal})  # and stays beside the content, where every output version has it
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
    chunk, metadata = _with_text_blocks(chunk), chunk.response_metadata
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
    if len(made) == len(message.content) + 1 and made[0]["type"] == "reasoning":
        made = made[1:]  # core puts what is beside the content before it
    for source, block in zip(message.content, made, strict=False) if len(made) == len(message.content) else ():
        if isinstance(source, dict) and source.get("extras") and block["type"] != "non_standard":
            block["extras"] = {**source["extras"], **(block.get("extras") or {})}
    return blocks


def _as_block(part: Any) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return part if "type" in part else {"type": "non_standard", "value": part}
