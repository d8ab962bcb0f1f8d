"""Tries mutants of the package: `python -m tests.mutation`; with `--write` also writes docs/mutation.md.

A run can be done in slices: what became of each mutant is kept, killed ones are not tried again, nor survivors that have a reason.
"""

import argparse
import sys
import time
from pathlib import Path

import pytest

from .again import compared, found, keep, kept
from .mutants import REPOSITORY, ROOMS, sample
from .notes import Notes
from .one import OPTIONS
from .page import summary, write
from .reasons import REASONS
from .session import Trials

_TESTS = ("unit", "providers", "laws", "loops", "compositions", "contract")

parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
parser.add_argument("--count", type=int, default=500, help="how many mutants (500)")
parser.add_argument("--seed", type=int, default=8, help="which ones (8)")
parser.add_argument("--jobs", type=int, default=2, help="how many at once (2)")
parser.add_argument("--minutes", type=float, default=float("inf"), help="after how many nothing further is begun")
parser.add_argument("--only", default="", help="only those of modules whose path has this text")
parser.add_argument("--rooms", nargs="+", default=ROOMS, metavar="ROOM", help="the rooms that they are drawn from")
parser.add_argument("--table", type=Path, help="write what became of them to this table")
parser.add_argument("--again", type=Path, metavar="TABLE", help="in place of a draw those of this table, wherever their functions are now")
parser.add_argument("--write", action="store_true", help="write docs/mutation.md")
parser.add_argument("--state", type=Path, default=REPOSITORY / ".mutation", help="the folder of what is known from runs before (.mutation)")
parser.add_argument("tests", nargs="*", default=[f"tests/{name}" for name in _TESTS], help="the tests to try them with")
asked = parser.parse_args()
begun = time.monotonic()
before, gone = found(kept(asked.again)) if asked.again else ({}, [])
mutants, possible = (list(before), len(before) + len(gone)) if asked.again else sample(asked.count, asked.seed, asked.only, asked.rooms)
asked.state.mkdir(parents=True, exist_ok=True)
notes = Notes(asked.state / "fates.jsonl")
tried = notes.read()
waiting = [one for one in mutants if one.key not in tried or not (tried[one.key].killed or one.key in REASONS)]
waiting = sorted(waiting, key=lambda one: one.key in tried)
if waiting and asked.minutes:
    pytest.main([*OPTIONS, *asked.tests], plugins=[Trials(waiting, asked.jobs, asked.state, notes, ends=begun + 60 * asked.minutes)])
    tried = notes.read()
known = {one: tried[one.key] for one in mutants if one.key in tried}
print(summary(known, len(mutants), possible))
if asked.table:
    keep(asked.table, known)
if asked.again:
    print(compared(known, before, gone))
if asked.write:
    write(known, len(mutants), possible)
sys.exit(len(known) != len(mutants))
