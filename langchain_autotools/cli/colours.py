"""A display with colours at a terminal, by `rich`."""

from typing import TextIO

from rich.console import Console
from rich.text import Text

from .display import PlainDisplay

_STYLES = {"quiet": "dim", "call": "cyan", "result": "green", "failure": "red"}


class RichDisplay(PlainDisplay):
    """The plain display with a colour for each kind of line.

    Args:
        answers: Where the text of answers goes.
        remarks: Where the rest goes. Of the two, what is no terminal gets no colours.
    """

    def __init__(self, answers: TextIO, remarks: TextIO) -> None:
        super().__init__(answers, remarks)
        self._consoles = {stream: Console(file=stream, highlight=False) for stream in (answers, remarks)}

    def _write(self, stream: TextIO, text: str, style: str = "") -> None:
        self._consoles[stream].print(Text(text, style=_STYLES.get(style, "")), end="", soft_wrap=True)
        stream.flush()
