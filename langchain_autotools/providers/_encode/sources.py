"""The source of a content block's data, for blocks of any vendor: a URL, base64 data, an uploaded file's id, or text.

Understood are LangChain's v1 and v0 blocks and the blocks of OpenAI, Anthropic and Google.
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ...errors import UnsupportedFeatureError

Block = Mapping[str, Any]
"""A content block of any vendor."""

_Part = TypeVar("_Part")
FROM_TOOL = "Output of tool call {}:"
"""Heading of a tool's output within a user message."""

_TEXTS = ("text", "input_text", "output_text", "refusal", "custom_tool_call_output")
_SOUNDS = {"mp3": "audio/mpeg", "wav": "audio/wav"}
_MAGIC = {"iVBOR": "image/png", "/9j/": "image/jpeg", "R0lG": "image/gif", "UklG": "image/webp"}


def unsupported(kind: Any, why: str) -> UnsupportedFeatureError:
    """Return the error for a content block that a wire cannot carry."""
    return UnsupportedFeatureError(f"content block of type {kind!r} cannot be sent: {why}")


def unwrapped(block: Block) -> Block:
    """Return the block, or the vendor's own block inside a non-standard LangChain block."""
    while block.get("type") == "non_standard" and isinstance(block.get("value"), Mapping):
        block = block["value"]
    return block


def convert_block(block: Block, text_part: Callable[[str], _Part], converters: Mapping[str, Callable[[Block], _Part]], why: str) -> _Part:
    """Convert a block by its type.

    Args:
        block: The block.
        text_part: Converts the text of a block that is nothing but text.
        converters: By type, what converts the other blocks.
        why: The error's text.

    Raises:
        UnsupportedFeatureError: No converter is for this type.
    """
    text = block_text(block)
    if text is not None:
        return text_part(text)
    kind = block.get("type")
    convert = converters.get(kind) if isinstance(kind, str) else None
    if convert is None:
        raise unsupported(kind, why)
    return convert(block)


def convert_content(content: str | list[str | dict[Any, Any]], part_of: Callable[[str | Block], _Part | None]) -> list[_Part]:
    """Convert the content of a message, omitting blocks that have no form on the wire."""
    blocks = [content] if isinstance(content, str) else content
    return [part for part in map(part_of, blocks) if part is not None]


def block_text(block: Block) -> str | None:
    """Return the text of a block that holds only text or JSON, of any vendor; None for other blocks.

    So is what the caller answered to a tool of another vendor's, where a result says it (`history.repair`).
    """
    kind = block.get("type")
    if kind is None and isinstance(block.get("text"), str):
        kind = "text"
    if "is_error" in block and "call_id" in block:
        return FROM_TOOL.format(block["call_id"]) + "\n" + (joined_or_json(block.get("output")))
    if kind == "json":
        return json.dumps(block.get("json"), ensure_ascii=False, default=str)
    return str(block.get("text") or block.get("refusal") or block.get("output") or "") if kind in _TEXTS else None


def joined_or_json(content: Any) -> str:
    """Return content as text: the joined texts, or JSON if it holds anything else."""
    is_text = isinstance(content, str) or (isinstance(content, list) and all(isinstance(part, dict) and "text" in part for part in content))
    return (joined(content) if is_text else None) or json.dumps(content, ensure_ascii=False, default=str)


def image_type(data: str) -> str | None:
    """Return the media type of an image from the first characters of its base64 data."""
    return next((mime for head, mime in _MAGIC.items() if data.startswith(head)), None)


def decoded_text(data: str) -> str:
    """Return the text inside base64 data."""
    return base64.b64decode(data).decode("utf-8", "replace")


def flat_file(block: Block) -> Block:
    """Return a file part of chat completions or Responses in LangChain's form; other blocks unchanged."""
    nested = block.get("file")
    inner = nested if isinstance(nested, Mapping) else block
    if inner.get("file_data") or block.get("type") == "input_file":
        url = inner.get("file_data") or inner.get("file_url")
        return {"type": "file", "url": url, "file_id": inner.get("file_id"), "title": inner.get("filename")}
    return {**inner, "type": "file"} if inner is not block else block


def search_result_text(block: Block) -> str:
    """Return a search result as text, for wires that have no such block."""
    head = " ".join(str(block[key]) for key in ("title", "source") if block.get(key))
    return "\n".join(line for line in (head, joined(block.get("content"))) if line)


@dataclass(frozen=True)
class Source:
    """The source of a block's data: exactly one of url, data (base64), file_id and text in a well-formed block."""

    url: str | None = None
    data: str | None = None
    file_id: str | None = None
    text: str | None = None
    mime_type: str | None = None


def source_of(block: Block) -> Source:
    """Return the source of a block's data. Data in a `data:` URL, or in the place of a URL, is extracted."""
    nested = block.get("source")
    if isinstance(nested, Mapping):  # Anthropic
        kind = nested.get("type")
        data = nested.get("data")
        return Source(
            url=nested.get("url"),
            data=_base64(data) if kind == "base64" else None,
            file_id=nested.get("file_id"),
            text=data if kind == "text" else joined(nested.get("content")) if kind == "content" else None,
            mime_type=nested.get("media_type"),
        )
    block = _flat(block)
    v0 = block.get("source_type")
    url = block.get("url") or block.get("file_uri")
    data = block.get("base64") if block.get("base64") is not None else block.get("data")
    source = Source(
        url=url if v0 in (None, "url", "text") else None,
        data=_base64(data) if v0 in (None, "base64") and data is not None else None,
        file_id=block.get("id") if v0 == "id" else block.get("file_id"),
        text=block.get("text"),
        mime_type=block.get("mime_type"),
    )
    return _from_data_url(source) if source.url else source


def _flat(block: Block) -> Block:
    """Return an OpenAI image, audio or file block in the layout of LangChain's own blocks; other blocks unchanged."""
    match block.get("type"):
        case "image_url" | "input_image":
            image = block.get("image_url")
            return {**block, "url": image.get("url") if isinstance(image, Mapping) else image}
        case "image_generation_call":
            return {"base64": block.get("result"), "mime_type": block.get("mime_type") or "image/png"}
        case "input_audio":
            sound = block.get("input_audio") or {}
            name = str(sound.get("format") or "wav")
            return {"base64": sound.get("data"), "mime_type": _SOUNDS.get(name, f"audio/{name}")}
        case "file" | "input_file":
            return flat_file(block)
    return block


def _base64(data: Any) -> str | None:
    return base64.b64encode(data).decode() if isinstance(data, bytes) else data


def _from_data_url(source: Source) -> Source:
    """Return the data of a `data:` URL, or of base64 data in the place of a URL, which langchain-ollama accepts."""
    bare = image_type(source.url or "")
    if bare:
        return Source(data=source.url, mime_type=bare)
    if not (source.url or "").startswith("data:"):
        return source
    head, _, data = (source.url or "").partition(",")
    mime_type = head.removeprefix("data:").partition(";")[0] or source.mime_type
    return Source(data=data, mime_type=mime_type) if head.endswith(";base64") else source


def joined(content: Any) -> str | None:
    """Return the text of content that is a text or a list of text blocks."""
    if isinstance(content, list):
        return "\n".join(str(item.get("text", "")) for item in content if isinstance(item, Mapping))
    return content if isinstance(content, str) else None


def holders(block: Block) -> list[Mapping[str, Any]]:
    """Return the mappings in which a block may carry a value: the `metadata` of v0, the `extras` of v1, the block itself."""
    return [holder for holder in (block.get("metadata"), block.get("extras"), block) if isinstance(holder, Mapping)]


def extra(block: Block, *names: str) -> Any:
    """Return the first of the named values that the block carries anywhere."""
    values = (holder[name] for name in names for holder in reversed(holders(block)) if holder.get(name))
    return next(values, None)
