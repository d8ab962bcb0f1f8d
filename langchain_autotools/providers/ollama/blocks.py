"""Conversion of content blocks of any vendor to the content of /api/chat messages: text, and images as base64 data.

Understood are LangChain's v1 and v0 blocks and those of OpenAI, Anthropic and Google. A block that the wire cannot carry raises
`UnsupportedFeatureError` with its type; nothing is dropped here.
"""

from dataclasses import dataclass
from typing import Any

from .._encode.json_text import dumps
from .._encode.sources import Block, block_text, decoded_text, search_result_text, source_of, unsupported, unwrapped

_BY_URL = "Ollama takes pictures as base64 data only, and nothing here fetches a URL: fetch it and give its data"
_PICTURES = ("image", "image_url", "input_image", "image_generation_call")


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a message: its texts and its images, each in order."""

    texts: tuple[str, ...] = ()
    images: tuple[str, ...] = ()


def content_of(content: str | list[str | dict[Any, Any]]) -> Content:
    """Return the content of a message.

    Raises:
        UnsupportedFeatureError: A block is neither text nor a picture with its data.
    """
    if isinstance(content, str):
        return Content((content,) if content else ())
    texts: list[str] = []
    images: list[str] = []
    for block in content:
        if isinstance(block, str):
            texts.append(block)
            continue
        text = _as_text(unwrapped(block))
        if text is None:
            images.append(_image_data(unwrapped(block)))
        else:
            texts.append(text)
    return Content(tuple(filter(None, texts)), tuple(images))


def _as_text(block: Block) -> str | None:
    """Return the text of a block; None if it is not text."""
    kind = block.get("type")
    if kind == "json":
        return dumps(block.get("json"))
    if kind == "search_result":
        return search_result_text(block)
    return _document_text(block) if kind in ("text-plain", "document") else block_text(block)


def _document_text(block: Block) -> str | None:
    """Return the text of a text document; None for other blocks."""
    source = source_of(block)
    text = source.text
    if text is None and source.data is not None and str(source.mime_type or block.get("type")).startswith("text"):
        text = decoded_text(source.data)
    return None if text is None else "\n".join([*(str(block[key]) for key in ("title", "context") if block.get(key)), text])


def _image_data(block: Block) -> str:
    kind = str(block.get("type"))
    if kind == "media" and str(block.get("mime_type") or "").startswith("image/"):
        kind = "image"
    if kind not in _PICTURES:
        raise unsupported(kind, "Ollama takes text and pictures only")
    source = source_of(block)
    if source.data:
        return source.data
    raise unsupported(kind, _BY_URL if source.url else "it has no base64 data")
