"""Clients of HTTP libraries: their connections, how long a request on one may take.

The HTTP libraries take a new connection into use, and give one back, in several steps of the event loop. A cancellation between two of
them leaves the connection in its pool for ever, taken by a request that nobody makes or a reply that nobody has.
"""

import asyncio
import atexit
import logging
import math
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Hashable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import cache, partial
from typing import Any, Self, TypeVar, cast
from urllib.request import getproxies

from ...deadline import Deadline, DeadlinePassed, current_deadline
from ...errors import ConfigurationError
from ...executor.user_functions import NoThreadError, run_beside

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
    if idle_timeout is None and (timeout is None or isinstance(timeout, int | float)):
        return timeout
    module = sdk()
    if idle_timeout is None and isinstance(timeout, module.Timeout):  # another HTTP library's object is converted
        return timeout
    return module.Timeout(timeout_parts(module.DEFAULT_TIMEOUT if timeout is None else timeout, idle_timeout))


def own_timeout(*clients: Any) -> Any:
    """Return the timeout of the first of the user's own HTTP clients that sets one; None: none does, or not another than every client."""
    timeouts = [timeout for client in clients if (timeout := getattr(client, "timeout", None)) is not None]
    return next((timeout for timeout in timeouts if timeout_parts(timeout) != _OF_EVERY_CLIENT), None)


def _timeout_part(timeout: Any, name: str) -> float | None:
    """Return one part of a timeout; a number stands for all parts, and (connect, read) uses read for the rest."""
    if isinstance(timeout, tuple | list):
        timeout = timeout[0] if name == "connect" else timeout[1]
    part: float | None = timeout if timeout is None or isinstance(timeout, int | float) else getattr(timeout, name)
    return part


# ---------------------------------------------------------------------------------------------- bounded
# Requests that end at a synchronous run's deadline or when the run is cancelled.
#
# A blocking read cannot be ended from within: a server that sends one byte now and then keeps it alive for ever. So each step of such a
# request (opening it, reading its next chunk) runs in a thread, and the caller waits no longer than there is time. The step that is given
# up ends soon: the connection under it is ended, and what it may wait for a silent server is as short.


_logger = logging.getLogger("langchain_autotools")

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
        try:
            run_beside(lambda: context.run(work))
        except NoThreadError:  # then it cannot be given up, but it can be done
            context.run(work)
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


_EVENT_HOOKS: dict[str, list[Any]] = {"request": [_sending], "response": [_receiving]}
"""Hooks of the package's own synchronous clients: they receive each response before its body, even if an SDK reads the body."""


class holding:
    """A context manager that registers the response as the one that the current step reads."""

    def __init__(self, response: Any) -> None:
        self._response = response

    def __enter__(self) -> None:
        _receiving(self._response)

    def __exit__(self, *_: object) -> None:
        _receiving(None)


def whole_in_time(whole: Callable[[], _T]) -> Callable[[], _T]:
    """Return a function that calls `whole` within the run's deadline; `whole` itself if there is none.

    It raises `DeadlinePassed` where the deadline comes first.
    """
    deadline = current_deadline()
    return whole if deadline is None else partial(_Steps(deadline).run, whole, lambda _: None)


def opened_in_time(begin: Callable[[], _Opened[_T]]) -> Callable[[], _Opened[_T]]:
    """Return a function that opens a reply and reads its chunks within the run's deadline; `begin` itself without one.

    It raises `DeadlinePassed` where the deadline comes before the first chunk.
    """
    deadline = current_deadline()
    return begin if deadline is None else partial(_opened, begin, _Steps(deadline))


def _opened(begin: Callable[[], _Opened[_T]], steps: _Steps) -> _Opened[_T]:
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

    context = copy_context()
    try:
        run_beside(lambda: context.run(work))
    except NoThreadError:
        context.run(work)
    if not ended.wait(seconds):
        raise TimeoutError
    value, failure = outcome[0]
    if failure is not None:
        raise failure
    return value  # type: ignore[no-any-return]


T = TypeVar("T")


async def _uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Return what the coroutine returns. A cancellation meanwhile is raised as soon as the coroutine has ended."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from (None if task.cancelled() else task.exception())
    return task.result()


@cache
def closing_whole(client: Any) -> Any:
    """Return a subclass of an HTTP library's asynchronous client whose connections come free, whenever its user is cancelled.

    Args:
        client: The client's class.
    """

    class ClosingWhole(client):  # type: ignore[misc]
        async def send(self, request: Any, **options: Any) -> Any:
            progress = _Progress(request.extensions.get("trace"))
            request.extensions = {**request.extensions, "trace": progress.note}
            sending = asyncio.ensure_future(super().send(request, **options))
            try:
                await asyncio.wait({sending})
            except asyncio.CancelledError:
                await _uninterrupted(_give_up(sending, progress))
                raise
            response = sending.result()
            close = response.stream.aclose
            response.stream.aclose = lambda: _uninterrupted(close())
            return response

    return ClosingWhole


class _Progress:
    """How far a request is.

    Args:
        further: The user's own `trace` extension.

    Attributes:
        connected: Whether it has a new connection and does not use it yet.
    """

    def __init__(self, further: Callable[[str, Mapping[str, Any]], Awaitable[None]] | None) -> None:
        self.connected = False
        self._further = further

    async def note(self, event: str, info: Mapping[str, Any]) -> None:
        """Note an event of the HTTP library: the extension `trace` (https://www.encode.io/httpcore/extensions/#trace)."""
        self.connected = event.endswith(".complete") and not event.startswith("http")
        if self._further is not None:
            await self._further(event, info)


async def _give_up(sending: "asyncio.Task[Any]", progress: _Progress) -> None:
    """Cancel a request as soon as its connection can be given back; close its response if it has one already."""
    while progress.connected and not sending.done():
        await asyncio.sleep(0)
    sending.cancel()
    await asyncio.wait({sending})
    if not sending.cancelled() and sending.exception() is None:
        with suppress(Exception):  # nobody has asked for this reply any more
            await sending.result().aclose()


# ---------------------------------------------------------------------------------------------- logged
# Addresses of requests without user, password and query, for the HTTP libraries' logs and for errors.
#
# They log each request with its whole address. The address of a request is replaced once its authorization has been made of its user and
# password; the one that takes its place goes to the same target and is written without its query, which may hold keys.


Hooks = Mapping[str, Sequence[Callable[..., Any]]]


@cache
def _shown_without_query(address: Hashable) -> Any:
    """Return a subclass of an HTTP library's URL class whose text omits the query."""
    base: Any = address

    class ShownWithoutQuery(base):  # type: ignore[misc]
        is_concealed = True

        def __str__(self) -> str:
            return str(super().__str__()).partition("?")[0]

        def __repr__(self) -> str:
            return f"{base.__name__}({str(self)!r})"

    return ShownWithoutQuery


def _conceal(request: Any) -> None:
    url, kind = request.url, cast("Hashable", type(request.url))
    if (url.userinfo or url.query) and not getattr(url, "is_concealed", False):
        request.url = _shown_without_query(kind)(url.copy_with(userinfo=b""))


async def _aconceal(request: Any) -> None:
    _conceal(request)


@cache
def concealing(client: Hashable) -> Any:
    """Return a subclass of an SDK's client class whose requests are concealed once they are built: the SDKs log them before they go."""
    base: Any = client

    class Concealing(base):  # type: ignore[misc]
        def build_request(self, *args: Any, **kwargs: Any) -> Any:
            request = super().build_request(*args, **kwargs)
            _conceal(request)
            return request

    return Concealing


def hooks(own: Hooks | None = None, *, concealing: bool = True) -> dict[str, list[Any]]:
    """Return the event hooks of the package's own synchronous client.

    Args:
        own: The user's. They get each request as it is sent.
        concealing: Whether addresses are shown without secrets; not where the user's own transport may read them as texts.
    """
    given = own or {}
    requests = [*_EVENT_HOOKS["request"], *given.get("request", ()), *([_conceal] if concealing else ())]
    return {"request": requests, "response": [*_EVENT_HOOKS["response"], *given.get("response", ())]}


def async_hooks(own: Hooks | None = None, *, concealing: bool = True) -> dict[str, list[Any]]:
    """Return the event hooks of the package's own asynchronous client, like `hooks`."""
    given = own or {}
    requests = [*given.get("request", ()), *([_aconceal] if concealing else ())]
    return {"request": requests, "response": [*given.get("response", ())]}


# ---------------------------------------------------------------------------------------------- clients
# Clients and connection pools of vendors' SDKs: created on first use, cached per process and event loop, closed at the end.
#
# SDKs of one make (openai, anthropic) give their HTTP clients' classes as `DefaultHttpxClient` and `DefaultAsyncHttpxClient`.


_NO_LOOP = object()
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_PROXIES = "ALL_PROXY, HTTPS_PROXY or HTTP_PROXY"


class Shared:
    """State that copies of a model share and pickles omit."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), ())


class PerLoopCache(Shared):
    """A thread-safe cache of one object per key, process and event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[Hashable, tuple[Callable[[], Any], Any]] = {}

    def get(self, key: Hashable, make: Callable[[], T], loop: asyncio.AbstractEventLoop | None = None) -> T:
        """Return the cached object for `key` in this process and loop; create it if there is none.

        Args:
            key: The object's key.
            make: Makes it.
            loop: The event loop that it is for; None for threads.
        """
        owner: Any = loop or _NO_LOOP
        place = (key, os.getpid(), id(owner))  # a forked process must not share its parent's connections
        entry = self._entries.get(place)
        if entry is None or entry[0]() is not owner:  # another loop has taken the id of one that is gone
            with self._lock:
                self._forget_ended_loops()
                entry = self._entries.get(place)
                if entry is None:
                    entry = (weakref.ref(loop) if loop else lambda: _NO_LOOP, make())
                    self._entries[place] = entry
        return cast("T", entry[1])

    def _forget_ended_loops(self) -> None:
        for place, (owner, _) in list(self._entries.items()):
            loop = owner()
            if loop is None or (loop is not _NO_LOOP and loop.is_closed()):
                del self._entries[place]

    def close(self) -> None:
        """Close the objects that were made for threads."""
        with self._lock:
            for owner, client in self._entries.values():
                if owner() is _NO_LOOP:
                    client.close()
            self._entries.clear()


SHARED_POOLS = PerLoopCache()
"""Connection pools that all models share, also models with different keys."""
atexit.register(SHARED_POOLS.close)


def shared_ssl_context(library: Any) -> Any:
    """Return the TLS context of all pools, shared because loading its certificates takes longer than a request.

    Raises:
        ConfigurationError: The environment names certificates that cannot be read.
    """
    return usable(lambda: _ssl_context(library, *(os.environ.get(name) for name in _CERTIFICATES)))


@cache
def _ssl_context(library: Any, *certificates: str | None) -> Any:
    return library.create_ssl_context()


def connection_environment() -> Hashable:
    """Return the proxies and certificates that the environment names now. (A client reads them once, when it is made.)"""
    return (*sorted(getproxies().items()), *(os.environ.get(name) for name in _CERTIFICATES))


def usable(make: Callable[[], T]) -> T:
    """Return what `make` makes of an HTTP library: a client, or its certificates.

    Raises:
        ConfigurationError: The environment says what cannot work; the text names the variables.
    """
    try:
        return make()
    except ConfigurationError:
        raise
    except ImportError as error:
        raise ConfigurationError(f"the HTTP client lacks a package for the proxy that {_PROXIES} or an argument names ({error})") from error
    except OSError as error:
        names = " and ".join(_CERTIFICATES)
        raise ConfigurationError(f"the certificates cannot be read ({type(error).__name__}: {error.strerror}): see {names}") from error
    except ValueError as error:
        raise ConfigurationError(f"the HTTP client cannot be made: see {_PROXIES}, and arguments that name a proxy") from error


def http_library(sdk: Any) -> Any:
    """Return the HTTP library of an installed SDK, `httpx` or `httpx2`, from the base of its public client class."""
    return sys.modules[sdk.DefaultHttpxClient.__bases__[0].__module__.partition(".")[0]]


def shared_client(sdk: Any, proxy: str | None) -> Any:
    """Return the synchronous HTTP client that all models of an SDK share, by proxy.

    Args:
        sdk: The SDK's module.
        proxy: The proxy's URL.
    """

    def make() -> Any:
        verify, kind = shared_ssl_context(http_library(sdk)), concealing(sdk.DefaultHttpxClient)
        return usable(lambda: kind(proxy=proxy, verify=verify, event_hooks=hooks()))

    return SHARED_POOLS.get((sdk.__name__, proxy, connection_environment()), make)


def shared_async_client(sdk: Any, proxy: str | None, loop: asyncio.AbstractEventLoop) -> Any:
    """Return the HTTP client that all models of an SDK share in an event loop, by proxy.

    Args:
        sdk: The SDK's module.
        proxy: The proxy's URL.
        loop: The event loop.
    """

    def make() -> LoopPool:
        verify, kind = shared_ssl_context(http_library(sdk)), concealing(closing_whole(sdk.DefaultAsyncHttpxClient))
        return LoopPool(usable(lambda: kind(proxy=proxy, verify=verify, event_hooks=async_hooks())))

    return SHARED_POOLS.get((sdk.__name__, proxy, connection_environment()), make, loop).client


class LoopPool:
    """A connection pool of one event loop, closed when the loop ends or its owner is garbage collected.

    A suspended asynchronous generator does that: its loop closes it in `shutdown_asyncgens`, which `asyncio.run` calls at its end,
    and as soon as nobody holds it.

    Args:
        client: The HTTP client.
        owner: The object whose lifetime bounds the pool's; None: the pool is permanent.
    """

    def __init__(self, client: Any, owner: object = None) -> None:
        self.client = client
        self._guard = self._closing(self.client)
        with suppress(StopIteration):  # it comes to its `yield` without waiting for anything
            self._guard.__anext__().send(None)
        if owner is not None:  # held from outside the owner: else the collector would take the sockets along, unclosed
            weakref.finalize(owner, _let_go, self._guard).atexit = False

    @staticmethod
    async def _closing(client: Any) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            with suppress(Exception):  # no loop runs any more (nest_asyncio leaves generators to the collector): the sockets go with it
                await client.aclose()


def _let_go(guard: AsyncGenerator[None, None]) -> None:
    """Drop the last reference to the guard, so that its loop closes it."""


# ---------------------------------------------------------------------------------------------- drain
# Reads a reply to its end after its end marker, so that its connection can serve the next request.
#
# HTTP/1.1 needs a body read to its end before a connection is used again; closing it earlier costs the next turn a new connection. But a
# server may keep a finished stream open, so the wait is short, and whatever happens in it is no error.


_SECONDS = 0.2


async def adrain(pieces: AsyncIterator[bytes]) -> None:
    """Read `pieces` to their end, for at most a fifth of a second.

    A task of its own reads: whatever ends the wait, a deadline too, the reading is given up once, and has ended then.
    """
    reading = asyncio.ensure_future(_to_the_end(pieces))
    try:
        await asyncio.wait({reading}, timeout=_SECONDS)
    finally:
        reading.cancel()
        await _uninterrupted(asyncio.wait({reading}))


async def _to_the_end(pieces: AsyncIterator[bytes]) -> None:
    try:
        async for _ in pieces:
            pass
    except (Exception, asyncio.CancelledError) as error:
        _log(error)


def _log(error: BaseException) -> None:
    _logger.debug("the connection of a finished reply is not used again: %s", type(error).__name__)


def drain(response: Any) -> None:
    """Read the rest of the response, for at most a fifth of a second. The caller closes it, which frees its connection.

    A blocking read cannot be given up from within, so a watchdog ends the connection under it. Where the socket cannot be
    reached through the HTTP library's public extension, nothing is read.
    """
    stream = response.extensions.get("network_stream")
    socket = stream.get_extra_info("socket") if stream is not None else None
    if socket is None:
        return
    watched = _watchdog.watch(socket)
    try:
        # Not `iter_bytes`: at its end it closes the response, and then the socket may be another request's already.
        for _ in response.stream:
            pass
    except Exception as error:
        _log(error)
    finally:
        watched.release()


class _Watched:
    """A socket that is shut down at a set time unless it is released before."""

    __slots__ = ("_lock", "_socket", "time")

    def __init__(self, socket: Any, time: float) -> None:
        self.time = time
        self._socket = socket
        self._lock = threading.Lock()

    def release(self) -> None:
        """Release the socket, so that it is not shut down."""
        with self._lock:
            self._socket = None

    def end(self) -> None:
        """Shut the socket down if it has not been released."""
        with self._lock:
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(2)  # both directions: the blocked read returns


class _Watchdog:
    """A thread that shuts sockets down a fifth of a second after they are registered. Starts with the first socket.

    A thread of its own for each reply would cost more than the connection that is saved.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: deque[_Watched] = deque()
        self._thread: threading.Thread | None = None

    def watch(self, socket: Any) -> _Watched:
        """Register a socket to be shut down in a fifth of a second."""
        watched = _Watched(socket, time.monotonic() + _SECONDS)
        with self._condition:
            self._waiting.append(watched)
            if len(self._waiting) == 1:
                self._condition.notify()
            if self._thread is None or not self._thread.is_alive():  # of a forked process the thread is gone
                self._thread = threading.Thread(target=self._run, name="langchain_autotools:drain", daemon=True)
                self._thread.start()
        return watched

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._waiting)
                first = self._waiting[0]
            time.sleep(max(0.0, first.time - time.monotonic()))
            with self._condition:
                self._waiting.popleft()
            first.end()


_watchdog = _Watchdog()
