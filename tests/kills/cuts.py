"""`python -m tests.kills.cuts [--kills 100] [--setup anthropic stream]`: kill -9 around cuts (`compact=`), and the same bytes after it.

A conversation over loopback is held by processes that are killed around the requests that cut something or ask for a summary; each goes on
with what is stored. What they send is compared with the requests of the same conversation that nobody kills. So many kills are made in each
setup, or in those whose name has all these words; a line is printed of each.
"""

import argparse
import importlib
import json
import os
import random
import re
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from .cut_worker import WHERE, Kill, Setup, asks_for_summary, digest, plain, serve, work
from .harness import in_child, kill
from .worker import Place, in_sqlite

_WIRES = ("openai-chat", "anthropic", "openai-responses", "google", "ollama")
_STORED = [Setup(*each) for each in product(_WIRES, ("stream", "astream"), ("parts", "runs"), (True, False))]
_VARYING = [Setup(*each, varies=True) for each in product(_WIRES[:2], ("stream", "astream"), ("parts", "runs"))]
_KEPT = [Setup(*each) for each in product(_WIRES[:2], ("durable", "conversations"), ("nothing",), (True, False))]
SETUPS = (*_STORED, *_VARYING, *_KEPT)


@dataclass
class Figures:
    """What was seen of a setup.

    Attributes:
        kills: The number of processes that were killed, by where.
        conversations: The number of conversations that were held to their end.
        requests: The number of requests of each without kills.
        cuts: How many of them cut something for the first time.
        summaries: How many of them ask for a summary.
        repeated: The number of requests that were made again, all of them.
        wrong: What is not as it must be.
    """

    kills: dict[str, int] = field(default_factory=dict)
    conversations: int = 0
    requests: int = 0
    cuts: int = 0
    summaries: int = 0
    repeated: int = 0
    wrong: list[str] = field(default_factory=list)


# ---------------------------------------------------------------------------------------------- processes


@contextmanager
def served(place: Place, setup: Setup) -> Iterator[None]:
    """A server in a process of its own."""
    child = in_child(lambda: serve(place, setup), longest=3600)
    try:
        while not (place.folder / "address").exists():
            time.sleep(0.005)
        yield
    finally:
        kill(child)


def is_killed(place: Place, setup: Setup, where: Kill | None) -> bool:
    """Let a process hold the conversation; returns whether it was killed before its end."""
    _, status = os.waitpid(in_child(lambda: work(place, setup, where)), 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL), f"a worker of {setup} ended with {code}"
    return code != 0


def diary_of(place: Place) -> list[dict[str, Any]]:
    """What the processes have noted, in order."""
    return [json.loads(line) for line in (place.folder / "diary").read_text().splitlines()]


def requests_of(diary: Sequence[dict[str, Any]]) -> list[bytes]:
    """The bodies of all requests."""
    return [entry["body"].encode() for entry in diary if entry["what"] == "request"]


# ---------------------------------------------------------------------------------------------- what is looked at


def cutting(requests: Sequence[bytes]) -> list[int]:
    """The numbers of the requests that cut something for the first time, and of those for summaries."""
    found = [number for number, body in enumerate(requests) if asks_for_summary(body)]
    turns = [number for number, body in enumerate(requests) if not asks_for_summary(body)]
    return sorted([*found, *(later for one, later in pairwise(turns) if _cut(requests[one]) != _cut(requests[later]))])


def _cut(body: bytes) -> tuple[int, bytes]:
    """What is cut of a request: the number of lines for results, and what the message of the summary says of its results."""
    return body.count(b"[Left out: "), body.partition(b"[Summary of the conversation")[2][:600]


def look(setup: Setup, requests: Sequence[bytes], diary: Sequence[dict[str, Any]], figures: Figures) -> None:
    """Each process goes on with the bytes of the conversation that nobody killed, from the request on whose reply was not stored.

    A reply that is recorded in the database may be the last one, or not yet; none before it is asked for again. Where no two summaries are
    the same, a process goes on with the one that is stored.
    """
    known, place, stored, reached = [plain(body) for body in requests], 0, 0, 0
    is_first, summary, last = True, b"", b""
    for entry in diary:
        if entry["what"] == "lives":
            place, is_first = stored, True
        elif entry["what"] == "stored":
            stored, summary = place, summary_of(last)
        else:
            body = entry["body"].encode()
            last = body
            if setup.stores == "nothing" and is_first and known[place] != plain(body):
                place += 1
            if place >= len(known) or known[place] != plain(body):
                figures.wrong.append(f"request {place} is {body.decode()}, not {b''.join(requests[place : place + 1]).decode()}")
                return
            if setup.stores != "nothing" and is_first and summary_of(body) != summary:
                figures.wrong.append(f"request {place} has another summary than what is stored, {summary!r}: {body.decode()}")
            stored = place if setup.stores == "nothing" else stored
            place, is_first, reached = place + 1, False, max(reached, place + 1)
    figures.repeated += len(requests_of(diary)) - len(known)
    if reached != len(known):
        figures.wrong.append(f"the conversation ended after {reached} of {len(known)} requests")


def summary_of(body: bytes) -> bytes:
    """The beginning of the summary that a request has; empty for none."""
    found = re.search(rb"\[Summary of the conversation.*?(Summary \d{4})", body)
    return b"" if found is None else found[1]


# ---------------------------------------------------------------------------------------------- rounds


def moments(setup: Setup, requests: Sequence[bytes]) -> list[Kill]:
    """Return the moments around cuts at which a process can be killed, in the order in which they come."""
    found = list[Kill]()
    for number in cutting(requests):
        body, summary = requests[number], asks_for_summary(requests[number])
        for where in WHERE:
            is_possible = where != ("handed" if summary or setup.stores == "nothing" else "whole")
            found += [Kill(where, digest(body))] if is_possible else []
    return found


def kills(folder: Path, setup: Setup, wanted: int, seed: int = 0) -> tuple[Figures, list[bytes]]:
    """Kill so many processes, in as many conversations as it takes; returns the requests of one without kills too."""
    figures, chance = Figures(), random.Random(seed)
    diary = _held(folder / "alone", setup, [], figures)
    requests = requests_of(diary)
    figures.requests, figures.summaries = len(requests), sum(map(asks_for_summary, requests))
    figures.cuts = len(cutting(requests)) - figures.summaries
    possible = moments(setup, requests)
    while sum(figures.kills.values()) < wanted and not figures.wrong:
        left = wanted - sum(figures.kills.values())
        chosen = sorted(chance.sample(range(len(possible)), min(left, len(possible))))
        figures.conversations += 1
        diary = _held(folder / str(figures.conversations), setup, [possible[number] for number in chosen], figures)
        look(setup, requests, diary, figures)
    return figures, requests


def _held(folder: Path, setup: Setup, chosen: Sequence[Kill], figures: Figures) -> list[dict[str, Any]]:
    """Hold a conversation by processes that are killed one after another, and one that is not; returns what was noted."""
    folder.mkdir(parents=True)
    place = in_sqlite(folder)
    with served(place, setup):
        for one in chosen:
            if not is_killed(place, setup, one):
                break
            figures.kills[one.where] = figures.kills.get(one.where, 0) + 1
        else:
            assert not is_killed(place, setup, None)
    return diary_of(place)


def main() -> None:
    """Kill, and print what was seen."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills.cuts", description=(__doc__ or "").partition(".")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--setup", nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for name in ("openai", "anthropic", "google.genai", "ollama"):
        importlib.import_module(name)  # once, before processes are forked
    sent = dict[tuple[Any, ...], list[bytes]]()
    words = " ".join(arguments.setup)
    for setup in [one for one in SETUPS if one.name == words] or [one for one in SETUPS if {*words.split()} <= {*one.name.split()}]:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            figures, requests = kills(Path(folder), setup, arguments.kills, arguments.seed)
        if requests != sent.setdefault((setup.wire, setup.summary, setup.varies, setup.stores == "nothing"), requests):
            figures.wrong.append("the requests are others than those of another way")
        print(json.dumps({"setup": setup.name, **asdict(figures), "seconds": round(time.monotonic() - began, 1)}), flush=True)


if __name__ == "__main__":
    main()
