"""A soak: 200 conversations side by side for so long, with faults, tools and fallbacks; memory, sockets and threads must stay flat.

Four in five are tasks of one event loop, the others threads. The servers have a process of their own. What this process holds is
looked at 40 times. The first fifth of the time warms up (pools fill, SDKs load); the median of the second fifth is compared with that
of the last one.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import random
import statistics
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from langchain_core.exceptions import LangChainException
from langchain_core.messages import BaseMessage, HumanMessage

from langchain_autotools import new_messages
from langchain_autotools.errors import AutoToolsError
from tests.faults.cases import WIRES
from tests.faults.soak_servers import serve

TASKS, THREADS = 160, 40
LONGEST = 12
"""Messages after which a conversation begins again."""
LOOKS = 40
"""How often is looked at what the process holds."""
DEADLINE = 20
"""Seconds after which a run through a fault that never ends must end."""
BOUNDS: Mapping[str, float] = {"megabytes": 10, "files": 20, "threads": 8, "blocks": 50_000}
"""How much more a process may hold in the last fifth of the time than in the second."""


@dataclass(frozen=True)
class Held:
    """What a process holds.

    Attributes:
        megabytes: Its memory.
        files: Its open files and sockets.
        threads: Its threads.
        blocks: The blocks of memory of its Python objects.
    """

    megabytes: float
    files: float
    threads: float
    blocks: float

    @classmethod
    def now(cls) -> Held:
        """What this process holds."""
        gc.collect()
        size = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
        return cls(round(size, 1), len(os.listdir("/proc/self/fd")), threading.active_count(), sys.getallocatedblocks())

    @classmethod
    def median(cls, looks: Sequence[Held]) -> Held:
        """The median of several."""
        return cls(*(statistics.median(one) for one in zip(*map(astuple, looks), strict=True)))

    def grown(self, since: Held) -> dict[str, float]:
        """By how much it is more than it was, by what."""
        return {name: round(getattr(self, name) - getattr(since, name), 1) for name in BOUNDS}


def look(city: str) -> str:
    """Look at a city."""
    return "21 in it"


class Conversations:
    """The conversations, until a moment.

    Args:
        urls: Of each wire the URL of a proxy with faults, and of a server without.
        end: The moment, on the monotonic clock.
    """

    def __init__(self, urls: Mapping[str, tuple[str, str]], end: float) -> None:
        self.ended: Counter[str] = Counter()
        self.undocumented = 0
        self._end = end
        self._models = [model for wire in WIRES for model in _models(wire, *urls[wire])]

    async def all(self) -> None:
        """Hold all of them."""
        threads = [threading.Thread(target=self._in_thread, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        await asyncio.gather(*(self._as_task(number) for number in range(TASKS)))
        for thread in threads:
            await asyncio.to_thread(thread.join)

    async def _as_task(self, number: int) -> None:
        model, chance, history = self._begin(number)
        while time.monotonic() < self._end:
            _ask(history, chance)
            try:
                if chance.random() < 0.5:
                    async for chunk in model.astream(history):
                        history += new_messages(chunk)
                else:
                    history += new_messages(await model.ainvoke(history))
                self.ended["answered"] += 1
            except (Exception, asyncio.CancelledError) as error:
                self._failed(history, error)

    def _in_thread(self, number: int) -> None:
        model, chance, history = self._begin(number)
        while time.monotonic() < self._end:
            _ask(history, chance)
            try:
                if chance.random() < 0.5:
                    for chunk in model.stream(history):
                        history += new_messages(chunk)
                else:
                    history += new_messages(model.invoke(history))
                self.ended["answered"] += 1
            except (Exception, asyncio.CancelledError) as error:
                self._failed(history, error)

    def _begin(self, number: int) -> tuple[Any, random.Random, list[BaseMessage]]:
        return self._models[number % len(self._models)], random.Random(number), []

    def _failed(self, history: list[BaseMessage], error: BaseException) -> None:
        history += new_messages(error)
        self.ended[type(error).__name__] += 1
        if not isinstance(error, AutoToolsError | LangChainException):
            self.undocumented += 1
            traceback.print_exception(error)


def _models(wire: str, spoilt: str, whole: str) -> list[Any]:
    """The models of a wire: with and without a fallback."""
    _, kind, fields = WIRES[wire]
    options = {"retry": {"wait_scale": 0}, "max_retries": 1, **fields}
    fallback = kind(model="two", base_url=whole, **options)
    return [
        kind(model="one", base_url=spoilt, tools=[look], fallbacks=fallbacks, deadline=DEADLINE, **options)
        for fallbacks in ([], [fallback])
    ]


def _ask(history: list[BaseMessage], chance: random.Random) -> None:
    """Put the next question into a history, which begins again where it has become long."""
    if len(history) > LONGEST:
        history.clear()
    history.append(HumanMessage(f"How warm is it in place {chance.randrange(1000)}?"))


def _looks(seconds: float, seen: list[Held]) -> None:
    """Look at what the process holds, again and again; print some of it."""
    begun = time.monotonic()
    for number in range(1, LOOKS + 1):
        time.sleep(max(0.0, begun + number * seconds / (LOOKS + 1) - time.monotonic()))
        seen.append(Held.now())
        if number % (LOOKS // 10) == 0:
            print(f"{number / LOOKS:4.0%} {seen[-1]}", flush=True)


def soak(minutes: float) -> int:
    """Soak for so many minutes; print what came of the runs and what the process held; return whether something must not be."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    servers = context.Process(target=serve, args=(theirs,))
    servers.start()
    talks = Conversations(ours.recv(), time.monotonic() + minutes * 60)
    seen: list[Held] = []
    looking = threading.Thread(target=_looks, args=(minutes * 60, seen))
    looking.start()
    asyncio.run(talks.all())
    looking.join()
    ours.send(None)
    refused = ours.recv()
    servers.join()
    return _found(talks, seen, refused)


def _found(talks: Conversations, seen: Sequence[Held], refused: Sequence[str]) -> int:
    """Print what was found; return whether it must not be."""
    fifth = len(seen) // 5
    before, after = Held.median(seen[fifth : 2 * fifth]), Held.median(seen[-fifth:])
    grown = after.grown(before)
    too_much = {name: more for name, more in grown.items() if more > BOUNDS[name]}
    print(f"{talks.ended.total()} runs: {dict(talks.ended.most_common())}; {talks.undocumented} with errors that are not documented")
    print(f"second fifth: {before}\nlast fifth:   {after}\ngrown by:     {grown}; too much: {too_much or None}")
    print(f"refused requests: {len(refused)} {sorted(set(refused))[:5]}")
    return int(bool(too_much or refused or talks.undocumented))
