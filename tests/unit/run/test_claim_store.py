"""`claim` as a store: calls are taken one by one, directly before they begin; results are kept; what never began is given back."""

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool

from langchain_autotools import AlreadyResumedError, ConfigurationError, ToolExecutor, ToolPolicy, events, new_messages, pending_calls
from langchain_autotools.testing import ScriptedChatModel

QUESTION = HumanMessage("Pay them.")
CALLING = AIMessage("", id="m", tool_calls=[{"id": to, "name": "pay", "args": {"to": to}} for to in ("Anna", "Bert", "Carl")])


class Store:
    """A store in memory, and what it was called with."""

    def __init__(self, *, broken: Sequence[str] = ()) -> None:
        self.kept: dict[str, Any] = {}
        self.log: list[str] = []
        self.names: dict[str, str] = {}
        self.broken = set(broken)

    def know(self, pending: Sequence[Any]) -> None:
        """Note whose keys these are."""
        self.names.update({f"{one.uuid}.{one.digest}": one.id for one in pending})

    def _note(self, what: str, key: str) -> None:
        name = f"{what} {'all' if key.startswith('decided.') else self.names.get(key, '?')}"
        self.log.append(name)
        if name in self.broken:
            raise ConnectionError(name)

    def take(self, key: str) -> Any:
        """Take a call."""
        self._note("take", key)
        if key in self.kept:
            return False if self.kept[key] is None else json.loads(self.kept[key])
        self.kept[key] = None
        return True

    def done(self, key: str, message: dict[str, Any]) -> None:
        """Keep a result."""
        self._note("done", key)
        self.kept[key] = json.dumps(message)

    def release(self, key: str) -> None:
        """Give a call back."""
        self._note("release", key)
        del self.kept[key]


class Later:
    """The same store, asynchronous."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def take(self, key: str) -> Any:
        """Take a call."""
        await asyncio.sleep(0)
        return self.store.take(key)

    async def done(self, key: str, message: dict[str, Any]) -> None:
        """Keep a result."""
        await asyncio.sleep(0)
        self.store.done(key, message)

    async def release(self, key: str) -> None:
        """Give a call back."""
        await asyncio.sleep(0)
        self.store.release(key)


class Bank:
    """A tool that notes whom it paid."""

    def __init__(self, store: Store | None = None) -> None:
        self.paid: list[str] = []
        self.store = store

    def pay(self, to: str) -> str:
        """Pay somebody."""
        self.paid.append(to)
        if self.store is not None:
            self.store.log.append(f"pay {to}")
        return f"paid {to}"


def paying(bank: Bank, claim: Any, **settings: Any) -> ScriptedChatModel:
    """A model that pays three people, and then says so."""

    def reply(messages: Sequence[BaseMessage], **_: Any) -> Any:
        return "Paid." if messages[-1].type == "tool" else CALLING

    return ScriptedChatModel(replies=reply, tools=[bank.pay], **{"requires_approval": True, "parallel": False, "claim": claim, **settings})


def asked(model: ScriptedChatModel, store: Store) -> tuple[list[BaseMessage], list[Any]]:
    """The history up to the calls that wait, and their approvals."""
    history = [QUESTION, *new_messages(model.invoke([QUESTION]))]
    calls = pending_calls(history)
    store.know(calls)
    return history, [call.approve() for call in calls]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_result_from_the_store_goes_to_the_user_where_its_tool_says_so(asynchronous: bool) -> None:
    """With `return_direct` the second run ends as the first did, without another request; an error goes back to the model."""

    @tool(return_direct=True)
    def pay(to: str) -> str:
        """Pay somebody."""
        if to == "Bert":
            raise ValueError("no money")
        return f"paid {to}"

    for to, ends in (("Anna", ("return_direct", "paid Anna")), ("Bert", ("complete", "Paid."))):
        store = Store()
        calling = AIMessage("", id="m", tool_calls=[{"id": to, "name": "pay", "args": {"to": to}}])

        def reply(messages: Sequence[BaseMessage], calling: AIMessage = calling, **_: Any) -> Any:
            return "Paid." if messages[-1].type == "tool" else calling

        model = ScriptedChatModel(replies=reply, tools=[pay], requires_approval=True, claim=Later(store) if asynchronous else store)
        history, decisions = asked(model, store)
        for _ in range(2):
            run = asyncio.run(model.aresume(history, decisions)) if asynchronous else model.resume(history, decisions)
            assert (run.response_metadata["autotools"]["stop_reason"], run.text) == ends


def by_model(model: ScriptedChatModel, history: list[BaseMessage], decisions: Any) -> list[BaseMessage]:
    """Resumed at once."""
    return new_messages(model.resume(history, decisions))


def by_stream(model: ScriptedChatModel, history: list[BaseMessage], decisions: Any) -> list[BaseMessage]:
    """Resumed in pieces."""
    done: list[BaseMessage] = []
    try:
        for chunk in model.stream(history, resume=decisions):
            done += new_messages(chunk)
    except Exception as error:
        error.args = (*error.args, done)
        raise
    return done


def asynchronously(model: ScriptedChatModel, history: list[BaseMessage], decisions: Any) -> list[BaseMessage]:
    """Resumed on an event loop."""
    return new_messages(asyncio.run(model.aresume(history, decisions)))


WAYS: dict[str, Callable[..., list[BaseMessage]]] = {"resume": by_model, "stream": by_stream, "aresume": asynchronously}


@pytest.mark.parametrize("kind", [lambda store: store, Later], ids=["plain", "asynchronous"])
@pytest.mark.parametrize("way", WAYS)
def test_each_call_is_taken_directly_before_it_begins(way: str, kind: Any) -> None:
    """Take, run, keep; then the next one. A second run is given the results and repeats nothing."""
    store = Store()
    bank = Bank(store)
    model = paying(bank, kind(store))
    history, decisions = asked(model, store)
    first = WAYS[way](model, history, decisions)
    calls = [f"{what} {to}" for to in ("Anna", "Bert", "Carl") for what in ("take", "pay", "done")]
    assert store.log == ["take all", *calls, "done all"]
    second = WAYS[way](model, history, decisions)
    assert len(model.requests) == 2
    assert [one.text for one in first] == [one.text for one in second] == ["paid Anna", "paid Bert", "paid Carl", "Paid."]
    assert bank.paid == ["Anna", "Bert", "Carl"]


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_a_store_that_fails_loses_nothing(way: str, parallel: bool) -> None:
    """What ran has its result in the error, the others wait still, and the run goes on from there."""
    store = Store(broken=["take Bert"])
    bank = Bank()
    model = paying(bank, store, parallel=parallel)
    history, decisions = asked(model, store)
    with pytest.raises(ConnectionError, match="take Bert") as caught:
        WAYS[way](model, history, decisions)
    streamed = caught.value.args[1] if way == "stream" else []
    history += [*streamed, *new_messages(caught.value)]
    waiting = pending_calls(history)
    assert {one.id for one in waiting} == {"Anna", "Bert", "Carl"} - set(bank.paid)
    assert [one.text for one in history[2:]] == [f"paid {to}" for to in ("Anna", "Bert", "Carl") if to in bank.paid]
    assert parallel or bank.paid == ["Anna"]
    store.broken.clear()
    new = WAYS[way](model, history, [call.approve() for call in waiting])
    assert new[-1].text == "Paid."
    assert all(one.status == "success" for one in new if one.type == "tool")  # type: ignore[attr-defined]
    assert sorted(bank.paid) == ["Anna", "Bert", "Carl"]


@pytest.mark.parametrize("way", ["execute_all", "aexecute_all"])
def test_of_an_executor_alone_the_error_brings_what_ran(way: str) -> None:
    """`new_messages(error)`, and `messages=` goes on from there."""
    store = Store(broken=["take Bert"])
    bank = Bank()
    executor = ToolExecutor([bank.pay], requires_approval=True, parallel=False, claim=store)

    def execute(**options: Any) -> Any:
        return executor.execute_all(CALLING, **options) if way == "execute_all" else asyncio.run(executor.aexecute_all(CALLING, **options))

    calls = executor.pending_calls(CALLING)
    store.know(calls)
    with pytest.raises(ConnectionError) as caught:
        execute(decisions=[call.approve() for call in calls])
    history = [CALLING, *new_messages(caught.value)]
    assert [one.text for one in history[1:]] == ["paid Anna"]
    store.broken.clear()
    assert [one.text for one in execute(messages=history, decisions=[call.approve() for call in calls[1:]])] == ["paid Bert", "paid Carl"]
    assert bank.paid == ["Anna", "Bert", "Carl"]


def test_a_result_that_cannot_be_kept_is_not_lost() -> None:
    """The tool has run: the error brings its result, and a later run is told that the call was taken."""
    store = Store(broken=["done Anna"])
    bank = Bank()
    model = paying(bank, store)
    history, decisions = asked(model, store)
    with pytest.raises(ConnectionError, match="done Anna") as caught:
        model.resume(history, decisions)
    assert [one.text for one in new_messages(caught.value)] == ["paid Anna"]
    assert [one.id for one in pending_calls([*history, *new_messages(caught.value)])] == ["Bert", "Carl"]
    store.broken.clear()
    again = new_messages(model.resume(history, decisions))
    assert "another run has taken this call, and its outcome is not known" in again[0].text
    assert bank.paid == ["Anna", "Bert", "Carl"]


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_handed_out_before_a_call_is_taken(way: str) -> None:
    """Where all were taken and nothing is known of them, neither events nor listeners tell of any; a refused sibling neither."""
    store, heard = Store(), []
    bank = Bank()
    model = paying(bank, store.take, parallel=True, on_executed=lambda result: heard.append(result.call.id))
    history, decisions = asked(model, store)
    decisions[1] = pending_calls(history)[1].reject("No.")
    for call in pending_calls(history):
        store.take(f"{call.uuid}.{call.digest}")
    with pytest.raises(AlreadyResumedError) as caught:
        WAYS[way](model, history, decisions)
    assert new_messages(caught.value) == []
    kinds: list[str] = []
    with pytest.raises(AlreadyResumedError):
        kinds.extend(type(event).__name__ for event in events(model.stream(history, resume=decisions)))
    assert "CallResult" not in kinds
    assert (bank.paid, heard) == ([], [])


@pytest.mark.parametrize("way", WAYS)
def test_results_that_were_held_back_come_in_call_order(way: str) -> None:
    """Once one call is taken, those before it that were not are told of as errors."""
    store, heard = Store(), []
    bank = Bank()
    model = paying(bank, store.take, on_executed=lambda result: heard.append(result.call.id))
    history, decisions = asked(model, store)
    for call in pending_calls(history)[:2]:
        store.take(f"{call.uuid}.{call.digest}")
    new = WAYS[way](model, history, decisions)
    assert ["outcome is not known" in one.text for one in new[:3]] == [True, True, False]
    assert (bank.paid, sorted(heard)) == (["Carl"], ["Anna", "Bert", "Carl"])


@pytest.mark.parametrize("way", ["resume", "aresume"])
def test_a_call_that_is_taken_too_late_is_given_back(way: str) -> None:
    """The run was cancelled while the store was busy: the call did not run, and another run may take it."""
    store, stop, go_on, released = Store(), threading.Event(), threading.Event(), threading.Event()
    bank = Bank()

    def take(key: str) -> Any:
        stop.set()
        go_on.wait(30)
        return store.take(key)

    def release(key: str) -> None:
        store.release(key)
        released.set()

    history, decisions = asked(paying(bank, None), store)
    model: Any = paying(bank, SimpleNamespace(take=take, release=release)).bind(cancel=stop.is_set)
    run = model.resume(history, decisions) if way == "resume" else asyncio.run(model.aresume(history, decisions))
    assert run.response_metadata["autotools"]["stop_reason"] == "cancelled"
    go_on.set()
    assert released.wait(30)
    assert (bank.paid, store.kept, store.log) == ([], {}, ["take all", "release all"])


def test_a_tool_that_fails_has_begun() -> None:
    """Its error is its result, and is kept."""
    store = Store()

    def pay(to: str) -> str:
        """Pay somebody."""
        raise RuntimeError("no money")

    executor = ToolExecutor([pay], requires_approval=True, parallel=False, claim=store)
    calls = executor.pending_calls(CALLING)[:1]
    store.know(calls)
    (first,) = executor.execute_all(CALLING, decisions=[calls[0].approve()])
    assert store.log == ["take all", "take Anna", "done Anna", "done all"]
    assert executor.execute_all(CALLING, decisions=[calls[0].approve()]) == [first]


def test_an_edited_call_and_a_bundle_are_kept_whole() -> None:
    """The message that is kept is the one that is handed out, and comes back as it is."""
    store = Store()
    bank = Bank()
    executor = ToolExecutor([bank.pay], requires_approval=True, claim=store)
    uses = [{"recipient_name": "functions.pay", "parameters": {"to": to}} for to in ("Carl", "Dora")]
    bundle = {"id": "2", "name": "multi_tool_use.parallel", "args": {"tool_uses": uses}}
    answer = AIMessage("", id="m", tool_calls=[{"id": "1", "name": "pay", "args": {"to": "Anna"}}, bundle])
    one, two = executor.pending_calls(answer)
    store.know([one, two])
    decisions = [one.edit({"to": "Bert"}), two.approve()]
    first = executor.execute_all(answer, decisions=decisions)
    assert executor.execute_all(answer, decisions=decisions) == first
    assert sorted(bank.paid) == ["Bert", "Carl", "Dora"]
    assert "It ran with" in first[0].text
    assert sorted(store.log) == ["done 1", "done 2", "done all", "take 1", "take 1", "take 2", "take 2", "take all", "take all"]


@pytest.mark.parametrize("claim", [lambda key: {"type": "ai", "data": {"content": "x"}}, lambda key: {"content": "x"}, lambda key: "yes"])
def test_what_is_no_result_is_refused(claim: Any) -> None:
    """A message of another kind, a dict that is none, a text: nothing runs."""
    bank = Bank()
    model = paying(bank, Store())
    history, decisions = asked(model, Store())
    with pytest.raises(ConfigurationError, match="True, False, or the result"):
        model.resume(history, decisions, claim=claim)
    assert bank.paid == []
    assert [one.id for one in pending_calls(history)] == ["Anna", "Bert", "Carl"]


def test_what_came_from_a_cache_is_kept_too() -> None:
    """A call that is answered without its tool has a result all the same."""
    store = Store()
    bank = Bank()
    executor = ToolExecutor([bank.pay], requires_approval=True, parallel=False, claim=store, policies={"pay": ToolPolicy(cache=True)})
    answer = AIMessage("", id="m", tool_calls=[{"id": str(number), "name": "pay", "args": {"to": "Anna"}} for number in (1, 2)])
    calls = executor.pending_calls(answer)
    store.know(calls)
    executor.execute_all(answer, decisions=[call.approve() for call in calls])
    assert (bank.paid, store.log) == (["Anna"], ["take all", "take 1", "done 1", "take 2", "done 2", "done all"])


def test_a_listener_that_fails_before_the_tool_gives_the_call_back(caplog: pytest.LogCaptureFixture) -> None:
    """The tool never began."""
    store = Store()
    bank = Bank()

    def refuse(call: Any) -> None:
        raise RuntimeError("not now")

    model = paying(bank, store, on_executing=refuse)
    history, decisions = asked(model, store)
    with caplog.at_level(logging.WARNING), pytest.raises(RuntimeError, match="not now"):
        model.resume(history, decisions)
    assert (store.log, bank.paid, store.kept) == (["take all", "take Anna", "release Anna", "release all"], [], {})
