"""A durable model as a node of a graph with a checkpointer: a node that runs again asks for the run that it has begun."""

from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from langchain_autotools.durable import RunFailedError
from tests.support.checkpoints import QUESTION, THREAD
from tests.support.desk import Desk, asking, call
from tests.support.durable import Life, crash


def test_a_node_that_runs_again_runs_no_call_again(life: Life) -> None:
    """With the id of the question as the run's, what the node that died has done is recorded, and its answer comes into the state."""
    desk, crashes = Desk(), [True]

    def reply(messages: list[Any], **_: Any) -> Any:
        sent = sum(message.type == "tool" for message in messages)
        if sent < 3:
            return asking(call("send", f"{sent}", to="Anna", amount=sent))
        if crashes.pop():
            crash()
        return "Done."

    chat = life.model(reply, [desk.send])

    def talk(state: MessagesState) -> dict[str, Any]:
        return {"messages": [chat.invoke(state["messages"], run_id=state["messages"][-1].id)]}

    app: Any = StateGraph(MessagesState).add_node(talk).add_edge(START, "talk").compile(checkpointer=InMemorySaver())
    life.begin()
    with pytest.raises(RunFailedError):
        app.invoke(QUESTION, THREAD)
    assert app.get_state(THREAD).next == ("talk",)
    crashes.append(False)
    life.again()
    assert app.invoke(None, THREAD)["messages"][-1].text == "Done."
    assert desk.done == ["send Anna 0", "send Anna 1", "send Anna 2"]
