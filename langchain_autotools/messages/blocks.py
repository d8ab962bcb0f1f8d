"""The content blocks of messages, read alike in the forms of LangChain, the vendors or MCP.

The calls of a message are in `tool_calls`; a block says where they were written, or repeats them. Calls that the vendor executes
itself (`server_tool_call`, `server_tool_use`, ...) are none of these: they stay content.
"""

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeGuard, TypeVar

from langchain_core.messages import AIMessage, BaseMessage

STANDARD_CALLS = frozenset({"tool_call", "tool_call_chunk", "invalid_tool_call"})
"""LangChain's own types of call blocks."""

_WHOLE_CALLS = frozenset({"tool_call", "tool_use", "function_call"})

NAMED_CALLS = STANDARD_CALLS | _WHOLE_CALLS
"""Types of call blocks with an id and a name."""

CALL_BLOCKS = NAMED_CALLS | {"input_json_delta"}
"""All types of call blocks, including fragments of a stream."""

MEDIA_TYPES = {
    **dict.fromkeys(("image", "image_url", "input_image", "image_generation_call"), "image"),
    **dict.fromkeys(("audio", "input_audio", "audio_url"), "audio"),
    **dict.fromkeys(("video", "video_url"), "video"),
}
"""Types of blocks for pictures, sound and videos, and what each is."""

FILE_TYPES = frozenset(
    {"file", "input_file", "document", "media", "text-plain", "file_data", "document_url", "resource", "inlineData", "fileData"}
)
"""Types of blocks for documents and files of any kind."""

INLINE_KEYS = ("inlineData", "inline_data", "fileData", "file_data")
"""The keys of a mapping with data in blocks that need no type."""

_DATA = ("base64", "data", "blob", "file_data", "result")
_PLACES = ("url", "file_id", "file_uri", "fileUri", "file_url", "image_url", "audio_url", "video_url", "document_url")
_NESTED = ("source", "file", "input_audio", "image_url", "resource", *INLINE_KEYS)
_OF_BLOCKS = frozenset(
    {
        *("type", "id", "index", "extras", "metadata", "annotations", "_meta", "meta"),
        *("cache_control", "prompt_cache_breakpoint", "status"),
        *("mime_type", "mimeType", "source_type", "detail", "output_format", "text", "signature", "thought", "transformations"),
        *("videoMetadata", "video_metadata", "mediaResolution", "media_resolution", "part_metadata", "revised_prompt", "quality", "size"),
        *(*_DATA, *_PLACES, *_NESTED),
    }
)
_OF_FILES = frozenset({"filename", "name", "title", "context", "citations", "document_name"})
_PLAIN_TEXT = {"type", "text", "index"}


def is_media_block(block: object) -> bool:
    """Whether a value is a content block that has data of its own: a picture, sound, a video or a file; and no row that has a `type`.

    A row may also have the address of a picture. It is a row if it says anything that no such block has.
    """
    if not isinstance(block, Mapping):
        return False
    kind = block.get("type")
    if not isinstance(kind, str):
        return kind is None and any(isinstance(block.get(key), Mapping) for key in INLINE_KEYS) and not of_row(block)
    if kind not in MEDIA_TYPES and kind not in FILE_TYPES:
        return False
    nested = [inner for key in _NESTED if isinstance(inner := block.get(key), Mapping)]
    if any(isinstance(block.get(key), str | bytes) for key in _DATA) or any(nested):
        return block.get("source") not in nested or "type" in block["source"]
    placed = any(isinstance(block.get(key), str) for key in _PLACES) or (kind == "text-plain" and isinstance(block.get("text"), str))
    return (placed or block.get("source_type") in ("id", "text")) and not of_row(block)


def of_row(block: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return what a content block says besides what such blocks have."""
    known = _OF_BLOCKS if block.get("type") in MEDIA_TYPES else _OF_BLOCKS | _OF_FILES
    return {key: value for key, value in block.items() if key not in known}


def standard_blocks(message: BaseMessage) -> list[Any]:
    """Return a message's content as LangChain's standard blocks; of a message with a block that core cannot convert, the blocks it has."""
    try:
        return [*message.content_blocks]
    except (TypeError, AttributeError, LookupError, ValueError):
        content = [message.content] if isinstance(message.content, str) else message.content
        blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in content]
        return [block if isinstance(block.get("type"), str) else {"type": "non_standard", "value": block} for block in blocks]


def is_call_block(block: object) -> TypeGuard[dict[str, Any]]:
    """Whether a content block is a call or a fragment of one."""
    return isinstance(block, dict) and block.get("type") in CALL_BLOCKS


def holds_call(block: object) -> TypeGuard[dict[str, Any]]:
    """Whether a content block is a whole call, which programs for a vendor's client store in content alone."""
    return isinstance(block, Mapping) and block.get("type") in _WHOLE_CALLS


def unnumbered(content: str | list[Any]) -> str | list[Any]:
    """Return content without the numbers of its blocks, by which the chunks of a stream are added up."""
    if isinstance(content, str) or not any(isinstance(block, dict) and "index" in block for block in content):
        return content
    return [{key: value for key, value in block.items() if key != "index"} if isinstance(block, dict) else block for block in content]


def whole_content(content: str | list[Any]) -> str | list[Any]:
    """Return content in the form of a whole reply: one text that says nothing else as a string, else blocks without numbers."""
    if isinstance(content, list) and {str, dict} <= {*map(type, content)}:  # core reads no bare text here
        content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in content if one != ""]
    block = content[0] if len(content) == 1 else None
    if isinstance(block, dict) and block.get("type") == "text" and block.keys() <= _PLAIN_TEXT:
        return str(block.get("text", ""))
    return unnumbered(content)


# ---------------------------------------------------------------------------------------------- provisional
# Content blocks only for readers of a stream, such as a partial image: no message keeps them.


PROVISIONAL = "provisional"
"""The mark of a provisional block: a key of its own, or of its `extras`."""

_Message = TypeVar("_Message", bound=AIMessage)


def is_provisional(block: object) -> bool:
    """Whether a content block is provisional."""
    if not isinstance(block, Mapping):
        return False
    extras = block.get("extras")
    return bool(block.get(PROVISIONAL)) or (isinstance(extras, Mapping) and bool(extras.get(PROVISIONAL)))


def without_provisional(message: _Message) -> _Message:
    """Return the message without provisional blocks; the same object if it has none."""
    if isinstance(message.content, str) or not any(map(is_provisional, message.content)):
        return message
    return message.model_copy(update={"content": [block for block in message.content if not is_provisional(block)]})


# ---------------------------------------------------------------------------------------------- deltas
# Iteration over the text and reasoning of a chunk or a whole reply, in order.


DeltaKind = Literal["text", "reasoning"]

_REASONING_KEYS = ("reasoning_content", "reasoning")
_TEXT_OF_REASONING = ("reasoning", "thinking")


def deltas_of(content: str | list[Any], extra: Mapping[str, Any]) -> Iterator[tuple[DeltaKind, str]]:
    """Yield the text and reasoning of a chunk, piece by piece. Reasoning beside the content comes first.

    Args:
        content: The content of the message or chunk.
        extra: Its `additional_kwargs`.
    """
    for key in _REASONING_KEYS:
        if isinstance(extra.get(key), str) and extra[key]:
            yield "reasoning", extra[key]
            break
    for part in [content] if isinstance(content, str) else content:
        if not isinstance(part, str):
            yield from _block_deltas(part)
        elif part:
            yield "text", part


def _block_deltas(block: Mapping[str, Any]) -> Iterator[tuple[DeltaKind, str]]:
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str) and block["text"]:
        yield "text", block["text"]
    if kind not in _TEXT_OF_REASONING:
        return
    written = [block[key] for key in _TEXT_OF_REASONING if isinstance(block.get(key), str)]
    summary = block.get("summary")
    parts = summary if isinstance(summary, list) and not written else []
    text = "".join(written) or "\n\n".join(str(part.get("text") or "") for part in parts if isinstance(part, Mapping))
    if text:
        yield "reasoning", text


# ---------------------------------------------------------------------------------------------- files
# The data of files in messages: what it is by its first bytes, and which of it events leave out because it is large.


LARGE: Final = 256 * 1024
"""The size in bytes above which a file's data is left out where events are kept or sent: its message has them."""

_BASE64 = re.compile(r"[A-Za-z0-9+/]{64}")
_HEAD: Final = 24
_HEADS: Final[tuple[tuple[int, bytes, str], ...]] = (
    (0, b"\x89PNG", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (4, b"ftypheic", "image/heic"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftypM4A", "audio/mp4"),
    (4, b"ftyp", "video/mp4"),
    (0, b"%PDF", "application/pdf"),
    (0, b"ID3", "audio/mpeg"),
    *((0, head, "audio/mpeg") for head in (b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
)


def size_of(data: str) -> int:
    """Return the size in bytes of base64 data."""
    return len(data) * 3 // 4 - data[-2:].count("=")


def media_type(data: str | bytes) -> str | None:
    """Return the media type of a picture, sound, video or PDF by the first bytes of its data, which may be base64; None for other data."""
    head = data[:_HEAD] if isinstance(data, bytes) else _decoded_head(data)
    return next((mime for place, mark, mime in _HEADS if head.startswith(mark, place)), None)


def _decoded_head(data: str) -> bytes:
    head = data[:_HEAD]
    try:
        return b64decode(head[: len(head) // 4 * 4], validate=True)
    except ValueError:  # it is no base64
        return b""


def large_files(message: BaseMessage) -> Iterator[str]:
    """Yield the base64 data of the files above 256 kB in a message of any vendor's, in order."""
    for text in _texts([message.content, message.additional_kwargs]):
        data = text.partition(";base64,")[2] if text.startswith("data:") else text
        if size_of(data) > LARGE and _BASE64.match(data):
            yield data


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
