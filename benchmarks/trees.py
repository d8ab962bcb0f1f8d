"""Compare the CPU of two checkouts of this package: `python -m benchmarks.trees BEFORE AFTER [--pairs 15] [--only plain ...]`.

Each figure is a process of its own, whose model is made, and has run once, before anything is measured. The checkouts take turns, and
the first of a pair changes from pair to pair. The spread is the middle half of the ratios: where it is above 3 % of their median, the
figure says little, and the measurement is to be repeated on a quieter machine.

Where no machine is quiet, `--instructions` counts the processor's instructions under valgrind (3.19 or later) instead: what a longer
reply takes more than a shorter one, for each of its units. Such a count does not depend on what else runs.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

from . import __main__ as benchmarks
from . import peers

CASES = {
    "plain": ("text chunk, plain model", "autotools_plain", "text", 4000),
    "plain-async": ("the same, asynchronous", "autotools_plain_async", "text", 4000),
    "tools": ("text chunk, model with tools", "autotools", "text", 4000),
    "tools-async": ("the same, asynchronous", "autotools_async", "text", 4000),
    "turns": ("turn with two tool calls", "autotools", "turns", 80),
    "turns-async": ("the same, asynchronous", "autotools_async", "turns", 80),
}
"""What is measured, by its name: title, peer, task and size."""
_NOISY = 0.03
_SHORT = 4
"""A reply is this many times shorter, for counts of instructions."""
_VALGRIND = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")


def _run(tree: Path, peer: str, task: str, size: int, port: int, *inside: str) -> "subprocess.CompletedProcess[str]":
    """Run one task with the package of this checkout; the program that measures is this checkout's."""
    command = [*inside, sys.executable, str(Path(peers.__file__)), peer, task, str(size), str(port)]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{peer} {task} failed in {tree}:\n{done.stderr[-2000:]}")
    return done


def instructions(tree: Path, peer: str, task: str, size: int, port: int) -> float:
    """Return the instructions for one unit of a reply of this size beyond one of a quarter of it. A process makes each twice."""
    short = size // _SHORT
    counts = [re.search(r"I\s+refs:\s+([\d,]+)", _run(tree, peer, task, units, port, *_VALGRIND).stderr) for units in (short, size)]
    before, after = (int(found[1].replace(",", "")) for found in counts if found)
    return (after - before) / (2 * (size - short))


def cpu(tree: Path, peer: str, task: str, size: int, port: int) -> float:
    """Return the CPU seconds for one unit."""
    return float(json.loads(_run(tree, peer, task, size, port).stdout.strip().splitlines()[-1])["cpu"])


def row(title: str, pairs: list[tuple[float, float]]) -> str:
    """Return the row of one case: least and median of both in microseconds, their ratios, and the spread."""
    before, after = zip(*pairs, strict=True)
    ratios = [later / earlier for earlier, later in pairs]
    low, middle, high = statistics.quantiles(ratios, n=4)
    spread = (high - low) / middle
    figures = [f"{1e6 * least(column):.2f}" for least in (min, statistics.median) for column in (before, after)]
    shares = [f"{statistics.median(after) / statistics.median(before):.3f}", f"{min(after) / min(before):.3f}", f"{middle:.3f}"]
    return "| " + " | ".join([title, *figures, *shares, f"{spread:.1%}{' (repeat)' if spread > _NOISY else ''}"]) + " |"


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trees", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--instructions", action="store_true", help="count instructions under valgrind, once for each checkout")
    options = parser.parse_args()
    trees = [options.before.resolve(), options.after.resolve()]
    cases = [CASES[name] for name in options.only]
    with benchmarks.server() as port:
        if options.instructions:
            _print_instructions(trees, cases, port)
        else:
            _print_times(trees, cases, options.pairs, port)


def _print_instructions(trees: list[Path], cases: list[tuple[str, str, str, int]], port: int) -> None:
    print("| instructions for each | before | after | ratio |")
    print("|---|---|---|---|")
    for title, peer, task, size in cases:
        before, after = (instructions(tree, peer, task, size * _SHORT // 10, port) for tree in trees)
        print(f"| {title} | {before:,.0f} | {after:,.0f} | {after / before:.3f} |", flush=True)


def _print_times(trees: list[Path], cases: list[tuple[str, str, str, int]], number_of_pairs: int, port: int) -> None:
    print("| CPU in us for each | least before | after | median before | after | ratio of medians | of leasts | of pairs | spread |")
    print("|---|---|---|---|---|---|---|---|---|")
    for title, peer, task, size in cases:
        pairs = []
        for number in range(number_of_pairs):
            order = trees[:: -1 if number % 2 else 1]
            taken = {tree: cpu(tree, peer, task, size, port) for tree in order}
            pairs.append((taken[trees[0]], taken[trees[1]]))
        print(row(title, pairs), flush=True)


if __name__ == "__main__":
    main()
