"""Compares the installed SDKs' types with docs/vendor_types.md, or writes it with `--write`: `python -m tests.vendor_types`.

What is new, gone or treated otherwise is listed. `--write` also asks LangChain's partner packages where they are installed. `--only Groq`
tries the rows alone whose names begin so.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Mapping

from tests.vendor_types.asking import Asked, asked, rank, worst
from tests.vendor_types.installed import ASKED, ROWS
from tests.vendor_types.page import PAGE, Known, Verdict, events_of, page, partner_cell, partner_cells, read, read_events, wire_of
from tests.vendor_types.partners import WAYS, Theirs, is_installed, partner_model, theirs
from tests.vendor_types.reading import ECHO, KEPT, judged
from tests.vendor_types.rows import Row
from tests.vendor_types.stream_events import WIRES, Wire, event_verdicts


def compared(name: str, before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """What the page does not say of a row, and what it says besides."""
    lines = [f"new: {name}: {path}: {now[path]}" for path in now if path not in before]
    lines += [f"gone: {name}: {path}" for path in before if path not in now]
    return lines + [f"{now[path]}, not {before[path]}: {name}: {path}" for path in now if before.get(path, now[path]) != now[path]]


def differences(found: Mapping[str, Verdict], seen: Mapping[str, Mapping[str, str]]) -> list[str]:
    """What the page does not say of these verdicts, and what it says besides."""
    lines = []
    text = PAGE.read_text(encoding="utf-8")
    known = read(text)
    for name, verdict in found.items():
        before = known[name].leaves if name in known else {}
        now = {path: worst(ways).replace(ECHO, KEPT) for path, ways in verdict.items()}
        lines += compared(name, before, now)
    for wire in WIRES:
        if (name := events_of(wire)) in seen:
            lines += compared(name, read_events(text, wire), seen[name])
    return lines


def partner_column(row: Row | Asked, before: Known | None) -> Mapping[str, str]:
    """The column of a partner package: of the installed one, else as it was."""
    if not is_installed(wire_of(row)):
        return before.partner if before else {}
    if isinstance(row, Asked):
        found = {path: {"": min(ways.values(), key=rank)} for path, ways in asyncio.run(asked(row, WAYS, theirs)).items()}
    else:
        found = asyncio.run(judged(row, tuple(way for way in WAYS if way in row.ways), Theirs)).found
    return partner_cells(row, found)


def events_column(wire: Wire, before: Known | None) -> Mapping[str, str]:
    """The same of a wire's stream events."""
    if not is_installed(wire.row):
        return before.partner if before else {}
    return partner_cell(wire, asyncio.run(event_verdicts(wire, partner=partner_model)))


def verdicts(row: Row | Asked) -> Verdict:
    """The verdicts on all leaves of a row, in all its ways."""
    return asyncio.run(asked(row)) if isinstance(row, Asked) else asyncio.run(judged(row)).found


def main() -> int:
    """The command; its exit code is 1 where the page is not true of what is installed."""
    parser = argparse.ArgumentParser(prog="python -m tests.vendor_types", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the page")
    parser.add_argument("--only", default="", metavar="NAME", help="the rows whose names begin so")
    given = parser.parse_args()
    logging.disable(logging.ERROR)
    tried = [row for row in (*ROWS, *ASKED) if row.name.startswith(given.only)]
    found = {row.name: verdicts(row) for row in tried}
    seen = {events_of(wire): asyncio.run(event_verdicts(wire)) for wire in WIRES if events_of(wire).startswith(given.only)}
    lines = differences(found, seen)
    print("\n".join(lines) or "nothing new")
    if given.write:
        text = PAGE.read_text(encoding="utf-8")
        before = read(text)
        partners = {row.name: partner_column(row, before.get(row.name)) for row in tried}
        partners |= {name: events_column(wire, before.get(name)) for wire in WIRES if (name := events_of(wire)) in seen}
        PAGE.write_text(page(text, found, partners, seen), encoding="utf-8")
    return int(bool(lines) and not given.write)


if __name__ == "__main__":
    sys.exit(main())
