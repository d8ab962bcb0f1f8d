"""What goes on with runs whose next worker is of another release: tools that are gone, events that are unknown."""

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from langchain_autotools import new_messages
from langchain_autotools.durable import RunFailedError
from langchain_autotools.event_types import RunEvent
from tests.support.durable import Life, answered, asks, counting, crash, double


@tool
def pay(who: str) -> str:
    """Pay somebody."""
    if who == "bob":
        crash()
    return f"paid {who}"


@pytest.mark.parametrize("rerun", [[], ["pay"]])
def test_a_call_of_a_tool_that_is_gone_has_the_result_of_its_life(life: Life, rerun: list[str]) -> None:
    """What ended keeps its result, what was running is answered as interrupted; only what no tool ever ran is no valid tool, and what
    might have run again."""

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        return "Done." if answered(messages) else asks(("pay", {"who": "alice"}), ("pay", {"who": "bob"}), ("say", {}))

    chat = life.model(reply, [pay], parallel=False, rerun=rerun)
    life.begin()
    with pytest.raises(RunFailedError):
        chat.invoke("Go", run_id="one")
    chat = life.model(reply, [])
    life.again()
    results = [message for message in new_messages(chat.result("one")) if isinstance(message, ToolMessage)]
    assert results[0].content == "paid alice"
    assert ("not a valid tool" if rerun else "interrupted, outcome unknown") in str(results[1].content) and results[1].status == "error"
    assert "not a valid tool" in str(results[2].content)


def of_a_later_release(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Events with what only a later release knows: fields, also inside, a type, and a value that this one cannot read."""
    made = []
    for event in events:
        call = {"call": {**event["call"], "cost": 1}} if "call" in event else {}
        calls = {"calls": [{**one, "asked_by": "a rule"} for one in event["calls"]]} if "calls" in event else {}
        made.append({**event, **call, **calls, "mood": "calm"})
        if event["type"] == "MessageDone":
            made.append({"type": "PlanMade", "run_id": event["run_id"], "steps": ["look", event["message"]["data"]["id"]]})
            made.append({"type": "CallProgress", "run_id": event["run_id"], "percent": 5})
    return made


def test_events_of_a_later_release_are_skipped_with_a_warning(life: Life, caplog: pytest.LogCaptureFixture) -> None:
    """Readers go on, and what they know has the position that it has for the release that wrote it."""
    chats, chat = life.conversations(counting, [double], requires_approval=["double"]), life.model(counting, [double], name="one")
    chats.result(chats.send("alice", HumanMessage("double 4", id="m1")))
    chat.invoke("Hello", run_id="one")
    known, of_run = list(chats.events("alice")), list(chat.events("one"))
    life.rewrite_events(of_a_later_release)
    with caplog.at_level(logging.WARNING):
        told = list(chats.events("alice"))
    assert [replace(event, position=None) for event in told] == [replace(event, position=None) for event in known]
    for text in ("events PlanMade are unknown", "event CallProgress cannot be read", "fields of TextDelta are unknown", "cost", "asked_by"):
        assert text in caplog.text
    numbers = [int(str(event.position).rpartition("-")[2]) for event in told]
    assert numbers == sorted(numbers) and numbers[-1] > len(numbers)

    async def read(after: str | None) -> list[RunEvent]:
        return [event async for event in chats.aevents("alice", after=after)]

    for place, event in enumerate(told):
        assert list(chats.events("alice", after=event.position)) == asyncio.run(read(event.position)) == told[place + 1 :]
    again = list(chat.events("one"))
    assert again == of_run
    assert list(chat.events("one", after=again[-2].position)) == again[-1:]
