"""Counts the package's own function calls for each chunk and each turn: `python -m tests.costs --write` stores them.

Calls are exact where times are not: for one minor version of Python they are the same on every machine. The stored tables are
`tests/costs_3.11.csv` and the like, one for each version that they were counted with: a row is a kind of chunk, of one wire and one
model, a column is a way to read it. `tests/test_costs.py` compares them with the code. What is read, and in which ways, is in
`benchmarks/chunks.py`, which measures the same in CPU time.
"""

import argparse
import asyncio
import csv
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.__main__ import server
from benchmarks.chunks import ASYNC_WAYS, KINDS, PATHS, WAYS, WHOLE_CALLS, model, reader
from langchain_autotools.executor import user_functions
from tests.support.counted import counting

FEW, MANY = 20, 60
"""Chunks in the two replies whose difference is counted; the bytes of both fit into one read of a socket."""
ATTEMPTS = 4
"""Some orders of what runs side by side cost a few calls more: the least of so many looks counts."""
MODELS = {"plain": False, "tools=": True}
EVERY_WAY = (*WAYS, *ASYNC_WAYS)
Row = tuple[str, str, str]
"""A kind of chunk, a wire, a model."""
ROWS: list[Row] = [
    (kind, wire, label) for wire in PATHS for kind in KINDS for label in MODELS if kind != "arguments" or wire not in WHOLE_CALLS
]
BY_CHANCE = {
    "/providers/_transport/clients.py:_Watched.end",
    "/providers/_transport/clients.py:_Watchdog._run.<locals>.<lambda>",
}
"""Called by the thread that ends replies which nobody reads: no turn or chunk of its own."""


def counted(run: Callable[[], Any]) -> Counter[str]:
    """Return the calls of the package's functions in one run."""
    calls: Counter[str] = Counter()
    user_functions._free.clear()  # what runs in the threads of other tests is not counted
    with counting(calls, new_threads=True):
        run()
    return Counter({name: number for name, number in calls.items() if name not in BY_CHANCE})


def more_of(few: Counter[str], many: Counter[str], units: int) -> dict[str, float]:
    """Return the calls that one run has more than the other for each of the units that it has more."""
    return {name: (many[name] - few[name]) / units for name in few | many if many[name] != few[name]}


class Chunks:
    """Counts the calls for one chunk, in every way; made by `chunks`."""

    def __init__(self, port: int, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._models = {wire: model(wire, port) for wire in PATHS}

    def calls(self, row: Row, way: str) -> dict[str, float]:
        """Return the calls for one chunk more."""
        kind, wire, label = row
        run = reader(way, self._models[wire], self._loop, tools=MODELS[label])
        for size in (FEW, MANY):
            run(f"{kind}-{size}")  # makes the model, and what else is made once
        few, many = (counted(lambda size=size: run(f"{kind}-{size}")) for size in (FEW, MANY))
        return more_of(few, many, MANY - FEW)


@contextmanager
def chunks() -> Iterator[Chunks]:
    """Serve the replies of `benchmarks/replies.py` and count what reading them takes."""
    with server() as port, asyncio.Runner() as runner:
        yield Chunks(port, runner.get_loop())


def path_of(version: tuple[int, int]) -> Path:
    """Return the path of the table for a minor version of Python."""
    return Path(__file__).with_name(f"costs_{version[0]}.{version[1]}.csv")


def stored(version: tuple[int, int]) -> dict[tuple[Row, str], int]:
    """Return the stored calls by row and way; none where there is no table for the version."""
    path = path_of(version)
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {((line["chunk"], line["wire"], line["model"]), way): int(line[way]) for line in csv.DictReader(file) for way in EVERY_WAY}


def write() -> None:
    """Count everything and store it for this version of Python."""
    path = path_of(sys.version_info[:2])
    with chunks() as costs, path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["chunk", "wire", "model", *EVERY_WAY])
        for row in ROWS:
            table.writerow([*row, *(round(sum(costs.calls(row, way).values())) for way in EVERY_WAY)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.costs", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--write", action="store_true", required=True, help="store the table of this version of Python")
    parser.parse_args()
    write()
