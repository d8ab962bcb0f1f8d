"""`python -m tests.kills [--kills 200] [--mode sync]`: kills so many workers in each mode and prints what was seen."""

import argparse
import json
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from .harness import kills

parser = argparse.ArgumentParser()
parser.add_argument("--kills", type=int, default=200)
parser.add_argument("--mode", nargs="*", default=["sync", "async", "stream"])
parser.add_argument("--seed", type=int, default=0)
arguments = parser.parse_args()
for mode in arguments.mode:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        figures = asdict(kills(Path(folder), mode, arguments.kills, arguments.seed))
    print(json.dumps({"mode": mode, **figures, "seconds": round(time.monotonic() - began)}), flush=True)
