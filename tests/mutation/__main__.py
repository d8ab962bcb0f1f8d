"""Tries mutants of the rooms that hold the conversation: `python -m tests.mutation`; with `--write` also writes docs/mutation.md."""

import argparse
import sys
import time
from pathlib import Path

import pytest

from .mutants import ROOMS, sample
from .one import OPTIONS
from .page import summary, write
from .session import Trials

_TESTS = [f"tests/unit/{room}" for room in (*ROOMS, "messages")]

parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
parser.add_argument("--count", type=int, default=500, help="how many mutants (500)")
parser.add_argument("--seed", type=int, default=8, help="which ones (8)")
parser.add_argument("--jobs", type=int, default=2, help="how many at once (2)")
parser.add_argument("--minutes", type=float, default=float("inf"), help="after how many no further one is begun")
parser.add_argument("--write", action="store_true", help="write docs/mutation.md")
parser.add_argument("--killed", type=Path, help="a file of the mutants that were killed before, which are not tried again; it is written")
parser.add_argument("tests", nargs="*", default=_TESTS, help="the tests to try them with")
asked = parser.parse_args()
begun = time.monotonic()
mutants, possible = sample(asked.count, asked.seed)
before = set(asked.killed.read_text().splitlines()) if asked.killed and asked.killed.exists() else set()
trials = Trials(mutants, asked.jobs, {mutant: "killed" for mutant in mutants if mutant.key in before}, begun + 60 * asked.minutes)
pytest.main([*OPTIONS, *asked.tests], plugins=[trials])
if asked.killed:
    killed = {mutant.key for mutant, fate in trials.fates.items() if fate.startswith("killed")}
    asked.killed.write_text("".join(f"{key}\n" for key in sorted(before | killed)))
result = summary(trials, possible, time.monotonic() - begun)
print(result)
if asked.write:
    write(trials, result)
sys.exit(len(trials.fates) != len(mutants))
