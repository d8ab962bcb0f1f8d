"""Timeouts in the forms that users write: seconds, (connect, read), or the HTTP library's own object."""

import math
from typing import Any

from ...errors import ConfigurationError

DEFAULT_READ_TIMEOUT = 600.0  # of every vendor SDK of this make


def is_duration(value: Any) -> bool:
    """Whether a value is a valid duration in seconds."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0 and math.isfinite(value)


def check_timeout(name: str, timeout: Any) -> None:
    """Raise if `timeout` is not a valid timeout.

    Args:
        name: The argument's name, for the error.
        timeout: Its value.

    Raises:
        ConfigurationError: It is neither None nor a number above 0 nor (connect, read) nor the HTTP library's own object.
    """
    if isinstance(timeout, tuple | list):
        sound = len(timeout) in (2, 4) and all(part is None or is_duration(part) for part in timeout)
    else:
        sound = timeout is None or is_duration(timeout) or all(hasattr(timeout, part) for part in ("connect", "read", "write", "pool"))
    if not sound:
        raise ConfigurationError(f"{name} must be a number of seconds above 0, (connect, read) or an httpx.Timeout, not {timeout!r}")


def read_timeout(timeout: Any) -> float | None:
    """Return the seconds allowed between two bytes; None as a timeout: the SDK's default. Returns None for no limit."""
    if timeout is None:
        return DEFAULT_READ_TIMEOUT
    check_timeout("timeout", timeout)
    if isinstance(timeout, int | float):
        return float(timeout)
    read: float | None = timeout[1] if isinstance(timeout, tuple | list) else timeout.read
    return read


def timeout_parts(timeout: Any, idle_timeout: float | None = None) -> tuple[float | None, float | None, float | None, float | None]:
    """Return a timeout as a (connect, read, write, pool) tuple, which httpx and httpx2 accept.

    Args:
        timeout: The user's timeout.
        idle_timeout: Seconds that shorten the time between two bytes.
    """
    read = read_timeout(timeout)
    connect, write, pool = (_timeout_part(timeout, name) for name in ("connect", "write", "pool"))
    if idle_timeout is not None:
        read = idle_timeout if read is None else min(read, idle_timeout)
    return connect, read, write, pool


def request_timeout(sdk: Any, timeout: Any, idle_timeout: float | None) -> Any:
    """Return the timeout in the SDK's form; None uses the SDK's default.

    Args:
        sdk: Gives the SDK's module, for its public `Timeout` and `DEFAULT_TIMEOUT`.
        timeout: The user's timeout.
        idle_timeout: Seconds that shorten the time between two bytes.
    """
    if idle_timeout is None and not isinstance(timeout, tuple | list):
        return timeout
    module = sdk()
    return module.Timeout(timeout_parts(module.DEFAULT_TIMEOUT if timeout is None else timeout, idle_timeout))


def _timeout_part(timeout: Any, name: str) -> float | None:
    """Return one part of a timeout; a number stands for all parts, and (connect, read) uses read for the rest."""
    if isinstance(timeout, tuple | list):
        timeout = timeout[0] if name == "connect" else timeout[1]
    part: float | None = timeout if timeout is None or isinstance(timeout, int | float) else getattr(timeout, name)
    return part
