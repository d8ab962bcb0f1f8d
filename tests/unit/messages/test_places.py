"""Ids that follow from texts of a model, whatever it has written."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import Agent, events, final_message, new_messages, pending_calls
from langchain_autotools.encoders import ai_sdk, sse
from langchain_autotools.testing import ScriptedChatModel

HALF = "\ud83d"  # of a pair of surrogates, which has no UTF-8


def reply(messages: list[BaseMessage], **_: Any) -> Any:
    """Says and calls with half a pair."""
    call = {"name": "say", "args": {"what": HALF}, "id": f"call {HALF}"}
    return f"Done {HALF}" if isinstance(messages[-1], ToolMessage) else AIMessage(f"Look {HALF}", tool_calls=[call])


def say(what: str) -> str:
    """Say something."""
    return f"said {what}"


def resumed(model: ScriptedChatModel) -> str:
    """The end of a run whose call was approved."""
    run = model.invoke("Go", requires_approval=True)
    return model.resume([HumanMessage("Go"), run], [call.approve() for call in pending_calls(run)]).text


WAYS: dict[str, Callable[[ScriptedChatModel], str]] = {
    "invoke": lambda model: final_message(model.invoke(f"Go {HALF}")).text,
    "stream": lambda model: "".join(chunk.text for chunk in model.stream("Go")),
    "ainvoke": lambda model: final_message(asyncio.run(model.ainvoke("Go"))).text,
    "resume": resumed,
    "agent": lambda model: Agent(model).run("Go").text,
    "sse": lambda model: b"".join(sse(events(model.stream("Go")))).decode(),
    "ai_sdk": lambda model: b"".join(ai_sdk(events(model.stream("Go")))).decode(),
}


@pytest.mark.parametrize("way", WAYS)
def test_half_a_pair_of_surrogates_ends_no_run(way: str) -> None:
    """A model of one's own may write one anywhere; the run goes on, and its messages have ids that are the same each time."""
    model = ScriptedChatModel(replies=reply, tools=[say])
    assert "Done" in WAYS[way](model)
    first, second = (new_messages(ScriptedChatModel(replies=reply, tools=[say]).invoke("Go")) for _ in range(2))
    assert first[0].text == f"Look {HALF}"
    places = [[message.response_metadata["generation_id"] for message in messages] for messages in (first, second)]
    assert places[0][0] == places[0][1] and len(places[0]) == 3
