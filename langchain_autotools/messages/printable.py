"""Messages, calls and runs as plain text without terminal control characters."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from langchain_core.messages import BaseMessage

from .calls import ToolCallRecord
from .carrier import run_usage
from .metadata import own_metadata, text_of

_LONGEST_RESULT: Final = 2_000
_LONGEST_CALL: Final = 300
_MEDIA: Final = {
    **{kind: kind for kind in ("image", "audio", "video", "file", "document", "media")},
    **{"image_url": "image", "input_image": "image", "input_audio": "audio", "input_file": "file"},
}

_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Return text without control characters (except line ends and tabs) and without bidi overrides."""
    return _STEERING.sub("", text)


def escaped(text: str) -> str:
    """Return text on one line with control characters, line ends and tabs as escapes (`\x1b`)."""
    return "".join(repr(character)[1:-1] if _STEERING.match(character) or character in "\n\t" else character for character in text)


def short_result(text: str) -> str:
    """Return a tool's result, shortened with a note if it is long."""
    text = printable(text)
    missing = len(text) - _LONGEST_RESULT
    return text if missing <= 0 else f"{text[:_LONGEST_RESULT]}\n… {missing:,} characters more"


def short_call(text: str) -> str:
    """Return a call on one line, shortened if it is long."""
    return text if len(text) <= _LONGEST_CALL else f"{text[:_LONGEST_CALL]}…"


def text_and_media(message: BaseMessage) -> str:
    """Return the text of a message, the kinds of media in it, and of a tool's result also its other objects, as JSON."""
    blocks = [block for block in message.content if isinstance(block, dict)] if isinstance(message.content, list) else []
    kinds = [str(block.get("type")) for block in blocks]
    media = [f"[{_MEDIA[kind]}]" for kind in kinds if kind in _MEDIA]
    others = [block for block, kind in zip(blocks, kinds, strict=True) if kind not in _MEDIA and kind != "text"]
    objects = [json.dumps(block, ensure_ascii=False, default=str) for block in others] if message.type == "tool" else []
    text = text_of(message)
    return "\n".join([*media, *objects] if objects and not text else [text, *media, *objects])


def quoted(message: BaseMessage) -> str:
    """Return a message of a model's input with quote marks on its lines; other roles than the human's are named."""
    kind = "" if message.type == "human" else f"({message.type}) "
    return "\n".join(f"> {line}" for line in f"{kind}{text_and_media(message)}".split("\n"))


def call_text(call: ToolCallRecord) -> str:
    """Return a call in Python's syntax: `get_temperature(city="Paris")`."""
    named = (f"{key}={json.dumps(value, ensure_ascii=False, default=str)}" for key, value in (call.args or {}).items())
    return escaped(f"{call.name}({call.arguments if call.args is None else ', '.join(named)})")


def run_text(run: BaseMessage) -> str:
    """Return a run's summary: its turns, its tokens if known, and its stop reason if unusual."""
    own = own_metadata(run)
    return summary_text(own.get("turns", 1), run_usage(run), own.get("stop_reason", "complete"))


def summary_text(turns: int, usage: Any, stop_reason: str) -> str:
    """Return the summary of a run with these values."""
    parts = [f"{turns} turn{'s' if turns != 1 else ''}"]
    if usage and isinstance(usage, Mapping):
        parts.append(f"{usage.get('input_tokens', 0):,} tokens in, {usage.get('output_tokens', 0):,} out")
    if stop_reason != "complete":
        parts.append(f"stopped: {stop_reason}")
    return " · ".join(parts)
