"""The view of runs as HTML, for notebooks or Gradio.

All of it works without scripts and without the styles, which some places where notebooks are read take away.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Any, Final

from ..addresses import is_page
from ..encoders.public import plain, titled_words_of_tool
from ..event_types import SourceFound, partial_arguments
from ..executor.pending import PendingCall
from ..messages.calls import ToolCallRecord
from ..messages.display import call_text, escaped, printable, quoted, short_call, short_result, text_and_media
from ..strict_json import mend_surrogates
from .markdown import markdown_html
from .view_model import (
    CallView,
    EndView,
    FileView,
    MessageView,
    PartView,
    RunView,
    SourcesView,
    TextView,
    VendorCallView,
    file_name,
    source_name,
    vendor_call_brief,
    vendor_text,
)

_ONE_LINE: Final = 100  # a call that is longer opens while it is written
_BRIEF: Final = 160
_LEAST_SECONDS: Final = 0.1
_WORDS: Final = {"writing": "is being written", "waiting": "waits for you", "discarded": "came to nothing"}
_NEXT: Final = {
    "approval": "It has not run. Decide: approve(), edit(...), reject(...) or respond(...).",
    "caller": "Its tool was only declared: run it yourself, and give the result to respond(...).",
    "client_tool": "It is for a tool on the user's machine: run it, and give the result to respond(...).",
    "queued": "It waits behind the calls before it, and runs once those are decided.",
    "elicitation": "Its server asks a question: give the answer to respond(...), or decline by reject(...).",
    "vendor_approval": "Its vendor runs it once it is approved. Decide: approve() or reject(...).",
}
_IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif")
_IMAGE_STYLE: Final = "display:block;margin:.35em 0;max-width:100%;max-height:28em"
_IMAGE_ADDRESS: Final = re.compile(r"data:image/(?:png|jpeg|gif|webp|avif);base64,[A-Za-z0-9+/=]+")
_WHAT_NEXT: Final = "decisions = [call.approve() for call in pending_calls(run)]\nrun = model.resume(history, decisions)"


def part_html(part: PartView) -> str:
    """Return a part of a run as HTML.

    Nothing in it comes from the model or a tool but words: no tag, no address that is loaded. Formulas are not set either.
    """
    if isinstance(part, VendorCallView | SourcesView | FileView):
        inner = _VENDOR_HTML[type(part)](part)
    elif isinstance(part, TextView):
        inner = _reasoning_html(part.text) if part.is_reasoning else markdown_html(part.text)
    elif isinstance(part, MessageView):
        inner = f'<div class="at-given">{_block_html(_words(part.message.type), text_and_media(part.message))}</div>'
    else:
        inner = _call_html(part) if isinstance(part, CallView) else _end_html(part)
    return f'<div class="at-piece tex2jax_ignore mathjax_ignore">{inner}</div>'


def _reasoning_html(text: str) -> str:
    last = text.rstrip().rpartition("\n")[2]
    brief = f"…{last[-_BRIEF:]}" if len(last) > _BRIEF else last
    summary = f'<span class="at-name">Reasoning</span> <span class="at-brief">{_words(brief)}</span>'
    return _folded("reasoning", summary, markdown_html(text), is_open=False)


def part_text(part: PartView) -> str:
    """Return a part of a run as plain text, for places without HTML."""
    if isinstance(part, VendorCallView | SourcesView | FileView):
        return printable(mend_surrogates(vendor_text(part)))
    if isinstance(part, TextView):
        return printable(mend_surrogates("" if part.is_reasoning else part.text))
    if isinstance(part, MessageView):
        return printable(mend_surrogates(quoted(part.message)))
    if isinstance(part, EndView):
        return f"[{part.text}]"
    outcome = short_result(text_and_media(part.result.message)) if part.result is not None else part.state
    edited = " (edited)" if part.is_edited else ""
    return printable(mend_surrogates(f"→ {short_call(_call_line(part))}{edited}\n← {outcome}"))


# ---------------------------------------------------------------------------------------------- calls


def _call_html(call: CallView) -> str:
    state, text = call.state, _call_line(call)
    duration = call.result.duration if call.result is not None else 0.0
    time = f"{duration:.1f} s" if duration >= _LEAST_SECONDS else ""
    word = "" if state == "done" else _WORDS.get(state, state)
    marks = (("word", "edited" if call.is_edited else ""), ("brief", _brief(call)), ("word", word), ("time", time))
    shown = "".join(f' <span class="at-{kind}">{_words(words)}</span>' for kind, words in marks if words)
    summary = f'<code class="at-name">{_words(short_call(text))}</code>{shown}'
    is_open = state in ("failed", "waiting") or (state == "running" and bool(call.runs)) or (state == "writing" and len(text) > _ONE_LINE)
    return _folded(state, summary, "".join(_details_html(call)), is_open=is_open)


def _call_line(call: CallView) -> str:
    if call.shown is not None:
        return call_text(call.shown)
    so_far = ToolCallRecord("", call.name, call.written, partial_arguments(call.written))
    return f"{call_text(so_far)[:-1]}…"


def _brief(call: CallView) -> str:
    """Return the latest state of a call, for one line."""
    if call.result is not None:
        shown = text_and_media(call.result.message)
    elif call.discarded is not None:
        shown = call.discarded
    else:
        shown = value_text(call.progress[-1]) if call.progress else ""
    line = " ".join(shown[: 2 * _BRIEF].split())
    return f"{line[:_BRIEF]}…" if len(line) > _BRIEF else line


def _details_html(call: CallView) -> Iterator[str]:
    yield _arguments_html(call)
    if call.pending is not None:
        yield from (_block_html(title, text) for title, text in titled_words_of_tool(call.pending).items())
        yield f"<p>{escape(_next_html(call.pending))}</p>"
    if call.discarded is not None:
        yield f"<p>{_words(call.discarded)}</p>"
    if call.progress:
        yield _block_html("Progress", "\n".join(value_text(value) for value in call.progress))
    yield from (_run_html(run) for run in call.runs)
    if call.result is not None:
        failed = call.result.message.status == "error"
        yield _block_html("Error" if failed else "Result", short_result(text_and_media(call.result.message)))


def _arguments_html(call: CallView) -> str:
    """Return the arguments by name, in full if a decision is needed."""
    if call.pending is not None:
        args: Any = call.pending.args
    elif call.shown is not None:
        args = call.shown.args
    else:
        args = partial_arguments(call.written)
    if args is None:
        return _block_html("Arguments", short_result(call.record.arguments if call.record is not None else call.written))
    texts = {name: _one_argument(value) if call.pending is not None else short_result(_one_argument(value)) for name, value in args.items()}
    rows = "".join(f"<tr><th>{_words(name)}</th><td><pre>{_lines(text)}</pre></td></tr>" for name, text in texts.items())
    return f"<table><tbody>{rows}</tbody></table>" if rows else ""


def _next_html(pending: PendingCall) -> str:
    return _NEXT[pending.kind]


def _run_html(run: RunView) -> str:
    name = f'<p class="at-label">{_words(run.name)}</p>' if run.name else ""
    return f'<div class="at-run">{name}{"".join(part_html(part) for part in run.parts)}</div>'


def _end_html(end: EndView) -> str:
    bad = "" if end.error is None else " at-bad"
    end_html = f'<p class="at-end{bad}">{_words(end.text)}</p>'
    if not (end.waiting and end.top):
        return end_html
    count = len(end.waiting)
    waits = "1 call waits" if count == 1 else f"{count} calls wait"
    return f"<p>{waits} for you. To go on, for instance:</p><pre>{escape(_WHAT_NEXT)}</pre>{end_html}"


# ---------------------------------------------------------------------------------------------- what the vendor does


def _vendor_call_html(call: VendorCallView) -> str:
    word = call.status.replace("_", " ") if call.state == "running" else ""
    marks = (("brief", vendor_call_brief(call)), ("word", word or ("" if call.state == "done" else call.state)))
    shown = "".join(f' <span class="at-{kind}">{_words(words)}</span>' for kind, words in marks if words)
    details = _block_html("Input", short_result(call.written)) if call.written else ""
    if call.done is not None and call.done.output is not None:
        details += _block_html("Error" if call.done.failed else "Result", short_result(value_text(call.done.output, indent=2)))
    image = _image_html(call.image, "partial image") if call.image else ""
    return _folded(call.state, f'<code class="at-name">{_words(call.name)}</code>{shown}', details, is_open=False) + image


def _sources_html(found: SourcesView) -> str:
    rows = [f"<li>{_source_html(one)}</li>" for one in found.sources]
    return f'<p class="at-label">Sources</p><ol>{"".join(rows)}</ol>' if rows else ""


def _source_html(found: SourceFound) -> str:
    name = _words(source_name(found))
    if not is_page(found.url):
        return name
    return f'<a href="{escape(found.url)}" target="_blank" rel="noopener noreferrer nofollow">{name}</a>'


def _file_html(shown: FileView) -> str:
    event = shown.event
    if event.mime_type in _IMAGES and event.data is not None:
        return _image_html(f"data:{event.mime_type};base64,{event.data}", event.name or "image")
    if is_page(event.url):
        return f'<p><a href="{escape(event.url)}" target="_blank" rel="noopener noreferrer nofollow">{_words(file_name(event))}</a></p>'
    return f"<p>{_words(file_name(event))}</p>"


def _image_html(address: str, name: str) -> str:
    is_image = _IMAGE_ADDRESS.fullmatch(address) is not None
    return f'<img src="{address}" alt="{_words(name)}" style="{_IMAGE_STYLE}">' if is_image else f"<p>{_words(name)}</p>"


_VENDOR_HTML: Mapping[type, Callable[[Any], str]] = {VendorCallView: _vendor_call_html, SourcesView: _sources_html, FileView: _file_html}


# ---------------------------------------------------------------------------------------------- pieces


def _folded(state: str, summary: str, inner: str, *, is_open: bool) -> str:
    return (
        f'<details class="at-fold at-{state}"{" open" * is_open}><summary>{summary}</summary><div class="at-body">{inner}</div></details>'
    )


def _block_html(label: str, text: str) -> str:
    return f'<p class="at-label">{label}</p><pre>{_lines(text)}</pre>'


def value_text(value: Any, indent: int | None = None) -> str:
    """Return a tool's value as text: text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False, indent=indent)


def _one_argument(value: Any) -> str:
    """Return an argument's value: multi-line text as it is, everything else as JSON."""
    is_text = isinstance(value, str) and "\n" not in value
    return json.dumps(value, ensure_ascii=False) if is_text else value_text(value, indent=2)


def _words(text: str) -> str:
    """Return text on one line, with control characters escaped."""
    return escape(escaped(mend_surrogates(text)))


def _lines(text: str) -> str:
    """Return text of several lines, with control characters escaped."""
    return "\n".join(map(_words, text.split("\n")))
