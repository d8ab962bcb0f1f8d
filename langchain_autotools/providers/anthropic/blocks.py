"""Conversion of content blocks of any vendor to blocks of a user message or tool result of the Messages API.

Understood are LangChain's v1 and v0 blocks and the blocks of Anthropic, OpenAI and Google. A block that the wire cannot carry
raises `UnsupportedFeatureError` with its type; nothing is dropped here, except texts without a visible character, which the
vendor refuses.

Wire facts: images and documents from base64, a URL or the id of an uploaded file; documents also from text or content blocks
(docs.claude.com, "Vision", "PDF support", "Citations"); no sound and no video.
"""

from collections.abc import Callable, Mapping
from typing import Any

from .._encode.sources import (
    Block,
    Source,
    convert_block,
    decoded_text,
    extra,
    flat_file,
    image_type,
    joined,
    source_of,
    unsupported,
    unwrapped,
)
from .wire import Media, MediaSource, Part, Text

_CACHE = "cache_control"
_NO_SUCH = "the Messages API has no such content"


def text_part(text: str) -> Text:
    """Return a text block."""
    return {"type": "text", "text": text}


def part_of(block: str | Block) -> Part | None:
    """Convert one content block to the wire's form; None for a text without visible characters.

    Raises:
        UnsupportedFeatureError: The wire cannot carry the block.
    """
    if isinstance(block, str):
        return text_part(block) if block.strip() else None
    block = unwrapped(block)
    part = convert_block(block, text_part, _CONVERTERS, _NO_SUCH)
    if part["type"] == "text" and not str(part.get("text")).strip():
        return None
    if part["type"] == "text" and _are_citations(block.get("citations")):
        part = {**part, "citations": block["citations"]}
    cache = extra(block, _CACHE)
    return {**part, _CACHE: cache} if cache else part


def mark_of(block: Block) -> Any:
    """Return a block's mark of the cache; None if it has none."""
    return extra(unwrapped(block), _CACHE)


def _are_citations(value: Any) -> bool:
    """Whether a text's citations are the wire's own."""
    kinds = [one.get("type") if isinstance(one, Mapping) else None for one in value] if isinstance(value, list) else []
    return bool(kinds) and all(str(kind).endswith("_location") for kind in kinds)


def _own(block: Block) -> dict[str, Any]:
    """Return one of the wire's own blocks without LangChain's additions."""
    return {key: value for key, value in block.items() if key not in ("index", "extras", _CACHE)}


# ---------------------------------------------------------------------------------------------- media


def _image(block: Block) -> Media:
    image: Media = {"type": "image", "source": _image_source(source_of(block), block.get("type"))}
    changes = extra(block, "transformations")
    return {**image, "transformations": changes} if changes else image


def _image_source(source: Source, kind: Any) -> MediaSource:
    if source.url:
        return {"type": "url", "url": source.url}
    if source.file_id:
        return {"type": "file", "file_id": source.file_id}
    if source.data is None:
        raise unsupported(kind, "an image needs a URL, base64 data or the id of an uploaded file")
    media_type = image_type(source.data) or source.mime_type
    if media_type is None:
        raise unsupported(kind, "its mime_type is missing")
    return {"type": "base64", "media_type": media_type, "data": source.data}


def _document(block: Block) -> Media:
    block = flat_file(block)
    source = source_of(block)
    mime_type = (source.mime_type or "").partition(";")[0]
    if mime_type.startswith("image/"):
        return {"type": "image", "source": _image_source(source, block.get("type"))}
    document: Media = {"type": "document", "source": _document_source(block, source, mime_type)}
    if title := extra(block, "title") or extra(block, "filename", "name"):
        document["title"] = title
    if context := extra(block, "context"):
        document["context"] = context
    if citations := extra(block, "citations"):
        document["citations"] = citations
    return document


def _document_source(block: Block, source: Source, mime_type: str) -> MediaSource:
    nested = block.get("source")
    if isinstance(nested, Mapping) and nested.get("type") == "content":
        return {"type": "content", "content": nested.get("content")}
    if source.file_id:
        return {"type": "file", "file_id": source.file_id}
    if source.text is not None:
        return {"type": "text", "media_type": "text/plain", "data": source.text}
    if source.url:
        return {"type": "url", "url": source.url}
    if source.data is None:
        raise unsupported(block.get("type"), "a document needs a URL, base64 data, text or the id of an uploaded file")
    if mime_type in ("", "application/pdf"):
        return {"type": "base64", "media_type": "application/pdf", "data": source.data}
    if mime_type.startswith("text/") or mime_type == "application/json":
        return {"type": "text", "media_type": "text/plain", "data": decoded_text(source.data)}
    raise unsupported(block.get("type"), f"documents are PDF or text, not {mime_type}")


def _plain_text(block: Block) -> Media:
    return _document({**block, "mime_type": block.get("mime_type") or "text/plain"})


def _joined_results(block: Block) -> Part:
    """Convert a search result; an incomplete one becomes text."""
    if block.get("source") and block.get("title") and isinstance(block.get("content"), list):
        return _own(block)
    return text_part(joined(block.get("content")) or "")


_CONVERTERS: dict[str, Callable[[Block], Part]] = {
    **dict.fromkeys(("image", "image_url", "input_image", "image_generation_call"), _image),
    **dict.fromkeys(("file", "input_file", "document", "media"), _document),
    "text-plain": _plain_text,
    "search_result": _joined_results,
    **dict.fromkeys(("container_upload", "tool_reference", "browser_state", "tool_addition", "tool_removal"), _own),
}
