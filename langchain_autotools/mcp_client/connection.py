"""How an MCP server is reached: over HTTP with every response read before the SDK sees it.

The SDK loses what a status says: version 1 ends the whole session with an error of one request, version 2 puts codes of its own in place
of the status. So the HTTP client that the SDK is given reads each response first. What answers a request is handed on as one clean
JSON-RPC message; where nothing does, an error takes its place, and `faults` says whether the request can have been carried out.
"""

import asyncio
import json
import logging
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache, cached_property
from importlib import import_module
from inspect import isawaitable, iscoroutinefunction
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus, urlsplit
from urllib.request import getproxies, proxy_bypass

from ..addresses import public_url, without_query
from ..errors import ConfigurationError
from .program import run_program
from .reading import Lines, answer_of, half_answer, is_answer, key_of, messages_in, read_message, request_of

_logger = logging.getLogger("langchain_autotools")

_SECONDS = 30.0
_SECONDS_OF_SILENCE = 300.0  # of a reply, as in the SDK's own client
_REDIRECTS = 5
_IDLE_CONNECTIONS = 20
_SECONDS_UNTIL_TAKEN = 2.0
_RESUMPTIONS = 2
_SHORTEST_RETRY, _LONGEST_RETRY = 1_000, 30_000  # milliseconds: the one for a stream of its own, the other for the rest of an answer
_SHORTEST_SECRET = 4
_MOST_WORDS = 500
_ERROR = -32603
_KEPT = ("tools/call", "tools/list")
_CANCELLED = "notifications/cancelled"
_NO_REQUEST = "-"
_EVENTS = "text/event-stream"
_MARK = b"\xef\xbb\xbf"  # of the order of bytes, which may be before events

Headers = Mapping[str, str] | Callable[[], Mapping[str, str] | Awaitable[Mapping[str, str]]]


# ---------------------------------------------------------------------------------------------- address


@dataclass(frozen=True, repr=False)
class Address:
    """Where a server is: a program to start, or an address.

    Attributes:
        command: The program and its arguments; empty for a server with a URL.
        url: The URL of a server that runs already.
        env: Environment variables of the program, besides the few that every program gets.
        cwd: Its working directory.
        headers: HTTP headers of every request, or a function that returns them.
        auth: Signs the requests, as the HTTP library of the SDK does it; None: nothing does.
    """

    command: Sequence[str] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | Path | None = None
    headers: Headers = field(default_factory=dict)
    auth: Any = None

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
        known = {"a user": "@" in of_url.netloc, "a query": of_url.query, "env": self.env, "headers": self.headers, "auth": self.auth}
        return [name for name, value in known.items() if value]

    def public(self, text: str) -> str:
        """Return a text of the server without what only this process may know, which servers repeat in their errors."""
        return _without(text, self._values)

    @cached_property
    def _values(self) -> Sequence[str]:
        of_url = urlsplit(self.url)
        pairs = [part for pair in of_url.query.split("&") for part in pair.partition("=")[2:]]
        values = [of_url.query, *pairs, *of_url.netloc.rpartition("@")[0].split(":")]
        values += self.env.values()
        if not callable(self.headers):
            values += self.headers.values()
        return values

    def open(self, received: "Received") -> Any:
        """Return a context manager that connects, with two streams: of what comes, as messages or lines, and of what goes.

        Args:
            received: Takes what the server has said of requests, where that is not what the SDK gets.
        """
        return self._http(received) if self.url else run_program(self.command, self.env, self.cwd)

    @asynccontextmanager
    async def _http(self, received: "Received") -> AsyncIterator[Any]:
        from mcp.client import streamable_http

        unbounded: dict[str, Any] = {"max_sse_event_size": None} if hasattr(streamable_http, "DEFAULT_MAX_SSE_EVENT_SIZE") else {}
        async with _client(self, received) as client:
            async with streamable_http.streamable_http_client(_plain(self.url), http_client=client, **unbounded) as streams:
                yield streams[:2]


def _without(text: str, secrets: Sequence[str]) -> str:
    """Return a text without secrets, in any form in which they go over HTTP; one of two words also without the second."""
    parts = {part for secret in secrets for part in (secret, secret.rpartition(" ")[2])}
    forms = {form(part) for part in parts for form in (str, unquote, unquote_plus, quote, quote_plus)}
    for one in sorted((one for one in forms if len(one) >= _SHORTEST_SECRET), key=len, reverse=True):
        text = text.replace(one, "***")
    return text


def http_library() -> Any:
    """Return the module of the HTTP library that the SDK uses: `httpx` for its version 1, `httpx2` for version 2."""
    from mcp.client import streamable_http

    return import_module("httpx2" if hasattr(streamable_http, "httpx2") else "httpx")


def _plain(url: str) -> str:
    """Return a URL without its user and query."""
    of_url = urlsplit(url)
    return of_url._replace(netloc=of_url.netloc.rpartition("@")[2], query="", fragment="").geturl()


# ---------------------------------------------------------------------------------------------- what became of a request


class Outcome(Enum):
    """What became of a request that the server has not answered."""

    NOT_RUN = "not run"
    """It reached no session of the server: it may be sent again, over a new one."""
    UNKNOWN = "outcome unknown"
    REFUSED = "refused"


@dataclass(frozen=True)
class Fault:
    """Why the server has not answered a request.

    Attributes:
        outcome: What became of it.
        words: The status and the server's words, or what broke.
        error: The error that was raised instead of sending it, which whoever made the request is to see; None without one.
    """

    outcome: Outcome
    words: str
    error: Exception | None = None


UNREADABLE = Fault(Outcome.UNKNOWN, "its answer cannot be read")
_GIVEN_UP = Fault(Outcome.UNKNOWN, "it was given up")


@dataclass
class Received:
    """What a server has said of requests, by their ids, which the SDK does not get.

    Attributes:
        results: The results of calls and of lists, as the server has written them.
        faults: What became of requests that the server has not answered.
    """

    results: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)


def outcome_of(status: int, in_session: bool, error: Any = None) -> Outcome:
    """Return what a response without a result says of its request.

    Args:
        status: The HTTP status.
        in_session: Whether the request named a session.
        error: The JSON-RPC error that is the body; None where it is another one.
    """
    # 404: the rule of the transport for a session that has ended (specification 2025-11-25, "Session Management"). 400: what servers of
    # the TypeScript SDK answer that know no such session, as an error about no request.
    if in_session and (status == 404 or (status == 400 and isinstance(error, Mapping) and error.get("id") is None)):
        return Outcome.NOT_RUN
    if 300 <= status < 500 or status in (501, 505) or error is not None:
        return Outcome.REFUSED
    return Outcome.UNKNOWN


def _fault_of(error: Exception, library: Any) -> Fault:
    """Return what an error says of the request during which it was raised."""
    words = f"{type(error).__name__}: {error}".rstrip(": ")
    if isinstance(error, library.ConnectError | library.ConnectTimeout | library.PoolTimeout | library.ProxyError):
        return Fault(Outcome.NOT_RUN, words)
    if isinstance(error, library.RequestError | library.StreamError):
        return Fault(Outcome.UNKNOWN, words)
    return Fault(Outcome.REFUSED, words, error)  # raised by what signs requests, before they are sent


def _words_of(body: bytes, content_type: str) -> str:
    """Return what a response that is no answer says to a reader."""
    data = read_message(body)
    if isinstance(data, Mapping):
        inner = data.get("error", data)
        found = inner if isinstance(inner, Mapping) else data
        named = [found.get(name) for name in ("message", "error_description", "detail", "error", "title")]
        return next((one for one in named if isinstance(one, str) and one), json.dumps(data))[:_MOST_WORDS]
    return body.decode(errors="replace").strip()[:_MOST_WORDS] if content_type.startswith("text/plain") else ""


# ---------------------------------------------------------------------------------------------- HTTP client


def _client(address: Address, received: Received) -> Any:
    """Return the HTTP client for the SDK's connection with a server."""
    library = http_library()

    class Transport(library.AsyncBaseTransport):  # type: ignore[misc, name-defined]
        """A transport whose requests know more than the client may."""

        async def handle_async_request(self, request: Any) -> Any:
            return await requests.send(request)

        async def aclose(self) -> None:
            await replies.close()
            await requests.close()

    class Client(library.AsyncClient):  # type: ignore[misc, name-defined]
        """A client whose responses are read before the SDK sees them."""

        async def send(self, request: Any, **settings: Any) -> Any:
            return await replies.answer(request, lambda: super(Client, self).send(request, **{**settings, "follow_redirects": False}))

    requests = _Requests(address, library)
    replies = _Replies(address.name, received, library, requests.public)
    return Client(
        transport=Transport(),
        headers={} if callable(address.headers) else dict(address.headers),
        auth=address.auth,
        timeout=library.Timeout(_SECONDS, read=_SECONDS_OF_SILENCE),
    )


class _Replies:
    """The responses of a server, each read before the SDK sees it.

    Args:
        name: The server's name in logs.
        received: Takes what it has said of requests.
        library: The HTTP library.
        public: Takes out of a text of the server what only this process may know.
    """

    def __init__(self, name: str, received: Received, library: Any, public: Callable[[str], str]) -> None:
        self._name = name
        self._public = public
        self._received = received
        self._library = library
        self._kept: set[str] = set()
        self._sent: set[asyncio.Future[None]] = set()
        self._waiting: dict[Any, Callable[[], object]] = {}
        self._last_events: dict[Any, str] = {}
        self._failed: dict[Any, int] = {}

    async def answer(self, request: Any, send: Callable[[], Awaitable[Any]]) -> Any:
        """Return the response to a request, as the SDK may have it."""
        if request.method == "GET":
            return await self._events_of(request, send)
        message = json.loads(request.content) if request.method == "POST" else {}
        if "id" not in message or "method" not in message:
            return await self._sent_off(request, message, send)
        identity = message["id"]
        if message["method"] in _KEPT:
            self._kept.add(str(identity))
        task = asyncio.ensure_future(self._asked(request, send, identity))
        self._waiting[identity] = task.cancel
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()
            if self._waiting.get(identity) == task.cancel:
                del self._waiting[identity]
        return self._made(request, self._failing(identity, _GIVEN_UP)) if task.cancelled() else task.result()

    async def _asked(self, request: Any, send: Callable[[], Awaitable[Any]], identity: Any) -> Any:
        try:
            return await self._read(request, await send(), identity)
        except Exception as error:
            self._settled(identity)
            return self._made(request, self._failing(identity, _fault_of(error, self._library)))

    async def _sent_off(self, request: Any, message: Mapping[str, Any], send: Callable[[], Awaitable[Any]]) -> Any:
        """Send what nobody waits for an answer to, and wait until it is taken, but not for long: what follows would wait too.

        The SDK is told that it was taken. With an error its version 1 would end the session.
        """

        async def send_off() -> None:
            await (await send()).aclose()

        await asyncio.wait([self._beside(send_off())], timeout=_SECONDS_UNTIL_TAKEN)
        if message.get("method") == _CANCELLED:
            identity = message["params"]["requestId"]
            stop = self._waiting.pop(identity, None)
            if stop is not None:
                self._settled(identity)
                stop()
        return self._library.Response(202 if request.method == "POST" else 200, request=request)

    def _beside(self, work: Coroutine[Any, Any, None]) -> "asyncio.Future[None]":
        """Begin what may fail, and ends with the connection at the latest."""

        async def run() -> None:
            try:
                await work
            except Exception as error:
                _logger.debug("a message to %s was not taken: %s", self._name, type(error).__name__)

        task = asyncio.ensure_future(run())
        self._sent.add(task)
        task.add_done_callback(self._sent.discard)
        return task

    async def close(self) -> None:
        """Wait for nothing any more."""
        for task in (sent := list(self._sent)):
            task.cancel()
        await asyncio.gather(*sent, return_exceptions=True)

    async def _read(self, request: Any, response: Any, identity: Any) -> Any:
        status, kind = response.status_code, response.headers.get("content-type", "").lower()
        kept = {name: response.headers[name] for name in ("mcp-session-id",) if name in response.headers}
        if status < 300 and kind.startswith(_EVENTS):
            return self._streamed(request, self._events(response, identity), response, kept)
        try:
            body = await response.aread()
        finally:
            await response.aclose()
        data = read_message(body)
        strict = status >= 300 or not kind.startswith("application/json")  # only what names the protocol is an answer then
        found = [one for one in messages_in(data) if is_answer(one) and ("jsonrpc" in one or not strict)]
        found = [one for one in found if key_of(one.get("id")) == str(identity)] or found
        answer = answer_of(found[0], identity, self._public) if found else None
        if answer is None or status >= 300:
            outcome = outcome_of(status, "mcp-session-id" in request.headers, data if answer is not None else None)
            failing = self._failing(identity, Fault(outcome, self._said(response, body, kind)))
            answer = answer or failing
        handed = self._handed(answer)
        self._settled(identity)
        return self._made(request, handed, kept)

    def _said(self, response: Any, body: bytes, kind: str) -> str:
        """Return the status of a response that is no answer, with what it says."""
        status = response.status_code
        if status < 300:
            return f"HTTP {status} without an answer that can be read ({kind or 'no content type'})"
        words = _words_of(body, kind)
        if "location" in response.headers:
            words = f"it redirects to {without_query(response.headers['location'])}: give that URL if it is the server's"
        return f"HTTP {status} {response.reason_phrase}" + (f": {words}" if words else "")

    def _failing(self, identity: Any, fault: Fault) -> dict[str, Any]:
        """Keep what became of a request; return the error that takes its answer's place."""
        told = self._received.faults[str(identity)] = replace(fault, words=self._public(fault.words))
        return {"jsonrpc": "2.0", "id": identity, "error": {"code": _ERROR, "message": told.words}}

    def _handed(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """Keep the result of a call or a list; return the answer without it, which the SDK can read whatever is in it."""
        key = str(answer["id"])
        if "result" not in answer or key not in self._kept:
            return answer
        self._received.results.setdefault(key, answer["result"])
        return {**answer, "result": {}}

    def _made(self, request: Any, message: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Any:
        """Return a response of one message."""
        told = {"content-type": "application/json", **(headers or {})}
        return self._library.Response(200, headers=told, content=json.dumps(message).encode(), request=request)

    def _streamed(self, request: Any, events: AsyncGenerator[bytes], source: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        """Return a response of events, which come from another one."""

        class Stream(self._library.AsyncByteStream):  # type: ignore[misc, name-defined]
            """The events, and their end."""

            def __aiter__(self) -> AsyncIterator[bytes]:
                return events

            async def aclose(self) -> None:
                await events.aclose()
                if source is not None:
                    await source.aclose()

        told = {"content-type": _EVENTS, **(headers or {})}
        return self._library.Response(200, headers=told, stream=Stream(), request=request)

    # ------------------------------------------------------------------------------------------ events

    async def _events_of(self, request: Any, send: Callable[[], Awaitable[Any]]) -> Any:
        """Return the response to a request for events: those of no request, or the rest of an answer."""
        owner, _, last = request.headers.get("last-event-id", "").partition(":")
        identity = next((one for one in self._last_events if str(one) == owner), None)
        if last:
            request.headers["last-event-id"] = last
        if owner not in ("", _NO_REQUEST) and identity is None:
            return self._library.Response(405, request=request)  # it was given up
        try:
            response = await send()
        except self._library.TransportError as error:
            if not self._gives_up(identity):
                raise
            return self._streamed(request, self._ended(identity, _fault_of(error, self._library).words))
        if identity is not None and identity not in self._last_events:  # it was given up meanwhile
            await response.aclose()
            return self._library.Response(405, request=request)
        if response.status_code == 200 and response.headers.get("content-type", "").lower().startswith(_EVENTS):
            return self._streamed(request, self._events(response, identity, resumed=True), response)
        await response.aclose()
        if self._gives_up(identity):
            return self._streamed(request, self._ended(identity, f"the rest of its answer is not there: HTTP {response.status_code}"))
        return self._library.Response(response.status_code if response.status_code >= 400 else 405, request=request)

    def _gives_up(self, identity: Any) -> bool:
        """Whether the rest of an answer was asked for in vain once more, and for the last time."""
        if identity is None:
            return False
        self._failed[identity] = self._failed.get(identity, 0) + 1
        return self._failed[identity] >= _RESUMPTIONS

    async def _ended(self, identity: Any, words: str) -> AsyncGenerator[bytes]:
        """Yield the event that takes an answer's place."""
        self._settled(identity)
        yield _written(self._failing(identity, Fault(Outcome.UNKNOWN, words)))

    async def _events(self, response: Any, identity: Any, resumed: bool = False) -> AsyncGenerator[bytes]:
        """Yield the events of a response as the SDK can read them. If it ends without the answer, an event says so."""
        words, before = "the answer has ended without its result", self._last_events.get(identity)
        if identity is not None:
            self._waiting[identity] = lambda: self._beside(response.aclose())
        try:
            async for event, answered in self._told(response, identity):
                if answered:
                    self._settled(identity)
                yield event
                if answered:
                    return
        except (self._library.RequestError, self._library.StreamError) as error:
            words = _fault_of(error, self._library).words
        finally:
            self._waiting.pop(identity, None)
            await response.aclose()
        last = self._last_events.get(identity)
        if identity is None or (last is not None and not (resumed and last == before and self._gives_up(identity))):
            return  # the SDK asks for the rest
        async for end in self._ended(identity, words):
            yield end

    async def _told(self, response: Any, identity: Any) -> AsyncGenerator[tuple[bytes, bool]]:
        """Yield the events of a response, each with whether it is the answer. One that is for another request is it if no other comes."""
        other: Mapping[str, Any] | None = None
        async for event in _events_in(response.aiter_bytes()):
            if "id" in event and identity is not None:
                self._last_events[identity] = event["id"]
            for message in self._messages(event, identity):
                answers = message is not None and is_answer(message) and identity is not None
                if message is not None and answers and message["id"] != identity:
                    other = other or message
                else:
                    told = self._handed(message) if message is not None and is_answer(message) else message
                    yield _written(told, event, identity), answers
        if other is not None:
            yield _written(self._handed({**other, "id": identity})), True

    def _settled(self, identity: Any) -> None:
        """Forget a request."""
        self._kept.discard(str(identity))
        self._last_events.pop(identity, None)
        self._failed.pop(identity, None)

    def _messages(self, event: Mapping[str, str], identity: Any) -> Sequence[Mapping[str, Any] | None]:
        """Return the messages of an event: None where it is only a place to go on from."""
        if not event.get("data"):
            return [None]
        data = read_message(event["data"])
        is_half, key = (False, None) if data is not None or identity is None else half_answer(event["data"].encode())
        if is_half and key in (None, str(identity)):
            return [self._failing(identity, UNREADABLE)]
        found = [made for one in messages_in(data) if (made := self._message(one, identity)) is not None]
        if data is None:
            _logger.warning("the MCP server %r has sent an event that cannot be read: it is passed over", self._name)
        return found

    def _message(self, message: Mapping[str, Any], identity: Any) -> Mapping[str, Any] | None:
        """Return a message as the SDK takes it; None for one that is none."""
        key = key_of(message.get("id"))
        if is_answer(message):
            return answer_of(message, identity if key == str(identity) else message.get("id"), self._public)
        if "method" not in message and key == str(identity):
            return self._failing(identity, UNREADABLE)
        return request_of(message)


async def _events_in(chunks: AsyncIterator[bytes]) -> AsyncIterator[dict[str, str]]:
    """Yield server-sent events: their fields."""
    fields: dict[str, str] = {}
    async for line in _lines_in(chunks):
        name, _, value = line.decode(errors="replace").partition(":")
        if not line and fields:
            yield fields
            fields = {}
        elif name == "data" and "data" in fields:
            fields["data"] += "\n" + value.removeprefix(" ")
        elif name:
            fields[name] = value.removeprefix(" ")
    if fields:
        yield fields


async def _lines_in(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    found, mark = Lines(), _MARK
    async for chunk in chunks:
        for line in found.feed(chunk):
            yield line.removeprefix(mark)
            mark = b""
    for line in found.rest():
        yield line.removeprefix(mark)


def _written(message: Mapping[str, Any] | None, event: Mapping[str, str] | None = None, identity: Any = None) -> bytes:
    """Return a message as an event.

    Args:
        message: The message; None for an event without one.
        event: The event that has brought it. Its id goes with it, with that of the request whose answer it is of: the SDK gives both back.
        identity: The id of that request; None for an event of no answer.
    """
    found, fields = event or {}, []
    if "id" in found and "\0" not in found["id"]:
        fields.append(f"id: {_NO_REQUEST if identity is None else identity}:{found['id']}")
    if found.get("retry", "").isdecimal():
        told = int(found["retry"][:9])
        fields.append(f"retry: {max(told, _SHORTEST_RETRY) if identity is None else min(told, _LONGEST_RETRY)}")
    data = "" if message is None else json.dumps(message)
    return "\n".join([*fields, f"data: {data}", "", ""]).encode()


# ---------------------------------------------------------------------------------------------- requests, below the client


class _Requests:
    """The requests of the client, each completed with what is in no log: the user and the query of the URL, and new headers.

    The client logs the URL of each request at INFO; it sees one without them.

    Args:
        address: Where the server is.
        library: The HTTP library.
    """

    def __init__(self, address: Address, library: Any) -> None:
        self._address = address
        self._headers = address.headers
        self._library = library
        self._keys: dict[str, str] = {}
        self._whole = library.URL(address.url)
        self._transports: dict[str | None, Any] = {}

    def public(self, text: str) -> str:
        """Return a text of the server without what only this process may know, the last key of whoever signs requests included."""
        return _without(self._address.public(text), list(self._keys.values()))

    async def send(self, request: Any) -> Any:
        """Send a request, and return its response."""
        if not _same_origin(request.url, self._whole) or request.url.path != self._whole.path:
            return await self._through(request).handle_async_request(request)
        response = await self._completed(request)
        if response.status_code == 401 and callable(self._headers):  # it was not carried out: once more, with a new token
            await response.aclose()
            response = await self._completed(request)
        return response

    async def _completed(self, request: Any) -> Any:
        """Send a request with all that the server needs; to where the server says, on the server itself."""
        url, headers = request.url.copy_with(query=self._whole.query or None), dict(request.headers)
        if self._whole.userinfo:
            headers.setdefault("authorization", f"Basic {b64encode(unquote(self._whole.userinfo.decode()).encode()).decode()}")
        if callable(self._headers):
            asked = {name.lower(): value for name, value in (await _asked(self._headers)).items()}
            headers, self._keys = {**headers, **asked}, {**self._keys, **asked}
        if "authorization" in headers:
            self._keys["authorization"] = headers["authorization"]
        for _ in range(_REDIRECTS):
            sent = self._library.Request(request.method, url, headers=headers, stream=request.stream, extensions=request.extensions)
            response = await self._through(sent).handle_async_request(sent)
            goal = _followed(response, url)
            if goal is None:
                break
            await response.aclose()
            url = goal
        return response

    def _through(self, request: Any) -> Any:
        """Return the transport to a server: by the proxy that the environment names."""
        proxies = {} if proxy_bypass(request.url.host) else getproxies()
        proxy = proxies.get(request.url.scheme) or proxies.get("all")
        if proxy not in self._transports:
            limits = self._library.Limits(max_connections=None, max_keepalive_connections=_IDLE_CONNECTIONS)  # a call waits for no other
            verify = _certificates(self._library)
            self._transports[proxy] = self._library.AsyncHTTPTransport(verify=verify, proxy=proxy, limits=limits)
        return self._transports[proxy]

    async def close(self) -> None:
        """Close all connections."""
        for transport in self._transports.values():
            await transport.aclose()


@cache
def _certificates(library: Any) -> Any:
    """Return what the certificates of servers are checked with: read once, as that takes longer than to open a session."""
    return library.create_ssl_context()


def _same_origin(url: Any, other: Any) -> bool:
    """Whether two URLs are of one server: also one that has it over HTTPS what the other has over HTTP, both at the default ports."""
    secured = (url.scheme, other.scheme) == ("https", "http") and url.port is None and other.port is None
    return bool(url.host == other.host and (secured or (url.scheme, url.port) == (other.scheme, other.port)))


def _followed(response: Any, url: Any) -> Any:
    """Return where a response sends the same request to, on the same server; None where it does not."""
    status, location = response.status_code, response.headers.get("location")
    if location is None or status not in (307, 308):
        return None
    with suppress(Exception):  # no URL
        goal = url.join(location)
        return goal if not goal.userinfo and _same_origin(goal, url) else None
    return None


async def _asked(headers: Callable[[], Any]) -> Mapping[str, str]:
    """Return the headers of a request, of the caller's function: a synchronous one is called in a thread."""
    found = headers() if iscoroutinefunction(headers) else await asyncio.to_thread(headers)
    known = await found if isawaitable(found) else found
    if not isinstance(known, Mapping):
        raise ConfigurationError(f"headers() of an MCP server must return a mapping of names to values, not {type(known).__name__}")
    return known
