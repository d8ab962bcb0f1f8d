"""Conversion of message content between LangChain's blocks and AG-UI's parts."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from langchain_core.messages import BaseMessage

from ..event_types import ModelChanged
from ..strict_json import mend_surrogates
from .plain import to_json

_PARTS: Final[Mapping[str, str]] = {"image": "image", "audio": "audio", "video": "video", "file": "document"}
_BLOCKS: Final[Mapping[Any, str]] = {part: block for block, part in _PARTS.items()}
_LINKS: Final = ("https://", "http://", "data:")
_UNKNOWN: Final = "application/octet-stream"


def content_parts(message: BaseMessage) -> str | list[dict[str, Any]]:
    """Return the content of a result: its text, or its parts. A block without a form in the protocol becomes JSON text."""
    if isinstance(message.content, str):
        return mend_surrogates(message.content)
    return [_part(block) for block in message.content_blocks]


def _part(block: Mapping[str, Any]) -> dict[str, Any]:
    kind, source = block.get("type", ""), _source(block)
    if kind in _PARTS and source is not None:
        return {"type": _PARTS[kind], "source": source}
    text = block.get("text") if kind == "text" else None
    other = block.get("value", block) if kind == "non_standard" else block  # what LangChain puts around an object that is no block
    return {"type": "text", "text": mend_surrogates(text) if isinstance(text, str) else to_json(other)}


def _source(block: Mapping[str, Any]) -> dict[str, Any] | None:
    mime_type = block.get("mime_type")
    mime = {"mimeType": mime_type} if isinstance(mime_type, str) else {}
    if isinstance(block.get("base64"), str):
        return {"type": "data", "value": block["base64"], "mimeType": _UNKNOWN, **mime}
    for key, kind in (("url", "url"), ("file_id", "file")):
        if isinstance(block.get(key), str):
            return {"type": kind, "value": block[key], **mime}
    return None


def read_parts(content: Any, drop: Callable[[str], None]) -> str | list[str | dict[Any, Any]] | None:
    """Return a page's content as the content of a message; None if it is empty.

    Args:
        content: A text, or parts.
        drop: Told of what is left out: parts that are none, and files that only an id at a vendor names, which may be anybody's.
    """
    if isinstance(content, str):
        return content or None
    blocks: list[str | dict[Any, Any]] = []
    for part in content if isinstance(content, list) else ():
        block = _block(part) if isinstance(part, Mapping) else None
        if block is None:
            drop("parts of a message that are neither text nor a file with its data or its address")
        else:
            blocks.append(block)
    return blocks or None


def _block(part: Mapping[str, Any]) -> dict[str, Any] | None:
    kind, source = part.get("type"), part.get("source")
    if kind == "text" and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if not (isinstance(kind, str) and kind in _BLOCKS and isinstance(source, Mapping) and isinstance(source.get("value"), str)):
        return None
    mime_type, value = source.get("mimeType"), source["value"]
    mime = {"mime_type": mime_type} if isinstance(mime_type, str) else {}
    if source.get("type") == "data" and mime:
        return {"type": _BLOCKS[kind], "base64": value, **mime}
    if source.get("type") == "url" and value.lower().startswith(_LINKS):
        return {"type": _BLOCKS[kind], "url": value, **mime}
    return None


def label(value: Any) -> str | None:
    """Return a name from a message's metadata; None if it is no text."""
    return mend_surrogates(value) if isinstance(value, str) and value else None


def change_of(event: ModelChanged) -> dict[str, Any]:
    """Return the data of a page's event that another model was asked."""
    return {"from": mend_surrogates(event.from_model), "to": mend_surrogates(event.to_model), "afterText": event.after_text}
