"""The sources and the files that a stored message holds, as the events that told of them.

A message of any vendor's is read by the shape of its data: content blocks as LangChain's core translates them, and what its packages keep
beside the content (`annotations`, `images`, `tool_outputs`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.messages import AIMessage

from ..event_types import RunEvent
from ..messages.files import size_of
from ..vendor_event_types import FileMade, SourceFound

_FILES = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "file": "application/octet-stream"}


def finds_of(run_id: str, message: AIMessage) -> Iterator[RunEvent]:
    """Yield the sources and the files of a message."""
    about: dict[str, Any] = {"run_id": run_id, "message_id": str(message.id)}
    beside = message.additional_kwargs
    blocks: list[Mapping[str, Any]] = [] if isinstance(message.content, str) else [*message.content_blocks]
    cited = [entry for block in blocks if block["type"] == "text" for entry in block.get("annotations") or ()]
    for entry in (*cited, *_mappings(beside.get("annotations"))):
        page = entry.get("url_citation") or entry
        if page.get("url"):
            yield SourceFound(**about, url=page["url"], title=page.get("title"), quote=page.get("cited_text"))
    images = [one if isinstance(one, Mapping) else {"base64": one} for one in beside.get("images") or ()]
    drawn = [{"base64": item["result"]} for item in _mappings(beside.get("tool_outputs")) if isinstance(item.get("result"), str)]
    for block in (*(one for one in blocks if one["type"] in _FILES), *({"type": "image", **one} for one in (*images, *drawn))):
        yield from _file(about, {**block, "type": block["type"] if block["type"] in _FILES else "image"})


def _file(about: Mapping[str, Any], block: Mapping[str, Any]) -> Iterator[RunEvent]:
    image, data = block.get("image_url"), block.get("base64")
    address = block.get("url") or (image.get("url") if isinstance(image, Mapping) else image)
    mime_type = block.get("mime_type") or _FILES[block["type"]]
    if isinstance(address, str) and address.startswith("data:"):
        head, _, data = address.removeprefix("data:").partition(";base64,")
        mime_type, address = head or mime_type, None
    if isinstance(data, str) or isinstance(address, str):
        data = data if isinstance(data, str) else None
        yield FileMade(**about, mime_type=mime_type, data=data, size=size_of(data) if data else 0, url=address)


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
