"""What LangGraph's checkpointers keep of a run, in whichever way it is put into the state: docs/howto/langgraph_checkpointers.md."""

import json
import threading
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import SecretStr

from langchain_autotools import ChatOpenAI, new_messages, pending_calls, run_usage, stop_reason
from langchain_autotools.testing import ScriptedChatModel
from tests.compositions.conftest import answer, get_temperature
from tests.support.checkpoints import QUESTION, THREAD, Bring, one_node, run_message, stored
from tests.support.desk import Desk, asking, call
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

WAYS: dict[str, Bring] = {
    "run message": run_message,
    "parts": new_messages,
    "parts, then the run message": lambda run: [*new_messages(run), run],
}
each_way = pytest.mark.parametrize("bring", WAYS.values(), ids=WAYS)


def looks_up(artifact: Any, **fields: Any) -> ScriptedChatModel:
    """A model that looks up once, with this artifact, and answers."""

    @tool(response_format="content_and_artifact")
    def look_up(city: str) -> tuple[str, Any]:
        """Look a city up."""
        return "Warm.", artifact

    def reply(messages: list[Any], **_: Any) -> Any:
        return "It is warm." if messages[-1].type == "tool" else asking(call("look_up", "1", city="Rome"))

    return ScriptedChatModel(tools=[look_up], replies=reply, **fields)


def test_a_checkpoint_of_each_way_gives_the_same_next_request(saver: InMemorySaver) -> None:
    """Another model, in another graph over the same checkpoints, sends the same bytes: every call and every result, in order."""
    bodies = set()
    calls = [Call("get_temperature", {"city": city}, id=city) for city in ("Paris", "Rome")]
    for bring in WAYS.values():
        with OpenAIServer([Turn("Let me look.", calls), Turn("5 °C and 4 °C."), Turn("You are welcome.")]) as server:
            for said in ("How warm is it?", "Thanks."):
                model: Any = ChatOpenAI(model="any", base_url=server.url, api_key=SecretStr("key"), tools=[get_temperature])
                one_node(model, saver, bring).invoke({"messages": [HumanMessage(said)]}, THREAD)
            assert server.rejections == []
            bodies.add(server.exchanges[2].body)
        saver.delete_thread("1")
    (body,) = bodies
    assert [message["role"] for message in json.loads(body)["messages"]] == ["user", "assistant", "tool", "tool", "assistant", "user"]


def test_parts_behind_their_run_message_lose_their_order(chat: Any, saver: InMemorySaver) -> None:
    """`add_messages` puts the last of them in the place of the run message, before the others."""
    app = one_node(chat(), saver, lambda run: [run, *new_messages(run)])
    app.invoke(QUESTION, THREAD)
    assert [message.type for message in stored(app)] == ["human", "ai", "ai", "tool", "tool"]
    assert stored(app)[1].text == "Paris 5 °C, Rome 4 °C."


@pytest.mark.parametrize(
    ("way", "reason", "tokens"),
    [("run message", "max_turns", 135), ("parts", "complete", 75), ("parts, then the run message", "max_turns", 135)],
)
def test_the_run_message_alone_knows_why_the_run_ended_and_its_usage(
    chat: Any, saver: InMemorySaver, way: str, reason: str, tokens: int
) -> None:
    """The last of the parts is an answer like any other: what it says is its own turn's."""

    def reply(messages: list[Any], **keywords: Any) -> AIMessage:
        last = keywords.get("tool_choice") == "none"
        return answer(messages) if last else answer([HumanMessage("again")] * len(messages))

    app = one_node(chat(replies=reply, max_turns=2), saver, WAYS[way])
    app.invoke(QUESTION, THREAD)
    last = stored(app)[-1]
    usage = run_usage(last)
    assert usage is not None
    assert (stop_reason(last), usage["total_tokens"]) == (reason, tokens)


def test_a_run_message_that_carries_nothing_has_no_results_in_a_checkpoint(chat: Any, saver: InMemorySaver) -> None:
    """With `carry_messages=False` the next request has the text alone."""
    model = chat(carry_messages=False)
    one_node(model, saver).invoke(QUESTION, THREAD)
    one_node(model, saver).invoke({"messages": [HumanMessage("thanks")]}, THREAD)
    assert [message.type for message in model.requests[-1].messages] == ["human", "ai", "human"]


@dataclass
class Reading:
    """An artifact that pydantic can write as plain data."""

    degrees: int


@pytest.mark.parametrize(
    ("artifact", "of_run", "of_parts"),
    [
        ({"degrees": [21]}, {"degrees": [21]}, {"degrees": [21]}),
        (Reading(21), {"autotools": "artifact not carried", "type": "Reading"}, {"degrees": 21}),
        (
            Document("Warm.", id="d"),
            {"autotools": "artifact not carried", "type": "Document"},
            {"page_content": "Warm.", "id": "d", "metadata": {}, "type": "Document"},
        ),
        ((1, 2), {"autotools": "artifact not carried", "type": "tuple"}, [1, 2]),
    ],
    ids=["plain", "dataclass", "document", "tuple"],
)
def test_artifacts_come_back_as_plain_data_or_marked(saver: InMemorySaver, artifact: Any, of_run: Any, of_parts: Any) -> None:
    """A run message says that there was one; of the parts LangGraph's serializer makes dicts and lists, whatever their type was."""
    for bring, expected in ((run_message, of_run), (WAYS["parts"], of_parts)):
        app = one_node(looks_up(artifact), saver, bring)
        app.invoke(QUESTION, THREAD)
        (result,) = [m for message in stored(app)[-3:] for m in new_messages(message) if isinstance(m, ToolMessage)]
        assert result.artifact == expected and type(result.artifact) is type(expected)
        saver.delete_thread("1")


def test_an_artifact_that_the_serializer_does_not_know_fails_the_graph_after_the_tool_has_run(saver: InMemorySaver) -> None:
    """Where the parts are stored: their run is lost, and the thread ends in the question. The run message is stored."""
    app = one_node(looks_up(threading.Lock()), saver, new_messages)
    with pytest.raises(TypeError, match="not msgpack serializable: ToolMessage"):
        app.invoke(QUESTION, THREAD)
    assert [message.type for message in stored(app)] == ["human"] and app.get_state(THREAD).next == ("talk",)
    app = one_node(looks_up(threading.Lock()), saver)
    app.invoke(None, THREAD)
    assert [message.type for message in new_messages(stored(app)[-1])] == ["ai", "tool", "ai"]


@each_way
def test_a_call_that_waits_and_its_approval_go_through_a_checkpoint(saver: InMemorySaver, bring: Bring) -> None:
    """A decision about what is read from it runs the call, under a key, which is not stored."""
    desk = Desk()
    turn = asking(call("send", "1", to="Anna"), call("look", "2", city="Paris"))
    fields: Any = {"requires_approval": ["send"], "approval_key": "a key of the server's"}
    app = one_node(desk.model(turn, **fields), saver, bring)
    app.invoke(QUESTION, THREAD)
    (pending,) = pending_calls(stored(app))
    assert (pending.name, pending.args, pending.kind) == ("send", {"to": "Anna"}, "approval")
    run = desk.model(**fields).resume(stored(app), [pending.approve()])
    assert desk.done == ["look Paris", "send Anna 1"] and stop_reason(run) == "complete"
    assert "a key of the server's" not in repr(saver.storage) + repr(saver.blobs) + repr(saver.writes)


def test_only_both_together_take_much_more_room(chat: Any, saver: InMemorySaver) -> None:
    """A run message is little larger than its parts; whoever stores both has the results twice."""
    sizes = []
    for bring in WAYS.values():
        app = one_node(chat(), saver, bring)
        for number in range(5):
            app.invoke({"messages": [HumanMessage(f"{number}")]}, THREAD)
        sizes.append(len(saver.serde.dumps_typed(stored(app))[1]))
        saver.delete_thread("1")
    run, parts, both = sizes
    assert parts < run < 1.3 * parts and both > 1.5 * parts


def test_what_stands_in_the_config_is_stored(chat: Any, saver: InMemorySaver) -> None:
    """LangGraph writes its metadata and the scalars of `configurable` beside each checkpoint, a key too."""
    app = one_node(chat(), saver)
    app.invoke(QUESTION, {"configurable": {"thread_id": "1", "api_key": "sk-of-a-user"}, "metadata": {"plan": "free"}})
    metadata = app.get_state(THREAD).metadata
    assert (metadata["api_key"], metadata["plan"]) == ("sk-of-a-user", "free")
