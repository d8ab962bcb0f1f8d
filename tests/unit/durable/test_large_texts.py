"""Large texts: each is in the database once, and comes back wherever it is read."""

import threading
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import tool

from langchain_autotools import new_messages
from langchain_autotools.durable import RunFailedError
from langchain_autotools.event_types import CallResult, MessageDone
from tests.support.durable import Life, answered, asks, crash

LARGE = "".join(f"{number:09} " for number in range(100_000))


@tool
def read() -> str:
    """Read a large file."""
    return LARGE


def reading(messages: list[BaseMessage], **_: Any) -> Any:
    """A script that reads the file once for each message, and answers."""
    return f"{len(messages)}: done." if answered(messages) else asks(("read", {}))


def texts(messages: list[BaseMessage]) -> list[str]:
    """The results among messages."""
    return [one.text for one in messages if isinstance(one, ToolMessage)]


def size(life: Life) -> int:
    """The bytes of the database."""
    return sum(file.stat().st_size for file in life.folder.glob("runs.sqlite*"))


def test_a_large_result_stands_in_the_database_once(life: Life) -> None:
    """A megabyte makes it a megabyte larger, and every reader has all of it: results, events, histories, the next run."""
    chats = life.conversations(reading, [read])
    sent = chats.send("alice", "Read it.")
    run = chats.result(sent)
    assert life.dump().count(LARGE[:100]) == 1 and size(life) < 1.2 * len(LARGE) + 500_000
    assert texts(new_messages(run)) == texts(chats.messages("alice")) == [LARGE]
    events = list(chats.events("alice"))
    assert [one.message.text for one in events if isinstance(one, CallResult)] == [LARGE]
    assert texts([one.message for one in events if isinstance(one, MessageDone)]) == [LARGE]
    life.again()
    assert texts(new_messages(chats.result(sent))) == texts(chats.messages("alice")) == [LARGE]
    assert list(chats.events("alice")) == events
    assert chats.result(chats.send("alice", "Again.")).text == "7: done."
    assert life.dump().count(LARGE[:100]) == 2


@pytest.mark.parametrize("streamed", [False, True])
def test_a_durable_run_brings_its_large_texts(life: Life, streamed: bool) -> None:
    """Also a long reply, to its caller and to who asks later."""
    chat = life.model(lambda messages, **_: LARGE if answered(messages) else asks(("read", {})), [read])
    life.begin()
    brought = [message for chunk in chat.stream("Read it.", run_id="one") for message in new_messages(chunk)] if streamed else None
    run = chat.invoke("Read it.", run_id="one")
    assert [one.text for one in new_messages(run)][1:] == [LARGE, LARGE]
    assert brought is None or [one.text for one in brought][1:] == [LARGE, LARGE]
    life.again()
    assert [one.text for one in new_messages(chat.result("one"))][1:] == [LARGE, LARGE]
    assert chat.result("one").text.endswith(LARGE)


def test_a_large_text_outlives_a_crash_and_a_failed_run(life: Life) -> None:
    """The execution after a crash names what the one before recorded; an error brings the texts of its run."""
    crashed = threading.Event()

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        if not answered(messages):
            return asks(("read", {}))
        if not crashed.is_set():
            crashed.set()
            crash()
        raise ValueError(f"{len(messages[-1].text)} characters")

    chats = life.conversations(reply, [read])
    sent = chats.send("alice", "Read it.")
    assert crashed.wait(60)
    life.again()
    with pytest.raises(RunFailedError, match="1000000 characters") as failed:
        chats.result(sent)
    assert texts(new_messages(failed.value)) == texts(chats.messages("alice")) == [LARGE]
    assert life.dump().count(LARGE[:100]) <= 2
