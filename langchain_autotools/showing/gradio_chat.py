"""The view of runs as messages of Gradio's `Chatbot`, in plain dicts, without Gradio itself."""

import asyncio
import base64
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from html import escape, unescape
from typing import Any, Final, TypeAlias

from langchain_core.messages import BaseMessage, ToolMessage

from .. import event_types as kinds
from ..addresses import is_page
from ..encoders.public import public, titled_words_of_tool
from ..event_types import RunEvent
from ..executor.pending import PendingCall
from ..messages.blocks import standard_blocks
from ..messages.display import printable, short_result, text_and_media
from ..messages.metadata import text_of
from ..strict_json import mend_surrogates
from . import view_model as views
from .markdown import markdown_parts
from .page import part_text, value_text

_UPDATE_SECONDS: Final = 0.2
_IDLE_SECONDS: Final = 5.0  # a page that was closed is noticed when something is sent to it
_BRIEF: Final = 80
_EXPECTED: Final = ("complete", "calls_pending", "return_direct")
_WORDS: Final = {"writing": "is being written", "waiting": "waits for you", "interrupted": "interrupted"}
_BUSY: Final = ("writing", "running")
_ROLES: Final[Mapping[str, str]] = {"human": "user", "ai": "assistant"}
_ALL: Final = "all runs"

_MEANINGS: Final[Mapping[str, str]] = {
    "InvalidRequestError": "the model's server refused the request",
    "UnprocessableEntityError": "the model's server refused the request",
    "ContextOverflowError": "the conversation is too long for the model",
    "AuthenticationError": "the model's server did not accept the key",
    "PermissionDeniedError": "the key may not use this model",
    "ModelNotFoundError": "the model's server does not know the model",
    "RateLimitError": "the model's server has too much to do, or the account has reached its limit",
    "OverloadedError": "the model's server has too much to do",
    "ConnectionError": "the model's server cannot be reached",
    "TimeoutError": "the model's server did not answer in time",
    "DeadlineExceededError": "the model's server did not answer in time",
    "APIError": "the model's server had an error",
    "StatusError": "the model's server had an error",
}
"""Descriptions of the vendors' errors, by the end of their names."""

_OWN_MEANINGS: Final[Mapping[str, str]] = {
    "StreamError": "the model's answer cannot be read",
    "LimitReachedError": "a limit of the run was reached",
    "ConfigurationError": "it cannot work as it is set up",
}
_PAGE_POLICY: Final = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; form-action 'self'; base-uri 'none'; object-src 'none'"

_PAGE_STYLE: Final = """
.message, .sidebar label { overflow-wrap: anywhere; }
.message .md > div { margin: .45em 0; }
.message .thought-group .message-content { opacity: 1 !important; }
.approval .cm-gutters { color: var(--body-text-color-subdued) !important; }
body:not(.dark) .approval .cm-line span { color: inherit !important; }
.refused textarea { color: #b3261e !important; }
.dark .refused textarea { color: #ffb4ab !important; }
"""

_PAGE_SCRIPT: Final = """
let waiting = 0;
new MutationObserver(() => {
  const found = document.querySelectorAll('.approval, .refused textarea');
  if (found.length > waiting) for (const wait of [200, 1000]) setTimeout(() => {
    document.querySelectorAll('[aria-label="chatbot conversation"]').forEach(one => one.scrollTop = one.scrollHeight);
    found[0].scrollIntoView({block: 'nearest'});
  }, wait);
  waiting = found.length;
}).observe(document, {childList: true, subtree: true});
const draft = () => 'draft ' + location.search;
addEventListener('pagehide', () => sessionStorage.setItem(draft(), document.querySelector('.draft textarea')?.value || ''));
function keptDraft() { return sessionStorage.getItem(draft()) || ''; }
"""

CHAT_HEAD: Final = f"""<meta http-equiv="Content-Security-Policy" content="{_PAGE_POLICY}">
<style>{_PAGE_STYLE}</style>
<script>{_PAGE_SCRIPT}</script>"""
"""The HTML head of a page with a chat, for `launch(head=CHAT_HEAD)`.

The browser asks nobody else for anything and sends no form elsewhere. Components with the class `approval` are scrolled to when they come.
Colours of Gradio that can hardly be read are changed. What is in a text box with the class `draft` when the page is left or loads itself
again is what `keptDraft()` gives afterwards.
"""

_Message: TypeAlias = dict[str, Any]


class GradioChat:
    """A conversation in the form of Gradio's `Chatbot`, built from the events of its runs.

    What the model and others wrote is Markdown; HTML in it is text, and images that are elsewhere are links. Reasoning and each call
    have a panel of their own that can be folded: a call with its arguments, what its tool reports, what runs inside it, and its result.
    A run that ended otherwise than usual says so.

    Args:
        show_waiting: Whether calls that wait for a decision have a panel. A page that shows `pending` by itself says False; such a call has
            its panel, at its place, from when it was decided.

    Attributes:
        pending: The calls that wait for somebody to decide about them.
        is_running: Whether a run goes on.
        failed: The id of the last run where it has failed, which `Conversations.retry` takes; None where it has not.
        read: The ids of the user's messages that runs were begun with or have read.
    """

    def __init__(self, *, show_waiting: bool = True) -> None:
        self._show_waiting = show_waiting
        self.pending: list[PendingCall] = []
        self.is_running = False
        self.failed: str | None = None
        self.read: set[str] = set()
        self._view_model = views.ViewModel()
        self._run_id = ""
        self._shown: dict[views.PartView | str, _Message] = {}

    @property
    def messages(self) -> list[_Message]:
        """The messages, the value of `gr.Chatbot`."""
        return [message for part, message in self._shown.items() if message["content"] and not self._is_left_out(part)]

    def _is_left_out(self, part: views.PartView | str) -> bool:
        """Whether a call has no panel: the page shows it where it is decided, or it waited inside another one, which shows the result."""
        if not isinstance(part, views.CallView) or part.pending is None:
            return False
        if part.pending not in self.pending:
            return part.record is None
        has_begun = part.pending.kind == "elicitation" and part.record is not None  # what waits is a question, and not the call itself
        return not (self._show_waiting or has_begun)

    def show(self, event: RunEvent) -> None:
        """Process an event."""
        event = public(event)
        if event.parent_run_id is None:
            self._run_id = event.run_id
            if (note := _NOTES.get(type(event))) is not None:
                note(self, event)
            event = replace(event, run_id=_ALL)  # a call that waited in one run is answered in the next
        elif event.parent_run_id == self._run_id:
            event = replace(event, parent_run_id=_ALL)
        self._view_model.apply(event)
        for part in self._view_model.changed:
            self._shown[part] = _message_of(part)
        self._view_model.changed.clear()

    def _run_started(self, event: kinds.RunStarted) -> None:
        self.is_running, self.failed = True, None

    def _added(self, event: kinds.MessagesAdded) -> None:
        self.pending, self.failed = [], None
        self._view_model.leave_waiting()
        for message in event.messages:
            self.read.add(str(message.id))
            self._show(f"{event.run_id} {message.id}", message.type, _gradio_message(message))

    def _message(self, event: kinds.MessageDone) -> None:
        message = event.message
        if message.type == "ai":
            self._show(f"{event.run_id} {message.id} images", message.type, _gradio_images(message))
        elif message.type == "human":
            self.read.add(event.message_id)

    def _decided(self, event: kinds.CallReady | kinds.CallResult) -> None:
        """A run goes on with a call that was decided; the other calls wait on meanwhile."""
        self.pending = [call for call in self.pending if call.path or call.id != event.call_id]

    def _calls_pending(self, event: kinds.CallsPending) -> None:
        self.pending = list(event.calls)

    def _ended(self, event: kinds.RunEnded | kinds.RunFailed) -> None:
        reason = getattr(event, "stop_reason", None)
        self.is_running, self.failed = False, event.run_id if reason is None else None
        self.pending = self.pending if reason == "calls_pending" else []

    def _show(self, key: str, kind: str, content: str) -> None:
        if kind in _ROLES:
            self._shown[key] = {"role": _ROLES[kind], "content": content}


_NOTES: Final[Mapping[type[RunEvent], Callable[[GradioChat, Any], None]]] = {
    kinds.RunStarted: GradioChat._run_started,
    kinds.CallReady: GradioChat._decided,
    kinds.CallResult: GradioChat._decided,
    kinds.MessageDone: GradioChat._message,
    kinds.MessagesAdded: GradioChat._added,
    kinds.CallsPending: GradioChat._calls_pending,
    kinds.RunEnded: GradioChat._ended,
    kinds.RunFailed: GradioChat._ended,
}
"""What is noted beside the view model."""


async def gradio_chat(events: AsyncIterator[RunEvent], *, show_waiting: bool = True) -> AsyncGenerator[GradioChat, None]:
    """Yield the conversation whenever it has changed, for a Gradio handler that is an asynchronous generator.

    However fast the events come it is given five times a second at most, and every few seconds where none come, as Gradio ends a handler
    whose page was closed only when it gives something.

    Args:
        events: What `Conversations.aevents`, `DurableModel.aevents` or `aevents` returned. They are closed when the reader leaves.
        show_waiting: Whether calls that wait for a decision are among the messages, as in `GradioChat`.

    Returns:
        The same `GradioChat` each time, the first time before any event.

    Raises:
        BaseException: What the events raise, after what had come before has been given.
    """
    chat, changed = GradioChat(show_waiting=show_waiting), asyncio.Event()
    reader = asyncio.create_task(_read(events, chat, changed))
    try:
        yield chat
        while not reader.done():
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), _IDLE_SECONDS)
            await asyncio.sleep(_UPDATE_SECONDS)
            changed.clear()
            yield chat
        await reader
    finally:
        reader.cancel()
        await asyncio.wait([reader])


async def _read(events: AsyncIterator[RunEvent], chat: GradioChat, changed: asyncio.Event) -> None:
    try:
        async for event in events:
            chat.show(event)
            changed.set()
    finally:
        changed.set()
        if isinstance(events, AsyncGenerator):
            await events.aclose()


# ---------------------------------------------------------------------------------------------- messages


def _message_of(part: views.PartView) -> _Message:
    message = _MESSAGES[type(part)](part)
    return {"role": "assistant", **message} if isinstance(message, dict) else {"role": "assistant", "content": message}


def _text_message(written: views.TextView) -> _Message:
    shown = {"content": gradio_markdown(written.text)}
    return {**shown, "metadata": {"title": "Reasoning"}} if written.is_reasoning else shown


def _vendor_call_message(call: views.VendorCallView) -> _Message:
    result = "" if call.done is None or call.done.output is None else value_text(call.done.output, indent=2)
    texts = [_gradio_code(short_result(text)) for text in (call.written, result) if text]
    state = call.status.replace("_", " ") if call.state == "running" else "" if call.state == "done" else call.state
    brief = f"{state} {views.vendor_call_brief(call)}".strip()
    title = {"title": _gradio_words(call.name), "log": brief, "status": "pending" if call.state == "running" else "done"}
    shown = "\n\n".join([*texts, *([_block(_image_tag({"url": call.image}))] if call.image else [])])
    return {"content": shown or _gradio_words(call.state), "metadata": title}


def _address(url: str | None) -> str:
    """Return an address as a link of HTML within a line; nothing where it may be none."""
    shown = escape(url).translate(_REFERENCES) if is_page(url) else ""
    return f' <a href="{shown}" target="_blank" rel="noopener noreferrer nofollow">{shown}</a>' if shown else ""


def _title(call: views.CallView) -> dict[str, Any]:
    """Return the heading of a call's panel, which Gradio opens while the call runs and folds afterwards."""
    state = call.state
    detail = _WORDS.get(state, call.discarded or "")
    if call.result is not None:
        detail = _outcome(call, call.result.message)
    elif state == "running" and call.progress:
        detail = value_text(call.progress[-1])
    line = " ".join(detail.split())
    name = f"{call.name} (edited)" if call.is_edited else call.name
    title = {"title": _gradio_words(name), "log": line if len(line) <= _BRIEF else f"{line[: _BRIEF - 1]}…"}
    return title if state == "waiting" else {**title, "status": "pending" if state in _BUSY else "done"}


def _outcome(call: views.CallView, message: ToolMessage) -> str:
    """Return the outcome of a call as text: an error's sentence, or the rejection of a call."""
    text = text_and_media(message)
    if message.status != "error":
        return text
    try:
        why = str(json.loads(text)["error"])
    except (ValueError, TypeError, KeyError):
        why = text
    decision = None if call.record is None else call.record.decision
    if decision is None or decision.action != "reject":
        return why
    return f"Rejected: {decision.value}" if decision.value else "Rejected: it did not run."


def _details(call: views.CallView) -> str:
    record = call.shown
    args: Any = call.written if record is None else record.args if record.args is not None else record.arguments
    if record is None and call.pending is not None:
        args = call.pending.args
    texts = [value_text(args, indent=2), "\n".join(part_text(part) for run in call.runs for part in run.parts)]
    images = ""
    if call.result is not None:
        texts.append(_outcome(call, call.result.message))
        images = _gradio_images(call.result.message)
    said = "" if call.pending is None else gradio_words_of_tool(call.pending)
    return "\n\n".join([*(_gradio_code(short_result(text)) for text in texts if text), *(one for one in (said, images) if one)])


def gradio_words_of_tool(call: PendingCall) -> str:
    """Return what is known of a waiting call besides its arguments, as Markdown for Gradio: what an MCP server says of its tool.

    Args:
        call: The call. Of a question it is what the question has besides its words: the schema of the answer, or an address.
    """
    asked = {name: value for name, value in call.args.items() if name != "message"} if call.kind == "elicitation" else {}
    told = {**({"Expected answer": value_text(asked, indent=2)} if asked else {}), **titled_words_of_tool(call)}
    return "\n\n".join(f"{title}:\n\n{_gradio_code(text)}" for title, text in told.items())  # whole: somebody decides by it


def _end_text(end: views.EndView) -> str:
    if end.error is not None:
        return f"*The run failed: {_failure_text(end.error)}*"
    return "" if end.stop_reason in _EXPECTED else f"*The run was stopped: {str(end.stop_reason).replace('_', ' ')}*"


def _failure_text(error: BaseException) -> str:
    """Describe an error by its class alone, without its text, which may contain data not for the reader."""
    name = type(error).__name__
    if name == "RunFailedError":  # it was seen in a run that is kept: its text begins with the class
        name = str(error).partition(":")[0]
    if not name.isidentifier():
        return "it was ended from outside"
    meaning = _OWN_MEANINGS.get(name) or next((text for end, text in _MEANINGS.items() if name.endswith(end) and name != end), None)
    return f"{meaning} ({name})" if meaning else name


_MESSAGES: Final[Mapping[type, Callable[[Any], _Message | str]]] = {
    views.MessageView: lambda given: {"role": "user", "content": _gradio_message(given.message)},
    views.TextView: _text_message,
    views.CallView: lambda call: {"content": _details(call), "metadata": _title(call)},
    views.VendorCallView: _vendor_call_message,
    views.SourcesView: lambda found: "\n".join(
        f"{number}. {_gradio_words(views.source_name(one))}{_address(one.url)}" for number, one in enumerate(found.sources, 1)
    ),
    views.FileView: lambda shown: (
        "" if shown.event.mime_type.startswith("image/") else _gradio_words(views.file_name(shown.event))  # an image is in its message
    ),
    views.EndView: lambda end: gradio_markdown(_end_text(end)),
}
"""What each part is: a message of the assistant's, or its text."""


# --------------------------------------------------------------------------------------- text of a model or a client as Markdown for Gradio
#
# Gradio takes tags of HTML in Markdown for tags, forms and styles among them. So the text is made into HTML in which nothing comes from it
# but words. In Markdown that is blocks of HTML, which Gradio leaves alone. They begin with a tag, have no empty line, and whatever could
# mean something to Gradio is a character reference. Code is the exception: it is in a fence that it cannot end.


MATH_DELIMITERS: Final[list[dict[str, str | bool]]] = [
    {"left": "$$", "right": "$$", "display": True},
    {"left": "\\(", "right": "\\)", "display": False},
]
"""Delimiters for `gr.Chatbot(latex_delimiters=...)` that also render formulas within a line."""

_CODE = re.compile(r'<pre><code(?: class="language-([\w+#.-]+)")?>(.*)</code></pre>', re.DOTALL)
_MATH = re.compile(r'<span class="at-(math|inline_math)">(?:\$\$|\\\[|\\\()(.*?)(?:\$\$|\\\]|\\\))</span>')
_MEANS_MORE = re.compile(r"\$\$|\\[\[(]|%%%")  # to Gradio, which looks for formulas in code too
_REFERENCES: Final = {ord(mark): f"&#{ord(mark)};" for mark in "$\\%\n"}
_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp|avif|bmp|svg\+xml);base64,[A-Za-z0-9+/=]+")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*://")
_IMAGE_STYLE: Final = "width:auto;max-width:100%;max-height:28em;border-radius:8px"
_CONTAINED: Final = "contain:paint"  # a formula may ask to be drawn elsewhere


def gradio_markdown(text: str) -> str:
    """Return a text in Markdown that Gradio shows without HTML from the text.

    Args:
        text: What was written, also as far as it has been.
    """
    return "\n\n".join(_code_block(*code.groups()) if (code := _CODE.fullmatch(part)) else _block(part) for part in markdown_parts(text))


def _gradio_code(text: str) -> str:
    """Return text with every character shown literally."""
    return _code_block("text", escape(printable(mend_surrogates(text))))


def _gradio_words(text: str) -> str:
    """Return text on one line, with every character shown literally."""
    words = " ".join(printable(mend_surrogates(text)).split())
    return "".join(one if one.isalnum() or one in " _-,;" else f"&#{ord(one)};" for one in words)


def _gradio_images(message: BaseMessage) -> str:
    """Return the images in a message, from their data. For an image elsewhere, which is not fetched, its address."""
    return "\n\n".join(_block(_image_tag(block)) for block in standard_blocks(message) if block["type"] == "image")


def _gradio_message(message: BaseMessage) -> str:
    """Return the text of a message, and its images."""
    return "\n\n".join(part for part in (gradio_markdown(text_of(message)), _gradio_images(message)) if part)


def _image_tag(block: Mapping[str, Any]) -> str:
    address = str(block.get("url") or "")
    if data := block.get("base64"):
        data = base64.b64encode(data).decode() if isinstance(data, bytes) else data
        address = f"data:{block.get('mime_type') or 'image/png'};base64,{data}"
    if _IMAGE.fullmatch(address):
        return f'<img src="{address}" alt="image" style="{_IMAGE_STYLE}">'
    if is_page(address):
        return "".join(markdown_parts(f"Image: {address}"))
    return f"<p>Image: {escape(printable(mend_surrogates(address)))}</p>" if _ELSEWHERE.match(address) else "<p>[image]</p>"


def _block(html: str) -> str:
    """Return a block of HTML, on one line."""
    pieces, at = [], 0
    for math in _MATH.finditer(html):
        left, right = ("$$", "$$") if math[1] == "math" else ("\\(", "\\)")
        inside = f'<span style="{_CONTAINED};display:inline-block;max-width:100%">{left}{math[2].translate(_REFERENCES)}{right}</span>'
        pieces += [html[at : math.start()].translate(_REFERENCES), inside]
        at = math.end()
    return f"<div>{''.join(pieces)}{html[at:].translate(_REFERENCES)}</div>"


def _code_block(language: str | None, escaped: str) -> str:
    """Return code in a safe fence; as HTML if Gradio would process its content."""
    code = unescape(escaped)
    if language == "mermaid" or _MEANS_MORE.search(code):
        return _block(f"<pre><code>{escaped}</code></pre>")
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
    return f"{fence}{language or ''}\n{code}\n{fence}"
