"""Faults by number, for hours: `python -m tests.faults --minutes 60`; one that failed alone: `--seed 17`.

A soak of 200 conversations side by side, with faults, tools and fallbacks: `python -m tests.faults --soak --minutes 60`. With
`--leak 100` one in a hundred runs is left open, and the soak must fail.
"""

import argparse
import logging
import sys
import time
import traceback

from tests.faults.cases import Case, Spoilt
from tests.faults.kinds import FAULTS
from tests.faults.soak import soak
from tests.laws.ways import stop_loops


def _cases(minutes: float, first: int, alone: int | None) -> int:
    """Play cases until the time is over; return the number of those that failed."""
    names = [name for name, fault in FAULTS.items() if not fault.seconds]
    end, seed, failed = time.monotonic() + minutes * 60, first if alone is None else alone, 0
    while time.monotonic() < end:
        case = Case.of(seed, names)
        try:
            Spoilt(case).play()
        except Exception:
            failed += 1
            print(f"case {seed} failed: {case}")
            traceback.print_exc()
        seed += 1
        if alone is not None:
            break
    print(f"{seed - first if alone is None else 1} cases, {failed} failed; the next sitting: --first {seed}")
    return failed


def main() -> int:
    """Play cases, or soak; return whether something failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case: where an earlier sitting has ended")
    parser.add_argument("--seed", type=int, help="play this case alone")
    parser.add_argument("--soak", action="store_true", help="many conversations at once, and what the process holds meanwhile")
    parser.add_argument("--leak", type=int, default=0, help="leave a stream open after so many runs: the soak must then fail")
    options = parser.parse_args()
    logging.disable(logging.ERROR)
    failed = soak(options.minutes, options.leak) if options.soak else _cases(options.minutes, options.first, options.seed)
    stop_loops()
    return min(failed, 1)


if __name__ == "__main__":  # the servers' process imports it too
    sys.exit(main())
