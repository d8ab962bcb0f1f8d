"""Calls behind one of a model or an agent whose run waits, where calls run one after another; and models that do not wait."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from langchain_autotools import new_messages, pending_calls, results_of, stop_reason
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.ways import WAYS, run
from tests.unit.run.test_agents_as_tools import QUESTION, Shed, answering, boss, cleaner, one_call, waiting


@pytest.mark.parametrize("way", WAYS)
def test_calls_behind_one_that_waits_do_not_run(way: str) -> None:
    """With `parallel=False`: those before it have run; those behind it are answered, and the model may make them again."""
    shed, ran = Shed(), list[str]()

    def note(text: str) -> str:
        """Note."""
        ran.append(text)
        return "noted"

    calls = AIMessage("", tool_calls=[])
    for number, (name, args) in enumerate([("note", {"text": "a"}), ("cleaner", {"question": "?"}), ("note", {"text": "b"})]):
        calls.tool_calls.append({"name": name, "args": args, "id": f"call_{number}"})
    model = ScriptedChatModel(tools=[cleaner(shed), note], replies=[calls, one_call("note", "again", text="c"), "Done."], parallel=False)
    history = waiting(model, way)
    assert ran == ["a"] and shed.deleted == []
    assert [result.status for result in history if isinstance(result, ToolMessage)] == ["success", "error", "error"]
    done = run(way, model, history, resume=[call.approve() for call in pending_calls(history)])
    assert done.message is not None and done.message.text == "Done." and ran == ["a", "c"] and shed.deleted == ["/tmp/a"]


def test_what_was_decided_behind_one_that_waits_again_goes_on_waiting() -> None:
    """The approved call behind it does not run before it, and needs its decision again; then each runs once."""
    shed, ran = Shed(), list[str]()

    def pay(who: str) -> str:
        """Pay."""
        ran.append(f"{who} after {len(shed.deleted)}")
        return "paid"

    both = AIMessage("", tool_calls=[{"name": "delete", "args": {"path": path}, "id": path} for path in ("x", "y")])
    calls: Any = [{"name": "cleaner", "args": {"question": "?"}, "id": "ask"}, {"name": "pay", "args": {"who": "Anna"}, "id": "pay"}]
    asked = AIMessage("", tool_calls=calls)
    model = ScriptedChatModel(
        tools=[cleaner(shed, replies=answering(both)), pay], replies=[asked, "Done."], requires_approval=["pay"], parallel=False
    )
    waits = model.invoke([QUESTION])
    history = [QUESTION, *new_messages(waits)]
    by_id = {call.id: call for call in pending_calls(waits)}
    assert by_id.keys() == {"pay", "x", "y"}
    waits = model.resume(history, [by_id["x"].approve(), by_id["pay"].approve()])
    history += new_messages(waits)
    assert (ran, shed.deleted, stop_reason(waits)) == ([], ["x"], "calls_pending")
    assert {call.id: call.kind for call in pending_calls(waits)} == {"pay": "approval", "y": "approval"}
    done = model.resume(history, [call.approve() for call in pending_calls(waits)])
    assert (ran, shed.deleted, done.text) == (["Anna after 2"], ["x", "y"], "Done.")


def test_a_model_without_tools_does_not_wait() -> None:
    """It makes a reply and no run: the result names the call of a tool that was only declared on it."""
    function = {"name": "ask_user", "description": "Ask.", "parameters": {"type": "object", "properties": {}}}
    inner = ScriptedChatModel(replies=answering(one_call("ask_user")), name="cleaner")
    answer = boss([inner.bind_tools([{"type": "function", "function": function}])]).invoke([QUESTION])
    assert stop_reason(answer) == "complete" and pending_calls(answer) == [] and "ask_user" in results_of(answer)[0].text


def test_an_edit_that_has_no_effect_is_not_shown() -> None:
    """An edited call behind one that waits goes on waiting as the model wrote it, and that is what runs once it is approved."""
    paid: list[str] = []

    def pay(who: str) -> str:
        """Pay."""
        paid.append(who)
        return "paid"

    calls: Any = [{"name": "pay", "args": {"who": who}, "id": who} for who in ("Anna", "Ben")]
    model = ScriptedChatModel(tools=[pay], replies=[AIMessage("", tool_calls=calls), "Done."], requires_approval=True, parallel=False)
    history = [QUESTION, *new_messages(model.invoke([QUESTION]))]
    waits = model.resume(history, [pending_calls(history)[1].edit({"who": "Eve"})])
    assert [call.args for call in pending_calls(waits)] == [{"who": "Anna"}, {"who": "Ben"}]
    model.resume(history, [call.approve() for call in pending_calls(waits)])
    assert paid == ["Anna", "Ben"]


@pytest.mark.parametrize("way", WAYS)
def test_a_model_inside_a_bundle_cannot_wait(way: str) -> None:
    """Its part of the result says so, and by whom to call it; nothing waits, and the calls beside it have their results."""
    shed = Shed()
    uses = [{"recipient_name": "cleaner", "parameters": {"question": "?"}}, {"recipient_name": "note", "parameters": {"text": "a"}}]

    def note(text: str) -> str:
        """Note."""
        return f"noted {text}"

    bundle = one_call("multi_tool_use.parallel", tool_uses=uses)
    ran = run(way, ScriptedChatModel(tools=[cleaner(shed), note], replies=[bundle, "Done."]), [QUESTION])
    assert ran.message is not None and stop_reason(ran.message) == "complete" and pending_calls(ran.message) == []
    (text,) = [result.text for result in ran.new if isinstance(result, ToolMessage)]
    assert "'cleaner' cannot wait for a decision inside another call" in text and "noted a" in text
    assert shed.deleted == []
