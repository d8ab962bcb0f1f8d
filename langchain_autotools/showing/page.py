"""The view of runs as HTML, for notebooks or Gradio.

All of it works without scripts and without the styles, which some places where notebooks are read take away.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from ..addresses import is_page
from ..encoders.public import plain, titled_words_of_tool
from ..event_types import partial_arguments
from ..messages.calls import ToolCallRecord
from ..messages.display import call_text, escaped, printable, quoted, short_call, short_result, text_and_media
from ..strict_json import mend_surrogates
from . import view_model as views
from .markdown import markdown_html

_ONE_LINE: Final = 100  # a call that is longer opens while it is written
_BRIEF: Final = 160
_LEAST_SECONDS: Final = 0.1
_WORDS: Final = {"writing": "is being written", "waiting": "waits for you", "discarded": "came to nothing"}
_NEXT: Final = {
    "approval": "May it run with these arguments? It has not run. Decide: approve(), edit(...), reject(...) or respond(...).",
    "caller": "Its tool was only declared: run it yourself, and give the result to respond(...).",
    "client_tool": "It is for a tool on the user's machine: run it, and give the result to respond(...).",
    "queued": "It waits behind the calls before it, and runs once those are decided.",
    "elicitation": "Its server asks this question: give the answer to respond(...), or decline by reject(...).",
    "vendor_approval": "May its vendor run it? It has not run. Decide: approve() or reject(...).",
}
_IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif")
_IMAGE_STYLE: Final = "display:block;margin:.35em 0;max-width:100%;max-height:28em"
_IMAGE_ADDRESS: Final = re.compile(r"data:image/(?:png|jpeg|gif|webp|avif);base64,[A-Za-z0-9+/=]+")
_WAITS: Final = "{calls} for you. To go on, with pending_calls from langchain_autotools:"
_GO_ON: Final = "run = show(model.stream({history}, resume=[{decision} for call in pending_calls({source}){which}]))"


def part_html(part: views.PartView) -> str:
    """Return a part of a run as HTML.

    Nothing in it comes from the model or a tool but words: no tag, no address that is loaded. Formulas are not set either.
    """
    return f'<div class="at-piece tex2jax_ignore mathjax_ignore">{_HTML[type(part)](part)}</div>'


def _text_html(written: views.TextView) -> str:
    shown = markdown_html(written.text)
    if not written.is_reasoning:
        return shown
    last = written.text.rstrip().rpartition("\n")[2]
    brief = f"…{last[-_BRIEF:]}" if len(last) > _BRIEF else last
    return _folded("reasoning", '<span class="at-name">Reasoning</span>', [("brief", brief)], shown)


def part_text(part: views.PartView) -> str:
    """Return a part of a run as plain text, for places without HTML."""
    if isinstance(part, views.VendorCallView | views.SourcesView | views.FileView):
        return printable(mend_surrogates(views.vendor_text(part)))
    if isinstance(part, views.TextView):
        return printable(mend_surrogates("" if part.is_reasoning else part.text))
    if isinstance(part, views.MessageView):
        return printable(mend_surrogates(quoted(part.message)))
    if isinstance(part, views.EndView):
        return f"{waiting_text(part)}\n[{part.text}]" if part.waiting and part.top else f"[{part.text}]"
    if part.pending is not None and part.state == "waiting":
        told = [f"{title}: {text}" for title, text in titled_words_of_tool(part.pending).items()]
        return printable(mend_surrogates("\n".join([f"? {views.waiting_call(part.pending)}", *told, _NEXT[part.pending.kind]])))
    outcome = short_result(text_and_media(part.result.message)) if part.result is not None else part.state
    edited = " (edited)" if part.is_edited else ""
    return printable(mend_surrogates(f"→ {short_call(_call_line(part))}{edited}\n← {outcome}"))


# ---------------------------------------------------------------------------------------------- calls


def _call_html(call: views.CallView) -> str:
    state, text = call.state, _call_line(call)
    duration = call.result.duration if call.result is not None else 0.0
    time = f"{duration:.1f} s" if duration >= _LEAST_SECONDS else ""
    word = "" if state == "done" else _WORDS.get(state, state)
    marks = [("word", "edited" if call.is_edited else ""), ("brief", _brief(call)), ("word", word), ("time", time)]
    is_open = state in ("failed", "waiting") or (state == "running" and bool(call.runs)) or (state == "writing" and len(text) > _ONE_LINE)
    return _folded(state, _code_name(short_call(text)), marks, "".join(_details_html(call)), is_open=is_open)


def _call_line(call: views.CallView) -> str:
    if call.shown is not None:
        return call_text(call.shown)
    so_far = ToolCallRecord("", call.name, call.written, partial_arguments(call.written))
    return f"{call_text(so_far)[:-1]}…"


def _brief(call: views.CallView) -> str:
    """Return the latest state of a call, for one line."""
    if call.result is not None:
        shown = text_and_media(call.result.message)
    elif call.discarded is not None:
        shown = call.discarded
    else:
        shown = value_text(call.progress[-1]) if call.progress else ""
    return views.brief(shown)


def _details_html(call: views.CallView) -> Iterator[str]:
    yield _arguments_html(call)
    if call.pending is not None:
        yield from (_block_html(title, text) for title, text in titled_words_of_tool(call.pending).items())
        yield f"<p>{escape(_NEXT[call.pending.kind])}</p>"
    if call.discarded is not None:
        yield f"<p>{_words(call.discarded)}</p>"
    if call.progress:
        yield _block_html("Progress", "\n".join(value_text(value) for value in call.progress))
    for run in call.runs:
        name = f'<p class="at-label">{_words(run.name)}</p>' if run.name else ""
        yield f'<div class="at-run">{name}{"".join(map(part_html, run.parts))}</div>'
    if call.result is not None:
        failed = call.result.message.status == "error"
        yield _block_html("Error" if failed else "Result", short_result(text_and_media(call.result.message)))


def _arguments_html(call: views.CallView) -> str:
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


def _end_html(end: views.EndView) -> str:
    bad = "" if end.error is None else " at-bad"
    end_html = f'<p class="at-end{bad}">{_words(end.text)}</p>'
    if not (end.waiting and end.top):
        return end_html
    told, line = waiting_text(end).split("\n", 1)
    return f'<p>{escape(told)}</p><pre class="at-next">{_lines(line)}</pre>{end_html}'


# ---------------------------------------------------------------------------------------------- calls that wait


def waiting_text(end: views.EndView) -> str:
    """Return how many calls wait, and on a line of its own the Python that decides about them, by the names of the how-to on notebooks.

    Args:
        end: The end of a run with calls that wait.
    """
    count, kinds = len(end.waiting), {call.kind for call in end.waiting}
    answered = kinds - {"approval", "vendor_approval", "queued"}
    answer = f"call.respond({_answer(end)})"
    approve = "call.approve()" if not answered else f'call.approve() if "approval" in call.kind else {answer}'
    decision = approve if kinds - answered - {"queued"} else answer
    history, source = ("history", "history") if end.in_history else ("[*history, run]", "run")  # right whether or not the run was added
    which = ' if call.kind != "queued"' if "queued" in kinds else ""
    waits = _WAITS.format(calls="1 call waits" if count == 1 else f"{count} calls wait")
    return f"{waits}\n{_GO_ON.format(history=history, decision=decision, source=source, which=which)}"


def _answer(end: views.EndView) -> str:
    """Return an answer to be filled in: of one question its fields, else a text."""
    questions = [call.args.get("schema") for call in end.waiting if call.kind == "elicitation"]
    fields = questions[0].get("properties") if len(questions) == 1 and isinstance(questions[0], Mapping) else None
    names = ", ".join(f"{json.dumps(str(name))}: ..." for name in fields) if isinstance(fields, Mapping) else "..."
    return f"{{{names}}}" if questions else '"..."'


# ---------------------------------------------------------------------------------------------- what the vendor does


def _vendor_call_html(call: views.VendorCallView) -> str:
    word = call.status.replace("_", " ") if call.state == "running" else ""
    marks = [("brief", views.vendor_call_brief(call)), ("word", word or ("" if call.state == "done" else call.state))]
    details = _block_html("Input", short_result(call.written)) if call.written else ""
    if call.done is not None and call.done.output is not None:
        details += _block_html("Error" if call.done.failed else "Result", short_result(value_text(call.done.output, indent=2)))
    image = _image_html(call.image, "partial image") if call.image else ""
    return _folded(call.state, _code_name(call.name), marks, details) + image


def _sources_html(found: views.SourcesView) -> str:
    rows = [f"<li>{_linked_html(views.source_name(one), one.url)}</li>" for one in found.sources]
    return f'<p class="at-label">Sources</p><ol>{"".join(rows)}</ol>' if rows else ""


def _linked_html(name: str, address: str | None) -> str:
    """Return a name, as a link where the address may be one."""
    if not is_page(address):
        return _words(name)
    return f'<a href="{escape(address)}" target="_blank" rel="noopener noreferrer nofollow">{_words(name)}</a>'


def _file_html(shown: views.FileView) -> str:
    event = shown.event
    if event.mime_type in _IMAGES and event.data is not None:
        return _image_html(f"data:{event.mime_type};base64,{event.data}", event.name or "image")
    return f"<p>{_linked_html(views.file_name(event), event.url)}</p>"


def _image_html(address: str, name: str) -> str:
    is_image = _IMAGE_ADDRESS.fullmatch(address) is not None
    return f'<img src="{address}" alt="{_words(name)}" style="{_IMAGE_STYLE}">' if is_image else f"<p>{_words(name)}</p>"


_HTML: Final[Mapping[type, Callable[[Any], str]]] = {
    views.MessageView: lambda given: (
        f'<div class="at-given">{_block_html(_words(given.message.type), text_and_media(given.message))}</div>'
    ),
    views.TextView: _text_html,
    views.CallView: _call_html,
    views.VendorCallView: _vendor_call_html,
    views.SourcesView: _sources_html,
    views.FileView: _file_html,
    views.EndView: _end_html,
}


# ---------------------------------------------------------------------------------------------- pieces


def _code_name(text: str) -> str:
    return f'<code class="at-name">{_words(text)}</code>'


def _folded(state: str, name: str, marks: Sequence[tuple[str, str]], inner: str, *, is_open: bool = False) -> str:
    """Return what can be folded; of the marks behind its name those that say something."""
    summary = name + "".join(f' <span class="at-{kind}">{_words(words)}</span>' for kind, words in marks if words)
    opened = " open" * is_open
    return f'<details class="at-fold at-{state}"{opened}><summary>{summary}</summary><div class="at-body">{inner}</div></details>'


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
