"""The model inside LangGraph graphs and in `create_agent`."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from langchain_autotools import new_messages
from langchain_autotools.testing import ScriptedChatModel

from .conftest import CALLS, TEXT, answer, get_temperature, ran

Make = Callable[..., ScriptedChatModel]
THREAD: Any = {"configurable": {"thread_id": "1"}}
QUESTION = HumanMessage("How warm is it in Paris and in Rome?", id="q")


def graph(model: ScriptedChatModel, bring: Callable[[BaseMessage], list[BaseMessage]]) -> Any:
    """A graph of one node that calls the model."""

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": bring(model.invoke(state["messages"]))}

    saver = InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))
    return StateGraph(MessagesState).add_node("model", node).add_edge(START, "model").compile(checkpointer=saver)


@pytest.mark.parametrize("bring", [lambda run: [run], new_messages], ids=["run message", "parts"])
def test_messages_mode_shows_each_turn_once(chat: Make, bring: Any) -> None:
    """The texts of both turns come once, and nothing again at the node's end."""
    parts = [part for part, _ in graph(chat(), bring).stream({"messages": [QUESTION]}, THREAD, stream_mode="messages")]
    assert "".join(part.text for part in parts if part.type == "AIMessageChunk") == TEXT.replace("\n", "")
    assert not [part for part in parts if part.type == "ai"]


def test_a_graph_continues_alike_with_run_message_and_parts(chat: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a strict checkpoint the next request is the same, whichever of the two the state stores."""
    monkeypatch.setenv("LANGGRAPH_STRICT_MSGPACK", "true")
    sent = []
    for bring in (lambda run: [run], new_messages):
        model = chat()
        app = graph(model, bring)
        app.invoke({"messages": [QUESTION]}, THREAD)
        state = app.invoke({"messages": [HumanMessage("thanks", id="t")]}, THREAD)
        assert all(type(message).__module__.startswith("langchain_core.") for message in state["messages"])
        sent.append([(m.type, m.content, getattr(m, "tool_calls", None)) for m in model.requests[-1].messages])
    assert sent[0] == sent[1] and [kind for kind, *_ in sent[0]] == ["human", "ai", "tool", "tool", "ai", "human"]


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
def test_graph_events_show_each_turn(chat: Make) -> None:
    """Invoked under the v3 events of a graph, every turn is a message of its own and the state is the same as without."""
    plain = graph(chat(), new_messages).invoke({"messages": [QUESTION]}, THREAD)["messages"]
    run = graph(chat(), new_messages).stream_events({"messages": [QUESTION]}, THREAD, version="v3")
    texts = [str(message.text) for message in run.messages]
    assert texts == TEXT.split("\n")
    events = run.output["messages"]
    assert [(m.type, m.content) for m in events] == [(m.type, m.content) for m in plain]


def test_create_agent_runs_each_tool_once(chat: Make) -> None:
    """As an agent's model, without tools of its own, it declares and the agent executes."""
    agent = create_agent(chat(tools=[]), tools=[get_temperature])
    state = agent.invoke({"messages": [QUESTION]})
    assert sorted(ran) == ["Paris", "Rome"]
    assert [message.type for message in state["messages"]] == ["human", "ai", "tool", "tool", "ai"]


def test_create_agent_asks_for_approval(chat: Make) -> None:
    """Human approval comes before execution: nothing runs until it is given, then each call runs once."""
    agent = create_agent(
        chat(tools=[]),
        tools=[get_temperature],
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"get_temperature": True})],
        checkpointer=InMemorySaver(),
    )
    state = agent.invoke({"messages": [QUESTION]}, THREAD)
    assert "__interrupt__" in state and ran == []
    agent.invoke(Command(resume={"decisions": [{"type": "approve"}, {"type": "reject", "message": "no"}]}), THREAD)
    assert ran == ["Paris"]


def test_an_agents_model_with_tools_of_its_own_leaves_the_agents_calls(chat: Make) -> None:
    """A name that the agent declares too is the agent's: no call runs twice."""
    agent = create_agent(chat(), tools=[get_temperature])
    state = agent.invoke({"messages": [QUESTION]})
    assert sorted(ran) == ["Paris", "Rome"] and state["messages"][-1].text.endswith("Rome 4 °C.")


@pytest.mark.parametrize("agents_tools", [[], [get_temperature]], ids=["no tools", "tools"])
def test_an_agents_structured_answer_after_a_talkative_turn(chat: Make, agents_tools: list[Any]) -> None:
    """ProviderStrategy parses the run's text: that of a turn that called the model's own tools is withheld."""

    def reply(messages: list[Any], **kwargs: Any) -> AIMessage:
        return AIMessage('{"paris": 5}') if messages[-1].type == "tool" else answer(messages)

    schema = {"title": "Report", "type": "object", "properties": {"paris": {"type": "integer"}}, "required": ["paris"]}
    agent = create_agent(chat(replies=reply), agents_tools, response_format=ProviderStrategy(schema))
    assert agent.invoke({"messages": [QUESTION]})["structured_response"] == {"paris": 5} and sorted(ran) == ["Paris", "Rome"]


def test_an_agents_structured_answer_by_a_call(chat: Make) -> None:
    """ToolStrategy forces a call: the model may call its own tools first, but does not end before it has called the agent's."""

    def reply(messages: list[Any], **kwargs: Any) -> AIMessage:
        if messages[-1].type != "tool":
            return answer(messages)
        call = {"name": "Report", "args": {"paris": 5}, "id": "r"}
        return AIMessage("", tool_calls=[call]) if kwargs.get("tool_choice") == "any" else answer(messages)

    schema = {"title": "Report", "type": "object", "properties": {"paris": {"type": "integer"}}, "required": ["paris"]}
    agent = create_agent(chat(replies=reply), [], response_format=ToolStrategy(schema))
    assert agent.invoke({"messages": [QUESTION]})["structured_response"] == {"paris": 5} and sorted(ran) == ["Paris", "Rome"]


def test_a_graph_executes_the_calls_that_a_run_message_leaves_to_it(chat: Make) -> None:
    """A turn calls a tool of the model and one of the graph: each executes its own, and the next request has both results."""

    @tool
    def get_wind(city: str) -> str:
        """Current wind in a city."""
        return "calm"

    def reply(messages: list[Any], **kwargs: Any) -> AIMessage:
        if messages[-1].type == "tool":
            return AIMessage("5 °C and calm.")
        wind = {"name": "get_wind", "args": {"city": "Paris"}, "id": "call_w"}
        return AIMessage("", tool_calls=[CALLS[0], wind])

    model = chat(replies=reply)
    bound = model.bind_tools([get_wind])
    builder = StateGraph(MessagesState).add_node("model", lambda state: {"messages": [bound.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode([get_wind])).add_edge(START, "model").add_edge("tools", "model")
    state = builder.add_conditional_edges("model", tools_condition).compile().invoke({"messages": [QUESTION]})
    assert state["messages"][-1].text == "5 °C and calm." and ran == ["Paris"]
    assert [(m.type, m.text) for m in model.requests[-1].messages[2:]] == [("tool", "5 °C"), ("tool", "calm")]


def test_an_interrupt_in_a_tool_pauses_the_graph(chat: Make) -> None:
    """A tool may ask a person; the graph's interrupt passes through the loop."""
    from langgraph.types import interrupt

    def ask(city: str) -> str:
        """Current temperature of a city."""
        return str(interrupt(f"How warm is it in {city}?"))

    app = graph(chat(tools={"get_temperature": ask}, parallel=False), new_messages)
    state = app.invoke({"messages": [QUESTION]}, THREAD)
    assert [entry.value for entry in state["__interrupt__"]] == ["How warm is it in Paris?"]
    state = app.invoke(Command(resume="1 °C"), THREAD)
    state = app.invoke(Command(resume="2 °C"), THREAD)
    assert [message.text for message in state["messages"] if message.type == "tool"] == ["1 °C", "2 °C"]
