"""Ended runs in memory: what has ended well never changes, so that it is read from the database once."""

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Generic, TypeVar

_T = TypeVar("_T")

_MOST = 32_000_000  # characters of JSON, of all that is kept


class EndedRuns(Generic[_T]):
    """A cache of ended runs, bounded by size; those that were not used for longest make room.

    Args:
        limit: Maximum total size of what is kept.
    """

    def __init__(self, limit: int = _MOST) -> None:
        self._limit = limit
        self._size = 0
        self._kept: OrderedDict[str, tuple[int, _T]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, run_id: str) -> _T | None:
        """Return a run; None if it is not kept."""
        with self._lock:
            if run_id not in self._kept:
                return None
            self._kept.move_to_end(run_id)
            return self._kept[run_id][1]

    def put(self, run_id: str, run: _T, size: int) -> None:
        """Keep a run that has ended, if it is not larger than all that may be kept."""
        self.forget([run_id])
        with self._lock:
            self._kept[run_id] = size, run
            self._size += size
            while self._size > self._limit:
                self._size -= self._kept.popitem(last=False)[1][0]

    def forget(self, run_ids: Iterable[str]) -> None:
        """Forget runs that were deleted."""
        with self._lock:
            for run_id in run_ids:
                self._size -= self._kept.pop(run_id, (0, None))[0]
