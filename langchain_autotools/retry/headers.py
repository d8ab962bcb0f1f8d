"""Retry hints of a server: the status and the headers of its reply."""

import email.utils
import math
import time
from collections.abc import Callable, Mapping


def is_transient(status: int) -> bool:
    """Whether an HTTP status means that the same request may succeed later: 408, 409, 425, 429 and every 5xx."""
    return status in (408, 409, 425, 429) or status >= 500


def should_retry(headers: Mapping[str, str]) -> bool | None:
    """Return the value of the header `x-should-retry`; None if it is missing or invalid."""
    return {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower())


def retry_after(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Return the server's requested wait in seconds, from `retry-after-ms`, or `retry-after` as a number or HTTP date (RFC 9110, 10.2.3).

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
