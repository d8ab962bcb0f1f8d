"""A loopback server that costs its client nothing: every reply is made before it is asked for.

It speaks chat completions, Anthropic's Messages, OpenAI's Responses, Google's generateContent and Ollama's /api/chat. The model's
name says what is wanted: `text-4000` streams 4,000 text chunks, `reasoning-4000` as many chunks of reasoning and one of text,
`arguments-2000` one call with 2,000 argument fragments (and an answer to its result). `text-4000-each` and the like send every event as
an HTTP chunk of its own, as servers do that send while a model writes. On chat completions alone, `turns-80` asks for two tools in each
of 80 turns and then answers, and `slow-50` is `text-50` by a server that thinks for 20 ms first.
"""

import asyncio
import json
import sys
from functools import cache

from .replies import REPLIES

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n"
_CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ntransfer-encoding: chunked\r\n\r\n"
_EVENTS, _LINES = b"text/event-stream", b"application/x-ndjson"
_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def _event(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    head = {"id": "chatcmpl-000000000001", "object": "chat.completion.chunk", "created": 1, "model": "m", "system_fingerprint": "fp_1"}
    return b"data: " + json.dumps({**head, "choices": [choice]}, separators=(",", ":")).encode() + b"\n\n"


def _end(finish: str) -> bytes:
    usage = {"id": "chatcmpl-000000000001", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": _USAGE}
    return _event({}, finish) + b"data: " + json.dumps(usage).encode() + b"\n\ndata: [DONE]\n\n"


@cache
def text(count: int) -> bytes:
    """A streamed answer of `count` chunks."""
    return (
        _event({"role": "assistant", "content": ""}) + b"".join(_event({"content": f" word{n % 10}"}) for n in range(count)) + _end("stop")
    )


@cache
def reasoning(count: int) -> bytes:
    """A streamed answer of one chunk, after `count` chunks of reasoning."""
    thought = b"".join(_event({"reasoning_content": f" word{n % 10}"}) for n in range(count))
    return _event({"role": "assistant", "content": ""}) + thought + _event({"content": "end"}) + _end("stop")


def _call(index: int, call_id: str, name: str) -> dict[str, object]:
    function = {"name": name, "arguments": ""}
    return {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}


def _fragment(index: int, arguments: str) -> bytes:
    return _event({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]})


@cache
def arguments(count: int) -> bytes:
    """One call whose arguments come in `count` fragments."""
    middle = b"".join(_fragment(0, "a" * 8) for _ in range(count - 2))
    return _event(_call(0, "call_1", "note")) + _fragment(0, '{"text":"') + middle + _fragment(0, '"}') + _end("tool_calls")


@cache
def two_calls(turn: int) -> bytes:
    """Two short calls."""
    body = b""
    for index, city in enumerate(("Paris", "Rome")):
        body += _event(_call(index, f"call_{turn}_{index}", "get_temperature"))
        body += _fragment(index, '{"city":') + _fragment(index, f'"{city} {turn}"}}')
    return body + _end("tool_calls")


def reply(kind: str, size: int, turn: int) -> bytes:
    """The reply of chat completions, by what is wanted and the number of assistant messages."""
    if kind in ("text", "slow"):
        return text(size)
    if kind == "reasoning":
        return reasoning(size)
    if kind == "arguments":
        return arguments(size) if not turn else text(3)
    return two_calls(turn) if turn < size else text(3)


def answer(path: str, asked: bytes) -> tuple[bytes, str]:
    """The reply to a request on any wire, and the name of the model that was asked for. Google names it in the path."""
    body = json.loads(asked)
    path = path.replace("/v1/models/", "/v1beta/models/")  # as a client of Google's API calls it that is given a base URL alone
    wire = next((known for known, _ in REPLIES if path.startswith(known)), None)
    model = path[len(wire) + 1 :].partition(":")[0] if wire and wire.endswith("/models") else str(body["model"])
    kind, size = model.split("-")[:2]
    if wire is None:
        return reply(kind, int(size), sum(message["role"] == "assistant" for message in body["messages"])), model
    answered = kind == "arguments" and (b'"toolu_1"' in asked or b'"call_1"' in asked)
    return (REPLIES[wire, "text"](3) if answered else REPLIES[wire, kind](int(size))), model


@cache
def in_chunks(reply: bytes) -> bytes:
    """A reply with each event, or line of JSON, as an HTTP chunk of its own."""
    end = next(end for end in (b"\r\n\r\n", b"\n\n", b"\n") if reply.endswith(end))
    events = [event + end for event in reply.split(end)[:-1]]
    return b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in events) + b"0\r\n\r\n"


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            path = head.split(b" ", 2)[1].decode()
            out, model = answer(path, await reader.readexactly(length))
            kind = _LINES if path.startswith("/api") else _EVENTS
            if model.startswith("slow"):
                await asyncio.sleep(0.02)
            writer.write(_CHUNKED % kind + in_chunks(out) if model.endswith("-each") else _HEAD % (kind, len(out)) + out)
            await writer.drain()
    except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    """Serve on a free port, told on standard output, until standard input closes."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, limit=2**24, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
