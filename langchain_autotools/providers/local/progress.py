"""Progress messages on standard error for preparation steps."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

Advance = Callable[[int], object]
"""A function that is called after each step with the number of bytes."""


class Progress:
    """Lines and bars on standard error; no bar without a terminal.

    Args:
        show: False keeps silent.
        stream: The output stream; standard error, looked up at each use, unless given.
    """

    def __init__(self, show: bool = True, stream: TextIO | None = None) -> None:
        self.show = show
        self._stream = stream

    @property
    def stream(self) -> TextIO:
        """The output stream of the lines."""
        return self._stream or sys.stderr

    def say(self, line: str) -> None:
        """Write one line."""
        if self.show:
            print(line, file=self.stream, flush=True)

    @contextmanager
    def bar(self, label: str, total: int) -> Iterator[Advance]:
        """Show a bar that grows to `total` bytes while the body runs, then remove it.

        Args:
            label: The text before the bar.
            total: The number of bytes.
        """
        from tqdm import tqdm

        silent = None if self.show else True  # None: unless the stream is a terminal
        with tqdm(desc=label, total=total, unit="B", unit_scale=True, leave=False, file=self.stream, disable=silent) as bar:
            yield bar.update
