"""Texts as lines that each keep their own end, so that an edit leaves all others byte for byte."""

import re
from typing import NamedTuple


class Line(NamedTuple):
    """A line and what ends it: a line feed, with or without a carriage return, or nothing at the end of the text."""

    text: str
    end: str


def lines_of(text: str) -> list[Line]:
    """Return the lines of a text. The last one has no end; it is empty where the text ends in a line feed."""
    pieces = [*re.split(r"(\r?\n)", text), ""]
    return [Line(*pair) for pair in zip(pieces[::2], pieces[1::2], strict=True)]


def newline_of(text: str, default: str = "\n") -> str:
    """Return what ends most lines of a text; `default` for a text of one line."""
    total, wide = text.count("\n"), text.count("\r\n")
    if not total:
        return default
    return "\r\n" if 2 * wide > total else "\n"


def with_newlines(text: str, newline: str) -> str:
    """Return a text whose lines all end in `newline`."""
    return re.sub(r"\r?\n", newline, text)


def joined(lines: list[Line], newline: str) -> str:
    """Return the text of lines of which any may have become the last one, or be it no more.

    Args:
        lines: The lines.
        newline: What ends those that are no longer the last one.
    """
    return "".join(line.text + (line.end or newline) for line in lines[:-1]) + "".join(line.text for line in lines[-1:])
