"""The tables of the pages that a sentence links to."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.pages import REPOSITORY


def page_of(link: str, base: Path = REPOSITORY) -> str:
    """The text of the page that a link leads to; of a link with an anchor, from that heading on to the next one that is not below it."""
    name, _, anchor = link.partition("#")
    text = (base / name).read_text(encoding="utf-8")
    if not anchor:
        return text
    headings = list(re.finditer(r"^(#+) (.*)$", text, re.MULTILINE))
    (here,) = (heading for heading in headings if _anchor(heading[2]) == anchor)
    after = (heading.start() for heading in headings if heading.start() > here.start() and len(heading[1]) <= len(here[1]))
    return text[here.start() : next(after, len(text))]


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")


def rows_of(text: str, column: str) -> list[dict[str, str]]:
    """The rows of the first table that has a column, each by the names of its columns; the first one's name may be empty."""
    for table in re.findall(r"^(?:\|.*\n)+", text + "\n", re.MULTILINE):
        head, _, *rows = (_cells(line) for line in table.splitlines())
        if column in head:
            return [dict(zip(head, row, strict=True)) for row in rows]
    raise LookupError(f"no table has the column {column!r}")


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]
