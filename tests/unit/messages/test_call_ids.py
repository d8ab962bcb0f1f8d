"""Ids of calls and results: unique for whoever keys on them, and the same bytes for whoever they are sent to."""

import json
import pickle
import re
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    message_chunk_to_message,
    messages_from_dict,
    messages_to_dict,
)
from langgraph.graph.message import add_messages

from langchain_autotools import ToolExecutor, new_messages
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.wires import WIRES, Wire
from tests.support.script import Call, Turn

RANDOM = re.compile(r"call_[0-9a-f]{32}")
ASK = HumanMessage("How warm is it?")
LISTS = [wire for wire in WIRES if not wire.name.startswith("azure")]


def get_temperature(city: str) -> str:
    """The temperature in a city."""
    return f"21 in {city}"


def turns(*ids: str) -> list[Turn]:
    """A reply with a call for each id, and an answer."""
    return [Turn("Let me look.", [Call("get_temperature", {"city": "Rome"}, id=call_id) for call_id in ids]), Turn("Warm.")]


def calls_and_results(messages: list[BaseMessage]) -> tuple[list[Any], list[str]]:
    """The ids of all calls, and those that the results name."""
    calls = [call["id"] for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
    return calls, [message.tool_call_id for message in messages if isinstance(message, ToolMessage)]


@pytest.mark.parametrize("wire", LISTS, ids=lambda wire: wire.name)
def test_ids_made_here_are_unique_and_what_is_sent_is_the_same(wire: Wire) -> None:
    """Equal runs have different ids and send equal bytes; however a history was stored, it goes on as it went."""
    sent: list[list[bytes]] = []
    ids: list[str] = []
    for stream in (False, True):
        with wire.serve([*turns("", ""), *[Turn("Yes.")] * 3]) as server:
            model = wire.model(server, tools=[get_temperature])
            run = reduce(add, model.stream([ASK])) if stream else model.invoke([ASK])
            calls, results = calls_and_results(new_messages(run))
            assert calls == results and all(RANDOM.fullmatch(call_id) for call_id in calls)
            ids += calls
            dumped = json.dumps(messages_to_dict([message_chunk_to_message(run)]))
            for history in ([run], pickle.loads(pickle.dumps(new_messages(run))), messages_from_dict(json.loads(dumped))):
                model.invoke([ASK, *history, HumanMessage("Sure?")])
            sent.append([wire.messages(exchange) for exchange in server.exchanges])
    assert len(set(ids)) == 4 and not any(call_id.encode() in body for body in sent[0] for call_id in ids)
    assert sent[0] == sent[1]
    assert len(set(sent[0][2:])) == 1 and sent[0][2].startswith(sent[0][1][:-1])


@pytest.mark.parametrize("wire", LISTS, ids=lambda wire: wire.name)
def test_an_id_that_was_used_is_not_used_again(wire: Wire) -> None:
    """A server that numbers the calls of each turn anew: every call of the history has an id of its own."""
    with wire.serve([turns("call_1")[0], turns("call_1")[0], Turn("Warm.")]) as server:
        messages = new_messages(wire.model(server, tools=[get_temperature]).invoke([ASK]))
    calls, results = calls_and_results(messages)
    assert calls == results and calls[0] == "call_1" and RANDOM.fullmatch(calls[1])


def test_a_regenerated_turn_has_ids_of_its_own() -> None:
    """The same words again, another call: a ledger that keys on the id sees two. (Placeholders are no ids.)"""
    asked = [AIMessage("", tool_calls=[{"name": "get_temperature", "args": {"city": city}, "id": "null"}]) for city in ("Rome", "Oslo")]
    model = ScriptedChatModel(replies=asked).bind_tools([get_temperature])
    ids = [model.invoke([ASK]).tool_calls[0]["id"] for _ in asked]
    assert len(set(ids)) == 2 and all(RANDOM.fullmatch(str(call_id)) for call_id in ids)


def test_a_loop_of_ones_own_sends_the_same_bytes_too() -> None:
    """Calls of declared tools, answered by the caller: the ids that are sent are those of an equal conversation."""
    asked = AIMessage("", tool_calls=[{"name": "get_temperature", "args": {"city": "Rome"}, "id": ""}])
    model = ScriptedChatModel(replies=[asked, "Warm.", asked, "Warm."])
    bound, executor = model.bind_tools([get_temperature]), ToolExecutor([get_temperature])
    for _ in range(2):
        reply = bound.invoke([ASK])
        bound.invoke([ASK, reply, *executor.execute_all(reply)])
    one, two = ([m.tool_call_id for m in request.messages if isinstance(m, ToolMessage)] for request in model.requests[1::2])
    assert one == two and len(one) == 1


def test_results_have_ids() -> None:
    """Every message that is handed out has one, so that a state that takes a message twice has it once."""
    asked = AIMessage("", tool_calls=[{"name": "get_temperature", "args": {"city": "Rome"}, "id": ""}])
    model = ScriptedChatModel(tools=[get_temperature], replies=[asked, "Warm."])
    messages = [message for chunk in model.stream([ASK]) for message in new_messages(chunk)]
    assert all(message.id for message in messages) and len({message.id for message in messages}) == 3
    state: Any = add_messages([ASK], messages)
    assert add_messages(state, messages) == state and len(state) == 4
