"""One session with an MCP server, owned by one task of a background loop from its connection to its end."""

import asyncio
import json
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import AsyncExitStack, suppress
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self, cast
from weakref import WeakKeyDictionary, WeakSet

from ..errors import ConfigurationError, LoginError
from ..executor.user_functions import background_loop
from .connection import UNREADABLE, Address, Fault, Outcome, Received
from .questions import Elicit, Questions, Round, declined
from .reading import answer_of, half_answer, is_answer, key_of, messages_in, read_message, request_of, result_of

_logger = logging.getLogger("langchain_autotools")

_OTHER_PROTOCOL = -32022
_SECONDS_TO_CANCEL = 5.0
_SECONDS_OF_LAST_ANSWERS = 1.0
_SECONDS_UNTIL_HEARD_AGAIN = 1.0
_SECONDS_BETWEEN_LISTS = 0.5
_MOST_PAGES = 200
_LIST_CHANGED = "notifications/tools/list_changed"
_CALL, _LIST, _INITIALIZE = "tools/call", "tools/list", "initialize"
_EXTRA = "MCP servers need the extra `mcp`: pip install 'langchain-autotools-chat[mcp]'"


# ---------------------------------------------------------------------------------------------- what goes over the connection


class Lost(Exception):
    """Raised for a request that the server has not answered, and will not.

    Attributes:
        sent: Whether the server may have begun it.
        words: Why, where something says so.
    """

    def __init__(self, sent: bool, words: str = "") -> None:
        super().__init__(words or "the session with the MCP server has ended")
        self.sent = sent
        self.words = words


class ServerError(Exception):
    """Raised for a request that the server has refused."""


class Wire:
    """What goes between a server and the SDK's session, with the server's answers as they are.

    The session holds answers to models of its own, and loses those that do not fit: calls that ran. So the answers to calls and to lists
    are taken here, and the session is handed what it accepts.

    Args:
        stream: The SDK's stream of what goes to the server.
        received: What the server has said of requests, where that is not what the SDK has got.
        public: Takes out of a text of the server what only this process may know.

    Attributes:
        modern: Whether the protocol is one in which a call can wait for answers (2026-07-28 or later).
        fault: What became of the request that was refused last; None where none was.
        names: The tools on the page that was listed last.
    """

    def __init__(self, stream: Any, received: Received, public: Callable[[str], str]) -> None:
        self.modern = False
        self.fault: Fault | None = None
        self.names: set[str] = set()
        self._stream = stream
        self._received = received
        self._public = public
        self._unread: list[set[str]] = []
        self._methods: dict[str, str] = {}
        self._answers: dict[str, tuple[Mapping[str, Any], Fault | None]] = {}
        self._sent: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stream.__aexit__(*error)

    async def send(self, message: Any) -> None:
        """Send a message of the session."""
        sent = _inside(message)
        if not {"method", "id"} <= sent.model_fields_set:
            return await self._stream.send(message)  # type: ignore[no-any-return]
        task = asyncio.current_task()
        self._methods[str(sent.id)], self._sent[task] = sent.method, message
        try:
            await self._stream.send(message)
        except Exception:
            self._forget(task)
            raise

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    async def answer(self, request: Awaitable[Any], given_up: Callable[[], bool] = lambda: False) -> Mapping[str, Any]:
        """Wait for a request of the session; return its result as the server has written it.

        Args:
            request: The request.
            given_up: Whether it is cancelled because nobody waits for it any more, which the server is told then.

        Raises:
            ServerError: The server has refused it.
            Lost: It has no answer.
        """
        task = asyncio.current_task()
        self._sent.pop(task, None)
        try:
            words = ""
            try:
                await request
            except Exception as error:  # what the answer says is read here
                words = str(error)
            sent = self._sent.get(task)
            answer, fault = self._answers.get(str(_inside(sent).id), ({}, None)) if sent is not None else ({}, None)
        except asyncio.CancelledError:
            if given_up():
                await self._cancel()
            raise
        finally:
            self._forget(task)
        if fault is not None and fault.error is not None:
            raise fault.error
        if fault is not None and fault.outcome is not Outcome.REFUSED:
            raise Lost(fault.outcome is Outcome.UNKNOWN, fault.words)
        if "error" in answer:
            raise ServerError(fault.words if fault is not None else answer["error"]["message"])
        if "result" not in answer:
            raise Lost(sent is not None, "" if sent is not None else words)
        result = result_of(answer["result"], self.modern)
        if result is None:
            raise Lost(True, "it waits for answers to what cannot be read")
        return result

    def _forget(self, task: Any) -> None:
        sent = self._sent.pop(task, None)
        if sent is not None:
            key = str(_inside(sent).id)
            if self._methods.pop(key, None) is not None and self._answers.pop(key, None) is None:
                self._unread = [one for one in self._unread if key not in one]  # it may have been the one that was answered

    async def _cancel(self) -> None:
        """Tell the server that nobody waits for the last request of this task, which version 1 of the SDK does not."""
        asked = self._sent.get(asyncio.current_task())
        if asked is None or not hasattr(asked.message, "root"):
            return
        params = {"requestId": asked.message.root.id, "reason": "the call was cancelled"}
        with suppress(Exception):  # the server is gone, or reads nothing
            async with asyncio.timeout(_SECONDS_TO_CANCEL):
                await self._stream.send(_message({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))

    # ------------------------------------------------------------------------------------------ what comes

    def read(self, message: Any) -> Sequence[Any]:
        """Return what the session is to have of what the server has sent: a line, or a message that the SDK has read."""
        if isinstance(message, Exception):
            return []  # the SDK could not read it, though all that it gets was read before
        found = self._in_line(message) if isinstance(message, bytes) else [message]
        return [*[self._taken(one) for one in found], *[self._taken(self._unreadable(key)) for key in self._left()]]

    def ends(self) -> Sequence[Any]:
        """Return what ends the requests that are open when the server has ended."""
        return [_failing(key, "the session has ended") for key in self._open]

    @property
    def _open(self) -> set[str]:
        """The requests that have no answer."""
        return {key for key in self._methods if key not in self._answers}

    def _taken(self, message: Any) -> Any:
        """Return an answer as the session accepts it, which is kept; any other message as it is."""
        answer = _inside(message)
        if hasattr(answer, "method"):
            return message
        key = str(answer.id)
        method, fault = self._methods.get(key), self._received.faults.pop(key, None)
        self.fault = fault or self.fault
        result = self._received.results.pop(key, getattr(answer, "result", None))
        if method is None:
            return message
        if method not in (_CALL, _LIST):
            del self._methods[key]
            if result is not None:
                answer.result = _opening(method, result)
            return message
        kept = {"result": result} if result is not None else {"error": answer.error.model_dump()}
        self._answers.setdefault(key, (kept, fault))
        if result is not None:
            answer.result = self._accepted(method, result)
        return message

    def _accepted(self, method: str, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return a result that the session accepts."""
        kept: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if self.modern else {}
        if method == _CALL:
            return {"content": [], "resultType": "complete"} if self.modern else {"content": []}
        tools = [_known(tool) for tool in listed(result)]
        self.names = {tool["name"] for tool in tools}
        return {"tools": tools, **kept}

    # ------------------------------------------------------------------------------------------ lines

    def _in_line(self, line: bytes) -> Sequence[Any]:
        """Return the messages in a line; the end of a request whose answer it may be, where it cannot be read."""
        data = read_message(line)
        if data is not None:
            return [made for one in messages_in(data) if (made := self._made(one)) is not None]
        is_half, key = half_answer(line)
        if is_half and key is None:
            self._unread.append(self._open)
        return [self._unreadable(key)] if is_half and key in self._open else []

    def _made(self, message: Mapping[str, Any]) -> Any:
        """Return a message as the SDK has it; None for an answer to nobody, and for what is no message."""
        key = key_of(message.get("id"))
        if is_answer(message):
            return _message(answer_of(message, _id_of(key), self._public)) if key in self._open else None
        request = request_of(message)
        if request is None:
            return self._unreadable(key) if "method" not in message and key in self._open else None
        return _message(request)

    def _left(self) -> Sequence[str]:
        """Return the requests whose answers cannot be read: each alone has none of those that were open when half an answer came."""
        for one in self._unread:
            one &= self._open
        left = [key for one in self._unread if len(one) == 1 for key in one]
        self._unread = [one for one in self._unread if len(one) > 1]
        return list(dict.fromkeys(left))

    def _unreadable(self, key: str | None) -> Any:
        """Return the end of a request whose answer cannot be read."""
        self._received.faults[str(key)] = UNREADABLE
        return _failing(key, UNREADABLE.words)


def listed(result: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the tools of a list: what is no tool at all is left out."""
    tools = result.get("tools")
    return [tool for tool in tools if isinstance(tool, Mapping) and isinstance(tool.get("name"), str)] if isinstance(tools, list) else []


def _known(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the session needs of a tool: its name, and the schema if that names headers of calls."""
    schema = tool.get("inputSchema")
    whole = schema if isinstance(schema, Mapping) and '"x-mcp-header"' in json.dumps(schema) else {}
    return {"name": tool["name"], "inputSchema": {**whole, "type": "object"}}


def _opening(method: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to the first request, with what the session must have: the versions of the protocol alone decide anything."""
    if method == _INITIALIZE:
        return {"protocolVersion": result.get("protocolVersion"), "capabilities": {}, "serverInfo": {"name": "server", "version": ""}}
    versions = result.get("supportedVersions")
    known = [version for version in versions if isinstance(version, str)] if isinstance(versions, list) else []
    return {"supportedVersions": known, "capabilities": {}, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def _inside(message: Any) -> Any:
    """Return the request, the answer or the notification of a message of either version of the SDK."""
    return getattr(message.message, "root", message.message)


def _message(data: Mapping[str, Any]) -> Any:
    """Return a message as the SDK has it."""
    from mcp import types
    from mcp.shared.message import SessionMessage

    known: Any = types
    adapter = getattr(types, "jsonrpc_message_adapter", None)
    return SessionMessage(known.JSONRPCMessage.model_validate(data) if adapter is None else adapter.validate_python(data))


def _failing(key: str | None, words: str) -> Any:
    """Return the message of an error in the place of an answer."""
    return _message({"jsonrpc": "2.0", "id": _id_of(key), "error": {"code": -32603, "message": words}})


def _id_of(key: str | None) -> Any:
    """Return the id of a request of the session, which are numbers and texts that the SDK makes."""
    return int(key) if key is not None and key.isdigit() else key


def check_installed() -> None:
    """Raise if the SDK is missing.

    Raises:
        ConfigurationError: It is.
    """
    try:
        import mcp  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(_EXTRA) from error


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
        self._lists: set[Future[None]] = set()
        self._begun: WeakSet[Call] = WeakSet()
        self._ending = False
        self._retired = self._has_ended = False
        self._wire: Wire | None = None
        self._changed = self._listing = False
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
        return not (self._ending or self._retired) and self.process == os.getpid()

    def retire(self) -> None:
        """Take no call any more; end with the last one that is under way."""
        with self._lock:
            self._retired = True
            if not self._calls:
                self._put(None)

    def send(self, call: Call) -> None:
        """Send a call.

        Raises:
            Lost: The session has ended.
        """
        with self._lock:
            if not self.is_usable:
                raise Lost(sent=False)
            self._calls.add(call)
        self._put(partial(self._answer, call))

    def list_anew(self) -> "Future[None]":
        """Begin to list the tools anew, once for all who wait for it. The future is done when `tools` are those of now.

        Raises:
            Lost: The session has ended.
        """
        done: Future[None] = Future()
        with self._lock:
            if not self.is_usable:
                raise Lost(sent=False)
            self._lists.add(done)
        self._put(self._list_waited_for)
        return done

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
        received = Received()
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._open_timeout):
                    session = await self._open(stack, received)
                self.opened.set_result(None)
                await self._serve(session)
        except BaseException as error:  # the SDK's groups of errors, cancellation at the end of the process
            failure = error
            _logger.debug("the session with %s ended: %s", self._label, type(error).__name__)
        finally:
            with self._lock:
                self._ending = True
                lost, self._calls, lists, self._lists = self._calls, set(), self._lists, set()
            for call in lost:
                _settle(call.result, Lost(sent=call in self._begun))
            for waiting in lists:
                _settle(waiting, Lost(sent=False))
            self._ended.set()
            if not self.opened.done():
                self.opened.set_exception(self._not_opened(failure))

    def _not_opened(self, failure: BaseException | None) -> Exception:
        """Return the error of a session that could not be opened."""
        fault = self._wire.fault if self._wire is not None else None
        if fault is not None and isinstance(fault.error, ConfigurationError | LoginError):
            return fault.error
        while isinstance(failure, BaseExceptionGroup):
            failure = failure.exceptions[0]
        reason = f"{type(failure).__name__}: {failure}" if failure is not None else "it has ended"
        return ConfigurationError(f"{self._label} cannot be opened: {self._address.public(reason if fault is None else fault.words)}")

    async def _open(self, stack: AsyncExitStack, received: Received) -> Any:
        import anyio
        from mcp import ClientSession, types

        read, write = await stack.enter_async_context(self._address.open(received))
        wire = self._wire = Wire(write, received, self._address.public)
        inward, heard = anyio.create_memory_object_stream[Any](0)
        relay = asyncio.ensure_future(self._relay(read, inward, wire))
        stack.callback(relay.cancel)

        async def list_roots(context: Any) -> Any:
            return types.ListRootsResult.model_validate({"roots": [{"uri": uri} for uri in self._roots]})

        session = await stack.enter_async_context(
            ClientSession(
                heard,
                cast("Any", wire),
                elicitation_callback=self._elicited,
                list_roots_callback=list_roots if self._roots else None,
                message_handler=self._heard,
            )
        )
        self.can_wait = wire.modern = await begin(session)
        await self._list(session, wire)
        if self.can_wait:
            self._queue.put_nowait(self._hear_changes)
        return session

    async def _relay(self, read: Any, inward: Any, wire: Wire) -> None:
        """Hand on what the server sends; its end is the session's."""
        async with inward, read:
            with suppress(Exception):
                async for message in read:
                    for one in wire.read(message):
                        await inward.send(one)
            with suppress(Exception):
                for one in wire.ends():
                    await inward.send(one)
        self._end()

    def _end(self) -> None:
        """End the session, in its own thread: no call is taken any more."""
        self._ending = self._has_ended = True
        self._queue.put_nowait(None)

    async def _serve(self, session: Any) -> None:
        running: set[asyncio.Future[None]] = set()
        try:
            while await self._begins_next(session, running):
                pass
            if self._has_ended and running:  # what it has answered is still read
                await asyncio.wait(running, timeout=_SECONDS_OF_LAST_ANSWERS)
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

    async def _list(self, session: Any, wire: Wire) -> None:
        from mcp import types

        tools: list[Mapping[str, Any]] = []
        cursor, seen = None, set[str]()
        while len(seen) < _MOST_PAGES:
            params = None if cursor is None else types.PaginatedRequestParams(cursor=cursor)
            dropped: set[str] = set()
            page = await wire.answer(_listed(session, params, dropped, wire))
            tools += [tool for tool in listed(page) if tool["name"] not in dropped]
            cursor = page.get("nextCursor")
            if not cursor or not isinstance(cursor, str):
                break
            if cursor in seen:
                _logger.warning("%s gives a page of its list of tools once more: the list ends there", self._label)
                break
            seen.add(cursor)
        else:
            _logger.warning("%s has more than %d pages of tools: the list ends there", self._label, _MOST_PAGES)
        if tools != self.tools:
            self.tools, self.version = tools, self.version + 1

    async def _list_waited_for(self, session: Any) -> None:
        """List the tools for all who wait for a list; one that is on its way already is none for them."""
        assert self._wire is not None
        with self._lock:
            lists, self._lists = self._lists, set()
        failure: Exception | None = Lost(sent=False)
        try:
            if lists:
                await self._list(session, self._wire)
            failure = None
        except Exception as error:  # also one of the program's, that makes headers
            failure = error
        finally:
            for waiting in lists:
                _settle(waiting, failure)

    async def _heard(self, message: Any) -> None:
        """Read the list of tools anew when the server says that it has changed."""
        if getattr(getattr(message, "root", message), "method", "") == _LIST_CHANGED:
            self._list_again()

    def _list_again(self) -> None:
        """Ask for the list of tools; once for all changes that are told while it is asked for."""
        self._changed = True
        if not self._listing:
            self._listing = True
            self._queue.put_nowait(self._read_changes)

    async def _read_changes(self, session: Any) -> None:
        assert self._wire is not None
        pause = _SECONDS_BETWEEN_LISTS
        try:
            while self._changed and not self._ending:
                self._changed = False
                async with asyncio.timeout(self._open_timeout):
                    await self._list(session, self._wire)
                await asyncio.sleep(pause)
                pause *= 2
        except (Lost, ServerError, TimeoutError) as error:
            _logger.warning("%s does not tell its new tools: %s", self._label, error)
        finally:
            self._listing = False

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
                            self._list_again()
                await asyncio.sleep(_SECONDS_UNTIL_HEARD_AGAIN)
                self._list_again()  # what was said meanwhile is lost

    async def _answer(self, call: Call, session: Any) -> None:
        from mcp.types import CallToolResult

        wire, task = cast("Wire", self._wire), cast("asyncio.Task[Any]", asyncio.current_task())
        self._begun.add(call)
        call.result.add_done_callback(partial(self._cancel_if, task))

        async def progress(done: float, total: float | None, message: str | None) -> None:
            told = {"progress": done, "total": total, "message": message}
            call.progress({name: value for name, value in told.items() if value is not None})

        try:
            request = session.send_request(self._request(call), CallToolResult, progress_callback=progress)
            result = await wire.answer(request, call.result.cancelled)
        except asyncio.CancelledError:
            if call.result.cancelled():
                self._forget(call)
            raise
        except Exception as error:
            self._forget(call)
            _settle(call.result, error)
        else:
            self._forget(call)
            _settle(call.result, None, result)

    def _request(self, call: Call) -> Any:
        """Return the request of a call; to a server whose calls can wait, with the answers to what it waited for."""
        from mcp import types

        params: dict[str, Any] = {"name": call.name, "arguments": dict(call.arguments)}
        if self.can_wait and call.answers is not None:
            params |= {"inputResponses": call.answers.answers, "requestState": call.answers.state}
        request, known = types.CallToolRequest.model_validate({"method": _CALL, "params": params}), cast("Any", types)
        return request if hasattr(types, "jsonrpc_message_adapter") else known.ClientRequest(request)

    def _cancel_if(self, task: "asyncio.Task[Any]", result: "Future[Any]") -> None:
        if result.cancelled():
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(task.cancel)

    def _forget(self, call: Call) -> None:
        with self._lock:
            self._calls.discard(call)
            if self._retired and not self._calls:
                self._put(None)

    async def _elicited(self, context: Any, params: Any) -> Any:
        from mcp import types

        asked = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        return types.ElicitResult.model_validate(await self._answered(asked))

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


def _settle(future: "Future[Any]", error: Exception | None, result: Any = None) -> None:
    with suppress(InvalidStateError):  # cancelled
        future.set_result(result) if error is None else future.set_exception(error)


async def _listed(session: Any, params: Any, dropped: set[str], wire: Wire) -> None:
    """Ask for a page of the list of tools; note the names of those that the session drops, as those whose headers are none of HTTP's."""
    page = await session.list_tools() if params is None else await session.list_tools(params=params)
    dropped |= wire.names - {tool.name for tool in page.tools}
