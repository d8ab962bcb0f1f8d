"""How an MCP server is reached: over HTTP with every response read before the SDK sees it.

The SDK loses what a status says: version 1 ends the whole session with an error of one request, version 2 puts codes of its own in place
of the status. So the HTTP client that the SDK is given reads each response first. What answers a request is handed on as one clean
JSON-RPC message; where nothing does, an error takes its place, and `faults` says whether the request can have been carried out.
"""

import asyncio
import json
import logging
import re
import sys
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from importlib import import_module
from inspect import isawaitable, iscoroutinefunction
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus, urlsplit
from urllib.request import getproxies, proxy_bypass

from ..addresses import public_url, without_query
from ..errors import ConfigurationError
from ..strict_json import mend_surrogates

_logger = logging.getLogger("langchain_autotools")

_SECONDS = 30.0
_SECONDS_OF_SILENCE = 300.0  # of a reply, as in the SDK's own client
_REDIRECTS = 5
_RESUMPTIONS = 2
_SHORTEST_SECRET = 4
_MOST_WORDS = 500
_ERROR = -32603
_EVENTS = "text/event-stream"
_HALF = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")

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
        for secret in self._values:
            text = text.replace(secret, "***")
        return text

    @cached_property
    def _values(self) -> Sequence[str]:
        of_url = urlsplit(self.url)
        pairs = [part for pair in of_url.query.split("&") for part in pair.partition("=")[2:]]
        values = [of_url.query, *pairs, *of_url.netloc.rpartition("@")[0].split(":")]
        if not callable(self.headers):
            values += [part for value in self.headers.values() for part in (value, value.rpartition(" ")[2])]
        forms = {form(value) for value in values for form in (str, unquote, unquote_plus, quote, quote_plus)}
        return sorted((one for one in forms if len(one) >= _SHORTEST_SECRET), key=len, reverse=True)

    def open(self, faults: "dict[str, Fault]") -> Any:
        """Return a context manager that connects, with the two streams of the connection.

        Args:
            faults: Takes what became of requests that the server has not answered, by the ids of the requests.
        """
        return self._http(faults) if self.url else self._stdio()

    def _stdio(self) -> Any:
        from mcp import StdioServerParameters, stdio_client

        program, *arguments = self.command
        parameters = StdioServerParameters(
            command=program, args=arguments, env=dict(self.env) or None, cwd=self.cwd, encoding_error_handler="replace"
        )
        return stdio_client(parameters, errlog=_stderr())

    @asynccontextmanager
    async def _http(self, faults: "dict[str, Fault]") -> AsyncIterator[Any]:
        from mcp.client import streamable_http

        unbounded: dict[str, Any] = {"max_sse_event_size": None} if hasattr(streamable_http, "DEFAULT_MAX_SSE_EVENT_SIZE") else {}
        async with _client(self, faults) as client:
            async with streamable_http.streamable_http_client(_plain(self.url), http_client=client, **unbounded) as streams:
                yield streams[:2]


def http_library() -> Any:
    """Return the module of the HTTP library that the SDK uses: `httpx` for its version 1, `httpx2` for version 2."""
    from mcp.client import streamable_http

    return import_module("httpx2" if hasattr(streamable_http, "httpx2") else "httpx")


def _plain(url: str) -> str:
    """Return a URL without its user and query."""
    of_url = urlsplit(url)
    return of_url._replace(netloc=of_url.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _stderr() -> Any:
    """Return where a server's error output goes: `sys.stderr`, or that of the process where a program has put something else there.

    The SDK would take what `sys.stderr` was when it was imported, which may be closed by now.
    """
    try:
        sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return sys.__stderr__
    return sys.stderr


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


def outcome_of(status: int, in_session: bool, error: Mapping[str, Any] | None = None) -> Outcome:
    """Return what a response without a result says of its request.

    Args:
        status: The HTTP status.
        in_session: Whether the request named a session.
        error: The JSON-RPC error that is the body; None where it is another one.
    """
    # 404: the rule of the transport for a session that has ended (specification 2025-11-25, "Session Management"). 400: what servers of
    # the TypeScript SDK answer that know no such session, as an error about no request.
    if in_session and (status == 404 or (status == 400 and error is not None and error.get("id") is None)):
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


def answer_in(data: Any, identity: Any) -> dict[str, Any] | None:
    """Return the response in what a server has sent, as JSON-RPC has it; None where there is none.

    Args:
        data: A message, or a batch of them.
        identity: The id of the request that it answers.
    """
    for one in data if isinstance(data, list) else [data]:
        if not isinstance(one, Mapping) or "method" in one:
            continue
        if "error" in one and "result" not in one:
            return {"jsonrpc": "2.0", "id": identity, "error": _error(one["error"])}
        if "result" in one:
            result = one["result"] if isinstance(one["result"], Mapping) else {"structuredContent": one["result"]}
            return {"jsonrpc": "2.0", "id": identity, "result": result}
    return None


def _error(error: Any) -> dict[str, Any]:
    """Return an error as JSON-RPC has it."""
    if not isinstance(error, Mapping):
        return {"code": _ERROR, "message": error if isinstance(error, str) else json.dumps(error)}
    code, message = error.get("code"), error.get("message")
    words = message if isinstance(message, str) else json.dumps(error if message is None else message)
    told = {"code": code if isinstance(code, int) and not isinstance(code, bool) else _ERROR, "message": words}
    return {**told, "data": error["data"]} if "data" in error else told


def read_message(text: str | bytes) -> Any:
    """Return what a server has written, with half characters mended; None where it is no JSON."""
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig", "replace")
    try:
        data = json.loads(text)
        return json.loads(mend_surrogates(json.dumps(data, ensure_ascii=False))) if _HALF.search(text) else data
    except (ValueError, RecursionError):
        return None


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


def _client(address: Address, faults: dict[str, Fault]) -> Any:
    """Return the HTTP client for the SDK's connection with a server."""
    library = http_library()

    class Transport(library.AsyncBaseTransport):  # type: ignore[misc, name-defined]
        """A transport whose requests know more than the client may."""

        async def handle_async_request(self, request: Any) -> Any:
            return await requests.send(request)

        async def aclose(self) -> None:
            await requests.close()

    class Client(library.AsyncClient):  # type: ignore[misc, name-defined]
        """A client whose responses are read before the SDK sees them."""

        async def send(self, request: Any, **settings: Any) -> Any:
            return await replies.answer(request, lambda: super(Client, self).send(request, **{**settings, "follow_redirects": False}))

    requests, replies = _Requests(address, library), _Replies(address, faults, library)
    return Client(
        transport=Transport(),
        headers={} if callable(address.headers) else dict(address.headers),
        auth=address.auth,
        timeout=library.Timeout(_SECONDS, read=_SECONDS_OF_SILENCE),
    )


class _Replies:
    """The responses of a server, each read before the SDK sees it.

    Args:
        address: Where the server is.
        faults: Takes what became of the requests that it has not answered.
        library: The HTTP library.
    """

    def __init__(self, address: Address, faults: dict[str, Fault], library: Any) -> None:
        self._address = address
        self._faults = faults
        self._library = library
        self._last_events: dict[Any, str] = {}
        self._failed: dict[Any, int] = {}

    async def answer(self, request: Any, send: Callable[[], Awaitable[Any]]) -> Any:
        """Return the response to a request, as the SDK may have it."""
        if request.method == "GET":
            return await self._events_of(request, send)
        if request.method != "POST":
            return await send()
        message = json.loads(request.content)
        identity = message.get("id") if "method" in message else None
        try:
            response = await send()
            if identity is None:  # nobody waits for an answer, and version 1 would end the session with an error
                await response.aclose()
                return self._library.Response(202, request=request)
            return await self._read(request, response, identity)
        except Exception as error:
            if identity is None:
                _logger.debug("a message to %s was not taken: %s", self._address.name, type(error).__name__)
                return self._library.Response(202, request=request)
            return self._made(request, self._failing(identity, _fault_of(error, self._library)))

    async def _read(self, request: Any, response: Any, identity: Any) -> Any:
        status, kind = response.status_code, response.headers.get("content-type", "").lower()
        kept = {name: response.headers[name] for name in ("mcp-session-id",) if name in response.headers}
        if status < 300 and kind.startswith(_EVENTS):
            return self._streamed(request, self._events(response, identity), kept)
        try:
            body = await response.aread()
        finally:
            await response.aclose()
        data = read_message(body) if status >= 400 or kind.startswith("application/json") else None
        answer = answer_in(data, identity)
        if answer is None or status >= 300:
            in_session = "mcp-session-id" in request.headers
            outcome = outcome_of(status, in_session, data if answer is not None and isinstance(data, Mapping) else None)
            failing = self._failing(identity, Fault(outcome, self._said(response, body, kind)))
            answer = answer or failing
        return self._made(request, answer, kept)

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
        """Keep what became of a request; return the error that stands in its answer's place."""
        self._faults[str(identity)] = fault
        return {"jsonrpc": "2.0", "id": identity, "error": {"code": _ERROR, "message": fault.words}}

    def _made(self, request: Any, message: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Any:
        """Return a response of one message."""
        told = {"content-type": "application/json", **(headers or {})}
        return self._library.Response(200, headers=told, content=json.dumps(message).encode(), request=request)

    def _streamed(self, request: Any, events: AsyncGenerator[bytes], headers: Mapping[str, str] | None = None) -> Any:
        """Return a response of events."""

        class Stream(self._library.AsyncByteStream):  # type: ignore[misc, name-defined]
            """The events, and their end."""

            def __aiter__(self) -> AsyncIterator[bytes]:
                return events

            async def aclose(self) -> None:
                await events.aclose()

        told = {"content-type": _EVENTS, **(headers or {})}
        return self._library.Response(200, headers=told, stream=Stream(), request=request)

    # ------------------------------------------------------------------------------------------ events

    async def _events_of(self, request: Any, send: Callable[[], Awaitable[Any]]) -> Any:
        """Return the response to a request for events: those of no request, or the rest of an answer."""
        last = request.headers.get("last-event-id")
        identity = next((one for one, event in self._last_events.items() if event == last), None)
        try:
            response = await send()
        except self._library.TransportError as error:
            if not self._gives_up(identity):
                raise
            return self._streamed(request, self._ended(identity, _fault_of(error, self._library).words))
        if response.status_code == 200 and response.headers.get("content-type", "").lower().startswith(_EVENTS):
            return self._streamed(request, self._events(response, identity, resumed=True))
        if self._gives_up(identity):
            await response.aclose()
            return self._streamed(request, self._ended(identity, f"the rest of its answer is not there: HTTP {response.status_code}"))
        return response

    def _gives_up(self, identity: Any) -> bool:
        """Whether the rest of an answer was asked for in vain once more, and for the last time."""
        if identity is None:
            return False
        self._failed[identity] = self._failed.get(identity, 0) + 1
        return self._failed[identity] >= _RESUMPTIONS

    async def _ended(self, identity: Any, words: str) -> AsyncGenerator[bytes]:
        """Yield the event that stands in an answer's place."""
        self._settled(identity)
        yield _written(self._failing(identity, Fault(Outcome.UNKNOWN, words)))

    async def _events(self, response: Any, identity: Any, resumed: bool = False) -> AsyncGenerator[bytes]:
        """Yield the events of a response as the SDK can read them. If it ends without the answer, an event says so."""
        words, before = "the answer has ended without its result", self._last_events.get(identity)
        try:
            async for event, answered in self._told(response, identity):
                if answered:
                    self._settled(identity)
                yield event
                if answered:
                    return
        except self._library.TransportError as error:
            words = _fault_of(error, self._library).words
        finally:
            await response.aclose()
        last = self._last_events.get(identity)
        if identity is None or (last is not None and not (resumed and last == before and self._gives_up(identity))):
            return  # the SDK asks for the rest
        async for end in self._ended(identity, words):
            yield end

    async def _told(self, response: Any, identity: Any) -> AsyncGenerator[tuple[bytes, bool]]:
        """Yield the events of a response, each with whether it is the answer."""
        async for event in _events_in(response.aiter_bytes()):
            if "id" in event and identity is not None:
                self._last_events[identity] = event["id"]
            for message in self._messages(event, identity):
                yield _written(message, event), identity is not None and message is not None and "method" not in message

    def _settled(self, identity: Any) -> None:
        """Forget from where an answer would go on."""
        self._last_events.pop(identity, None)
        self._failed.pop(identity, None)

    def _messages(self, event: Mapping[str, str], identity: Any) -> Sequence[Mapping[str, Any] | None]:
        """Return the messages of an event: None where it is only a place to go on from."""
        if not event.get("data"):
            return [None]
        data = read_message(event["data"])
        found: list[Mapping[str, Any]] = []
        for one in data if isinstance(data, list) else [data]:
            if isinstance(one, Mapping) and isinstance(one.get("method"), str):
                found.append(one)
            elif (answer := answer_in(one, one.get("id") if identity is None and isinstance(one, Mapping) else identity)) is not None:
                found.append(answer)
            else:
                _logger.warning("the MCP server %r has sent an event that cannot be read: it is passed over", self._address.name)
        return found


async def _events_in(chunks: AsyncIterator[bytes]) -> AsyncIterator[dict[str, str]]:
    """Yield server-sent events: their fields. Only the line ends of the format end a line, not all that Python takes for one."""
    fields: dict[str, str] = {}
    async for line in _lines(chunks):
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


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            yield line.rstrip(b"\r")
    if rest:
        yield rest


def _written(message: Mapping[str, Any] | None, event: Mapping[str, str] | None = None) -> bytes:
    """Return a message as an event, with the fields of the one that has brought it."""
    fields = [f"{name}: {event[name]}" for name in ("id", "retry") if event and name in event]
    data = "" if message is None else json.dumps(message)
    return "\n".join([*fields, f"data: {data}", "", ""]).encode()


# ---------------------------------------------------------------------------------------------- requests, below the client


class _Requests:
    """The requests of the client, each completed with what stands in no log: the user and the query of the URL, and new headers.

    The client logs the URL of each request at INFO; it sees one without them.

    Args:
        address: Where the server is.
        library: The HTTP library.
    """

    def __init__(self, address: Address, library: Any) -> None:
        self._headers = address.headers
        self._library = library
        self._whole = library.URL(address.url)
        self._transports: dict[str | None, Any] = {}

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
            headers |= {name.lower(): value for name, value in (await _asked(self._headers)).items()}
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
            self._transports[proxy] = self._library.AsyncHTTPTransport(proxy=proxy)
        return self._transports[proxy]

    async def close(self) -> None:
        """Close all connections."""
        for transport in self._transports.values():
            await transport.aclose()


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
