"""Calls of a vendor's toolset behind somebody else's whole chat model class, which writes and reads the toolset in content blocks alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_autotools import Handler, ToolsAndMessagesMixin, new_messages, pending_calls
from langchain_autotools.messages.calls import calls_of
from tests.contract.talk import WAYS, run_in
from tests.support.whole_classes import ChatHouse, ChatStreamsBoth, call_of

QUESTION: list[BaseMessage] = [HumanMessage("hi")]
USE = {"type": "tool_use", "id": "call_1", "name": "shout", "input": {"text": "x"}, "toolset_name": "desk"}
OWN = {**call_of(), "id": "call_2"}


class House(ToolsAndMessagesMixin, ChatHouse):
    """Without a stream."""


class Streams(ToolsAndMessagesMixin, ChatStreamsBoth):
    """With streams."""


@pytest.fixture
def ran() -> list[str]:
    """What ran."""
    return []


@pytest.fixture
def shout(ran: list[str]) -> Callable[..., str]:
    """A tool of the user's that has the name of the toolset's."""

    def shout(text: str) -> str:
        """Say it louder."""
        ran.append("tool")
        return text.upper()

    return shout


def script() -> list[AIMessage]:
    """A reply that calls both, and an answer."""
    return [AIMessage([{"type": "text", "text": "look"}, USE], tool_calls=[call_of(), OWN]), AIMessage("done")]  # type: ignore[list-item]


def sent(model: Any) -> tuple[Any, list[Any]]:
    """Of the last request the message with the calls, and its content blocks of the toolset's."""
    message = next(one for one in model.sent[-1][0] if one.type == "ai")
    return message, [block for block in message.content if block.get("toolset_name")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", [House, Streams])
async def test_the_handler_answers_it_and_the_tool_its_own(cls: Any, way: str, shout: Any, ran: list[str]) -> None:
    """The class gets the toolset back where it had written it."""
    handler = Handler(lambda arguments: ran.append("handler") or "done that", requires_approval=False)
    model = cls(script=script(), tools=[shout], handlers={("desk", "shout"): handler})
    done = await run_in(way, model, QUESTION)
    assert (done.message.text, sorted(ran)) == ("look\ndone", ["handler", "tool"])
    assert {one.tool_call_id: one.text for one in done.new if one.type == "tool"} == {"call_1": "done that", "call_2": "X"}  # type: ignore[attr-defined]
    message, blocks = sent(model)
    assert [{key: block[key] for key in USE} for block in blocks] == [USE]
    assert [call.toolset for call in calls_of(message)] == ["desk", None]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", [House, Streams])
async def test_without_a_handler_it_waits(cls: Any, way: str, shout: Any, ran: list[str]) -> None:
    """It is its caller's, whose answer goes back with it."""
    model = cls(script=script(), tools=[shout])
    first = await run_in(way, model, QUESTION)
    (pending,) = pending_calls(first.message)
    assert ((pending.id, pending.toolset, pending.kind), ran) == (("call_1", "desk", "client_tool"), ["tool"])
    assert model.resume([*QUESTION, *first.new], [pending.respond("done that")]).text == "done"
    assert (len(sent(model)[1]), ran) == (1, ["tool"])


@pytest.mark.parametrize("way", WAYS)
async def test_a_call_beside_it_that_cannot_be_read_changes_nothing(way: str, shout: Any, ran: list[str]) -> None:
    """The message is then made anew, and keeps the toolset."""
    bad: Any = {"name": "shout", "args": '{"text": "x', "id": "call_2", "error": None, "type": "invalid_tool_call"}
    (first, answer) = script()
    first = first.model_copy(update={"tool_calls": [call_of()], "invalid_tool_calls": [bad]})
    for cls in (House, Streams):
        model = cls(script=[first, answer], tools=[shout])
        done = await run_in(way, model, QUESTION)
        assert [(call.id, call.toolset) for call in pending_calls(done.message)] == [("call_1", "desk")]
        assert new_messages(model.resume([*QUESTION, *done.new], [pending_calls(done.message)[0].respond("done that")]))[-1].text == "done"
        assert (len(sent(model)[1]), ran) == (1, [])
