"""The kinds of bad MCP servers that can be reached over HTTP alone."""

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.bad_mcp_kinds import CHANGED, KINDS
from tests.support.bad_mcp_servers import NEVER, SECRETS, UNKNOWN, Asked, Kind, Script, event
from tests.support.http_server import Close, Drop, Gate, HttpReply, Part

_JSON, _EVENTS = {"content-type": "application/json"}, {"content-type": "text/event-stream"}


def add(name: str, told: Any = "ok", **more: Any) -> None:
    """Add a kind."""
    assert name not in KINDS, name
    KINDS[name] = Kind(name, told=told, over=("http",), status="error" if told in (UNKNOWN, NEVER) else "success", **more)


def replies(name: str, told: Any = "ok", *, at: str = "tools/call", **more: Any) -> Callable[[Callable[[Asked], HttpReply]], None]:
    """Make a function a kind: what it replies at a method."""

    def made(reply: Callable[[Asked], HttpReply]) -> None:
        scripts: dict[str, Script] = {at: lambda asked: [reply(asked)], **more.pop("scripts", {})}
        add(name, told, scripts=scripts, **more)

    return made


def raw(head: str, *parts: Part, status: str = "200 OK", json: bool = True) -> HttpReply:
    """A reply that is written as it is."""
    kind = "content-type: application/json\r\n" if json else ""
    return HttpReply([f"HTTP/1.1 {status}\r\n{kind}{head}\r\n".encode(), *parts], framing="raw")


def body(asked: Asked) -> bytes:
    """The answer to a call."""
    return asked.text().encode()


# ---------------------------------------------------------------------------------------------- events


def events(name: str, form: Callable[[str], Any], told: Any = "ok", **more: Any) -> None:
    """Add a kind whose answer is events of this form: one piece, or several."""

    def reply(asked: Asked) -> HttpReply:
        parts = form(asked.text("😀 ok"))
        return HttpReply([parts] if isinstance(parts, bytes) else parts, headers=_EVENTS)

    add(name, told, scripts={"tools/call": lambda asked: [reply(asked)]}, **more)


def _lines(end: str) -> Callable[[str], bytes]:
    return lambda text: end.join([": hello", "event: message", f"data: {text}", "", ""]).encode()


def _pieces(end: str) -> Callable[[str], list[bytes]]:
    return lambda text: [bytes([byte]) for byte in end.join(["id: 1", f"data: {text}", "", ""]).encode()]


events("events with line ends of Windows", _lines("\r\n"))
events("events with line ends of old times", _lines("\r"))
events("events in single bytes", _pieces("\n"))
events("events in single bytes, with line ends of Windows", _pieces("\r\n"))
events("events in single bytes, with line ends of old times", _pieces("\r"))
events("events after a byte order mark", lambda text: b"\xef\xbb\xbf" + event(text))
events("events of several lines", lambda text: event(json.dumps(json.loads(text), indent=2, ensure_ascii=False)))
events("events without a space", lambda text: f"data:{text}\n\n".encode())
events("events with comments inside", lambda text: f": a\n:\ndata: {text}\n: b\n\n: c\n\n".encode())
events("events with odd fields", lambda text: event(text, event="other", id="a\0b", retry="soon", unknown="x") + b"data\n\n")
events("events of nothing first", lambda text: b"data:\n\ndata: \n\nevent: ping\n\nid\n\nretry: 1\n\n" + event(text))
events("events that go on after the answer", lambda text: [event(text), *[event(CHANGED.replace("tools/list", "x"))] * 500])
events("events that never end after the answer", lambda text: [event(text), Gate()])
events("events that are torn off after the answer", lambda text: [event(text), Drop()])
events("events that are torn off before the answer", lambda text: [event(CHANGED), Drop()], UNKNOWN)
events("an answer, and one for another request, in one stream", lambda text: event(text.replace('"id": ', '"id": 1')) + event(text))
events("half an answer in a stream without an end", lambda text: [event(text[:40]), Gate()], UNKNOWN)
events(
    "an answer without a result in a stream without an end",
    lambda text: [event('{"jsonrpc":"2.0","id":' + str(json.loads(text)["id"]) + "}"), Gate()],
    UNKNOWN,
)
events("events of three megabytes in single lines", lambda text: event(text.replace("ok", "\\n" * 1_500_000 + " ok")))
events("bytes that are no events", lambda text: b"\xff\xfe\x00" * 100, UNKNOWN)


# ---------------------------------------------------------------------------------------------- events to go on from


def goes_on(name: str, told: Any, *rest: Callable[[str], HttpReply], first: tuple[Part, ...] = (), retry: str = "1", **more: Any) -> None:
    """Add a kind whose answer breaks off, and goes on by these replies to the next requests for the rest, the last again and again."""

    def begin(asked: Asked) -> Iterator[HttpReply]:
        asked.server.state["text"] = asked.text()
        yield HttpReply([event("", id="e1", retry=retry), *first], headers=_EVENTS)

    def go_on(asked: Asked) -> Iterator[HttpReply]:
        if asked.exchange is None or "last-event-id" not in asked.exchange.headers:
            yield HttpReply(status=405, framing="length")
            return
        number = asked.server.state["asked"] = asked.server.state.get("asked", 0) + 1
        yield rest[min(number, len(rest)) - 1](asked.server.state["text"])

    add(name, told, scripts={"tools/call": begin, "GET": go_on}, **more)


def _whole(text: str) -> HttpReply:
    return HttpReply([event(text, id="e2")], headers=_EVENTS)


def _more(text: str) -> HttpReply:
    return HttpReply([event(CHANGED, id="e1b", retry="1")], headers=_EVENTS)


goes_on("an answer that goes on", "ok", _whole)
goes_on("an answer that is torn off, and goes on", "ok", _whole, first=(Drop(),))
goes_on("an answer that goes on twice", "ok", _more, _whole)
goes_on("an answer that goes on, once the server is there again", "ok", lambda _: HttpReply([Drop()], headers={}), _whole)
goes_on("an answer that goes on after an error", "ok", lambda _: HttpReply(status=503, framing="length"), _whole)
goes_on("an answer that does not go on", UNKNOWN, lambda _: HttpReply(status=404, framing="length"))
goes_on("an answer that goes on with nothing", UNKNOWN, lambda _: HttpReply(headers=_EVENTS))
goes_on(
    "an answer that goes on with a page",
    UNKNOWN,
    lambda _: HttpReply([b"<h1>Hi</h1>"], headers={"content-type": "text/html"}, framing="length"),
)
goes_on(
    "an answer that goes on elsewhere",
    UNKNOWN,
    lambda _: HttpReply(status=302, headers={"location": "http://127.0.0.1:1/"}, framing="length"),
)
goes_on("an answer that goes on with half of it", UNKNOWN, lambda text: HttpReply([event(text[:40])], headers=_EVENTS))
goes_on("an answer that goes on for ever", NEVER, lambda _: HttpReply([b": wait\n\n", Gate()], headers=_EVENTS))
goes_on("an answer that goes on after a day", "ok", _whole, retry="86400000")


# ---------------------------------------------------------------------------------------------- the stream of events beside the calls


def stream(name: str, script: Callable[[Asked], HttpReply], **more: Any) -> None:
    """Add a kind whose stream of events is this."""

    def noted(asked: Asked) -> Iterator[HttpReply]:
        asked.server.note("GET")
        yield script(asked)

    add(name, scripts={"GET": noted, **more.pop("scripts", {})}, **more)


stream("a stream that ends at once, again and again", lambda _: HttpReply([b"retry: 0\n\n"], headers=_EVENTS))
stream("a stream that is torn off, again and again", lambda _: HttpReply([b"retry: 0\n\n", Drop()], headers=_EVENTS))
stream("a stream that is a page", lambda _: HttpReply([b"<h1>Hi</h1>"], headers={"content-type": "text/html"}, framing="length"))
stream("a stream of errors", lambda _: HttpReply([b"no"], status=500, framing="length"))
stream("a stream that is not answered", lambda _: HttpReply([Gate()], framing="raw"))
stream("a stream of 3,000 changes", lambda _: HttpReply([*[event(CHANGED)] * 3_000, Gate()], headers=_EVENTS))
stream(
    "a stream of what is no message",
    lambda _: HttpReply([event("hello"), event("{"), event("[]"), event('{"id":1}'), Gate()], headers=_EVENTS),
)
stream(
    "a stream of answers to nobody", lambda _: HttpReply([event('{"jsonrpc":"2.0","id":977,"result":{}}')] * 9 + [Gate()], headers=_EVENTS)
)
stream("a stream that asks", lambda _: HttpReply([event('{"jsonrpc":"2.0","id":"q","method":"roots/list"}'), Gate()], headers=_EVENTS))
stream(
    "a stream that has moved", lambda _: HttpReply(status=307, headers={"location": f"/elsewhere?key={SECRETS['query']}"}, framing="length")
)
stream(
    "a stream that has moved to another server",
    lambda _: HttpReply(status=302, headers={"location": f"http://127.0.0.1:1/?key={SECRETS['query']}"}, framing="length"),
)


def _answers_elsewhere() -> dict[str, Script]:
    """Scripts of a server that answers calls in the stream of events."""

    def told(asked: Asked) -> Iterator[Any]:
        gate = asked.server.state.setdefault("gate", Gate())

        def parts() -> Iterator[Part]:
            yield b": hello\n\n"
            yield gate
            yield event(asked.server.state["text"])
            yield Gate()

        yield HttpReply(parts(), headers=_EVENTS)

    def called(asked: Asked) -> Iterator[HttpReply]:
        asked.server.state["text"] = asked.text()
        asked.server.state.setdefault("gate", Gate()).open()
        yield HttpReply([b": wait\n\n", Gate()], headers=_EVENTS)

    return {"GET": told, "tools/call": called}


add("an answer in the stream of events", scripts=_answers_elsewhere())

# ---------------------------------------------------------------------------------------------- bodies


@replies("an answer without headers", NEVER)
def _(asked: Asked) -> HttpReply:
    return HttpReply([Gate()], framing="raw")


@replies("half an answer without an end", NEVER)
def _(asked: Asked) -> HttpReply:
    return HttpReply([body(asked)[:20], Gate()], headers=_JSON)


@replies("a connection that is closed after each answer")
def _(asked: Asked) -> HttpReply:
    return raw(f"content-length: {len(body(asked))}\r\n", body(asked), Close())


@replies("a body in single bytes")
def _(asked: Asked) -> HttpReply:
    return HttpReply([bytes([byte]) for byte in body(asked)], headers=_JSON)


@replies("a body that the end of the connection ends")
def _(asked: Asked) -> HttpReply:
    return HttpReply([body(asked)], headers=_JSON, framing="close")


@replies("a body that is cut off between pieces", UNKNOWN)
def _(asked: Asked) -> HttpReply:
    return raw("transfer-encoding: chunked\r\n", b"a\r\n" + body(asked)[:10] + b"\r\n", Close())


@replies("a body that is cut off in a piece", UNKNOWN)
def _(asked: Asked) -> HttpReply:
    return raw("transfer-encoding: chunked\r\n", b"ff\r\n" + body(asked)[:10], Close())


@replies("a body whose pieces have no length", UNKNOWN)
def _(asked: Asked) -> HttpReply:
    return raw("transfer-encoding: chunked\r\n", b"xyz\r\n" + body(asked) + b"\r\n0\r\n\r\n", Close())


@replies("a body that is shorter than it says", UNKNOWN)
def _(asked: Asked) -> HttpReply:
    return raw(f"content-length: {len(body(asked)) + 50}\r\n", body(asked), Close())


@replies("a body that is longer than it says", UNKNOWN, lost=True)
def _(asked: Asked) -> HttpReply:
    return raw("content-length: 20\r\n", body(asked))


@replies("an answer with more behind it", lost=True)
def _(asked: Asked) -> HttpReply:
    return raw(f"content-length: {len(body(asked))}\r\n", body(asked) + b"garbage")


@replies("a body of two lengths", UNKNOWN)
def _(asked: Asked) -> HttpReply:
    return raw(f"content-length: {len(body(asked))}\r\ncontent-length: 3\r\n", body(asked), Close())


@replies("a body with a negative length", UNKNOWN)
def _(asked: Asked) -> HttpReply:
    return raw("content-length: -1\r\n", body(asked), Close())


@replies("a head that is none", UNKNOWN)
def _(asked: Asked) -> HttpReply:
    return HttpReply([b"hello\r\n\r\n" + body(asked), Close()], framing="raw")


@replies("a head without an end", UNKNOWN)
def _(asked: Asked) -> HttpReply:
    return raw("x: " + "y" * 200_000 + "\r\n", body(asked), Close())


@replies("hints before the answer")
def _(asked: Asked) -> HttpReply:
    hints = b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body(asked))}\r\n\r\n".encode()
    return HttpReply([hints + head + body(asked)], framing="raw")


@replies("an answer of HTTP 1.0")
def _(asked: Asked) -> HttpReply:
    return HttpReply([b"HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n" + body(asked), Close()], framing="raw")


def packed(name: str, encoding: str, form: Callable[[bytes], bytes], told: Any = "ok", kind: dict[str, str] = _JSON) -> None:
    """Add a kind whose answer is packed."""

    def reply(asked: Asked) -> HttpReply:
        content = event(asked.text()) if kind is _EVENTS else body(asked)
        return HttpReply([form(content)], headers={**kind, "content-encoding": encoding}, framing="length")

    add(name, told, scripts={"tools/call": lambda asked: [reply(asked)]})


packed("a packed body", "gzip", gzip.compress)
packed("a packed body of another kind", "deflate", zlib.compress)
packed("packed events", "gzip", gzip.compress, kind=_EVENTS)
packed("half a packed body", "gzip", lambda content: gzip.compress(content)[:-20], UNKNOWN)
packed("half of packed events", "gzip", lambda content: gzip.compress(content)[:-20], UNKNOWN, _EVENTS)
packed("a body that is not packed, as it says", "gzip", lambda content: content, UNKNOWN)
packed("events that are not packed, as they say", "gzip", lambda content: content, UNKNOWN, _EVENTS)
packed("a body that is packed in an unknown way", "x-unknown", lambda content: content[::-1], UNKNOWN)

for _name, _kind in [("plain text", "text/plain"), ("its own kind", "application/json-rpc"), ("no kind", ""), ("a page", "text/html")]:
    replies(f"an answer as {_name}")(
        lambda asked, kind=_kind: HttpReply([body(asked)], headers={"content-type": kind} if kind else {}, framing="length")  # type: ignore[misc]
    )


@replies("an answer with its kind in capitals")
def _(asked: Asked) -> HttpReply:
    return HttpReply([body(asked)], headers={"Content-Type": "Application/JSON; Charset=UTF-8"}, framing="length")


@replies("a gateway that fails in JSON", UNKNOWN)
def _(asked: Asked) -> HttpReply:
    return HttpReply([b'{"error":"Bad Gateway"}'], status=502, headers=_JSON, framing="length")


@replies("a result with a status of failure")
def _(asked: Asked) -> HttpReply:
    return HttpReply([body(asked)], status=500, headers=_JSON, framing="length")


@replies("a body that repeats its secrets", UNKNOWN)
def _(asked: Asked) -> HttpReply:
    told = f"no {SECRETS['query']} for {SECRETS['user']}:{SECRETS['password']}, {SECRETS['header']}"
    return HttpReply([told.encode()], status=500, headers={"content-type": "text/plain"}, framing="length")


# ---------------------------------------------------------------------------------------------- what is no call


def noticed(name: str, reply: Callable[[], HttpReply], **more: Any) -> None:
    """Add a kind that replies this to what is no request."""
    add(name, scripts={"notifications/initialized": lambda asked: [reply()]}, **more)


noticed("what is no request is an error", lambda: HttpReply([b"no"], status=500, framing="length"))
noticed("what is no request is not found", lambda: HttpReply(status=404, framing="length"))
noticed("what is no request is torn off", lambda: HttpReply([Drop()], headers={}))
noticed("what is no request is answered without an end", lambda: HttpReply([b": wait\n\n", Gate()], headers=_EVENTS))
noticed("what is no request is never answered", lambda: HttpReply([Gate()], framing="raw"))
noticed("what is no request goes elsewhere", lambda: HttpReply(status=302, headers={"location": f"/?{SECRETS['query']}"}, framing="length"))


def ends_by(name: str, reply: Callable[[], HttpReply]) -> None:
    """Add a kind that replies this to the end of a session."""
    add(name, scripts={"DELETE": lambda asked: [reply()]})


ends_by("an end that fails", lambda: HttpReply([b"no"], status=500, framing="length"))
ends_by("an end that is torn off", lambda: HttpReply([Drop()], headers={}))
ends_by("an end that is never answered", lambda: HttpReply([Gate()], framing="raw"))
ends_by("an end that goes elsewhere", lambda: HttpReply(status=307, headers={"location": f"/x?{SECRETS['query']}"}, framing="length"))


# ---------------------------------------------------------------------------------------------- sessions


def welcome(name: str, **headers: str) -> None:
    """Add a kind whose first answer has these headers."""

    def reply(asked: Asked) -> Iterator[HttpReply]:
        yield HttpReply([asked.server.healthy(asked).encode()], headers={**_JSON, **headers}, framing="length")

    add(name, scripts={"initialize": reply})


welcome("no session")
welcome("a session without a name", **{"mcp-session-id": ""})
welcome("a session with a long name", **{"mcp-session-id": "x" * 8_000})


@replies("a session that changes its name")
def _(asked: Asked) -> HttpReply:
    return HttpReply([body(asked)], headers={**_JSON, "mcp-session-id": "another"}, framing="length")
