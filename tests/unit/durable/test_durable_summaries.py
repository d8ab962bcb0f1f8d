"""Summaries of old turns in durable runs: what the journal has of them is not asked for again."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langchain_autotools import NextTurn, new_messages, stop_reason
from langchain_autotools.durable import RunFailedError
from langchain_autotools.event_types import ContextCompacted
from tests.support.durable import Life, crash

pytestmark = pytest.mark.further


def page(number: int) -> str:
    """Return a page."""
    return f"Page {number}. " + "lorem ipsum dolor sit amet " * 20


class Reading:
    """A model's replies: it reads 24 pages, and ends the worker where it is told to, once.

    Args:
        dies: Says in which request; the worker ends with the request.
        summary: Makes a summary of its number.

    Attributes:
        asked: The number of messages of each request for a summary.
    """

    def __init__(
        self, dies: Callable[[Sequence[BaseMessage]], bool] = lambda _: False, summary: Callable[[int], Any] = "Summary {}.".format
    ):
        self.asked: list[int] = []
        self._dies = dies
        self._summary = summary
        self._died = False

    def __call__(self, messages: Sequence[BaseMessage], **_: Any) -> Any:
        """Reply."""
        if not self._died and self._dies(messages):
            self._died = True
            crash()
        if is_asked(messages):
            self.asked.append(len(messages))
            return self._summary(len(self.asked))
        last = next((one.text for one in reversed(messages) if one.type == "tool"), "Page -1. ")
        number = int(last.split()[1].rstrip(".")) + 1
        return AIMessage("", tool_calls=[{"name": "page", "args": {"number": number}, "id": f"c{number}"}]) if number < 24 else "Done."


def is_asked(messages: Sequence[BaseMessage]) -> bool:
    """Whether a request asks for a summary."""
    return isinstance(messages[-1], HumanMessage) and ("asks for a summary" in messages[-1].text or "<conversation>" in messages[-1].text)


def has_summary(messages: Sequence[BaseMessage]) -> bool:
    """Whether a turn's request has one."""
    return not is_asked(messages) and any("[Summary of the conversation" in one.text for one in messages)


FIELDS: dict[str, Any] = {"compact": True, "context_window": 2500, "max_turns": None}


def crashed(life: Life, model: Any) -> Any:
    """The run's message, after the crash and the worker's next life."""
    life.begin()
    with pytest.raises(RunFailedError):
        model.invoke("Read.", run_id="run")
    life.again()
    message = model.result("run")
    assert stop_reason(message) == "complete"
    assert [one.text for one in new_messages(message) if one.type == "tool"] == [page(number) for number in range(24)]
    return message


def texts(message: Any) -> list[str]:
    """The summaries in the records of a run's messages."""
    records = [one.response_metadata["autotools"].get("compacted", {}) for one in new_messages(message) if isinstance(one, AIMessage)]
    return [one["summary"]["text"] for one in records if "summary" in one]


def test_a_summary_is_recorded_with_its_turn(life: Life) -> None:
    """A crash in a later call: the requests go on with the same summary, and each was asked for once; its event is told once."""
    died: list[int] = []

    def dying(number: int) -> str:
        """Return a page."""
        if number == 20 and not died:
            died.append(number)
            crash()
        return page(number)

    replies = Reading()
    model = life.model(replies, tools={"page": dying}, rerun=["page"], **FIELDS)
    message = crashed(life, model)
    assert texts(message) == [f"Summary {number + 1}." for number in range(len(replies.asked))] != []
    assert sum(isinstance(one, ContextCompacted) and one.what == "summary" for one in model.events("run")) == len(replies.asked)


def test_a_summary_is_a_step_of_its_own(life: Life) -> None:
    """A crash in the request behind it: it is not asked for again, and what was paid for it counts once."""
    replies = Reading(has_summary)
    model = life.model(replies, tools=[page], **FIELDS)
    message = crashed(life, model)
    assert texts(message) == [f"Summary {number + 1}." for number in range(len(replies.asked))] != []


def test_a_reply_that_is_no_summary_is_recorded_too(life: Life) -> None:
    """The model went on instead, and the worker ended in the second request: the first one is not made again."""
    replies = Reading(lambda messages: "<conversation>" in messages[-1].text, lambda number: "" if number == 1 else f"Summary {number}.")
    message = crashed(life, life.model(replies, tools=[page], **FIELDS))
    assert texts(message) == [f"Summary {number + 2}." for number in range(len(replies.asked) - 1)] != []


def test_a_record_of_another_request_is_none(life: Life) -> None:
    """What is sent has changed since the crash: the summary is made anew, and the steps behind it keep their numbers."""
    lives: list[str] = []

    def change(turn: NextTurn) -> NextTurn:
        return replace(turn, messages=[SystemMessage(f"Life {len(lives)}."), *turn.messages])

    def dies(messages: Sequence[BaseMessage]) -> bool:
        return has_summary(messages) and not lives.append("over")  # type: ignore[func-returns-value]

    replies = Reading(dies, lambda number: "" if number == 1 else f"Summary {number}.")
    message = crashed(life, life.model(replies, tools=[page], before_turn=change, **FIELDS))
    assert texts(message)[0] == "Summary 3."


def test_an_error_of_the_request_for_a_summary_is_the_turns(life: Life) -> None:
    """As that of any request."""
    model = life.model(Reading(summary=lambda _: ConnectionError("gone")), tools=[page], **FIELDS)
    life.begin()
    with pytest.raises(ConnectionError, match="gone"):
        model.invoke("Read.", run_id="run")
