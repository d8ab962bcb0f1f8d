"""What a tool call knows of the runs inside it."""

import json
import logging
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

from langchain_core.messages import AIMessage, ToolMessage

from ..messages.calls import ToolCallRecord
from ..messages.metadata import InnerUsage, text_of
from ..messages.run_messages import stop_reason
from ..strict_json import mend_surrogates
from .pending import pending_calls

_logger = logging.getLogger("langchain_autotools")


_Rules = TypeVar("_Rules")


_LEFT_OPEN = "A run inside this tool ended with open calls, which have no result: {calls}."


_NOT_FINISHED = "The run inside this tool did not finish: it ended as {reason}."


_MOST_CHARACTERS = 200


class InnerBudget(NamedTuple):
    """What bounds and counts the runs inside one tool call.

    Attributes:
        bound: Returns the settings of a run inside, within what the run that made the call has left.
        used: What runs inside have used.
    """

    bound: Callable[[Any], Any]
    used: InnerUsage


class NestedRuns:
    """The runs inside one tool call, and the calls that they left open.

    Args:
        around: The execution of the call around them; None where no tool is being run.

    Attributes:
        around: The value of the argument.
        used: What counts what a run inside uses; None if nothing does.
    """

    def __init__(self, around: Any = None) -> None:
        self.around = around
        self.used: InnerUsage | None = None
        self._open: dict[str, str] = {}
        self._named: set[str] = set()

    def leave_open(self, calls: Iterable[Any], *, named: bool = False) -> None:
        """Record the calls that a run left open; `named`: the tool's own result names them."""
        described = {call.id: _described(call) for call in calls}
        self._open.update(described)
        if named:
            self._named.update(described)

    def take_up(self, call_ids: Iterable[str | None]) -> None:
        """Remove calls that a run inside the tool continues."""
        for call_id in call_ids if self._open else ():
            self._open.pop(str(call_id), None)

    def governs(self, approvals: _Rules) -> _Rules:
        """Return the approvals of a run inside: its own."""
        return approvals

    def bound(self, settings: _Rules) -> _Rules:
        """Return the settings of a run inside, within what the run around has left: its own."""
        return settings

    def note(self, call: ToolCallRecord) -> str | None:
        """Log the open calls; return a sentence about those that the result does not name, or None.

        Args:
            call: The call around the runs.
        """
        if not self._open:
            return None
        _logger.warning("a run inside tool %s ended with open calls, call %s: %s", call.name, call.id, ", ".join(self._open.values()))
        others = [text for call_id, text in self._open.items() if call_id not in self._named]
        return _LEFT_OPEN.format(calls=", ".join(others)) if others else None


current_nested_runs: ContextVar[NestedRuns | None] = ContextVar("autotools_nested_runs", default=None)
"""The runs inside the tool call that is being executed in this context; None outside of tools."""


_FINISHED = ("complete", "return_direct", None)
"""The stop reasons of a run that ended by itself: with an answer, or with a result for the user."""


def run_content(run: AIMessage) -> str | ToolMessage:
    """Return the text of a run that a tool returned; for an unfinished run an error with the text and the open calls."""
    text = text_of(run)
    if stop_reason(run) in _FINISHED:
        return text
    pending = pending_calls(run)
    around = current_nested_runs.get()
    if around is not None:
        around.leave_open(pending, named=True)
    opened = _LEFT_OPEN.format(calls=", ".join(map(_described, pending))) if pending else ""
    text_note = f"Its text: {text}" if text.strip() else ""
    error = " ".join(filter(None, [_NOT_FINISHED.format(reason=stop_reason(run)), opened, text_note]))
    content = json.dumps({"error": mend_surrogates(error)}, ensure_ascii=False)
    return ToolMessage(content=content, tool_call_id="", status="error")


def _described(call: Any) -> str:
    arguments = json.dumps(call.args, ensure_ascii=False, default=str)
    short = arguments if len(arguments) <= _MOST_CHARACTERS else f"{arguments[:_MOST_CHARACTERS]}..."
    return f"{call.name}({short})"
