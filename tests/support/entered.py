"""Which functions a program enters: what a run does not use must not be among them."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def entered() -> Iterator[set[tuple[str, str]]]:
    """The functions that are entered meanwhile, in every thread."""
    seen: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            seen.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
