"""How long a reader waits."""

import time

from ..errors import ConfigurationError

_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.05, 0.5  # between two looks into the database: the longer nothing has come, the longer


class Patience:
    """The timeout of a reader, and its polling interval.

    Args:
        seconds: After how many seconds in which nothing comes he gives up; None for never.

    Raises:
        ConfigurationError: It is no number of seconds.
    """

    def __init__(self, seconds: float | None) -> None:
        if isinstance(seconds, bool) or not (seconds is None or (isinstance(seconds, int | float) and seconds >= 0)):
            raise ConfigurationError(f"timeout must be a number of seconds, or None, not {seconds!r}")
        self._seconds = seconds
        self.renew()

    def renew(self) -> None:
        """Restart the timeout, after new data."""
        self._until = None if self._seconds is None else time.monotonic() + self._seconds
        self._pause = _SHORTEST_SECONDS

    def left(self) -> float | None:
        """Return the seconds that are left; None for any number.

        Raises:
            TimeoutError: The time is over.
        """
        left = None if self._until is None else self._until - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError(f"nothing came within {self._seconds} s")
        return left

    def pause(self) -> float:
        """Return the seconds to wait before polling again.

        Raises:
            TimeoutError: The time is over.
        """
        self.left()
        self._pause = min(self._pause * 1.2, _LONGEST_SECONDS)
        return self._pause
