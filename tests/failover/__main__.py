"""Cases of failover by number, for figures: `python -m tests.failover --minutes 10`.

One that failed is played alone: `python -m tests.failover --seed 17`.
"""

import argparse
import logging
import sys
import time
import traceback

from tests.failover.cases import Broken, Case
from tests.failover.worker import stop_worker
from tests.laws.ways import stop_loops


def main() -> int:
    """Play cases until the time is over; return the number of those that failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.failover", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case: where an earlier sitting has ended")
    parser.add_argument("--seed", type=int, help="play this case alone")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    end, seed, failed = time.monotonic() + options.minutes * 60, options.first, 0
    while time.monotonic() < end:
        seed = options.seed if options.seed is not None else seed
        try:
            Broken(Case.of(seed)).play()
        except Exception:
            failed += 1
            print(f"case {seed} failed: {Case.of(seed)}")
            traceback.print_exc()
        seed += 1
        if options.seed is not None:
            break
    print(f"{seed - options.first if options.seed is None else 1} cases, {failed} failed; the next sitting: --first {seed}")
    stop_worker()
    stop_loops()
    return failed


if __name__ == "__main__":
    sys.exit(min(main(), 1))
