"""The data of large files in a message, for events that leave them out."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from langchain_core.messages import BaseMessage

LARGE: Final = 256 * 1024
"""The size in bytes above which a file's data is left out where events are kept or sent: its message has them."""

_BASE64 = re.compile(r"[A-Za-z0-9+/]{64}")


def size_of(data: str) -> int:
    """Return the size in bytes of base64 data."""
    return len(data) * 3 // 4 - data[-2:].count("=")


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
