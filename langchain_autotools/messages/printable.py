"""Messages, calls and runs as plain text for people, with nothing in it that steers a terminal."""

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
    """Text without what steers a terminal or reorders a line: control characters (save line ends and tabs) and bidi overrides."""
    return _STEERING.sub("", text)


def escaped(text: str) -> str:
    """Text with the same characters written out (`\\x1b`), and line ends and tabs too: one line that shows what is there."""
    return "".join(repr(character)[1:-1] if _STEERING.match(character) or character in "\n\t" else character for character in text)


def short_result(text: str) -> str:
    """What a tool returned, for people: cut where it is long, with a note of what is missing."""
    text = printable(text)
    missing = len(text) - _LONGEST_RESULT
    return text if missing <= 0 else f"{text[:_LONGEST_RESULT]}\n… {missing:,} characters more"


def short_call(text: str) -> str:
    """A call on one line, cut where it is long."""
    return text if len(text) <= _LONGEST_CALL else f"{text[:_LONGEST_CALL]}…"


def text_and_media(message: BaseMessage) -> str:
    """The text of a message, and the kinds of media that it holds beside it."""
    blocks = message.content if isinstance(message.content, list) else []
    kinds = [str(block.get("type")) for block in blocks if isinstance(block, dict)]
    return "\n".join([text_of(message), *(f"[{_MEDIA[kind]}]" for kind in kinds if kind in _MEDIA)])


def quoted(message: BaseMessage) -> str:
    """A message that a model was given, its lines marked as quoted; one that is not a human's begins with its kind."""
    kind = "" if message.type == "human" else f"({message.type}) "
    return "\n".join(f"> {line}" for line in f"{kind}{text_and_media(message)}".split("\n"))


def call_text(call: ToolCallRecord) -> str:
    """A call as it would stand in Python: `get_temperature(city="Paris")`."""
    named = (f"{key}={json.dumps(value, ensure_ascii=False, default=str)}" for key, value in (call.args or {}).items())
    return escaped(f"{call.name}({call.arguments if call.args is None else ', '.join(named)})")


def run_text(run: BaseMessage) -> str:
    """A run in short: its turns, its tokens where they are known, and why it ended where that is not the usual way."""
    own = own_metadata(run)
    return summary_text(own.get("turns", 1), run_usage(run), own.get("stop_reason", "complete"))


def summary_text(turns: int, usage: Any, stop_reason: str) -> str:
    """The same of a run that is known by these."""
    parts = [f"{turns} turn{'s' if turns != 1 else ''}"]
    if usage and isinstance(usage, Mapping):
        parts.append(f"{usage.get('input_tokens', 0):,} tokens in, {usage.get('output_tokens', 0):,} out")
    if stop_reason != "complete":
        parts.append(f"stopped: {stop_reason}")
    return " · ".join(parts)
