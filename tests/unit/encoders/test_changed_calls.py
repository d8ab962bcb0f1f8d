"""Calls that middleware changes, on pages: another call than the approved one, with an id of its own and its arguments."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langchain.agents.middleware", reason="needs LangChain")
from langchain_core.messages import BaseMessage, HumanMessage

from langchain_autotools import PendingCall, events, new_messages, pending_calls
from langchain_autotools.encoders import ai_sdk, from_ai_sdk, sse
from langchain_autotools.encoders.posted import signature_of
from langchain_autotools.testing import ScriptedChatModel
from tests.support.middleware import Around, call, model_of
from tests.unit.encoders.test_calls_inside import chunks_of, paying

KEY = "the server's own"


def polite(request: Any) -> Any:
    """Change the place of a call."""
    asked = request.tool_call
    return (yield request.override(tool_call={**asked, "args": {"at": f"{asked['args']['at']}, please"}}))


def looking() -> ScriptedChatModel:
    """A model whose only call is changed."""
    return model_of(call(), "Fine.", middleware=[Around(tool=polite)], requires_approval=True, approval_key=KEY)


def approved(model: ScriptedChatModel, history: list[BaseMessage]) -> list[Any]:
    """Approve all calls that wait; return the events, the new messages joining the history."""
    stream = events(model.stream(history, resume=[one.approve() for one in pending_calls(history)]))
    seen = []
    with stream:
        for event in stream:
            seen.append(event)
    history += new_messages(stream.message)
    return seen


def asked_again() -> tuple[ScriptedChatModel, list[BaseMessage], list[Any], PendingCall]:
    """A model, a history in which its changed call waits, the events of the run that left it so, and that call."""
    model = looking()
    history: list[BaseMessage] = [HumanMessage("Look.")]
    history += new_messages(model.invoke(history))
    seen = approved(model, history)
    (pending,) = pending_calls(history)
    return model, history, seen, pending


def test_a_page_of_the_ai_sdk_is_asked_again() -> None:
    """The changed call is a part of its own with its arguments; its signature approves it, that of the first form does not."""
    model, history, seen, pending = asked_again()
    chunks = chunks_of([part if isinstance(part, bytes) else part.encode() for part in ai_sdk(seen)])
    (request,) = [chunk for chunk in chunks if chunk["type"] == "tool-approval-request" and chunk["toolCallId"] == pending.uuid]
    assert request["signature"] == signature_of(pending)
    (written,) = [chunk for chunk in chunks if chunk["type"] == "tool-input-delta" and chunk["toolCallId"] == pending.uuid]
    assert "Rome, please" in written["inputTextDelta"]
    for signature, decided in (("another", 0), (signature_of(pending), 1)):
        approval = {"id": pending.uuid, "approved": True, "signature": signature}
        part = {"type": "dynamic-tool", "toolCallId": pending.uuid, "state": "approval-responded", "approval": approval}
        body = {"id": "chat", "messages": [{"id": "2", "role": "assistant", "parts": [part]}], "trigger": "submit-message"}
        posted = from_ai_sdk(body, history, approval_key=KEY)
        assert len(posted.decisions) == decided
    assert "seen Rome, please" in new_messages(model.resume(history, posted.decisions))[0].text


@pytest.mark.parametrize("made", [looking, lambda: paying([])], ids=["changed", "inside a tool"])
def test_an_ag_ui_client_is_asked_until_all_is_decided(made: Any) -> None:
    """The interrupt names the arguments; a stream that begins with the history has no interrupt for what its run has answered."""
    pytest.importorskip("ag_ui", reason="needs the extra `ag-ui`")
    from langchain_autotools.encoders import ag_ui, from_ag_ui
    from tests.support.ag_ui_client import AgUiClient

    model, client = made(), AgUiClient()
    history: list[BaseMessage] = [HumanMessage("Look.")]
    history += new_messages(model.invoke(history))
    while pending := pending_calls(history):
        last = client.read(ag_ui([], thread_id="t", history=history))
        assert [one["id"] for one in last["outcome"]["interrupts"]] == [signature_of(one) for one in pending]
        assert not pending[0].changed or "Rome, please" in last["outcome"]["interrupts"][0]["message"]
        answers = [{"interruptId": one["id"], "status": "resolved", "payload": {"approved": True}} for one in last["outcome"]["interrupts"]]
        given: dict[str, Any] = {"messages": [], "tools": [], "context": [], "state": {}, "forwardedProps": {}}
        decisions = from_ag_ui({"threadId": "t", "runId": "r", **given, "resume": answers}, history, approval_key=KEY).decisions
        assert decisions == [one.approve() for one in pending]
        before = list(history)
        last = client.read(ag_ui(approved(model, history), thread_id="t", history=before))
        waiting = [one["id"] for one in last["outcome"].get("interrupts", [])]
        assert waiting == [signature_of(one) for one in pending_calls(history)]
    assert last["outcome"]["type"] == "success"


def test_server_sent_events_say_that_a_call_was_changed() -> None:
    """A call that was not changed has no such key."""
    _, _, seen, pending = asked_again()
    frames = "".join(part if isinstance(part, str) else part.decode() for part in sse(seen))
    assert '"changed":true' in frames.replace(" ", "")
    assert PendingCall.from_dict(pending.to_dict()) == pending
    plain = PendingCall("1", "look", {}, "approval")
    assert "changed" not in plain.to_dict() and PendingCall.from_dict(plain.to_dict()) == plain
