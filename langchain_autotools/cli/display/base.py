"""What every display is told, and how an error becomes one line."""

import re
import sys
from collections.abc import Collection

from langchain_autotools.errors import ConfigurationError
from langchain_autotools.event_types import RunEvent
from langchain_autotools.messages.calls import ToolCallRecord
from langchain_autotools.messages.printable import printable
from langchain_autotools.showing.lines import JoinedText


class Display:
    """Is told what happens, in order; shows nothing of it."""

    prompt = ""
    """What stands before the user's line in a session."""

    question = ""
    """What stands before the answer to whether a call may run."""

    edit_question = ""
    """What stands before the arguments that it is to run with instead."""

    asked: Collection[str] | None = ()
    """The tools about whose calls a human is asked before they run; None for all."""

    joined: JoinedText
    """Joins the texts of a run's messages."""

    def model(self, name: str, reason: str | None) -> None:
        """Which model answers, and why it was taken if it was not asked for."""

    def note(self, text: str) -> None:
        """A remark to a human, before or after a reply."""

    def take(self, event: RunEvent) -> None:
        """An event of the run."""

    def call_waits(self, call: ToolCallRecord) -> None:
        """A tool call waits until a human has said whether it may run."""

    def call_allowed(self, call: ToolCallRecord) -> None:
        """The human has said that it may, as it is here."""

    def interrupted(self) -> None:
        """The human has interrupted what went on."""

    def offered(self, name: str) -> None:
        """A model that may be asked for by this name."""

    def error(self, error: Exception) -> None:
        """Something failed."""


def one_line(error: BaseException) -> str:
    """An error as one line: its text, with its type where the text alone says little."""
    text = printable(" ".join(str(error).split()))
    if not text:
        return type(error).__name__
    return text if " " in text else f"{type(error).__name__}: {text}"


def error_line(error: BaseException) -> str:
    """An error as one line, with the option that gives the constructor argument it asks for."""
    text = one_line(error)
    wanted = re.search(r"\bgive (\w+)", text, re.IGNORECASE) if isinstance(error, ConfigurationError) else None
    return f"{text} (on the command line: -o {wanted[1]} VALUE)" if wanted else text


def print_error(error: BaseException) -> None:
    """One line on standard error."""
    sys.stdout.flush()
    print(f"error: {error_line(error)}", file=sys.stderr, flush=True)
