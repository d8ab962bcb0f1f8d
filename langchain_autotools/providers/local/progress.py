"""Telling a waiting human, on standard error, what is prepared and how far it is."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

__all__ = ["Advance", "Progress"]

Advance = Callable[[int], None]
"""Told after each step how many bytes it brought."""


class Progress:
    """Lines and bars on standard error: `rich` where it is installed, plain text otherwise, no bar where nobody watches.

    Args:
        show: False keeps silent.
        stream: Where to write; standard error, looked up at each use, unless given.
    """

    def __init__(self, show: bool = True, stream: TextIO | None = None) -> None:
        self.show = show
        self._stream = stream

    @property
    def stream(self) -> TextIO:
        """Where the lines go."""
        return self._stream or sys.stderr

    def say(self, line: str) -> None:
        """One line of its own."""
        if self.show:
            print(line, file=self.stream, flush=True)

    @contextmanager
    def bar(self, label: str, total: int) -> Iterator[Advance]:
        """A bar that grows to `total` bytes while the body runs; it is gone afterwards."""
        if not (self.show and self.stream.isatty()):
            yield lambda _count: None
            return
        with self._rich_bar(label, total) if _rich_is_installed() else self._plain_bar(label, total) as advance:
            yield advance

    @contextmanager
    def _rich_bar(self, label: str, total: int) -> Iterator[Advance]:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        columns: tuple[Any, ...] = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with RichProgress(*columns, console=Console(file=self.stream), transient=True) as bars:
            task = bars.add_task(label, total=total)
            yield lambda count: bars.advance(task, count)

    @contextmanager
    def _plain_bar(self, label: str, total: int) -> Iterator[Advance]:
        done = 0
        shown = -1

        def advance(count: int) -> None:
            nonlocal done, shown
            done += count
            percent = min(100, 100 * done // max(total, 1))
            if percent > shown:
                shown = percent
                self.stream.write(f"\r{label} {percent:3} %")
                self.stream.flush()

        try:
            yield advance
        finally:
            self.stream.write("\r" + " " * (len(label) + 6) + "\r")
            self.stream.flush()


def _rich_is_installed() -> bool:
    try:
        import rich.progress  # noqa: F401
    except ImportError:
        return False
    return True
