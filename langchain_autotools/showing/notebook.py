"""`show`: live display of a run in a notebook, or as lines where there is none."""

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import aclosing, closing, suppress
from contextvars import copy_context
from types import TracebackType
from typing import Any, Final, Protocol, Self, overload

from langchain_core.messages import AIMessage, BaseMessage

from .. import event_types as kinds
from ..encoders.finished_runs import events_of, history_events
from ..errors import ConfigurationError
from ..event_reader import AsyncEventStream, EventStream, aevents, events
from ..event_types import RunEvent
from ..messages.metadata import mark_shown
from ..messages.run_messages import HoldsRun
from .page import part_html, part_text, waiting_text
from .view_model import EndView, Lines, PartView, ViewModel

_INTERVAL_SECONDS: Final = 0.08  # between two drawings, at least
_REST_FACTOR: Final = 5  # how many times as long as a drawing took is left to the run before the next one
_NOTICED_SECONDS: Final = 0.5
_NOT_SHOWABLE: Final = "show takes what stream() or astream() returned, a run, a message or a history (a list of messages), not {}"


@overload
def show(stream: Iterator[Any]) -> AIMessage: ...


@overload
def show(stream: AsyncIterator[Any]) -> Coroutine[Any, Any, AIMessage]: ...


@overload
def show(stream: HoldsRun) -> AIMessage: ...


@overload
def show(stream: BaseMessage | Sequence[BaseMessage]) -> None: ...


def show(stream: Any) -> Any:
    """Show a run live, `run = show(model.stream(messages))`, or a finished run, a message or a history.

    In a cell of Jupyter or marimo the model's text is shown as Markdown, its reasoning folded. Each call is shown with its arguments
    (already while they are written), progress and result, and what runs inside a tool under its call. Calls that wait are shown with what
    can be done about them. At the end come the tokens and why the run ended, where that is unusual. Anywhere else the same is printed as
    plain text, without reasoning.

    Args:
        stream: What `stream` or `astream` of a model, an agent, a chain or a graph returned, before anything of it was read. Or what has
            ended: what `invoke` of a model or `run` of an agent returned, any other message, or a history (a list of messages), which is
            shown with its questions.

    Returns:
        The run message, as `invoke` returns it; of an asynchronous stream something to await that gives it:
        `await show(model.astream(...))`. Of a chain or a graph, the message of the last run that was made in it. Of a message or a history
        that was given nothing: what a cell ends in would be shown again.

    Raises:
        ConfigurationError: `stream` is none of these, or no run was made in it.
        BaseException: What ended the run, after it has been shown that it failed or, at an interrupt, that it was interrupted. The run
            is closed then.
    """
    if isinstance(stream, HoldsRun):
        _show(events_of(stream))
        mark_shown(stream.message)
        return stream.message
    if isinstance(stream, AIMessage):
        return _show(events_of(stream))
    if isinstance(stream, BaseMessage | list | tuple):
        history = [stream] if isinstance(stream, BaseMessage) else stream
        if strange := [type(one).__name__ for one in history if not isinstance(one, BaseMessage)]:
            raise ConfigurationError(f"show takes a history as a list of messages, and this one has a {strange[0]} in it")
        return _show(history_events(history))
    if isinstance(stream, AsyncIterator):
        return _ashow(aevents(stream))
    if not isinstance(stream, Iterator):
        raise ConfigurationError(_NOT_SHOWABLE.format(type(stream).__name__))
    told = events(stream)
    _show(told)
    return _run_message(told)


def _show(happened: Any) -> None:
    """Show events and messages, and close what gives them."""
    with _screen() as output, closing(happened):
        for one in happened:
            output.show(one)


async def _ashow(stream: AsyncEventStream) -> AIMessage:
    async def stay_awake() -> None:
        """Keep an idle event loop awake to interrupts: a kernel cancels a cell's task without waking the loop."""
        while True:
            await asyncio.sleep(_NOTICED_SECONDS)

    awake = asyncio.create_task(stay_awake())
    try:
        with _screen() as output:
            async with aclosing(stream):
                async for event in stream:
                    output.show(event)
    finally:
        awake.cancel()
    return _run_message(stream)


def _run_message(stream: EventStream | AsyncEventStream) -> AIMessage:
    message = stream.message
    mark_shown(message)
    return message


# ---------------------------------------------------------------------------------------------- screens: a cell of a notebook, or lines


class _Screen(Protocol):
    """The interface of outputs for a run's events. As a context manager it learns whether the run failed."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

    def show(self, one: RunEvent | BaseMessage) -> None:
        """Show an event, or a message of a model's input."""


def _screen() -> _Screen:
    """Return the output for the environment of this program."""
    marimo = sys.modules.get("marimo")
    if marimo is not None and marimo.running_in_notebook():
        return CellScreen(_MarimoCell(), marimo.Thread)
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and "text/html" in shell.display_formatter.active_types:
        return CellScreen(_JupyterCell(), threading.Thread)
    return _LineScreen()


class _LineScreen(Lines):
    """An output of lines on standard output."""

    def __init__(self) -> None:
        super().__init__(sys.stdout, sys.stdout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None and not (isinstance(self.last, EndView) and self.last.error is not None):
            with suppress(BrokenPipeError):  # nobody reads any more
                self.show(kinds.RunFailed(run_id="", error=error))
        elif error is None and isinstance(self.last, EndView) and self.last.waiting:
            self.note(waiting_text(self.last))


# ---------------------------------------------------------------------------------------------- cells of notebooks


class _Cell(Protocol):
    """The interface of a notebook cell's output."""

    def draw(self, parts: Iterable[PartView]) -> None:
        """Show these parts: new ones at the end, known ones in their place."""


_STYLE: Final = """<style>
.at-piece { --at-line: rgba(128,128,128,.3); --at-faint: rgba(128,128,128,.1); margin: 0; padding: 0; line-height: 1.5; }
.at-piece p { margin: .35em 0; }
.at-piece :is(ul, ol, blockquote) { margin: .35em 0; }
.at-piece :is(ul, ol) { padding-left: 1.8em; list-style: disc; }
.at-piece ol { list-style: decimal; }
.at-piece li { margin: .1em 0; }
.at-piece blockquote { padding-left: .75em; border-left: 3px solid var(--at-line); opacity: .85; }
.at-piece :is(p, li, td, th) > code { padding: .1em .3em; background: var(--at-faint); border-radius: 4px; font-size: .92em; }
.at-piece a { color: color-mix(in srgb, #3b82d1 60%, currentColor); }
.at-piece pre { margin: .25em 0; padding: .5em .75em; max-height: 22em; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere;
  background: var(--at-faint); border: 0; border-radius: 6px; font: .9em/1.45 var(--jp-code-font-family, ui-monospace, monospace); }
.at-piece pre code { padding: 0; background: none; font: inherit; color: inherit; }
.at-piece.at-piece table { margin: .35em 0; border: 0; border-collapse: collapse; font-size: inherit; table-layout: auto; }
.at-piece.at-piece.at-piece tr { background: none; }
.at-piece.at-piece :is(th, td) { padding: .25em .75em; text-align: left; vertical-align: top; border: 1px solid var(--at-line);
  background: none; }
.at-heading { font-size: 1.1em; }
.at-heading-1, .at-heading-2 { font-size: 1.25em; }
.at-fold { margin: .3em 0; border: 1px solid var(--at-line); border-left: 3px solid var(--at-colour, var(--at-line)); border-radius: 6px; }
.at-fold > summary { display: flex; gap: .75em; align-items: baseline; padding: .35em .75em; cursor: pointer; list-style: none; }
.at-fold > summary::-webkit-details-marker { display: none; }
.at-fold > summary::before { content: "▸"; opacity: .55; width: .6em; flex: none; }
.at-fold[open] > summary::before { content: "▾"; }
.at-fold > summary > * { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.at-fold > summary > .at-name { background: none; padding: 0; color: inherit; flex: 0 1 auto; max-width: 70%; }
.at-brief { flex: 1 1 0; min-width: 0; opacity: .7; }
.at-word { flex: none; margin-left: auto; color: color-mix(in srgb, var(--at-colour) 60%, currentColor); }
.at-time { flex: none; margin-left: auto; opacity: .55; font-size: .9em; }
.at-body { padding: 0 .75em .4em 2.1em; }
.at-piece.at-piece .at-body > table th { font-weight: 500; opacity: .75; border: 0; padding: .25em .75em .25em 0; }
.at-piece.at-piece .at-body > table td { border: 0; padding: 0; width: 100%; }
.at-label { font-size: .85em; opacity: .65; }
.at-run { margin: .4em 0; padding-left: .9em; border-left: 2px solid var(--at-line); }
.at-next { user-select: all; }
.at-given > pre { border-left: 3px solid #3b82d1; }
.at-end { font-size: .85em; opacity: .65; }
.at-bad, .at-failed { --at-colour: #d1453b; }
.at-bad { color: color-mix(in srgb, var(--at-colour) 60%, currentColor); opacity: 1; }
.at-done { --at-colour: #3d9a57; }
.at-running { --at-colour: #3b82d1; }
.at-waiting { --at-colour: #c98a1b; }
.at-reasoning { border-style: none; }
.at-reasoning > summary { padding-left: 0; opacity: .7; }
.at-reasoning > summary > .at-brief { opacity: 1; }
.at-reasoning > .at-body { padding-left: 1.35em; opacity: .8; }
:is(.at-writing, .at-running) > summary > .at-word { animation: at-pulse 1.6s ease-in-out infinite; }
.at-writing pre { display: flex; flex-direction: column-reverse; }
@keyframes at-pulse { 50% { opacity: .35; } }
@media (prefers-reduced-motion: reduce) { .at-word { animation: none !important; } }
</style>"""


class _JupyterCell:
    """A Jupyter cell. Each part is an output of its own, so that opened parts stay open while others change."""

    def __init__(self) -> None:
        self._outputs: dict[PartView, Any] = {}

    def draw(self, parts: Iterable[PartView]) -> None:
        """Create or update the outputs of these parts."""
        from IPython.display import display

        for part in parts:
            output = self._outputs.get(part)
            style = _STYLE if next(iter(self._outputs), part) is part else ""
            bundle = {"text/html": style + part_html(part), "text/plain": part_text(part)}
            if output is None:
                self._outputs[part] = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
            else:
                output.update(bundle, raw=True)


class _MarimoCell:
    """A marimo cell, whose single output is replaced."""

    def __init__(self) -> None:
        self._shown: dict[PartView, str] = {}

    def draw(self, parts: Iterable[PartView]) -> None:
        """Replace the output with these parts."""
        import marimo

        self._shown |= {part: part_html(part) for part in parts}
        marimo.output.replace(marimo.Html(_STYLE + "".join(self._shown.values())))


class CellScreen:
    """Draws the view of runs into a cell, from a thread of its own, at a rate that a reader can follow.

    Args:
        cell: Where to draw.
        new_thread: Makes a thread that may draw there.
    """

    def __init__(self, cell: _Cell, new_thread: Callable[..., threading.Thread]) -> None:
        self._cell = cell
        self._view_model = ViewModel()
        self._lock = threading.Lock()
        self._changed, self._over = threading.Event(), threading.Event()
        self._due = 0.0
        self._thread: threading.Thread | None = new_thread(target=copy_context().run, args=(self._paint,), daemon=True)

    def __enter__(self) -> Self:
        try:
            if self._thread is not None:
                self._thread.start()
        except RuntimeError:  # the system gives no further thread, or (in a browser) none at all: each event draws, where it is due
            self._thread = None
        return self

    def show(self, one: RunEvent | BaseMessage) -> None:
        """Process an event, or a message of a model's input, and have it drawn."""
        with self._lock:
            if isinstance(one, BaseMessage):
                self._view_model.add_input(one)
            else:
                self._view_model.apply(one)
        self._changed.set()
        if self._thread is None and time.monotonic() >= self._due:
            self._draw()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._changed.set()
        if self._thread is not None:
            self._thread.join()
        if error is not None:
            self._view_model.break_off(error)
        self._draw()

    def _paint(self) -> None:
        while not self._over.is_set():
            self._changed.wait()
            self._changed.clear()
            self._draw()
            self._over.wait(max(0.0, self._due - time.monotonic()))

    def _draw(self) -> None:
        began = time.monotonic()
        with self._lock:
            changed, self._view_model.changed = self._view_model.changed, {}
            if not changed:
                return
            self._cell.draw(changed)
        took = time.monotonic() - began
        self._due = began + took + max(_INTERVAL_SECONDS, _REST_FACTOR * took)
