"""What becomes of a run whose process dies."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import tool

from langchain_autotools import new_messages, stop_reason
from langchain_autotools.durable import RunFailedError, shutdown
from langchain_autotools.encoders import ai_sdk
from langchain_autotools.event_types import MessageDiscarded, MessageDone, TextDelta
from tests.support.durable import Life, answered, asks, contents, crash, double, kind
from tests.support.statements import statements


def test_what_was_recorded_is_not_done_again(life: Life) -> None:
    """After a crash the run goes on behind the last step that was recorded: no request is made twice, no call runs twice."""
    asked, ran, crashes = [], [], [True]

    @tool
    def note(what: str) -> str:
        """Note something."""
        ran.append(what)
        return f"noted {what}"

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        asked.append(len(messages))
        if len(messages) == 4 and crashes.pop():
            crash()
        return asks(("note", {"what": "a"}), ("note", {"what": "b"})) if len(messages) == 1 else "Noted."

    chat = life.model(reply, [note])
    life.begin()
    with pytest.raises(RunFailedError):
        chat.invoke("Go", run_id="one")
    life.again()
    crashes.append(False)
    run = chat.result("one")
    assert contents(run) == ["", "noted a", "noted b", "Noted."]
    assert asked == [1, 4, 4] and sorted(ran) == ["a", "b"]


@pytest.mark.parametrize("rerun", [(), ("pay",)])
def test_a_call_that_was_running_is_answered_as_interrupted_unless_it_may_run_again(life: Life, rerun: Any) -> None:
    """At most once by default: nobody knows what a call did whose process died. A tool that is named in `rerun` runs again."""
    ran = []

    @tool
    def pay(who: str) -> str:
        """Pay somebody."""
        ran.append(who)
        if len(ran) == 1:
            crash()
        return f"paid {who}"

    chat = life.model(lambda messages, **_: "Done." if answered(messages) else asks(("pay", {"who": "alice"})), [pay], rerun=rerun)
    life.begin()
    with pytest.raises(RunFailedError):
        chat.invoke("Go", run_id="one")
    life.again()
    _, result, _ = new_messages(chat.result("one"))
    assert isinstance(result, ToolMessage)
    if rerun:
        assert result.content == "paid alice" and len(ran) == 2
    else:
        assert result.status == "error" and "interrupted, outcome unknown" in str(result.content) and len(ran) == 1


def test_results_are_not_swapped_where_calls_begin_in_another_order_after_a_crash(life: Life) -> None:
    """Steps are numbered in call order, whichever call begins first: each recorded result answers its own call."""
    both, asked = threading.Barrier(2), []

    @tool
    def pay(who: str) -> str:
        """Pay somebody."""
        both.wait(20)
        return f"paid {who}"

    def late(call: Any) -> None:
        """In the first life the first call is the last to begin."""
        if call.args["who"] == "alice":
            time.sleep(0.2)

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        if not answered(messages):
            return asks(("pay", {"who": "alice"}), ("pay", {"who": "bob"}))
        asked.append(1)
        if len(asked) == 1:
            crash()
        return "Done."

    chat = life.model(reply, [pay], on_executing=late)
    life.begin()
    with pytest.raises(RunFailedError):
        chat.invoke("Go", run_id="one")
    life.again()
    assert contents(chat.result("one")) == ["", "paid alice", "paid bob", "Done."]


def test_a_deadline_counts_from_the_first_life_of_a_run(life: Life) -> None:
    """A run that goes on after its deadline keeps what was recorded, and makes no request and no call."""
    now, asked = [1000.0], []

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        asked.append(len(messages))
        if answered(messages):
            crash()
        return asks(("double", {"number": 4}))

    chat = life.model(reply, [double])
    life.begin(clock=lambda: now[0])
    with pytest.raises(RunFailedError):
        chat.invoke("Go", run_id="one", deadline=60)
    now[0] += 100
    life.again(clock=lambda: now[0])
    run = chat.result("one")
    assert (contents(run), stop_reason(run), asked) == (["", "8"], "deadline", [1, 3])


def test_a_reader_drops_the_text_of_a_dead_attempt(life: Life) -> None:
    """Text of a turn that was never recorded is told to be void, and the turn is told anew; positions stay; a page need not see it."""
    lives: list[int] = []
    seen = threading.Event()

    def reply(messages: list[BaseMessage], **_: Any) -> Iterator[str]:
        lives.append(1)
        yield "abcd"
        if len(lives) == 1:
            assert seen.wait(20)
            crash()
        yield "ef"

    chat = life.model(reply)
    life.begin()
    chunks = chat.stream("Go", run_id="one")
    next(chunks)
    told = chat.events("one")
    begun = [next(told), next(told)]
    seen.set()
    with pytest.raises(RunFailedError):
        list(chunks)
    life.again()
    assert chat.result("one").text == "abcdef"
    whole = list(chat.events("one"))
    kinds = [kind(event) for event in whole]
    assert kinds[:3] == ["RunStarted", "TextDelta abcd", "MessageDiscarded 1"] and kinds[-2:] == ["MessageDone abcdef", "RunEnded"]
    assert "".join(event.text for event in whole[3:] if isinstance(event, TextDelta)) == "abcdef"
    assert isinstance(whole[1], TextDelta) and isinstance(whole[2], MessageDiscarded) and whole[2].message_id == whole[1].message_id
    assert [event.position for event in whole] == [str(number) for number in range(len(whole))] and whole[:2] == begun
    assert list(chat.events("one", after=whole[2].position)) == whole[3:]
    shown = b"".join(ai_sdk(chat.events("one"), whole_turns=True)).decode()
    assert "".join(re.findall('"delta":"([^"]*)"', shown)) == "abcdef" and "discarded" not in shown


@pytest.mark.parametrize("told", [True, False])
def test_the_runs_of_a_silent_worker_are_taken_over(life: Life, told: bool) -> None:
    """Another worker goes on with them after the lease, although the first never comes back, or died before it told that it lives.

    What the first has told of itself is deleted then.
    """
    lives, row = [], "langchain_autotools worker first of"

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        lives.append(1)
        if len(lives) == 1:
            crash()
        return "Here I am."

    chat = life.model(reply)
    life.begin("first")
    with pytest.raises(RunFailedError):
        chat.invoke("Go", run_id="one")
    shutdown()
    if not told:
        life.forget_workers()
    life.begin("second", lease=1.0)
    assert chat.result("one").text == "Here I am."
    until = time.monotonic() + 30
    while told and row in life.dump():
        assert time.monotonic() < until, "the row of a worker that has nothing left is deleted"
        time.sleep(0.02)


def test_pending_runs_are_read_once_in_a_lease_where_no_worker_is_silent(life: Life) -> None:
    """The database has no index that finds them: with many stored runs each look would be dear."""
    with statements("") as made:
        life.begin("first", lease=2.0)
        until = time.monotonic() + 30
        while (beats := sum("attributes=" in one and one.startswith("UPDATE") for one in made)) < 8:
            assert time.monotonic() < until, beats
            time.sleep(0.02)
        reads = [one for one in made if "status IN" in one and "application_version IN" in one and one.endswith("created_at ASC")]
    assert 1 <= len(reads) <= 3


def test_a_run_that_was_taken_and_not_begun_waits_again(life: Life) -> None:
    """As where the database fails between the two: the worker that took it looks after it, and nobody has to launch again."""
    chats = life.conversations(lambda messages, **_: "Here I am.")
    life.begin(lease=1.0)
    sent = chats.send("alice", "Go")
    chats.result(sent, timeout=30)
    with closing(life.database()) as database, database:
        database.execute("delete from workflow_output where workflow_uuid = ?", [sent.run_id])
        taken = "update workflow_status set status = 'PENDING', completed_at = null where workflow_uuid = ?"
        assert database.execute(taken, [sent.run_id]).rowcount == 1
    assert chats.result(sent, timeout=30).text == "Here I am."


def test_a_programs_own_workflow_is_no_run_that_was_not_begun(life: Life) -> None:
    """It may take as long as it likes: when a run beside it has been looked after, it is what it was."""
    chats = life.conversations(lambda messages, **_: "Here I am.")
    life.begin(lease=1.0)
    run, own = (chats.send(name, "Go") for name in ("alice", "bob"))
    for sent in (run, own):
        chats.result(sent, timeout=30)
    with closing(life.database()) as database, database:
        database.execute("delete from workflow_output")
        database.execute("update workflow_status set name = 'theirs' where workflow_uuid = ?", [own.run_id])
        taken = "update workflow_status set status = 'PENDING', completed_at = null where workflow_uuid in (?, ?)"
        assert database.execute(taken, [run.run_id, own.run_id]).rowcount == 2
        status = "select * from workflow_status where workflow_uuid = ?"
        before = database.execute(status, [own.run_id]).fetchall()
    assert chats.result(run, timeout=30).text == "Here I am."
    with closing(life.database()) as database:
        assert database.execute(status, [own.run_id]).fetchall() == before


def test_workers_may_come_back_with_the_database(life: Life) -> None:
    """Where the database was away for longer than the lease all were silent: each has time to tell that it lives."""
    lives = []

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        lives.append(1)
        if len(lives) == 1:
            crash()
        return "Here I am."

    chat = life.model(reply)
    life.begin("first")
    with pytest.raises(RunFailedError):
        chat.invoke("Go", run_id="one")
    shutdown()
    life.tell("first")
    life.begin("second", lease=2.0)
    life.tell("first")
    with life.away():
        time.sleep(3)
    for _ in range(6):
        time.sleep(0.5)
        life.tell("first")
    assert len(lives) == 1
    assert chat.result("one").text == "Here I am."


class _CrashesOnce(BaseCallbackHandler):
    """Ends the process when a run has ended and nobody has recorded it yet."""

    raise_error = True

    def __init__(self) -> None:
        self.crashed = False

    def on_chain_end(self, *args: Any, **kwargs: Any) -> None:
        if not self.crashed:
            self.crashed = True
            crash()


@pytest.mark.parametrize("ended_by", ["deadline", "cancelled"])
def test_a_turn_that_was_cut_stays_cut(life: Life, ended_by: str) -> None:
    """A turn that the deadline or the caller has ended is recorded with what had come; it is not asked for again."""
    asked = []

    def reply(messages: list[BaseMessage], **_: Any) -> Iterator[str]:
        asked.append(1)
        yield "first"
        if ended_by == "cancelled":
            chat.cancel("one")
        else:
            now[0] += 100
            time.sleep(0.6)
        yield " second"
        yield " third"

    now = [time.time()]
    chat = life.model(reply, callbacks=[_CrashesOnce()])
    life.begin(clock=lambda: now[0])
    with pytest.raises(RunFailedError):
        chat.invoke("Go", run_id="one", **({"deadline": 0.5} if ended_by == "deadline" else {}))
    life.again(clock=lambda: now[0])
    run = chat.result("one")
    assert (stop_reason(run), contents(run), asked) == (ended_by, ["first second"], [1])


def test_the_messages_of_a_server_that_gives_all_its_replies_one_id_are_all_read(life: Life) -> None:
    """Readers have every message, each once, also where a run goes on after a crash."""
    lives: list[int] = []

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        if len(messages) < 5:
            call = {"name": "double", "args": {"number": len(messages)}, "id": f"call {len(messages)}"}
            return AIMessage(f"Turn {len(messages)}.", id="always", tool_calls=[call])
        lives.append(1)
        if len(lives) == 1:
            crash()
        return AIMessage("Done.", id="always")

    chat = life.model(reply, [double])
    life.begin()
    with pytest.raises(RunFailedError):
        chat.invoke("Go", run_id="one")
    life.again()
    said = contents(chat.result("one"))
    told = list(chat.events("one"))
    assert said == ["Turn 1.", "2", "Turn 3.", "6", "Done."] == [event.message.content for event in told if isinstance(event, MessageDone)]
    texts: list[str] = []
    for event in told:
        if isinstance(event, TextDelta):
            texts.append(event.text)
        elif isinstance(event, MessageDiscarded):  # of the first life, where it died before it had told of the end
            texts.pop()
    assert texts == ["Turn 1.", "Turn 3.", "Done."]


def test_the_separators_of_a_run_are_kept(life: Life) -> None:
    """A reader that joins the texts has the text of the run message, also where a run goes on after a crash."""
    lives: list[int] = []

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        if not answered(messages):
            return asks(("double", {"number": 2}), text="Let me look.")
        lives.append(1)
        if len(lives) == 1:
            crash()
        return ["It ", "is ", "4."]

    chat = life.model(reply, [double])
    life.begin()
    with pytest.raises(RunFailedError):
        chat.invoke("Go", run_id="one")
    life.again()
    text = chat.result("one").text
    told: dict[str, str] = {}
    for event in chat.events("one"):
        if isinstance(event, TextDelta):
            told[event.message_id] = told.get(event.message_id, "") + event.separator + event.text
        elif isinstance(event, MessageDiscarded):  # of the first life, where it died before it had told of the end
            del told[event.message_id]
    assert "".join(told.values()) == text == "Let me look.\nIt is 4."
