"""How ChatOpenAI moves bytes: connections, streams that end when their reader does, odd replies, timeouts."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, closing
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.exceptions import ModelConnectionError, ModelTimeoutError
from langchain_core.messages import AIMessageChunk, HumanMessage

from langchain_autotools import ChatOpenAI, StreamError
from langchain_autotools.providers._transport.clients import adrain, drain
from tests.support.http_server import Gate, HttpReply, LoopbackServer, Part
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import Asked, chunk_of, event, whole_body
from tests.support.script import Cut, Raw, Turn

ASKED = Asked(0, "any", True, False)
HELLO = event(chunk_of(ASKED, {"content": "Hello"}))
END = event(chunk_of(ASKED, {}, "stop"))
DONE = b"data: [DONE]\n\n"
QUESTION = [HumanMessage("Hi")]


def model_of(server: OpenAIServer, **more: Any) -> ChatOpenAI:
    """A model that talks to the server and fails at once."""
    return ChatOpenAI(**{"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, **more})


def in_thread(model: ChatOpenAI) -> list[AIMessageChunk]:
    """Every raw chunk, synchronously."""
    return list(model.raw_stream(QUESTION))


def in_task(model: ChatOpenAI) -> list[AIMessageChunk]:
    """Every raw chunk, asynchronously."""

    async def chunks() -> list[AIMessageChunk]:
        return [chunk async for chunk in model.araw_stream(QUESTION)]

    return asyncio.run(chunks())


Read = Callable[[ChatOpenAI], list[AIMessageChunk]]
both = pytest.mark.parametrize("read", [in_thread, in_task])


def text_of(chunks: list[AIMessageChunk]) -> str:
    """The text of all chunks."""
    return "".join(str(chunk.content) for chunk in chunks)


# ---------------------------------------------------------------------------------------------- streams


def test_a_chunk_leaves_before_the_next_is_sent() -> None:
    """The server waits before its second event; the first is in the caller's hands already."""
    gate = Gate()
    with OpenAIServer([Raw([HELLO, gate, event(chunk_of(ASKED, {"content": "!"})), END, DONE])]) as server:
        chunks = model_of(server).raw_stream(QUESTION)
        assert next(iter(chunks)).content == "Hello"
        assert not gate.opened.is_set()
        gate.open()
        assert text_of(list(chunks)) == "!"


async def test_a_chunk_leaves_before_the_next_is_sent_async() -> None:
    """The same in a task."""
    gate = Gate()
    with OpenAIServer([Raw([HELLO, gate, END, DONE])]) as server:
        chunks = model_of(server).araw_stream(QUESTION)
        assert (await anext(aiter(chunks))).content == "Hello"
        gate.open()
        assert [chunk.content async for chunk in chunks] == [""]


def test_chunks_of_one_piece_are_made_one_by_one() -> None:
    """Text that came before an error in the same piece of bytes reaches the caller before the error does."""
    failure = event({"error": {"message": "boom", "code": 500}})
    with OpenAIServer([Raw([HELLO + failure])]) as server:
        chunks = iter(model_of(server).raw_stream(QUESTION))
        assert next(chunks).content == "Hello"
        with pytest.raises(Exception, match="boom"):
            next(chunks)


def test_closing_the_stream_ends_the_connection() -> None:
    """The server sees the connection end before it can send its next event."""
    gate = Gate()
    with OpenAIServer([Raw([HELLO, gate, HELLO * 10, END, DONE])]) as server:
        with closing(model_of(server).stream("Hi")) as chunks:  # type: ignore[type-var]
            assert next(chunks).content == "Hello"
        assert server.exchanges[0].disconnected.wait(10)
        assert not gate.opened.is_set()


async def test_closing_the_stream_ends_the_connection_async() -> None:
    """The same in a task."""
    gate = Gate()
    with OpenAIServer([Raw([HELLO, gate, END, DONE])]) as server:
        async with aclosing(model_of(server).astream("Hi")) as chunks:  # type: ignore[type-var]
            assert (await anext(aiter(chunks))).content == "Hello"
        assert await asyncio.to_thread(server.exchanges[0].disconnected.wait, 10)


@pytest.mark.parametrize("pieces", [[Gate(), HELLO, END, DONE], [HELLO, Gate(), END, DONE]], ids=["before the first", "after the first"])
async def test_cancelling_the_task_ends_the_connection(pieces: list[Part]) -> None:
    """A cancelled reader leaves nothing open, whether it waits for the first chunk or a later one."""
    gate = next(piece for piece in pieces if isinstance(piece, Gate))
    with OpenAIServer([Raw(pieces)]) as server:

        async def read() -> None:
            async for _ in model_of(server).astream("Hi"):
                pass

        task = asyncio.create_task(read())
        await asyncio.to_thread(gate.reached.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.exchanges[0].disconnected.wait, 10)


def test_turns_share_one_connection() -> None:
    """A stream that was read to its end gives its connection to the next request; so does a whole reply."""
    with OpenAIServer([Turn("one"), Turn("two"), Turn("three")]) as server:
        model = model_of(server)
        list(model.stream("Hi"))
        model.invoke("Hi")
        list(model.stream("Hi"))
        assert server.connections == 1


async def test_turns_share_one_connection_async() -> None:
    """The same in a task."""
    with OpenAIServer([Turn("one"), Turn("two"), Turn("three")]) as server:
        model = model_of(server)
        assert [chunk async for chunk in model.astream("Hi")]
        await model.ainvoke("Hi")
        assert [chunk async for chunk in model.astream("Hi")]
        assert server.connections == 1


@both
def test_a_server_that_keeps_a_finished_stream_open_holds_nobody_up(read: Read) -> None:
    """`[DONE]` ends the stream, whatever the connection does."""
    gate = Gate()
    with OpenAIServer([Raw([HELLO, END, DONE, gate])]) as server:
        chunks = read(model_of(server))
        assert (text_of(chunks), chunks[-1].response_metadata["finish_reason"]) == ("Hello", "stop")
        assert not gate.opened.is_set()


@both
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_bytes_may_be_cut_anywhere(read: Read, size: int) -> None:
    """Pieces of any size give the same text, whatever characters they cut."""
    body = event(chunk_of(ASKED, {"content": "21 °C 漢字 🌡"})) + END + DONE
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    with OpenAIServer([Raw(pieces)]) as server:
        assert text_of(read(model_of(server))) == "21 °C 漢字 🌡"


@both
def test_a_compressed_stream_is_read(read: Read) -> None:
    """Content encoding is the HTTP library's business and done there."""
    body = gzip.compress(HELLO + END + DONE)
    with OpenAIServer([Raw([body[:20], body[20:]], headers={"content-encoding": "gzip"})]) as server:
        assert text_of(read(model_of(server))) == "Hello"


def test_one_model_serves_many_event_loops() -> None:
    """Each loop has its own connections: a model may be used in one `asyncio.run` after another."""
    with OpenAIServer([Turn("one"), Turn("two"), Turn("three")]) as server:
        model = model_of(server)
        assert [asyncio.run(model.ainvoke("Hi")).content for _ in range(3)] == ["one", "two", "three"]


class Slow:
    """Pieces of a reply that never end, or break."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self.error:
            raise self.error
        while True:
            yield b""
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("error", [None, OSError("broken")])
async def test_draining_ends_in_time_and_fails_silently(error: Exception | None) -> None:
    """The rest of a finished reply is not worth waiting for, and no error."""
    await adrain(aiter(Slow(error)))


def test_draining_needs_a_socket() -> None:
    """Where the HTTP library does not give one, nothing is read."""

    def pieces() -> Iterator[bytes]:
        raise AssertionError("must not be read")
        yield b""

    drain(SimpleNamespace(extensions={}, stream=pieces()))


# ---------------------------------------------------------------------------------------------- replies that are none


@both
@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Raw([b"<html><body>Welcome!</body></html>"], "text/html"), "text/html, beginning '<html>"),
        (Raw([b""], "application/json", framing="length"), "application/json, empty"),
        (Raw([HELLO.replace(b"}", b"", 1), DONE]), "not JSON"),
        (Raw([b'data: {"a": \n\n']), "not JSON"),
        (Raw([b"data: 7\n\n", DONE]), "no JSON object: '7'"),
    ],
    ids=["html", "empty", "broken event", "cut event", "a number"],
)
def test_a_reply_that_is_no_stream_says_what_it_is(read: Read, reply: Raw, said: str) -> None:
    """A page, nothing that would be called a stream, or broken JSON is a StreamError that shows how the body begins."""
    with OpenAIServer([reply]) as server, pytest.raises(StreamError) as raised:
        read(model_of(server))
    assert said in str(raised.value)


@both
def test_a_server_that_cannot_stream_is_understood(read: Read) -> None:
    """A whole reply where a stream was asked for is read as one."""
    body = json.dumps(whole_body(ASKED, Turn("Hello")), indent=2).encode()
    with OpenAIServer([Raw([body[:40], body[40:]], "application/json")]) as server:
        chunks = read(model_of(server))
    assert (text_of(chunks), chunks[-1].response_metadata["finish_reason"]) == ("Hello", "stop")


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (b"<html>Sign in</html>", "text/html", "no JSON: text/html, beginning '<html>Sign in"),
        (b"", "text/plain", "text/plain, empty"),
        (b'"well"', "application/json", "not a JSON object"),
        (b'{"object": "list"}', "application/json", "no choices"),
        (b"", "text/event-stream", "no JSON: text/event-stream, empty"),
        (b"data: 5\n\n", "text/event-stream", "no JSON object: '5'"),
    ],
)
async def test_a_whole_reply_that_is_none_says_what_it_is(body: bytes, kind: str, said: str) -> None:
    """The same without streaming."""
    with OpenAIServer([Raw([body], kind)] * 2) as server:
        model = model_of(server)
        with pytest.raises(StreamError, match=said):
            model.raw_invoke(QUESTION)
        with pytest.raises(StreamError, match=said):
            await model.araw_invoke(QUESTION)


async def test_a_stream_that_nobody_asked_for_and_that_breaks_off_is_incomplete() -> None:
    """As one that was asked for."""
    with OpenAIServer([Raw([HELLO], "text/event-stream")] * 2) as server:
        model = model_of(server)
        for reply in (model.raw_invoke(QUESTION), await model.araw_invoke(QUESTION)):
            assert (reply.text, reply.response_metadata["finish_reason"]) == ("Hello", "incomplete")


# ---------------------------------------------------------------------------------------------- broken connections, timeouts


@both
def test_a_connection_that_breaks_is_a_connection_error(read: Read) -> None:
    """In the middle of the body, with the address and the reason in its text."""
    with OpenAIServer([Cut(Raw([HELLO * 2]), after=len(HELLO) + 5)]) as server:
        with pytest.raises(ModelConnectionError) as raised:
            read(model_of(server))
        assert server.address in str(raised.value)


@both
def test_nobody_listening_is_a_connection_error(read: Read) -> None:
    """The text names the address, without user and password."""
    with OpenAIServer() as server:
        port = server.port
    model = ChatOpenAI(model="any", base_url=f"http://user:hunter22@127.0.0.1:{port}/v1", api_key="key", max_retries=0)
    with pytest.raises(ModelConnectionError, match=f"http://127.0.0.1:{port}") as raised:
        read(model)
    assert "hunter22" not in str(raised.value)


@both
@pytest.mark.parametrize("pieces", [[], [HELLO]], ids=["before the first event", "after the first event"])
@pytest.mark.parametrize("timeout", [0.05, (5, 0.05)], ids=["seconds", "connect and read"])
def test_a_silent_server_is_a_timeout(read: Read, pieces: list[Part], timeout: Any) -> None:
    """No byte within the timeout ends the wait, before the first chunk and after it."""
    with OpenAIServer([Raw([*pieces, Gate()])]) as server, pytest.raises(ModelTimeoutError):
        read(model_of(server, timeout=timeout))


def test_a_timeout_may_be_set_for_one_call() -> None:
    """`timeout` is a keyword of every call too, streamed or not."""
    with OpenAIServer([Raw([Gate()]), Raw([Gate()], "application/json")]) as server:
        model = model_of(server)
        with pytest.raises(ModelTimeoutError):
            list(model.stream("Hi", timeout=0.05))
        with pytest.raises(ModelTimeoutError):
            model.invoke("Hi", timeout=0.05)


@both
def test_comments_do_not_keep_a_stream_alive_for_ever(read: Read) -> None:
    """`stream_chunk_timeout` counts events: a server that sends nothing but keep-alive comments has fallen silent."""

    def comments() -> Iterator[Part]:
        yield HELLO
        for _ in range(10_000):
            yield Gate()
            yield b": still there\n\n"

    gates: list[Gate] = []

    def opened() -> Iterator[Part]:
        for part in comments():
            if isinstance(part, Gate):
                part.open()
                gates.append(part)
            yield part

    def answer(_: Any) -> HttpReply:
        return HttpReply(opened(), headers={"content-type": "text/event-stream"})

    with LoopbackServer(answer) as server:
        model = ChatOpenAI(model="any", base_url=server.address, api_key="key", max_retries=0, stream_chunk_timeout=0.05)
        with pytest.raises(ModelTimeoutError):
            read(model)
    assert len(gates) < 10_000
