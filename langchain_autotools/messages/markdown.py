"""Markdown of messages and runs, for notebooks."""

import html
import re

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from .calls import ToolCallRecord, calls_of
from .carrier import new_messages
from .endings import HoldsRun, held_message
from .live import was_shown
from .metadata import own_metadata
from .printable import call_text, printable, run_text, short_call, short_result, text_and_media

_INLINE = re.compile(r"([\\`*_\[\]|~$])")
_LINE_START = re.compile(r"^(\d{0,9})([-#+=.):])")
_BACKTICKS = re.compile(r"`+")


def markdown_of(message: BaseMessage | HoldsRun) -> str:
    """Return a message as Markdown; for a run message its texts, calls with results, turns and tokens.

    What the model and the tools wrote is shown as it stands: Markdown and HTML in it are not rendered, so that nothing in it can
    load an image or pose as something else. Long results are cut, with a note.

    Args:
        message: The result of `invoke` or of an agent's `run`, the sum of a stream's chunks, or any other message.
    """
    run = held_message(message)
    brought = new_messages(run) or [run]
    answered = {one.tool_call_id for one in brought if isinstance(one, ToolMessage)}
    calls = {call.id: call_text(call) for call in _all_calls(brought)}
    parts: list[str] = []
    for one in brought:
        if isinstance(one, ToolMessage):
            failed = " *failed*" if one.status == "error" else ""
            parts += [_code(calls.get(one.tool_call_id) or one.name or "tool") + failed, _fenced(text_and_media(one))]
        else:
            open_calls = [call.id for call in _all_calls([one]) if call.id not in answered]
            parts += [_paragraph(text_and_media(one)), *(f"{_code(calls[call_id])} *no result*" for call_id in open_calls)]
    return "\n\n".join(part for part in [*parts, _summary_line(run)] if part)


def run_markdown(message: BaseMessage) -> str | None:
    """Return a run message as Markdown, one line if the run has been shown already; None for other messages."""
    if was_shown(message):
        return f"*The message of this run, with {len(new_messages(message))} new messages*"
    return markdown_of(message) if "stop_reason" in own_metadata(message) and new_messages(message) else None


def _all_calls(messages: list[BaseMessage]) -> list[ToolCallRecord]:
    return [call for message in messages if isinstance(message, AIMessage) for call in calls_of(message)]


def _summary_line(message: BaseMessage) -> str:
    return f"*{_escaped_line(run_text(message))}*" if "stop_reason" in own_metadata(message) else ""


# ---------------------------------------------------------------------------------------------- text that Markdown leaves alone


def _paragraph(text: str) -> str:
    """Return text as a Markdown paragraph, line by line."""
    return "  \n".join(_escaped_line(line) for line in printable(text).strip("\n").split("\n"))


def _escaped_line(line: str) -> str:
    words = line.lstrip(" \t")
    indent = line[: len(line) - len(words)].expandtabs(4)
    shown = _LINE_START.sub(r"\1\\\2", _INLINE.sub(r"\\\1", html.escape(words.rstrip(), quote=False)))
    return "&nbsp;" * len(indent) + shown


def _code(text: str) -> str:
    """Return one line as a code span."""
    text = short_call(text)
    marks = "`" * (_longest_marks(text) + 1)
    return f"{marks}{text}{marks}" if len(marks) == 1 else f"{marks} {text} {marks}"


def _fenced(text: str) -> str:
    """Return text as a code block, truncated if it is long."""
    text = short_result(text)
    marks = "`" * max(3, _longest_marks(text) + 1)
    return f"{marks}text\n{text}\n{marks}"


def _longest_marks(text: str) -> int:
    return max((len(marks) for marks in _BACKTICKS.findall(text)), default=0)
