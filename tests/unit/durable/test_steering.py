"""`send(..., while_running="steer")`: a run takes what is sent while it goes on, once, wherever its process ends."""

import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from dbos import DBOS
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.tools import BaseTool, tool

from langchain_autotools import stop_reason
from langchain_autotools.durable import Conversations, RunFailedError
from langchain_autotools.durable.conversation_runs import ConversationRuns
from langchain_autotools.durable.journal import Journal
from langchain_autotools.durable.workers import Executions
from langchain_autotools.errors import ConfigurationError
from langchain_autotools.event_types import MessageDone, MessagesAdded, RunEnded, RunStarted
from langchain_autotools.history import repair
from tests.support.durable import Life, answered, asks, crash

FIRST, SAID = "How warm is it?", "Only in Celsius."
Does = Callable[[], object]


def said(messages: list[BaseMessage]) -> list[str]:
    """The messages in short."""
    return [f"{message.type} {message.text}".strip() for message in messages]


def told(chats: Conversations, conversation: str = "alice") -> list[BaseMessage]:
    """The messages that the events tell."""
    found: list[BaseMessage] = []
    for event in chats.events(conversation, timeout=20):
        found += event.messages if isinstance(event, MessagesAdded) else [event.message] if isinstance(event, MessageDone) else []
    return found


class Chat:
    """A conversation in which something happens in requests and tools; the model looks once, then says how much it has read.

    Args:
        life: Has its worker.
        in_request: What happens in a request, by the number of messages that it has.
        in_tool: What happens in the tool.
        **fields: Fields of the model.
    """

    def __init__(self, life: Life, in_request: Mapping[int, Does] | None = None, in_tool: Does = lambda: None, **fields: Any) -> None:
        self.sent: list[Any] = []
        self.requests: list[list[str]] = []
        self.in_request, self.in_tool = dict(in_request or {}), in_tool
        self.chats = life.conversations(self._reply, [self._look()], **fields)

    def _look(self) -> BaseTool:
        @tool
        def look() -> str:
            """Look."""
            self.in_tool()
            return "70 °F"

        return look

    def _reply(self, messages: list[BaseMessage], **_: Any) -> Any:
        self.requests.append(said(messages))
        self.in_request.pop(len(messages), lambda: None)()
        return asks(("look", {})) if messages[-1].text == FIRST else f"Read {len(messages)}."

    def steer(self, text: str = SAID, **more: Any) -> None:
        """Send something while a run goes on."""
        self.sent.append(self.chats.send("alice", text, **{"while_running": "steer", **more}))

    def ask(self, **more: Any) -> Any:
        """Send the question that is looked up."""
        self.sent.insert(0, self.chats.send("alice", FIRST, **more))
        return self.sent[0]

    def ended(self) -> list[str]:
        """Wait for all that was sent; each message is there once, and readers are told the same. Returns the messages in short."""
        for one in self.sent:
            with suppress(RunFailedError):
                self.chats.result(one, 30)
        messages = self.chats.messages("alice")
        assert told(self.chats) == messages and repair(messages) == messages
        assert len({message.id for message in messages}) == len(messages)
        return said(messages)

    def taken(self) -> list[int | None]:
        """Which run has taken the message of each, by its number."""
        runs = self.chats.export("alice")["runs"]
        return [int(run["taken_by"].rpartition("/")[2]) if "taken_by" in run else None for run in runs]


def test_a_run_takes_what_is_sent_while_its_tools_run(life: Life) -> None:
    """The message is where the model read it, once; its own run ends without a request, and has the answer of the other one."""
    chat = Chat(life)
    chat.in_tool = chat.steer
    first = chat.ask()
    answer = chat.chats.result(first, 20)
    messages = [f"human {FIRST}", "ai", "tool 70 °F", f"human {SAID}", "ai Read 4."]
    assert said(chat.chats.messages("alice")) == messages == chat.ended()
    assert chat.chats.result(chat.sent[1], 20) == answer and chat.taken() == [None, 1] and len(chat.requests) == 2
    events = list(chat.chats.events("alice"))
    assert sum(isinstance(event, RunStarted) for event in events) == sum(isinstance(event, RunEnded) for event in events) == 1
    assert [list(chat.chats.events("alice", after=event.position)) for event in events] == [
        events[number + 1 :] for number in range(len(events))
    ]
    assert list(chat.chats.events("alice", after=chat.sent[1].position)) == []
    info = chat.chats.info("alice")
    assert info is not None and info.state == "idle"
    steps = [step["function_name"] for step in DBOS.list_workflow_steps(first.run_id)]
    assert [name for name in steps if name.startswith("inbox")] == ["inbox 1 0"]
    assert chat.chats.send("alice", "And now?", while_running="steer").run_id.endswith("/3")  # nothing goes on: as with queue


def test_a_message_that_comes_during_the_last_reply_makes_one_more_turn(life: Life) -> None:
    """Also of a model without tools; several keep their order, and the last reply is that of both runs."""
    chat = Chat(life)
    chat.in_request = {3: lambda: (chat.steer("One."), chat.steer("Two."))}
    chat.ask()
    assert chat.ended()[3:] == ["ai Read 3.", "human One.", "human Two.", "ai Read 6."] and chat.taken() == [None, 1, 1]


def test_the_order_of_sending_holds(life: Life) -> None:
    """What steers is not taken before what was queued before it; the queued one's own run takes it."""
    chat = Chat(life)
    chat.in_tool = lambda: (chat.steer("One."), chat.steer("Two.", while_running="queue"), chat.steer("Three."))
    chat.ask()
    rest = ["human One.", "ai Read 4.", "human Two.", "ai Read 6.", "human Three.", "ai Read 8."]
    assert chat.ended()[3:] == rest
    assert chat.taken() == [None, 1, None, 3]


@pytest.mark.parametrize(
    "terms",
    [
        {"tool_choice": "none"},
        *(pytest.param(one, marks=pytest.mark.further) for one in ({"max_turns": 3}, {"config": {"configurable": {"user": "eve"}}})),
    ],
)
def test_a_message_with_other_terms_has_a_run_of_its_own(life: Life, terms: Any) -> None:
    """What it was sent with holds for it: it does not join a run with other keywords, or for another user; nor does what follows it."""
    chat = Chat(life)
    chat.in_tool = lambda: (chat.steer(**terms), chat.steer("Two.", config={"tags": ["web"]}))
    chat.ask(config={"metadata": {"number": "1"}})
    assert chat.ended()[3:] == ["ai Read 3.", f"human {SAID}", "ai Read 5.", "human Two.", "ai Read 7."]
    assert chat.taken() == [None, None, None]


def test_a_message_with_the_same_terms_joins(life: Life) -> None:
    """Tags and metadata may differ: they are for traces."""
    chat = Chat(life)
    same: Any = {"max_turns": 5}
    chat.in_tool = lambda: chat.steer(config={"tags": ["web"], "configurable": {"user": "ann"}}, **same)
    chat.ask(config={"configurable": {"user": "ann"}}, **same)
    assert chat.ended()[-1] == "ai Read 4." and chat.taken() == [None, 1]


def test_what_a_run_does_not_read_is_answered_as_if_it_had_been_queued(life: Life) -> None:
    """At a limit without a last answer, and where calls wait."""
    chat = Chat(life)
    chat.in_tool = chat.steer
    chat.ask(max_tool_calls=0, on_limit="return")
    chat.sent.append(chat.chats.send("alice", "Then?"))
    chat.in_tool = lambda: None
    assert chat.ended()[-1].startswith("ai Read") and None in chat.taken()


def test_a_run_that_has_failed_keeps_what_it_took_and_is_tried_again(life: Life) -> None:
    """The result of both messages is its error; `retry` goes on behind what was taken."""
    chat = Chat(life)
    chat.in_tool = chat.steer
    chat.in_request = {4: _fail}
    chat.ask()
    for one in (0, 1):
        with pytest.raises(RunFailedError, match="Down"):
            chat.chats.result(chat.sent[one], 20)
    info = chat.chats.info("alice")
    assert info is not None and info.state == "failed"
    chat.sent.append(chat.chats.retry(chat.sent[1]))
    assert chat.chats.retry(chat.sent[0]) == chat.sent[-1]
    assert chat.ended() == [f"human {FIRST}", "ai", "tool 70 °F", f"human {SAID}", "ai Read 4."] and chat.taken() == [None, 1, None]


def test_a_failed_run_is_tried_again_before_the_run_of_what_it_took_has_ended(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it took does not come behind it, although the run of that still waits."""
    go_on, chat = _holds_taken(monkeypatch), Chat(life)
    chat.in_tool = chat.steer
    chat.in_request = {4: _fail}
    with pytest.raises(RunFailedError):
        chat.chats.result(chat.ask(), 20)
    assert said(chat.chats.messages("alice"))[3:] == [f"human {SAID}"]
    chat.sent.append(chat.chats.retry(chat.sent[0]))
    go_on.set()
    assert chat.ended()[-1] == "ai Read 4." and chat.taken() == [None, 1, None]


def test_calls_wait_behind_what_was_taken(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are decided about, also before the run of what was taken has ended; the state of the conversation says that they wait."""
    go_on = _holds_taken(monkeypatch)

    @tool
    def pay() -> str:
        """Pay."""
        return "Paid."

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        if len(messages) == 1:
            chats.send("alice", SAID, while_running="steer")
            return "Yes?"
        return "Done." if answered(messages) else asks(("pay", {}))

    chats = life.conversations(reply, [pay], requires_approval=["pay"])
    first = chats.send("alice", FIRST)
    assert stop_reason(chats.result(first, 20)) == "calls_pending"
    waiting = chats.pending("alice")
    assert [call.name for call in waiting] == ["pay"]
    go_on.set()
    until = time.monotonic() + 20
    while (info := chats.info("alice")) is not None and info.state != "calls_pending":
        assert time.monotonic() < until
    decided = chats.decide("alice", [waiting[0].approve()])
    chats.result(decided, 20)
    messages = [f"human {FIRST}", "ai Yes?", f"human {SAID}", "ai", "tool Paid.", "ai Done."]
    assert said(chats.messages("alice")) == messages == said(told(chats))
    copy = chats.fork("alice", str(chats.messages("alice")[3].id))
    assert said(chats.messages(copy)) == messages[:4]


def _fail() -> None:
    raise ValueError("Down.")


def _holds_taken(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Keep the runs of messages that were taken from their end, until somebody sets the event."""
    go_on, end = threading.Event(), ConversationRuns.end_taken

    def later(*args: Any) -> Any:
        assert go_on.wait(20)
        return end(*args)

    monkeypatch.setattr(ConversationRuns, "end_taken", later)
    return go_on


def test_what_steers_a_cancelled_run_is_cancelled_with_it(life: Life) -> None:
    """A run that was cancelled takes nothing; what waited is in the conversation, once, and says the same reason."""
    chat = Chat(life)
    chat.in_tool = lambda: (chat.steer(), chat.chats.cancel("alice"))
    chat.ask()
    history = chat.ended()
    assert [one.split()[0] for one in history] == ["human", "ai", "tool", "human"] and history[-1] == f"human {SAID}"
    assert [stop_reason(chat.chats.result(one)) for one in chat.sent] == ["cancelled"] * 2
    assert chat.chats.delete("alice") == 1 and chat.chats.messages("alice") == []


def test_a_message_that_is_sent_twice_is_read_once(life: Life) -> None:
    """Its id says that it is the same, before and after it was taken."""
    chat, same = Chat(life), HumanMessage(SAID, id="m1")
    chat.in_tool = lambda: [chat.chats.send("alice", same, while_running="steer") for _ in range(2)]
    chat.chats.result(chat.ask(), 20)
    sent = chat.chats.send("alice", same, while_running="steer")
    assert chat.chats.result(sent, 20) == chat.chats.result(chat.sent[0]) and chat.ended().count(f"human {SAID}") == 1


def test_a_message_of_another_process_is_found(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody tells this process of it: the look for what was cancelled elsewhere finds it."""
    monkeypatch.setattr(Executions, "tell", lambda *_: None)
    chat = Chat(life)
    chat.in_tool = lambda: (chat.steer(), time.sleep(1.0))
    life.begin(lease=0.8)
    chat.ask()
    assert chat.ended()[-1] == "ai Read 4." and chat.taken() == [None, 1]


@pytest.mark.parametrize(
    "stored",
    [{"kind": "send", "messages": [], "config": None}, {"kind": "send", "messages": [{"type": "ai"}], "config": {}, "keywords": {}}],
)
def test_a_message_that_cannot_be_read_disturbs_no_other_run(life: Life, stored: Any) -> None:
    """Somebody has changed its row: its own run says so."""

    def steer() -> None:
        chat.steer()
        with closing(life.database()) as database, database:
            row = json.dumps({"positionalArgs": [stored], "namedArgs": {}})
            database.execute("update workflow_input set inputs = ? where workflow_uuid = ?", [row, chat.sent[1].run_id])

    chat = Chat(life)
    chat.in_tool = steer
    assert chat.chats.result(chat.ask(), 20).text.endswith("Read 3.")
    with pytest.raises(RunFailedError, match="cannot be read"):
        chat.chats.result(chat.sent[1], 20)


def test_nobody_who_does_not_steer_pays(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run looks for nothing, and records the steps that it always did, whatever is queued behind it."""
    monkeypatch.setattr(ConversationRuns, "_joining", lambda *_: pytest.fail("it has looked"))
    chat = Chat(life)
    chat.in_tool = lambda: chat.steer(while_running="queue")
    first = chat.ask()
    assert chat.ended()[-1] == "ai Read 5."
    steps = [step["function_name"] for step in DBOS.list_workflow_steps(first.run_id)]
    assert steps == ["events", "turn 1", "begin call 0", "call call 0", "turn 2"]


# ---------------------------------------------------------------------------------------------- crashes


def test_what_was_taken_before_a_crash_is_taken_at_the_same_place(life: Life) -> None:
    """The reading is recorded: the next execution has the same messages there, and takes later ones later."""
    chat = Chat(life)
    chat.in_tool = chat.steer
    chat.in_request = {4: lambda: (chat.steer("Two."), crash())}
    life.begin()
    chat.ask()
    _gone(chat)
    life.again()
    rest = ["tool 70 °F", f"human {SAID}", "ai Read 4.", "human Two.", "ai Read 6."]
    assert chat.ended()[2:] == rest and [len(request) for request in chat.requests] == [1, 4, 4, 6]
    assert chat.taken() == [None, 1, 1]


def test_a_crash_between_reading_and_recording_loses_nothing(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read and not recorded is read again."""
    taken, crashes = Journal.taken, [True]

    def crashing(self: Journal, number: int, read: Any) -> Any:
        return taken(self, number, lambda known: crash() if read(known) and crashes and crashes.pop() else read(known))

    monkeypatch.setattr(Journal, "taken", crashing)
    chat = Chat(life)
    chat.in_tool = chat.steer
    life.begin()
    chat.ask()
    _gone(chat)
    life.again()
    assert chat.ended().count(f"human {SAID}") == 1 and not crashes


def test_a_run_that_had_said_that_it_ends_takes_nothing_more(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process dies before its outcome is recorded, and somebody sends something meanwhile: that has its own run."""
    given, crashes = ConversationRuns.given, [True]

    def crashing(*args: Any) -> None:
        if crashes and crashes.pop():
            chat.steer()
            crash()
        given(*args)

    monkeypatch.setattr(ConversationRuns, "given", crashing)
    chat = Chat(life)
    life.begin()
    chat.ask()
    _gone(chat)
    life.again()
    assert chat.ended()[2:] == ["tool 70 °F", "ai Read 3.", f"human {SAID}", "ai Read 5."] and chat.taken() == [None, None]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.further) for seed in range(1, 8))])
def test_each_message_stands_there_once_whatever_crashes(life: Life, seed: int) -> None:
    """Messages of both kinds at random moments, and crashes at random requests and calls: once each, in the order of sending."""
    chance, lock, wanted = random.Random(seed), threading.Lock(), [f"{number}." for number in range(5)]
    texts = list(wanted)

    def happens() -> None:
        with lock:
            for _ in range(chance.randint(0, 2)):
                if texts:
                    chat.steer(texts.pop(0), while_running=chance.choice(["steer", "steer", "queue"]))
        if chance.random() < 0.3:
            crash()

    chat = Chat(life, in_tool=happens)
    chat.in_request = {number: happens for number in range(20)}
    life.silent_executions = 100
    life.begin()
    chat.ask()
    while not _is_done(chat):
        if life_is_over():
            life.again()
        elif texts and _is_idle(chat):
            with lock:
                chat.steer(texts.pop(0))
        time.sleep(0.05)
    assert [one for one in chat.ended() if one.startswith("human")] == [f"human {one}" for one in (FIRST, *wanted)]


def life_is_over() -> bool:
    """Whether the worker has crashed."""
    from langchain_autotools.durable.engine import engine

    return engine.lifetime.is_shut_down


def _gone(chat: Chat) -> None:
    """Wait until the worker has crashed."""
    until = time.monotonic() + 20
    while not life_is_over():
        assert time.monotonic() < until
        time.sleep(0.01)


def _is_idle(chat: Chat) -> bool:
    info = chat.chats.info("alice")
    return info is not None and info.state not in ("queued", "running")


def _is_done(chat: Chat) -> bool:
    return len(chat.sent) == 6 and _is_idle(chat)


# ---------------------------------------------------------------------------------------------- refusals


def test_what_cannot_steer_is_refused(life: Life) -> None:
    """In words, where it is sent: nothing is stored."""
    chats, chat = life.conversations(lambda messages, **_: "Yes."), life.model(lambda messages, **_: "Yes.")
    for message in (SystemMessage("Be brief."), "", HumanMessage([])):
        with pytest.raises(ConfigurationError, match="a message that steers a run"):
            chats.send("alice", message, while_running="steer")
    with pytest.raises(ConfigurationError, match="while_running"):
        chats.send("alice", "Hello", while_running="now")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="carry_messages"):
        chats.send("alice", "Hello", while_running="steer", carry_messages=False)
    with pytest.raises(ConfigurationError, match="while_running="):
        chats.send("alice", "Hello", inbox=[])
    assert chats.messages("alice") == []
    with pytest.raises(ConfigurationError, match=r"Conversations\.send"):
        chat.invoke("Hello", inbox=[])
