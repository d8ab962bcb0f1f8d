"""Conversion of content blocks of any vendor to parts of a user's Content or a tool's response.

Understood are LangChain's v1 and v0 blocks and the blocks of Google, OpenAI and Anthropic. A block that the wire cannot carry raises
`UnsupportedFeatureError` with its type; nothing is dropped here, except texts of length nothing, which the vendor refuses.

Wire facts: text, `inlineData` (base64 of any media type that the model reads) and `fileData` (an uploaded file, a Cloud Storage or a public
address); `videoMetadata` and `mediaResolution` stand beside them.
"""

import mimetypes
from collections.abc import Callable, Mapping
from typing import Any

from .._encode.sources import (
    Block,
    Source,
    convert_block,
    decoded_text,
    extra,
    image_type,
    joined,
    source_of,
    unsupported,
    unwrapped,
)
from .endpoint import file_uri
from .wire import FileData, Part

_OWN = ("inlineData", "inline_data", "fileData", "file_data")
_USUAL = {"image": "image/jpeg", "image_url": "image/jpeg", "input_image": "image/jpeg", "audio": "audio/mpeg", "video": "video/mp4"}
_TEXTS = ("text/", "application/json", "application/xml")


def text_part(text: str) -> Part:
    """Return a text part."""
    return {"text": text}


def part_of(block: str | Block) -> Part | None:
    """Convert one content block to the wire's form; None for an empty text.

    Raises:
        UnsupportedFeatureError: The wire cannot carry the block.
    """
    if isinstance(block, str):
        return text_part(block) if block else None
    block = unwrapped(block)
    if any(isinstance(block.get(key), Mapping) for key in _OWN):
        return _without_index(block)
    if "type" not in block and isinstance(block.get("text"), str) and block["text"]:  # the wire's own text, with what stands beside it
        return _without_index(block)
    part = convert_block(block, text_part, _CONVERTERS, "the wire has no such content")
    return None if part == text_part("") else part


def _without_index(block: Block) -> Part:
    """Return one of the wire's own parts without LangChain's additions."""
    own: Any = {key: value for key, value in block.items() if key not in ("type", "index")}
    part: Part = own
    return part


def _results(block: Block) -> Part:
    lines = (str(block.get("title") or ""), joined(block.get("content")))
    return text_part("\n".join(filter(None, lines)))


# ------------------------------------------------------------------------------------------ media


def _media(block: Block) -> Part:
    part = _of_source(source_of(block), block.get("type"))
    if "text" in part:
        return part
    if video := extra(block, "videoMetadata", "video_metadata"):
        part["videoMetadata"] = video
    if resolution := extra(block, "mediaResolution", "media_resolution"):
        part["mediaResolution"] = {"level": resolution.upper()} if isinstance(resolution, str) else resolution
    return part


def _of_source(source: Source, kind: Any) -> Part:
    if source.url or source.file_id:
        uri = source.url or file_uri(str(source.file_id))
        mime_type = source.mime_type or mimetypes.guess_type(uri.partition("?")[0])[0]
        if mime_type is None and source.url and str(kind) in _USUAL and not _is_ours(uri):
            mime_type = _USUAL[str(kind)]
        file: FileData = {"mimeType": mime_type, "fileUri": uri} if mime_type else {"fileUri": uri}
        return {"fileData": file}
    if source.data is None:
        if source.text is not None:
            return text_part(source.text)
        raise unsupported(kind, "it needs a URL, base64 data or the id of an uploaded file")
    mime_type = source.mime_type or image_type(source.data)
    if mime_type is None:
        raise unsupported(kind, "its mime_type is missing")
    if mime_type.startswith(_TEXTS):
        return text_part(decoded_text(source.data))
    return {"inlineData": {"mimeType": mime_type, "data": source.data}}


def _document(block: Block) -> Part:
    source = source_of(block)
    if source.data is not None and source.mime_type is None:
        source = Source(data=source.data, mime_type="application/pdf")
    return _of_source(source, block.get("type"))


_CONVERTERS: dict[str, Callable[[Block], Part]] = {
    **dict.fromkeys(("image", "image_url", "input_image", "image_generation_call", "audio", "input_audio", "video"), _media),
    **dict.fromkeys(("text-plain", "media", "file", "input_file", "file_data"), _media),
    "document": _document,
    "search_result": _results,
}


def _is_ours(uri: str) -> bool:
    """Whether an address is an uploaded file, whose media type the server knows."""
    return "/files/" in uri and "googleapis.com" in uri
