"""Approvals: the rule, and an executor by itself."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool
from pydantic import SecretStr

from langchain_autotools import ConfigurationError, Decision, ToolCallRecord, ToolExecutor
from tests.support.desk import Desk, asking, call

KEY = "a key of the server's"
ANSWER = asking(call("look", "1", city="Paris"), call("send", "2", to="Anna"), call("look", "3", city="Rome"))


def contents(results: Sequence[BaseMessage]) -> list[Any]:
    """What results say."""
    return [result.content for result in results]


# ---------------------------------------------------------------------------------------------- the rule


@pytest.mark.parametrize(
    "options",
    [
        {"requires_approval": ["sned"]},
        {"requires_approval": "send"},
        {"requires_approval": {"send": False}},
        {"requires_approval": [1]},
        {"requires_approval": 3},
        {"approve": "yes"},
        {"approval_key": ""},
        {"approval_key": 3},
    ],
)
def test_a_rule_that_cannot_work_is_refused_at_once(options: dict[str, Any]) -> None:
    """A name that is misspelt would let the tool run."""
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        Desk().executor(**options)


def test_an_asynchronous_rule_is_refused_at_once() -> None:
    """What it says would be true of every call."""

    async def rule(record: ToolCallRecord) -> bool:
        return False

    with pytest.raises(ConfigurationError, match="asynchronous"):
        Desk().executor(requires_approval=rule)


@pytest.mark.parametrize("rule", [["send"], {"send"}, True, lambda record: record.name == "send"])
@pytest.mark.parametrize("spelling", ["send", "functions.send", "Send", " send:0"])
def test_the_rule_is_asked_of_the_tool_that_is_meant(rule: Any, spelling: str) -> None:
    """Under every spelling of its name."""
    desk = Desk()
    executor = desk.executor(requires_approval=rule)
    answer = asking(call(spelling, "2", to="Anna"))
    assert executor.execute_all(answer) == []
    assert [(one.id, one.name, one.kind) for one in executor.pending_calls(answer)] == [("2", "send", "approval")]
    assert desk.done == []


def test_a_bundle_with_one_such_call_waits_whole() -> None:
    """As one pending call, with everything that it holds; approved, all of it runs."""
    desk = Desk()
    executor = desk.executor(requires_approval=["send"])
    uses = [{"recipient_name": "functions.look", "parameters": {"city": "Rome"}}, {"recipient_name": "send", "parameters": {"to": "Anna"}}]
    answer = asking(call("multi_tool_use.parallel", "1", tool_uses=uses))
    (pending,) = executor.pending_calls(answer)
    assert (pending.name, pending.args) == ("multi_tool_use.parallel", {"tool_uses": uses})
    assert (executor.execute_all(answer), desk.done) == ([], [])
    (result,) = executor.execute_all(answer, decisions=[pending.approve()])
    assert desk.done == ["look Rome", "send Anna 1"]
    assert [one["status"] for one in json.loads(str(result.content))] == ["success", "success"]


def test_calls_that_cannot_run_are_answered_and_wait_for_nobody() -> None:
    """Unknown tools, arguments that are none, and calls that a restriction forbids."""
    executor = Desk().executor(requires_approval=True)
    broken = {"name": "send", "args": "{", "id": "2"}
    results = executor.execute_all([call("sleep", "1"), broken, call("send", "3", to="Anna")], only=["look"])
    said = [json.loads(text)["error"] for text in contents(results)]
    assert [text[:15] for text in said] == ["'sleep' is not ", "the arguments a", "'send' is not a"]


@pytest.mark.parametrize("answer", [None, 1, "yes", []])
def test_a_rule_that_says_neither_ends_everything(answer: Any) -> None:
    """Nothing runs."""
    desk = Desk()
    with pytest.raises(ConfigurationError, match="True or False of a call"):
        desk.executor(requires_approval=lambda record: answer).execute_all(ANSWER)
    assert desk.done == []


# ---------------------------------------------------------------------------------------------- an executor by itself


def test_calls_that_wait_are_left_out_of_the_results() -> None:
    """The others run; `execute` has nothing to return."""
    desk = Desk()
    executor = desk.executor(requires_approval=["send"])
    assert [result.tool_call_id for result in executor.execute_all(ANSWER)] == ["1", "3"]
    with pytest.raises(ConfigurationError, match="waits for approval"):
        executor.execute(call("send", "2", to="Anna"))
    assert sorted(desk.done) == ["look Paris", "look Rome"]


async def test_decided_calls_run_with_the_others_in_call_order() -> None:
    """Approved, edited, refused and answered by hand, synchronously and not; decisions may be their dicts."""
    desk = Desk()
    executor = desk.executor(requires_approval=["send"])
    answer = asking(call("look", "0", city="Paris"), *(call("send", str(number), to="Anna", amount=number) for number in range(1, 5)))
    one, two, three, four = executor.pending_calls(answer)
    decisions = [one.approve(), two.edit({"to": "Ben"}).to_dict(), three.reject("no"), four.respond({"sent": True})]
    expected = [
        "Paris: 21",
        "Sent to Anna.",
        'The arguments of this call were changed before it ran. It ran with: {"to": "Ben"}\n\nSent to Ben.',
        '{"error": "no"}',
        '{"sent": true}',
    ]
    assert contents(executor.execute_all(answer, decisions=decisions)) == expected
    assert contents(await executor.aexecute_all(answer, decisions=decisions)) == expected
    assert sorted(desk.done) == sorted(["look Paris", "send Anna 1", "send Ben 1"] * 2)


def test_an_undecided_call_still_waits() -> None:
    """The others have their results."""
    executor = Desk().executor(requires_approval=["send"])
    answer = asking(call("send", "1", to="Anna"), call("send", "2", to="Ben"))
    _, ben = executor.pending_calls(answer)
    assert contents(executor.execute_all(answer, decisions=[ben.approve()])) == ["Sent to Ben."]


def test_calls_that_have_results_do_not_run_again() -> None:
    """The conversation says which; a decision about one of them is an error."""
    desk = Desk()
    executor = desk.executor(requires_approval=["send"])
    (pending,) = executor.pending_calls(ANSWER)
    history = [HumanMessage("Go on."), ANSWER, *executor.execute_all(ANSWER)]
    results = executor.execute_all(ANSWER, messages=history, decisions=[pending.approve()])
    assert contents(results) == ["Sent to Anna."]
    assert sorted(desk.done) == ["look Paris", "look Rome", "send Anna 1"]
    with pytest.raises(ConfigurationError, match="about '2', but there is a result already"):
        executor.execute_all(ANSWER, messages=[*history, *results], decisions=[pending.approve()])


@pytest.mark.parametrize("key", [None, KEY, SecretStr(KEY)])
def test_a_decision_holds_for_the_call_that_was_shown(key: Any) -> None:
    """Another id, name or argument, or another digest, and nothing runs."""
    desk = Desk()
    executor = desk.executor(requires_approval=["send"], approval_key=key)
    answer = asking(call("send", "1", to="Anna"))
    (pending,) = executor.pending_calls(answer)
    yes = pending.approve()
    wrong = [
        (asking(call("send", "1", to="Eve")), yes, "about another call"),
        (asking(call("send", "9", to="Anna")), yes, "about '1', but the calls that wait are '9'"),
        (answer, Decision("1", "approve", None, pending.uuid, "0" * 64), "about another call"),
        (answer, Decision("1", "approve", None, "another", pending.digest), "about another call"),
        (answer, Decision("1", "approve"), "about another call"),
    ]
    for message, decision, text in wrong:
        with pytest.raises(ConfigurationError, match=text):
            executor.execute_all(message, decisions=[decision])
    with pytest.raises(ConfigurationError, match="two decisions about call '1'"):
        executor.execute_all(answer, decisions=[yes, pending.reject()])
    for bad in ({"1": True}, True, "1", [True]):
        with pytest.raises(ConfigurationError, match=r"decision"):
            executor.execute_all(answer, decisions=bad)  # type: ignore[arg-type]
    assert desk.done == []
    assert contents(executor.execute_all(answer, decisions=[yes])) == ["Sent to Anna."]


def test_only_who_has_the_key_can_make_a_digest() -> None:
    """The digest of a pending call is not what anybody can work out."""
    desk = Desk()
    answer = asking(call("send", "1", to="Anna"))
    (forged,) = desk.executor(requires_approval=["send"]).pending_calls(answer)
    with pytest.raises(ConfigurationError, match="about another call"):
        desk.executor(requires_approval=["send"], approval_key=KEY).execute_all(answer, decisions=[forged.approve()])
    assert desk.done == []


@pytest.mark.parametrize("digest", ["é", "\ud800", ""])
def test_a_digest_that_is_none_is_refused(digest: str) -> None:
    """Whatever text it is."""
    executor = Desk().executor(requires_approval=["send"])
    answer = asking(call("send", "1", to="Anna"))
    with pytest.raises(ConfigurationError, match="about another call"):
        executor.execute_all(answer, decisions=[Decision("1", "approve", None, "u", digest)])
    recorded = executor.approvals.recorded(answer, [ToolCallRecord("1", "send", "", {"to": "Anna"}, waits="approval")])  # type: ignore[union-attr]
    recorded.response_metadata["autotools"]["calls"][0]["approval"]["digest"] = digest
    with pytest.raises(ConfigurationError, match="not the call that was shown"):
        executor.execute_all(recorded, decisions=[Decision("1", "approve", None, "u", digest)])


@pytest.mark.parametrize("args", [{}, {"to": "Ben", "amount": "many"}, {"to": "Ben", "what_for": "tea"}])
def test_edited_arguments_are_those_that_the_tool_takes(args: dict[str, Any]) -> None:
    """Else nothing runs, and whoever decided is told."""
    desk = Desk()
    executor = desk.executor(requires_approval=["send"])
    (pending,) = executor.pending_calls(ANSWER)
    with pytest.raises(ConfigurationError, match="edited arguments of call '2' cannot be used: .*(to|amount|what_for)"):
        list(executor.stream(ANSWER, decisions=[pending.edit(args)]))
    assert desk.done == []


@pytest.mark.parametrize(("args", "text"), [({}, "'to' is missing"), ({"to": "Ben", "cc": "Eve"}, "'cc' is no argument")])
def test_a_tool_with_a_json_schema_says_what_it_takes_too(args: dict[str, Any], text: str) -> None:
    """Tools of MCP servers have no class for their arguments."""
    schema = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
    post = StructuredTool(name="send", description="Send.", args_schema=schema, func=lambda to: f"Sent to {to}.")
    executor = ToolExecutor([post], requires_approval=True)
    answer = asking(call("send", "1", to="Anna"))
    (pending,) = executor.pending_calls(answer)
    with pytest.raises(ConfigurationError, match=text):
        executor.execute_all(answer, decisions=[pending.edit(args)])
    assert "Sent to Ben." in str(contents(executor.execute_all(answer, decisions=[pending.edit({"to": "Ben"})]))[0])


def test_an_edited_bundle_is_one_still() -> None:
    """Each call inside it is one of a tool, with arguments that it takes."""
    desk = Desk()
    executor = desk.executor(requires_approval=["send"])
    answer = asking(call("parallel", "1", tool_uses=[{"recipient_name": "send", "parameters": {"to": "Anna"}}]))
    (pending,) = executor.pending_calls(answer)
    for args in ({"tool_uses": []}, {"tool_uses": [{"recipient_name": "sleep", "parameters": {}}]}, {"to": "Eve"}):
        with pytest.raises(ConfigurationError, match="'parallel' is no tool"):
            executor.execute_all(answer, decisions=[pending.edit(args)])
    with pytest.raises(ConfigurationError, match="cannot be used"):
        executor.execute_all(answer, decisions=[pending.edit({"tool_uses": [{"recipient_name": "send", "parameters": {}}]})])
    executor.execute_all(answer, decisions=[pending.edit({"tool_uses": [{"recipient_name": "send", "parameters": {"to": "Ben"}}]})])
    assert desk.done == ["send Ben 1"]


def test_one_after_another_calls_wait_for_those_before_them() -> None:
    """They are shown as queued, take no approval, and run once what they wait for is decided; a refused one before them is enough."""
    desk = Desk()
    executor = desk.executor(requires_approval=["send"], parallel=False)
    answer = asking(
        call("look", "1", city="Paris"), call("send", "2", to="Anna"), call("look", "3", city="Rome"), call("send", "4", to="Ben")
    )
    assert [result.tool_call_id for result in executor.execute_all(answer)] == ["1"]
    pending = executor.pending_calls(answer)
    assert [(one.id, one.kind) for one in pending] == [("2", "approval"), ("3", "queued"), ("4", "approval")]
    history = [answer, ToolMessage("21", tool_call_id="1")]
    done = [result.tool_call_id for result in executor.execute_all(answer, messages=history, decisions=[pending[2].approve()])]
    assert done == []
    done = [result.tool_call_id for result in executor.execute_all(answer, messages=history, decisions=[pending[0].reject()])]
    assert done == ["2", "3"]
    done = [
        result.tool_call_id
        for result in executor.execute_all(answer, messages=history, decisions=[pending[0].approve(), pending[1].reject()])
    ]
    assert done == ["2", "3"]
    assert desk.done == ["look Paris", "look Rome", "send Anna 1"]


# ---------------------------------------------------------------------------------------------- copies


def _sends(record: ToolCallRecord) -> bool:
    return record.name == "send"


class Shelf(Desk):
    """A desk that can be pickled."""


def test_a_copy_keeps_the_rule_and_not_the_key() -> None:
    """Pickled, it must be given the key again before it shows or decides anything; copied, it has it."""
    executor = Shelf().executor(requires_approval=_sends, approval_key=KEY)
    data = pickle.dumps(executor)
    assert KEY.encode() not in data
    for duplicate in (copy.copy(executor), copy.deepcopy(executor)):
        assert duplicate.approvals == executor.approvals
    lost = pickle.loads(data)
    assert lost.execute_all(asking(call("send", "2", to="Anna"))) == []
    with pytest.raises(ConfigurationError, match="approval_key is in no pickle"):
        lost.pending_calls(ANSWER)
    (pending,) = executor.pending_calls(asking(call("send", "2", to="Anna")))
    with pytest.raises(ConfigurationError, match="approval_key is in no pickle"):
        lost.execute_all(asking(call("send", "2", to="Anna")), decisions=[pending.approve()])


@pytest.mark.parametrize("option", ["requires_approval", "approve"])
def test_a_rule_that_cannot_travel_fails_pickling(option: str) -> None:
    """By name; copies within the process are fine."""
    lock = threading.Lock()
    executor = Shelf().executor(**{option: lambda record: bool(lock)})
    assert copy.copy(executor).approvals is executor.approvals
    with pytest.raises(pickle.PicklingError, match=option):
        pickle.dumps(executor)


def test_no_repr_shows_the_key() -> None:
    """Neither the executor's nor that of what it keeps."""
    executor = Desk().executor(requires_approval=True, approval_key=KEY)
    assert KEY not in repr(executor) + repr(executor.approvals)
