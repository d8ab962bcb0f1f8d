"""One session with an MCP server, owned by one task of a background loop from its connection to its end."""

import asyncio
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from ..addresses import public_url
from ..errors import ConfigurationError
from ..executor.user_functions import background_loop
from .questions import Elicit, Questions, Round, declined

_OTHER_PROTOCOL = -32022
_SECONDS_TO_CANCEL = 1.0
_EXTRA = "MCP servers need the extra `mcp`: pip install 'langchain-autotools-chat[mcp]'"


@dataclass(frozen=True, repr=False)
class Address:
    """Where a server is: a program to start, or an address.

    Attributes:
        command: The program and its arguments; empty for a server with a URL.
        url: The URL of a server that runs already.
        env: Environment variables of the program, besides the few that every program gets.
        cwd: Its working directory.
        headers: HTTP headers of every request.
    """

    command: Sequence[str] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | Path | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Address({self.name!r})"

    @property
    def name(self) -> str:
        """What it is called where anybody may read it: the program, or the URL without its secret parts."""
        return public_url(self.url) if self.url else Path(self.command[0]).name

    @property
    def secrets(self) -> Sequence[str]:
        """What of it only this process may know."""
        of_url = urlsplit(self.url)
        found = {"a user": "@" in of_url.netloc, "a query": of_url.query, "env": self.env, "headers": self.headers}
        return [name for name, value in found.items() if value]

    def public(self, text: str) -> str:
        """Return a text without the secret parts of the URL."""
        return text.replace(self.url, self.name) if self.url else text

    def open(self) -> Any:
        """Return a context manager that connects, with the two streams of the connection."""
        return self._http() if self.url else self._stdio()

    def _stdio(self) -> Any:
        from mcp import StdioServerParameters, stdio_client

        program, *arguments = self.command
        parameters = StdioServerParameters(command=program, args=arguments, env=dict(self.env) or None, cwd=self.cwd)
        return stdio_client(parameters, errlog=_stderr())

    @asynccontextmanager
    async def _http(self) -> AsyncIterator[Any]:
        from mcp.client import streamable_http

        make_client: Any = vars(streamable_http)["create_mcp_http_client"]  # the kind of client differs between the versions
        async with make_client(headers=dict(self.headers)) as client:
            async with streamable_http.streamable_http_client(self.url, http_client=client) as streams:
                yield streams[:2]


def _stderr() -> Any:
    """Return where a server's error output goes: `sys.stderr`, or that of the process where a program has put something else there.

    The SDK would take what `sys.stderr` was when it was imported, which may be closed by now.
    """
    try:
        sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return sys.__stderr__
    return sys.stderr


class Requests:
    """What goes to a server, with the last request of each task: version 1 of the SDK tells no server that a request is cancelled.

    Args:
        stream: The SDK's stream of what goes to the server.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._last: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stream.__aexit__(*error)

    async def send(self, message: Any) -> None:
        """Send a message."""
        if {"method", "id"} <= message.message.root.model_fields_set:
            self._last[asyncio.current_task()] = message
        await self._stream.send(message)

    async def cancel(self) -> None:
        """Tell the server that nobody waits for the last request of this task."""
        asked = self._last.get(asyncio.current_task())
        if asked is not None:
            params = {"requestId": asked.message.root.id, "reason": "the call was cancelled"}
            notification = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            with suppress(Exception):  # the server is gone, or reads nothing
                async with asyncio.timeout(_SECONDS_TO_CANCEL):
                    await self._stream.send(type(asked)(type(asked.message).model_validate(notification)))


def check_installed() -> None:
    """Raise if the SDK is missing.

    Raises:
        ConfigurationError: It is.
    """
    try:
        import mcp  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(_EXTRA) from error


def _wire(value: Any) -> dict[str, Any]:
    """Return an object of the SDK as the data that it is on the wire."""
    data: dict[str, Any] = value.model_dump(by_alias=True, mode="json", exclude_none=True)
    return data


async def begin(session: Any) -> bool:
    """Begin a session; whether its protocol is one in which a call can wait for answers (2026-07-28 or later)."""
    if not hasattr(session, "discover"):
        await session.initialize()
        return False
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError

    with suppress(MCPError, RuntimeError, ValidationError):  # a server of an older protocol, or one that starts slowly
        await session.discover()
        return True
    try:
        await session.initialize()
    except MCPError as error:
        if error.error.code != _OTHER_PROTOCOL:
            raise
        await session.discover()
        return True
    return False


# ---------------------------------------------------------------------------------------------- session
# One session with an MCP server, owned by one task of a background loop from open to close.
#
# What the SDK opens has to be closed by the task that has opened it, so that task does both, and calls come to it by a queue. It ends
# when it is told to, or when the server does.


_logger = logging.getLogger("langchain_autotools")

_CONNECTION_CLOSED = -32000
_SECONDS_UNTIL_HEARD_AGAIN = 1.0
_TERMINATED = "Session terminated"
_LIST_CHANGED = "notifications/tools/list_changed"


class SessionLost(Exception):
    """Raised for a call whose session has ended.

    Attributes:
        sent: Whether the server may have begun the call.
    """

    def __init__(self, sent: bool) -> None:
        super().__init__("the session with the MCP server has ended")
        self.sent = sent


class ServerError(Exception):
    """Raised for a call that the server has refused."""


@dataclass(frozen=True, eq=False)
class Call:
    """A call on its way to the server.

    Attributes:
        name: The tool.
        arguments: Its arguments.
        progress: Called with each progress report, in the session's thread.
        ask: Begins to ask for the answer to a question of the server, in the call's own loop.
        answers: The answers to what the call waited for, with which it goes on; None where it begins.
        result: What the server answers.
    """

    name: str
    arguments: Mapping[str, Any]
    progress: Callable[[dict[str, Any]], Any]
    ask: Callable[[Mapping[str, Any]], "Future[Mapping[str, Any]]"]
    answers: Round | None = None
    result: "Future[Mapping[str, Any]]" = field(default_factory=Future)


class Session:
    """A session. It begins to open at once.

    Args:
        address: Where the server is.
        roots: The folders that the server may know of, as URIs.
        elicit: Answers the server's questions; None declines them.
        open_timeout: Maximum number of seconds until it is open.
        label: The server's name in logs.

    Attributes:
        tools: The server's tools, as it lists them.
        version: How often they were listed.
        can_wait: Whether a call can end with questions, and go on with the answers.
        opened: Is done when the session can be used, or could not be opened.
        process: The process that the session belongs to.
    """

    def __init__(self, address: Address, roots: Sequence[str], elicit: Elicit | None, open_timeout: float, label: str) -> None:
        self.tools: Sequence[Mapping[str, Any]] = ()
        self.version = 0
        self.can_wait = False
        self.opened: Future[None] = Future()
        self.process = os.getpid()
        self._address = address
        self._roots = roots
        self._elicit = elicit
        self._open_timeout = open_timeout
        self._label = label
        self._calls: set[Call] = set()
        self._requests: Requests | None = None
        self._ending = False
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._loop = background_loop()
        self._queue: asyncio.Queue[Callable[[Any], Awaitable[None]] | None] = asyncio.Queue()
        self._loop.call_soon_threadsafe(self._begin, context=Context())  # nothing of the caller's context lives as long as a session

    def _begin(self) -> None:
        self._owner = asyncio.ensure_future(self._own())

    @property
    def is_usable(self) -> bool:
        """Whether calls may be sent: it is open or opening, in this process."""
        return not self._ending and self.process == os.getpid()

    def send(self, call: Call) -> None:
        """Send a call.

        Raises:
            SessionLost: The session has ended.
        """
        with self._lock:
            if not self.is_usable:
                raise SessionLost(sent=False)
            self._calls.add(call)
        self._put(partial(self._answer, call))

    def close(self, wait: float = 0.0) -> None:
        """End the session; wait at most so many seconds until it has ended."""
        if self.process == os.getpid():
            self._ending = True
            self._put(None)
            self._ended.wait(wait)

    def _put(self, task: Callable[[Any], Awaitable[None]] | None) -> None:
        with suppress(RuntimeError):  # the loop is closed: the process ends
            self._loop.call_soon_threadsafe(self._queue.put_nowait, task, context=Context())

    # ------------------------------------------------------------------------------------------ the task that owns it

    async def _own(self) -> None:
        failure: BaseException | None = None
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._open_timeout):
                    session = await self._open(stack)
                self.opened.set_result(None)
                await self._serve(session)
        except BaseException as error:  # the SDK's groups of errors, cancellation at the end of the process
            failure = error
            _logger.debug("the session with %s ended: %s", self._label, type(error).__name__)
        finally:
            with self._lock:
                self._ending = True
                lost, self._calls = self._calls, set()
            for call in lost:
                _settle(call.result, SessionLost(sent=True))
            self._ended.set()
            if not self.opened.done():
                self.opened.set_exception(ConfigurationError(f"{self._label} cannot be opened: {self._address.public(_reason(failure))}"))

    async def _open(self, stack: AsyncExitStack) -> Any:
        import anyio
        from mcp import ClientSession, types

        read, write = await stack.enter_async_context(self._address.open())
        if not hasattr(ClientSession, "discover"):
            write = self._requests = Requests(write)
        inward, heard = anyio.create_memory_object_stream[Any](0)
        relay = asyncio.ensure_future(self._relay(read, inward))
        stack.callback(relay.cancel)

        async def list_roots(context: Any) -> Any:
            return types.ListRootsResult.model_validate({"roots": [{"uri": uri} for uri in self._roots]})

        session = await stack.enter_async_context(
            ClientSession(
                heard,
                write,
                elicitation_callback=self._elicited,
                list_roots_callback=list_roots if self._roots else None,
                message_handler=self._heard,
            )
        )
        self.can_wait = await begin(session)
        await self._list(session)
        if self.can_wait:
            self._queue.put_nowait(self._hear_changes)
        return session

    async def _relay(self, read: Any, inward: Any) -> None:
        """Hand on what the server sends; its end is the session's."""
        async with inward, read:
            with suppress(Exception):
                async for message in read:
                    if self._address.url and isinstance(message, Exception):
                        break  # an answer is lost, and nobody would be told
                    await inward.send(message)
        self._end()

    def _end(self) -> None:
        """End the session, in its own thread: no call is taken any more."""
        self._ending = True
        self._queue.put_nowait(None)

    async def _serve(self, session: Any) -> None:
        running: set[asyncio.Future[None]] = set()
        try:
            while await self._begins_next(session, running):
                pass
        finally:
            for begun in running:
                begun.cancel()

    async def _begins_next(self, session: Any, running: set[asyncio.Future[None]]) -> bool:
        """Whether there is a next task, which has begun. Nothing here keeps the last one, and with it the model whose call it was."""
        task = await self._queue.get()
        if task is None:
            return False
        begun = asyncio.ensure_future(task(session))
        running.add(begun)
        begun.add_done_callback(running.discard)
        return True

    # ------------------------------------------------------------------------------------------ what goes over it

    async def _list(self, session: Any) -> None:
        from mcp import types

        tools: list[Mapping[str, Any]] = []
        page = await session.list_tools()
        while True:
            data = _wire(page)
            tools += data["tools"]
            if not data.get("nextCursor"):
                break
            page = await session.list_tools(params=types.PaginatedRequestParams(cursor=data["nextCursor"]))
        self.tools, self.version = tools, self.version + 1

    async def _heard(self, message: Any) -> None:
        """Read the list of tools anew when the server says that it has changed."""
        if getattr(getattr(message, "root", message), "method", "") == _LIST_CHANGED:
            self._queue.put_nowait(self._list)

    async def _hear_changes(self, session: Any) -> None:
        """Read the list of tools anew whenever a server says that it has changed, where it tells only who has subscribed."""
        from mcp.client.subscriptions import SubscriptionLost, listen
        from mcp.shared.exceptions import MCPError

        with suppress(MCPError):  # it tells nobody, or is gone
            while True:
                with suppress(SubscriptionLost):
                    async with listen(session, tools_list_changed=True) as changes:
                        if not changes.honored.tools_list_changed:
                            return
                        async for _ in changes:
                            self._queue.put_nowait(self._list)
                await asyncio.sleep(_SECONDS_UNTIL_HEARD_AGAIN)
                self._queue.put_nowait(self._list)  # what was said meanwhile is lost

    async def _answer(self, call: Call, session: Any) -> None:
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        call.result.add_done_callback(partial(self._cancel_if, task))

        async def progress(done: float, total: float | None, message: str | None) -> None:
            told = {"progress": done, "total": total, "message": message}
            call.progress({name: value for name, value in told.items() if value is not None})

        try:
            result = await session.call_tool(call.name, dict(call.arguments), progress_callback=progress, **self._inputs(call))
        except asyncio.CancelledError:
            if call.result.cancelled():
                self._forget(call)
                if self._requests is not None:
                    await self._requests.cancel()
            raise
        except Exception as error:
            lost = _lost(error)
            if lost is not None:
                self._end()
            self._forget(call)
            _settle(call.result, ServerError(self._address.public(str(error))) if lost is None else lost)
        else:
            self._forget(call)
            with suppress(InvalidStateError):  # cancelled
                call.result.set_result(_wire(result))

    def _inputs(self, call: Call) -> dict[str, Any]:
        """Return what a call says besides its arguments, to a server whose calls can wait."""
        if not self.can_wait:
            return {}
        from mcp import types

        kinds: dict[str, Any] = {"action": types.ElicitResult, "roots": types.ListRootsResult}
        known = call.answers
        answers = {} if known is None else {key: kinds[next(iter(one))].model_validate(one) for key, one in known.answers.items()}
        state = None if known is None else known.state
        return {"allow_input_required": True, "input_responses": answers or None, "request_state": state}

    def _cancel_if(self, task: "asyncio.Task[Any]", result: "Future[Any]") -> None:
        if result.cancelled():
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(task.cancel)

    def _forget(self, call: Call) -> None:
        with self._lock:
            self._calls.discard(call)

    async def _elicited(self, context: Any, params: Any) -> Any:
        from mcp import types

        return types.ElicitResult.model_validate(await self._answered(_wire(params)))

    async def _answered(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer to a question that the server asks during a call."""
        if self._elicit is not None:
            return await Questions(self._label, self._elicit, ()).during(asked)
        with self._lock:
            calls = list(self._calls)
        if len(calls) != 1:
            return declined(self._label, f"{len(calls)} calls run, and the protocol does not say which of them asks")
        (call,) = calls
        answer = call.ask(asked)
        call.result.add_done_callback(lambda _: answer.cancel())
        try:
            return await asyncio.wrap_future(answer)
        except Exception as error:
            _settle(call.result, error)
            return {"action": "cancel"}


def _settle(result: "Future[Any]", error: Exception) -> None:
    with suppress(InvalidStateError):  # cancelled
        result.set_exception(error)


def _lost(error: Exception) -> SessionLost | None:
    """Return the end of the session that an error of a call means; None if it is the server's answer."""
    answer = getattr(error, "error", None)
    if getattr(answer, "message", "") == _TERMINATED:
        return SessionLost(sent=False)  # a server that has been started again knows no such session
    if answer is not None and answer.code != _CONNECTION_CLOSED:
        return None
    return SessionLost(sent=True) if answer is not None or not isinstance(error, RuntimeError | ValueError) else None


def _reason(failure: BaseException | None) -> str:
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return f"{type(failure).__name__}: {failure}" if failure is not None else "it has ended"
