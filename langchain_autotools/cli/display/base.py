"""The interface of displays, and the one-line form of errors."""

import re
import sys
from collections.abc import Collection

from langchain_autotools.errors import ConfigurationError
from langchain_autotools.event_types import RunEvent
from langchain_autotools.messages.calls import ToolCallRecord
from langchain_autotools.messages.printable import printable
from langchain_autotools.showing.lines import JoinedText


class Display:
    """A display that shows nothing, with a method for each notification."""

    prompt = ""
    """The prompt before the user's line in a session."""

    question = ""
    """The prompt for approval of a call."""

    edit_question = ""
    """The prompt for the edited arguments of a call."""

    asked: Collection[str] | None = ()
    """The tools whose calls need the human's approval; None for all."""

    joined: JoinedText
    """Joins the texts of a run's messages."""

    def model(self, name: str, reason: str | None) -> None:
        """Show the model that answers, and the reason for a default choice."""

    def note(self, text: str) -> None:
        """Show a remark, before or after a reply."""

    def show(self, event: RunEvent) -> None:
        """Show an event of the run."""

    def call_waits(self, call: ToolCallRecord) -> None:
        """Show a tool call that waits for approval."""

    def call_allowed(self, call: ToolCallRecord) -> None:
        """Show an approved call."""

    def interrupted(self) -> None:
        """Show that the human has interrupted the run."""

    def offered(self, name: str) -> None:
        """Show a model's name that may be requested."""

    def error(self, error: Exception) -> None:
        """Show an error."""


def one_line(error: BaseException) -> str:
    """Return an error as one line: its text, with its type if the text alone says little."""
    text = printable(" ".join(str(error).split()))
    if not text:
        return type(error).__name__
    return text if " " in text else f"{type(error).__name__}: {text}"


def error_line(error: BaseException) -> str:
    """Return an error as one line, with the option for a missing constructor argument."""
    text = one_line(error)
    wanted = re.search(r"\bgive (\w+)", text, re.IGNORECASE) if isinstance(error, ConfigurationError) else None
    return f"{text} (on the command line: -o {wanted[1]} VALUE)" if wanted else text


def print_error(error: BaseException) -> None:
    """Print one line on standard error."""
    sys.stdout.flush()
    print(f"error: {error_line(error)}", file=sys.stderr, flush=True)
