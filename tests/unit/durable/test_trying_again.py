"""Runs of conversations that failed, tried again: they go on from what had completed, and nothing is said twice."""

import threading
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from dbos import DBOS
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import tool

from langchain_autotools.durable import Conversations, RunFailedError
from langchain_autotools.errors import ConfigurationError
from langchain_autotools.event_types import MessagesAdded
from tests.support.durable import Life, answered, asks, double


class Vendor:
    """Answers, but for the requests that fail.

    Args:
        fails: The numbers of these requests, from 0 on.
    """

    def __init__(self, *fails: int) -> None:
        self.fails = fails
        self.requests: list[list[str]] = []

    def __call__(self, messages: list[BaseMessage], **_: Any) -> Any:
        """The reply to a request."""
        self.requests.append([one.text for one in messages])
        if len(self.requests) - 1 in self.fails:
            raise ValueError("the vendor is out")
        if messages[-1].text == "Go":
            return asks(("double", {"number": 4}), text="Let me see.")
        return "It is 8." if answered(messages) else "Hello."


def texts(chats: Conversations) -> list[str]:
    """What has been said."""
    return [one.text for one in chats.messages("c")]


def test_a_failed_run_goes_on_from_what_it_had_completed(life: Life) -> None:
    """Its call is not made again, its message is not sent again. It is tried once, however often that is asked for."""
    vendor = Vendor(1, 2)
    chats = life.conversations(vendor, [double])
    sent = chats.send("c", "Go")
    for _ in range(2):
        with pytest.raises(RunFailedError):
            chats.result(sent)
        again = chats.retry(sent)
        assert chats.retry(sent.run_id) == again != sent
        sent = again
    assert chats.result(sent).text == "It is 8."
    assert vendor.requests == [["Go"], *[["Go", "Let me see.", "8"]] * 3]
    assert texts(chats) == ["Go", "Let me see.", "8", "It is 8."]
    assert len([event for event in chats.events("c") if isinstance(event, MessagesAdded)]) == 1
    assert [run["kind"] for run in chats.export("c")["runs"]] == ["send"] * 3


def test_a_message_that_was_not_answered_at_all_is_answered(life: Life) -> None:
    """The request was refused before anything came."""
    vendor = Vendor(0)
    chats = life.conversations(vendor)
    sent = chats.send("c", HumanMessage("Hi", id="h"))
    with pytest.raises(RunFailedError):
        chats.result(sent)
    assert chats.result(chats.retry(sent)).text == "Hello."
    assert texts(chats) == ["Hi", "Hello."] and vendor.requests == [["Hi"], ["Hi"]]


async def test_decisions_are_not_asked_for_twice(life: Life) -> None:
    """What was approved has run once; the run that failed after it goes on behind its result."""
    vendor = Vendor(1)
    chats = life.conversations(vendor, [double], requires_approval=["double"])
    await chats.aresult(await chats.asend("c", "Go"))
    (call,) = chats.pending("c")
    sent = chats.decide("c", [call.edit({"number": 5})])
    with pytest.raises(RunFailedError):
        await chats.aresult(sent)
    assert chats.pending("c") == []
    assert (await chats.aresult(await chats.aretry(sent))).text == "It is 8."
    assert vendor.requests[1] == vendor.requests[2] and len(vendor.requests) == 3


def test_calls_of_which_nobody_knows_what_became_are_decided_again(life: Life) -> None:
    """Their run was ended from outside while one ran: it is not made again without somebody who says so."""
    ran: list[int] = []
    begun, go_on = threading.Event(), threading.Event()

    @tool
    def count(number: int) -> str:
        """Count."""
        ran.append(number)
        begun.set()
        go_on.wait(20)
        return "counted"

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        return "Done." if answered(messages) else asks(("count", {"number": 4}))

    chats = life.conversations(reply, [count], requires_approval=["count"])
    chats.result(chats.send("c", "Go"))
    (call,) = chats.pending("c")
    sent = chats.decide("c", [call.approve()])
    assert begun.wait(20)
    DBOS.cancel_workflow(sent.run_id)
    go_on.set()
    with pytest.raises(RunFailedError, match="ended from outside"):
        chats.result(sent)
    with pytest.raises(ConfigurationError, match="decide about them again"):
        chats.retry(sent)
    assert chats.pending("c") == [call] and ran == [4]
    assert chats.result(chats.decide("c", [call.respond("counted before")])).text == "Done." and ran == [4]


def test_what_has_not_failed_is_not_tried_again(life: Life) -> None:
    """Nor what others have followed, nor what is no run."""
    chats = life.conversations(Vendor(1), [double])
    good, bad = chats.send("c", "Hello"), chats.send("c", "Hello again")
    with pytest.raises(RunFailedError):
        chats.result(bad)
    with pytest.raises(ConfigurationError, match="has not failed"):
        chats.retry(good)
    chats.result(chats.send("c", "Never mind"))
    with pytest.raises(ConfigurationError, match="not the last one"):
        chats.retry(bad)
    for none in ("none", "\0", chats.append("c", [HumanMessage("Hello")])):
        with pytest.raises(ConfigurationError, match="there is no run"):
            chats.retry(none)
