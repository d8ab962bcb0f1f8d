"""What is there already: messages by their ids, and the database after a shutdown."""

from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langchain_autotools.durable import Conversations, launch, shutdown
from langchain_autotools.errors import ConfigurationError
from langchain_autotools.event_types import MessagesAdded
from langchain_autotools.testing import ScriptedChatModel
from tests.support.durable import Life, counting


def said(messages: list[BaseMessage]) -> list[str]:
    """The texts of messages."""
    return [message.text for message in messages]


def test_messages_are_appended_once_under_their_ids(life: Life) -> None:
    """One by one, in lists that overlap, twice in one list, after they were sent, and when the model has made them."""
    chats = life.conversations(counting)
    one, two, three = (HumanMessage(text, id=text) for text in ("one", "two", "three"))
    first = chats.append("a", [one, one])
    assert chats.append("a", [one]) == first
    second = chats.append("a", [one, two])
    assert chats.append("a", [two, one]) == first and chats.append("a", [one, two]) == second
    sent = chats.send("a", three)
    assert chats.result(sent).text == "3: three"
    whole = chats.messages("a")
    assert chats.append("a", whole) == sent
    chats.append("a", [*whole, HumanMessage("four")])
    assert said(chats.messages("a")) == ["one", "two", "three", "3: three", "four"]


def test_a_message_that_came_with_a_fork_is_answered_where_it_stands(life: Life) -> None:
    """It is the last one: it is not doubled, and answered once. Others, and those of a model, are refused under their ids."""
    chats = life.conversations(counting)
    chats.append("a", [SystemMessage("Be brief.", id="s"), HumanMessage("One", id="m1")])
    assert chats.result(chats.send("a", HumanMessage("Two", id="m2"))).text == "3: Two"
    copy = chats.fork("a", "m2", to="copy")
    sent = chats.send(copy, HumanMessage("Two", id="m2"))
    assert chats.send(copy, HumanMessage("Two", id="m2")) == sent
    assert chats.result(sent).text == "3: Two"
    assert said(chats.messages(copy)) == ["Be brief.", "One", "Two", "3: Two"]
    assert [len(event.messages) for event in chats.events(copy) if isinstance(event, MessagesAdded)] == [3]
    for taken in ("m1", chats.messages(copy)[-1].id):
        with pytest.raises(ConfigurationError, match="has a message"):
            chats.send(copy, HumanMessage("Again", id=taken))
    chats.append(copy, [HumanMessage("Three", id="m3"), AIMessage("Yes.", id="r3")])
    with pytest.raises(ConfigurationError, match="others behind it"):
        chats.send(copy, HumanMessage("Three", id="m3"))
    assert chats.result(chats.send(copy, "Four")).text == "7: Four"


@pytest.mark.parametrize("named", [True, False])
def test_after_a_shutdown_the_database_is_the_same(life: Life, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool) -> None:
    """Conversations and durable models that are used again find what they kept, whoever said which database; no other file is made."""
    monkeypatch.chdir(tmp_path)
    chats = Conversations(ScriptedChatModel(replies=counting), life.url if named else None, name="test")
    chat = life.model(counting, name="one")
    life.begin()
    chats.result(chats.send("a", "Hello"))
    chat.invoke("Hello", run_id="one")
    shutdown()
    shutdown()
    assert said(chats.messages("a")) == ["Hello", "1: Hello"]
    shutdown()
    assert chat.result("one").text == "1: Hello"
    assert chats.result(chats.send("a", "Bye")).text == "3: Bye"
    assert [file.name for file in tmp_path.glob("*.sqlite")] == ["runs.sqlite"]


def test_conversations_of_another_database_than_the_launched_one_are_refused(life: Life, tmp_path: Path) -> None:
    """They would read and write what is not theirs."""
    chats = life.conversations(counting)
    chats.append("a", [HumanMessage("Hello")])
    shutdown()
    launch(f"sqlite:///{tmp_path / 'other.sqlite'}", "another worker")
    for ask in (lambda: chats.messages("a"), lambda: chats.send("a", "Hello"), lambda: chats.events("a"), lambda: chats.list()):
        with pytest.raises(ConfigurationError, match="another database"):
            ask()
