"""`inbox=`: where a run reads what the user says while it goes on, and where it leaves that in the queue."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from langchain_autotools import final_message
from langchain_autotools.history import validate
from tests.laws.ways import WAYS, run
from tests.support.desk import QUESTION, asking, call, reason
from tests.support.inboxes import LOOKS, SAID, User, declared, kinds, left, texts


@pytest.mark.parametrize("way", WAYS)
def test_between_results_and_the_next_request(way: str) -> None:
    """It comes behind all results of the turn, with an id; the next request ends in it, and begins with the one before."""
    blocks: Any = [{"type": "text", "text": SAID}]
    for said in (SAID, HumanMessage(SAID), HumanMessage(SAID, id="mine"), HumanMessage(blocks)):
        check_between(way, said)


def check_between(way: str, said: Any) -> None:
    """Check a run in which this is said while tools run."""
    user = User()
    model = user.model(user.says(said, "And soon.", then=LOOKS))
    ran = run(way, model, [QUESTION], inbox=user.inbox)
    assert (kinds(ran.new), reason(ran)) == (["ai", "tool", "tool", "human", "human", "ai"], "complete")
    assert texts(ran.new) == [SAID, "And soon."] and all(type(one) is HumanMessage and one.id for one in ran.new[3:5])
    assert getattr(said, "id", None) in (None, ran.new[3].id)
    first, second = model.requests
    assert list(second.messages) == [*first.messages, *ran.new[:5]]
    assert validate([QUESTION, *ran.new]) == [] and sorted(user.looked) == ["Paris", "Rome"] and user.inbox.empty()


@pytest.mark.parametrize("way", WAYS)
def test_after_the_last_reply_while_something_is_there(way: str) -> None:
    """Each time one more turn answers it, in the same run; each text of the run is on a line of its own."""
    user = User()
    model = user.model(user.says("One.", then="First."), user.says("Two.", "Three.", then="Second."), message_separator=" | ")
    ran = run(way, model, [QUESTION], inbox=user.inbox)
    assert (kinds(ran.new), reason(ran)) == (["ai", "human", "ai", "human", "human", "ai"], "complete")
    assert ran.message is not None and ran.message.response_metadata["autotools"]["turns"] == 3
    assert ran.message.text == "First. | Second. | Done." and final_message(ran.message).text == "Done."
    assert texts(model.requests[2].messages) == [QUESTION.text, "One.", "Two.", "Three."]


@tool(return_direct=True)
def give(what: str) -> str:
    """Give."""
    return f"Here: {what}"


CALLER = asking(call("theirs", "7"), call("look", "8", city="Paris"))
GIVES = asking(call("give", "1", what="tea"))
ENDS: dict[str, tuple[AIMessage, dict[str, Any], str]] = {
    "approval": (LOOKS, {"requires_approval": True}, "calls_pending"),
    "approval of one": (LOOKS, {"requires_approval": lambda call: call.args["city"] == "Rome"}, "calls_pending"),
    "caller": (CALLER, {"tools": [declared("theirs")]}, "calls_pending"),
    "return_direct": (GIVES, {}, "return_direct"),
    "stop_when": (LOOKS, {"stop_when": lambda so_far: True}, "stop_when"),
    "max_turns": (LOOKS, {"max_turns": 1, "on_limit": "return"}, "max_turns"),
    "max_tool_calls": (LOOKS, {"max_tool_calls": 1, "on_limit": "return"}, "max_tool_calls"),
    "refused": (AIMessage("No.", additional_kwargs={"refusal": "No."}), {}, "refused"),
    "length": (AIMessage("It i", response_metadata={"finish_reason": "length"}), {}, "length"),
    "filtered": (AIMessage("It i", response_metadata={"finish_reason": "content_filter"}), {}, "refused"),
    "after a limit": (AIMessage("Whole."), {"max_turns": 1}, "complete"),
}


@pytest.mark.parametrize("way", WAYS)
def test_it_stays_in_the_queue_where_no_request_follows(way: str) -> None:
    """The stop reason says why; the caller reads the queue, or gives it to the next run."""
    for end, (reply, keywords, why) in ENDS.items():
        user = User()
        model = user.model(user.says(SAID, then=reply), tools=[give])
        ran = run(way, model, [QUESTION], inbox=user.inbox, **keywords)
        assert (reason(ran), left(user.inbox), len(model.requests)) == (why, [SAID], 1), end
        assert texts(ran.new) == [] and validate([QUESTION, *ran.new], open_end=True) == [], end
