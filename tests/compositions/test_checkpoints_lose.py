"""What LangGraph's checkpointers lose: what ran in a node that died, and turns that run at once: docs/howto/langgraph_checkpointers.md."""

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import RetryPolicy

from langchain_autotools import new_messages
from langchain_autotools.testing import ScriptedChatModel
from tests.support.checkpoints import (
    QUESTION,
    THREAD,
    Killed,
    dies_once,
    greetings,
    greets,
    lose_three_of_four_tasks,
    lose_three_of_four_threads,
    one_node,
    stored,
    turn,
)
from tests.support.desk import Desk, asking, call


def test_no_checkpoint_is_made_inside_a_run(chat: Any, saver: InMemorySaver) -> None:
    """The question comes into the state with one, and all that the run brings with the next."""
    app = one_node(chat(), saver, new_messages)
    app.invoke(QUESTION, THREAD)
    assert [len(one.values["messages"]) for one in app.get_state_history(THREAD)] == [5, 1, 0]


def test_a_node_that_died_runs_again_with_every_call(saver: InMemorySaver) -> None:
    """The checkpoint before it has the question alone, whatever had run since."""
    desk = Desk()
    app = one_node(dies_once(desk, Killed()), saver)
    with pytest.raises(Killed):
        app.invoke(QUESTION, THREAD)
    assert [message.type for message in stored(app)] == ["human"] and app.get_state(THREAD).next == ("talk",)
    assert app.invoke(None, THREAD)["messages"][-1].text == "Done."
    assert desk.done == ["send Anna 1", "send Anna 1"]


def test_a_retry_policy_of_the_graph_runs_calls_again(saver: InMemorySaver) -> None:
    """It retries the node, and so the run from its start."""
    desk = Desk()
    retry = RetryPolicy(initial_interval=0.001, jitter=False)
    app = one_node(dies_once(desk, ConnectionError("gone")), saver, retry=retry)
    assert app.invoke(QUESTION, THREAD)["messages"][-1].text == "Done."
    assert desk.done == ["send Anna 1", "send Anna 1"]


def test_a_node_that_returns_what_an_error_brings_keeps_it(saver: InMemorySaver) -> None:
    """The next run goes on behind the results: no call runs twice."""
    desk = Desk()
    model = dies_once(desk, ConnectionError("gone"))

    def talk(state: MessagesState) -> dict[str, Any]:
        try:
            return {"messages": [model.invoke(state["messages"])]}
        except ConnectionError as error:
            return {"messages": new_messages(error)}

    app = StateGraph(MessagesState).add_node(talk).add_edge(START, "talk").compile(checkpointer=saver)
    assert [message.type for message in app.invoke(QUESTION, THREAD)["messages"]] == ["human", "ai", "tool"]
    assert app.invoke({"messages": []}, THREAD)["messages"][-1].text == "Done."
    assert desk.done == ["send Anna 1"]


async def test_an_asynchronous_stream_that_is_given_up_leaves_the_question_alone(saver: InMemorySaver) -> None:
    """Although a call has run: the graph cancels the node."""
    desk = Desk()

    async def wait() -> None:
        """Wait for ever."""
        await asyncio.Event().wait()

    replies = [asking(call("send", "1", to="Anna")), AIMessage("Wait.", tool_calls=[call("wait", "2")])]
    app = one_node(ScriptedChatModel(tools=[desk.send, wait], replies=replies), saver)
    stream = app.astream(QUESTION, THREAD, stream_mode="messages")
    async for chunk, _ in stream:
        if chunk.text == "Wait.":
            break
    await stream.aclose()
    assert desk.done == ["send Anna 1"]
    assert [message.type for message in stored(app)] == ["human"] and app.get_state(THREAD).next == ("talk",)


def test_of_four_turns_at_once_in_threads_one_stays(saver: InMemorySaver) -> None:
    """No error says so."""
    lose_three_of_four_threads(saver)


async def test_of_four_turns_at_once_in_tasks_one_stays(saver: InMemorySaver) -> None:
    """No error says so."""
    await lose_three_of_four_tasks(saver)


def test_a_turn_that_ends_last_takes_the_place_of_one_that_ended_before(saver: InMemorySaver) -> None:
    """A slow turn loses all that was said while it ran."""
    inside, go_on = threading.Event(), threading.Event()

    def meet(who: str) -> str:
        """Meet somebody."""
        if who == "Ann":
            inside.set()
            assert go_on.wait(20)
        return who

    app = one_node(greets(meet), saver)
    slow = threading.Thread(target=lambda: app.invoke(turn("Ann"), THREAD))
    slow.start()
    assert inside.wait(20)
    app.invoke(turn("Ben"), THREAD)
    assert greetings(stored(app)) == ["Hello Ben."]
    go_on.set()
    slow.join(20)
    assert [message.text for message in stored(app)] == ["Ann", "Hello Ann."]
