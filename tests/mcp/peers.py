"""The page that compares clients of MCP by what becomes of calls to bad servers: `python -m tests.mcp.peers FOLDER --write`.

Makes an environment for each client in the folder, with the versions below, and plays each kind of `tests/mcp/test_bad_servers.py` with it.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support import bad_mcp_http, bad_mcp_sessions  # noqa: F401 - add kinds
from tests.support.bad_mcp_kinds import KINDS
from tests.support.bad_mcp_servers import NEVER, REPOSITORY, UNKNOWN, Kind, serving

PAGE = REPOSITORY / "docs" / "mcp_servers_compared.md"
SECONDS = 5.0
"""Seconds after which a case has not ended."""


INTRODUCTION = """# Clients of MCP, compared by bad servers

What becomes of calls to servers that break the protocol: {number} kinds of them, each played with each client in a process of its own. A
run makes a bad call and a healthy one at once, and a healthy one after them. A letter in the tables says that this does *not* hold:

- **E**: the bad call ends by itself within {seconds:g} seconds, in one of two tries; where the server never answers, once it is given up.
- **T**: its result says what the server said, with the server's status; any error will do where nothing can be read. It ran at most once.
- **H**: the healthy calls have their results: the one beside it, and the one after it unless that waits for one that does not end.

Servers that cannot be opened count for E alone. The kinds are this project's own, and so is the judgement: a client that reports an answer
out of shape as an error has made a choice that can be defended. It is not ours, because the call has run, and a model that is told of an
error makes it again.

Versions, each in an environment of its own: {versions}. This project: its own tree, with mcp 2.3.0.

The page is made by `python -m tests.mcp.peers FOLDER --write`, which makes the environments in that folder. The kinds are those of
`tests/mcp/test_bad_servers.py`, which plays each over every way that it exists in, with three versions of the SDK.
"""


@dataclass(frozen=True)
class Peer:
    """A client, and what is installed for it; nothing for ours."""

    title: str
    packages: tuple[str, ...] = ()


PEERS = {
    "ours": Peer("langchain-autotools"),
    "adapters": Peer("langchain-mcp-adapters", ("langchain-mcp-adapters==0.3.2", "langchain==1.5.2", "mcp==1.30.0")),
    "langchain_mcp": Peer("`langchain.mcp`", ("langchain==1.5.2", "fastmcp==4.2.3", "mcp==2.3.0")),
    "pydantic_ai": Peer("pydantic-ai", ("pydantic-ai-slim[mcp]==2.68.0", "fastmcp-slim==4.2.3", "mcp==2.3.0")),
    "openai_agents": Peer("openai-agents", ("openai-agents==0.24.0", "mcp==2.3.0")),
}
LETTERS = {"E": "ends", "T": "tells the truth", "H": "healthy calls work"}


@dataclass
class Verdict:
    """What holds of a case, and what does not: letters of `LETTERS`."""

    wrong: str = ""
    told: dict[str, Any] = field(default_factory=dict)


def interpreter(name: str, folder: Path) -> str:
    """Return the interpreter of a client's environment, which is made if it is not there."""
    packages = PEERS[name].packages
    if not packages:
        return sys.executable
    place = folder / f"peers-{name}"
    python = str(place / "bin" / "python")
    if not place.exists():
        venv.create(place, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    return python


@contextmanager
def running(name: str, folder: Path) -> Iterator[Any]:
    """Run the process in which a client's cases begin."""
    command = [interpreter(name, folder), "-m", "tests.mcp.peer_calls", name]
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "ready\n", f"{name} does not start"
        yield process
        process.stdin.close()


def played(process: Any, kind: Kind, over: str) -> Verdict:
    """Return what came of a kind."""
    with TemporaryDirectory() as folder, serving(kind, over, Path(folder) / "notes") as target:
        server = (
            target.server
            if isinstance(target.server, list)
            else re.sub(r"//.*@|\?.*", lambda one: "//" if "@" in one[0] else "", target.server)
        )
        case = {"server": server, "cwd": str(REPOSITORY), "env": target.settings.get("env"), "seconds": SECONDS}
        process.stdin.write(json.dumps({**case, "gives up": kind.says(over) == NEVER, "never opens": kind.refused == "Timeout"}) + "\n")
        process.stdin.flush()
        told = json.loads(process.stdout.readline())
        for left in target.processes:
            with suppress(ProcessLookupError):
                os.kill(left, signal.SIGKILL)
        return Verdict(judged(kind, over, told, target.begun), told)


def played_twice(process: Any, kind: Kind, over: str) -> Verdict:
    """Return what came of a kind; what has not ended is tried once more, because the machine may have been slow."""
    first = played(process, kind, over)
    return played(process, kind, over) if "E" in first.wrong else first


def judged(kind: Kind, over: str, told: dict[str, Any], begun: list[str]) -> str:
    """Return the letters of what does not hold."""
    if kind.refused is not None or kind.told is None:
        return "" if "closed" in told or "ended by" in told else "E"
    wrong = "" if "bad 1" in told or "ended by" in told else "E"
    if not wrong and not is_true(kind, over, told.get("bad 1", told.get("ended by")), begun.count("bad 1")):
        wrong += "T"
    numbers = (2,) if "E" in wrong else (2, 3)  # the third call waits for the first
    healthy = {number: told.get(f"good {number}", ["error", ""]) for number in numbers}
    fine = [status == "success" and str(2 * number) in text for number, (status, text) in healthy.items()]
    return wrong if all(fine) or kind.lost else wrong + "H"


def is_true(kind: Kind, over: str, result: list[str], begun: int) -> bool:
    """Whether a result says what the server said: its words, with its status; some error where it said nothing that can be read."""
    status, text = result
    words = kind.says(over)
    if begun > kind.begun or (status == "success" and not begun):
        return False
    if words in (UNKNOWN, NEVER):
        return status == "error"
    said = words in text or words in text.replace("\\n", "\n").replace("\\t", "\t") or json.dumps(words)[1:-1] in text
    return status == kind.status and said


def results(names: list[str], folder: Path, cases: list[tuple[str, str]]) -> dict[str, dict[str, Verdict]]:
    """Return what came of each kind with each client."""

    def played_by(name: str) -> list[Verdict]:
        with running(name, folder) as process:
            return [_shown(name, kind, played_twice(process, KINDS[kind], over)) for kind, over in cases]

    with ThreadPoolExecutor(len(names)) as pool:
        columns = dict(zip(names, pool.map(played_by, names), strict=True))
    return {kind: {name: columns[name][number] for name in names} for number, (kind, _) in enumerate(cases)}


def _shown(name: str, kind: str, verdict: Verdict) -> Verdict:
    print(
        f"{name}: {kind}: {verdict.wrong or 'fine'} {json.dumps(verdict.told)[:300] if verdict.wrong else ''}", file=sys.stderr, flush=True
    )
    return verdict


def page(found: dict[str, dict[str, Verdict]], ways: dict[str, str]) -> str:
    """Return the page."""
    names = list(PEERS)
    counted = {name: {letter: sum(letter in row[name].wrong for row in found.values()) for letter in LETTERS} for name in names}
    whole = {name: sum(not row[name].wrong for row in found.values()) for name in names}
    titles = " | ".join(PEERS[name].title for name in names)
    versions = "; ".join(f"{PEERS[name].title}: {', '.join(PEERS[name].packages)}" for name in names if PEERS[name].packages)
    sums = {
        "all holds": whole,
        **{f"not {letter} ({what})": {name: counted[name][letter] for name in names} for letter, what in LETTERS.items()},
    }
    return "\n".join(
        [
            INTRODUCTION.format(number=len(found), seconds=SECONDS, versions=versions),
            f"| | {titles} |",
            "|---" * (len(names) + 1) + "|",
            *[f"| {what} | " + " | ".join(str(numbers[name]) for name in names) + " |" for what, numbers in sums.items()],
            "",
            "## Each kind",
            "",
            f"| Kind | Reached over | {titles} |",
            "|---" * (len(names) + 2) + "|",
            *[f"| {kind} | {ways[kind]} | " + " | ".join(row[name].wrong or "·" for name in names) + " |" for kind, row in found.items()],
            "",
        ]
    )


def main() -> None:
    """Play all kinds with all clients."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the environments of the clients are")
    parser.add_argument("--write", action="store_true", help="write the page")
    parser.add_argument("--only", default="", help="a part of the names of kinds")
    parser.add_argument("--client", choices=PEERS, action="append", help="a client; all without it")
    given = parser.parse_args()
    ways = {name: kind.over[0] for name, kind in KINDS.items() if kind.over[0] != "modern" and given.only in name}
    found = results(given.client or list(PEERS), given.folder, list(ways.items()))
    if given.write:
        PAGE.write_text(page(found, {name: "stdio" if way == "stdio" else "HTTP" for name, way in ways.items()}), encoding="utf-8")


if __name__ == "__main__":
    main()
