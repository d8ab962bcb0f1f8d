"""Servers, gateways and own models that give all their replies one id: every message of a conversation has an id of its own."""

import json
from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import events, new_messages, repair
from langchain_autotools.encoders import ai_sdk
from langchain_autotools.event_types import MessageDone, TextDelta
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.wires import WIRES, Wire
from tests.support.script import Turn

add_messages: Any = pytest.importorskip("langgraph.graph.message").add_messages
ONE_OF_EACH = ("openai-chat", "openai-responses", "anthropic", "google", "ollama")
QUESTION = HumanMessage("Go", id="question")


def look(place: int) -> str:
    """Look at a place."""
    return f"{place}!"


def asking(text: str, place: int) -> list[AIMessage | dict[str, Any]]:
    """A reply under the id of all others, in pieces."""
    call = {"index": 0, "id": f"call {place}", "function": {"name": "look", "arguments": json.dumps({"place": place})}}
    return [AIMessageChunk(text, id="s"), AIMessageChunk("", id="s", additional_kwargs={"tool_calls": [call]})]


def chat() -> ScriptedChatModel:
    """A model whose three replies have one id."""
    last = [AIMessageChunk("Do", id="s"), AIMessageChunk("ne.", id="s")]
    return ScriptedChatModel(tools=[look], replies=[asking("One.", 1), asking("Two.", 2), last])


def streamed(model: ScriptedChatModel) -> BaseMessage:
    """The sum of the stream's chunks."""
    return reduce(add, model.stream([QUESTION]))  # type: ignore[return-value]


@pytest.mark.parametrize("run_of", [lambda model: model.invoke([QUESTION]), streamed], ids=["invoke", "stream"])
def test_every_message_has_an_id_of_its_own(run_of: Callable[[ScriptedChatModel], BaseMessage]) -> None:
    """The first reply keeps the server's; LangGraph's history, and a repair of it, lose nothing."""
    run = run_of(chat())
    messages = new_messages(run)
    assert [message.text for message in messages] == ["One.", "1!", "Two.", "2!", "Done."]
    assert messages[0].id == "s" and len({message.id for message in messages}) == 5 and all(message.id for message in messages)
    assert run.id == messages[-1].id
    state: list[AnyMessage] = add_messages([QUESTION], messages)
    assert len(state) == 6 and repair(state) == state
    assert [message.id for message in repair([QUESTION, run])] == [message.id for message in state]


def test_later_questions_of_the_conversation_get_new_ids_too() -> None:
    """Also of a whole message, and of a model without tools of its own."""
    history: list[BaseMessage] = [QUESTION, AIMessage("Yes.", id="s"), HumanMessage("And now?", id="next")]
    whole = ScriptedChatModel(replies=[AIMessage("No.", id="s")] * 2)
    for reply in (whole.invoke(history), streamed_reply(whole, history)):
        assert reply.id and reply.id != "s"


def streamed_reply(model: Any, history: list[BaseMessage]) -> BaseMessage:
    """What the model's stream sums to."""
    return reduce(add, model.stream(history))  # type: ignore[return-value]


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire.name in ONE_OF_EACH], ids=lambda wire: wire.name)
def test_every_wire_s_replies_have_ids_of_their_own(wire: Wire) -> None:
    """Two servers that count their replies from the start: the second reply of a conversation does not take the id of the first."""
    history: list[BaseMessage] = [QUESTION]
    for stream in (False, True, False):
        with wire.serve([Turn("Yes.")]) as server:
            model = wire.model(server)
            history += [streamed_reply(model, history) if stream else model.invoke(history), HumanMessage("And now?")]
    assert len({message.id for message in history if isinstance(message, AIMessage)}) == 3


def test_events_name_each_message_by_its_own_id() -> None:
    """From the first piece of its text on."""
    seen = list(events(chat().stream([QUESTION])))
    done = [event.message_id for event in seen if isinstance(event, MessageDone) and isinstance(event.message, AIMessage)]
    written = list(dict.fromkeys(event.message_id for event in seen if isinstance(event, TextDelta)))
    assert len(set(done)) == 3 and written == done


def test_a_page_shows_three_turns() -> None:
    """The AI SDK's stream has a step of each."""
    frames = b"".join(ai_sdk(events(chat().stream([QUESTION])))).decode().split("\n\n")
    assert sum('"start-step"' in frame for frame in frames) == 3


def test_no_reader_misses_a_result() -> None:
    """The results stand behind the calls that they answer."""
    results = [message for message in new_messages(chat().invoke([QUESTION])) if isinstance(message, ToolMessage)]
    assert [result.tool_call_id for result in results] == ["call 1", "call 2"]
