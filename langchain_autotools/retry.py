"""Retry policy for failed requests.

`RetryPolicy` is one flat record of numbers. It is the only owner of retries: the vendors' SDKs get `max_retries=0`. It knows no
vendor: an error says itself whether the same request may succeed (`is_retryable`, as `langchain_core.exceptions` defines it) and how
long the server asked to wait (`retry_after`, seconds).
"""

import asyncio
import email.utils
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar, TypeVar

from .deadline import DeadlinePassed, current_deadline
from .errors import ConfigurationError

_logger = logging.getLogger("langchain_autotools")

_Result = TypeVar("_Result")


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """Retry policy: how often, and after which waits, a failed request is made again.

    Attributes:
        attempts: How often a request is made at most, the first time included.
        wait_initial: Seconds before the second attempt; doubled before each further one.
        wait_max: The longest of these waits, in seconds.
        jitter: By up to which share of itself a wait is shortened at random, 0 to 1, so that many clients do not return at once.
        retry_after_max: The longest wait in seconds that a server may ask for. If it asks for more, the error is raised at once
            (it carries the server's wish as `retry_after`).
        timeout: Seconds after which no further attempt starts, waits included; None for no such limit.
        wait_scale: Multiplies every wait. Zero in tests.

    Raises:
        ConfigurationError: A number that cannot work.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}  # a dict may be given for a policy

    attempts: int = 3
    wait_initial: float = 0.5
    wait_max: float = 8.0
    jitter: float = 0.25
    retry_after_max: float = 60.0
    timeout: float | None = None
    wait_scale: float = 1.0

    def __post_init__(self) -> None:
        """Refuse numbers that cannot work."""
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            is_number = isinstance(value, int if name == "attempts" else int | float) and not isinstance(value, bool)
            if not is_number and not (name == "timeout" and value is None):
                raise ConfigurationError(f"{name} is {value!r}: it must be a {'whole ' if name == 'attempts' else ''}number")
        if self.attempts < 1:
            raise ConfigurationError(f"attempts is {self.attempts}: a request is made at least once (max_retries counts from zero)")
        if not 0 <= self.jitter <= 1:
            raise ConfigurationError(f"jitter is {self.jitter}: it is a share between 0 and 1")
        for name in ("wait_initial", "wait_max", "retry_after_max", "wait_scale"):
            if not getattr(self, name) >= 0:
                raise ConfigurationError(f"{name} is {getattr(self, name)}: it cannot be negative")
        if self.timeout is not None and not self.timeout > 0:
            raise ConfigurationError(f"timeout is {self.timeout}: it must be above 0, or None for no limit")

    def with_retries(self, retries: int) -> "RetryPolicy":
        """The same policy with this many retries after the first attempt, as vendors' `max_retries` counts them.

        Raises:
            ConfigurationError: The number is negative.
        """
        if retries < 0:
            raise ConfigurationError(f"max_retries is {retries}: it cannot be negative")
        return replace(self, attempts=retries + 1)

    def call(self, attempt: Callable[[], _Result]) -> _Result:
        """Call `attempt` until it succeeds, fails for good, or the attempts are used up; then its last error is raised."""
        return Attempts(self).call(attempt)

    async def acall(self, attempt: Callable[[], Awaitable[_Result]]) -> _Result:
        """Like `call`, asynchronously. A cancelled attempt is not repeated."""
        return await Attempts(self).acall(attempt)

    def wait(self, failures: int, asked: float | None = None) -> float:
        """Seconds to wait after this many failures; `asked` is the wait that the server asked for, if it did."""
        if asked is not None:
            return asked * self.wait_scale
        backoff = min(self.wait_initial * 2.0 ** min(failures - 1, 64), self.wait_max)
        return backoff * (1 - self.jitter * random.random()) * self.wait_scale

    def next_wait(self, error: BaseException, failures: int, elapsed: float) -> float | None:
        """Seconds to wait before the next attempt, after an error that permits one; None where the attempts or the time are used up.

        Args:
            error: What the last attempt raised; it may ask for a wait of its own (`retry_after`).
            failures: How many attempts have failed.
            elapsed: Seconds since the first attempt began.
        """
        asked = _asked_wait(error)
        if failures >= self.attempts or (asked is not None and asked > self.retry_after_max):
            return None
        wait = self.wait(failures, asked)
        return None if self.timeout is not None and elapsed + wait >= self.timeout else wait

    def allows(self, error: BaseException) -> bool:
        """Whether this error permits another attempt. Cancellation and interruption never do."""
        if not isinstance(error, Exception) or not getattr(error, "is_retryable", False):
            return False
        asked = _asked_wait(error)
        return asked is None or asked <= self.retry_after_max


class Attempts:
    """The attempts at one request.

    Args:
        policy: How often it is made, and after which waits.
    """

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._started = time.monotonic()
        self._failures = 0

    def call(self, attempt: Callable[[], _Result]) -> _Result:
        """As of `RetryPolicy`, counting what has failed before."""
        while True:
            try:
                return attempt()
            except Exception as error:
                wait = self.wait_after(error)
                if wait is None:
                    raise
            pause(wait)

    async def acall(self, attempt: Callable[[], Awaitable[_Result]]) -> _Result:
        """Like `call`, asynchronously."""
        while True:
            try:
                return await attempt()
            except Exception as error:
                wait = self.wait_after(error)
                if wait is None:
                    raise
            await asyncio.sleep(wait)

    def wait_after(self, error: Exception) -> float | None:
        """Seconds to wait before the next attempt; None where there is none.

        Args:
            error: What the last attempt raised.

        Raises:
            DeadlinePassed: The wait is longer than the run may take, or the run is cancelled.
        """
        self._failures += 1
        policy, elapsed = self._policy, time.monotonic() - self._started
        wait = policy.next_wait(error, self._failures, elapsed) if policy.allows(error) else None
        if wait is None:
            return None
        deadline = current_deadline()
        passed = None if deadline is None else deadline.passed(within=wait)
        if passed is not None:
            raise DeadlinePassed(passed) from error
        _logger.debug("attempt %d failed (%s): next in %.2f s", self._failures, type(error).__name__, wait)  # its text may hold content
        return wait


def pause(seconds: float) -> None:
    """Sleep before the next attempt.

    Raises:
        DeadlinePassed: The run may not take so long.
    """
    deadline = current_deadline()
    if deadline is None:
        time.sleep(seconds)
    else:
        deadline.sleep(seconds)


def _asked_wait(error: BaseException) -> float | None:
    asked = getattr(error, "retry_after", None)
    return asked if isinstance(asked, int | float) else None


# ---------------------------------------------------------------------------------------------- what a server says


def is_transient(status: int) -> bool:
    """Whether an HTTP status says that the same request may succeed later: 408, 409, 429 and every 5xx."""
    return status in (408, 409, 429) or status >= 500


def should_retry(headers: Mapping[str, str]) -> bool | None:
    """What the header `x-should-retry` says; None where it says nothing."""
    return {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower())


def retry_after(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """The seconds that a server asks to wait, from `retry-after-ms`, or `retry-after` as a number or an HTTP date (RFC 9110, 10.2.3).

    Args:
        headers: The reply's headers, looked up by lower-case names.
        now: The clock that dates are compared with, in seconds since 1970.

    Returns:
        A positive number, or None where nothing usable is said.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = _seconds(headers.get(name))
        if seconds is not None:
            return seconds * unit if seconds > 0 else None
    date = _timestamp(headers.get("retry-after"))
    if date is None:
        return None
    return date - now() if date > now() else None


def _seconds(text: str | None) -> float | None:
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _timestamp(text: str | None) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp() if text else None
    except (ValueError, OverflowError, OSError):
        return None
