"""`python -m tests.kills [--kills 200] [--mode sync] [--database postgresql]`: kills so many workers in each mode and prints what was seen.

In mode `ids` the runs are of conversations whose ids are alike, in mode `steer` messages join runs that go on. In mode `poison` nobody
kills: a run ends its workers itself.

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
from typing import Any

from tests.support.postgres import PostgresServer, postgres

from .harness import kills
from .poison import KINDS, poisoned

parser = argparse.ArgumentParser()
parser.add_argument("--kills", type=int, default=200)
parser.add_argument("--mode", nargs="*", default=["sync", "async", "stream", "queue"])
parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
parser.add_argument("--seed", type=int, default=0)
arguments = parser.parse_args()


def figures_of(mode: str, folder: Path, server: PostgresServer | None) -> list[dict[str, Any]]:
    """What was seen in a mode."""
    if mode == "poison":
        return [asdict(poisoned(folder, kind, server)) for kind in KINDS]
    return [asdict(kills(folder, mode, arguments.kills, arguments.seed, server))]


with postgres() if arguments.database == "postgresql" else nullcontext() as server:
    for mode in arguments.mode:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            for figures in figures_of(mode, Path(folder), server):
                print(
                    json.dumps({"database": arguments.database, "mode": mode, **figures, "seconds": round(time.monotonic() - began)}),
                    flush=True,
                )
