"""Summaries of old turns in durable runs: what the journal has of them is not asked for again."""

from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_autotools import new_messages, stop_reason
from langchain_autotools.durable import RunFailedError
from langchain_autotools.event_types import ContextCompacted
from tests.support.durable import Life, crash

pytestmark = pytest.mark.further


def test_a_summary_is_recorded_with_its_turn(life: Life) -> None:
    """A crash in a later call: the requests go on with the same summary, and each was asked for once; its event is told once."""
    died: list[int] = []
    asked: list[int] = []

    def page(number: int) -> str:
        """Return a page."""
        if number == 16 and not died:
            died.append(number)
            crash()
        return f"Page {number}. " + "lorem ipsum dolor sit amet " * 20

    def reply(messages: Sequence[BaseMessage], **_: Any) -> Any:
        if isinstance(messages[-1], HumanMessage) and "asks for a summary" in messages[-1].text:
            asked.append(len(messages))
            return f"Summary {len(asked)}."
        last = next((one.text for one in reversed(messages) if one.type == "tool"), "Page -1. ")
        number = int(last.split()[1].rstrip(".")) + 1
        return AIMessage("", tool_calls=[{"name": "page", "args": {"number": number}, "id": f"c{number}"}]) if number < 24 else "Done."

    model = life.model(reply, tools=[page], rerun=["page"], compact=True, context_window=2500, max_turns=None)
    life.begin()
    with pytest.raises(RunFailedError):
        model.invoke("Read.", run_id="run")
    before = len(asked)
    life.again()
    message = model.result("run")
    records = [one.response_metadata["autotools"].get("compacted", {}) for one in new_messages(message) if isinstance(one, AIMessage)]
    assert stop_reason(message) == "complete" and before
    assert [one["summary"]["text"] for one in records if "summary" in one] == [f"Summary {number + 1}." for number in range(len(asked))]
    assert sum(isinstance(one, ContextCompacted) and one.what == "summary" for one in model.events("run")) == len(asked)
