"""Conversations: who is answered when, what is decided once, what a reader sees, what becomes of them."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from dbos import DBOS
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, messages_from_dict
from langchain_core.tools import tool

from langchain_autotools import pending_calls, stop_reason
from langchain_autotools.durable import Conversations, RunFailedError, shutdown
from langchain_autotools.durable.workers import CANCELLED
from langchain_autotools.errors import ConfigurationError
from langchain_autotools.event_types import MessageDone, MessagesAdded, RunEnded, RunFailed, TextDelta
from langchain_autotools.testing import ScriptedChatModel
from tests.support.durable import Life, answered, asks, contents, counting, crash, double, kind


def said(messages: list[BaseMessage]) -> list[tuple[str, str]]:
    """The messages in short."""
    return [(message.type, message.text) for message in messages]


def test_a_message_is_answered_and_the_next_one_knows_what_was_said(life: Life) -> None:
    """Runs follow one another in the order in which their messages were sent; nobody has to wait in between."""
    chats = life.conversations(counting, [double])
    sent = [chats.send("alice", text) for text in ("Hello", "double 4", "Bye")]
    assert [chats.result(one).text for one in sent] == ["1: Hello", "Let me see.\nIt is 8.", "7: Bye"]
    assert said(chats.messages("alice")) == [
        ("human", "Hello"),
        ("ai", "1: Hello"),
        ("human", "double 4"),
        ("ai", "Let me see."),
        ("tool", "8"),
        ("ai", "It is 8."),
        ("human", "Bye"),
        ("ai", "7: Bye"),
    ]


def test_a_message_that_is_sent_twice_is_answered_once(life: Life) -> None:
    """Its id says that it is the same, from whichever thread it comes."""
    chats = life.conversations(counting)
    with ThreadPoolExecutor(6) as pool:
        sent = list(pool.map(lambda number: chats.send("alice", HumanMessage("Hello", id=f"m{number % 2}")), range(6)))
    assert len({one.run_id for one in sent}) == 2
    chats.result(sent[0])
    chats.result(sent[1])
    assert sorted(message.type for message in chats.messages("alice")) == ["ai", "ai", "human", "human"]


def test_one_run_at_a_time_in_each_conversation_in_the_order_sent(life: Life) -> None:
    """However many are sent at once, and although conversations are answered side by side."""
    lock, running, most, order = threading.Lock(), {"a": 0, "b": 0}, {"a": 0, "b": 0}, {"a": [], "b": []}  # type: ignore[var-annotated]
    meet = threading.Barrier(2)

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        which, number = messages[-1].text.split()
        with lock:
            running[which] += 1
            most[which] = max(most[which], running[which])
            order[which].append(number)
        if number == "0":
            meet.wait(20)  # both conversations are at work
        with lock:
            running[which] -= 1
        return "Yes."

    chats = life.conversations(reply)
    sent = [chats.send(which, f"{which} {number}") for number in range(6) for which in ("a", "b")]
    for one in sent:
        chats.result(one)
    assert most == {"a": 1, "b": 1}
    assert order["a"] == order["b"] == [str(number) for number in range(6)]


def test_events_are_read_from_any_position(life: Life) -> None:
    """Each event has a position, which is the same each time; `send` says the one before its own events."""
    chats = life.conversations(counting, [double])
    chats.send("alice", HumanMessage("Hello", id="m1"))
    second = chats.send("alice", "double 1 2")
    told = list(chats.events("alice"))
    assert isinstance(told[0], MessagesAdded) and [one.id for one in told[0].messages] == ["m1"]
    assert [kind(event).split()[0] for event in told if event.run_id == second.run_id][:2] == ["MessagesAdded", "RunStarted"]
    done = [event.message for event in told if isinstance(event, MessageDone)]
    assert done == [message for message in chats.messages("alice") if message.type != "human"]
    assert len({event.position for event in told}) == len(told)
    for number in (0, 3, len(told) - 1):
        assert list(chats.events("alice", after=told[number].position)) == told[number + 1 :]
    assert list(chats.events("alice", after=second.position)) == [event for event in told if event.run_id == second.run_id]
    shutdown()
    life.begin("another")
    assert list(chats.events("alice")) == told


def test_a_reader_may_wait_for_what_is_to_come(life: Life) -> None:
    """With `follow` it hears of the next message; without, it ends where all is answered; it may give up."""
    chats = life.conversations(counting)
    told = chats.events("alice", follow=True, timeout=20)
    chats.send("alice", "Hello")
    assert [kind(event).split()[0] for event in islice(told, 5)] == ["MessagesAdded", "RunStarted", "TextDelta", "MessageDone", "RunEnded"]
    chats.send("alice", "Bye")
    assert isinstance(next(told), MessagesAdded)
    told.close()
    assert list(chats.events("nobody")) == [] and chats.messages("nobody") == [] and chats.pending("nobody") == []
    with pytest.raises(TimeoutError):
        list(chats.events("nobody", follow=True, timeout=0.2))


def test_text_is_told_while_it_is_written(life: Life) -> None:
    """A reader has the first word before the second is there, and `messages` has what is complete."""
    go_on = threading.Event()

    def slowly(messages: list[BaseMessage], **_: Any) -> Iterator[str]:
        yield "first"
        assert go_on.wait(20)
        yield " second"

    chats = life.conversations(slowly)
    sent = chats.send("alice", "Go")
    waits = chats.send("alice", "Then")
    for event in chats.events("alice"):
        if isinstance(event, TextDelta):
            break
    assert said(chats.messages("alice")) == [("human", "Go"), ("human", "Then")]
    with pytest.raises(TimeoutError):
        chats.result(sent, timeout=0.1)
    go_on.set()
    assert chats.result(waits).text == "first second"


def test_calls_are_decided_once(life: Life) -> None:
    """The run goes on with the decisions; the same ones again do nothing, and others are refused."""
    ran = []

    @tool
    def pay(who: str) -> str:
        """Pay somebody."""
        ran.append(who)
        return f"paid {who}"

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        return "Done." if answered(messages) else asks(("pay", {"who": "alice"}), ("pay", {"who": "bob"}))

    chats = life.conversations(reply, [pay], requires_approval=["pay"])
    chats.result(chats.send("c", "Go"))
    first, second = chats.pending("c")
    one = chats.decide("c", [first.approve()])
    assert chats.decide("c", [first.approve()]) == one
    assert [call.id for call in chats.pending("c")] == [second.id]
    assert stop_reason(chats.result(one)) == "calls_pending"
    with pytest.raises(ConfigurationError, match="decided otherwise"):
        chats.decide("c", [first.reject()])
    other = chats.decide("c", [second.edit({"who": "carol"}).to_dict()])  # type: ignore[list-item]
    assert chats.decide("c", [first.approve(), second.edit({"who": "carol"})]) == other
    assert chats.result(other).text == "Done." and ran == ["alice", "carol"] and chats.pending("c") == []


def test_a_user_decides_and_types_at_once(life: Life) -> None:
    """The message joins the conversation behind the results, once, whoever sends the decisions again; the run after it has none."""
    chats = life.conversations(counting, [double], requires_approval=["double"])
    chats.result(chats.send("c", "double 3"))
    (call,) = chats.pending("c")
    one = chats.decide("c", [call.approve()], message="And be quick.")
    assert chats.decide("c", [call.approve()], message="And be quick.") == one == chats.decide("c", [call.approve()])
    assert chats.result(one).text == "4: And be quick."
    assert said(chats.messages("c"))[2:] == [("tool", "6"), ("human", "And be quick."), ("ai", "4: And be quick.")]
    told: list[BaseMessage] = [event.message for event in chats.events("c") if isinstance(event, MessageDone)]
    assert said(told)[1:] == said(chats.messages("c"))[2:]
    with pytest.raises(ConfigurationError, match="decided before, without this message: send it"):
        chats.decide("c", [call.approve()], message="And then?")
    with pytest.raises(ConfigurationError, match="message must be what a user says"):
        chats.decide("c", [call.approve()], message=3)  # type: ignore[arg-type]
    chats.result(chats.send("c", "double 4"))
    (call,) = chats.pending("c")
    taken = chats.messages("c")[3]
    assert isinstance(taken, HumanMessage)
    with pytest.raises(ConfigurationError, match="has a message"):
        chats.decide("c", [call.approve()], message=taken)
    chats.result(chats.decide("c", [call.approve()]))
    assert [one.text for one in chats.messages("c") if one.type == "human"] == ["double 3", "And be quick.", "double 4"]


def test_a_message_beside_decisions_that_leave_calls_is_not_sent(life: Life) -> None:
    """The end says so, and the run that decides about the rest has none."""
    chats = life.conversations(counting, [double], requires_approval=["double"])
    chats.result(chats.send("c", "double 3 4"))
    first, second = chats.pending("c")
    left = chats.result(chats.decide("c", [first.approve()], message="And be quick."))
    assert left.response_metadata["autotools"]["message_sent"] is False
    chats.result(chats.decide("c", [second.approve()]))
    assert [one.type for one in chats.messages("c")] == ["human", "ai", "tool", "tool", "ai"]


def test_a_message_survives_a_crash_of_the_run_that_took_it(life: Life) -> None:
    """It has the same id then, and is once in the history."""
    crashes = [True]

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        if messages[-1].text == "And be quick." and crashes:
            crashes.clear()
            crash()
        return counting(messages)

    chats = life.conversations(reply, [double], requires_approval=["double"])
    chats.result(chats.send("c", "double 3"))
    (call,) = chats.pending("c")
    sent = chats.decide("c", [call.approve()], message=HumanMessage("And be quick."))
    with pytest.raises(TimeoutError):
        chats.result(sent, timeout=0.5)
    life.again()
    assert said(chats.messages("c") if chats.result(sent) else [])[2:] == [
        ("tool", "6"),
        ("human", "And be quick."),
        ("ai", "4: And be quick."),
    ]
    told = [event.message.id for event in chats.events("c") if isinstance(event, MessageDone)]
    assert told == [one.id for one in chats.messages("c")[1:]]


def test_a_failed_run_that_is_tried_again_has_its_message(life: Life) -> None:
    """Whether it had taken the message or not, each is once in the history."""
    failures = [True]

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        if messages[-1].text == "And be quick." and failures:
            failures.clear()
            raise RuntimeError("gone")
        return counting(messages)

    chats = life.conversations(reply, [double], requires_approval=["double"])
    limits: list[dict[str, Any]] = [{}, {"max_tool_calls": 1, "on_limit": "raise"}]  # of the second run, the call behind the limit
    for name, keywords in zip("cd", limits, strict=True):
        chats.result(chats.send(name, "double 3 4", **keywords))
        failed = chats.decide(name, [call.approve() for call in chats.pending(name)], message="And be quick.")
        with pytest.raises(RunFailedError):
            chats.result(failed)
        assert [one.type for one in chats.messages(name)][2:] == ["tool", "tool", *(["human"] if name == "c" else [])]
        chats.result(chats.retry(failed))
        assert said(chats.messages(name))[4:] == [("human", "And be quick."), ("ai", "5: And be quick.")]


def test_decisions_about_calls_that_do_not_wait_are_refused(life: Life) -> None:
    """Where a message was sent after them nobody is asked any more: the model is told that they did not run."""
    chats = life.conversations(counting, [double], requires_approval=["double"])
    chats.result(chats.send("c", "double 3"))
    (call,) = chats.pending("c")
    sent = chats.send("c", "Forget it")
    with pytest.raises(ConfigurationError, match="does not wait"):
        chats.decide("c", [call.approve()])
    assert chats.pending("c") == [] and chats.result(sent).text.endswith("Forget it")
    with pytest.raises(ConfigurationError, match="does not wait"):
        chats.decide("c", [call.approve()])
    with pytest.raises(ConfigurationError, match="decide takes decisions"):
        chats.decide("c", [])


def test_a_run_that_fails_does_not_end_its_conversation(life: Life) -> None:
    """`result` raises with what had completed, a reader is told, and the next message is answered."""
    lives = []

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        if messages[-1].text == "Bye":
            return "Bye."
        if answered(messages):
            raise ValueError("the vendor is out")
        return asks(("double", {"number": 4}), text="Let me see.")

    chats = life.conversations(reply, [double])
    sent, after = chats.send("alice", "Go"), chats.send("alice", "Bye")
    with pytest.raises(RunFailedError, match="ValueError: the vendor is out") as raised:
        chats.result(sent)
    assert contents(raised.value) == ["Let me see.", "8"]
    assert chats.result(after).text == "Bye."
    assert [type(event) for event in chats.events("alice") if isinstance(event, RunFailed | RunEnded)] == [RunFailed, RunEnded]
    assert [text for _, text in said(chats.messages("alice"))] == ["Go", "Let me see.", "8", "Bye", "Bye."]
    assert not lives


def test_cancel_ends_what_runs_and_what_waits(life: Life) -> None:
    """Each returns what it has; what is sent later is answered."""
    begun, left = threading.Event(), threading.Event()

    def reply(messages: list[BaseMessage], **_: Any) -> Iterator[str]:
        if messages[-1].text != "Go":
            yield "Later."
            return
        yield "Wait"
        begun.set()
        while not left.wait(0.05):
            yield "."

    chats = life.conversations(reply)
    sent, waits = chats.send("alice", "Go"), chats.send("alice", "Then")
    assert begun.wait(20)
    chats.cancel("alice")
    assert stop_reason(chats.result(sent)) == stop_reason(chats.result(waits)) == "cancelled"
    left.set()
    assert chats.result(chats.send("alice", "Now")).text == "Later."
    assert said(chats.messages("alice"))[2:] == [("human", "Then"), ("human", "Now"), ("ai", "Later.")]


def test_cancel_reaches_what_waits_before_it_can_begin(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the database is, none of the waiting runs is begun between two of its statements."""
    begun, asked = threading.Event(), []

    def reply(messages: list[BaseMessage], **_: Any) -> Iterator[str]:
        asked.append(messages[-1].text)
        yield "Wait"
        begun.set()
        while messages[-1].text == "Go":
            threading.Event().wait(0.01)
            yield "."

    chats = life.conversations(reply)
    runs = [chats.send("alice", text) for text in ("Go", "Then", "And then")]
    assert begun.wait(20)
    update = DBOS.update_workflow_attributes

    def slowly(run: str, *args: Any, **keywords: Any) -> None:
        update(run, *args, **keywords)
        if run == runs[0].run_id and CANCELLED in args[0]:
            chats.result(runs[-1], timeout=20)

    monkeypatch.setattr(DBOS, "update_workflow_attributes", slowly)
    chats.cancel("alice")
    monkeypatch.undo()
    assert [stop_reason(chats.result(run)) for run in runs] == ["cancelled"] * 3
    assert asked == ["Go"]


@pytest.mark.parametrize("taken_over", [False, True])
def test_a_conversation_goes_on_after_a_crash_in_its_order(life: Life, taken_over: bool) -> None:
    """What was sent waits behind the run whose process died, in the same worker or in another one."""
    ran, lives = [], []

    @tool
    def pay(who: str) -> str:
        """Pay somebody."""
        ran.append(who)
        return f"paid {who}"

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        if messages[-1].text == "Then":
            return f"{len(messages)} messages."
        if not answered(messages):
            return asks(("pay", {"who": "alice"}))
        lives.append(1)
        if len(lives) == 1:
            crash()
        return "Done."

    chats = life.conversations(reply, [pay])
    life.begin("first", lease=1.0)
    sent, then = chats.send("c", "Go"), chats.send("c", "Then")
    while not lives:
        threading.Event().wait(0.05)
    shutdown()
    life.begin("second" if taken_over else "first", lease=1.0)
    assert (chats.result(sent).text, chats.result(then).text, ran) == ("Done.", "5 messages.", ["alice"])
    assert [event.text for event in chats.events("c") if isinstance(event, TextDelta)] == ["Done.", "5 messages."]


def test_calls_that_were_shown_before_a_crash_can_be_decided_about_after_it(life: Life) -> None:
    """What a reader was told of them holds, also where the run had to go on before it ended."""
    told = threading.Event()

    @tool
    def wait(number: int) -> int:
        """Wait for the reader of the calls beside this one, and crash."""
        assert told.wait(20)
        crash()

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        return "Done." if answered(messages) else asks(("double", {"number": 4}), ("wait", {"number": 1}))

    chats = life.conversations(reply, [double, wait], requires_approval=["double"])
    life.begin()
    sent = chats.send("c", "Go")
    shown = next(event.message for event in chats.events("c") if isinstance(event, MessageDone))
    told.set()
    with pytest.raises(TimeoutError):
        chats.result(sent, timeout=0.5)
    life.again()
    assert stop_reason(chats.result(sent)) == "calls_pending" and shown == chats.messages("c")[1]
    call, _ = pending_calls([shown])
    assert chats.result(chats.decide("c", [call.approve()])).text == "Done."


def test_conversations_are_listed_copied_exported_and_deleted(life: Life) -> None:
    """A copy ends in the message it is made at, and shares nothing with the other conversation."""
    chats = life.conversations(counting)
    for which in ("a/b", "a", "ünï_%"):
        chats.result(chats.send(which, HumanMessage("Hello", id=f"of {which}")))
    assert [one.id for one in chats.list()] == ["ünï_%", "a", "a/b"]
    assert [one.id for one in chats.list(limit=1, offset=1)] == ["a"]
    copy = chats.fork("a/b", "of a/b", to="copy")
    assert chats.result(chats.send(copy, "Bye")).text == "2: Bye"
    exported = chats.export("a/b")
    assert messages_from_dict(exported["messages"]) == chats.messages("a/b")
    assert [(run["kind"], run["status"], run["error"]) for run in exported["runs"]] == [("send", "ended", None)]
    chats.delete("a/b")
    assert chats.messages("a/b") == [] and said(chats.messages("a")) == [("human", "Hello"), ("ai", "1: Hello")]
    assert said(chats.messages(copy)) == [("human", "Hello"), ("human", "Bye"), ("ai", "2: Bye")]
    assert "of a/b" in life.dump()  # in the copy
    chats.delete(copy)
    assert "of a/b" not in life.dump()
    with pytest.raises(ConfigurationError, match="has no message"):
        chats.fork("a", "of b")
    with pytest.raises(ConfigurationError, match="there is a conversation 'a'"):
        chats.fork("ünï_%", "of ünï_%", to="a")


def test_a_conversation_that_goes_on_can_be_deleted(life: Life) -> None:
    """The run ends, a reader is told, and the id can be used again."""
    begun = threading.Event()

    def reply(messages: list[BaseMessage], **_: Any) -> Iterator[str]:
        yield "Wait"
        begun.set()
        while messages[-1].text == "Go":
            yield " on"
            threading.Event().wait(0.05)

    chats = life.conversations(reply)
    chats.send("a", "Go")
    chats.send("a", "Go")
    told = chats.events("a", follow=True)
    assert begun.wait(20) and isinstance(next(told), MessagesAdded)
    chats.delete("a")
    assert isinstance(list(told)[-1], RunEnded | RunFailed) and chats.list() == []
    assert chats.result(chats.send("a", "Now")).text == "Wait"


def test_a_conversation_is_a_message_history_of_langchain(life: Life) -> None:
    """Messages can be read, appended and cleared; what was appended is part of what the model reads."""
    chats = life.conversations(counting)
    history = chats.history("alice")
    history.add_messages([SystemMessage("Be brief.", id="s"), HumanMessage("Hello"), AIMessage("Hi.")])
    history.add_messages([])
    history.add_messages([SystemMessage("Be brief.", id="s")])
    history.add_user_message("Again")
    assert chats.result(chats.send("alice", "Bye")).text == "5: Bye"
    assert [message.text for message in history.messages][:4] == ["Be brief.", "Hello", "Hi.", "Again"]
    history.clear()
    assert history.messages == []


def test_a_process_may_only_send_and_read(life: Life) -> None:
    """With `max_concurrency=0` it leaves the runs to workers, which have them when they come."""
    model = ScriptedChatModel(replies=counting)
    chats = Conversations(model, life.url, name="test", max_concurrency=0)
    sent = chats.send("alice", "Hello")
    with pytest.raises(TimeoutError):
        chats.result(sent, timeout=1.5)
    assert said(chats.messages("alice")) == [("human", "Hello")]
    shutdown()
    assert life.conversations(counting).result(sent, timeout=20).text == "1: Hello"


async def test_every_method_has_an_asynchronous_twin(life: Life) -> None:
    """They do the same, and the event loop goes on meanwhile."""
    chats = life.conversations(counting, [double], requires_approval=["double"])
    sent = await asyncio.gather(*(chats.asend(f"c{number}", "Hello") for number in range(4)))
    assert [(await chats.aresult(one)).text for one in sent] == ["1: Hello"] * 4
    second = await chats.asend("c0", "double 3")
    assert stop_reason(await chats.aresult(second)) == "calls_pending"
    (call,) = await chats.apending("c0")
    decided = await chats.adecide("c0", [call.approve()])
    assert [kind(event) async for event in chats.aevents("c0", after=decided.position)][-1] == "RunEnded"
    assert [event async for event in chats.aevents("c0")] == await asyncio.to_thread(lambda: list(chats.events("c0")))
    await chats.aappend("c1", [HumanMessage("More", id="m")])
    assert await chats.afork("c1", "m", "copy") == "copy"
    assert len(await chats.amessages("copy")) == 3 and len((await chats.aexport("copy"))["messages"]) == 3
    assert {one.id for one in await chats.alist()} == {"c0", "c1", "c2", "c3", "copy"}
    await chats.acancel("copy")
    await chats.adelete("copy")
    history = chats.history("c1")
    await history.aadd_messages([AIMessage("Yes.")])
    assert (await history.aget_messages())[-1].text == "Yes."
    await history.aclear()
    assert {one.id for one in await chats.alist()} == {"c0", "c2", "c3"}
    with pytest.raises(TimeoutError):
        async for _ in chats.aevents("c1", follow=True, timeout=0.2):
            pass
    shutdown()
    assert await asyncio.to_thread(str, 1) == "1"  # the loop's own threads are as they were
