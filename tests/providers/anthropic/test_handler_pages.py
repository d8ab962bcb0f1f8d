"""Handlers of Anthropic's tools for the caller's machine behind pages: what they would do is shown, approved there, and runs as shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from langchain_autotools import ChatAnthropic, Handler, aevents, events
from langchain_autotools.encoders import ai_sdk, from_ai_sdk
from langchain_autotools.event_types import MessageDone
from tests.providers.anthropic.test_handlers import DECLARED, QUESTION, model
from tests.providers.openai.test_handler_entrances import frames
from tests.support.anthropic_server import AnthropicServer
from tests.support.script import Call, Turn

ARGUMENTS: dict[str, dict[str, Any]] = {
    "shell": {"command": "ls && rm a.txt"},
    "text_editor": {"command": "str_replace", "path": "a.txt", "old_str": "<b>one</b>", "new_str": "zwei"},
    "memory": {"command": "create", "path": "/memories/a.txt", "file_text": "Zoë"},
    "computer": {"action": "left_click", "coordinate": [3, 4]},
}
each_kind = pytest.mark.parametrize("kind", DECLARED)


def asking(server: AnthropicServer, kind: str, handle: Callable[[dict[str, Any]], Any], *, needs: bool = True) -> ChatAnthropic:
    """A model with a tool of the vendor's and its handler."""
    handlers = {kind: Handler(handle, requires_approval=needs)}
    return model(server, DECLARED[kind][0], handlers=handlers, approval_key="secret")


def script(kind: str) -> list[Turn]:
    """A reply that calls the tool, and the last one."""
    return [Turn("Look.", [Call(DECLARED[kind][0]["name"], ARGUMENTS[kind], id="toolu_p")]), Turn("Fine.")]


def answered(server: AnthropicServer) -> Any:
    """The answer to the call in the last request, and that nothing was refused."""
    assert server.rejections == []
    return server.messages[-1][-1]["content"][-1]


@each_kind
@pytest.mark.parametrize("approved", [True, False])
def test_a_page_of_the_ai_sdk_approves_what_it_shows(kind: str, approved: bool) -> None:
    """It gets the call with its arguments, then the request for approval; approved it runs once, refused never."""
    ran: list[Any] = []
    with AnthropicServer(script(kind)) as server:
        asks = asking(server, kind, lambda arguments: ran.append(arguments) or DECLARED[kind][1])
        told = list(events(asks.stream(QUESTION)))
        history = [*QUESTION, *(event.message for event in told if isinstance(event, MessageDone))]
        sent = [one for one in frames(b"".join(ai_sdk(told))) if one.get("toolCallId") == "toolu_p"]
        (available,) = [one for one in sent if one["type"] == "tool-input-available"]
        assert (available["toolName"], available["input"]) == (DECLARED[kind][0]["name"], ARGUMENTS[kind])
        assert (sent[-1]["type"], ran) == ("tool-approval-request", [])
        answer = {"id": sent[-1]["approvalId"], "approved": approved, "signature": sent[-1]["signature"]}
        part = {"type": f"tool-{available['toolName']}", "toolCallId": "toolu_p", "state": "approval-responded", "input": {}}
        body = {"messages": [{"role": "assistant", "parts": [{**part, "approval": answer}]}]}
        posted = from_ai_sdk(body, history, approval_key="secret")
        went_on = list(events(asks.stream(history, resume=posted.decisions)))
        shown = [one["type"] for one in frames(b"".join(ai_sdk(went_on))) if one.get("toolCallId") == "toolu_p"]
        assert shown[-1] == ("tool-output-available" if approved else "tool-output-denied")
        assert (ran, answered(server).get("is_error", False)) == ([ARGUMENTS[kind]] if approved else [], not approved)


@each_kind
@pytest.mark.parametrize("needs", [True, False])
async def test_a_page_of_ag_ui_approves_what_it_shows(kind: str, needs: bool) -> None:
    """It has the call of the message and its interrupt; what needs no approval has its result at once."""
    pytest.importorskip("ag_ui", reason="needs the extra `ag-ui`")
    from langchain_autotools.encoders import ag_ui, from_ag_ui

    ran: list[Any] = []
    with AnthropicServer(script(kind)) as server:
        asks = asking(server, kind, lambda arguments: ran.append(arguments) or DECLARED[kind][1], needs=needs)
        told: list[Any] = [event async for event in aevents(asks.astream(QUESTION))]
        history = [*QUESTION, *(event.message for event in told if isinstance(event, MessageDone))]
        sent = frames(b"".join(ag_ui(told, thread_id="t")))
        (written,) = [one for one in sent if one["type"] == "TOOL_CALL_ARGS"]
        assert (written["toolCallId"], json.loads(written["delta"])) == ("toolu_p", ARGUMENTS[kind])
        if needs:
            (interrupt,) = sent[-1]["outcome"]["interrupts"]
            assert (interrupt["toolCallId"], ran) == ("toolu_p", [])
            resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}]
            lists: dict[str, Any] = {name: [] for name in ("messages", "tools", "context")}
            body = {"threadId": "t", "runId": "r", "state": {}, "forwardedProps": {}, **lists, "resume": resume}
            told = list(events(asks.stream(history, resume=from_ag_ui(body, history, approval_key="secret").decisions)))
            sent = frames(b"".join(ag_ui(told, thread_id="t")))
        (result,) = [one for one in sent if one["type"] == "TOOL_CALL_RESULT"]
        content = result["content"] if isinstance(result["content"], str) else result["content"][0]["type"]
        assert (result["toolCallId"], content) == ("toolu_p", "image" if kind == "computer" else DECLARED[kind][1])
        assert [event.message.text for event in told if isinstance(event, MessageDone)][-1] == "Fine."
        assert (ran, answered(server)["tool_use_id"]) == ([ARGUMENTS[kind]], "toolu_p")
