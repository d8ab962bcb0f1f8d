"""Messages, calls and runs as plain text for people, with nothing in it that steers a terminal."""

import json
import re
from collections.abc import Mapping

from langchain_core.messages import BaseMessage

from .calls import ToolCallRecord
from .carrier import run_usage
from .metadata import own_metadata

_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Text without what steers a terminal or reorders a line: control characters (save line ends and tabs) and bidi overrides."""
    return _STEERING.sub("", text)


def escaped(text: str) -> str:
    """Text with the same characters written out (`\\x1b`), and line ends and tabs too: one line that shows what is there."""
    return "".join(repr(character)[1:-1] if _STEERING.match(character) or character in "\n\t" else character for character in text)


def call_text(call: ToolCallRecord) -> str:
    """A call as it would stand in Python: `get_temperature(city="Paris")`."""
    named = (f"{key}={json.dumps(value, ensure_ascii=False, default=str)}" for key, value in (call.args or {}).items())
    return escaped(f"{call.name}({call.arguments if call.args is None else ', '.join(named)})")


def run_text(run: BaseMessage) -> str:
    """A run in short: its turns, its tokens where they are known, and why it ended where that is not the usual way."""
    own, usage = own_metadata(run), run_usage(run)
    turns, stop_reason = own.get("turns", 1), own.get("stop_reason", "complete")
    parts = [f"{turns} turn{'s' if turns != 1 else ''}"]
    if usage and isinstance(usage, Mapping):
        parts.append(f"{usage.get('input_tokens', 0):,} tokens in, {usage.get('output_tokens', 0):,} out")
    if stop_reason != "complete":
        parts.append(f"stopped: {stop_reason}")
    return " · ".join(parts)
