"""The servers of a soak, in a process of their own: what the soaking process holds is then the package's and its libraries' alone."""

from __future__ import annotations

import random
import threading
from multiprocessing.connection import Connection

from tests.faults.cases import WIRES
from tests.faults.kinds import FAULTS
from tests.faults.proxy import FaultProxy, Spoil
from tests.support.http_server import Exchange, LoopbackServer
from tests.support.script import Call, Turn

SPOILT = 0.2
"""The share of replies that are spoilt."""


class _Plan:
    """Spoils some replies, by chance."""

    def __init__(self, wire: str, chance: random.Random) -> None:
        self._wire = wire
        self._chance = chance
        self._faults = [fault for fault in FAULTS.values() if not (fault.seconds or fault.refuses)]

    def __call__(self, number: int) -> Spoil | None:
        return self._chance.choice(self._faults).of(self._wire) if self._chance.random() < SPOILT else None


def _reply(exchange: Exchange) -> Turn:
    """A call for each question, and an answer to each result."""
    is_question = exchange.body.rfind(b"How warm") > exchange.body.rfind(b"21 in it")
    return Turn("Let me look.", [Call("look", {"city": "Zürich"})]) if is_question else Turn("It is fine.")


def serve(connection: Connection) -> None:
    """Serve until the other side sends something.

    Sends the URLs of each wire at first, `{wire: (URL of a proxy with faults, URL of a server without)}`, and at the end the requests
    that were refused.
    """
    chance = random.Random(0)
    servers: list[LoopbackServer] = []
    strict, urls = [], {}
    for wire, (kind, _, _) in WIRES.items():
        server, other = kind(_reply).__enter__(), kind(_reply).__enter__()
        proxy = FaultProxy(server, _Plan(wire, chance)).__enter__()
        strict += [server, other]
        servers += [proxy, server, other]
        urls[wire] = (proxy.url, other.url)
    ended = threading.Event()
    forgetting = threading.Thread(target=_forget, args=(servers, ended))
    forgetting.start()
    connection.send(urls)
    connection.recv()
    ended.set()
    forgetting.join()
    connection.send([one.message for server in strict for one in server.rejections])
    for each in servers:
        each.stop()


def _forget(servers: list[LoopbackServer], ended: threading.Event) -> None:
    """Let the servers forget what they have served: they keep it for tests."""
    while not ended.wait(0.5):
        for server in servers:
            del server.exchanges[:-200]
