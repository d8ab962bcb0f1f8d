"""What every display is told, and how an error becomes one line."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from langchain_core.messages import BaseMessage, ToolMessage

from langchain_autotools.messages.metadata import text_of

__all__ = ["Display", "RunSummary", "call_text", "escaped", "one_line", "print_error", "printable", "result_text", "usage_text"]

_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_LONGEST_RESULT = 200


@dataclass(frozen=True)
class RunSummary:
    """How one run ended.

    Attributes:
        model: The model's name.
        stop_reason: Why the run ended, one of `limits.StopReason`.
        turns: How many model turns it took.
        usage: The tokens of all turns together, if the model reports any.
    """

    model: str
    stop_reason: str
    turns: int
    usage: Mapping[str, Any] | None


class Display(Protocol):
    """Is told what happens, in order. The two call methods may be called from other threads."""

    prompt: str
    """What stands before the user's line in a session."""

    def model(self, name: str, reason: str | None) -> None:
        """Which model answers, and why it was taken if it was not asked for."""

    def note(self, text: str) -> None:
        """A remark to a human, before or after a reply."""

    def text(self, text: str) -> None:
        """A piece of the answer."""

    def call_started(self, call: Any) -> None:
        """A tool call begins to run."""

    def call_done(self, result: Any) -> None:
        """A tool call has its result."""

    def message(self, message: BaseMessage) -> None:
        """A new message of the conversation is complete."""

    def done(self, summary: RunSummary) -> None:
        """The run has ended."""

    def error(self, error: Exception) -> None:
        """Something failed."""


def printable(text: str) -> str:
    """Text without what steers a terminal or reorders a line: control characters (save line ends and tabs) and bidi overrides."""
    return _STEERING.sub("", text)


def escaped(text: str) -> str:
    """Text with the same characters written out (`\\x1b`), and line ends and tabs too: one line that shows what is there."""
    return "".join(repr(character)[1:-1] if _STEERING.match(character) or character in "\n\t" else character for character in text)


def one_line(error: BaseException) -> str:
    """An error as one line: its text, with its type where the text alone says little."""
    text = printable(" ".join(str(error).split()))
    if not text:
        return type(error).__name__
    return text if " " in text else f"{type(error).__name__}: {text}"


def print_error(error: BaseException) -> None:
    """One line on standard error."""
    sys.stdout.flush()
    print(f"error: {one_line(error)}", file=sys.stderr, flush=True)


def call_text(name: str, args: Any) -> str:
    """A call as it would stand in Python: `get_temperature(city="Paris")`."""
    if isinstance(args, Mapping):
        args = ", ".join(f"{key}={json.dumps(value, ensure_ascii=False, default=str)}" for key, value in args.items())
    return escaped(f"{name}({args or ''})")


def result_text(message: ToolMessage) -> str:
    """A result on one line, cut where it is long."""
    text = escaped(" ".join(text_of(message).split()))
    return text if len(text) <= _LONGEST_RESULT else text[: _LONGEST_RESULT - 1] + "…"


def usage_text(summary: RunSummary) -> str:
    """The last line of a run: turns, tokens, and why it ended where that is not the usual way."""
    parts = [f"{summary.turns} turn{'s' if summary.turns != 1 else ''}"]
    if summary.usage:
        parts.append(f"{summary.usage.get('input_tokens', 0):,} tokens in, {summary.usage.get('output_tokens', 0):,} out")
    if summary.stop_reason != "complete":
        parts.append(f"stopped: {summary.stop_reason}")
    return " · ".join(parts)
