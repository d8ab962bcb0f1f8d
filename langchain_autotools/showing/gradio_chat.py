"""The view of runs as messages of Gradio's `Chatbot`, in plain dicts, without Gradio itself."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, TypeAlias

from langchain_core.messages import ToolMessage

from .. import event_types as kinds
from .. import vendor_event_types as vendor_kinds
from ..addresses import is_page
from ..event_tables import NOTHING, EventTable
from ..event_types import RunEvent
from ..executor.approval.pending import PendingCall
from ..messages.printable import short_result, text_and_media
from .failures import failure_text
from .gradio_text import gradio_code, gradio_image, gradio_images, gradio_link, gradio_markdown, gradio_message, gradio_words
from .page import part_text, value_text
from .vendor_words import file_name, source_name, vendor_call_brief
from .view_model import CallView, EndView, FileView, MessageView, PartView, SourcesView, VendorCallView, ViewModel

_UPDATE_SECONDS: Final = 0.2
_IDLE_SECONDS: Final = 5.0  # a page that was closed is noticed when something is sent to it
_BRIEF: Final = 80
_EXPECTED: Final = ("complete", "calls_pending", "return_direct")
_WORDS: Final = {"writing": "is being written", "waiting": "waits for you", "interrupted": "interrupted"}
_BUSY: Final = ("writing", "running")
_ROLES: Final[Mapping[str, str]] = {"human": "user", "ai": "assistant"}
_ALL: Final = "all runs"

_Message: TypeAlias = dict[str, Any]


class GradioChat:
    """A conversation in the form of Gradio's `Chatbot`, built from the events of its runs.

    What the model and others wrote is Markdown; HTML in it is text, and images that stand elsewhere are links. Reasoning and each call
    have a panel of their own that can be folded: a call with its arguments, what its tool reports, what runs inside it, and its result.
    A run that ended otherwise than usual says so.

    Attributes:
        pending: The calls that wait for somebody to decide about them.
        is_running: Whether a run goes on.
        failed: The id of the last run where it has failed, which `Conversations.retry` takes; None where it has not.
    """

    def __init__(self) -> None:
        self.pending: list[PendingCall] = []
        self.is_running = False
        self.failed: str | None = None
        self._view_model = ViewModel()
        self._run_id = ""
        self._shown: dict[PartView | str, _Message] = {}

    @property
    def messages(self) -> list[_Message]:
        """The messages, the value of `gr.Chatbot`."""
        return [message for part, message in self._shown.items() if message["content"] and not self._is_decided(part)]

    def _is_decided(self, part: PartView | str) -> bool:
        """Whether a part stands for a call that waited inside another one, and no longer waits: that one shows what came of it."""
        if not isinstance(part, CallView) or part.record is not None or part.pending is None:
            return False
        return part.pending not in self.pending

    def show(self, event: RunEvent) -> None:
        """Process an event."""
        if event.parent_run_id is None:
            self._run_id = event.run_id
            self._note(event)
            event = replace(event, run_id=_ALL)  # a call that waited in one run is answered in the next
        elif event.parent_run_id == self._run_id:
            event = replace(event, parent_run_id=_ALL)
        self._view_model.apply(event)
        for part in self._view_model.changed:
            self._shown[part] = _message_of(part)
        self._view_model.changed.clear()

    def _note(self, event: RunEvent) -> None:
        note = _NOTES.get(type(event))
        if note is not None:
            note(self, event)

    def _run_started(self, event: kinds.RunStarted) -> None:
        self.is_running, self.failed = True, None

    def _added(self, event: kinds.MessagesAdded) -> None:
        self.pending, self.failed = [], None
        for message in event.messages:
            self._show(f"{event.run_id} {message.id}", message.type, gradio_message(message))

    def _message(self, event: kinds.MessageDone) -> None:
        self._show(f"{event.run_id} {event.message.id} images", event.message.type, gradio_images(event.message))

    def _decided(self, event: kinds.CallReady | kinds.CallResult) -> None:
        """A run goes on with a call that was decided; the other calls wait on meanwhile."""
        self.pending = [call for call in self.pending if call.path or call.id != event.call_id]

    def _calls_pending(self, event: kinds.CallsPending) -> None:
        self.pending = list(event.calls)

    def _run_ended(self, event: kinds.RunEnded) -> None:
        self.is_running = False
        self.pending = self.pending if event.stop_reason == "calls_pending" else []
        self.failed = None

    def _run_failed(self, event: kinds.RunFailed) -> None:
        self.is_running, self.pending, self.failed = False, [], event.run_id

    def _show(self, key: str, kind: str, content: str) -> None:
        if kind in _ROLES:
            self._shown[key] = {"role": _ROLES[kind], "content": content}


_NOTES: Final = EventTable[Callable[[GradioChat, Any], None]](
    "Gradio chat",
    {
        kinds.RunStarted: GradioChat._run_started,
        kinds.TextDelta: NOTHING,
        kinds.ReasoningDelta: NOTHING,
        kinds.CallStarted: NOTHING,
        kinds.CallArgumentsDelta: NOTHING,
        kinds.CallReady: GradioChat._decided,
        kinds.CallDiscarded: NOTHING,
        kinds.CallProgress: NOTHING,
        kinds.CallResult: GradioChat._decided,
        kinds.MessageDone: GradioChat._message,
        kinds.MessageDiscarded: NOTHING,
        kinds.ModelChanged: NOTHING,
        kinds.MessagesAdded: GradioChat._added,
        kinds.TurnUsage: NOTHING,
        kinds.CallsPending: GradioChat._calls_pending,
        vendor_kinds.VendorCallStarted: NOTHING,
        vendor_kinds.VendorCallProgress: NOTHING,
        vendor_kinds.VendorCallDone: NOTHING,
        vendor_kinds.SourceFound: NOTHING,
        vendor_kinds.FileMade: NOTHING,
        kinds.RunEnded: GradioChat._run_ended,
        kinds.RunFailed: GradioChat._run_failed,
    },
)


async def gradio_chat(events: AsyncIterator[RunEvent]) -> AsyncGenerator[GradioChat, None]:
    """Yield the conversation whenever it has changed, for a Gradio handler that is an asynchronous generator.

    However fast the events come it is given five times a second at most, and every few seconds where none come, as Gradio ends a handler
    whose page was closed only when it gives something.

    Args:
        events: What `Conversations.aevents`, `DurableModel.aevents` or `aevents` returned. They are closed when the reader leaves.

    Returns:
        The same `GradioChat` each time, the first time before any event.

    Raises:
        BaseException: What the events raise, after what had come before has been given.
    """
    chat, changed = GradioChat(), asyncio.Event()
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


def _message_of(part: PartView) -> _Message:
    if isinstance(part, VendorCallView | SourcesView | FileView):
        return _VENDOR_MESSAGES[type(part)](part)
    if isinstance(part, CallView):
        return {"role": "assistant", "content": _details(part), "metadata": _title(part)}
    if isinstance(part, EndView):
        return {"role": "assistant", "content": gradio_markdown(_end(part))}
    if isinstance(part, MessageView):
        return {"role": "user", "content": gradio_message(part.message)}
    shown = {"role": "assistant", "content": gradio_markdown(part.text)}
    return {**shown, "metadata": {"title": "Reasoning"}} if part.is_reasoning else shown


def _vendor_call(call: VendorCallView) -> _Message:
    result = "" if call.done is None or call.done.output is None else value_text(call.done.output, indent=2)
    texts = [gradio_code(short_result(text)) for text in (call.written, result) if text]
    state = call.status.replace("_", " ") if call.state == "running" else "" if call.state == "done" else call.state
    brief = f"{state} {vendor_call_brief(call)}".strip()
    title = {"title": gradio_words(call.name), "log": brief, "status": "pending" if call.state == "running" else "done"}
    shown = "\n\n".join([*texts, *([gradio_image(call.image)] if call.image else [])])
    return {"role": "assistant", "content": shown or gradio_words(call.state), "metadata": title}


def _sources(found: SourcesView) -> _Message:
    rows = (f"{number}. {gradio_words(source_name(one))}{_address(one.url)}" for number, one in enumerate(found.sources, 1))
    return {"role": "assistant", "content": "\n".join(rows)}


def _address(url: str | None) -> str:
    return f" {gradio_link(url)}" if is_page(url) else ""


def _file(shown: FileView) -> _Message:
    """Return a file that is no image: an image stands in its message."""
    event = shown.event
    return {"role": "assistant", "content": "" if event.mime_type.startswith("image/") else gradio_words(file_name(event))}


_VENDOR_MESSAGES: Mapping[type, Callable[[Any], _Message]] = {VendorCallView: _vendor_call, SourcesView: _sources, FileView: _file}


def _title(call: CallView) -> dict[str, Any]:
    """Return the heading of a call's panel, which Gradio opens while the call runs and folds afterwards."""
    state = call.state
    detail = _WORDS.get(state, call.discarded or "")
    if call.result is not None:
        detail = _outcome(call, call.result.message)
    elif state == "running" and call.progress:
        detail = value_text(call.progress[-1])
    line = " ".join(detail.split())
    title = {"title": gradio_words(call.name), "log": line if len(line) <= _BRIEF else f"{line[: _BRIEF - 1]}…"}
    return title if state == "waiting" else {**title, "status": "pending" if state in _BUSY else "done"}


def _outcome(call: CallView, message: ToolMessage) -> str:
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


def _details(call: CallView) -> str:
    record = call.record
    decision = None if record is None else record.decision
    args: Any = call.written if record is None else record.args if record.args is not None else record.arguments
    if record is None and call.pending is not None:
        args = call.pending.args
    if decision is not None and decision.action == "edit":
        args = decision.value
    texts = [value_text(args, indent=2), "\n".join(part_text(part) for run in call.runs for part in run.parts)]
    images = ""
    if call.result is not None:
        texts.append(_outcome(call, call.result.message))
        images = gradio_images(call.result.message)
    return "\n\n".join([*(gradio_code(short_result(text)) for text in texts if text), *([images] if images else [])])


def _end(end: EndView) -> str:
    if isinstance(end.event, kinds.RunFailed):
        return f"*The run failed: {failure_text(end.event.error)}*"
    reason = end.event.stop_reason
    return "" if reason in _EXPECTED else f"*The run was stopped: {reason.replace('_', ' ')}*"
