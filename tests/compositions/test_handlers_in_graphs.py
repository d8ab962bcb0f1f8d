"""Handlers of the vendor's tools where the tools are bound: by `create_agent`, by a node of a graph, by a caller."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from itertools import product
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt

from langchain_autotools import ChatAnthropic, ChatOpenAI, ConfigurationError, Handler, PendingCall, new_messages, pending_calls
from tests.contract.talk import WAYS, run_in
from tests.providers.openai.test_client_calls import ANSWERS, FUNCTION, SHELL, message, reply
from tests.support.anthropic_server import AnthropicServer
from tests.support.responses_server import ResponsesServer
from tests.support.script import Call, Turn
from tests.support.weather import get_temperature

QUESTION: list[BaseMessage] = [HumanMessage("How warm is it?")]
BASH = {"type": "bash_20250124", "name": "bash"}
THREAD: Any = {"configurable": {"thread_id": "1"}}
WIRES = {"item": {"type": "shell"}, "function": BASH}
"""The vendor's tool by what its call is on the wire."""


class Desk:
    """A model with a handler for shells, its server, and what the handler was called with."""

    def __init__(self, stack: ExitStack, wire: str, *, needs: bool | None, beside: bool = False, **arguments: Any) -> None:
        self.ran: list[Any] = []
        known: dict[str, Any] = {"api_key": "key", "max_retries": 0, "handlers": {"shell": Handler(self._run, requires_approval=needs)}}
        if wire == "item":
            self.server: Any = stack.enter_context(
                ResponsesServer([reply(message("Look."), *[FUNCTION] * beside, SHELL), Turn("Fine."), Turn("Yes.")])
            )
            self.model: Any = ChatOpenAI(model="any", base_url=self.server.url, **{**known, **arguments}, use_responses_api=True)
        else:
            asked = [*[Call("get_temperature", {"city": "Rome"})] * beside, Call("bash", {"command": "ls"}, id="toolu_b")]
            self.server = stack.enter_context(AnthropicServer([Turn("Look.", asked), Turn("Fine."), Turn("Yes.")]))
            self.model = ChatAnthropic(model="claude-test", base_url=self.server.url, **{**known, **arguments})
        stack.callback(self._check)

    def _run(self, arguments: dict[str, Any]) -> Any:
        self.ran.append(arguments)
        return {"stdout": "a.txt", "exit_code": 0}

    def _check(self) -> None:
        assert self.server.rejections == []


@pytest.fixture
def desk() -> Any:
    """A function that makes a desk. Afterwards: no server has refused anything."""
    with ExitStack() as stack:
        yield lambda *args, **kwargs: Desk(stack, *args, **kwargs)


@pytest.mark.parametrize(("wire", "node"), [("item", "agent"), ("function", "agent"), ("item", "ainvoke"), ("function", "tools")])
async def test_the_handler_answers_inside_the_graph(desk: Callable[..., Desk], wire: str, node: str) -> None:
    """The graph's own tool is the graph's, before and after; the next request has both answers."""
    made = desk(wire, needs=False, beside=True)
    tools: list[Any] = [get_temperature, WIRES[wire]]
    if node == "tools":
        bound = made.model.bind_tools(tools)
        builder = StateGraph(MessagesState).add_node("model", lambda state: {"messages": [bound.invoke(state["messages"])]})
        builder.add_node("tools", ToolNode([get_temperature])).add_edge(START, "model").add_edge("tools", "model")
        graph: Any = builder.add_conditional_edges("model", tools_condition).compile()
    else:
        graph = create_agent(made.model, tools=tools)
    state = await graph.ainvoke({"messages": QUESTION}) if node == "ainvoke" else graph.invoke({"messages": QUESTION})
    assert [one.type for one in state["messages"]] == ["human", "ai", "tool", "ai"]
    assert (state["messages"][-1].text, len(made.ran), len(made.server.exchanges)) == ("Fine.", 1, 2)
    assert [one["name"] for one in state["messages"][1].tool_calls] == ["get_temperature"]


@pytest.mark.parametrize("wire", WIRES)
def test_an_approval_waits_in_an_agent_and_in_a_node(desk: Callable[..., Desk], wire: str) -> None:
    """Both hand out the command; a node asks by an interrupt, and the same binding goes on with the decision, in which it runs once."""
    made = desk(wire, needs=None)
    state = create_agent(made.model, tools=[WIRES[wire]]).invoke({"messages": QUESTION})
    (pending,) = pending_calls(state["messages"])
    assert (pending.kind, made.ran) == ("approval", [])
    assert made.model.bind_tools([WIRES[wire]]).invoke(state["messages"], resume=[pending.approve()]).text == "Fine."
    assert made.ran == [pending.args]

    made = desk(wire, needs=None)
    bound = made.model.bind_tools([WIRES[wire]])

    def ask(state: MessagesState) -> dict[str, Any]:
        decisions = interrupt([call.to_dict() for call in pending_calls(state["messages"])])
        return {"messages": new_messages(bound.invoke(state["messages"], resume=decisions))}

    builder = StateGraph(MessagesState).add_node("model", lambda state: {"messages": new_messages(bound.invoke(state["messages"]))})
    builder.add_node("ask", ask).add_edge(START, "model").add_edge("ask", END)
    builder.add_conditional_edges("model", lambda state: "ask" if pending_calls(state["messages"]) else END)
    graph = builder.compile(checkpointer=InMemorySaver())
    state = graph.invoke({"messages": QUESTION}, THREAD)
    (shown,) = (PendingCall.from_dict(call) for call in state["__interrupt__"][0].value)
    state = graph.invoke(Command(resume=[shown.approve().to_dict()]), THREAD)
    assert (state["messages"][-1].text, made.ran) == ("Fine.", [shown.args])


@pytest.mark.parametrize("way", WAYS)
async def test_a_model_without_tools_answers_by_its_handlers(desk: Callable[..., Desk], way: str) -> None:
    """What is bound declares, the handler answers; a function's call beside it stays the caller's."""
    for wire, beside in product(WIRES, (False, True)):
        made = desk(wire, needs=False, beside=beside)
        done = await run_in(way, made.model.bind_tools([get_temperature, WIRES[wire]]), QUESTION)
        assert (len(made.ran), done.message.text.endswith("Look." if beside else "Fine.")) == (1, True)
        assert [one["name"] for one in done.message.tool_calls] == ["get_temperature"] * beside


def test_without_a_handler_it_is_the_callers(desk: Callable[..., Desk]) -> None:
    """The call stays in the reply; nothing decides about it here, and a message answers it."""
    for handlers in (None, {"computer": print}):
        made = desk("item", needs=None, handlers=handlers)
        bound = made.model.bind_tools([WIRES["item"]])
        history = [*QUESTION, *new_messages(bound.invoke(QUESTION))]
        (pending,) = pending_calls(history)
        assert pending.kind == "client_tool"
        if handlers is None:
            with pytest.raises(ConfigurationError, match=r"tools=\[\.\.\.\] or handlers="):
                bound.invoke(history, resume=[pending.respond("a.txt")])
        else:
            assert bound.invoke(history, resume=[pending.respond("a.txt")]).text == "Fine."
        assert bound.invoke([*history, HumanMessage([ANSWERS["shell"]])]).text == ("Fine." if handlers is None else "Yes.")
