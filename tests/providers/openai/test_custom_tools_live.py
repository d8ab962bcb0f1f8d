"""The input of a custom tool is shown while it is written, as the JSON of the one argument that it becomes, on both wires of OpenAI."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from langchain_autotools import ChatOpenAI, aevents, events
from langchain_autotools.encoders import ag_ui, ai_sdk, sse
from langchain_autotools.event_types import CallArgumentsDelta, CallReady, CallStarted, RunEvent
from tests.support.http_server import Gate
from tests.support.openai_server import OpenAIServer
from tests.support.responses_server import ResponsesServer
from tests.support.script import Events

QUESTION = [HumanMessage("Run it.")]
WRITTEN = 'print("ä\n")'
PIECES = {"pieces": ['print("ä', '\n")'], "whole": [], "one": [WRITTEN]}
Told = list[Mapping[str, Any] | Gate]


def on_responses(pieces: Sequence[str | Gate]) -> Events:
    """A reply with a call of a custom tool, its input in these pieces."""
    known = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "run"}
    done = {**known, "input": WRITTEN, "status": "completed"}
    whole = {"id": "resp_1", "object": "response", "status": "completed", "model": "any", "output": [done]}
    delta = {"type": "response.custom_tool_call_input.delta", "item_id": "ctc_1", "output_index": 0}
    told: Told = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**known, "input": "", "status": "in_progress"}},
        *[piece if isinstance(piece, Gate) else {**delta, "delta": piece} for piece in pieces],
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": whole},
    ]
    return Events(told, whole)


def on_chat_completions(pieces: Sequence[str | Gate]) -> Events:
    """The same on the other wire."""
    about = {"id": "chatcmpl-1", "created": 1, "model": "any"}
    call = {"id": "call_1", "type": "custom", "custom": {"name": "run", "input": WRITTEN}}
    begun = {**call, "index": 0, "custom": {"name": "run", "input": "" if pieces else WRITTEN}}

    def chunk(delta: Mapping[str, Any], reason: str | None = None) -> dict[str, Any]:
        return {**about, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    told: Told = [
        chunk({"role": "assistant", "tool_calls": [begun]}),
        *[piece if isinstance(piece, Gate) else chunk({"tool_calls": [{"index": 0, "custom": {"input": piece}}]}) for piece in pieces],
        chunk({}, "tool_calls"),
    ]
    choice = {"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}
    return Events(told, {**about, "object": "chat.completion", "choices": [choice]})


WIRES: dict[str, tuple[Callable[..., Any], Callable[..., Events], dict[str, Any]]] = {
    "responses": (ResponsesServer, on_responses, {"type": "custom", "name": "run"}),
    "chat completions": (OpenAIServer, on_chat_completions, {"type": "custom", "custom": {"name": "run"}}),
}
READERS: dict[str, Callable[[Any], Any]] = {
    "events": lambda told: told,
    "sse": sse,
    "ai_sdk": ai_sdk,
    "ag_ui": partial(ag_ui, thread_id="t"),
}
wires = pytest.mark.parametrize("wire", list(WIRES))


@contextmanager
def served(wire: str, pieces: Sequence[str | Gate]) -> Iterator[Any]:
    """A model of a server that calls the tool, again and again."""
    server_of, calling, tool = WIRES[wire]
    with server_of([calling(pieces)] * 2) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key", use_responses_api=wire == "responses")
        yield model.bind_tools([tool])


@wires
@pytest.mark.parametrize("way", ["events", "aevents"])
@pytest.mark.parametrize("pieces", PIECES.values(), ids=list(PIECES))
async def test_the_input_is_shown_while_it_is_written(pieces: list[str], way: str, wire: str) -> None:
    """The call is begun before its input, each piece comes at once, and all of them together are the arguments of the call."""
    with served(wire, pieces) as model:
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


@wires
@pytest.mark.timeout(60)
@pytest.mark.parametrize(("reader", "is_async"), [("events", False), ("sse", True), ("ai_sdk", False), ("ag_ui", True)])
async def test_readers_have_a_piece_before_the_next_is_written(reader: str, is_async: bool, wire: str) -> None:
    """The server waits with the second piece until the reader of events, or a page, has the first: else it would wait for ever."""
    if reader == "ag_ui":
        pytest.importorskip("ag_ui", reason="needs the extra `ag-ui`")
    gate, read = Gate(), READERS[reader]
    first, second = PIECES["pieces"]

    def look_at(part: Any) -> None:
        if "print(" in (part.decode() if isinstance(part, bytes) else str(getattr(part, "text", ""))):
            gate.open()

    with served(wire, [first, gate, second]) as model:
        if is_async:
            async for part in read(aevents(model.astream(QUESTION))):
                look_at(part)
        else:
            for part in read(events(model.stream(QUESTION))):
                look_at(part)
    assert gate.opened.is_set()


@wires
async def test_the_call_is_the_same_streamed_and_whole(wire: str) -> None:
    """Its input is the one argument, in the pieces of a stream and in one."""
    with served(wire, PIECES["pieces"]) as model:
        whole = model.invoke(QUESTION)
        chunks = [chunk async for chunk in model.astream(QUESTION)]
    [call] = whole.tool_calls
    assert (call["name"], call["args"], call["id"]) == ("run", {"__arg1": WRITTEN}, "call_1")
    assert sum(chunks[1:], chunks[0]).tool_calls == [call]
