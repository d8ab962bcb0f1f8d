"""Where the data of a content block is, whose ever block it is: a URL, base64 data, the id of an uploaded file, or text.

Understood are LangChain's v1 and v0 blocks and the blocks of OpenAI, Anthropic and Google.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["MAGIC", "Source", "extra", "holders", "joined", "source_of"]

MAGIC = {"iVBOR": "image/png", "/9j/": "image/jpeg", "R0lG": "image/gif", "UklG": "image/webp"}
"""How base64 data begins, by the image's media type."""


@dataclass(frozen=True)
class Source:
    """Where the data of a block is: exactly one of url, data (base64), file_id and text, where the block is well formed."""

    url: str | None = None
    data: str | None = None
    file_id: str | None = None
    text: str | None = None
    mime_type: str | None = None


def source_of(block: Mapping[str, Any]) -> Source:
    """Where a block has its data. Data in the place of a URL, or in a `data:` URL, is taken out of it."""
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


def _base64(data: Any) -> str | None:
    return base64.b64encode(data).decode() if isinstance(data, bytes) else data


def _from_data_url(source: Source) -> Source:
    """What a `data:` URL holds; also of base64 data that stands where a URL should, as langchain-ollama takes it."""
    bare = next((mime for head, mime in MAGIC.items() if (source.url or "").startswith(head)), None)
    if bare:
        return Source(data=source.url, mime_type=bare)
    if not (source.url or "").startswith("data:"):
        return source
    head, _, data = (source.url or "").partition(",")
    mime_type = head.removeprefix("data:").partition(";")[0] or source.mime_type
    return Source(data=data, mime_type=mime_type) if head.endswith(";base64") else source


def joined(content: Any) -> str | None:
    """The text of content that is text, or a list of text blocks."""
    if isinstance(content, list):
        return "\n".join(str(item.get("text", "")) for item in content if isinstance(item, Mapping))
    return content if isinstance(content, str) else None


def holders(block: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Where a block may carry a value: the `metadata` of v0, the `extras` of v1, the block itself."""
    return [holder for holder in (block.get("metadata"), block.get("extras"), block) if isinstance(holder, Mapping)]


def extra(block: Mapping[str, Any], *names: str) -> Any:
    """The value of the first of `names` that the block carries anywhere."""
    values = (holder[name] for name in names for holder in reversed(holders(block)) if holder.get(name))
    return next(values, None)
