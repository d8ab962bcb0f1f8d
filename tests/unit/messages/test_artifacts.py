"""Artifacts that are no plain data: live in the process that made them, marked wherever data goes."""

import asyncio
import pickle
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, message_chunk_to_message
from langchain_core.tools import tool

from langchain_autotools import new_messages
from langchain_autotools.testing import ScriptedChatModel

FOUND = [Document("Warm.", metadata={"city": "Rome"})]
MARKED = {"autotools": "artifact not carried", "type": "list"}
ASKED = AIMessage("", tool_calls=[{"name": "look_up", "args": {"city": "Rome"}, "id": "call_1"}])


@tool(response_format="content_and_artifact")
def look_up(city: str) -> tuple[str, Any]:
    """Look a city up."""
    return "Warm.", FOUND


def model(**fields: Any) -> ScriptedChatModel:
    """A model that looks up once and answers."""
    return ScriptedChatModel(tools=[look_up], replies=[ASKED, "Warm."], **fields)


def artifact_of(messages: list[BaseMessage]) -> Any:
    """The artifact of the only result."""
    (result,) = [message for message in messages if isinstance(message, ToolMessage)]
    assert result.content == "Warm." and len(messages) == 3
    return result.artifact


@pytest.mark.parametrize("carry", [True, False])
def test_what_invoke_and_each_chunk_bring_is_live(carry: bool) -> None:
    """The very object that the tool returned, on every way in."""

    async def streamed() -> list[BaseMessage]:
        return [message async for chunk in model(carry_messages=carry).astream("Rome?") for message in new_messages(chunk)]

    ways = [
        new_messages(model(carry_messages=carry).invoke("Rome?")),
        new_messages(asyncio.run(model(carry_messages=carry).ainvoke("Rome?"))),
        [message for chunk in model(carry_messages=carry).stream("Rome?") for message in new_messages(chunk)],
        asyncio.run(streamed()),
    ]
    assert [artifact_of(messages) is FOUND for messages in ways] == [True] * 4


def test_data_has_the_mark() -> None:
    """A sum, a pickle and a dump say what was there, and carry none of it."""
    run, chunks = model().invoke("Rome?"), list(model().stream("Rome?"))
    for stored in (reduce(add, chunks), message_chunk_to_message(reduce(add, chunks)), pickle.loads(pickle.dumps(run))):
        assert artifact_of(new_messages(stored)) == MARKED
    assert artifact_of([m for chunk in pickle.loads(pickle.dumps(chunks)) for m in new_messages(chunk)]) == MARKED
    assert "Document" not in str(dumpd(run)) and type(run.model_dump()["response_metadata"]) is dict


def test_a_chunk_made_a_message_has_no_more_fields_than_others() -> None:
    """What a chunk knows beside its data does not get into the message that is made of it."""
    plain = ScriptedChatModel(replies=["Warm."])
    for chunk in (*model().stream("Rome?"), *plain.stream("Rome?")):
        message = message_chunk_to_message(chunk)
        assert message.model_dump().keys() == AIMessage("").model_dump().keys()
