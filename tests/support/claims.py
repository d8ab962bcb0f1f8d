"""A store of claims in memory whose owners can die, and processes that resume a history with it and die at any step."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


class Died(BaseException):
    """A process has died: nothing of it goes on."""


@dataclass
class Row:
    """A row of the store."""

    owner: str
    state: str = "taken"
    value: str | None = None


class MemoryClaims:
    """A store that tells who owns what, in memory; it notes what it is asked."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.dead: set[str] = set()
        self.left: set[str] = set()
        self.log: list[tuple[str, str]] = []
        self._lock = threading.Lock()

    def take(self, key: str, owner: str) -> Any:
        """Claim a key."""
        with self._lock:
            self.log.append(("take", key))
            row = self.rows.get(key)
            if row is None:
                self.rows[key] = Row(owner)
                return "mine"
            if row.state == "done":
                return json.loads(str(row.value))
            if row.owner not in self.dead:
                return "mine" if row.owner == owner else "running"
            row.owner = owner
            if row.state == "begun":
                self.left.add(key)
            return "left" if row.state == "begun" else "mine"

    def begin(self, key: str, owner: str) -> bool:
        """Mark a key as begun."""
        return self._set("begin", key, owner, "begun", None)

    def done(self, key: str, owner: str, value: dict[str, Any]) -> bool:
        """Keep what came of a key."""
        return self._set("done", key, owner, "done", json.dumps(value))

    def _set(self, what: str, key: str, owner: str, state: str, value: str | None) -> bool:
        with self._lock:
            self.log.append((what, key))
            row = self.rows.get(key)
            if row is None or row.owner != owner or owner in self.dead:
                return False
            row.state, row.value = state, value
            return True

    def release(self, key: str, owner: str) -> None:
        """Give back a key."""
        with self._lock:
            self.log.append(("release", key))
            row = self.rows.get(key)
            if row is not None and row.owner == owner and row.state != "done":
                del self.rows[key]

    def end(self, owner: str) -> None:
        """Treat an owner as dead."""
        with self._lock:
            self.log.append(("end", owner))
            self.dead.add(owner)


class LaterClaims:
    """The same store, asynchronous."""

    def __init__(self, store: Any) -> None:
        self._store = store

    async def take(self, key: str, owner: str) -> Any:
        """Claim a key."""
        await asyncio.sleep(0)
        return self._store.take(key, owner)

    async def begin(self, key: str, owner: str) -> bool:
        """Mark a key as begun."""
        await asyncio.sleep(0)
        return bool(self._store.begin(key, owner))

    async def done(self, key: str, owner: str, value: dict[str, Any]) -> bool:
        """Keep what came of a key."""
        await asyncio.sleep(0)
        return bool(self._store.done(key, owner, value))

    async def release(self, key: str, owner: str) -> None:
        """Give back a key."""
        await asyncio.sleep(0)
        self._store.release(key, owner)

    async def end(self, owner: str) -> None:
        """Treat an owner as dead."""
        await asyncio.sleep(0)
        self._store.end(owner)


@dataclass
class Process:
    """A process that uses a store, and dies at one of its steps.

    Attributes:
        store: The store.
        dies_at: The number of the step at which it dies; None where it lives.
        pause: How long a step takes at most, in seconds.
        chance: Decides how long.
    """

    store: MemoryClaims
    dies_at: int | None = None
    pause: float = 0.0
    chance: random.Random = field(default_factory=random.Random)
    owners: set[str] = field(default_factory=set)
    is_dead: bool = False
    at: str = ""
    _steps: int = 0

    def step(self, name: str) -> None:
        """Take a step, or die at it."""
        self._steps += 1
        if self._steps == self.dies_at and not self.is_dead:
            self.is_dead, self.at = True, name
            self.store.dead |= self.owners
        if self.is_dead:
            raise Died(name)
        if self.pause:
            time.sleep(self.chance.random() * self.pause)

    def _of_store(self, name: str, key: str, owner: str, *values: Any) -> Any:
        self.owners.add(owner)
        self.step(f"before {name}")
        answer = getattr(self.store, name)(key, owner, *values)
        self.step(f"after {name}")
        return answer

    def take(self, key: str, owner: str) -> Any:
        """Claim a key."""
        return self._of_store("take", key, owner)

    def begin(self, key: str, owner: str) -> Any:
        """Mark a key as begun."""
        return self._of_store("begin", key, owner)

    def done(self, key: str, owner: str, value: dict[str, Any]) -> Any:
        """Keep what came of a key."""
        return self._of_store("done", key, owner, value)

    def release(self, key: str, owner: str) -> None:
        """Give back a key."""
        self._of_store("release", key, owner)

    def end(self, owner: str) -> None:
        """Treat an owner as dead."""
        self.step("before end")
        self.store.end(owner)


def at_once(works: Sequence[Callable[[], Any]], timeout: float = 60.0) -> list[Any]:
    """What functions return or raise that begin at the same moment, each in a thread."""
    start = threading.Barrier(len(works))
    ended: list[Any] = [None] * len(works)

    def run(number: int) -> None:
        start.wait(timeout)
        try:
            ended[number] = works[number]()
        except BaseException as error:
            ended[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]
    with warnings.catch_warnings():  # core makes a tool's schema under filters of its own, which are the process's
        warnings.simplefilter("ignore", DeprecationWarning)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout)
    assert not any(thread.is_alive() for thread in threads)
    return ended
