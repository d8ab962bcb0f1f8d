"""Sound in a stream of the Responses API: kept with what is spoken, as that of chat completions is, and a file for listeners."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, message_chunk_to_message

from langchain_autotools import ChatOpenAI, aevents, events
from langchain_autotools.event_types import FileMade
from tests.support.responses_server import ResponsesServer
from tests.support.script import Events, Turn

WHOLE: dict[str, Any] = {"id": "resp_1", "object": "response", "status": "completed", "model": "any", "output": []}
TOLD: list[dict[str, Any]] = [
    {"type": "response.created", "response": {**WHOLE, "status": "in_progress"}},
    {"type": "response.audio.delta", "delta": "c291"},
    {"type": "response.audio.transcript.delta", "delta": "Good "},
    {"type": "response.audio.delta", "delta": "bmQx"},
    {"type": "response.audio.transcript.delta", "delta": "day."},
    {"type": "response.audio.done"},
    {"type": "response.audio.transcript.done"},
    {"type": "response.completed", "response": WHOLE},
]


@pytest.fixture
def server() -> Iterator[ResponsesServer]:
    """A server that speaks, then writes."""
    with ResponsesServer([Events(TOLD, WHOLE), Turn("Yes.")]) as running:
        yield running


def speaker(server: ResponsesServer, **more: Any) -> ChatOpenAI:
    """A model of the server."""
    return ChatOpenAI(model="any", base_url=server.url, api_key="key", use_responses_api=True, **more)


@pytest.mark.parametrize("version", [None, "v1"])
@pytest.mark.parametrize("way", ["stream", "astream"])
async def test_sound_is_kept_with_what_is_spoken(way: str, version: str | None, server: ResponsesServer) -> None:
    """Both are put together of their pieces; what was spoken goes back as text."""
    model = speaker(server, output_version=version)
    chunks = list(model.stream("Speak.")) if way == "stream" else [chunk async for chunk in model.astream("Speak.")]
    message = message_chunk_to_message(sum(chunks[1:], chunks[0]))
    assert isinstance(message, AIMessage)
    assert message.additional_kwargs["audio"] == {"data": "c291bmQx", "transcript": "Good day."}
    model.invoke([HumanMessage("Speak."), message, HumanMessage("And?")])
    assert '"Good day."' in json.dumps(server.exchanges[-1].json["input"][1])


@pytest.mark.parametrize("way", ["events", "aevents"])
async def test_listeners_get_the_sound_as_a_file(way: str, server: ResponsesServer) -> None:
    """Once, whole."""
    model = speaker(server)
    told = list(events(model.stream("Speak."))) if way == "events" else [event async for event in aevents(model.astream("Speak."))]
    made = [event for event in told if isinstance(event, FileMade)]
    assert [(event.data, event.size, event.mime_type) for event in made] == [("c291bmQx", 6, "application/octet-stream")]
