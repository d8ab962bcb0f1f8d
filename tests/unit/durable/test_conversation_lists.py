"""Owners, labels, titles, states: which conversations there are, on every database."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

import sqlalchemy
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langchain_autotools.durable import ConversationInfo, Conversations, Health, RunFailedError, launch, shutdown
from langchain_autotools.durable.engine import engine
from langchain_autotools.errors import ConfigurationError
from langchain_autotools.testing import ScriptedChatModel
from tests.support.durable import answered, asks
from tests.support.postgres import postgres_server

__all__ = ["postgres_server"]

go_on, held = threading.Event(), threading.Event()


def send(to: str) -> str:
    "Send."
    return f"Sent to {to}."


def reply(messages: list[BaseMessage], **_: Any) -> Any:
    """Does what the last message says."""
    last = messages[-1].text
    if last == "fail":
        raise ValueError("the vendor is out")
    if last == "hold":
        held.set()
        assert go_on.wait(30)
    return asks(("send", {"to": "Ann"})) if last == "send" and not answered(messages) else "Yes."


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conversations]:
    """Conversations over a database of each kind."""
    url = f"sqlite:///{tmp_path_factory.mktemp('lists') / 'runs.sqlite'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_server").create("lists")
    model = ScriptedChatModel(replies=reply, tools=[send], requires_approval=["send"])
    made = Conversations(model, url, name="lists")
    Conversations(model, url, name="nobody answers", max_concurrency=0)
    launch(url, "worker of lists")
    yield made
    shutdown()


@pytest.fixture
def chats(database: Conversations) -> Iterator[Conversations]:
    """The same, empty."""
    go_on.clear()
    held.clear()
    yield database
    go_on.set()
    assert database.delete(older_than=timedelta(0)) >= 0
    for one in database.list():
        database.delete(one.id)


def ids(found: list[ConversationInfo]) -> list[str]:
    """The ids of what was found, in order."""
    return [one.id for one in found]


def say(chats: Conversations, conversation: str, *texts: str, **about: Any) -> None:
    """Send texts, and wait until all are answered."""
    for sent in [chats.send(conversation, text, **about) for text in texts]:
        chats.result(sent, timeout=30)


def test_a_conversation_is_listed_with_what_is_known_of_it(chats: Conversations) -> None:
    """Its owner, labels, title, when it began and was last active, and its state; `info` says the same of one."""
    before = datetime.now(UTC) - timedelta(seconds=1)
    chats.append("c", [SystemMessage("Be brief.")], owner="ann", labels={"team": "sales"})
    untitled = chats.info("c")
    say(chats, "c", "  Hello,\n  how is\tthe weather?  ", "And tomorrow?")
    (info,) = chats.list()
    assert (info.id, info.title, info.state, info.owner, info.labels) == (
        "c",
        "Hello, how is the weather?",
        "idle",
        "ann",
        {"team": "sales"},
    )
    assert before <= info.begun < info.updated <= datetime.now(UTC) and chats.info("c") == info
    assert untitled is not None and (untitled.title, untitled.begun) == ("", info.begun)
    assert chats.info("C") is None and chats.info("nobody") is None


def test_titles_are_one_short_line_that_every_database_takes(chats: Conversations) -> None:
    """Long ones are cut, what no database stores is replaced, an image has none."""
    texts = {"long": "word " * 1000, "odd": "a\0b", "image": ""}
    for name, text in texts.items():
        chats.append(name, [HumanMessage(text or [{"type": "image", "url": "https://example.org/a.png"}])])
    found = {one.id: one.title for one in chats.list()}
    assert len(found["long"]) <= 80 and found["long"].endswith("word…")
    assert found["odd"] == "a\ufffdb" and found["image"] == ""


def test_conversations_are_found_by_owner_and_labels(chats: Conversations) -> None:
    """Character for character, and with all labels; not by what only looks like them."""
    for name, owner, labels in (
        ("1", "ann", {"team": "a", "plan": "pro"}),
        ("2", "ann", {"team": "b"}),
        ("3", "ANN", {"team": "a"}),
        ("4", "an%", {}),
        ("5", None, {"team": "a"}),
    ):
        chats.append(name, [HumanMessage("Hello")], owner=owner, labels=labels)
    assert [ids(chats.list(owner=owner)) for owner in ("ann", "ANN", "an%", "a__", "an")] == [["2", "1"], ["3"], ["4"], [], []]
    assert ids(chats.list(labels={"team": "a"})) == ["5", "3", "1"]
    assert ids(chats.list(labels={"team": "a", "plan": "pro"})) == ["1"]
    assert ids(chats.list(owner="ann", labels={"team": "b"})) == ["2"]
    assert chats.list(labels={"team": "A"}) == [] and ids(chats.list(1, 1, owner="ann")) == ["1"]


def test_the_owner_is_that_of_the_first_message(chats: Conversations) -> None:
    """Another one is refused, also where the message is there; none asks nothing; who had none gets none."""
    first = HumanMessage("Hello", id="m1")
    sent = chats.send("c", first, owner="ann")
    assert chats.send("c", first, owner="ann") == sent == chats.send("c", first)
    for other in ("bob", "Ann"):
        with pytest.raises(ConfigurationError, match="was not begun by the owner"):
            chats.send("c", first, owner=other)
        with pytest.raises(ConfigurationError, match="was not begun by the owner"):
            chats.append("c", [HumanMessage("Hello")], owner=other)
    say(chats, "c", "Go on")
    chats.append("free", [HumanMessage("Hello")])
    with pytest.raises(ConfigurationError, match="was not begun by the owner"):
        chats.send("free", "Mine", owner="ann")
    assert [(one.id, one.owner) for one in chats.list()] == [("free", None), ("c", "ann")]
    assert len(chats.messages("free")) == 1 and [message.text for message in chats.messages("c")] == ["Hello", "Yes.", "Go on", "Yes."]


def test_labels_take_the_place_of_those_before(chats: Conversations) -> None:
    """Where they are given; an empty dict takes them away."""
    chats.append("c", [HumanMessage("Hello")], labels={"team": "a"})
    chats.append("c", [HumanMessage("Hello")])
    assert ids(chats.list(labels={"team": "a"})) == ["c"]
    chats.append("c", [HumanMessage("Hello")], labels={"plan": "pro"})
    assert chats.list()[0].labels == {"plan": "pro"} and chats.list(labels={"team": "a"}) == []
    chats.append("c", [HumanMessage("Hello")], labels={})
    assert chats.list()[0].labels == {}


def test_the_state_is_how_the_last_run_stands(chats: Conversations) -> None:
    """It runs, it waits for the run before it or for a decision, it has failed, or nothing is to be done."""

    def state() -> str:
        (info,) = chats.list()
        return info.state

    hold = chats.send("c", "hold")
    assert held.wait(30)
    seen = [state()]
    chats.send("c", "send")
    seen.append(state())
    go_on.set()
    chats.result(hold, timeout=30)
    chats.result(chats.send("c", "send"), timeout=30)
    seen.append(state())
    chats.result(chats.decide("c", [call.reject() for call in chats.pending("c")]), timeout=30)
    seen.append(state())
    with pytest.raises(RunFailedError):
        say(chats, "c", "fail")
    seen.append(state())
    say(chats, "c", "Hello")
    assert [*seen, state()] == ["running", "queued", "calls_pending", "idle", "failed", "idle"]


def test_calls_that_were_appended_wait_too(chats: Conversations) -> None:
    """A copy that ends in open calls says so; a result that answers the last of them ends it."""
    asked = asks(("send", {"to": "Ann"}), ("send", {"to": "Bob"}))
    say(chats, "c", "send")
    copy = chats.fork("c", str(chats.messages("c")[-1].id))
    chats.append("imported", [HumanMessage("Go"), asked])
    await_idle(chats)
    assert {one.id: one.state for one in chats.list()} == dict.fromkeys(["c", copy, "imported"], "calls_pending")


def await_idle(chats: Conversations) -> None:
    """Wait until nothing runs."""
    for one in chats.list():
        list(chats.events(one.id))
    while any(one.state in ("queued", "running") for one in chats.list()):
        threading.Event().wait(0.02)


def on_day(chats: Conversations, conversation: str, *days: int) -> None:
    """Have the runs of a conversation sent at noon of these days, and end a minute later."""
    database = sqlalchemy.create_engine((engine.url or "").replace("postgresql://", "postgresql+psycopg://"))
    table = "workflow_status" if engine.is_sqlite else "dbos.workflow_status"
    with database.begin() as connection:
        for number, day in enumerate(days, 1):
            sent = NOON + timedelta(days=day)
            times = {
                "sent": sent.timestamp() * 1000,
                "ended": (sent + MINUTE).timestamp() * 1000,
                "id": chats._runs.current(conversation).run_id(number),
            }
            connection.execute(
                sqlalchemy.text(f"update {table} set created_at = :sent, completed_at = :ended where workflow_uuid = :id"), times
            )
    database.dispose()


NOON, MINUTE = datetime(2026, 1, 1, 12, tzinfo=UTC), timedelta(minutes=1)


@pytest.fixture
def several(chats: Conversations) -> Conversations:
    """Three conversations: `b` began last but one, and was active last; `a` has the most runs."""
    owners = {"a": "ann", "b": "ann", "c": "bob"}
    for sent in [chats.send(name, "Hello", owner=owners[name]) for name in "abcaba"]:
        chats.result(sent, timeout=30)
    on_day(chats, "a", 1, 1, 1)
    on_day(chats, "b", 2, 4)
    on_day(chats, "c", 3)
    return chats


def test_conversations_are_listed_by_when_they_began_or_were_active(several: Conversations) -> None:
    """The newest first; `limit` and `offset` count conversations, however many runs they have."""
    assert ids(several.list()) == ["c", "b", "a"] and ids(several.list(1, 1)) == ["b"]
    assert ids(several.list(order="activity")) == ["b", "c", "a"] == ids(several.list(3, order="activity"))
    for limit in range(4):
        for offset in range(4):
            assert ids(several.list(limit, offset, order="activity")) == ["b", "c", "a"][offset : offset + limit]
    assert ids(several.list(owner="ann", order="activity")) == ["b", "a"]
    assert several.list(order="activity") == several.list(10, order="activity")


def test_a_client_asks_for_what_has_changed_since(several: Conversations) -> None:
    """What was sent, and what has ended, at this time or later."""
    days = [NOON + timedelta(days=day) for day in range(6)]
    assert ids(several.list(updated_after=days[4] + MINUTE)) == ["b"] and several.list(updated_after=days[4] + 2 * MINUTE) == []
    assert ids(several.list(updated_after=days[3] + MINUTE, order="activity")) == ["b", "c"]
    assert ids(several.list(updated_after=days[3], owner="bob")) == ["c"]
    assert ids(several.list(updated_after=days[0])) == ["c", "b", "a"]
    say(several, "a", "6")
    assert ids(several.list(updated_after=days[5])) == ["a"]


def test_a_copy_has_the_owner_and_labels_of_the_other(chats: Conversations) -> None:
    """What is known of the other conversation is known of the copy."""
    say(chats, "c", "Hello", owner="ann", labels={"team": "a"})
    copy = chats.fork("c", str(chats.messages("c")[-1].id))
    info = chats.info(copy)
    assert info is not None and (info.owner, info.labels, info.title) == ("ann", {"team": "a"}, "Hello")


def test_a_history_begins_a_conversation_with_an_owner(chats: Conversations) -> None:
    """What an agent keeps is found by its owner too."""
    history = chats.history("c", owner="ann", labels={"by": "agent"})
    history.add_messages([HumanMessage("Hello"), AIMessage("Yes.")])
    assert [one.labels for one in chats.list(owner="ann")] == [{"by": "agent"}]
    with pytest.raises(ConfigurationError, match="was not begun by the owner"):
        chats.history("c", owner="bob").add_messages([HumanMessage("Hello")])


def test_a_number_that_was_noted_late_hides_nothing(several: Conversations) -> None:
    """A sender that died before it noted its run, or noted it after the next sender: the last run is found all the same."""
    several._runs.note(several._runs.current("a").run_id(1), {"autotools_last": 2})
    assert ids(several.list(order="activity")) == ["b", "c", "a"]
    say(several, "a", "6")
    several._runs.note(several._runs.current("a").run_id(1), {"autotools_last": 1})
    info = several.info("a")
    assert info is not None and several.list(order="activity")[0] == info


def test_old_conversations_are_deleted(several: Conversations) -> None:
    """Those without activity for so long; what began long ago and is active is left, and what goes on."""
    several.send("hold", "hold")
    assert held.wait(30)
    age = datetime.now(UTC) - NOON
    assert several.delete(older_than=age) == 0
    assert several.delete(older_than=age - timedelta(days=3.5)) == 2 and ids(several.list()) == ["hold", "b"]
    assert several.delete(older_than=timedelta(0)) == 1
    assert ids(several.list()) == ["hold"] and several.messages("a") == []
    go_on.set()
    await_idle(several)
    assert several.delete("hold") == 1 and several.delete("hold") == 0 and several.list() == []


def test_what_is_sent_while_the_old_are_deleted_is_kept(several: Conversations, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversation that comes to life between the look and the deletion lives on."""
    found = several._list.older_than

    def look(age: timedelta) -> list[str]:
        old = found(age)
        several.send("a", "hold")
        return old

    monkeypatch.setattr(several._list, "older_than", look)
    assert several.delete(older_than=timedelta(0)) == 2
    assert ids(several.list()) == ["a"] and len(several.messages("a")) == 7


def test_health_counts_what_waits_and_what_goes_on(chats: Conversations) -> None:
    """A run that waits for another one of its conversation waits for no worker; one that records nothing makes no progress."""
    assert chats.health() == Health(queued=0, running=0, oldest_waiting=0.0, stalled=())
    sent = chats.send("c", "hold")
    assert held.wait(30)
    chats.send("c", "Hello")
    assert chats.health() == Health(queued=1, running=1, oldest_waiting=0.0, stalled=())
    assert chats.health(stalled_after=0).stalled == (sent.run_id,)
    go_on.set()
    await_idle(chats)
    assert chats.health(stalled_after=0) == Health(queued=0, running=0, oldest_waiting=0.0, stalled=())


def test_health_tells_how_long_runs_have_waited_for_a_worker(chats: Conversations) -> None:
    """Since the first of their conversation was sent; those behind it count as queued alone."""
    unanswered = Conversations(chats.model, name="nobody answers", max_concurrency=0)
    for name in ("c", "c", "d"):
        unanswered.send(name, "Hello")
    on_day(unanswered, "c", 1)
    health, waited = unanswered.health(), (datetime.now(UTC) - NOON - timedelta(days=1)).total_seconds()
    assert (health.queued, health.running, health.stalled) == (3, 0, ()) and waited - 60 < health.oldest_waiting <= waited
    assert chats.health().queued == 0
    assert {one.state for one in unanswered.list()} == {"queued"}
    assert unanswered.delete(older_than=timedelta(0)) == 0
    assert unanswered.delete("c") + unanswered.delete("d") == 2 and unanswered.health().queued == 0


REFUSED: list[Callable[[Conversations], Any]] = [
    lambda chats: chats.send("c", "Hello", owner=""),
    lambda chats: chats.send("c", "Hello", owner="a\0"),
    lambda chats: chats.send("c", "Hello", owner=1),  # type: ignore[arg-type]
    lambda chats: chats.send("c", "Hello", labels={"a": 1}),  # type: ignore[dict-item]
    lambda chats: chats.send("c", "Hello", labels=["a"]),  # type: ignore[arg-type]
    lambda chats: chats.send("c", "Hello", labels={"a": "\ud83d"}),
    lambda chats: chats.list(-1),
    lambda chats: chats.list(offset=None),  # type: ignore[arg-type]
    lambda chats: chats.list(order="newest"),  # type: ignore[arg-type]
    lambda chats: chats.list(owner=""),
    lambda chats: chats.list(labels={"a": None}),  # type: ignore[dict-item]
    lambda chats: chats.list(updated_after=datetime(2026, 1, 1)),
    lambda chats: chats.list(updated_after="2026-01-01"),  # type: ignore[arg-type]
    lambda chats: chats.delete(),
    lambda chats: chats.delete("c", older_than=timedelta(1)),
    lambda chats: chats.delete(older_than=30),  # type: ignore[arg-type]
    lambda chats: chats.delete(older_than=timedelta(-1)),
    lambda chats: chats.health(-1),
    lambda chats: chats.info(""),
]


@pytest.mark.parametrize("method", REFUSED)
def test_what_is_no_owner_label_time_or_order_is_refused(chats: Conversations, method: Callable[[Conversations], Any]) -> None:
    """With an error of ours, and nothing is sent."""
    with pytest.raises(ConfigurationError):
        method(chats)
    assert chats.list() == []


async def test_the_asynchronous_twins_do_the_same(chats: Conversations) -> None:
    """Each with what it is given."""
    sent = await chats.asend("c", "Hello", owner="ann", labels={"a": "b"})
    await chats.aresult(sent, timeout=30)
    await chats.aappend("d", [HumanMessage("Hello")], owner="bob", labels={"c": "d"})
    while (await chats.ahealth()).queued + (await chats.ahealth()).running:
        pass
    assert ids(await chats.alist(owner="ann", labels={"a": "b"}, order="activity", updated_after=NOON)) == ["c"]
    info = await chats.ainfo("d")
    assert info is not None and info.owner == "bob"
    assert await chats.adelete(older_than=timedelta(0)) == 2 and await chats.adelete("c") == 0
