"""What a core that copied the chunks of a stream would cost: a test for each feature that counts on chunks being handed on."""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, ToolMessage
from langchain_core.tools import StructuredTool

from langchain_autotools import aevents, events, new_messages
from langchain_autotools.event_types import CallArgumentsDelta, CallReady, CallStarted, TextDelta
from langchain_autotools.testing import ScriptedChatModel

COPIES: dict[str, Callable[[AIMessageChunk], AIMessageChunk]] = {
    "no copy": lambda chunk: chunk,
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
    "data": lambda chunk: AIMessageChunk(**chunk.model_dump()),
}
KEEP_NOTES = ("no copy", "copy")
CORES = pytest.mark.parametrize("how", COPIES)
"""What core may do to the chunks of a stream; today it does nothing."""
FOUND = [Document("Warm.", metadata={"city": "Rome"})]
PIECES = [{"index": 0, "id": "call_1", "name": "look_up", "args": '{"ci'}, {"index": 0, "args": 'ty": "Rome"}'}]


def look_up(city: str) -> tuple[str, Any]:
    """Look a city up."""
    return "Warm.", FOUND


def looking() -> ScriptedChatModel:
    """A model that writes a call in pieces, and then answers."""
    tool = StructuredTool.from_function(look_up, response_format="content_and_artifact")
    return ScriptedChatModel(tools=[tool], replies=[["Let me see. ", *PIECES], "It is warm."])


@pytest.fixture
def core(how: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """LangChain's core, which hands on copies of what a model's `_stream` yields. Gives the configuration whose handler makes each
    chunk pass through it."""
    stream, astream, copied = BaseChatModel.stream, BaseChatModel.astream, COPIES[how]

    def copying(self: Any, *args: Any, **kwargs: Any) -> Iterator[AIMessageChunk]:
        for chunk in stream(self, *args, **kwargs):
            yield copied(chunk)

    async def acopying(self: Any, *args: Any, **kwargs: Any) -> AsyncIterator[AIMessageChunk]:
        async for chunk in astream(self, *args, **kwargs):
            yield copied(chunk)

    monkeypatch.setattr(BaseChatModel, "stream", copying)
    monkeypatch.setattr(BaseChatModel, "astream", acopying)
    return {"callbacks": [BaseCallbackHandler()]}


async def drain(items: Any) -> list[Any]:
    """All items of an asynchronous stream."""
    return [item async for item in items]


@CORES
def test_a_core_that_copies_chunks_costs_no_text(how: str, core: Any) -> None:
    """A stream is whole also where core hands on copies of what `_stream` yields, whether somebody watches it or not."""
    for config in (None, core):
        model = ScriptedChatModel(replies=["Hello there", "Hello there"])
        assert "".join(chunk.text for chunk in model.stream("Hi", config)) == "Hello there"
        assert "".join(chunk.text for chunk in asyncio.run(drain(model.astream("Hi", config)))) == "Hello there"


@CORES
def test_live_arguments_come_through_a_core_that_hands_its_chunks_on(how: str, core: Any) -> None:
    """A core that made data of chunks, or deep copies, would cost the pieces of calls, and nothing else that events tell."""
    told = [list(events(looking().stream("Rome?", core))), asyncio.run(drain(aevents(looking().astream("Rome?", core))))]
    for run in told:
        pieces = [event.text for event in run if isinstance(event, CallArgumentsDelta)]
        assert pieces == (['{"ci', 'ty": "Rome"}'] if how in KEEP_NOTES else [])
        assert [event.provisional for event in run if isinstance(event, CallStarted)] == [how in KEEP_NOTES]
        assert [event.call.args for event in run if isinstance(event, CallReady)] == [{"city": "Rome"}]
        assert "".join(event.text for event in run if isinstance(event, TextDelta)) == "Let me see. It is warm."


@CORES
def test_live_messages_do_not_pass_through_core(how: str, core: Any) -> None:
    """They are attached to what a run hands out: artifacts are the very objects, whatever core does to the chunks of a turn."""
    for chunks in (list(looking().stream("Rome?", core)), asyncio.run(drain(looking().astream("Rome?", core)))):
        assert [artifact is FOUND for artifact in artifacts(chunks)] == [True]


@CORES
def test_live_messages_come_with_chunks_that_are_handed_on(how: str) -> None:
    """What makes data or a deep copy of a chunk that has left costs live artifacts: the data has their marks."""
    (artifact,) = artifacts([COPIES[how](chunk) for chunk in looking().stream("Rome?")])
    assert (artifact is FOUND) == (how in KEEP_NOTES)
    assert how in KEEP_NOTES or artifact == {"autotools": "artifact not carried", "type": "list"}


def artifacts(chunks: list[AIMessageChunk]) -> list[Any]:
    """The artifacts of the results that chunks bring."""
    return [message.artifact for chunk in chunks for message in new_messages(chunk) if isinstance(message, ToolMessage)]
