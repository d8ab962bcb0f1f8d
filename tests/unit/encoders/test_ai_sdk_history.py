"""A page of the AI SDK that is loaded again: it is given what it had, and what it decides then resumes the calls that wait."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_autotools import ConfigurationError, new_messages, pending_calls
from langchain_autotools.encoders import ai_sdk_messages, from_ai_sdk
from langchain_autotools.encoders.posted import signature_of
from tests.unit.encoders import test_ai_sdk_posted as posted_calls
from tests.unit.encoders.test_calls_inside import KEY, paying

QUESTION: list[BaseMessage] = [SystemMessage("Be brief."), HumanMessage("Pay.", id="q")]


def changed() -> tuple[Any, list[BaseMessage]]:
    """A call that a wrapper has changed, which waits once more."""
    pytest.importorskip("langchain.agents.middleware", reason="needs LangChain")
    from tests.unit.encoders.test_changed_calls import asked_again

    model, history, *_ = asked_again()
    return model, history


def inside() -> tuple[Any, list[BaseMessage]]:
    """A call of a run inside a tool."""
    model = paying([])
    return model, [*QUESTION, *new_messages(model.invoke(QUESTION))]


def of_each_kind() -> tuple[Any, list[BaseMessage]]:
    """A call that needs approval, one of a tool of the page's own, and one that has its result."""
    model = posted_calls.MODEL.bind_tools([posted_calls.THEIRS])
    return model, [QUESTION[1], *new_messages(model.invoke(QUESTION[1:]))]


def as_a_run() -> tuple[Any, list[BaseMessage]]:
    """The same in one run message."""
    model = posted_calls.MODEL.bind_tools([posted_calls.THEIRS])
    return model, [QUESTION[1], model.invoke(QUESTION[1:])]


def decided(part: dict[str, Any]) -> dict[str, Any]:
    """The part of a waiting call as its page has it after the user's answer."""
    if part.get("state") == "approval-requested":
        return {**part, "state": "approval-responded", "approval": {**part["approval"], "approved": True}}
    return {**part, "state": "output-available", "output": "home"} if part.get("state") == "input-available" else part


@pytest.mark.parametrize("made", [of_each_kind, as_a_run, inside, changed])
def test_waiting_calls_wait_on_a_page_that_is_loaded_again(made: Callable[[], tuple[Any, list[BaseMessage]]]) -> None:
    """With their signatures; what the page then posts, all of it, is the decision about each, and the run goes on to its end."""
    model, history = made()
    waiting, shown = pending_calls(history), json.loads(json.dumps(ai_sdk_messages(history)))
    assert [one["role"] for one in shown] == ["user", "assistant"] and len({one["id"] for one in shown}) == 2
    asking = [part["approval"] for part in shown[-1]["parts"] if part.get("state") == "approval-requested"]
    assert asking == [{"id": call.uuid, "signature": signature_of(call)} for call in waiting if call.kind == "approval"]
    shown[-1]["parts"] = [decided(part) for part in shown[-1]["parts"]]
    decisions = from_ai_sdk({"id": "chat", "messages": shown}, history, approval_key=KEY).decisions
    assert decisions == [call.approve() if call.kind == "approval" else call.respond("home") for call in waiting]
    history += new_messages(model.resume(history, decisions))
    calls = [part for part in ai_sdk_messages(history)[-1]["parts"] if "toolCallId" in part]
    assert {part["state"] for part in calls} == {"output-available"} and len(ai_sdk_messages(history)) == 2


def test_a_history_is_shown_as_its_runs_were() -> None:
    """Texts, reasoning, files, calls and what became of each; the system's words and artifacts are not there."""
    calls = [{"name": "look", "args": {"at": place}, "id": place} for place in ("rome", "nowhere", "lost")]
    thought: list[Any] = [{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "Let me look."}]
    usage: Any = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    picture = {"type": "image", "base64": "aGk=", "mime_type": "image/png", "extras": {"filename": "a.png"}}
    files: list[Any] = [picture, {"type": "file", "file_id": "f"}, {"type": "image", "url": "https://example.org/b.png"}]
    history: list[BaseMessage] = [
        SystemMessage("secret"),
        HumanMessage([{"type": "text", "text": "Look."}, *files], id="q"),
        AIMessage(thought, id="m1", tool_calls=calls, usage_metadata=usage),
        ToolMessage("21 °C", tool_call_id="rome", artifact="secret"),
        ToolMessage('{"error": "no such place"}', tool_call_id="nowhere", status="error"),
        AIMessage("Rome has 21 °C.", id="m2"),
        ToolMessage("of nothing", tool_call_id="unknown"),
        HumanMessage("", id="q"),
        AIMessage("", id="m3"),
    ]
    user, answer, *last = ai_sdk_messages(history)
    assert (user["id"], user["parts"][0]) == ("q", {"type": "text", "text": "Look."})
    assert [part.get("url") for part in user["parts"][1:]] == ["data:image/png;base64,aGk=", None, "https://example.org/b.png"]
    assert user["parts"][1]["filename"] == "a.png" and user["parts"][2]["type"] == "data-vendor-file"
    call = {"type": "tool-look", "state": "output-available"}
    failed = {**call, "state": "output-error"}
    assert answer["parts"] == [
        {"type": "step-start"},
        {"type": "reasoning", "text": "Hm.", "state": "done"},
        {"type": "text", "text": "Let me look.", "state": "done"},
        {**call, "toolCallId": "rome", "input": {"at": "rome"}, "output": "21 °C"},
        {**failed, "toolCallId": "nowhere", "input": {"at": "nowhere"}, "errorText": "no such place"},
        {**failed, "toolCallId": "lost", "input": {"at": "lost"}, "errorText": "This call has no result."},
        {"type": "step-start"},
        {"type": "text", "text": "Rome has 21 °C.", "state": "done"},
    ]
    assert (answer["id"], answer["metadata"]["usage"]["total_tokens"]) == ("m1", 7)
    assert [(one["id"], one["parts"]) for one in last] == [
        ("message 3", [{"type": "text", "text": ""}]),
        ("m3", [{"type": "step-start"}]),
    ]
    assert "secret" not in json.dumps(ai_sdk_messages(history)) and ai_sdk_messages([]) == []


def test_what_is_no_history_is_refused() -> None:
    """A text, or one message."""
    with pytest.raises(ConfigurationError, match="history must be the list"):
        ai_sdk_messages("Pay.")  # type: ignore[arg-type]
