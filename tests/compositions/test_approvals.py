"""Approvals inside LangGraph: a node that runs to calls that wait, a node that asks, and what is refused."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from langchain_autotools import ConfigurationError, Decision, PendingCall, new_messages, pending_calls
from langchain_autotools.testing import ScriptedChatModel
from tests.support.desk import Desk, asking, call

THREAD: Any = {"configurable": {"thread_id": "1"}}
QUESTION = HumanMessage("Write to Anna.", id="q")
SEND = asking(call("send", "1", to="Anna"))


def approving_graph(model: ScriptedChatModel, store: InMemorySaver) -> Any:
    """One node runs the model, the next one asks a human about the calls that wait and goes on."""

    def run(state: MessagesState) -> dict[str, Any]:
        return {"messages": new_messages(model.invoke(state["messages"]))}

    def approve(state: MessagesState) -> dict[str, Any]:
        decisions = interrupt([one.to_dict() for one in pending_calls(state["messages"])])
        return {"messages": new_messages(model.resume(state["messages"], decisions))}

    def following(state: MessagesState) -> str:
        return "approve" if pending_calls(state["messages"]) else END

    builder = StateGraph(MessagesState).add_node("run", run).add_node("approve", approve).add_edge(START, "run")
    builder.add_conditional_edges("run", following, ["approve", END]).add_conditional_edges("approve", following, ["approve", END])
    return builder.compile(checkpointer=store)


def test_a_graph_asks_in_a_node_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the human saw is what runs, once, although the node that asks runs again; a second call is asked about too. Between question
    and answer there may be JSON, and another process: another graph, and another model, on the same checkpoints."""
    monkeypatch.setenv("LANGGRAPH_STRICT_MSGPACK", "true")
    desk = Desk()
    replies = [SEND, asking(call("send", "2", to="Ben")), "Done."]
    store = InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))
    models = [desk.model(reply, requires_approval=["send"]) for reply in replies]
    state = approving_graph(models[0], store).invoke({"messages": [QUESTION]}, THREAD)
    for name, model in zip(("Anna", "Ben"), models[1:], strict=True):
        (shown,) = state["__interrupt__"][0].value
        assert shown["args"] == {"to": name}
        decision = PendingCall.from_dict(json.loads(json.dumps(shown))).approve()
        state = approving_graph(model, store).invoke(Command(resume=json.loads(json.dumps([decision.to_dict()]))), THREAD)
    assert desk.done == ["send Anna 1", "send Ben 1"]
    assert [message.type for message in state["messages"]] == ["human", "ai", "tool", "ai", "tool", "ai"]
    assert [len(model.requests) for model in models] == [1, 1, 1]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_interrupt_inside_approve_is_refused_with_advice(asynchronous: bool) -> None:
    """The node would run again, with other arguments than the human saw."""
    desk = Desk()

    def approve(pending: PendingCall) -> Decision:
        answer: Decision = interrupt(pending.to_dict())
        return answer

    async def aapprove(pending: PendingCall) -> Decision:
        return approve(pending)

    model = desk.model(SEND, SEND, requires_approval=["send"], approve=aapprove if asynchronous else approve)

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": new_messages(model.invoke(state["messages"]))}

    async def anode(state: MessagesState) -> dict[str, Any]:
        return {"messages": new_messages(await model.ainvoke(state["messages"]))}

    for one in (node, anode):
        app = StateGraph(MessagesState).add_node("model", one).add_edge(START, "model").compile(checkpointer=InMemorySaver())
        with pytest.raises(ConfigurationError, match=r"interrupt cannot be called inside approve=.*model\.resume"):
            await app.ainvoke({"messages": [QUESTION]}, THREAD)
    assert desk.done == []


async def test_streams_of_a_graph_show_the_calls_that_wait() -> None:
    """As tool calls of the run message, when it is the node's own."""
    model = Desk().model(SEND, requires_approval=["send"])

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    app = StateGraph(MessagesState).add_node("model", node).add_edge(START, "model").compile()
    (message,) = (await app.ainvoke({"messages": [QUESTION]}))["messages"][1:]
    assert isinstance(message, AIMessage)
    assert [one["id"] for one in message.tool_calls] == ["1"]
    assert [(one.id, one.kind) for one in pending_calls([QUESTION, message])] == [("1", "approval")]
