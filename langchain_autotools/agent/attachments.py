"""Construction of question messages with attachments."""

import base64
import mimetypes
import uuid
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage

from ..errors import ConfigurationError

Attachment = bytes | str | PathLike[str] | tuple[bytes | str | PathLike[str], str]
"""An attachment of a question: bytes, the path of a local file, or a URL (`https://...`), which is passed on and not fetched here.

In a tuple with its MIME type if neither its name nor its first bytes determine it."""

_SIGNATURES = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"%PDF": "application/pdf",
    b"ID3": "audio/mpeg",
    b"OggS": "audio/ogg",
    b"fLaC": "audio/flac",
}
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


def question_message(question: str | HumanMessage, attachments: Sequence[Attachment]) -> HumanMessage:
    """Return the question as a message with an id, with its attachments after its text.

    Raises:
        ConfigurationError: The type of an attachment cannot be told.
        OSError: An attachment cannot be read.
    """
    message = HumanMessage(question) if isinstance(question, str) else question
    changed: dict[str, Any] = {} if message.id else {"id": str(uuid.uuid4())}
    if attachments:
        before = [{"type": "text", "text": message.content}] if isinstance(message.content, str) else message.content
        changed["content"] = [*before, *map(_block, attachments)]
    return message.model_copy(update=changed) if changed else message


def _block(attachment: Attachment) -> dict[str, Any]:
    """Return an attachment as one of LangChain's standard content blocks."""
    source, mime_type = attachment if isinstance(attachment, tuple) else (attachment, None)
    if isinstance(source, str) and source.startswith(("https://", "http://")):
        mime_type = mime_type or mimetypes.guess_type(source.partition("?")[0])[0]
        return {"type": _kind(mime_type, source), "url": source, "mime_type": mime_type}
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    name = None if isinstance(source, bytes) else Path(source).name
    mime_type = mime_type or (mimetypes.guess_type(name)[0] if name else None) or _sniffed(data)
    kind = _kind(mime_type, name or "bytes")
    if kind == "text-plain":
        return {"type": kind, "text": data.decode("utf-8", "replace"), "mime_type": "text/plain", **({"title": name} if name else {})}
    extra = {"filename": name} if name and kind == "file" else {}
    return {"type": kind, "base64": base64.b64encode(data).decode(), "mime_type": mime_type, **extra}


def _kind(mime_type: str | None, what: str) -> str:
    if mime_type is None:
        raise ConfigurationError(f"the type of the attachment {what!r} cannot be told: give a tuple ({what}, 'image/png')")
    kind = mime_type.partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "text-plain" if kind == "text" else "file"


def _sniffed(data: bytes) -> str | None:
    """Return the MIME type of data from its first bytes; None if they are unknown."""
    if data[:4] == b"RIFF":
        return _RIFF.get(data[8:12])
    return next((mime_type for signature, mime_type in _SIGNATURES.items() if data.startswith(signature)), None)
