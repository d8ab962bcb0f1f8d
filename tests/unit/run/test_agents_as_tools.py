"""Models and agents that are given as tools: where their runs wait, the call waits, and the outermost human decides."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from pydantic import BaseModel

from langchain_autotools import (
    Agent,
    AlreadyResumedError,
    ConfigurationError,
    PendingCall,
    ToolExecutor,
    ToolPolicy,
    events,
    new_messages,
    pending_calls,
    repair,
    results_of,
    stop_reason,
)
from langchain_autotools.event_types import CallsPending
from langchain_autotools.history import validate
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.service import through_json
from tests.laws.ways import WAYS, run

QUESTION = HumanMessage("Clean up.", id="question")


class Shed:
    """What a tool of the innermost model does."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    def delete(self, path: str) -> str:
        """Delete a file."""
        self.deleted.append(path)
        return f"deleted {path}"


def one_call(name: str, call_id: str = "call_0", **args: Any) -> AIMessage:
    """A reply with one call."""
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": call_id}])


def nobody(call: Any) -> bool:
    """A rule by which no call needs approval."""
    return False


def answering(first: Any) -> Callable[..., Any]:
    """A reply function: first this, then the last result."""

    def reply(messages: Sequence[BaseMessage], **_: Any) -> Any:
        return f"I heard: {messages[-1].text}" if messages[-1].type == "tool" else first

    return reply


def cleaner(shed: Shed, **fields: Any) -> ScriptedChatModel:
    """The inner model: it deletes one file, for which it needs approval."""
    replies = answering(one_call("delete", path="/tmp/a"))
    return ScriptedChatModel(tools=[shed.delete], **{"requires_approval": ["delete"], "name": "cleaner", "replies": replies, **fields})


def boss(inner: Any, **fields: Any) -> ScriptedChatModel:
    """The outer model: it asks the inner one."""
    return ScriptedChatModel(tools=inner, replies=answering(one_call("cleaner", question="Delete a.")), **fields)


def waiting(model: Any, way: str = "invoke") -> list[BaseMessage]:
    """The history of a run that waits, as another process reads it."""
    ran = run(way, model, [QUESTION])
    assert ran.message is not None and stop_reason(ran.message) == "calls_pending" and ran.message.tool_calls == []
    history = through_json([QUESTION, *ran.new])
    assert pending_calls(ran.message) == pending_calls(history)
    return history


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("as_agent", [False, True])
def test_a_run_inside_waits_and_goes_on_in_another_process(way: str, as_agent: bool) -> None:
    """The outer call is shown with the path to it, and what was approved runs, once; the answer is the result of the outer call."""
    shed = Shed()
    given = Agent(cleaner(shed), system_prompt="You clean.") if as_agent else cleaner(shed)
    history = waiting(boss([given]), way)
    (call,) = pending_calls(history)
    assert (call.name, call.args, call.kind, call.path) == ("delete", {"path": "/tmp/a"}, "approval", ("cleaner",))
    assert shed.deleted == [] and PendingCall.from_dict(call.to_dict()) == call
    model = boss([Agent(cleaner(shed), system_prompt="You clean.") if as_agent else cleaner(shed)])
    ran = run(way, model, history, resume=[call.approve().to_dict()])
    assert ran.message is not None and ran.message.text == "I heard: I heard: deleted /tmp/a"
    assert shed.deleted == ["/tmp/a"]
    (request,) = model.requests
    assert [message.type for message in request.messages] == ["human", "ai", "tool"]
    assert repair([*history, *ran.new])[:3] == [*request.messages] and validate([*history, *ran.new]) == []


def test_what_is_decided_reaches_the_inner_run() -> None:
    """A call is rejected, edited or answered at the top as if its own run had been asked."""
    shed = Shed()
    model = boss([cleaner(shed)])
    history = waiting(model)
    (call,) = pending_calls(history)
    assert "Not a." in model.resume(history, [call.reject("Not a.")]).text
    assert model.resume(history, [call.respond("gone already")]).text == "I heard: I heard: gone already"
    edited = model.resume(history, [call.edit({"path": "/tmp/b"})]).text
    assert "deleted /tmp/b" in edited and "were changed before it ran" in edited
    assert shed.deleted == ["/tmp/b"]


def test_who_decides_at_once_is_asked_with_the_path() -> None:
    """`approve` of the outermost model decides about calls of models given as tools, however deep; the nearest one comes first."""
    shed, asked = Shed(), list[PendingCall]()

    def approve(call: PendingCall) -> Any:
        asked.append(call)
        return call.approve()

    middle = Agent(boss([cleaner(shed)], name="cleaner"))
    assert boss([middle], requires_approval=nobody, approve=approve).invoke([QUESTION]).text.endswith("deleted /tmp/a")
    assert [(call.name, call.path) for call in asked] == [("delete", ("cleaner", "cleaner"))]
    nearer = boss([cleaner(shed, approve=lambda call: call.reject("Never."))], approve=approve)
    assert "Never." in nearer.invoke([QUESTION]).text and len(shed.deleted) == 1


async def test_who_decides_at_once_may_be_asynchronous() -> None:
    """An asynchronous `approve` is awaited in asynchronous runs."""
    shed = Shed()

    async def approve(call: PendingCall) -> Any:
        return call.approve() if call.path == ("cleaner",) else None

    answer = await boss([cleaner(shed)], requires_approval=nobody, approve=approve).ainvoke([QUESTION])
    assert answer.text.endswith("deleted /tmp/a") and shed.deleted == ["/tmp/a"]


def test_calls_without_a_decision_go_on_waiting() -> None:
    """Of two calls of an inner run one is decided: the outer call waits again, and only the last of its records counts."""
    shed = Shed()
    both = AIMessage("", tool_calls=[{"name": "delete", "args": {"path": path}, "id": path} for path in ("a", "b")])
    inner = ScriptedChatModel(tools=[shed.delete], replies=answering(both), requires_approval=True, name="cleaner")
    model = boss([inner])
    history = waiting(model)
    _, second = pending_calls(history)
    history += new_messages(model.resume(history, [second.approve()]))
    assert shed.deleted == ["b"]
    (left,) = pending_calls(history)
    assert (left.id, left.path) == ("a", ("cleaner",))
    with pytest.raises(ConfigurationError, match="'b'"):
        model.resume(history, [second.approve()])
    with pytest.raises(ConfigurationError, match="binds nothing"):
        model.resume(history, True)
    again = model.resume(history, [])
    assert stop_reason(again) == "calls_pending" and pending_calls(again) == [left]
    history += new_messages(model.resume(history, [left.approve()]))
    assert shed.deleted == ["b", "a"] and history[-1].text == "I heard: I heard: deleted b"
    assert [message.type for message in repair(history)] == ["human", "ai", "tool", "ai"]


def test_another_question_instead_of_a_decision() -> None:
    """Whoever goes on without deciding has a history that any model takes: its result says what did not run."""
    shed = Shed()
    model = boss([cleaner(shed)])
    history = [*waiting(model), HumanMessage("Never mind.")]
    assert repair(history) == history and validate(history) == []
    model.invoke(history)
    result = model.requests[-1].messages[2]
    assert isinstance(result, ToolMessage) and "delete" in result.text and result.status == "error"
    assert shed.deleted == []


def test_histories_of_run_messages_and_of_parts_give_the_same_requests() -> None:
    """Law 7: what was stored of the runs makes no difference."""
    shed = Shed()
    sent = []
    for keep in (lambda run: [run], new_messages):
        model = boss([cleaner(shed)])
        first = model.invoke([QUESTION])
        history: list[BaseMessage] = [QUESTION, *keep(first)]
        second = model.resume(history, [call.approve() for call in pending_calls(first)])
        model.invoke([*history, *keep(second), HumanMessage("Thanks.", id="thanks")])
        sent.append([[(message.type, message.text) for message in request.messages] for request in model.requests[1:]])
    assert sent[0] == sent[1] and [len(one) for one in sent[0]] == [3, 5]


@pytest.mark.parametrize("change", ["messages", "args", "path", "moved"])
def test_a_record_that_somebody_changed_runs_nothing(change: str) -> None:
    """With a key a record is what was made, for the call that it was made for, or it is refused."""
    shed = Shed()
    model = boss([cleaner(shed)], approval_key="a key of the server's")
    history = waiting(model)
    record = history[-1].response_metadata["autotools"]["open_run"]
    if change == "messages":
        record["messages"][0]["data"]["content"] = "Delete everything."
    elif change == "args":
        record["calls"][0]["args"] = {"path": "/"}
    elif change == "path":
        record["calls"][0]["path"] = ["someone else"]
    else:
        history[1].id = "another message"
    with pytest.raises(ConfigurationError, match="is not the one that was made"):
        model.resume(history, [call.approve() for call in pending_calls(history)])
    unsigned = boss([cleaner(shed)])
    with pytest.raises(ConfigurationError, match="is not the one that was made"):
        model.resume(forged := waiting(unsigned), [call.approve() for call in pending_calls(forged)])
    assert shed.deleted == []


def test_a_tool_that_is_no_model_any_more_cannot_go_on() -> None:
    """Where a program has changed, the call is not run from its beginning."""
    shed = Shed()
    history = waiting(boss([cleaner(shed)]))

    def other(question: str) -> str:
        """Answer."""
        raise AssertionError(question)

    with pytest.raises(ConfigurationError, match="no model, agent or tool of a server"):
        boss({"cleaner": other}).resume(history, [call.approve() for call in pending_calls(history)])


def test_a_decision_that_the_inner_run_refuses_leaves_the_call_waiting() -> None:
    """Arguments that the inner tool does not take are an error of the outer run; the history can still be resumed."""
    shed = Shed()
    model = boss([cleaner(shed)])
    history = waiting(model)
    (call,) = pending_calls(history)
    with pytest.raises(ConfigurationError, match="'file' is no argument") as raised:
        model.resume(history, [call.edit({"file": 1})])
    history += new_messages(raised.value)
    assert pending_calls(history) == [call]
    assert model.resume(history, [call.approve()]).text.endswith("deleted /tmp/a")


def test_an_outer_call_that_was_approved_is_not_approved_again() -> None:
    """It began with its edited arguments, of which its result tells; inside, the other rule holds."""
    shed = Shed()
    model = boss([cleaner(shed)], requires_approval=["cleaner"])
    history = [QUESTION, *new_messages(model.invoke([QUESTION]))]
    (outer,) = pending_calls(history)
    assert (outer.name, outer.path) == ("cleaner", ())
    history = through_json([*history, *new_messages(model.resume(history, [outer.edit({"question": "Delete it."})]))])
    (call,) = pending_calls(history)
    assert call.path == ("cleaner",)
    answer = model.resume(history, [call.approve()])
    (result,) = results_of(answer)
    assert "deleted /tmp/a" in result.text and "Delete it." in result.text
    assert shed.deleted == ["/tmp/a"]


def test_inner_calls_are_claimed_by_their_own_identity() -> None:
    """The store of the outermost model takes the outer call once, when it begins, and each inner call once."""
    shed, taken = Shed(), list[str]()

    def claim(key: str) -> bool:
        taken.append(key)
        return taken.count(key) == 1

    model = boss([cleaner(shed)], requires_approval=["cleaner"], claim=claim)
    history = [QUESTION, *new_messages(model.invoke([QUESTION]))]
    history += new_messages(model.resume(history, [call.approve() for call in pending_calls(history)]))
    decisions = [call.approve() for call in pending_calls(history)]
    assert model.resume(history, decisions).text.endswith("deleted /tmp/a")
    with pytest.raises(AlreadyResumedError):
        model.resume(history, decisions)
    calls = [key for key in taken if not key.startswith("decided.")]
    assert shed.deleted == ["/tmp/a"] and len(set(calls)) == len(calls) == 2


def test_calls_that_an_inner_run_leaves_to_its_caller() -> None:
    """A tool that is only declared on the inner model is answered at the top."""
    inner = ScriptedChatModel(tools=[Shed().delete], replies=answering(one_call("ask_user", text="Which?")), name="cleaner")
    declared = {
        "type": "function",
        "function": {"name": "ask_user", "description": "Ask.", "parameters": {"type": "object", "properties": {}}},
    }
    model = boss([inner.bind_tools([declared])])
    history = waiting(model)
    (call,) = pending_calls(history)
    assert (call.kind, call.path) == ("caller", ("cleaner",))
    with pytest.raises(ConfigurationError, match="only declared"):
        call.approve()
    with pytest.raises(ConfigurationError, match="no approve"):
        model.resume(history, [replace(call.respond("this"), action="approve", value=None)])
    assert model.resume(history, [call.respond("this one")]).text == "I heard: I heard: this one"


def test_an_executor_alone_has_the_same() -> None:
    """A loop of one's own stores the result, shows what waits, and executes the message again with the decisions."""
    shed = Shed()
    executor, asked = ToolExecutor([cleaner(shed)]), one_call("cleaner", question="Delete a.")
    asked.id = "asked"
    history = through_json([QUESTION, asked, *executor.execute_all(asked)])
    (call,) = pending_calls(history)
    assert call.path == ("cleaner",)
    assert executor.execute_all(asked, messages=history, decisions=[]) == []
    (result,) = executor.execute_all(asked, messages=history, decisions=[call.approve()])
    assert result.text == "I heard: deleted /tmp/a" and shed.deleted == ["/tmp/a"]


def test_events_show_the_path() -> None:
    """`CallsPending` of the outer run has the inner call, with the path."""
    told = [one for one in events(boss([cleaner(Shed())]).stream([QUESTION])) if isinstance(one, CallsPending)]
    assert [[call.path for call in one.calls] for one in told] == [[()], [("cleaner",)]]


def test_an_agent_around_keeps_the_conversation() -> None:
    """The outer agent's conversation has all that is needed to go on; the inner agent's own conversation is not touched."""
    shed = Shed()
    inner = Agent(cleaner(shed), history=[HumanMessage("Something else.")])
    agent = Agent(boss([inner]))
    result = agent.run("Clean up.")
    assert [call.path for call in pending_calls(result)] == [("cleaner",)]
    assert agent.run(resume=[call.approve() for call in pending_calls(agent.history)]).text.endswith("deleted /tmp/a")
    assert len(inner.history) == 1 and shed.deleted == ["/tmp/a"]


class Report(BaseModel):
    """What was done."""

    done: str


def test_structured_output_of_both_sides() -> None:
    """The inner agent's output is the result of the call, as JSON; an outer agent with a schema has no output while calls wait."""
    shed = Shed()
    inner = ScriptedChatModel(
        tools=[shed.delete],
        replies=lambda messages, **_: one_call("Report", done="all") if messages[-1].type == "tool" else one_call("delete", path="a"),
        requires_approval=True,
        name="cleaner",
    )
    asked = one_call("cleaner", question="Go.")
    model = ScriptedChatModel(
        tools=[Agent(inner, output=Report)],
        replies=lambda messages, **_: one_call("Report", **json.loads(messages[-1].text)) if messages[-1].type == "tool" else asked,
    )
    agent = Agent(model, output=Report)
    assert agent.run("Go.").output is None
    assert agent.run(resume=[call.approve() for call in pending_calls(agent.history)]).output == Report(done="all")


def test_what_waits_is_not_shared_with_equal_calls() -> None:
    """With a cache each of two equal calls has its own run, since what waits in one belongs to it."""
    shed = Shed()
    twice = AIMessage("", tool_calls=[{"name": "cleaner", "args": {"question": "Go."}, "id": str(number)} for number in range(2)])
    model = ScriptedChatModel(tools=[cleaner(shed)], replies=answering(twice), policies={"cleaner": ToolPolicy(cache=True, cache_key=dict)})
    history = waiting(model)
    calls = pending_calls(history)
    assert len({call.digest for call in calls}) == 2
    assert stop_reason(model.resume(history, [call.approve() for call in calls])) == "complete"
    assert shed.deleted == ["/tmp/a", "/tmp/a"]


def test_a_function_that_calls_a_model_does_not_wait() -> None:
    """Only what is given as a tool waits: a function of the user's own would run twice."""
    shed = Shed()
    inner = cleaner(shed)

    def ask(question: str) -> Any:
        """Ask."""
        return inner.invoke(question)

    answer = boss({"cleaner": ask}, approve=lambda call: call.approve()).invoke([QUESTION])
    assert stop_reason(answer) == "complete" and pending_calls(answer) == [] and "did not finish" in answer.text
    assert shed.deleted == []


def test_names_and_descriptions() -> None:
    """A tool has the name of its model, or the one that it is given; without one it is refused."""
    model = cleaner(Shed())
    assert [tool.name for tool in (model.as_tool(), model.bind(stop=["x"]).as_tool(), Agent(model).as_tool())] == ["cleaner"] * 3
    tool = Agent(model).as_tool("helper", "Helps.")
    assert (tool.name, tool.description, [*tool.args]) == ("helper", "Helps.", ["question"])
    assert [*ToolExecutor({"other": Agent(model)}).tools] == ["other"]
    for nameless in (ScriptedChatModel(), Agent(ScriptedChatModel())):
        with pytest.raises(ConfigurationError, match="needs a name"):
            ToolExecutor([nameless])


def test_the_tool_alone_is_a_tool() -> None:
    """Invoked by itself it returns what the run says; LangChain's own form, with a schema, stays LangChain's."""
    model = ScriptedChatModel(replies=["Hello."], name="greeter")
    assert model.as_tool().invoke({"question": "Hi."}) == "Hello."
    assert [*model.as_tool(Report, name="report").args] == ["done"]


def test_a_model_with_such_tools_travels() -> None:
    """It can be pickled, and goes on there."""
    model = pickle.loads(pickle.dumps(ScriptedChatModel(replies=["Hello."], name="outer", tools=[Agent(ScriptedChatModel(name="inner"))])))
    assert [name for name, _ in model._own_tools().objects] == ["inner"]
