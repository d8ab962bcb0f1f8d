"""The input of a custom tool (Responses) is shown while it is written, as the JSON of the one argument that it becomes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from langchain_autotools import ChatOpenAI, aevents, events
from langchain_autotools.event_types import CallArgumentsDelta, CallReady, CallStarted, RunEvent
from tests.support.responses_server import ResponsesServer
from tests.support.script import Events, Turn

QUESTION = [HumanMessage("Run it.")]
TOOL = {"type": "custom", "name": "run"}
WRITTEN = 'print("ä\n")'
PIECES = {"pieces": ['print("ä', '\n")'], "whole": [], "one": [WRITTEN]}


def calling(pieces: list[str]) -> Events:
    """A reply with a call of a custom tool, its input in these pieces."""
    known = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "run"}
    done = {**known, "input": WRITTEN, "status": "completed"}
    whole = {"id": "resp_1", "object": "response", "status": "completed", "model": "any", "output": [done]}
    delta = {"type": "response.custom_tool_call_input.delta", "item_id": "ctc_1", "output_index": 0}
    told: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**known, "input": "", "status": "in_progress"}},
        *[{**delta, "delta": piece} for piece in pieces],
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": whole},
    ]
    return Events(told, whole)


@pytest.mark.parametrize("way", ["events", "aevents"])
@pytest.mark.parametrize("pieces", PIECES.values(), ids=list(PIECES))
async def test_the_input_is_shown_while_it_is_written(pieces: list[str], way: str) -> None:
    """The call is begun before its input, each piece comes at once, and all of them together are the arguments of the call."""
    with ResponsesServer([calling(pieces), Turn("Done.")]) as server:
        model: Any = ChatOpenAI(model="any", base_url=server.url, api_key="key", use_responses_api=True).bind_tools([TOOL])
        seen: list[RunEvent] = []
        if way == "events":
            seen += events(model.stream(QUESTION))
        else:
            seen += [event async for event in aevents(model.astream(QUESTION))]
    assert [event.name for event in seen if isinstance(event, CallStarted)] == ["run"]
    written = [event.text for event in seen if isinstance(event, CallArgumentsDelta)]
    assert json.loads("".join(written)) == {"__arg1": WRITTEN}
    assert len(written) >= len(pieces)
    [ready] = [event for event in seen if isinstance(event, CallReady)]
    assert seen.index(ready) > max(place for place, event in enumerate(seen) if isinstance(event, CallArgumentsDelta))
