"""`python -m tests.kills [--kills 200] [--mode sync] [--database postgresql]`: kills so many workers in each mode and prints what was seen.

Over PostgreSQL, another worker lives on and takes over what the killed ones leave. The server is one of Debian's package
`postgresql`, and ends with the command.
"""

import argparse
import json
import tempfile
import time
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

from tests.support.postgres import postgres

from .harness import kills

parser = argparse.ArgumentParser()
parser.add_argument("--kills", type=int, default=200)
parser.add_argument("--mode", nargs="*", default=["sync", "async", "stream", "queue"])
parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
parser.add_argument("--seed", type=int, default=0)
arguments = parser.parse_args()
with postgres() if arguments.database == "postgresql" else nullcontext() as server:
    for mode in arguments.mode:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            figures = asdict(kills(Path(folder), mode, arguments.kills, arguments.seed, server))
        named = {"database": arguments.database, "mode": mode}
        print(json.dumps({**named, **figures, "seconds": round(time.monotonic() - began)}), flush=True)
