"""What every display is told, and how an error becomes one line."""

import sys

from langchain_core.messages import BaseMessage, ToolMessage

from langchain_autotools.executor import ToolCallResult
from langchain_autotools.messages.calls import ToolCallRecord
from langchain_autotools.messages.metadata import text_of
from langchain_autotools.messages.printable import escaped, printable

_LONGEST_RESULT = 200


class Display:
    """Is told what happens, in order; shows nothing of it. The two call methods may be called from other threads."""

    prompt = ""
    """What stands before the user's line in a session."""

    question = ""
    """What stands before the answer to whether a call may run."""

    edit_question = ""
    """What stands before the arguments that it is to run with instead."""

    def model(self, name: str, reason: str | None) -> None:
        """Which model answers, and why it was taken if it was not asked for."""

    def note(self, text: str) -> None:
        """A remark to a human, before or after a reply."""

    def text(self, text: str) -> None:
        """A piece of the answer."""

    def call_waits(self, call: ToolCallRecord) -> None:
        """A tool call waits until a human has said whether it may run."""

    def call_started(self, call: ToolCallRecord) -> None:
        """A tool call begins to run."""

    def call_done(self, result: ToolCallResult) -> None:
        """A tool call has its result."""

    def message(self, message: BaseMessage) -> None:
        """A new message of the conversation is complete."""

    def done(self, run: BaseMessage) -> None:
        """The run has ended; its last message, or the last chunk of its stream, describes it."""

    def error(self, error: Exception) -> None:
        """Something failed."""


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


def result_text(message: ToolMessage) -> str:
    """A result on one line, cut where it is long."""
    text = escaped(" ".join(text_of(message).split()))
    return text if len(text) <= _LONGEST_RESULT else text[: _LONGEST_RESULT - 1] + "…"
