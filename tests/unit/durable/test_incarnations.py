"""Conversations that are deleted and begun anew under their ids: nothing of before is taken for something of now."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_autotools.durable import Conversations, launch, shutdown
from langchain_autotools.errors import ConfigurationError
from langchain_autotools.event_types import MessagesAdded, RunEvent
from langchain_autotools.testing import ScriptedChatModel
from tests.support.durable import asks, counting
from tests.support.postgres import postgres_server

__all__ = ["postgres_server"]


def reply(messages: list[BaseMessage], **_: Any) -> Any:
    """As `counting`; `pay` asks for a call, with the same id each time."""
    message = asks(("pay", {"who": "bob"})) if messages[-1].text == "pay" else AIMessage(counting(messages))
    return message.model_copy(update={"id": f"reply {len(messages)}"})


def pay(who: str) -> str:
    """Pay somebody."""
    return f"paid {who}"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def chats(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conversations]:
    """Conversations over a database of each kind."""
    url = f"sqlite:///{tmp_path_factory.mktemp('incarnations') / 'runs.sqlite'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_server").create("incarnations")
    made = Conversations(ScriptedChatModel(replies=reply, tools=[pay], requires_approval=["pay"]), url, name="incarnations")
    launch(url, "worker of incarnations")
    yield made
    shutdown()


def texts(events: list[RunEvent]) -> list[str]:
    """What was sent, as a reader is told."""
    return [message.text for event in events if isinstance(event, MessagesAdded) for message in event.messages]


def test_what_was_sent_before_has_no_answer_of_what_was_sent_since(chats: Conversations) -> None:
    """An old `Sent`, an old position and an old decision are errors; an old header means from the start; all is so again the next time."""
    old: list[tuple[Any, str, Any]] = []
    for life in range(3):
        sent = chats.send("alice", HumanMessage("pay", id="m1"))
        chats.result(sent, timeout=30)
        told = list(chats.events("alice"))
        assert texts(told) == ["pay"] and list(chats.events("alice", after=sent.position)) == told
        assert [list(chats.events("alice", after=event.position)) for event in told] == [told[place + 1 :] for place in range(len(told))]
        for before, position, call in old:
            with pytest.raises(ConfigurationError, match="there is no run"):
                chats.result(before)
            for stale in (position, before.position):
                with pytest.raises(ConfigurationError, match="has no position"):
                    chats.events("alice", after=stale)
                assert list(chats.events("alice", last_event_id=stale)) == told
            with pytest.raises(ConfigurationError, match="does not wait"):
                chats.decide("alice", [call.approve()])
        assert sent.run_id not in {before.run_id for before, _, _ in old}
        assert {event.position for event in told}.isdisjoint(position for _, position, _ in old)
        (call,) = chats.pending("alice")
        old.append((sent, str(told[-1].position), call))
        assert chats.result(chats.send("alice", f"Life {life}"), timeout=30).text.endswith(f"Life {life}")
        chats.delete("alice")
        assert chats.messages("alice") == [] and "alice" not in [one.id for one in chats.list()]
    chats.delete("alice")


def test_a_reader_who_follows_a_deleted_conversation_is_told_of_the_next_one(chats: Conversations) -> None:
    """He ends, whether he had read something or nothing; who comes back with what he had reads the next one from its start."""
    for begun in (True, False):
        last = None
        if begun:
            chats.result(chats.send("bin", "One"), timeout=30)
            last = list(chats.events("bin"))[-1].position
        ended: list[list[RunEvent]] = []
        told = chats.events("bin", after=last, follow=True)
        follows = threading.Thread(target=lambda told=told, ended=ended: ended.append(list(told)))
        follows.start()
        if not begun:
            chats.append("bin", [HumanMessage("Two")])
        chats.delete("bin")
        chats.append("bin", [HumanMessage("Three")])
        follows.join(20)
        assert not follows.is_alive() and "Three" not in texts(ended[0])
        assert texts(list(chats.events("bin", last_event_id=last or "1-1"))) == ["Three"]
        chats.delete("bin")


def test_clients_who_send_and_delete_at_once_leave_whole_conversations(chats: Conversations) -> None:
    """A message belongs to one incarnation, or is gone with it: numbers have no gap, and no rows are left of what was deleted."""

    def act(number: int) -> Any:
        if number % 5 == 4:
            chats.delete("busy")
            return None
        return chats.append("busy", [HumanMessage(str(number), id=f"m{number}")])

    with ThreadPoolExecutor(6) as pool:
        sent = [one for one in pool.map(act, range(30)) if one is not None]
    kept = [message.id for message in chats.messages("busy")]
    assert len(set(kept)) == len(kept)
    assert len({one.run_id for one in sent}) == len(sent)
    assert texts(list(chats.events("busy"))) == [message.text for message in chats.messages("busy")]
    there = [one for one in sent if chats._runs.one(one.run_id) is not None]
    assert len(there) == len(kept)
    chats.delete("busy")
    assert [one for one in sent if chats._runs.one(one.run_id) is not None] == []
