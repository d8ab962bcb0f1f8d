"""A soak: 200 conversations side by side for so long, with faults, tools and fallbacks; memory, sockets and threads must stay flat.

The first fifth of the time warms up: pools fill, SDKs load. What the process holds then is compared with what it holds at the end.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.exceptions import LangChainException
from langchain_core.messages import BaseMessage, HumanMessage

from langchain_autotools import new_messages
from langchain_autotools.errors import AutoToolsError
from tests.faults.cases import WIRES
from tests.faults.kinds import FAULTS
from tests.faults.proxy import FaultProxy, Spoil
from tests.support.http_server import Exchange
from tests.support.script import Call, Turn

CONVERSATIONS = 200
LONGEST = 12
"""Messages after which a conversation begins again."""
GROWTH = 64
"""Megabytes by which the memory may grow."""


@dataclass(frozen=True)
class Held:
    """What a process holds.

    Attributes:
        megabytes: Its memory.
        sockets: Its open files and sockets.
        threads: Its threads.
        objects: The messages that it holds.
    """

    megabytes: float
    sockets: int
    threads: int
    objects: int

    @classmethod
    def now(cls) -> Held:
        """What this process holds."""
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        messages = sum(isinstance(one, BaseMessage) for one in gc.get_objects())
        return cls(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, len(os.listdir("/proc/self/fd")), threading.active_count(), messages)


def look(city: str) -> str:
    """Look at a city."""
    return "21"


def _reply(exchange: Exchange) -> Turn:
    """A call for each question, and an answer to each result."""
    asks = exchange.body.rfind(b"How warm") > exchange.body.rfind(b"21 of it")
    return Turn("Let me look.", [Call("look", {"city": "Zürich"})]) if asks and True else Turn("21 of it.")


class _Plan:
    """Spoils a reply of five, by chance."""

    def __init__(self, wire: str, chance: random.Random) -> None:
        self._wire = wire
        self._chance = chance
        self._faults = [fault for fault in FAULTS.values() if not (fault.hangs or fault.seconds)]

    def __call__(self, number: int) -> Spoil | None:
        return self._chance.choice(self._faults).of(self._wire) if self._chance.random() < 0.2 else None


async def _talk(model: Any, chance: random.Random, end: float, seen: Counter[str]) -> None:
    """One conversation until the end."""
    history: list[BaseMessage] = []
    while time.monotonic() < end:
        history = [] if len(history) > LONGEST else history
        history.append(HumanMessage(f"How warm is it in place {chance.randrange(1000)}?"))
        try:
            if chance.random() < 0.5:
                async for chunk in model.astream(history):
                    history += new_messages(chunk)
            else:
                history += new_messages(await model.ainvoke(history))
            seen["answered"] += 1
        except (AutoToolsError, LangChainException) as error:
            history += new_messages(error)
            seen[type(error).__name__] += 1


async def _all(minutes: float, seen: Counter[str]) -> tuple[Held, Held]:
    chance = random.Random(0)
    servers, models = [], []
    for wire, (serve, kind, fields) in WIRES.items():
        server, other = serve(_reply).__enter__(), serve(_reply).__enter__()
        proxy = FaultProxy(server, _Plan(wire, chance)).__enter__()
        servers += [proxy, server, other]
        options = {"retry": {"wait_scale": 0}, "max_retries": 1, **fields}
        fallback = kind(model="two", base_url=other.url, **options)
        for fallbacks in ([], [fallback]):
            models.append(kind(model="one", base_url=proxy.url, tools=[look], fallbacks=fallbacks, deadline=20, **options))
    end = time.monotonic() + minutes * 60
    talks = [asyncio.create_task(_talk(models[number % len(models)], chance, end, seen)) for number in range(CONVERSATIONS)]
    watch = asyncio.create_task(_forget(servers, end))
    await asyncio.sleep(minutes * 12)
    before = await asyncio.to_thread(Held.now)
    await asyncio.sleep(max(0.0, end - time.monotonic() - 1))
    after = await asyncio.to_thread(Held.now)
    await asyncio.gather(watch, *talks)
    for server in servers:
        server.stop()
    return before, after


async def _forget(servers: list[Any], end: float) -> None:
    """Let the servers forget what they have served: they keep it for tests."""
    while time.monotonic() < end:
        for server in servers:
            del server.exchanges[:-200]
        await asyncio.sleep(0.5)


def soak(minutes: float) -> int:
    """Soak for so many minutes; print what came of the runs and what the process held; return whether something grew or was refused."""
    seen: Counter[str] = Counter()
    before, after = asyncio.run(_all(minutes, seen))
    print(f"{sum(seen.values())} runs: {dict(seen.most_common())}")
    print(f"after a fifth of the time: {before}")
    print(f"at the end:                {after}")
    grown = after.megabytes - before.megabytes > GROWTH or after.sockets > before.sockets * 1.25 or after.threads > before.threads * 1.25
    return int(grown)
