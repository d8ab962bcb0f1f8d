"""A cached large file that is written atomically and used only if its hash is verified."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from langchain_autotools.errors import ConfigurationError

from .progress import Advance, Progress

_PIECE = 1 << 20


class HashMismatchError(ConfigurationError):
    """Raised when a file has another hash than required. The file is not used."""


def sha256_of(path: Path, advance: Advance = lambda _count: None) -> str:
    """Return the SHA-256 hash of a file, in hexadecimal.

    Args:
        path: The file.
        advance: Called with the number of bytes of each step.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            advance(len(piece))
    return digest.hexdigest()


class CachedFile:
    """A file with a known hash at a known path.

    Beside the file lies a note of the hash, size and time of change it had when it was verified, so that 491 MB are
    not read again at every start: a file that agrees with its note is verified, any other is hashed first.

    Args:
        path: The file's path.
        sha256: The hash it must have, in hexadecimal.
    """

    def __init__(self, path: Path, sha256: str) -> None:
        self.path = path
        self.sha256 = sha256
        self._note = path.with_name(path.name + ".verified.json")

    def is_verified(self) -> bool:
        """Whether the file exists and agrees with its note. Fast: the file is not read."""
        try:
            return bool(self._seen() == json.loads(self._note.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return False

    def verify(self, progress: Progress) -> bool:
        """Whether the file exists with the right hash; reads it whole unless its note confirms the hash. The caller holds the lock."""
        if self.is_verified():
            return True
        if not self.path.is_file():
            return False
        with progress.bar(f"Checking {self.path.name}", self.path.stat().st_size) as advance:
            found = sha256_of(self.path, advance)
        if found == self.sha256:
            self._write_note()
        return found == self.sha256

    def write(self, pieces: Iterable[bytes], source: str) -> None:
        """Write the file if the bytes have the right hash; readers see the whole file or none. The caller holds the lock.

        Args:
            pieces: The file's bytes, in order.
            source: The source of the bytes, for the error's text.

        Raises:
            HashMismatchError: The bytes are not those of the file that was asked for.
            OSError: The folder cannot be written, or is full.
        """
        unfinished = self.path.with_name(self.path.name + ".unfinished")
        digest = hashlib.sha256()
        try:
            with unfinished.open("wb") as file:
                for piece in pieces:
                    digest.update(piece)
                    file.write(piece)
            self._take(unfinished, digest.hexdigest(), source)
        finally:
            unfinished.unlink(missing_ok=True)

    def adopt(self, file: Path, source: str, progress: Progress) -> None:
        """Move a finished file of the same file system into the cache, if it has the right hash. The caller holds the lock.

        Args:
            file: The file; it is gone afterwards.
            source: The file's source, for the error's text.
            progress: Shows how far the check is.

        Raises:
            HashMismatchError: It has another hash; it is deleted.
        """
        with progress.bar(f"Checking {self.path.name}", file.stat().st_size) as advance:
            found = sha256_of(file, advance)
        try:
            self._take(file, found, source)
        finally:
            file.unlink(missing_ok=True)

    @contextmanager
    def locked(self, progress: Progress) -> Iterator[None]:
        """Lock the file against other processes and threads; report a wait. The operating system frees the lock of a dead process."""
        from filelock import FileLock, Timeout

        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path.with_name(self.path.name + ".lock"))
        try:
            held = lock.acquire(blocking=False)
        except Timeout:
            progress.say("Waiting for another process that prepares the same weights ...")
            held = lock.acquire()
        with held:
            yield

    def _take(self, file: Path, found: str, source: str) -> None:
        if found != self.sha256:
            raise HashMismatchError(
                f"The weights from {source} are not the expected file and are not used: their SHA-256 is {found}, not {self.sha256}"
            )
        os.replace(file, self.path)
        self._write_note()

    def _seen(self) -> dict[str, Any]:
        status = self.path.stat()
        return {"sha256": self.sha256, "size": status.st_size, "changed": status.st_mtime_ns}

    def _write_note(self) -> None:
        # Without a note the file is hashed at the next start: slower, not wrong.
        with suppress(OSError):
            self._note.write_text(json.dumps(self._seen()), encoding="utf-8")
