"""Outputs for runs: a cell of Jupyter or marimo, else lines on standard output. Each library is imported only where it runs."""

import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import copy_context
from types import TracebackType
from typing import Any, ClassVar, Final, Protocol, Self

from langchain_core.messages import BaseMessage

from .. import event_types as kinds
from ..event_tables import EventTable
from ..event_types import RunEvent
from .lines import Lines, LinesRun
from .page import STYLE, part_html, part_text
from .view_model import PartView, ViewModel

_INTERVAL_SECONDS: Final = 0.08  # between two drawings, at least
_SHARE: Final = 5  # how many times as long as a drawing took is left to the run before the next one


class Screen(Protocol):
    """The interface of outputs for a run's events. As a context manager it learns whether the run failed."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

    def show(self, event: RunEvent) -> None:
        """Show an event."""

    def show_input(self, message: BaseMessage) -> None:
        """Show a message of a model's input."""


def screen() -> Screen:
    """Return the output for the environment of this program."""
    marimo = sys.modules.get("marimo")
    if marimo is not None and marimo.running_in_notebook():
        return CellScreen(MarimoCell(), marimo.Thread)
    if shows_html():
        return CellScreen(JupyterCell(), threading.Thread)
    return LineScreen()


def shows_html() -> bool:
    """Whether the program runs in an IPython that shows HTML, such as a notebook's."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "text/html" in shell.display_formatter.active_types


class LineScreen(Lines):
    """An output of lines on standard output."""

    def __init__(self) -> None:
        super().__init__(sys.stdout, sys.stdout)
        self._failed_run = False

    def show(self, event: RunEvent) -> None:
        """Print an event."""
        self._failed_run = False
        super().show(event)

    def _failed(self, event: kinds.RunFailed, run: LinesRun) -> None:
        super()._failed(event, run)
        self._failed_run = True

    table: ClassVar = EventTable("show without a notebook", {**Lines.table, kinds.RunFailed: _failed})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None and not self._failed_run:
            with suppress(BrokenPipeError):  # nobody reads any more
                self.show(kinds.RunFailed(run_id="", error=error))


# ---------------------------------------------------------------------------------------------- cells of notebooks


class Cell(Protocol):
    """The interface of a notebook cell's output."""

    def draw(self, parts: Iterable[PartView]) -> None:
        """Show these parts: new ones at the end, known ones in their place."""


class JupyterCell:
    """A Jupyter cell. Each part is an output of its own, so that opened parts stay open while others change."""

    def __init__(self) -> None:
        self._outputs: dict[PartView, Any] = {}

    def draw(self, parts: Iterable[PartView]) -> None:
        """Create or update the outputs of these parts."""
        from IPython.display import display

        for part in parts:
            output = self._outputs.get(part)
            style = STYLE if next(iter(self._outputs), part) is part else ""
            bundle = {"text/html": style + part_html(part), "text/plain": part_text(part)}
            if output is None:
                self._outputs[part] = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
            else:
                output.update(bundle, raw=True)


class MarimoCell:
    """A marimo cell, whose single output is replaced."""

    def __init__(self) -> None:
        self._shown: dict[PartView, str] = {}

    def draw(self, parts: Iterable[PartView]) -> None:
        """Replace the output with these parts."""
        import marimo

        self._shown |= {part: part_html(part) for part in parts}
        marimo.output.replace(marimo.Html(STYLE + "".join(self._shown.values())))


class CellScreen:
    """Draws the view of runs into a cell, from a thread of its own, at a rate that a reader can follow.

    Args:
        cell: Where to draw.
        new_thread: Makes a thread that may draw there.
    """

    def __init__(self, cell: Cell, new_thread: Callable[..., threading.Thread]) -> None:
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

    def show(self, event: RunEvent) -> None:
        """Process an event, and have it drawn."""
        with self._lock:
            self._view_model.apply(event)
        self._draw_soon()

    def show_input(self, message: BaseMessage) -> None:
        """Add a message of a model's input, and draw it."""
        with self._lock:
            self._view_model.add_input(message)
        self._draw_soon()

    def _draw_soon(self) -> None:
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
        self._due = began + took + max(_INTERVAL_SECONDS, _SHARE * took)
