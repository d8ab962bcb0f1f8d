"""Messages as text that is safe to show to people, plain or as Markdown, in IPython too."""

import html
import json
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from .calls import ToolCallRecord, calls_of
from .metadata import own_metadata, text_of, was_shown
from .run_messages import HoldsRun, held_message, new_messages, run_usage

# ---------------------------------------------------------------------------------------------- markdown
# Markdown of messages and runs, for notebooks.


_INLINE = re.compile(r"([\\`*_\[\]|~$])")
_LINE_START = re.compile(r"^(\d{0,9})([-#+=.):])")
_BACKTICKS = re.compile(r"`+")


def markdown_of(message: BaseMessage | HoldsRun) -> str:
    """Return a message as Markdown; for a run message its texts, calls with results, turns and tokens.

    What the model and the tools wrote is shown as it is: Markdown and HTML in it are not rendered, so that nothing in it can
    load an image or pose as something else. Long results are cut, with a note.

    Args:
        message: The result of `invoke` or of an agent's `run`, the sum of a stream's chunks, or any other message.
    """
    run = held_message(message)
    brought = new_messages(run) or [run]
    answered = {one.tool_call_id for one in brought if isinstance(one, ToolMessage)}
    calls = {call.id: call for call in _all_calls(brought)}
    parts: list[str] = []
    for one in brought:
        if isinstance(one, ToolMessage):
            parts += [_answered_call(calls.get(one.tool_call_id), one), _fenced(text_and_media(one))]
        else:
            open_calls = [call.id for call in _all_calls([one]) if call.id not in answered]
            text = _paragraph(text_and_media(one))
            taken = one.type == "human" and one is not run  # what a run took of its user is quoted
            parts += [
                re.sub("(?m)^", "> ", text) if taken else text,
                *(f"{_code(call_text(calls[call_id]))} *no result*" for call_id in open_calls),
            ]
    own = own_metadata(run)
    about = summary_text(own.get("turns", 1), run_usage(run), own.get("stop_reason", "complete"))
    summary = f"*{_escaped_line(about)}*" if "stop_reason" in own else ""
    return "\n\n".join(part for part in [*parts, summary] if part)


def run_markdown(message: BaseMessage) -> str | None:
    """Return a run message as Markdown, one line if the run has been shown already; None for other messages."""
    if was_shown(message):
        return f"*The message of this run, with {len(new_messages(message))} new messages*"
    return markdown_of(message) if "stop_reason" in own_metadata(message) and new_messages(message) else None


def _answered_call(call: ToolCallRecord | None, result: ToolMessage) -> str:
    """Return the line of a call that has a result: with the arguments that it ran with."""
    name = result.name or "tool"
    ran = (call or ToolCallRecord(result.tool_call_id, name, "")).carried_out(result)
    marks = [*(["edited"] if ran.edited else []), *(["failed"] if result.status == "error" else [])]
    return " ".join([_code(name if ran.args is None and call is None else call_text(ran)), *(f"*{mark}*" for mark in marks)])


def _all_calls(messages: list[BaseMessage]) -> list[ToolCallRecord]:
    return [call for message in messages if isinstance(message, AIMessage) for call in calls_of(message)]


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


# ---------------------------------------------------------------------------------------------- plain text


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


def summary_text(turns: int, usage: Any, stop_reason: str) -> str:
    """Return the summary of a run with these values."""
    parts = [f"{turns} turn{'s' if turns != 1 else ''}"]
    if usage and isinstance(usage, Mapping):
        parts.append(f"{usage.get('input_tokens', 0):,} tokens in, {usage.get('output_tokens', 0):,} out")
    if stop_reason != "complete":
        parts.append(f"stopped: {stop_reason}")
    return " · ".join(parts)


# ---------------------------------------------------------------------------------------------- notebook
#
# Display of run messages as Markdown in a running IPython.
#
# A method of the message cannot do it: run messages are plain `AIMessage`s, of no class of our own.

_AI_MESSAGE = ("langchain_core.messages.ai", "AIMessage")


def show_runs() -> None:
    """Register a formatter with the running IPython, unless the user has registered one."""
    with suppress(Exception):  # no display is worth an import that fails
        formatter = sys.modules["IPython"].get_ipython().display_formatter.formatters["text/markdown"]
        if formatter.for_type_by_name(*_AI_MESSAGE) is None:
            formatter.for_type_by_name(*_AI_MESSAGE, run_markdown)
