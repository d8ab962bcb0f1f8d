"""MCP servers that break the protocol, without the SDK: a script each, over standard input and output or over HTTP.

A server has two tools, `bad` and `good`, and notes in a file what it has begun. As `python -m tests.support.bad_mcp_servers KIND NOTES` it
is a program; `serving` runs either form.
"""

import json
import os
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.http_server import Exchange, HttpReply

REPOSITORY = Path(__file__).resolve().parents[2]
SECRETS = {"user": "hush-user", "password": "hush-password", "query": "hush-query", "header": "hush-header", "env": "hush-env"}
"""What nobody may read: the parts of the URL, a header and an environment variable of a server."""

NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
TOOLS: list[dict[str, Any]] = [{"name": name, "description": f"A {name} tool.", "inputSchema": NUMBER} for name in ("bad", "good")]
MODERN = "2026-07-28"


# ---------------------------------------------------------------------------------------------- scripts


@dataclass(frozen=True)
class Raw:
    """Bytes that are written as they are, without an end of line."""

    content: bytes


@dataclass(frozen=True)
class Question:
    """A request to the client; the script goes on with the client's answer.

    Attributes:
        message: The request.
        identity: Its id.
    """

    message: str
    identity: Any


Script = Callable[["Asked"], Iterable[Any]]
"""What a server does with something that it is sent: a generator function, or one that returns a list. What it yields is sent: a text or
bytes as one message, `Raw`, a `Question`, or an `HttpReply` alone."""


@dataclass(frozen=True)
class Kind:
    """A kind of bad server, and what is to come of its calls.

    Attributes:
        name: What it is called.
        scripts: What it does, by the method that it is sent: `tools/call` is a call of `bad`; `start` is the beginning of the program,
            `GET` and `DELETE` are the requests of HTTP. What has none is answered as a healthy server answers it.
        told: What the result of the bad call holds, by the way that the server is reached, or for all ways; `NEVER`: nothing, as it is
            not answered and has a timeout.
        status: The status of that result.
        over: The ways in which the server is reached.
        begun: How often the bad call is begun.
        lost: Whether the call beside it may be lost with it.
        refused: What the error says if the server cannot be opened; None: it can.
        sessions: The most sessions that it may take.
        tools: What it lists.
    """

    name: str
    scripts: Mapping[str, Script] = field(default_factory=dict)
    told: Any = "ok"
    status: str = "success"
    over: tuple[str, ...] = ("stdio", "http", "events")
    begun: int = 1
    lost: bool = False
    refused: str | None = None
    sessions: int = 1
    tools: list[Any] = field(default_factory=lambda: TOOLS)

    def says(self, over: str) -> Any:
        """What the result of the bad call holds over a way."""
        return self.told.get(over, self.told.get("")) if isinstance(self.told, Mapping) else self.told


NEVER = "timed out"
UNKNOWN = "interrupted, outcome unknown"


@dataclass
class Asked:
    """A message of the client.

    Attributes:
        server: The server that has got it.
        message: The message.
        exchange: The HTTP request that has brought it.
    """

    server: "Server"
    message: dict[str, Any]
    exchange: "Exchange | None" = None

    @property
    def id(self) -> Any:
        """Its id."""
        return self.message.get("id")

    @property
    def params(self) -> dict[str, Any]:
        """Its parameters."""
        return self.message.get("params") or {}

    @property
    def token(self) -> Any:
        """The token for its progress."""
        return self.params.get("_meta", {}).get("progressToken")

    def result(self, result: Any) -> str:
        """Its answer."""
        return json.dumps({"jsonrpc": "2.0", "id": self.id, "result": result})

    def text(self, text: str = "ok") -> str:
        """Its answer, a text."""
        return self.result({"content": [{"type": "text", "text": text}]})

    def error(self, message: str, code: int = -32603) -> str:
        """Its answer, an error."""
        return json.dumps({"jsonrpc": "2.0", "id": self.id, "error": {"code": code, "message": message}})


class Server:
    """A server of a kind, however it is reached.

    Args:
        kind: The kind.
        notes: The file in which it notes what it has begun.
        modern: Whether it speaks the protocol of 2026-07-28.

    Attributes:
        counts: How often it was sent each method.
        state: What its scripts keep.
        answers: The client's answers to its requests, by their ids.
    """

    def __init__(self, kind: Kind, notes: Path, modern: bool = False) -> None:
        self.kind = kind
        self.modern = modern
        self.counts: Counter[str] = Counter()
        self.state: dict[str, Any] = {}
        self.answers: dict[str, dict[str, Any]] = {}
        self._notes = notes

    def note(self, text: str) -> None:
        """Note something."""
        with self._notes.open("a") as notes:
            notes.write(f"{os.getpid()} {text}\n")

    def take(self, asked: Asked) -> Generator[Any, Any, None]:
        """Yield what it does with a message."""
        method = asked.message.get("method")
        if method is None:
            self.answers[str(asked.id)] = asked.message
            self.note(f"answer {asked.id}")
            return
        self.counts[method] += 1
        self.note(f"{asked.params.get('name')} {asked.params['arguments'].get('number')}" if method == "tools/call" else method)
        script = self.kind.scripts.get(method) if method != "tools/call" or asked.params["name"] == "bad" else None
        if script is not None:
            made = script(asked)
            yield from made if isinstance(made, Generator) else iter(made)
        elif "id" in asked.message:
            yield self.healthy(asked)

    def healthy(self, asked: Asked) -> str:
        """The answer of a healthy server."""
        about: dict[str, Any] = {"capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "test", "version": "1"}}
        kept = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if self.modern else {}
        match asked.message["method"]:
            case "initialize" if not self.modern:
                return asked.result({"protocolVersion": asked.params["protocolVersion"], **about})
            case "server/discover" if self.modern:
                return asked.result({"supportedVersions": [MODERN], **about, **kept})
            case "tools/list":
                return asked.result({"tools": self.kind.tools, **kept})
            case "tools/call" if asked.params["name"] == "good":
                return asked.text(str(2 * asked.params["arguments"]["number"]))
            case "tools/call":
                return asked.text()
            case "ping":
                return asked.result({})
        return asked.error("there is no such method", -32601)


# ---------------------------------------------------------------------------------------------- standard input and output


class Program:
    """A server as a program."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._waiting: deque[bytes] = deque()

    def run(self) -> None:
        """Serve until the input ends."""
        self._server.note("began")
        if (start := self._server.kind.scripts.get("start")) is not None:
            self._play(start(Asked(self._server, {})))
        while line := self._waiting.popleft() if self._waiting else sys.stdin.buffer.readline():
            self._play(self._server.take(Asked(self._server, json.loads(line))))
        if (end := self._server.kind.scripts.get("end")) is not None:
            self._play(end(Asked(self._server, {})))

    def _play(self, pieces: Iterable[Any]) -> None:
        made = pieces if isinstance(pieces, Generator) else (piece for piece in pieces)
        answer = None
        with suppress(StopIteration):
            while True:
                answer = self._do(made.send(answer))

    def _do(self, piece: Any) -> Any:
        if isinstance(piece, Raw):
            self._write(piece.content)
        elif isinstance(piece, Question):
            self._write(piece.message.encode() + b"\n")
            return self._answer(str(piece.identity))
        else:
            self._write((piece.encode() if isinstance(piece, str) else piece) + b"\n")
        return None

    def _answer(self, identity: str) -> dict[str, Any]:
        while identity not in self._server.answers:
            line = sys.stdin.buffer.readline() or sys.exit()
            if "method" in json.loads(line):
                self._waiting.append(line)
            else:
                list(self._server.take(Asked(self._server, json.loads(line))))
        return self._server.answers.pop(identity)

    @staticmethod
    def _write(content: bytes) -> None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


# ---------------------------------------------------------------------------------------------- HTTP


class Web:
    """A server over HTTP, whose answers are JSON bodies, or events.

    Args:
        server: The server.
        events: Whether all its answers are events; else only those of more than one message.
    """

    def __init__(self, server: Server, events: bool) -> None:
        self._server = server
        self._events = events
        self._lock = threading.Lock()
        self._gates: dict[str, Any] = {}

    def answer(self, exchange: "Exchange") -> "HttpReply":
        """Return the reply to a request."""
        from tests.support.http_server import HttpReply

        if exchange.method != "POST":
            script = self._server.kind.scripts.get(exchange.method)
            if script is None:
                return HttpReply(status=405 if exchange.method == "GET" else 200, framing="length")
            return next(iter(script(Asked(self._server, {}, exchange))))  # type: ignore[no-any-return]
        asked = Asked(self._server, exchange.json, exchange)
        with self._lock:
            pieces = self._server.take(asked)
            first = next(pieces, None)
        if isinstance(first, HttpReply):
            return first
        if first is None:
            return self._silent(asked)
        headers = {"mcp-session-id": f"session-{self._server.counts['initialize']}"} if asked.message["method"] == "initialize" else {}
        second = None if isinstance(first, Question) else next(pieces, None)
        if second is None and not isinstance(first, Question) and not self._events:
            body = first.encode() if isinstance(first, str) else first
            return HttpReply([body], headers={**headers, "content-type": "application/json"}, framing="length")
        return HttpReply(self._sent(first, second, pieces), headers={**headers, "content-type": "text/event-stream"})

    def _silent(self, asked: Asked) -> "HttpReply":
        """The reply without a message: none will come to a request."""
        from tests.support.http_server import Gate, HttpReply

        if "method" in asked.message and "id" in asked.message:
            return HttpReply([b": wait\n\n", Gate()], headers={"content-type": "text/event-stream"})
        if "method" not in asked.message and (gate := self._gates.pop(str(asked.id), None)) is not None:
            gate.open()
        return HttpReply(status=202, framing="length")

    def _sent(self, first: Any, second: Any, rest: Generator[Any, Any, None]) -> Iterator[Any]:
        """Yield the parts of a reply of events."""
        from tests.support.http_server import Gate

        for piece in (first, second):
            if piece is not None and not isinstance(piece, Question):
                yield event(piece)
        asks = next((piece for piece in (first, second) if isinstance(piece, Question)), None)
        with suppress(StopIteration):
            piece = asks or next(rest)
            while True:
                answer = None
                if isinstance(piece, Question):
                    gate = self._gates[str(piece.identity)] = Gate()
                    yield event(piece.message)
                    yield gate
                    answer = self._server.answers.pop(str(piece.identity))
                else:
                    yield event(piece)
                piece = rest.send(answer)


def event(message: str | bytes, **fields: str) -> bytes:
    """A server-sent event."""
    content = message.encode() if isinstance(message, str) else message
    lines = [f"{name}: {value}".encode() for name, value in fields.items()]
    return b"\n".join([*lines, *(b"data: " + line for line in content.split(b"\n")), b"", b""])


# ---------------------------------------------------------------------------------------------- both


@dataclass
class Target:
    """A server that can be reached.

    Attributes:
        server: Its program and arguments, or its URL with its secrets.
        settings: The other arguments of `mcp_server` for it.
        notes: Its notes.
        open_connections: Returns how many connections it has.
    """

    server: str | list[str]
    settings: dict[str, Any]
    notes: Path
    open_connections: Callable[[], int] = lambda: 0

    @property
    def begun(self) -> list[str]:
        """What it has begun."""
        return [line.partition(" ")[2] for line in self._lines()]

    @property
    def processes(self) -> set[int]:
        """The processes that it has had."""
        return {int(line.partition(" ")[0]) for line in self._lines()} - {os.getpid()}

    def _lines(self) -> list[str]:
        return self.notes.read_text().splitlines() if self.notes.exists() else []


@contextmanager
def serving(kind: Kind, over: str, notes: Path) -> Iterator[Target]:
    """Serve a kind while the block lasts; a program is started by its client."""
    if over in ("stdio", "modern"):
        command = [
            sys.executable,
            "-S",
            "-E",
            "-m",
            "tests.support.bad_mcp_servers",
            kind.name,
            str(notes),
            *["modern"] * (over == "modern"),
        ]
        yield Target(command, {"cwd": str(REPOSITORY), "env": {"SECRET": SECRETS["env"]}}, notes)
        return
    from tests.support.http_server import LoopbackServer

    with LoopbackServer(Web(Server(kind, notes), over == "events").answer) as http:
        place = f"{SECRETS['user']}:{SECRETS['password']}@127.0.0.1:{http.port}"
        headers = {"X-Key": SECRETS["header"]}
        yield Target(f"http://{place}/mcp?key={SECRETS['query']}", {"headers": headers}, notes, lambda: http.open_connections)


def main() -> None:
    """Run the program that the command line names."""
    from tests.support import bad_mcp_sessions  # noqa: F401 - adds kinds
    from tests.support.bad_mcp_kinds import KINDS

    Program(Server(KINDS[sys.argv[1]], Path(sys.argv[2]), "modern" in sys.argv)).run()


if __name__ == "__main__":
    from tests.support import bad_mcp_servers  # the module whose classes the kinds use, which this one is not

    bad_mcp_servers.main()
