"""How long a request may take: timeouts in every form that users write, the run's deadline, cancellation."""

import logging
import math
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, TypeVar, cast

from ...deadline import Deadline, DeadlinePassed, current_deadline
from ...errors import ConfigurationError
from ...executor.user_functions import NoThreadError, run_beside

_logger = logging.getLogger("langchain_autotools")


_OF_EVERY_CLIENT = (5.0,) * 4  # the HTTP libraries' own default: no limit for a model's reply


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
    return cast("float | None", timeout[1] if isinstance(timeout, tuple | list) else timeout.read)


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


def own_timeout(*clients: Any) -> Any:
    """Return the timeout of the first of the user's own HTTP clients that sets one; None: none does, or not another than every client."""
    timeouts = [timeout for client in clients if (timeout := getattr(client, "timeout", None)) is not None]
    return next((timeout for timeout in timeouts if timeout_parts(timeout) != _OF_EVERY_CLIENT), None)


def _timeout_part(timeout: Any, name: str) -> float | None:
    """Return one part of a timeout; a number stands for all parts, and (connect, read) uses read for the rest."""
    if isinstance(timeout, tuple | list):
        timeout = timeout[0] if name == "connect" else timeout[1]
    return cast("float | None", timeout if timeout is None or isinstance(timeout, int | float) else getattr(timeout, name))


# ---------------------------------------------------------------------------------------------- bounded
# Requests that end at a synchronous run's deadline or when the run is cancelled.
#
# A blocking read cannot be ended from within: a server that sends one byte now and then keeps it alive for ever. So each step of such a
# request (opening it, reading its next chunk) runs in a thread, and the caller waits no longer than there is time. The step that is given
# up ends soon: the connection under it is ended, and what it may wait for a silent server is as short.


_T = TypeVar("_T")


_Opened = tuple[list[_T], Generator[_T, None, None]]


_GRACE_SECONDS = 1.0  # a step in time must never meet the shorter timeout instead


_END: Any = object()


class _Steps:
    """The steps of one request."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._lock = threading.Lock()
        self._response: Any = None
        self._connected: Any = None  # a connection of this request's own, until there is a response
        self._given_up = False

    def run(self, step: Callable[[], _T], discard: Callable[[_T], None]) -> _T:
        """Return the result of the step if it ends in time; else call `discard` with it when it arrives.

        Args:
            step: The step.
            discard: Closes what a step brings that was given up.

        Raises:
            DeadlinePassed: It did not end in time.
        """
        self._deadline.check()
        ended = threading.Event()
        outcome: list[tuple[Any, BaseException | None]] = []

        def work() -> None:
            result, failure = _END, None
            try:
                result = step()
            except BaseException as error:
                failure = error
            with self._lock:
                outcome.append((result, failure))
                late = self._given_up
            ended.set()
            if late and failure is None:
                with suppress(Exception):
                    discard(result)

        context = copy_context()
        context.run(_steps.set, self)
        _start(partial(context.run, work))
        try:
            self._deadline.wait(ended)
        finally:
            self._give_up(outcome)
        if not outcome:
            raise DeadlinePassed(self._deadline.passed() or self._deadline)
        result, failure = outcome[0]
        if failure is not None:
            raise failure
        return result  # type: ignore[no-any-return]

    def rest(self, chunks: Generator[_T, None, None]) -> Generator[_T, None, None]:
        """Yield the chunks of an open reply. The first item is a placeholder: a generator that never started would not close the reply."""
        try:
            yield _END
            while (chunk := self.run(lambda: next(chunks, _END), lambda _: chunks.close())) is not _END:
                yield chunk
        finally:
            if not self._given_up:
                chunks.close()

    def _give_up(self, outcome: list[Any]) -> None:
        """If the step has not ended, end the I/O that it waits for."""
        with self._lock:
            if outcome:
                return
            self._given_up = True
            if not _close_socket(self._stream()):
                _logger.warning("a request is given up: its thread goes on until the server answers, or the HTTP client gives up")

    def hold(self, response: Any) -> None:
        """Set the response that the step now reads; None for none."""
        with self._lock:
            self._response, self._connected = response, None
            if self._given_up:
                _close_socket(self._stream())

    @contextmanager
    def holding(self, response: Any) -> Iterator[None]:
        """Hold the response while the body runs."""
        self.hold(response)
        try:
            yield
        finally:
            self.hold(None)

    def shorten(self, request: Any) -> None:
        """Shorten the timeout of an abandoned request, so that it fails soon even if the server is silent.

        Raises:
            DeadlinePassed: Nobody waits for it already: it is not sent.
        """
        if self._given_up:
            raise DeadlinePassed(self._deadline)
        left = self._deadline.longest()
        if left is not None:
            longest, timeouts = left + _GRACE_SECONDS, request.extensions.get("timeout") or {}
            names = ("connect", "read", "write", "pool")
            request.extensions["timeout"] = {name: min(longest, timeouts.get(name) or longest) for name in names}
        request.extensions["trace"] = self._trace

    def _trace(self, event: str, info: Any) -> None:
        """Record the new connection from the HTTP library's trace events."""
        made = info.get("return_value")
        if event.startswith("connection.") and hasattr(made, "get_extra_info"):
            with self._lock:
                self._connected = made

    def _stream(self) -> Any:
        """Return the connection that the step waits for, if only this request uses it."""
        response = self._response
        if response is None:
            return self._connected
        return None if response.is_closed else response.extensions.get("network_stream")


def _start(work: Callable[[], None]) -> None:
    """Start work in a thread; do it at once where there can be none, so that it cannot be given up."""
    try:
        run_beside(work)
    except NoThreadError:
        work()


_steps: ContextVar[_Steps | None] = ContextVar("autotools_steps", default=None)


def _close_socket(stream: Any) -> bool:
    """Close a connection, which unblocks its read. Returns False if it is out of reach or may serve other requests."""
    socket = stream.get_extra_info("socket") if stream is not None else None
    tls = stream.get_extra_info("ssl_object") if stream is not None else None
    if socket is None or (tls is not None and tls.selected_alpn_protocol() == "h2"):
        return False
    with suppress(OSError):
        socket.shutdown(2)
    return True


def _sending(request: Any) -> None:
    steps = _steps.get()
    if steps is not None:
        steps.shorten(request)


def _receiving(response: Any) -> None:
    steps = _steps.get()
    if steps is not None:
        steps.hold(response)


EVENT_HOOKS: dict[str, list[Any]] = {"request": [_sending], "response": [_receiving]}
"""Hooks of the package's own synchronous clients: they receive each response before its body, even if an SDK reads the body."""


def held(response: Any) -> AbstractContextManager[Any]:
    """Return a context manager that registers the response as the one that the current step reads, if there are steps."""
    steps = _steps.get()
    return nullcontext() if steps is None else steps.holding(response)


def whole_in_time(whole: Callable[[], _T]) -> Callable[[], _T]:
    """Return a function that calls `whole` within the run's deadline; `whole` itself if there is none.

    It raises `DeadlinePassed` where the deadline comes first.
    """
    deadline = current_deadline()
    return whole if deadline is None else partial(_Steps(deadline).run, whole, lambda _: None)


def opened_in_time(begin: Callable[[], _Opened[_T]], deadline: Deadline) -> _Opened[_T]:
    """Open a reply, and return what `begin` returns of it, each of whose chunks is read before the deadline.

    Args:
        begin: Opens it.
        deadline: The run's deadline.

    Raises:
        DeadlinePassed: The deadline comes before the first chunk.
    """
    steps = _Steps(deadline)
    begun, chunks = steps.run(begin, lambda opened: opened[1].close())
    rest = steps.rest(chunks)
    next(rest)
    return begun, rest


# ---------------------------------------------------------------------------------------------- keys that a function gives


PATIENCE: ContextVar[Any] = ContextVar("autotools_patience", default=None)
"""The timeout of the request that is being made, in any form: it also bounds a function that gives its key."""


def value_in_time(get: Callable[[], _T], seconds: float | None) -> _T:
    """Return what a function returns that may block. One that takes too long is left to its thread.

    Args:
        get: The function.
        seconds: The longest wait; None for any.

    Raises:
        TimeoutError: It takes longer.
    """
    ended = threading.Event()
    outcome: list[tuple[Any, BaseException | None]] = []

    def work() -> None:
        try:
            outcome.append((get(), None))
        except BaseException as error:
            outcome.append((None, error))
        ended.set()

    _start(partial(copy_context().run, work))
    if not ended.wait(seconds):
        raise TimeoutError
    value, failure = outcome[0]
    if failure is not None:
        raise failure
    return value  # type: ignore[no-any-return]
