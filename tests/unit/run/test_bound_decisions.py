"""What binds a decision to its call: changed histories, forged decisions, lost keys."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.load import dumps
from langchain_core.messages import AIMessage, BaseMessage, messages_from_dict, messages_to_dict

from langchain_autotools import ConfigurationError, Decision, ToolCallRecord, new_messages, pending_calls
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.testing import ScriptedChatModel
from tests.support.desk import QUESTION, SECRET, TURN, Desk, asked, asking, call


def changed(history: Sequence[BaseMessage], change: Callable[[AIMessage], Any]) -> list[BaseMessage]:
    """A history whose AI message somebody has changed."""
    copies = messages_from_dict(messages_to_dict(history))
    message = next(one for one in copies if isinstance(one, AIMessage))
    change(message)
    return copies


def _record(message: AIMessage) -> dict[str, Any]:
    record: dict[str, Any] = message.response_metadata[KEY]["calls"][0]["approval"]
    return record


CHANGES: dict[str, Callable[[AIMessage], Any]] = {
    "arguments": lambda message: message.tool_calls[0].update(args={"to": "Eve"}),
    "name": lambda message: message.tool_calls[0].update(name="look", args={"city": "Rome"}),
    "uuid": lambda message: _record(message).update(uuid="another"),
    "digest": lambda message: _record(message).update(digest="0" * 64),
    "kind": lambda message: _record(message).update(kind="queued"),
    "a kind that is none": lambda message: _record(message).update(kind={"approval": True}),
    "a record of something else": lambda message: message.response_metadata[KEY]["calls"][0].update(approval=[True]),
    "arguments that are no text": lambda message: message.response_metadata[KEY]["calls"][0].update(arguments={"to": "Eve"}, approval=None),
    "an id that is none": lambda message: message.response_metadata[KEY]["calls"][0].update(id=["1"]),
    "no record": lambda message: message.response_metadata.pop(KEY),
    "no digest": lambda message: _record(message).pop("digest"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_history_makes_an_approval_void(change: str) -> None:
    """Nothing runs, and the error says of which call."""
    desk = Desk()
    history, pending, _ = asked(desk.model(TURN, requires_approval=["send"]))
    desk.done.clear()
    with pytest.raises(ConfigurationError, match="'1'"):
        desk.model(requires_approval=["send"]).resume(changed(history, CHANGES[change]), [pending[0].approve()])
    assert desk.done == []


def test_a_client_cannot_make_an_approval_where_there_is_a_key() -> None:
    """A history with calls, records and decisions of its own."""
    client, desk = Desk(), Desk()
    history, pending, _ = asked(client.model(TURN, requires_approval=["send"]))
    server = desk.model(requires_approval=["send"], approval_key=SECRET)
    with pytest.raises(ConfigurationError, match="call '1' is not the call that was shown"):
        server.resume(history, [one.approve() for one in pending])
    assert desk.done == []


def test_a_decision_is_about_one_showing_of_a_call() -> None:
    """The same call in another conversation is another one."""
    desk = Desk()
    history, _, _ = asked(desk.model(TURN, requires_approval=["send"]))
    _, others, _ = asked(desk.model(TURN, requires_approval=["send"]))
    with pytest.raises(ConfigurationError, match="decision on call '1' is about another call"):
        desk.model(requires_approval=["send"]).resume(history, [others[0].approve()])


def test_decisions_about_other_calls_raise() -> None:
    """An id that nobody knows, a call that has its result, two decisions about one."""
    desk = Desk()
    model = desk.model(TURN, requires_approval=["send"])
    history, (one, other), _ = asked(model)
    for decisions, text in [
        ([Decision("9", "approve")], "about '9', but the calls that wait are '1', '3'"),
        ([Decision("2", "reject")], "about '2', but there is a result already"),
        ([one.approve(), one.reject()], "two decisions about call '1'"),
        ([{"id": "1"}], "a decision is a dict with id, action"),
    ]:
        with pytest.raises(ConfigurationError, match=text):
            model.resume(history, decisions)  # type: ignore[arg-type]
    history += new_messages(model.resume(history, [one.approve()]))
    with pytest.raises(ConfigurationError, match="about '1', but there is a result already"):
        model.resume(history, [one.approve(), other.approve()])
    assert desk.done == ["look Paris", "send Anna 1"]


def test_edited_arguments_are_checked_before_anything_runs() -> None:
    """The approved call beside it does not run either."""
    desk = Desk()
    model = desk.model(TURN, requires_approval=["send"])
    history, (one, other), _ = asked(model)
    desk.done.clear()
    with pytest.raises(ConfigurationError, match="edited arguments of call '3' cannot be used"):
        model.resume(history, [one.approve(), other.edit({"amount": 3})])
    assert desk.done == []


def sends(record: ToolCallRecord) -> bool:
    """A rule that can be pickled."""
    return record.name == "send"


def look(city: str) -> str:
    """Look."""
    return f"{city}: 21"


def test_a_copy_without_the_key_refuses_to_run_and_to_resume() -> None:
    """By name, until it has the key again; the key is in no pickle, repr, or dump."""
    model = ScriptedChatModel(tools=[look], replies=["Done."] * 2, requires_approval=True, approval_key=SECRET)
    data = pickle.dumps(model)
    assert SECRET.encode() not in data
    assert SECRET not in repr(model) + dumps(model)
    lost = pickle.loads(data)
    history = [QUESTION, asking(call("look", "1", city="Rome"))]
    for go in (lambda: lost.invoke([QUESTION]), lambda: lost.resume(history, []), lambda: lost.resume(history, {"1": False})):
        with pytest.raises(ConfigurationError, match="approval_key is in no pickle"):
            go()
    free = lost.model_copy(update={"requires_approval": None})
    assert free.invoke([QUESTION]).text == "Done."  # nobody is asked about anything
    again = lost.model_copy(update={"approval_key": model.approval_key})
    assert again.invoke([QUESTION]).text == "Done."


@pytest.mark.parametrize("name", ["requires_approval", "approve"])
def test_a_model_with_a_rule_that_cannot_travel_is_not_pickled(name: str) -> None:
    """A copy without it would let everything run; a function of a module travels."""
    with pytest.raises(pickle.PicklingError, match=name):
        pickle.dumps(ScriptedChatModel(tools=[look], replies=[], **{name: lambda record: True}))
    model = pickle.loads(pickle.dumps(ScriptedChatModel(tools=[look], replies=[], requires_approval=sends)))
    assert model.requires_approval is sends


def test_a_call_that_a_client_queued_does_not_run() -> None:
    """A record of its own making, on a call that was never made."""
    desk = Desk()
    fields: dict[str, Any] = {"requires_approval": ["send"], "parallel": False, "approval_key": SECRET}
    history, pending, _ = asked(desk.model(TURN, **fields))

    def add(message: AIMessage) -> None:
        entries = message.response_metadata[KEY]["calls"]
        message.tool_calls[1]["args"] = {"city": "Rome"}
        entries[1]["arguments"] = '{"city": "Rome"}'

    with pytest.raises(ConfigurationError, match="call '2' is not the call that was shown"):
        desk.model(**fields).resume(changed(history, add), [pending[0].reject()])
    assert desk.done == []


@pytest.mark.parametrize("kind", ["approval", "caller"])
def test_what_nobody_has_decided_waits_also_where_a_run_may_not_call_it(kind: str) -> None:
    """A run that is restricted makes no request, and takes nobody's decision away."""
    desk = Desk()
    rule: dict[str, Any] = {"requires_approval": ["send"]} if kind == "approval" else {}
    model: Any = desk.model(**rule)
    history = [QUESTION, *asked(desk.model(TURN, requires_approval=["send"]))[0][1:]] if rule else [QUESTION, TURN]
    run = (model if rule else model.bind_tools([desk.send])).invoke(history, resume=[], tool_choice="none")
    assert "send" in {one.name for one in pending_calls(run)}
    assert model.requests == []
