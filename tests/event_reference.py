"""What the reference says of the kinds of events, made from their classes: `python -m tests.event_reference --write`."""

import argparse
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from langchain_autotools.event_types import RunEvent, Wire

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "events.md"
BEGIN, END = "<!-- kinds: written by python -m tests.event_reference --write -->\n", "<!-- end -->\n"
ABOUT = """
Where events are sent (`sse`, and by the command line with `--json`) a kind has the name of the second column. Fields in parentheses are
left out there where they are empty, or always the same; what a call and its result have in their place is in
[Encoders in detail](../web.md#the-frames).

| event | name | fields, besides those of `RunEvent` | meaning |
|---|---|---|---|
"""


def kinds() -> list[type[RunEvent]]:
    """The kinds, in the order of their module."""
    return [kind for kind in RunEvent.__subclasses__() if kind.__module__ == RunEvent.__module__]


def shown_fields(kind: Any, wire: Wire) -> Iterator[str]:
    """The fields of a kind, as the table names them."""
    for one in fields(kind)[len(fields(RunEvent)) :]:
        shown = f"`{one.name}`" + (f" (sent as `{wire.renamed[one.name]}`)" if one.name in wire.renamed else "")
        yield f"({shown})" if one.name in {*wire.brief, *wire.absent} else shown


def row(kind: type[RunEvent]) -> str:
    """What the table says of a kind."""
    wire, meaning = kind.wire, (kind.__doc__ or "").partition("\n")[0]
    assert wire is not None, kind
    return f"| `{kind.__name__}` | `{wire.name}` | {', '.join(shown_fields(kind, wire))} | {meaning} |\n"


def part() -> str:
    """The part of the page that is made."""
    described = [f"\n::: {kind.__module__}.{kind.__name__}\n" for kind in (RunEvent, *kinds())]
    return "".join([ABOUT, *map(row, kinds()), *described, "\n"])


def written(page: str) -> str:
    """The page with what is true of the classes."""
    before, _, after = page.partition(BEGIN)
    return f"{before}{BEGIN}{part()}{END}{after.partition(END)[2]}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.event_reference", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write it, rather than print it")
    if parser.parse_args().write:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(part(), end="")
