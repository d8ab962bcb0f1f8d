"""Frames of `application/vnd.amazon.eventstream`, in which AWS streams replies.

A frame is its length, the length of its headers, the CRC-32 of both, the headers, the payload, and the CRC-32 of all before it, in
big-endian numbers of 32 bits. A header is its name with its length in 8 bits, the type 7 of a text, and the text with its length in 16
bits: https://smithy.io/2.0/aws/amazon-eventstream.html.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

CONTENT_TYPE = "application/vnd.amazon.eventstream"
_TEXT = 7


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One frame."""
    head = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack(">II", 12 + len(head) + len(payload) + 4, len(head))
    written = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload
    return written + struct.pack(">I", zlib.crc32(written))


def event_frame(kind: str, data: Mapping[str, Any]) -> bytes:
    """The frame of an event."""
    payload = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    return frame({":event-type": kind, ":content-type": "application/json", ":message-type": "event"}, payload)


def exception_frame(kind: str, message: str) -> bytes:
    """The frame of an error after the stream has begun."""
    payload = json.dumps({"message": message}).encode()
    return frame({":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}, payload)


def _header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return struct.pack(">B", len(key)) + key + struct.pack(">BH", _TEXT, len(text)) + text
