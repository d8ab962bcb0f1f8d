"""`claim` of an executor alone: a call that was decided runs once, by whichever method it is executed."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_autotools import AlreadyResumedError, ConfigurationError, ToolExecutor
from langchain_autotools.testing import ScriptedChatModel
from tests.support.claims import MemoryClaims
from tests.unit.run.test_claim import Bank, Store

ANSWER = AIMessage("", id="m", tool_calls=[{"id": to, "name": "pay", "args": {"to": to}} for to in ("Anna", "Bert")])


def in_a_row(executor: ToolExecutor, decisions: Any) -> list[ToolMessage]:
    """Executed as a list of calls, beside the history that they are in."""
    return executor.execute_all(ANSWER.tool_calls, messages=[HumanMessage("Pay."), ANSWER], decisions=decisions)


WAYS: dict[str, Callable[[ToolExecutor, Any], list[ToolMessage]]] = {
    "execute_all": lambda executor, decisions: executor.execute_all(ANSWER, decisions=decisions),
    "aexecute_all": lambda executor, decisions: asyncio.run(executor.aexecute_all(ANSWER, decisions=decisions)),
    "stream": lambda executor, decisions: [one.message for one in executor.stream(ANSWER, decisions=decisions)],
    "calls of a history": in_a_row,
    "with the number of a turn": lambda executor, decisions: executor.execute_all(ANSWER, decisions=decisions, turn=3),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_same_decisions_executed_twice_run_the_calls_once(way: str) -> None:
    """The key is that of the pending call; the second time nothing runs."""
    bank, store = Bank(), Store()
    executor = ToolExecutor([bank.pay], requires_approval=["pay"], claim=store.claim)
    pending = executor.pending_calls(ANSWER)
    decisions = [call.approve() for call in pending]
    assert [one.text for one in WAYS[way](executor, decisions)] == ["paid Anna", "paid Bert"]
    assert {key for key in store.keys if not key.startswith("decided.")} == {f"{one.uuid}.{one.digest}" for one in pending}
    with pytest.raises(AlreadyResumedError):
        WAYS[way](executor, decisions)
    with pytest.raises(AlreadyResumedError):  # what is decided otherwise later is decided about the same calls
        WAYS[way](executor, [pending[0].edit({"to": "Eve"}), pending[1].edit({"to": "Eve"})])
    assert sorted(bank.paid) == ["Anna", "Bert"]


@pytest.mark.parametrize("way", list(WAYS)[:2])
def test_what_a_function_decides_is_claimed_too(way: str) -> None:
    """`approve=` of an executor."""
    bank, store = Bank(), Store()
    executor = ToolExecutor([bank.pay], approve=lambda call: call.approve(), claim=store.claim)
    assert len(WAYS[way](executor, None)) == 2
    with pytest.raises(AlreadyResumedError):
        WAYS[way](executor, None)
    assert sorted(bank.paid) == ["Anna", "Bert"]


@pytest.mark.parametrize("decisions", [True, {"Anna": True, "Bert": {"to": "Carl"}}])
def test_plain_decisions_of_a_run_are_claimed_too(decisions: Any) -> None:
    """`resume(history, True)` twice runs the calls once."""
    bank, store = Bank(), Store()
    model = ScriptedChatModel(replies=["Paid."], tools=[bank.pay], claim=store.claim)
    model.resume([HumanMessage("Pay."), ANSWER], decisions)
    for again in (decisions, True):
        with pytest.raises(AlreadyResumedError):
            model.resume([HumanMessage("Pay."), ANSWER], again)
    assert len(bank.paid) == 2


def test_a_call_that_cannot_be_told_from_another_is_not_claimed() -> None:
    """A message without an id, and calls without their message: nothing runs. Without `claim` they do."""
    bank, store = Bank(), Store()
    nameless = AIMessage("", tool_calls=ANSWER.tool_calls)
    executor = ToolExecutor([bank.pay], requires_approval=["pay"], claim=store.claim)
    for calls in (nameless, ANSWER.tool_calls):
        decisions = [call.approve() for call in executor.pending_calls(calls)]
        with pytest.raises(ConfigurationError, match="claim needs to know call 'Anna' from equal ones"):
            executor.execute_all(calls, decisions=decisions)
    assert (bank.paid, store.keys) == ([], set())
    plain = ToolExecutor([bank.pay], requires_approval=["pay"])
    assert len(plain.execute_all(nameless, decisions=[call.approve() for call in plain.pending_calls(nameless)])) == 2


@pytest.mark.parametrize("store", [lambda: Store().claim, MemoryClaims])
@pytest.mark.parametrize("way", ["execute_all", "aexecute_all"])
def test_a_bundle_of_which_some_calls_may_not_run_is_claimed_once(way: str, store: Callable[[], Any]) -> None:
    """What may run runs, and its siblings are answered, wherever they are in the bundle; the second time nothing runs."""
    bank = Bank()

    def delete(path: str) -> str:
        """Delete a file."""
        raise AssertionError(path)

    uses = [
        {"recipient_name": "delete", "parameters": {"path": "/a"}},
        {"recipient_name": "pay", "parameters": {"to": "Anna"}},
        {"recipient_name": "delete", "parameters": {"path": "/b"}},
    ]
    bundle = {"id": "b", "name": "multi_tool_use.parallel", "args": {"tool_uses": uses}}
    answer = AIMessage("", id="m", tool_calls=[bundle])
    executor = ToolExecutor([bank.pay, delete], requires_approval=True, claim=store())
    decisions = [call.approve() for call in executor.pending_calls(answer)]
    options: dict[str, Any] = {"decisions": decisions, "only": ["pay"]}

    def execute() -> list[ToolMessage]:
        return asyncio.run(executor.aexecute_all(answer, **options)) if way == "aexecute_all" else executor.execute_all(answer, **options)

    (result,) = execute()
    assert [part["status"] for part in json.loads(result.text)] == ["error", "success", "error"]
    if isinstance(executor.approvals and executor.approvals.claim, MemoryClaims):
        assert execute() == [result]
    else:
        with pytest.raises(AlreadyResumedError):
            execute()
    assert bank.paid == ["Anna"]
