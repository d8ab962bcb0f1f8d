"""A conversation at a terminal with colours, by `rich`."""

from typing import TextIO

from rich.console import Console
from rich.text import Text

from .plain import PlainDisplay

__all__ = ["RichDisplay"]

_STYLES = {"quiet": "dim", "call": "cyan", "result": "green", "failure": "red"}


class RichDisplay(PlainDisplay):
    """The plain display with a colour for each kind of line.

    Args:
        stream: The terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._console = Console(file=stream, highlight=False)

    def _write(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style=_STYLES.get(style, "")), end="", soft_wrap=True)
        self._stream.flush()
