"""Storages of logins, as a service would have them: a folder that several processes share."""

from __future__ import annotations

import asyncio
import fcntl
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path


class Folder:
    """A file for each key."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def get(self, key: str) -> str | None:
        """Return what is kept under a key."""
        assert key.replace("_", "").isalnum() and len(key) <= 80
        try:
            return (self.path / key).read_text()
        except FileNotFoundError:
            return None

    def set(self, key: str, value: str | None) -> None:
        """Keep a value, at one stroke."""
        if value is None:
            (self.path / key).unlink(missing_ok=True)
            return
        written = self.path / uuid.uuid4().hex
        written.write_text(value)
        written.rename(self.path / key)

    @property
    def texts(self) -> list[str]:
        """All that is kept."""
        return [path.read_text() for path in self.path.iterdir()]


class AsyncFolder:
    """The same, asynchronously; it belongs to the event loop that it is first used on, like a pool of connections."""

    def __init__(self, path: Path | str) -> None:
        self._folder = Folder(path)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def get(self, key: str) -> str | None:
        """Return what is kept under a key."""
        self._check()
        return self._folder.get(key)

    async def set(self, key: str, value: str | None) -> None:
        """Keep a value."""
        self._check()
        self._folder.set(key, value)

    def _check(self) -> None:
        self._loop = self._loop or asyncio.get_running_loop()
        assert self._loop is asyncio.get_running_loop()


class LockedFolder(Folder):
    """A folder with a lock that one process has at a time."""

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncIterator[None]:
        """Be alone with a key."""
        file = os.open(self.path / f"{key}.lock", os.O_CREAT | os.O_RDWR)
        try:
            await asyncio.to_thread(fcntl.flock, file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)
