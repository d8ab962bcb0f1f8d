"""One run, one message, where some turns say texts as bare strings and others as blocks: every way gives the same content."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import reduce
from itertools import product
from operator import add
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, message_chunk_to_message

from langchain_autotools import Agent, aevents, events
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.ways import LISTENERS


def block(text: str, index: int = 0, **more: Any) -> AIMessageChunk:
    """A piece of a text that comes as a block."""
    return AIMessageChunk(content=[{"type": "text", "text": text, "index": index, **more}])


def thought(text: str) -> AIMessageChunk:
    """A piece of what the model thinks."""
    return AIMessageChunk(content=[{"type": "thinking", "thinking": text, "index": 9}])


def beside(text: str) -> AIMessageChunk:
    """A piece of what the model thinks, beside the content."""
    return AIMessageChunk(content="", additional_kwargs={"reasoning_content": text})


TURNS: dict[str, Callable[[], list[Any]]] = {
    "string": lambda: ["a", "b"],
    "silent": lambda: [AIMessageChunk(content="")],
    "block": lambda: [block("c"), block("d")],
    "blocks": lambda: [block("e", 0), block("f", 1)],
    "cited": lambda: [block("g"), block("", citations=[{"title": "x"}])],
    "thinking": lambda: [thought("Hm"), thought("."), block("h")],
    "string then block": lambda: ["i", thought("Hm."), "j", thought("So."), "k"],
    "string between blocks": lambda: [thought("Hm."), "l", block("m", 1), "n", block("o", 1), "p"],
    "reasoning beside": lambda: [beside("Hm."), block("q")],
    "whole": lambda: [AIMessage("r")],
    "whole block": lambda: [AIMessage([{"type": "text", "text": "s"}])],
}
MAIN = ("string", "block", "thinking", "string then block")
RUNS = [*product(TURNS, TURNS), *((one, two, one) for one, two in product(MAIN[:3], TURNS))]
RUNS_OF_TURNS = [
    pytest.param(run, marks=() if {*run} <= {*MAIN} and len(run) == 2 else pytest.mark.further, id=" + ".join(run)) for run in RUNS
]


def look() -> str:
    """Look."""
    return "21"


def model_of(turns: Iterable[str], **fields: Any) -> ScriptedChatModel:
    """A model whose turns say these things, and call a tool but in the last one."""
    replies = [TURNS[turn]() for turn in turns]
    call = {"index": 0, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    replies = [reply + [{**call, "id": f"call_{number}"}] * (number < len(replies) - 1) for number, reply in enumerate(replies)]
    return ScriptedChatModel(replies=[[*reply] for reply in replies], tools=[look], no_progress=None, **fields)


def content(message: AIMessage) -> Any:
    """The content of a message in the form of a whole reply."""
    return ScriptedChatModel()._whole_message(message).content


def summed(chunks: Iterable[Any]) -> AIMessage:
    """The message that core makes of chunks."""
    return message_chunk_to_message(reduce(add, chunks))  # type: ignore[return-value]


def told(stream: Any) -> AIMessage:
    """The message that the events of a run come to."""
    read = events(stream)
    assert list(read)
    assert read.message is not None
    return read.message


async def atold(stream: Any) -> AIMessage:
    """The same, asynchronously."""
    read = aevents(stream)
    assert [event async for event in read]
    assert read.message is not None
    return read.message


async def asummed(model: ScriptedChatModel) -> AIMessage:
    """The message that core makes of asynchronous chunks."""
    return summed([chunk async for chunk in model.astream("?")])


WAYS: dict[str, Callable[[ScriptedChatModel], AIMessage]] = {
    "stream": lambda model: summed(model.stream("?")),
    "astream": lambda model: asyncio.run(asummed(model)),
    "ainvoke": lambda model: asyncio.run(model.ainvoke("?")),
    "events": lambda model: told(model.stream("?")),
    "aevents": lambda model: asyncio.run(atold(model.astream("?"))),
    "whole replies with events": lambda model: told(model.model_copy(update={"disable_streaming": True}).stream("?")),
    "agent": lambda model: told(Agent(model).run_stream("?")),
    "tap": lambda model: model.invoke("?", {"callbacks": LISTENERS["a tap"]()}),
}


@pytest.mark.further
@pytest.mark.parametrize("separator", ["\n", ""])
@pytest.mark.parametrize("turns", RUNS_OF_TURNS)
def test_every_way_has_the_same_blocks(turns: tuple[str, ...], separator: str) -> None:
    """The chunks sum to what `invoke` returns, block for block, and so do the events, whoever listens."""
    invoked = model_of(turns, message_separator=separator).invoke("?")
    ways = WAYS if separator else {"stream": WAYS["stream"]}
    for name, way in ways.items():
        assert content(way(model_of(turns, message_separator=separator))) == invoked.content, name
    assert content(invoked) == invoked.content


@pytest.mark.further
@pytest.mark.parametrize("turns", RUNS, ids=" + ".join)
def test_so_it_is_with_v1_blocks(turns: tuple[str, ...]) -> None:
    """Each text is a block there."""
    invoked = model_of(turns, output_version="v1").invoke("?")
    for name, way in WAYS.items():
        assert content(way(model_of(turns, output_version="v1"))) == invoked.content, name


def test_texts_of_strings_are_one_and_texts_of_blocks_are_several() -> None:
    """What came as bare text before all blocks is one text; a text that came as a block is a block of its own."""
    assert model_of(["string", "string"]).invoke("?").content == "ab\nab"
    texts = [{"type": "text", "text": text} for text in ("ab", "\n", "cd")]
    assert model_of(["string", "block"]).invoke("?").content == texts
    assert model_of(["block"]).invoke("?").content == "cd"
