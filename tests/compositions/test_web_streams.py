"""Streams of events through a real server: frames leave at once, tools end with the client, synchronous streams work too."""

import asyncio
import threading
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from langchain_autotools import ChatOpenAI, aevents, events
from langchain_autotools.encoders import SSE_HEADERS, sse
from langchain_autotools.testing import ScriptedChatModel
from tests.support.asgi_server import AsgiServer
from tests.support.event_stream import EventStreamParser, Frame, frames_of
from tests.support.http_server import Gate
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

CALL = AIMessage("", tool_calls=[{"name": "wait", "args": {}, "id": "c1"}])


def reading(response: httpx.Response, parser: EventStreamParser) -> Iterator[Frame]:
    """The frames of a response, one by one."""
    for piece in response.iter_raw():
        yield from parser.feed(piece)


def test_a_fragment_of_a_call_is_seen_before_the_vendor_sends_its_next_event() -> None:
    """The gate in the vendor's reply opens only when the client has the fragment before it."""
    gate = Gate()
    turn = Turn(calls=[Call("wait", {"city": "Rome and Paris"})], holds={3: gate}, characters=4)
    app = FastAPI()

    @tool
    def wait(city: str) -> str:
        """Wait."""
        return city

    with OpenAIServer([turn, Turn("Done.")]) as vendor:
        model = ChatOpenAI(model="any", base_url=vendor.url, api_key="key", tools=[wait])  # type: ignore[arg-type]

        @app.get("/")
        async def chat() -> StreamingResponse:
            return StreamingResponse(sse(aevents(model.astream("Hi.")), heartbeat=None), headers=SSE_HEADERS)

        with AsgiServer(app) as server, httpx.stream("GET", server.address, timeout=20) as response:
            frames = reading(response, EventStreamParser())
            first = next(frame for frame in frames if frame.event == "tool_call_delta")
            assert gate.reached.wait(20) and first.json["text"] == '{"cit'
            gate.open()
            assert [frame.event for frame in frames][-1] == "done"


@pytest.mark.parametrize("leaves", [True, False])
def test_a_tool_at_work_ends_when_the_client_leaves(leaves: bool) -> None:
    """Until then heartbeats come; a client that stays has the tool's result."""
    begun, release, ended = threading.Event(), threading.Event(), threading.Event()
    app = FastAPI()

    @tool
    async def wait() -> str:
        """Wait."""
        begun.set()
        try:
            while not release.is_set():
                await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            ended.set()
            raise
        return "waited"

    @app.get("/")
    async def chat() -> StreamingResponse:
        model = ScriptedChatModel(replies=[CALL, "Done."], tools=[wait])
        return StreamingResponse(sse(aevents(model.astream("Hi.")), heartbeat=0.02), headers=SSE_HEADERS)

    with AsgiServer(app) as server:
        with httpx.stream("GET", server.address, timeout=20) as response:
            parser, pieces = EventStreamParser(), response.iter_raw()
            seen: list[Frame] = []
            while not any(frame.event == "tool_call" for frame in seen):
                seen += parser.feed(next(pieces))
            assert begun.wait(20)
            parser.comments.clear()
            while not parser.comments:
                seen += parser.feed(next(pieces))
            if not leaves:
                release.set()
                seen += [frame for piece in pieces for frame in parser.feed(piece)]
                assert [frame.json["content"] for frame in seen if frame.event == "tool_result"] == ["waited"]
        assert ended.wait(20) if leaves else not ended.is_set()


def test_a_synchronous_stream_is_sent_too() -> None:
    """The server takes its steps in changing threads and contexts."""
    app = FastAPI()
    threads = set()

    @tool
    def wait() -> str:
        """Wait."""
        return "waited"

    @app.get("/")
    def chat() -> StreamingResponse:
        def told() -> Iterator[bytes]:
            for frame in sse(events(ScriptedChatModel(replies=[CALL, "Done, at last."], tools=[wait]).stream("Hi."))):
                threads.add(threading.get_ident())
                yield frame

        return StreamingResponse(told(), headers=SSE_HEADERS)

    with AsgiServer(app) as server, httpx.stream("GET", server.address, timeout=20) as response:
        assert response.headers["content-type"].partition(";")[0] == "text/event-stream"
        frames = frames_of(response.iter_raw())
    assert "".join(frame.json["text"] for frame in frames if frame.event == "text") == "Done, at last."
    assert frames[-1].json["stop_reason"] == "complete"
