"""`ToolContext` and progress in whole runs over loopback HTTP: four ways, every vendor, event streams, graphs, and runs without any."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph

from langchain_autotools import ChatOpenAI, ConfigurationError, ToolCallRecord, ToolContext, ToolExecutor, new_messages
from langchain_autotools.executor import context as context_module
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.talk import WAYS, run_in
from tests.contract.wires import ROWS, Wire
from tests.support.entered import entered
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

QUESTION = HumanMessage("How warm is it in Paris and in Rome?")
CALLS = [Call("measure", {"city": "Paris"}, id="call_1"), Call("ameasure", {"city": "Rome"}, id="call_2")]


@tool
def measure(city: str, context: ToolContext) -> str:
    """Measure in a thread."""
    context.report({"half": city})
    asked = [message.type for message in context.messages]
    return f"{city}: turn {context.turn}, {asked}, {context.config['configurable'].get('user')}"


@tool
async def ameasure(city: str, context: ToolContext | None = None) -> str:
    """Measure on an event loop."""
    if context is None:
        return "no context"
    await asyncio.sleep(0)
    context.report({"half": city})
    return f"{city}: turn {context.turn}"


TOOLS = [measure, ameasure]


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """A server that asks for both tools, twice, and then answers."""
    again = [Call("measure", {"city": "Oslo"}, id="call_3")]
    with OpenAIServer([Turn("Let me look.", CALLS), Turn("", again), Turn("Warm.")]) as running:
        yield running


def chat(server: OpenAIServer, **more: Any) -> Any:
    """A model of that server with both tools."""
    return ChatOpenAI(model="any", base_url=server.url, api_key="key", tools=TOOLS, **more)


@pytest.mark.parametrize("way", WAYS)
async def test_tools_know_the_run_and_report_from_within(way: str, server: OpenAIServer) -> None:
    """Field and keyword hear of progress, the keyword instead of the field; tools see messages, turn and configuration."""
    told: list[tuple[str, Any]] = []

    def tell(call: ToolCallRecord, value: Any) -> None:
        told.append((call.id, value["half"]))

    model = chat(server, on_progress=lambda *_: pytest.fail("the call has another listener"))
    ran = await run_in(way, model, [QUESTION], on_progress=tell, config={"configurable": {"user": "Anna"}})
    results = [message.text for message in ran.new if message.type == "tool"]
    assert results == [
        "Paris: turn 1, ['human', 'ai'], Anna",
        "Rome: turn 1",
        "Oslo: turn 2, ['human', 'ai', 'tool', 'tool', 'ai'], Anna",
    ]
    assert sorted(told) == [("call_1", "Paris"), ("call_2", "Rome"), ("call_3", "Oslo")]


@pytest.mark.parametrize("way", WAYS)
async def test_an_error_of_the_listener_ends_the_run_and_loses_nothing(way: str, server: OpenAIServer) -> None:
    """It is raised as it is, brings what no chunk has delivered, and no further request is made."""

    async def tell(call: ToolCallRecord, value: Any) -> None:
        raise OSError("full")

    delivered: list[BaseMessage] = []
    with pytest.raises(OSError, match="full") as caught:
        if way == "stream":
            for chunk in chat(server, on_progress=tell).stream([QUESTION]):
                delivered += new_messages(chunk)
        elif way == "astream":
            async for chunk in chat(server, on_progress=tell).astream([QUESTION]):
                delivered += new_messages(chunk)
        else:
            await run_in(way, chat(server, on_progress=tell), [QUESTION])
    assert [message.type for message in delivered + new_messages(caught.value)] == ["ai", "tool", "tool"]
    assert len(server.exchanges) == 1


@pytest.mark.parametrize("wire", ROWS, ids=lambda wire: wire.name)
def test_no_vendor_is_told_of_the_context(wire: Wire) -> None:
    """Every strict server takes the request, in which the context is nowhere, and the tool has it."""
    with wire.serve([Turn("", [Call("measure", {"city": "Paris"})]), Turn("Warm.")]) as server:
        run = wire.model(server, tools=TOOLS).invoke([QUESTION])
        assert b"context" not in server.exchanges[0].body.lower().replace(b"context_management", b"")
        assert new_messages(run)[1].text.startswith("Paris: turn 1")
        assert server.rejections == []


@pytest.mark.parametrize("way", WAYS)
async def test_calls_found_in_the_input_belong_to_no_turn(way: str) -> None:
    """A resumed call runs in turn 0, with the history as its messages."""
    history = [QUESTION, AIMessage("", tool_calls=[{"name": "measure", "args": {"city": "Paris"}, "id": "1"}])]
    ran = await run_in(way, ScriptedChatModel(replies=["Warm."], tools=TOOLS), history, resume=True)
    assert ran.new[0].text == "Paris: turn 0, ['human', 'ai'], None"


async def test_events_show_progress_as_custom_events(server: OpenAIServer) -> None:
    """`astream_events` v2 has each report under the tool's run, between its start and its end."""
    events = [event async for event in chat(server).astream_events([QUESTION], version="v2")]
    told = [event for event in events if event["event"] == "on_custom_event"]
    assert sorted((event["data"]["tool_call_id"], event["data"]["name"], event["data"]["value"]["half"]) for event in told) == [
        ("call_1", "measure", "Paris"),
        ("call_2", "ameasure", "Rome"),
        ("call_3", "measure", "Oslo"),
    ]
    assert {event["name"] for event in told} == {context_module.PROGRESS_EVENT} == {"tool_progress"}
    for event in told:
        steps = [other["event"] for other in events if other["run_id"] == event["run_id"]]
        assert steps == ["on_tool_start", "on_custom_event", "on_tool_end"]


async def test_events_of_an_asynchronous_tool_come_in_order_from_wherever_it_reports() -> None:
    """From its event loop, without a wait between them, and from a thread; its run ends after them."""
    seen: list[Any] = []

    class Handler(AsyncCallbackHandler):
        async def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
            value = data["value"]
            await asyncio.sleep(0.01 if value == 1 else 0)
            seen.append((value, threading.current_thread() is main))

        async def on_tool_end(self, output: Any, **kwargs: Any) -> None:
            seen.append("end")

    async def reports(context: ToolContext) -> None:
        """Report."""
        await asyncio.to_thread(context.report, 0)
        context.report(1)
        context.report(2)

    main = threading.current_thread()
    await ToolExecutor([reports]).aexecute_all([{"name": "reports", "args": {}, "id": "1"}], {"callbacks": [Handler()]})
    assert seen == [(0, False), (1, True), (2, True), "end"]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("name", ["measure", "ameasure", "own_loop"])
async def test_what_a_handler_that_is_to_raise_raises_ends_the_run(name: str, is_async: bool) -> None:
    """Of a custom event too; the tool does not see it, and it is told to no model."""

    class Handler(BaseCallbackHandler):
        raise_error = True

        def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
            raise OSError(f"{name} of {data['tool_call_id']}")

    def own_loop(city: str, context: ToolContext) -> None:
        """Measure on a loop of its own."""

        async def inner() -> None:
            context.report("half")

        asyncio.run(inner())

    executor = ToolExecutor([*TOOLS, own_loop])
    config: Any = {"callbacks": [Handler()]}
    with pytest.raises(OSError, match="tool_progress of 1"):
        if is_async:
            await executor.aexecute_all([{"name": name, "args": {"city": "Paris"}, "id": "1"}], config)
        else:
            await asyncio.to_thread(executor.execute_all, [{"name": name, "args": {"city": "Paris"}, "id": "1"}], config)


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_graph_streams_progress_in_custom_mode(is_async: bool, server: OpenAIServer) -> None:
    """The graph's stream writer has each report, with the call that it belongs to."""
    model = chat(server)

    def talk(state: MessagesState) -> dict[str, Any]:
        return {"messages": new_messages(model.invoke(state["messages"]))}

    async def atalk(state: MessagesState) -> dict[str, Any]:
        return {"messages": new_messages(await model.ainvoke(state["messages"]))}

    graph = StateGraph(MessagesState).add_node("talk", atalk if is_async else talk).add_edge(START, "talk").compile()
    state: Any = {"messages": [QUESTION]}
    if is_async:
        told = [part async for part in graph.astream(state, stream_mode="custom")]
    else:
        told = list(graph.stream(state, stream_mode="custom"))
    assert told[-1] == {"type": "tool_progress", "tool_call_id": "call_3", "name": "measure", "value": {"half": "Oslo"}}
    assert sorted(part["tool_call_id"] for part in told) == ["call_1", "call_2", "call_3"]


def test_a_run_without_contexts_enters_nothing_of_theirs(server: OpenAIServer) -> None:
    """Not one function of the module runs where no tool asks for a context, with a listener too."""

    def plain(city: str) -> str:
        """Measure."""
        return "21 °C"

    model = ChatOpenAI(
        model="any",
        base_url=server.url,
        api_key="key",
        tools={"measure": plain, "ameasure": plain},
        on_progress=lambda call, value: None,
        parallel=False,
    )
    with entered() as functions:
        assert model.invoke([QUESTION]).text == "Let me look.\nWarm."
    assert [name for file, name in functions if file == context_module.__file__] == []


def test_a_listener_that_cannot_be_called_is_refused() -> None:
    """By name, where the model is made and at a call; without tools it is accepted, and dropped."""
    with pytest.raises(ValueError, match="on_progress must be a function"):
        ScriptedChatModel(replies=["."], tools=TOOLS, on_progress=3)
    with pytest.raises(ConfigurationError, match="on_progress must be a function"):
        ScriptedChatModel(replies=["."], tools=TOOLS).invoke("?", on_progress=3)
    assert ScriptedChatModel(replies=["."]).invoke("?", on_progress=print).text == "."
