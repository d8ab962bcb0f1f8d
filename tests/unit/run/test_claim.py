"""`claim`: a call that was shown and decided runs once, however often its history is resumed."""

import asyncio
import pickle
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_autotools import AlreadyResumedError, ConfigurationError, ToolExecutor, new_messages, pending_calls
from langchain_autotools.testing import ScriptedChatModel

QUESTION = HumanMessage("Pay them.")
CALLING = AIMessage("", tool_calls=[{"id": to, "name": "pay", "args": {"to": to}} for to in ("Anna", "Bert")])


class Store:
    """Claims in memory, one at a time."""

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self._lock = threading.Lock()

    def claim(self, key: str) -> bool:
        """Note a key; False where it was noted before."""
        with self._lock:
            new = key not in self.keys
            self.keys.add(key)
            return new

    async def aclaim(self, key: str) -> bool:
        """Like `claim`."""
        await asyncio.sleep(0)
        return self.claim(key)


class Bank:
    """A tool that notes whom it paid."""

    def __init__(self) -> None:
        self.paid: list[str] = []

    def pay(self, to: str) -> str:
        """Pay somebody."""
        self.paid.append(to)
        return f"paid {to}"


def paying(bank: Bank, **settings: Any) -> ScriptedChatModel:
    """A model that pays two people, and then says so."""

    def reply(messages: Sequence[BaseMessage], **_: Any) -> Any:
        return "Paid." if messages[-1].type == "tool" else CALLING

    return ScriptedChatModel(replies=reply, tools=[bank.pay], **{"requires_approval": True, **settings})


def asked(model: ScriptedChatModel) -> list[BaseMessage]:
    """The history up to the calls that wait."""
    return [QUESTION, *new_messages(model.invoke([QUESTION]))]


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("way", ["resume", "aresume"])
def test_the_same_history_resumed_twice_runs_its_calls_once(way: str, parallel: bool) -> None:
    """The second run raises what says so, with nothing new; a call that waited behind another one is claimed too."""
    bank, store = Bank(), Store()
    settings = {"parallel": parallel, "requires_approval": lambda call: parallel or call.args["to"] == "Anna"}
    model = paying(bank, **settings, claim=store.claim if way == "resume" else store.aclaim)
    history = asked(model)
    decisions = [call.approve() for call in pending_calls(history) if call.kind == "approval"]

    def resumed() -> AIMessage:
        return model.resume(history, decisions) if way == "resume" else asyncio.run(model.aresume(history, decisions))

    assert resumed().text == "Paid."
    requests = len(model.requests)
    with pytest.raises(AlreadyResumedError) as caught:
        resumed()
    assert sorted(bank.paid) == ["Anna", "Bert"]
    assert len(model.requests) == requests
    assert new_messages(caught.value) == []
    assert [call.id for call in pending_calls(history)] == ["Anna", "Bert"]


def test_of_many_that_resume_at_once_one_pays() -> None:
    """Threads that resume the same history with the same decisions: each call runs once, whoever got it."""
    bank, store = Bank(), Store()
    model = paying(bank, claim=store.claim)
    history = asked(model)
    decisions = [call.approve() for call in pending_calls(history)]
    start, ended = threading.Barrier(8), []

    def resume() -> None:
        start.wait(60)
        try:
            ended.append(model.resume(history, decisions))
        except AlreadyResumedError as error:
            ended.append(error)

    threads = [threading.Thread(target=resume) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(bank.paid) == ["Anna", "Bert"]
    assert len(ended) == 8


def test_a_call_that_another_run_took_is_answered_with_that() -> None:
    """Where one of two calls is taken, the other one runs, and the model is told of both."""
    bank, store = Bank(), Store()
    model = paying(bank, claim=store.claim)
    history = asked(model)
    anna, bert = pending_calls(history)
    model.resume(history, [bert.approve()])
    new = new_messages(model.resume(history, [anna.approve(), bert.approve()]))
    assert bank.paid == ["Bert", "Anna"]
    assert [message.status for message in new[:2]] == ["success", "error"]  # type: ignore[attr-defined]
    assert "another run has taken this call, and its outcome is not known" in new[1].text


def test_what_was_decided_is_claimed_as_a_whole() -> None:
    """The same rejections twice are one decision; other decisions go on, and a call that was never taken runs."""
    bank, store = Bank(), Store()
    model = paying(bank, claim=store.claim)
    history = asked(model)
    anna, bert = pending_calls(history)
    decisions = [anna.reject("No."), bert.respond("paid by hand")]
    model.resume(history, decisions)
    with pytest.raises(AlreadyResumedError):
        model.resume(history, decisions)
    assert (bank.paid, [key.partition(".")[0] for key in store.keys]) == ([], ["decided"])
    model.resume(history, [anna.edit({"to": "Carl"}), bert.reject()])
    assert bank.paid == ["Carl"]
    assert {key for key in store.keys if not key.startswith("decided.")} == {f"{anna.uuid}.{anna.digest}"}


def test_an_executor_alone_claims_too() -> None:
    """`execute_all(answer, decisions=...)` asks the executor's own claim."""
    bank, store = Bank(), Store()
    executor = ToolExecutor([bank.pay], requires_approval=["pay"], claim=store.claim)
    model = paying(bank)
    (_, answer) = asked(model)
    assert isinstance(answer, AIMessage)
    decisions = [call.approve() for call in executor.pending_calls(answer)]
    assert [result.text for result in executor.execute_all(answer, decisions=decisions)] == ["paid Anna", "paid Bert"]
    with pytest.raises(AlreadyResumedError):
        executor.execute_all(answer, decisions=decisions)
    assert sorted(bank.paid) == ["Anna", "Bert"]


@pytest.mark.parametrize("claim", [lambda key: None, lambda key: 1, lambda key: 1 / 0])
def test_a_claim_that_does_not_say_runs_nothing(claim: Callable[[str], Any]) -> None:
    """Anything but True or False, and an error, ends the run with the calls unrun."""
    bank = Bank()
    model = paying(bank)
    history = asked(model)
    decisions = [call.approve() for call in pending_calls(history)]
    with pytest.raises((ConfigurationError, ZeroDivisionError)):
        model.resume(history, decisions, claim=claim)
    assert bank.paid == []


def test_a_store_that_does_not_answer_ends_with_the_run() -> None:
    """The deadline ends the wait for a claim; the call does not run."""
    bank = Bank()
    model = paying(bank)
    history = asked(model)
    decisions = [call.approve() for call in pending_calls(history)]
    never = threading.Event()
    run = model.resume(history, decisions, claim=lambda key: never.wait(30), deadline=0.05)
    never.set()
    assert run.response_metadata["autotools"]["stop_reason"] == "deadline"
    assert bank.paid == []


def test_a_claim_cannot_be_lost_in_a_pickle() -> None:
    """A copy without it would run calls twice: a function that cannot travel fails pickling."""
    with pytest.raises(pickle.PicklingError, match="claim"):
        pickle.dumps(ScriptedChatModel(replies=["Fine."], claim=lambda key: True))
    with pytest.raises(ValueError, match="claim"):
        paying(Bank(), claim=3)
