"""A store of claims that tells who owns what: of any number of resumes one goes on, and what a dead process leaves is taken over."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import (
    Agent,
    AlreadyResumedError,
    ConfigurationError,
    ToolExecutor,
    events,
    new_messages,
    pending_calls,
    stop_reason,
)
from langchain_autotools.event_types import CallResult, MessageDone, RunEnded, TextDelta
from langchain_autotools.testing import ScriptedChatModel
from tests.support.claims import LaterClaims, MemoryClaims, Process, at_once

QUESTION = HumanMessage("Pay them.", id="q")


def calling(*people: str, message_id: str | None = None) -> AIMessage:
    """A reply that pays people."""
    return AIMessage("Let me see.", id=message_id, tool_calls=[{"id": to, "name": "pay", "args": {"to": to}} for to in people])


class Bank:
    """Tools that note what they did: `pay` needs approval, `note` does not."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.while_paying: Callable[[], Any] = lambda: None

    def pay(self, to: str) -> str:
        """Pay somebody."""
        self.did.append(to)
        self.while_paying()
        return f"paid {to}"

    def note(self, text: str) -> str:
        """Note something."""
        self.did.append(text)
        return "noted"

    def model(self, claim: Any, *people: str, **settings: Any) -> ScriptedChatModel:
        """A model that pays people, notes it, and says so."""
        first = calling(*(people or ("Anna", "Bert")))

        def reply(messages: Sequence[BaseMessage], **_: Any) -> Any:
            noted = AIMessage("", tool_calls=[{"id": "n", "name": "note", "args": {"text": "a note"}}])
            return (first, noted, "Paid.")[min(2, sum(isinstance(message, AIMessage) for message in messages))]

        fields: dict[str, Any] = {"requires_approval": ["pay"], "tools": [self.pay, self.note], **settings}
        return ScriptedChatModel(replies=reply, claim=claim, **fields)


def asked(model: Any) -> list[BaseMessage]:
    """The history up to the calls that wait."""
    return [QUESTION, *new_messages(model.invoke([QUESTION]))]


def by_invoke(model: Any, history: Sequence[BaseMessage], decisions: Any) -> list[BaseMessage]:
    """Resumed at once."""
    return new_messages(model.resume(history, decisions))


def by_stream(model: Any, history: Sequence[BaseMessage], decisions: Any) -> list[BaseMessage]:
    """Resumed in pieces."""
    return [message for chunk in model.stream(history, resume=decisions) for message in new_messages(chunk)]


def asynchronously(model: Any, history: Sequence[BaseMessage], decisions: Any) -> list[BaseMessage]:
    """Resumed on an event loop."""
    return new_messages(asyncio.run(model.aresume(history, decisions)))


WAYS: dict[str, Callable[..., list[BaseMessage]]] = {"resume": by_invoke, "stream": by_stream, "aresume": asynchronously}
KINDS: dict[str, Callable[[Any], Any]] = {"plain": lambda store: store, "asynchronous": LaterClaims}
TOGETHER = [("resume", "plain"), ("stream", "asynchronous"), ("aresume", "asynchronous")]
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
ways_and_stores = pytest.mark.parametrize(
    ("way", "kind"),
    [
        pytest.param(WAYS[way], KINDS[kind], id=f"{way}-{kind}", marks=[] if (way, kind) in TOGETHER else [pytest.mark.exhaustive])
        for way in WAYS
        for kind in KINDS
    ],
)
in_order = pytest.mark.parametrize("parallel", [True, False], ids=["parallel", "in order"])


def texts(messages: Sequence[BaseMessage]) -> list[str]:
    """What messages say."""
    return [message.text for message in messages]


@ways_and_stores
@in_order
def test_the_second_of_two_resumes_brings_what_the_first_brought(way: Any, kind: Any, parallel: bool) -> None:
    """The same messages with the same ids, the same end, and no request; whatever it decides."""
    bank, store = Bank(), MemoryClaims()
    model = bank.model(kind(store), parallel=parallel)
    history = asked(model)
    anna, bert = pending_calls(history)
    first = way(model, history, [anna.approve(), bert.approve()])
    requests = len(model.requests)
    for decisions in ([anna.approve(), bert.approve()], [anna.reject(), bert.edit({"to": "Carl"})]):
        again = way(model, history, decisions)
        assert [(one.id, one.type, one.content) for one in again] == [(one.id, one.type, one.content) for one in first]
    assert texts(first) == ["paid Anna", "paid Bert", "", "noted", "Paid."]
    assert (sorted(bank.did), len(model.requests)) == (["Anna", "Bert", "a note"], requests)


def test_the_run_message_of_a_repeated_run_is_that_of_the_first() -> None:
    """Text, calls, usage and stop reason; also where the run has ended in calls that wait."""
    bank, store = Bank(), MemoryClaims()
    model = bank.model(store, requires_approval=["pay", "note"])
    history = asked(model)
    for expected in ("calls_pending", "complete"):
        decisions = [call.approve() for call in pending_calls(history)]
        first, again = model.resume(history, decisions), model.resume(history, decisions)
        for run in (first, again):
            assert (stop_reason(run), run.text, run.tool_calls) == (expected, first.text, first.tool_calls)
        assert [one.to_dict() for one in pending_calls(again)] == [one.to_dict() for one in pending_calls(first)]
        assert again.response_metadata["autotools"] == first.response_metadata["autotools"]
        history += new_messages(again)
    assert sorted(bank.did) == ["Anna", "Bert", "a note"]


def test_a_repeated_run_tells_its_listeners_the_same() -> None:
    """Messages, results and the end; a page that comes second shows what the first one shows."""
    bank, store = Bank(), MemoryClaims()
    model = bank.model(store)
    history = asked(model)
    decisions = [call.approve() for call in pending_calls(history)]
    told = [[*events(model.stream(history, resume=decisions))] for _ in range(2)]
    for kind, name in ((MessageDone, "message"), (CallResult, "message")):
        first, again = ([getattr(one, name).content for one in part if isinstance(one, kind)] for part in told)
        assert first == again
    assert [[(one.stop_reason, one.turns) for one in part if isinstance(one, RunEnded)] for part in told] == [[("complete", 2)]] * 2
    assert any(isinstance(one, TextDelta) for one in told[0])


@ways_and_stores
def test_of_resumes_at_once_one_goes_on(way: Any, kind: Any) -> None:
    """Two calls wait and a claim takes some time: the others raise, or bring the same; a tool that needs no approval runs once."""
    bank, store = Bank(), MemoryClaims()
    history = asked(bank.model(store))
    decisions = [call.approve() for call in pending_calls(history)]
    models = [bank.model(kind(Process(store, pause=0.004))) for _ in range(4)]
    ended = at_once([lambda model=model: way(model, history, decisions) for model in models])  # type: ignore[misc]
    assert any(isinstance(one, list) for one in ended), ended
    assert all(isinstance(one, AlreadyResumedError) or texts(one)[-1] == "Paid." for one in ended)
    assert sorted(bank.did) == ["Anna", "Bert", "a note"]


@ways_and_stores
def test_a_resume_beside_one_that_runs_raises(way: Any, kind: Any) -> None:
    """While the tool runs, and after it; nothing is handed out, also of rejections, and what was taken is given back."""
    bank, store = Bank(), MemoryClaims()
    model = bank.model(store, "Anna")
    history = asked(model)
    (anna,) = pending_calls(history)
    caught: list[AlreadyResumedError] = []

    def resume_beside() -> None:
        for decision in (anna.approve(), anna.reject(), anna.respond("paid by hand")):
            with pytest.raises(AlreadyResumedError, match="another run is carrying out") as error:
                in_thread(lambda decision=decision: way(bank.model(kind(store), "Anna"), history, [decision]))  # type: ignore[misc]
            caught.append(error.value)

    bank.while_paying = resume_beside
    assert texts(model_messages := way(model, history, [anna.approve()]))[-1] == "Paid."
    assert (bank.did, len(caught)) == (["Anna", "a note"], 3)
    assert all(new_messages(error) == [] for error in caught)
    assert texts(way(model, history, [anna.approve()])) == texts(model_messages)


def in_thread(work: Callable[[], Any]) -> Any:
    """What a function returns or raises in a thread of its own, where no event loop runs."""
    (ended,) = at_once([work])
    if isinstance(ended, BaseException):
        raise ended
    return ended


@ways_and_stores
@in_order
def test_what_a_dead_process_has_left_is_taken_over(way: Any, kind: Any, parallel: bool) -> None:
    """Taken and not begun: it runs. Begun: its result says that the outcome is not known. Done: its result is that."""
    bank, store = Bank(), MemoryClaims()
    model = bank.model(kind(store), "Anna", "Bert", "Carl", parallel=parallel)
    history = asked(model)
    calls = pending_calls(history)
    keys = [f"{call.uuid}.{call.digest}" for call in calls]
    dead = "a dead process"
    assert [store.take(key, dead) for key in keys] == ["mine"] * 3
    store.begin(keys[0], dead)
    store.begin(keys[1], dead)
    kept = ToolMessage("paid Bert before", tool_call_id="Bert", id="r")
    store.done(keys[1], dead, {"type": "tool", "data": kept.model_dump()})
    store.end(dead)
    new = way(model, history, [call.approve() for call in calls])
    assert "its outcome is not known" in new[0].text
    assert texts(new[1:3]) == ["paid Bert before", "paid Carl"]
    assert bank.did == ["Carl", "a note"]
    again = way(model, history, [call.approve() for call in calls])
    assert texts(again) == texts(new)


def test_a_human_may_answer_a_call_that_a_dead_process_began() -> None:
    """`respond` and `reject` say what became of it."""
    bank, store = Bank(), MemoryClaims()
    model = bank.model(store)
    history = asked(model)
    anna, bert = pending_calls(history)
    for call in (anna, bert):
        store.take(f"{call.uuid}.{call.digest}", "dead")
        store.begin(f"{call.uuid}.{call.digest}", "dead")
    store.end("dead")
    new = new_messages(model.resume(history, [anna.respond("It was paid."), bert.reject("It was not.")]))
    assert (bank.did, new[0].text) == (["a note"], "It was paid.")
    assert "It was not." in new[1].text


@ways
def test_decisions_that_leave_calls_open_take_only_these(way: Any) -> None:
    """What was decided first has its result whatever is decided later, a rejection too; the turn is taken with the last one."""
    bank, store = Bank(), MemoryClaims()
    model = bank.model(store, "Anna", "Bert", "Carl")
    history = asked(model)
    anna, bert, carl = pending_calls(history)
    way(model, history, [anna.reject("No.")])
    way(model, history, [bert.approve()])
    assert not any(key.startswith("turn.") for key in store.rows)
    new = way(model, history, [anna.approve(), bert.edit({"to": "Eve"}), carl.approve()])
    assert ["No." in new[0].text, *texts(new[1:3])] == [True, "paid Bert", "paid Carl"]
    assert bank.did == ["Bert", "Carl", "a note"]
    assert sum(key.startswith("turn.") for key in store.rows) == 1


@ways_and_stores
def test_a_run_that_has_lost_its_turn_makes_no_further_request(way: Any, kind: Any) -> None:
    """Another process has taken over, after a stop that looked like a death: it ends before the next request, with what it has."""
    bank, store = Bank(), MemoryClaims()
    model = bank.model(kind(store), "Anna")
    history = asked(model)
    (anna,) = pending_calls(history)

    def lose() -> None:
        (turn,) = (key for key in store.rows if key.startswith("turn."))
        store.rows[turn].owner = "another"

    bank.while_paying = lose
    requests = len(model.requests)
    with pytest.raises(AlreadyResumedError, match="has taken over") as caught:
        way(model, history, [anna.approve()])
    assert (bank.did, len(model.requests)) == (["Anna"], requests)
    assert way is by_stream or texts(new_messages(caught.value)) == ["paid Anna"]


@ways_and_stores
def test_a_call_that_was_lost_before_it_began_does_not_run(way: Any, kind: Any) -> None:
    """`begin` says so directly before the tool, also behind middleware that swallows every error."""
    from langchain.agents.middleware import AgentMiddleware

    class Swallows(AgentMiddleware):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            try:
                return handler(request)
            except Exception as error:
                return ToolMessage(f"swallowed {error}", tool_call_id=request.tool_call["id"])

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            try:
                return await handler(request)
            except Exception as error:
                return ToolMessage(f"swallowed {error}", tool_call_id=request.tool_call["id"])

    class Loses(MemoryClaims):
        def begin(self, key: str, owner: str) -> bool:
            return key.startswith("turn.") and super().begin(key, owner)

    bank, store = Bank(), Loses()
    model = bank.model(kind(store), middleware=[Swallows()])
    history = asked(model)
    with pytest.raises(AlreadyResumedError, match="has taken over"):
        way(model, history, [call.approve() for call in pending_calls(history)])
    assert bank.did == []


@ways_and_stores
@pytest.mark.parametrize("broken", ["take", "begin", "done"])
def test_a_store_that_fails_lets_nothing_begin(way: Any, kind: Any, broken: str) -> None:
    """What has run is not lost; once the store works again the same decisions go on."""

    class Broken(MemoryClaims):
        works = False

        def _fail(self, name: str, key: str) -> None:
            if name == broken and not self.works and not key.startswith("turn."):
                raise ConnectionError(name)

        def take(self, key: str, owner: str) -> Any:
            self._fail("take", key)
            return super().take(key, owner)

        def begin(self, key: str, owner: str) -> bool:
            self._fail("begin", key)
            return super().begin(key, owner)

        def done(self, key: str, owner: str, value: dict[str, Any]) -> bool:
            self._fail("done", key)
            return super().done(key, owner, value)

    bank, store = Bank(), Broken()
    model = bank.model(kind(store), "Anna")
    history = asked(model)
    decisions = [call.approve() for call in pending_calls(history)]
    with pytest.raises(ConnectionError) as caught:
        way(model, history, decisions)
    assert bank.did == (["Anna"] if broken == "done" else [])
    assert way is by_stream or texts(new_messages(caught.value)) == (["paid Anna"] if broken == "done" else [])
    store.works = True
    new = way(model, history, decisions)
    assert ("outcome is not known" in new[0].text) == (broken == "done")
    assert (new[-1].text, bank.did.count("Anna")) == ("Paid.", 1)


@ways_and_stores
def test_a_result_of_the_whole_run_that_cannot_be_kept_gives_the_turn_back(way: Any, kind: Any) -> None:
    """The run has ended, and raises what the store raised; the next resume goes on from the results of the calls."""

    class Broken(MemoryClaims):
        works = False

        def done(self, key: str, owner: str, value: dict[str, Any]) -> bool:
            if key.startswith("turn.") and not self.works:
                raise ConnectionError("done")
            return super().done(key, owner, value)

    bank, store = Bank(), Broken()
    model = bank.model(kind(store), "Anna")
    history = asked(model)
    decisions = [call.approve() for call in pending_calls(history)]
    with pytest.raises(ConnectionError):
        way(model, history, decisions)
    store.works = True
    assert texts(way(model, history, decisions)) == ["paid Anna", "", "noted", "Paid."]
    assert bank.did.count("Anna") == 1


@ways
def test_a_model_that_fails_afterwards_gives_the_turn_back(way: Any) -> None:
    """The calls keep their results: the next resume of the same history asks the model again, and runs nothing twice."""
    bank, store = Bank(), MemoryClaims()
    model = bank.model(store, "Anna")
    history = asked(model)
    decisions = [call.approve() for call in pending_calls(history)]
    fails = ScriptedChatModel(replies=[RuntimeError("down")], tools=[bank.pay], requires_approval=["pay"], claim=store)
    with pytest.raises(RuntimeError, match="down"):
        way(fails, history, decisions)
    assert texts(way(model, history, decisions)) == ["paid Anna", "", "noted", "Paid."]
    assert bank.did == ["Anna", "a note"]


def test_a_reader_who_leaves_gives_the_turn_back() -> None:
    """A stream that is closed: what has run keeps its result, and another resume goes on."""
    bank, store = Bank(), MemoryClaims()
    model = bank.model(store, "Anna")
    history = asked(model)
    decisions = [call.approve() for call in pending_calls(history)]
    stream = model.stream(history, resume=decisions)
    next(chunk for chunk in stream if new_messages(chunk))
    stream.close()  # type: ignore[attr-defined]
    assert texts(by_invoke(model, history, decisions)) == ["paid Anna", "", "noted", "Paid."]
    assert bank.did == ["Anna", "a note"]


# ---------------------------------------------------------------------------------------------- calls that wait again


@pytest.mark.parametrize(("way", "claim"), [*zip(WAYS.values(), ("owners", "keys", "a function"), strict=True), (by_invoke, "a function")])
def test_a_call_behind_one_that_waits_again_is_given_back(way: Any, claim: str) -> None:
    """With `parallel=False` an approved call behind an agent whose run waits does not begin: at the next resume it runs, and once."""
    bank, keys = Bank(), dict[str, Any]()
    inner = ScriptedChatModel(
        name="helper",
        tools=[bank.pay],
        requires_approval=True,
        replies=lambda messages, **_: "Helped." if messages[-1].type == "tool" else calling("inside"),
    )
    first = AIMessage("", tool_calls=[{"id": "h", "name": "helper", "args": {"question": "?"}}, *calling("Bert").tool_calls])

    def function(key: str) -> bool:
        return keys.setdefault(key, len(keys)) == len(keys) - 1

    class Keys:
        def take(self, key: str) -> Any:
            new = key not in keys
            keys.setdefault(key, False)
            return True if new else keys[key]

        def done(self, key: str, value: dict[str, Any]) -> None:
            keys[key] = value

        def release(self, key: str) -> None:
            del keys[key]

    store: Any = {"owners": MemoryClaims, "keys": Keys, "a function": lambda: function}[claim]()
    model = ScriptedChatModel(
        replies=lambda messages, **_: "Done." if messages[-1].type == "tool" else first,
        tools=[inner, bank.pay],
        requires_approval=["pay", "helper"],
        claim=store,
        parallel=False,
    )
    history = asked(model)
    history += way(model, history, [call.approve() for call in pending_calls(history)])
    assert (bank.did, [call.args["to"] for call in pending_calls(history)]) == ([], ["Bert", "inside"])
    new = way(model, history, [call.approve() for call in pending_calls(history)])
    assert (bank.did, texts(new)) == (["inside", "Bert"], ["Helped.", "paid Bert", "Done."])


def test_a_late_click_on_an_agent_that_waits_again_repeats_nothing() -> None:
    """The run inside has made requests and run tools of its own: the same decisions bring the call that waits now, and no more."""
    bank, store = Bank(), MemoryClaims()
    inner = bank.model(None, "inside", name="helper", tools=[bank.pay, bank.note], requires_approval=["pay"])
    asks = AIMessage("", tool_calls=[{"id": "h", "name": "helper", "args": {"question": "?"}}])
    model = ScriptedChatModel(
        replies=lambda messages, **_: "Done." if messages[-1].type == "tool" else asks,
        tools=[inner],
        requires_approval=["helper"],
        claim=store,
    )
    history = asked(model)
    decisions = [call.approve() for call in pending_calls(history)]
    first, again = model.resume(history, decisions), model.resume(history, decisions)
    requests = len(inner.requests)
    assert [one.to_dict() for one in pending_calls(again)] == [one.to_dict() for one in pending_calls(first)]
    assert requests == 1
    later = [*history, *new_messages(again)]
    approved = [call.approve() for call in pending_calls(later)]
    assert model.resume(later, approved).text == model.resume(later, approved).text == "Done."
    assert bank.did == ["inside", "a note"]


# ---------------------------------------------------------------------------------------------- other entrances


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_executor_alone(asynchronous: bool) -> None:
    """The second time it returns the first results; beside a run of its calls it raises; a store that fails lets nothing begin."""
    bank, store = Bank(), MemoryClaims()
    message = calling("Anna", "Bert", message_id="m")

    def execute(claim: Any, decisions: Any) -> list[ToolMessage]:
        executor = ToolExecutor([bank.pay], requires_approval=True, claim=claim)
        if not asynchronous:
            return executor.execute_all(message, decisions=decisions)
        return in_thread(lambda: asyncio.run(executor.aexecute_all(message, decisions=decisions)))  # type: ignore[no-any-return]

    decisions = [call.approve() for call in ToolExecutor([bank.pay], requires_approval=True).pending_calls(message)]

    def beside() -> None:
        with pytest.raises(AlreadyResumedError):
            in_thread(lambda: execute(store, decisions))

    bank.while_paying = beside
    first = execute(store, decisions)
    assert texts(first) == texts(execute(store, decisions)) == ["paid Anna", "paid Bert"]
    assert sorted(bank.did) == ["Anna", "Bert"]


def test_a_model_goes_on_after_an_executor_has_run_the_calls() -> None:
    """Both know the calls by the same keys; the results come from the store, and the request is the model's."""
    bank, store = Bank(), MemoryClaims()
    model = bank.model(store)
    history = asked(model)
    decisions = [call.approve() for call in pending_calls(history)]
    executor = ToolExecutor([bank.pay], requires_approval=True, claim=store)
    executor.execute_all(history[-1], messages=history, decisions=decisions)  # type: ignore[arg-type]
    assert texts(by_invoke(model, history, decisions)) == ["paid Anna", "paid Bert", "", "noted", "Paid."]
    assert sorted(bank.did) == ["Anna", "Bert", "a note"]


def test_an_agent_and_a_bound_model() -> None:
    """`Agent.run(resume=...)`, and a model with `claim` bound."""
    bank, store = Bank(), MemoryClaims()
    bound = bank.model(None).bind(claim=store)
    history = [QUESTION, *new_messages(bound.invoke([QUESTION]))]
    decisions = [call.approve() for call in pending_calls(history)]
    assert texts(new_messages(bound.invoke(history, resume=decisions))) == texts(new_messages(bound.invoke(history, resume=decisions)))
    agents = [Agent(bank.model(store), history=[*history]) for _ in range(2)]
    assert [agent.run(resume=decisions).text for agent in agents] == ["Paid."] * 2
    assert sorted(bank.did) == ["Anna", "Bert", "a note"]


def test_structured_output() -> None:
    """The second resume has the first one's output."""
    bank, store = Bank(), MemoryClaims()
    given = AIMessage("", tool_calls=[{"id": "s", "name": "Sum", "args": {"paid": 2}}])
    schema = {"title": "Sum", "type": "object", "properties": {"paid": {"type": "integer"}}, "required": ["paid"]}
    model = ScriptedChatModel(
        replies=lambda messages, **_: given if messages[-1].type == "tool" else calling("Anna", "Bert"),
        tools=[bank.pay],
        requires_approval=["pay"],
        claim=store,
    )
    structured = model.with_structured_output(schema)
    history = asked(model)
    decisions = [call.approve() for call in pending_calls(history)]
    assert [structured.invoke(history, resume=decisions) for _ in range(2)] == [{"paid": 2}] * 2
    assert len(model.requests) == 2


def test_without_decisions_nothing_is_claimed() -> None:
    """A run whose calls need no approval, one that ends in calls that wait, and one that answers those of its input as interrupted."""
    bank, store = Bank(), MemoryClaims()
    model = bank.model(store)
    history = asked(model)
    model.invoke([*history, HumanMessage("Never mind.")])
    with pytest.raises(RuntimeError):
        ScriptedChatModel(replies=[RuntimeError("down")], tools=[bank.pay], claim=store).invoke("Hi")
    assert (store.log, store.rows, bank.did) == ([], {}, ["a note"])


@pytest.mark.parametrize("lacks", ["take", "done", "release", "end"])
def test_a_store_with_begin_needs_the_other_methods(lacks: str) -> None:
    """It is refused where the model is made, with the name of what is missing."""
    whole = MemoryClaims()
    names = {"take", "begin", "done", "release", "end"} - {lacks}
    partial = type("Partial", (), {name: getattr(whole, name) for name in names})()
    with pytest.raises(ConfigurationError, match=f"needs {lacks} too"):
        ToolExecutor([Bank().pay], claim=partial)


@pytest.mark.parametrize("answer", [True, False, None, "yes", {"type": "ai", "data": {}}])
def test_an_answer_that_says_nothing_is_refused(answer: Any) -> None:
    """`take` of a store that tells who owns what says one of three words, or gives a result."""

    class Odd(MemoryClaims):
        def take(self, key: str, owner: str) -> Any:
            return "mine" if key.startswith("turn.") else answer

    bank = Bank()
    model = bank.model(Odd())
    history = asked(model)
    with pytest.raises(ConfigurationError, match="'mine', 'running', 'left'"):
        model.resume(history, [call.approve() for call in pending_calls(history)])
    assert bank.did == []


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_store_that_is_silent_until_the_deadline_lets_nothing_begin(asynchronous: bool) -> None:
    """The run ends at its deadline; what is claimed too late is given back."""
    bank, go_on, gave_back = Bank(), threading.Event(), threading.Event()

    class Silent(MemoryClaims):
        def take(self, key: str, owner: str) -> Any:
            go_on.wait(30)
            return super().take(key, owner)

        def release(self, key: str, owner: str) -> None:
            super().release(key, owner)
            gave_back.set()

    store = Silent()
    model = bank.model(store)
    history = asked(model)
    decisions = [call.approve() for call in pending_calls(history)]
    bound: Any = model.bind(deadline=0.1)
    run = asyncio.run(bound.ainvoke(history, resume=decisions)) if asynchronous else bound.invoke(history, resume=decisions)
    assert (stop_reason(run), bank.did) == ("deadline", [])
    go_on.set()
    assert gave_back.wait(30)
    assert all(row.state != "begun" for row in store.rows.values())


@pytest.mark.further
def test_waiting_for_a_store_after_the_deadline_leaves_the_processor_free() -> None:
    """The store has a second more to answer, and the run does not check all the time whether it has."""
    bank, go_on = Bank(), threading.Event()

    class Slow(MemoryClaims):
        def done(self, key: str, owner: str, value: dict[str, Any]) -> bool:
            return go_on.wait(30) if key.startswith("turn.") else super().done(key, owner, value)

    model = bank.model(Slow(), "Anna")
    history = asked(model)
    decisions = [call.approve() for call in pending_calls(history)]
    bound: Any = model.bind(deadline=0.2)
    begun = time.thread_time()
    bound.invoke(history, resume=decisions)
    spent = time.thread_time() - begun
    go_on.set()
    assert bank.did == ["Anna", "a note"] and spent < 0.4


@ways
def test_a_history_that_has_some_results_already_is_given_the_others(way: Any) -> None:
    """Another page has decided about all; one that decides one by one gets each result once, and then what the run brought."""
    bank, store = Bank(), MemoryClaims()
    model = bank.model(store)
    history = asked(model)
    anna, bert = pending_calls(history)
    first = way(model, history, [anna.approve(), bert.approve()])
    requests = len(model.requests)
    slowly = [*history, *way(model, history, [bert.reject("No.")])]
    assert texts(slowly[2:]) == ["paid Bert"]
    assert texts(way(model, slowly, [anna.approve()])) == ["paid Anna", *texts(first)[2:]]
    assert (sorted(bank.did), len(model.requests)) == (["Anna", "Bert", "a note"], requests)


@ways
def test_decided_one_by_one_a_history_without_results_is_given_all(way: Any) -> None:
    """The other way round: the first page decides one by one, a second one all at once."""
    bank, store = Bank(), MemoryClaims()
    model = bank.model(store)
    history = asked(model)
    anna, bert = pending_calls(history)
    slowly = [*history, *way(model, history, [bert.approve()])]
    first = way(model, slowly, [anna.approve()])
    requests = len(model.requests)
    again = way(model, history, [anna.approve(), bert.approve()])
    assert texts(again) == ["paid Anna", "paid Bert", *texts(first)[1:]]
    assert (sorted(bank.did), len(model.requests)) == (["Anna", "Bert", "a note"], requests)
