"""Displays of a conversation: as text, as text with colours, or as JSON events."""

import os
import sys

from .base import Display, one_line
from .events import EventDisplay
from .plain import PlainDisplay

__all__ = ["Display", "make_display", "one_line"]


def make_display(*, as_json: bool) -> Display:
    """Return the display for the output: JSON events on request, colours at a terminal with `rich`, else plain text.

    Plain text keeps answers (standard output) apart from everything else (standard error). NO_COLOR, if set, means no colours.
    """
    if as_json:
        return EventDisplay(sys.stdout)
    if not os.environ.get("NO_COLOR") and (sys.stdout.isatty() or sys.stderr.isatty()):
        try:
            from .colours import RichDisplay
        except ImportError:
            pass
        else:
            return RichDisplay(sys.stdout, sys.stderr)
    return PlainDisplay(sys.stdout, sys.stderr)
