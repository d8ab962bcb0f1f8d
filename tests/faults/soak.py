"""A soak: 200 conversations side by side for so long, with faults, tools and fallbacks; memory, sockets and threads must stay flat.

Four in five are tasks of one event loop, the others threads. The servers have a process of their own. What this process holds is
looked at 20 times (each half a minute, where the time is short), at rest. All conversations wait between two runs and begin again behind
it, and the pools have given up the connections that were only kept. So what is counted does not follow the load. The first fifth of the
looks warms up (pools fill, SDKs load); the median of the second fifth is compared with that of the last one.
"""

from __future__ import annotations

import asyncio
import ctypes
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
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import astuple, dataclass, field
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
LOOKS, APART = 20, 30
"""How often is looked at what the process holds, and how many seconds apart at least."""
DEADLINE = 20
"""Seconds after which a run through a fault that never ends must end."""
REST = 3 * DEADLINE
"""Seconds within which all conversations must have come to rest."""
KEPT = 6
"""Seconds after which a pool gives up a connection that nobody used, as soon as it is asked for the next one."""
SETTLED, SETTLING = 0.25, 40
"""Seconds between two counts that must be equal, and how many may differ."""
_OPTIONS = {"retry": {"wait_scale": 0}, "max_retries": 1}
BOUNDS: Mapping[str, float] = {"megabytes": 10, "files": 4, "threads": 8, "blocks": 50_000}
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
        """What this process holds. What the C library only keeps of memory that was freed is given back to the system first."""
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        size = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
        return cls(round(size, 1), len(os.listdir("/proc/self/fd")), threading.active_count(), sys.getallocatedblocks())

    @classmethod
    async def settled(cls) -> Held:
        """What this process holds as soon as the number of its files and threads no longer changes."""
        held = cls.now()
        for _ in range(SETTLING):
            await asyncio.sleep(SETTLED)
            before, held = held, cls.now()
            if (before.files, before.threads) == (held.files, held.threads):
                break
        return held

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


class Gate:
    """A gate before each run of a conversation: while it is closed, none begins."""

    def __init__(self) -> None:
        self.over = False
        self._running = 0
        self._lock = threading.Lock()
        self._opened = threading.Event()
        self._opened.set()

    @contextmanager
    def run(self) -> Iterator[None]:
        """Hold a run, as soon as the gate is open."""
        while not self._began():
            self._opened.wait()
        try:
            yield
        finally:
            self._ended()

    @asynccontextmanager
    async def arun(self) -> AsyncIterator[None]:
        """Like `run`, in a task."""
        while not self._began():
            await asyncio.sleep(SETTLED)
        try:
            yield
        finally:
            self._ended()

    async def close(self) -> bool:
        """Close it; return whether all runs ended in time."""
        with self._lock:
            self._opened.clear()
        end = time.monotonic() + REST
        while self._running and time.monotonic() < end:
            await asyncio.sleep(SETTLED)
        return not self._running

    def open(self) -> None:
        """Open it again."""
        self._opened.set()

    def _began(self) -> bool:
        with self._lock:
            self._running += self._opened.is_set()
            return self._opened.is_set()

    def _ended(self) -> None:
        with self._lock:
            self._running -= 1


@dataclass
class Found:
    """What was found.

    Attributes:
        ended: How often a run ended so: answered, or the kind of its error.
        undocumented: How many runs ended with an error that is not documented.
        restless: How often not all runs ended in time.
        held: What the process held, look by look.
    """

    ended: Counter[str] = field(default_factory=Counter)
    undocumented: int = 0
    restless: int = 0
    held: list[Held] = field(default_factory=list)


class Conversations:
    """The conversations, for so long.

    Args:
        urls: Of each wire the URL of a proxy with faults, and of a server without.
        seconds: How long.
        leak: After how many runs a stream is left open, to see that the check sees it; 0: never.
    """

    def __init__(self, urls: Mapping[str, tuple[str, str]], seconds: float, leak: int = 0) -> None:
        self.found = Found()
        self._seconds = seconds
        self._leak = leak
        self._left: list[Any] = []
        self._histories: list[list[BaseMessage]] = [[] for _ in range(TASKS + THREADS)]
        self._gate = Gate()
        self._quiet = [_fallback(wire, urls[wire][1]) for wire in WIRES]
        self._models = [model for wire in WIRES for model in _models(wire, *urls[wire])]

    async def all(self) -> None:
        """Hold all of them."""
        threads = [threading.Thread(target=self._in_thread, args=(TASKS + number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        await asyncio.gather(self._looks(), *(self._as_task(number) for number in range(TASKS)))
        for thread in threads:
            await asyncio.to_thread(thread.join)

    async def _as_task(self, number: int) -> None:
        model, chance, history = self._begin(number)
        while not self._gate.over:
            async with self._gate.arun():
                _ask(history, chance)
                try:
                    if chance.random() < 0.5:
                        async for chunk in model.astream(history):
                            history += new_messages(chunk)
                    else:
                        history += new_messages(await model.ainvoke(history))
                    self._answered()
                except (Exception, asyncio.CancelledError) as error:
                    self._failed(history, error)

    def _in_thread(self, number: int) -> None:
        model, chance, history = self._begin(number)
        while not self._gate.over:
            with self._gate.run():
                _ask(history, chance)
                try:
                    if chance.random() < 0.5:
                        for chunk in model.stream(history):
                            history += new_messages(chunk)
                    else:
                        history += new_messages(model.invoke(history))
                    self._answered()
                except (Exception, asyncio.CancelledError) as error:
                    self._failed(history, error)

    async def _looks(self) -> None:
        """Look at what the process holds, again and again; print it."""
        count = max(5, min(LOOKS, int(self._seconds / APART)))
        begun = time.monotonic()
        for number in range(1, count + 1):
            await asyncio.sleep(max(0.0, begun + number * self._seconds / count - time.monotonic()))
            self.found.restless += not await self._gate.close()
            self.found.held.append(await self._at_rest())
            print(f"{number / count:4.0%} {self.found.held[-1]}", flush=True)
            self._gate.over = number == count
            self._gate.open()

    async def _at_rest(self) -> Held:
        """What the process holds while nothing runs: no history, and no connection that a pool only kept: each is asked again."""
        for history in self._histories:
            history.clear()
        await asyncio.sleep(KEPT)
        for model in self._quiet:
            await asyncio.to_thread(model.invoke, "Rest.")
            await model.ainvoke("Rest.")
        return await Held.settled()

    def _begin(self, number: int) -> tuple[Any, random.Random, list[BaseMessage]]:
        return self._models[number % len(self._models)], random.Random(number), self._histories[number]

    def _answered(self) -> None:
        self.found.ended["answered"] += 1
        if self._leak and self.found.ended["answered"] % self._leak == 0:
            self._left.append(self._quiet[len(self._left) % len(self._quiet)].stream("Leak."))
            next(self._left[-1])

    def _failed(self, history: list[BaseMessage], error: BaseException) -> None:
        history += new_messages(error)
        self.found.ended[type(error).__name__] += 1
        if not isinstance(error, AutoToolsError | LangChainException):
            self.found.undocumented += 1
            traceback.print_exception(error)


def _fallback(wire: str, url: str) -> Any:
    """The model of a wire that a server without faults answers."""
    _, kind, fields = WIRES[wire]
    return kind(model="two", base_url=url, **_OPTIONS, **fields)


def _models(wire: str, spoilt: str, whole: str) -> list[Any]:
    """The models of a wire: with and without a fallback."""
    _, kind, fields = WIRES[wire]
    return [
        kind(model="one", base_url=spoilt, tools=[look], fallbacks=fallbacks, deadline=DEADLINE, **_OPTIONS, **fields)
        for fallbacks in ([], [_fallback(wire, whole)])
    ]


def _ask(history: list[BaseMessage], chance: random.Random) -> None:
    """Put the next question into a history, which begins again where it has become long."""
    if len(history) > LONGEST:
        history.clear()
    history.append(HumanMessage(f"How warm is it in place {chance.randrange(1000)}?"))


def soak(minutes: float, leak: int = 0) -> int:
    """Soak for so many minutes; print what came of the runs and what the process held; return whether something must not be.

    Args:
        minutes: How long.
        leak: After how many runs one is left open; 0: never.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    servers = context.Process(target=serve, args=(theirs,))
    servers.start()
    talks = Conversations(ours.recv(), minutes * 60, leak)
    asyncio.run(talks.all())
    ours.send(None)
    refused = ours.recv()
    servers.join()
    return _is_wrong(talks.found, refused)


def _is_wrong(found: Found, refused: Sequence[str]) -> int:
    """Print what was found; return whether something must not be."""
    fifth = len(found.held) // 5
    before, after = Held.median(found.held[fifth : 2 * fifth]), Held.median(found.held[-fifth:])
    grown = after.grown(before)
    too_much = {name: more for name, more in grown.items() if more > BOUNDS[name]}
    print(f"{found.ended.total()} runs: {dict(found.ended.most_common())}; {found.undocumented} with errors that are not documented")
    print(f"second fifth: {before}\nlast fifth:   {after}\ngrown by:     {grown}; too much: {too_much or None}")
    print(f"refused requests: {len(refused)} {sorted(set(refused))[:5]}; looks at which not all runs had ended: {found.restless}")
    return int(bool(too_much or refused or found.undocumented or found.restless))
