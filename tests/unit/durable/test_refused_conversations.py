"""What cannot be said to conversations, and conversations that cannot work."""

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_autotools import new_messages, pending_calls
from langchain_autotools.durable import Conversations
from langchain_autotools.errors import ConfigurationError, DecisionsError
from langchain_autotools.testing import ScriptedChatModel
from tests.support.durable import Life, counting, double


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda chats: chats.send("", "Hello"), "the id of a conversation"),
        (lambda chats: chats.send("a", AIMessage("Hello")), "append takes any messages"),
        (lambda chats: chats.send("a", ToolMessage("Hello", tool_call_id="1")), "append takes any messages"),
        (lambda chats: chats.send("a", ["Hello"]), "send takes a text"),
        (lambda chats: chats.send("a", "Hello", {"callbacks": [object()]}), "callbacks"),
        (lambda chats: chats.append("a", []), "append takes a list of messages"),
        (lambda chats: chats.append("a", "Hello"), "append takes a list of messages"),
        (lambda chats: chats.events("a", after="x"), "after takes the position"),
        (lambda chats: chats.events("a", after="0-1"), "after takes the position"),
        (lambda chats: chats.result("a/b/1"), "there is no run"),
        (lambda chats: chats.result(chats.append("a", [HumanMessage("Hello")])), "there is no run"),
        (lambda chats: chats.events("a", after="1-0"), "has no position '1-0'"),
        (lambda chats: list(chats.events("a", timeout="x")), "timeout must be"),
    ],
)
def test_what_cannot_be_is_refused(life: Life, ask: Any, why: str) -> None:
    """The text says what is wrong; nothing is sent."""
    chats = life.conversations(counting)
    with pytest.raises(ConfigurationError, match=why):
        ask(chats)


def test_conversations_that_cannot_work_are_refused(life: Life) -> None:
    """Another database than the one in use, limits and names that are none, a model that decides anew."""
    chats = life.conversations(counting)
    model = ScriptedChatModel(replies=["Hello."])
    with pytest.raises(ConfigurationError, match="another database"):
        Conversations(model, "sqlite:///other.sqlite")
    for wrong in ({"max_concurrency": -1}, {"max_concurrency": True}, {"name": ""}, {"rerun": ["none"]}):
        with pytest.raises(ConfigurationError):
            Conversations(model, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="decide anew"):
        Conversations(ScriptedChatModel(replies=["Hello."], approve=lambda call: None))
    assert new_messages(chats.result(chats.send("a", "Hello")))[0].text == "1: Hello"
    with pytest.raises(ConfigurationError, match="before launch"):
        Conversations(model, name="never seen")


def test_a_run_of_a_conversation_has_an_id_of_its_own(life: Life) -> None:
    """Where something else has it the message is refused, and nothing waits for ever."""
    chat, chats = life.model(["Hello."]), life.conversations(counting)
    chat.invoke("Go", run_id="conversations/test/a/1")
    with pytest.raises(ConfigurationError, match="another workflow has the id"):
        chats.send("a", "Hello")
    assert chats.result(chats.send("b", "Hello")).text == "1: Hello"


@pytest.mark.parametrize(
    ("edit", "why"), [({}, "number"), ({"number": "many"}, "number"), ({"number": 1, "how": "well"}, "'how' is no argument of the tool")]
)
def test_arguments_that_a_tool_cannot_take_are_refused_where_they_are_given(life: Life, edit: dict[str, Any], why: str) -> None:
    """Before a run goes on with them: the call waits on, and takes others."""
    chats = life.conversations(counting, [double], requires_approval=["double"])
    chats.result(chats.send("c", "double 3"))
    (call,) = chats.pending("c")
    with pytest.raises(ConfigurationError, match=f"edited arguments of call '{call.id}' cannot be used: .*{why}"):
        chats.decide("c", [call.edit(edit)])
    (problem,) = chats.check("c", [call.edit(edit)])
    assert (problem.uuid, problem.id) == (call.uuid, call.id) and why in problem.words
    assert chats.pending("c") == [call] and len(chats.export("c")["runs"]) == 1
    chats.result(chats.decide("c", [call.edit({"number": 4})]))
    assert "8" in str(chats.messages("c")[2].content)


def test_decisions_about_calls_that_do_not_wait_are_refused_together(life: Life) -> None:
    """What was decided otherwise, what was never shown, and what the tool does not take: each is named, and nothing is recorded."""
    chats = life.conversations(counting, [double], requires_approval=["double"])
    chats.result(chats.send("c", "double 3"))
    (call,) = chats.pending("c")
    unknown = replace(call.approve(), id="other")
    problems = chats.check("c", [unknown, call.edit({})])
    assert [(one.id, one.words.partition(":")[0]) for one in problems] == [
        ("other", "This call does not wait, or is another one than was shown."),
        (call.id, "The arguments of 'double' are not valid"),
    ]
    with pytest.raises(DecisionsError) as refused:
        chats.decide("c", [unknown, call.edit({})])
    assert refused.value.problems == problems and len(chats.export("c")["runs"]) == 1
    chats.result(chats.decide("c", [call.approve()]))
    assert chats.check("c", [call.approve()]) == []
    assert [one.words for one in chats.check("c", [call.reject()])] == ["This call was decided otherwise before."]


def test_a_recorded_run_without_tools_checks_what_its_caller_decides(life: Life) -> None:
    """A durable model that has no tools of its own is a run all the same, and so is one of a conversation."""
    theirs = {
        "type": "function",
        "function": {"name": "ask_user", "description": "Ask.", "parameters": {"type": "object", "properties": {}}},
    }
    asks = AIMessage("", tool_calls=[{"name": "ask_user", "args": {}, "id": "1"}])
    chat, chats = life.model([asks, "Thanks."]), life.conversations([asks, "Thanks."])
    question = HumanMessage("Go")
    history = [question, *new_messages(chat.invoke([question], tools=[theirs]))]
    (call,) = pending_calls(history)
    assert chat.check(history, [call.respond("Yes.")], tools=[theirs]) == []
    assert [one.words for one in chat.check(history, {"1": True}, tools=[theirs])] == ["This call cannot run here."]
    chats.result(chats.send("c", question, tools=[theirs]))
    (call,) = chats.pending("c")
    assert chats.check("c", [call.respond("Yes.")]) == []
    assert chats.result(chats.decide("c", [call.respond("Yes.")])).text == "Thanks."
