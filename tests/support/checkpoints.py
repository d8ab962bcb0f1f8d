"""Graphs of one node that runs a model, over a checkpointer of LangGraph's: turns that die, and turns that run at once."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import RetryPolicy

from langchain_autotools.testing import ScriptedChatModel
from tests.support.desk import Desk, asking, call

THREAD: Any = {"configurable": {"thread_id": "1"}}
QUESTION: Any = {"messages": [HumanMessage("How warm is it?", id="q")]}
NAMES = ["Ann", "Ben", "Cem", "Dan"]
Bring = Callable[[BaseMessage], list[BaseMessage]]


def run_message(run: BaseMessage) -> list[BaseMessage]:
    """Brings a run into a state as one message."""
    return [run]


def one_node(model: ScriptedChatModel, saver: Any, bring: Bring = run_message, retry: RetryPolicy | None = None) -> Any:
    """A graph whose only node, `talk`, runs the model."""

    def talk(state: MessagesState) -> dict[str, Any]:
        return {"messages": bring(model.invoke(state["messages"]))}

    async def atalk(state: MessagesState) -> dict[str, Any]:
        return {"messages": bring(await model.ainvoke(state["messages"]))}

    builder = StateGraph(MessagesState).add_node("talk", RunnableLambda(talk, atalk), retry_policy=retry)
    return builder.add_edge(START, "talk").compile(checkpointer=saver)


def stored(app: Any) -> list[BaseMessage]:
    """The messages of the latest checkpoint, as another process reads them."""
    messages: list[BaseMessage] = app.get_state(THREAD).values["messages"]
    return messages


class Killed(BaseException):
    """Ends a node as a process that dies does: nothing catches it."""


def dies_once(desk: Desk, death: BaseException, **fields: Any) -> ScriptedChatModel:
    """A model that sends, dies with its next request the first time, and says "Done."."""
    deaths = [death]

    def reply(messages: list[Any], **_: Any) -> Any:
        if messages[-1].type != "tool":
            return asking(call("send", "1", to="Anna"))
        if deaths:
            raise deaths.pop()
        return "Done."

    return ScriptedChatModel(tools=[desk.send], replies=reply, **fields)


def greets(meet: Callable[..., Any]) -> ScriptedChatModel:
    """A model that calls `meet` with the name that it was told, and answers with a greeting."""

    def reply(messages: list[Any], **_: Any) -> Any:
        if messages[-1].type == "tool":
            return f"Hello {messages[-1].text}."
        return asking(call("meet", "1", who=messages[-1].text))

    return ScriptedChatModel(tools={"meet": meet}, replies=reply)


def turn(name: str) -> Any:
    """What a user who says a name hands to a graph."""
    return {"messages": [HumanMessage(name)]}


def greetings(messages: list[BaseMessage]) -> list[str]:
    """The answers of a state."""
    return [message.text for message in messages if message.text.startswith("Hello")]


def run_together(*functions: Callable[[], Any]) -> None:
    """Run each in a thread of its own, to its end."""
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)


def check_that_three_are_lost(given: list[dict[str, Any]], history: list[Any]) -> None:
    """Each caller was given the answer to its own turn; the thread has one of them, the others are in earlier checkpoints only."""
    answers = {f"Hello {name}." for name in NAMES}
    assert {greetings(state["messages"])[-1] for state in given} == answers
    assert len(greetings(history[0].values["messages"])) == 1
    assert {text for one in history for text in greetings(one.values.get("messages", []))} == answers


def lose_three_of_four_threads(saver: Any) -> None:
    """Four turns of one thread of a graph: none ends before all are in their tool."""
    all_there = threading.Barrier(4, timeout=20)

    def meet(who: str) -> str:
        """Meet somebody."""
        all_there.wait()
        return who

    app, given = one_node(greets(meet), saver), []
    run_together(*(lambda name=name: given.append(app.invoke(turn(name), THREAD)) for name in NAMES))
    check_that_three_are_lost(given, list(app.get_state_history(THREAD)))


async def lose_three_of_four_tasks(saver: Any) -> None:
    """The same in one event loop."""
    all_there = asyncio.Barrier(4)

    async def meet(who: str) -> str:
        """Meet somebody."""
        await asyncio.wait_for(all_there.wait(), 20)
        return who

    app = one_node(greets(meet), saver)
    given = await asyncio.gather(*(app.ainvoke(turn(name), THREAD) for name in NAMES))
    check_that_three_are_lost(given, [state async for state in app.aget_state_history(THREAD)])
