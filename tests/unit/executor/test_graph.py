"""ToolExecutor beside LangGraph: its injections, its commands and its interrupts, and no import of it."""

import asyncio
import dataclasses
import json
import subprocess
import sys
import threading
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from langchain_autotools.executor import ToolExecutor
from tests.support.calls import call


def error(message: BaseMessage) -> str:
    """The text of an error result."""
    assert getattr(message, "status", None) == "error"
    return str(json.loads(str(message.content))["error"])


async def both(executor: ToolExecutor, calls: Any, *args: Any, **options: Any) -> ToolMessage:
    """The one message of a synchronous run and of an asynchronous run, which are alike."""
    (one,) = await asyncio.to_thread(executor.execute_all, calls, *args, **options)
    (two,) = await executor.aexecute_all(calls, *args, **options)
    assert one == two
    return one


async def test_tool_runtime_is_injected() -> None:
    """A tool gets the conversation, its call's id, the configuration and all tools, outside a graph as well."""

    @tool
    def look(word: str, runtime: ToolRuntime) -> str:
        """Look."""
        assert runtime.store is None and runtime.context is None
        runtime.stream_writer("nobody listens")
        texts = [str(message.content) for message in runtime.state["messages"]]
        return json.dumps([word, texts, runtime.tool_call_id, runtime.config["tags"], [one.name for one in runtime.tools]])

    messages = [HumanMessage("hi"), AIMessage(content="calling", tool_calls=[{**call("look", word="w"), "type": "tool_call"}])]
    config: RunnableConfig = {"tags": ["T"]}
    executor = ToolExecutor([look])
    message = await both(executor, messages[1], config, messages=messages)
    assert json.loads(str(message.content)) == ["w", ["hi", "calling"], "1", ["T"], ["look"]]
    message = await both(executor, messages[1], config)
    assert json.loads(str(message.content))[1] == ["calling"]
    message = await both(executor, [call("look", word="w", runtime="forged")], config)
    assert json.loads(str(message.content))[1] == []


async def test_an_untyped_parameter_named_runtime_is_injected() -> None:
    """LangGraph counts a parameter by its name; so it is here, if the model could not mean its own."""

    def look(word: str, runtime) -> str:  # type: ignore[no-untyped-def]
        return f"{word} {runtime.tool_call_id}"

    assert (await both(ToolExecutor([look]), [call("look", word="w", runtime=3)])).content == "w 1"


async def test_state_is_injected_where_a_model_has_it() -> None:
    """The state of a conversation is its messages. Other fields are answered with what is missing, or left to their default."""

    @tool
    def count(state: Annotated[dict[str, Any], InjectedState], messages: Annotated[list[Any], InjectedState("messages")]) -> str:
        """Count."""
        return f"{len(state['messages'])} {len(messages)}"

    @tool
    def user(name: Annotated[str, InjectedState("user")]) -> str:
        """User."""
        raise AssertionError("not run")

    @tool
    def guest(name: Annotated[str, InjectedState("user")] = "guest") -> str:
        """Guest."""
        return name

    executor = ToolExecutor([count, user, guest])
    assert (await both(executor, [call("count", state={})], messages=[HumanMessage("hi")])).content == "1 1"
    assert "needs the graph state 'user'" in error(await both(executor, [{**call("user"), "args": {"name": "root"}}]))
    assert (await both(executor, [{**call("guest"), "args": {"name": "root"}}])).content == "guest"


async def test_store_and_context_come_from_the_graph_around() -> None:
    """Inside a graph's node, tools get the graph's store, context and stream writer; outside, a store is missed clearly."""

    @tool
    def save(store: Annotated[Any, InjectedStore()], runtime: ToolRuntime[Any, Any]) -> str:
        """Save."""
        store.put(("place",), "key", {"saved": True})
        assert runtime.store is store
        runtime.stream_writer({"written": runtime.context["user"]})
        return "saved"

    executor = ToolExecutor([save])
    assert "needs a store" in error(await both(executor, [call("save")]))

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": executor.execute_all([call("save")])}

    async def anode(state: MessagesState) -> dict[str, Any]:
        return {"messages": await executor.aexecute_all([call("save")])}

    class Context(TypedDict):
        user: str

    for function, is_async in ((node, False), (anode, True)):
        store = InMemoryStore()
        graph = StateGraph(MessagesState, context_schema=Context).add_node("tools", function).add_edge(START, "tools").compile(store=store)
        options: dict[str, Any] = {"context": {"user": "u"}, "stream_mode": "custom"}
        start: Any = {"messages": [HumanMessage("hi")]}
        written = [part async for part in graph.astream(start, **options)] if is_async else list(graph.stream(start, **options))
        assert written == [{"written": "u"}]
        assert store.get(("place",), "key").value == {"saved": True}  # type: ignore[union-attr]


async def test_a_command_gives_its_tool_message(caplog: pytest.LogCaptureFixture) -> None:
    """A model takes the message for its call out of a Command; what only a graph can do is reported, not lost in silence."""

    @dataclasses.dataclass
    class State:
        messages: list[Any]

    def forms(call_id: str) -> dict[str, Any]:
        own = ToolMessage("moved", tool_call_id=call_id)
        return {
            "mapping": Command(update={"messages": [HumanMessage("other"), own], "user": "u"}, goto="elsewhere"),
            "single": Command(update={"messages": own}),
            "list": Command(update=[own]),
            "pairs": Command(update=[("user", "u"), ("messages", [own])]),
            "dicts": Command(update={"messages": [{"role": "tool", "content": "moved", "tool_call_id": call_id}]}),
            "object": Command(update=State([own])),
            "strange": Command(update={"messages": [own, object()]}),
            "several": [Command(update={"user": "u"}), own],
            "in_list": [Command(update={"messages": [own]}), Command(goto="elsewhere")],
        }

    @tool
    def move(form: str, call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Move."""
        return forms(call_id)[form]

    executor = ToolExecutor([move])
    for form in forms(""):
        caplog.clear()
        message = await both(executor, [call("move", form=form)])
        assert (message.content, message.status, message.tool_call_id, message.name) == ("moved", "success", "1", "move"), form
        assert ("graph command" in caplog.text) == (form not in ("single", "list", "dicts", "object", "strange")), form
    (result,) = executor.stream([call("move", form="mapping")])
    assert result.commands == (forms("1")["mapping"],)


async def test_a_command_without_a_message_for_the_call_is_an_error() -> None:
    """What a model cannot apply, and what does not answer its call, is told."""

    @tool
    def move(form: str) -> Any:
        """Move."""
        wrong = ToolMessage("moved", tool_call_id="another")
        return {
            "none": Command(goto="elsewhere"),
            "nothing": Command(update=5),
            "wrong": Command(update={"messages": [wrong]}),
            "two": [ToolMessage("a", tool_call_id="1"), ToolMessage("b", tool_call_id="1")],
        }[form]

    executor = ToolExecutor([move])
    for form in ("none", "nothing", "wrong", "two"):
        assert "cannot apply a graph's Command" in error(await both(executor, [call("move", form=form)]))


@pytest.mark.parametrize("error_type", [GraphInterrupt, GraphBubbleUp])
async def test_a_graphs_own_signals_pass_through(error_type: type[Exception]) -> None:
    """An interrupt is not told to the model. Calls that were running end first, and their results are not lost."""

    def stop() -> str:
        raise error_type

    async def astop() -> str:
        raise error_type

    executor = ToolExecutor({"stop": stop, "astop": astop, "ok": lambda: "ok"})
    for turn in ([call("ok"), call("stop", "2"), call("ok", "3")], [call("astop", "2"), call("ok", "3")], [call("stop")]):
        stream = executor.stream(turn)
        with pytest.raises(error_type):
            list(stream)
        settled = stream.settled()
        assert [result.call.id for result in settled] == [one["id"] for one in turn]
        astream = executor.astream(turn)
        with pytest.raises(error_type):
            [result async for result in astream]
        assert len(astream.settled()) == len(turn)


def test_an_interrupt_in_a_tool_is_answered_and_resumed() -> None:
    """interrupt() inside a tool stops the graph's node; resuming runs the node again and the tool gets the answer."""

    @tool
    def ask(question: str) -> str:
        """Ask a human."""
        return f"human said {interrupt(question)}"

    executor = ToolExecutor([ask])

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": executor.execute_all([call("ask", question="may I?"), call("ask", "2", question="may I too?")])}

    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    first = graph.invoke({"messages": []}, config)
    assert first["__interrupt__"]
    for _ in range(2):
        first = graph.invoke(Command(resume="yes"), config)
    assert [message.content for message in first["messages"]] == ["human said yes"] * 2


@pytest.mark.parametrize("asynchronous_tool", [False, True])
@pytest.mark.parametrize("asynchronous_graph", [False, True])
async def test_each_call_of_a_resumed_node_gets_its_own_answer(asynchronous_tool: bool, asynchronous_graph: bool) -> None:
    """Calls that ran side by side ask again in their own order, also where a later one would be faster."""
    rome_asked = threading.Event()

    def question(city: str) -> str:
        return f"{city}: {interrupt(city)}"

    def ask(city: str) -> str:
        """Ask a human."""
        if city == "Paris":
            rome_asked.wait(0.05)
        else:
            rome_asked.set()
        return question(city)

    async def aask(city: str) -> str:
        """Ask a human."""
        if city == "Paris":
            await asyncio.sleep(0.05)
        return question(city)

    executor = ToolExecutor({"ask": aask if asynchronous_tool else ask})
    calls = [call("ask", city="Paris"), call("ask", "2", city="Rome")]

    def node(state: MessagesState) -> dict[str, Any]:
        rome_asked.clear()
        return {"messages": executor.execute_all(calls)}

    async def anode(state: MessagesState) -> dict[str, Any]:
        rome_asked.clear()
        return {"messages": await executor.aexecute_all(calls)}

    builder = StateGraph(MessagesState).add_node("tools", anode if asynchronous_graph else node).add_edge(START, "tools")
    graph = builder.compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    given: Any = {"messages": []}
    asked = []
    while "__interrupt__" in (state := await graph.ainvoke(given, config) if asynchronous_graph else graph.invoke(given, config)):
        asked.append(state["__interrupt__"][0].value)
        given = Command(resume=f"the answer to {asked[-1]}")
    assert asked == ["Paris", "Rome"]
    assert [message.content for message in state["messages"]] == ["Paris: the answer to Paris", "Rome: the answer to Rome"]


async def test_a_resume_value_that_does_not_fit_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """What LangGraph marks as a resume value to be asked for again is not told to the model."""
    langgraph_errors = sys.modules["langgraph.errors"]
    if not hasattr(langgraph_errors, "is_invalid_resume"):
        pytest.skip("this langgraph does not mark resume errors")
    monkeypatch.setattr(langgraph_errors, "is_invalid_resume", lambda error: isinstance(error, LookupError))

    def ask() -> str:
        raise LookupError

    with pytest.raises(LookupError):
        ToolExecutor([ask]).execute_all([call("ask")])


@pytest.mark.further
def test_without_langgraph_nothing_imports_it() -> None:
    """A run of tools does not load LangGraph; an untyped `runtime` is the program's all the same, which has none."""
    code = """
import sys
from langchain_autotools.executor import ToolExecutor
def look(runtime=None): return f"from the program: {runtime}"
def fail(): raise ValueError("x")
executor = ToolExecutor([look, fail])
calls = [{"name": "look", "args": {"runtime": 3}, "id": "1"}, {"name": "fail", "args": {}, "id": "2"}]
print(*[message.content for message in executor.execute_all(calls)])
assert not [name for name in sys.modules if name.split(".")[0] == "langgraph"]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == 'from the program: None {"error": "ValueError: x"}\n', done.stderr
