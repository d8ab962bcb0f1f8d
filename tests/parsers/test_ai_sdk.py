"""The AI SDK's own client reads what `ai_sdk` writes, and posts what `from_ai_sdk` reads."""

import random
from dataclasses import replace

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from langchain_autotools import (
    CallDiscarded,
    CallReady,
    CallResult,
    CallsPending,
    CallStarted,
    Decision,
    MessageDone,
    PendingCall,
    RunEnded,
    RunEvent,
    RunStarted,
    TextDelta,
    ToolCallRecord,
)
from langchain_autotools.encoders import ai_sdk

from .official import Parsers, pieces_of

pytestmark = pytest.mark.parsers

RUN = {"run_id": "run"}
CALL = ToolCallRecord("call_1", "send mail-1", '{"to":"Zoë 😀"}', {"to": "Zoë 😀"})
POISONED = ToolCallRecord("call_2", "look", '{"__proto__":1}', {"__proto__": 1})
ASKS: list[RunEvent] = [
    RunStarted(**RUN, name="Model"),
    TextDelta(**RUN, message_id="msg_1", text="Let me ask. 😀"),
    CallStarted(**RUN, message_id="msg_1", call_id="call_1", name=CALL.name, index=0, provisional=True),
    CallStarted(**RUN, message_id="msg_1", call_id="call_0", name="look", index=1, provisional=True),
    CallDiscarded(**RUN, message_id="msg_1", call_id="call_0", reason="it was none"),
    CallReady(**RUN, message_id="msg_1", call=CALL, index=0),
    CallStarted(**RUN, message_id="msg_1", call_id="call_2", name="look", index=1, provisional=False),
    CallReady(**RUN, message_id="msg_1", call=POISONED, index=1),
    MessageDone(**RUN, message=AIMessage("Let me ask. 😀", id="msg_1")),
    CallResult(**RUN, call=POISONED, index=1, message=ToolMessage("seen", tool_call_id="call_2")),
    CallsPending(**RUN, calls=[PendingCall("call_1", CALL.name, {"to": "Zoë 😀"}, "approval", "uuid", "digest")]),
    RunEnded(**RUN, stop_reason="calls_pending", turns=1),
]
DENIED = replace(CALL, args=None, decision=Decision("call_1", "reject", "no", "uuid", "digest"))
GOES_ON: list[RunEvent] = [
    RunStarted(**RUN, name="Model"),
    CallStarted(**RUN, message_id="msg_1", call_id="call_1", name=CALL.name, index=0, provisional=False),
    CallReady(**RUN, message_id="msg_1", call=CALL, index=0),
    CallResult(**RUN, call=DENIED, index=0, message=ToolMessage("no", tool_call_id="call_1", status="error")),
    TextDelta(**RUN, message_id="msg_2", text="Then not."),
    MessageDone(**RUN, message=AIMessage("Then not.", id="msg_2")),
    RunEnded(**RUN, stop_reason="complete", turns=1),
]


def test_a_page_asks_its_user_and_goes_on_with_the_same_message(parsers: Parsers) -> None:
    """What it posts has the signature; its own tools are not run again; other pages, which were not asked, can read the stream too."""
    draw = random.Random(1)
    parsers.ask("ai_sdk", page="asks", text="Send it.")
    asked = parsers.ask("ai_sdk", page="asks", reply=pieces_of(b"".join(ai_sdk(ASKS)), draw))
    assert (asked["errors"], asked["valid"], asked["message"]["metadata"]["stop_reason"]) == ([], None, "calls_pending")
    assert [call["toolCallId"] for call in asked["calls"]] == ["call_1", "call_2"]

    answer = {"id": "uuid", "approved": False, "reason": "no"}
    body = parsers.ask("ai_sdk", page="asks", decide={"approvals": [answer], "options": {"body": {"edits": {}}}})["body"]
    part = next(part for part in body["messages"][-1]["parts"] if part.get("toolCallId") == "call_1")
    assert (part["state"], part["approval"]) == ("approval-responded", {**answer, "signature": "uuid.digest"})

    went_on = parsers.ask("ai_sdk", page="asks", reply=pieces_of(b"".join(ai_sdk(GOES_ON)), draw))
    assert (went_on["errors"], went_on["calls"], went_on["valid"], went_on["count"]) == ([], [], None, 2)
    parts = went_on["message"]["parts"]
    assert [part["text"] for part in parts if part["type"] == "text"] == ["Let me ask. 😀", "Then not."]
    assert [part["state"] for part in parts if "toolCallId" in part] == ["output-denied", "output-error", "output-available"]

    parsers.ask("ai_sdk", page="other", text="Go on.")
    other = parsers.ask("ai_sdk", page="other", reply=pieces_of(b"".join(ai_sdk(GOES_ON)), draw))
    assert (other["errors"], other["valid"], other["message"]["parts"][0]["state"]) == ([], None, "output-denied")
