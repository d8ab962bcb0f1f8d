"""Fragments of arguments over chat completions: where nobody listens, those that bring only text leave with the end of the turn."""

from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage

from langchain_autotools import ChatOpenAI, events, new_messages
from langchain_autotools.event_types import CallArgumentsDelta
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Early, Events, Turn

CITIES = [{"city": "Rome", "unit": "celsius"}, {"city": "Oslo", "unit": "kelvin"}]
REPLY = Turn("Let me look.", [Call("get_temperature", city, f"call_{number}") for number, city in enumerate(CITIES)], characters=2)
ASKED = [HumanMessage("How warm is it?")]
ENDED = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}


def get_temperature(city: str, unit: str) -> str:
    """Return the temperature of a city."""
    return f"21 {unit} in {city}"


def model(server: OpenAIServer, **fields: Any) -> ChatOpenAI:
    """A model of the server."""
    return ChatOpenAI(model="m", api_key="key", base_url=server.url, **fields)


def test_the_text_of_a_call_leaves_with_what_comes_next() -> None:
    """Text leaves at once, a call's name when it comes; the fragments behind it leave in order, with the next name or the end."""
    with OpenAIServer(lambda _: REPLY) as server:
        chat = model(server)
        declared = [chat.format_tool(get_temperature)]
        chunks = list(chat.raw_stream(ASKED, tools=declared))
    brought = [chunk.additional_kwargs["tool_calls"] for chunk in chunks if isinstance(chunk, AIMessageChunk) and chunk.additional_kwargs]
    assert [one["function"].get("name") for fragments in brought for one in fragments].count("get_temperature") == 2
    assert len(brought) == 3
    texts = ["", ""]
    for fragments in brought:
        for one in fragments:
            texts[one["index"]] += one["function"]["arguments"]
    assert texts == [call.raw for call in REPLY.calls]


@pytest.mark.parametrize("characters", [1, 2, 7, 100])
def test_a_listener_changes_nothing_about_the_calls(characters: int) -> None:
    """The calls of the message are the same with a listener, who gets every fragment as it comes."""
    reply = Turn(REPLY.text, REPLY.calls, characters=characters)
    with OpenAIServer(lambda exchange: Turn("Done.") if exchange.number % 2 else reply) as server:
        chat = model(server, tools=[get_temperature])
        alone = chat.invoke(ASKED)
        heard = list(events(chat.stream(ASKED)))
    shown = ["".join(one.text for one in heard if isinstance(one, CallArgumentsDelta) and one.call_id == call.id) for call in REPLY.calls]
    assert shown == [call.raw for call in REPLY.calls]
    assert alone.text.endswith("Done.")
    results = [event.message.text for event in heard if type(event).__name__ == "CallResult"]
    assert sorted(results) == [get_temperature(**city) for city in CITIES]


def test_a_stream_that_breaks_off_keeps_what_waited() -> None:
    """The fragments before the break are in the call that does not run."""
    with OpenAIServer(lambda _: Early(REPLY, text="ci")) as server:
        chunks = list(model(server, max_retries=0).bind_tools([get_temperature]).stream(ASKED))
    (message,) = new_messages(chunks[-1])
    (call,) = message.invalid_tool_calls
    written = str(call["args"]).removeprefix("!}")
    assert written and REPLY.calls[0].raw.startswith(written) and not message.tool_calls


def fragments(*pieces: dict[str, Any]) -> Events:
    """A reply of fragments of calls, each an event of its own."""
    deltas = [{"index": 0, "delta": {"tool_calls": [piece]}} for piece in pieces]
    return Events([{"id": "c1", "model": "m", "choices": [choice]} for choice in [*deltas, ENDED]])


def text(index: int, piece: str, **more: Any) -> dict[str, Any]:
    """A fragment with a piece of the arguments; with `more` it brings more than that."""
    return {"index": index, "function": {"arguments": piece}, **more}


def test_a_listener_gets_each_piece_once_whatever_comes_with_it() -> None:
    """Pieces that bring nothing but text are shown at once, and not again with the fragment that takes along what waited."""
    rome, oslo = (call.raw for call in REPLY.calls)
    begin = {"type": "function", "function": {"name": "get_temperature", "arguments": ""}}
    reply = fragments(
        {"index": 0, "id": "call_0", **begin},
        *(text(0, rome[:4]), text(0, rome[4:9]), text(0, rome[9:12], type="function"), text(0, rome[12:20]), text(0, rome[20:])),
        {"index": 1, "id": "call_1", **begin},
        *(text(1, oslo[:5]), text(1, oslo[5:7], id="call_1"), text(1, oslo[7:])),
    )
    with OpenAIServer([reply, Turn("Done.")]) as server:
        heard = list(events(model(server, tools=[get_temperature]).stream(ASKED)))
    pieces = [(one.call_id, one.text) for one in heard if isinstance(one, CallArgumentsDelta)]
    cut = [("call_0", (0, 4, 9, 12, 20, len(rome)), rome), ("call_1", (0, 5, 7, len(oslo)), oslo)]
    assert pieces == [(call_id, raw[start:end]) for call_id, places, raw in cut for start, end in pairwise(places)]
    results = [event.message.text for event in heard if type(event).__name__ == "CallResult"]
    assert sorted(results) == [get_temperature(**city) for city in CITIES]
