"""Calls of runs inside tools on pages and terminals: shown at the outermost run, with the path, and decided about by what was shown."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_autotools import events, new_messages, pending_calls
from langchain_autotools.encoders import ai_sdk, from_ai_sdk, sse
from langchain_autotools.encoders.posted import signature_of
from langchain_autotools.showing.view_model import Lines
from langchain_autotools.testing import ScriptedChatModel

KEY = "the server's own"
QUESTION = HumanMessage("Pay.")


def paying(paid: list[str]) -> ScriptedChatModel:
    """A model that asks another one, whose call has the id of the call around it."""

    def pay(to: str) -> str:
        """Pay somebody."""
        paid.append(to)
        return f"paid {to}"

    def reply(call: dict[str, Any]) -> Any:
        return lambda messages, **_: messages[-1].text if messages[-1].type == "tool" else AIMessage("", tool_calls=[{**call, "id": "c"}])

    inner = ScriptedChatModel(name="clerk", tools=[pay], requires_approval=True, replies=reply({"name": "pay", "args": {"to": "Anna"}}))
    return ScriptedChatModel(tools=[inner], replies=reply({"name": "clerk", "args": {"question": "Pay."}}), approval_key=KEY)


def chunks_of(stream: Sequence[bytes]) -> list[dict[str, Any]]:
    """The chunks of a UI message stream."""
    lines = [line for line in b"".join(stream).decode().splitlines() if line.startswith("data: {")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def test_a_page_of_the_ai_sdk_decides_about_a_call_inside() -> None:
    """It is a part of its own, under an id of its own; the answer runs it, and a page cannot decide with another signature."""
    paid: list[str] = []
    model = paying(paid)
    stream = events(model.stream([QUESTION]))
    chunks = chunks_of([part if isinstance(part, bytes) else part.encode() for part in ai_sdk(stream)])
    history: list[BaseMessage] = [QUESTION, *new_messages(model.invoke([QUESTION]))]
    (call,) = pending_calls(history)
    (request,) = [chunk for chunk in chunks if chunk["type"] == "tool-approval-request" and chunk["toolCallId"] != "c"]
    (start,) = [chunk for chunk in chunks if chunk["type"] == "tool-input-start" and chunk["toolCallId"] == request["toolCallId"]]
    assert start["toolName"] == "clerk > pay" and request["approvalId"] == request["toolCallId"]
    for signature, decided in (("another", 0), (signature_of(call), 1)):
        approval = {"id": call.uuid, "approved": True, "signature": signature}
        part = {"type": "dynamic-tool", "toolCallId": call.uuid, "state": "approval-responded", "approval": approval}
        body = {"id": "chat", "messages": [{"id": "2", "role": "assistant", "parts": [part]}], "trigger": "submit-message"}
        posted = from_ai_sdk(body, history, approval_key=KEY)
        assert len(posted.decisions) == decided
    assert model.resume(history, posted.decisions).text == "paid Anna" and paid == ["Anna"]


def test_an_ag_ui_client_is_interrupted_with_the_path() -> None:
    """The interrupt says which tool of which model, and with which arguments; its answer is a decision."""
    pytest.importorskip("ag_ui", reason="needs the extra `ag-ui`")
    from langchain_autotools.encoders import ag_ui, from_ag_ui

    model = paying([])
    sent = [part if isinstance(part, str) else part.decode() for part in ag_ui(events(model.stream([QUESTION])), thread_id="t", run_id="r")]
    finished = [json.loads(line[6:]) for part in sent for line in part.splitlines() if line.startswith("data: ")][-1]
    (interrupt,) = finished["outcome"]["interrupts"]
    assert "clerk > pay" in interrupt["message"] and '"Anna"' in interrupt["message"]
    history = [QUESTION, *new_messages(model.invoke([QUESTION]))]
    (call,) = pending_calls(history)
    answer = {"interruptId": signature_of(call), "status": "resolved", "payload": {"approved": True}}
    body = {
        "threadId": "t",
        "runId": "r2",
        "messages": [],
        "tools": [],
        "context": [],
        "state": {},
        "forwardedProps": {},
        "resume": [answer],
    }
    (decision,) = from_ag_ui(body, history, approval_key=KEY).decisions
    assert decision == call.approve()


def test_frames_and_lines_show_the_path() -> None:
    """Server-sent events have it as a list, a terminal before the name."""
    frames = [part if isinstance(part, str) else part.decode() for part in sse(events(paying([]).stream([QUESTION])))]
    (path,) = [call["path"] for frame in frames if "event: pending" in frame for call in _data(frame)["calls"] if call["path"]]
    assert path == ["clerk"]
    out = io.StringIO()
    shown = Lines(out, out)
    for event in events(paying([]).stream([QUESTION])):
        shown.show(event)
    assert "clerk > pay" in out.getvalue()


def _data(frame: str) -> Any:
    return json.loads(next(line[6:] for line in frame.splitlines() if line.startswith("data: ")))
