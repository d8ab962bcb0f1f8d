"""Compares the installed SDKs' types with docs/vendor_types.md, or writes it with `--write`: `python -m tests.vendor_types`.

What is new, gone or treated otherwise is listed. `--write` also asks LangChain's partner packages where they are installed.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Mapping

from tests.vendor_types.asking import Asked, asked, worst
from tests.vendor_types.asking_rows import ASKED
from tests.vendor_types.page import PAGE, Known, Verdict, page, partner_cells, read, read_events
from tests.vendor_types.partners import WAYS, Theirs, is_installed
from tests.vendor_types.reading import ECHO, KEPT, judged
from tests.vendor_types.rows import ROWS, Row
from tests.vendor_types.stream_events import WIRES, event_verdicts


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
    for row in (*ROWS, *ASKED):
        before = known[row.name].leaves if row.name in known else {}
        now = {path: worst(ways).replace(ECHO, KEPT) for path, ways in found[row.name].items()}
        lines += compared(row.name, before, now)
    for wire in WIRES:
        lines += compared(f"{wire.name}: stream events", read_events(text, wire), seen[wire.name])
    return lines


def partner_column(row: Row, before: Known | None) -> Mapping[str, str]:
    """The column of a partner package: of the installed one, else as it was."""
    if is_installed(row):
        return partner_cells(row, asyncio.run(judged(row, tuple(way for way in WAYS if way in row.ways), Theirs)).found)
    return before.partner if before else {}


def verdicts(row: Row | Asked) -> Verdict:
    """The verdicts on all leaves of a row, in all its ways."""
    return asyncio.run(asked(row)) if isinstance(row, Asked) else asyncio.run(judged(row)).found


def main() -> int:
    """The command; its exit code is 1 where the page is not true of what is installed."""
    parser = argparse.ArgumentParser(prog="python -m tests.vendor_types", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the page")
    write = parser.parse_args().write
    logging.disable(logging.ERROR)
    found = {row.name: verdicts(row) for row in (*ROWS, *ASKED)}
    seen = {wire.name: asyncio.run(event_verdicts(wire)) for wire in WIRES}
    lines = differences(found, seen)
    print("\n".join(lines) or "nothing new")
    if write:
        before = read(PAGE.read_text(encoding="utf-8"))
        partners = {row.name: partner_column(row, before.get(row.name)) for row in ROWS}
        PAGE.write_text(page(found, partners, seen), encoding="utf-8")
    return int(bool(lines) and not write)


if __name__ == "__main__":
    sys.exit(main())
