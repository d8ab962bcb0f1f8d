"""`approve=`: somebody decides at once, asked in call order, one at a time."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from functools import partial
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from langchain_autotools import ConfigurationError, Decision, PendingCall, ToolExecutor, ToolPolicy, pending_calls
from langchain_autotools.executor.pending import RECORD
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.ways import WAYS, run
from tests.support.at_once import at_once, with_time_for_it
from tests.support.desk import QUESTION, TURN, Desk, asking, call, reason

RULE: dict[str, Any] = {"requires_approval": ["send"]}


class Human:
    """Decides as told, and notes what was asked, in which thread, and whether somebody else was asked at the time."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.threads: set[int] = set()
        self.at_once = 0
        self._busy = threading.Lock()

    def __call__(self, pending: PendingCall) -> Any:
        """Decide."""
        if not self._busy.acquire(blocking=False):
            self.at_once += 1
        self.asked.append(pending.id)
        self.threads.add(threading.get_ident())
        answer = self.answers.get(f"call_{pending.id}", PendingCall.approve)
        self._busy.release()
        return answer(pending) if callable(answer) else answer

    async def later(self, pending: PendingCall) -> Any:
        """Decide, asynchronously."""
        await asyncio.sleep(0)
        return self(pending)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_somebody_decides_at_once(way: str, asynchronous: bool) -> None:
    """The run goes on with the results, in call order; each call is asked about once."""
    desk, human = Desk(), Human(call_1=lambda one: one.edit({"to": "Eve"}), call_3=lambda one: one.reject("Not Ben."))
    ran = run(way, desk.model(TURN, **RULE, approve=human.later if asynchronous else human), [QUESTION])
    assert reason(ran) == "complete"
    assert (human.asked, human.at_once) == (["1", "3"], 0)
    assert sorted(desk.done) == ["look Paris", "send Eve 1"]
    said = 'The arguments of this call were changed before it ran. It ran with: {"to": "Eve"}\n\nSent to Eve.'
    assert [message.text for message in ran.new[1:]] == [said, "Paris: 21", '{"error": "Not Ben."}', "Done."]


@pytest.mark.parametrize("way", WAYS)
def test_without_a_rule_every_call_is_asked_about(way: str) -> None:
    """As a keyword of the call here; calls that cannot run are not."""
    desk, human = Desk(), Human(call_2=lambda one: one.respond("Paris: 30"))
    turn = asking(*TURN.tool_calls, call("sleep", "4"))  # type: ignore[arg-type]
    ran = run(way, desk.model(turn), [QUESTION], approve=human)
    assert (human.asked, reason(ran)) == (["1", "2", "3"], "complete")
    assert sorted(desk.done) == ["send Anna 1", "send Ben 1"]
    assert ran.new[2].text == "Paris: 30"


@pytest.mark.parametrize("way", WAYS)
def test_none_leaves_a_call_pending(way: str) -> None:
    """The others run; another process decides later."""
    desk = Desk()
    ran = run(way, desk.model(TURN, **RULE, approve=Human(call_1=None)), [QUESTION])
    assert reason(ran) == "calls_pending"
    assert sorted(desk.done) == ["look Paris", "send Ben 1"]
    history = [QUESTION, *ran.new]
    assert [message.tool_call_id for message in history if isinstance(message, ToolMessage)] == ["2", "3"]
    (pending,) = pending_calls(history)
    second = run(way, desk.model(**RULE), history, resume=[pending.approve()])
    assert (reason(second), desk.done[-1]) == ("complete", "send Anna 1")


@pytest.mark.parametrize("way", WAYS)
def test_a_resumed_run_asks_about_what_nobody_decided(way: str) -> None:
    """And about nothing else."""
    desk = Desk()
    first = run(way, desk.model(TURN, **RULE), [QUESTION])
    one, _ = pending_calls(history := [QUESTION, *first.new])
    human = Human()
    second = run(way, desk.model(**RULE, approve=human), history, resume=[one.reject()])
    assert (human.asked, reason(second)) == (["3"], "complete")
    assert desk.done == ["look Paris", "send Ben 1"]


@pytest.mark.parametrize("way", WAYS)
def test_one_after_another_a_call_left_pending_holds_up_those_behind_it(way: str) -> None:
    """They are not even asked about; after an approval they run."""
    desk, human = Desk(), Human(call_1=None)
    ran = run(way, desk.model(TURN, **RULE, approve=human, parallel=False), [QUESTION])
    assert (human.asked, desk.done, reason(ran)) == (["1"], [], "calls_pending")
    assert [(one.id, one.kind) for one in pending_calls([QUESTION, *ran.new])] == [("1", "approval"), ("2", "queued"), ("3", "approval")]
    ran = run(way, desk.model(TURN, **RULE, approve=Human(), parallel=False), [QUESTION])
    assert (desk.done, reason(ran)) == (["send Anna 1", "look Paris", "send Ben 1"], "complete")


def _raises(pending: PendingCall) -> Any:
    raise RuntimeError("nobody is here")


WRONG = {
    "True": (lambda one: True, "must return what a method of PendingCall returns, or None, not bool"),
    "a text": (lambda one: "yes", "not str"),
    "a dict": (lambda one: one.approve().to_dict(), "not dict"),
    "another call": (lambda one: Decision("9", "approve", None, one.uuid, one.digest), "decided about another one"),
    "nothing that binds": (lambda one: Decision(one.id, "approve"), "decided about another one"),
    "what it cannot take": (lambda one: one.edit({"amount": 1}), "edited arguments of call '3' cannot be used"),
    "an error": (_raises, "nobody is here"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrong", WRONG)
def test_anything_else_ends_the_run_with_nothing_run(way: str, wrong: str) -> None:
    """Also what was approved before: nothing of the turn has begun. Each call has an answer."""
    answer, text = WRONG[wrong]
    desk = Desk()
    ran = run(way, desk.model(TURN, **RULE, approve=Human(call_3=answer)), [QUESTION])
    assert isinstance(ran.error, RuntimeError if wrong == "an error" else ConfigurationError)
    assert text in str(ran.error)
    assert desk.done == []
    assert [type(message) for message in ran.new] == [AIMessage, ToolMessage, ToolMessage, ToolMessage]


def test_the_deadline_leaves_calls_pending() -> None:
    """Whoever is being asked is waited for no longer, and nobody else is asked."""
    cases = [(way, asynchronous) for way in WAYS for asynchronous in (False, True)]
    with_time_for_it(
        lambda seconds: at_once(
            {f"{way} {asynchronous}": partial(leaves_calls_pending, way, asynchronous, seconds) for way, asynchronous in cases}
        ),
        0.8,
        3,
    )


def leaves_calls_pending(way: str, asynchronous: bool, seconds: float) -> None:
    """A run whose deadline comes while somebody is asked."""
    desk, asked, go = Desk(), [], threading.Event()

    def slow(pending: PendingCall) -> Decision:
        asked.append(pending.id)
        go.wait(30)
        return pending.approve()

    async def aslow(pending: PendingCall) -> Decision:
        asked.append(pending.id)
        await asyncio.sleep(30)
        return pending.approve()

    try:
        ran = run(way, desk.model(TURN, **RULE, approve=aslow if asynchronous else slow, deadline=seconds), [QUESTION])
    finally:
        go.set()
    assert (asked, reason(ran)) == (["1"], "calls_pending")
    assert [one.id for one in pending_calls([QUESTION, *ran.new])] == ["1", "3"]
    assert [message.type for message in ran.new] == ["ai", "tool"]


@pytest.mark.parametrize("way", WAYS)
def test_a_cancelled_run_leaves_calls_pending(way: str) -> None:
    """Cancelled while somebody is asked."""
    desk, cancel, go = Desk(), threading.Event(), threading.Event()

    def slow(pending: PendingCall) -> Decision:
        cancel.set()
        go.wait(30)
        return pending.approve()

    try:
        ran = run(way, desk.model(TURN, **RULE, approve=slow), [QUESTION], cancel=cancel)
    finally:
        go.set()
    assert reason(ran) == "cancelled"
    assert [one.id for one in pending_calls([QUESTION, *ran.new])] == ["1", "3"]
    assert desk.done == []


@pytest.mark.parametrize("way", WAYS)
def test_the_time_of_a_tool_does_not_run_while_somebody_is_asked(way: str) -> None:
    """Whoever takes longer than the tool may take has not used up its time."""
    desk = Desk()

    def slow(pending: PendingCall) -> Decision:
        time.sleep(0.3)
        return pending.approve()

    ran = run(
        way, desk.model(asking(call("send", "1", to="Anna")), **RULE, approve=slow, default_policy=ToolPolicy(timeout=0.25)), [QUESTION]
    )
    assert (desk.done, reason(ran)) == (["send Anna 1"], "complete")


def test_who_decides_may_wait_in_a_thread_while_the_loop_goes_on() -> None:
    """A synchronous function does not hold up an event loop; a synchronous run without an end asks in the caller's own thread."""
    human = Human()

    async def go() -> None:
        await Desk().model(TURN, **RULE, approve=human).ainvoke([QUESTION])

    asyncio.run(go())
    assert threading.get_ident() not in human.threads
    human = Human()
    Desk().model(TURN, **RULE, approve=human).invoke([QUESTION])
    assert human.threads == {threading.get_ident()}


@pytest.mark.further
def test_a_model_that_has_one_can_be_dumped() -> None:
    """As JSON: the function is left out."""
    model = ScriptedChatModel(replies=[], approve=PendingCall.approve)
    assert "approve" not in json.loads(model.model_dump_json())


def test_the_calls_choice_goes_before_the_executors_and_the_models() -> None:
    """One of them is asked."""
    field, own, said = Human(), Human(), Human()
    Desk().model(TURN, executor={"approve": own}, approve=field).invoke([QUESTION], approve=said)
    Desk().model(TURN, executor={"approve": own}, approve=field).invoke([QUESTION])
    Desk().model(TURN, approve=field).invoke([QUESTION])
    assert (len(said.asked), len(own.asked), len(field.asked)) == (3, 3, 3)


async def test_an_executor_by_itself_asks_too() -> None:
    """Before anything runs; what stays pending is left out of the results."""
    desk, human = Desk(), Human(call_1=None)
    executor = ToolExecutor([desk.look, desk.send], approve=human, requires_approval=["send"])
    assert [result.tool_call_id for result in executor.execute_all(TURN)] == ["2", "3"]
    assert [result.tool_call_id for result in await executor.aexecute_all(TURN)] == ["2", "3"]
    assert human.asked == ["1", "3"] * 2


def test_limits_hold_for_calls_that_are_asked_about() -> None:
    """Nobody is asked about one that the limit forbids."""
    desk, human = Desk(), Human()
    ran = run("invoke", desk.model(TURN, approve=human, max_tool_calls=1), [QUESTION])
    assert (human.asked, desk.done, reason(ran)) == (["1"], ["send Anna 1"], "max_tool_calls")


@pytest.mark.parametrize("way", WAYS)
def test_an_edited_bundle_stays_within_the_limit(way: str) -> None:
    """More calls than could run of the one that the model made are answered as not run, also where an edit adds them."""

    def use(to: str) -> dict[str, Any]:
        return {"recipient_name": "send", "parameters": {"to": to}}

    for written, limit, sent in ((["Anna"], 1, 1), (["Anna", "Ben", "Eve"], 2, 2)):
        desk, human = Desk(), Human(call_1=lambda one: one.edit({"tool_uses": [use("Ida"), use("Jan"), use("Kim")]}))
        turn = asking(call("multi_tool_use.parallel", "1", tool_uses=[use(to) for to in written]))
        ran = run(way, desk.model(turn, approve=human, max_tool_calls=limit), [QUESTION])
        assert desk.done == [f"send {to} 1" for to in ("Ida", "Jan")][:sent]
        assert "bundles more calls than could run" in ran.new[1].text


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("first", [PendingCall.approve, None])
def test_what_was_decided_before_holds_behind_a_call_that_is_asked_about(way: str, first: Any) -> None:
    """It is not asked about again: it runs, or, if the call before it still waits, stays pending."""
    desk = Desk()
    history = [QUESTION, *run(way, desk.model(TURN, **RULE, parallel=False), [QUESTION]).new]
    third = pending_calls(history)[2]
    human = Human(call_1=first)
    ran = run(way, desk.model(**RULE, parallel=False, approve=human), history, resume=[third.edit({"to": "Eve"})])
    assert human.asked == ["1"]
    assert desk.done == (["send Anna 1", "look Paris", "send Eve 1"] if first else [])
    assert [one.id for one in pending_calls([*history, *ran.new])] == ([] if first else ["1", "2", "3"])


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("end", ["deadline", "cancel"])
def test_an_end_while_somebody_is_asked_leaves_the_calls_of_an_executor_pending(end: str, asynchronous: bool) -> None:
    """Nothing runs, also not what was approved after it; the same calls can be decided later."""
    desk, cancel, go = Desk(), threading.Event(), threading.Event()

    def slow(pending: PendingCall) -> Decision:
        if end == "cancel":
            cancel.set()
        go.wait(30)
        return pending.approve()

    executor = ToolExecutor([desk.look, desk.send], approve=slow)
    options: dict[str, Any] = {"deadline": 0.2} if end == "deadline" else {"cancel": cancel}
    results = asyncio.run(executor.aexecute_all(TURN, **options)) if asynchronous else executor.execute_all(TURN, **options)
    go.set()
    assert (results, desk.done) == ([], [])
    pending = executor.pending_calls(TURN)
    executor.execute_all(TURN, decisions=[one.approve() for one in pending])
    assert sorted(desk.done) == ["look Paris", "send Anna 1", "send Ben 1"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("answer", [PendingCall.approve, PendingCall.reject, None])
def test_a_call_that_needs_approval_is_asked_about_whatever_is_recorded(way: str, answer: Any) -> None:
    """Who writes into a history that the call waits only for others does not make it run; nor does a rule that was another one."""
    desk, human = Desk(), Human(call_2=answer, call_3=None)
    first = desk.model(TURN, requires_approval=["send"], parallel=False, approval_key="a key")
    history = [QUESTION, *run(way, first, [QUESTION]).new]
    message = history[1]
    message.response_metadata[KEY]["calls"][2][RECORD]["kind"] = "queued"
    answers = [ToolMessage("Sent.", tool_call_id="1")]
    second = desk.model(requires_approval=["look", "send"], parallel=False, approval_key="a key", approve=human)
    run(way, second, [*history, *answers], resume=[])
    assert human.asked == (["2", "3"] if answer else ["2"])
    assert desk.done == (["look Paris"] if answer is PendingCall.approve else [])


@pytest.mark.parametrize("way", WAYS)
def test_a_call_of_the_callers_stays_his_whatever_is_recorded(way: str) -> None:
    """It is not run as one that waits for others, although a tool of that name could run."""
    desk, human = Desk(), Human()
    history = [QUESTION, *run(way, desk.model(TURN, requires_approval=["send"], parallel=False), [QUESTION]).new]
    history[1].response_metadata[KEY]["calls"][2][RECORD]["kind"] = "queued"
    ran = run(way, desk.model(parallel=False, approve=human).bind_tools([desk.send]), history, resume=[])
    assert [one.id for one in pending_calls([*history, *ran.new])] == ["3"]
    assert (human.asked, desk.done) == (["1", "2"], ["send Anna 1", "look Paris"])
