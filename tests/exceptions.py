"""Writes the list of what breaks a rule of the house today: `python -m tests.exceptions --write`.

What is mended goes, what has moved comes with the reason "not yet ...", and a reason that somebody wrote stays. How long the list may be
is in `tests/ratchets.csv`: it only becomes shorter.
"""

import argparse
import csv

from tests.test_house import EXCEPTIONS, RULES, exceptions


def write() -> None:
    """Write the list of now, with the reasons that are known."""
    known = exceptions() if EXCEPTIONS.exists() else {}
    with EXCEPTIONS.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["rule", "what", "reason"])
        for rule, (find, reason, _) in RULES.items():
            table.writerows([rule, what, known.get((rule, what), reason)] for what in sorted(find()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.exceptions", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--write", action="store_true", required=True, help="write tests/exceptions.csv")
    parser.parse_args()
    write()
