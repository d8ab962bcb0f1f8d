"""Compares our classes with the partner packages': `python -m tests.surface` prints what the stored list lacks; `--write` stores it."""

import argparse
import sys
from pathlib import Path

from tests.surface.listed import LIST, judged, news, probed, text_of
from tests.surface.page import PAGE, page
from tests.surface.pairs import PAIRS
from tests.surface.recorded import FOLDER, compared, counts, told

parser = argparse.ArgumentParser(prog="python -m tests.surface", description=__doc__)
parser.add_argument("--write", action="store_true", help="store the list and write its page")
parser.add_argument("--only", default="", metavar="PAIR", help="print all differences of one pair, with the rule of each")
recorded = "compare on the recorded replies of a folder (../shared/wire), and print by path and kind what no rule covers"
parser.add_argument("--recorded", nargs="?", const=FOLDER, type=Path, metavar="FOLDER", help=recorded)
given = parser.parse_args()
if given.recorded:
    if not given.recorded.is_dir():
        parser.exit(2, f"no recorded replies: {given.recorded} is no folder\n")
    seen = compared(given.recorded, [pair for pair in PAIRS if given.only in ("", pair.name)])
    uncovered = told(seen, whole=not given.only)
    print(*uncovered, counts(seen, uncovered), sep="\n")
    sys.exit(bool(uncovered))
found = list(probed(pair for pair in PAIRS if given.only in ("", pair.name)))
verdicts = judged(found)
if given.only:
    print(text_of(found, verdicts))
    sys.exit()
if given.write:
    LIST.write_text(text_of(found, verdicts), encoding="utf-8")
    PAGE.write_text(page(found, verdicts), encoding="utf-8")
lines = news(found, verdicts)
print(*lines, f"{len(found)} differences, {len(lines)} of them news", sep="\n")
sys.exit(bool(lines))
