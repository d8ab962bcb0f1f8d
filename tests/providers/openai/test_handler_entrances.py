"""Handlers wherever a model may be: bound, inside a tool, with an output that is parsed, and behind the pages that show what waits."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from langchain_autotools import (
    Agent,
    CallsPendingError,
    ConfigurationError,
    Handler,
    aevents,
    events,
    new_messages,
    pending_calls,
    stop_reason,
)
from langchain_autotools.encoders import ai_sdk, from_ai_sdk
from langchain_autotools.event_types import MessageDone
from tests.providers.openai.test_client_calls import ANSWERS, CALLS, FUNCTION, QUESTION, RAN, SHELL, Talk, message, reply, start
from tests.providers.openai.test_handlers import KINDS, Calls, arguments_of, handling
from tests.support.middleware import Around
from tests.support.script import Turn
from tests.support.weather import get_temperature

__all__ = ["start"]

SCHEMA = {
    **{"title": "A", "type": "object", "required": ["answer"], "additionalProperties": False},
    "properties": {"answer": {"type": "string"}},
}
ASKS = {"id": "fc_1", "type": "function_call", "call_id": "call_o", "name": "helper", "arguments": '{"question":"Which files?"}'}


def frames(sent: bytes) -> list[dict[str, Any]]:
    """The objects of server-sent events."""
    return [json.loads(line[6:]) for line in sent.decode().splitlines() if line.startswith("data: {")]


def test_a_tool_that_is_bound_has_the_models_handler(start: Callable[..., Talk]) -> None:
    """It is shown whole and runs as approved; handlers themselves cannot be bound."""
    calls: Calls = []
    model, server = start([reply(SHELL), Turn("Fine.")], tools=[get_temperature], handlers={"shell": handling("shell", calls)})
    bound = model.bind_tools([{"type": "shell"}])
    history = [*QUESTION, *new_messages(bound.invoke(QUESTION))]
    (pending,) = pending_calls(history)
    assert (pending.kind, pending.args) == ("approval", arguments_of(SHELL))
    assert bound.invoke(history, resume=[pending.approve()]).text == "Fine."
    assert (calls, server.exchanges[1].json["input"][-1]) == ([pending.args], ANSWERS["shell"])
    with pytest.raises(ConfigurationError, match="set where the model is made"):
        model.bind(handlers={"shell": print})


@pytest.mark.parametrize("needs", [False, True])
def test_the_run_around_an_agent_waits_for_its_handler(start: Callable[..., Talk], needs: bool) -> None:
    """What waits inside is shown with the way to it, and decided outside; a refusal runs nothing."""
    for approves in (True, False):
        calls: Calls = []
        handler = Handler(handling("shell", calls), requires_approval=needs)
        inner, inside = start([reply(SHELL), Turn("notes.txt")], handlers={"shell": handler})
        outer, outside = start([reply(ASKS), Turn("Fine.")], tools=[Agent(inner).as_tool("helper", "Help."), {"type": "shell"}])
        ran = outer.invoke(QUESTION)
        if needs:
            history = [*QUESTION, *new_messages(ran)]
            (pending,) = pending_calls(history)
            assert (stop_reason(ran), pending.kind, pending.path, pending.args) == (
                *("calls_pending", "approval", ("helper",), arguments_of(SHELL)),
            )
            assert (calls, len(outside.exchanges)) == ([], 1)
            ran = outer.resume(history, [json.loads(json.dumps((pending.approve() if approves else pending.reject("No.")).to_dict()))])
        assert (ran.text, len(calls)) == ("Fine.", 1 if approves or not needs else 0)
        sent = inside.exchanges[1].json["input"][-1]
        assert sent == ANSWERS["shell"] if calls else "No." in json.dumps(sent)
        assert outside.exchanges[1].json["input"][-1]["output"] == "notes.txt"


def test_a_tool_that_asks_such_a_model_says_what_is_open(start: Callable[..., Talk]) -> None:
    """Under the name that the model wrote."""
    inner, _ = start([reply(SHELL)], handlers={"shell": handling("shell", [])})

    def helper(question: str) -> str:
        """Help."""
        inner.invoke(question)
        return "Asked."

    outer, outside = start([reply(ASKS), Turn("Fine.")], tools=[helper], use_responses_api=True)
    assert outer.invoke(QUESTION).text == "Fine."
    result = outside.exchanges[1].json["input"][-1]["output"]
    assert "Asked." in result and "shell_call({" in result and "handler" not in result


def pwd_instead(request: Any) -> Any:
    """Middleware that changes each command."""
    return (yield request.override(tool_call={**request.tool_call, "args": {"action": {"commands": ["pwd"]}}}))


def test_a_command_that_middleware_changes_waits_again(start: Callable[..., Talk]) -> None:
    """Under the same name, with the changed command, and that one runs, where the handler still needs approval."""
    calls: Calls = []
    handlers = {"shell": handling("shell", calls)}
    model, server = start([reply(SHELL), Turn("Fine.")], handlers=handlers, middleware=[Around(tool=pwd_instead)])
    history = [*QUESTION, *new_messages(model.invoke(QUESTION))]
    (first,) = pending_calls(history)
    history += new_messages(model.resume(history, [first.approve()]))
    (second,) = pending_calls(history)
    assert (first.name, second.name, second.changed, second.args) == ("shell_call", "shell_call", True, {"action": {"commands": ["pwd"]}})
    assert (calls, len(server.exchanges)) == ([], 1)
    free, _ = start([], handlers={"shell": Handler(handling("shell", calls), requires_approval=False)})
    with pytest.raises(ConfigurationError, match="is not the one that was made"):  # of it nobody was asked
        free.resume(history, [second.approve()])
    assert calls == []
    assert model.resume(history, [second.approve()]).text == "Fine."
    assert calls == [second.args]


@pytest.mark.parametrize("handled", [False, True])
def test_an_output_that_is_parsed_waits_for_the_vendors_items(start: Callable[..., Talk], handled: bool) -> None:
    """It is no output that cannot be read: the item is shown, with a handler for approval and else for the caller."""
    calls: Calls = []
    handlers = {"shell": handling("shell", calls)} if handled else None
    model, _ = start([reply(message("Look."), SHELL), Turn('{"answer": "Fine."}')], handlers=handlers)
    structured: Any = model.with_structured_output(SCHEMA, method="json_schema", include_raw=True)
    out = structured.invoke(QUESTION)
    (pending,) = pending_calls(out["raw"])
    assert (pending.kind, pending.args) == ("approval" if handled else "client_tool", arguments_of(SHELL))
    assert (out["parsed"], type(out["parsing_error"]), out["raw"].text) == (None, CallsPendingError, "")
    decision = pending.approve() if handled else pending.respond(ANSWERS["shell"]["output"])
    out = structured.invoke([*QUESTION, *new_messages(out["raw"])], resume=[decision])
    assert (out["parsed"], len(calls)) == ({"answer": "Fine."}, int(handled))


def test_a_page_shows_the_command_before_it_asks(start: Callable[..., Talk]) -> None:
    """`useChat` knows the call that it answers; its answer, with the signature, runs that command."""
    calls: Calls = []
    model, server = start(
        [reply(message("Look."), FUNCTION, SHELL), Turn("Fine.")], handlers={"shell": handling("shell", calls)}, approval_key="secret"
    )
    told: list[Any] = list(events(model.stream(QUESTION)))
    shown = [one for one in frames(b"".join(ai_sdk(told))) if one.get("toolCallId") == "call_s"]
    assert [one["type"] for one in shown] == ["tool-input-available", "tool-approval-request"]
    assert (shown[0]["toolName"], shown[0]["input"]) == ("shell_call", arguments_of(SHELL))
    history = [*QUESTION, *(one.message for one in told if type(one).__name__ == "MessageDone")]
    answer = {"id": shown[1]["approvalId"], "approved": True, "signature": shown[1]["signature"]}
    part = {"type": "tool-shell_call", "toolCallId": "call_s", "state": "approval-responded", "input": {}, "approval": answer}
    posted = from_ai_sdk({"messages": [{"role": "assistant", "parts": [part]}]}, history, approval_key="secret")
    assert model.resume(history, posted.decisions).text == "Fine."
    assert (calls, server.exchanges[1].json["input"][-1]) == ([arguments_of(SHELL)], ANSWERS["shell"])


@pytest.mark.parametrize("needs", [False, True])
async def test_ag_ui_shows_the_command(start: Callable[..., Talk], needs: bool) -> None:
    """As a call of the message, before its result or its interrupt, and in the history of a page that is new."""
    pytest.importorskip("ag_ui", reason="needs the extra `ag-ui`")
    from langchain_autotools.encoders import ag_ui, from_ag_ui

    calls: Calls = []
    handler = Handler(handling("shell", calls), requires_approval=needs)
    model, _ = start([reply(message("Look."), SHELL), Turn("Fine.")], handlers={"shell": handler}, approval_key="secret")
    told: list[Any] = [event async for event in aevents(model.astream(QUESTION))]
    history = [*QUESTION, *(one.message for one in told if type(one).__name__ == "MessageDone")]
    sent = frames(b"".join(ag_ui(told, thread_id="t")))
    (written,) = [one for one in sent if one["type"] == "TOOL_CALL_ARGS"]
    assert (written["toolCallId"], json.loads(written["delta"])) == ("call_s", arguments_of(SHELL))
    if needs:
        (interrupt,) = sent[-1]["outcome"]["interrupts"]
        assert interrupt["toolCallId"] == "call_s"
        resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}]
        lists: dict[str, Any] = {name: [] for name in ("messages", "tools", "context")}
        body = {"threadId": "t", "runId": "r", "state": {}, "forwardedProps": {}, **lists, "resume": resume}
        assert model.resume(history, from_ag_ui(body, history, approval_key="secret").decisions).text == "Fine."
    else:
        kinds = [one["type"] for one in sent]
        assert kinds.index("TOOL_CALL_END") < kinds.index("TOOL_CALL_RESULT")
    assert calls == [arguments_of(SHELL)]
    (snapshot,) = [one for one in frames(b"".join(ag_ui([], thread_id="t", history=history))) if one["type"] == "MESSAGES_SNAPSHOT"]
    (call,) = [call for one in snapshot["messages"] for call in one.get("toolCalls") or ()]
    assert (call["id"], json.loads(call["function"]["arguments"])) == ("call_s", arguments_of(SHELL))


def test_ag_ui_shows_a_result_of_several_objects_as_they_are(start: Callable[..., Talk]) -> None:
    """The outputs of a shell's commands: one JSON text each, as the handler returned them."""
    pytest.importorskip("ag_ui", reason="needs the extra `ag-ui`")
    from langchain_autotools.encoders import ag_ui

    outputs = [*RAN, {"stdout": "", "stderr": "no", "outcome": {"type": "exit", "exit_code": 1}}]
    model, server = start([reply(SHELL), Turn("Fine.")], handlers={"shell": Handler(lambda _: outputs, requires_approval=False)})
    told = list(events(model.stream(QUESTION)))
    history = [*QUESTION, *(one.message for one in told if isinstance(one, MessageDone))]
    (result,) = [one for one in frames(b"".join(ag_ui(told, thread_id="t"))) if one["type"] == "TOOL_CALL_RESULT"]
    (snapshot,) = [one for one in frames(b"".join(ag_ui([], thread_id="t", history=history))) if one["type"] == "MESSAGES_SNAPSHOT"]
    (kept,) = [one["content"] for one in snapshot["messages"] if one["role"] == "tool"]
    for content in (result["content"], kept):
        assert [json.loads(part["text"]) for part in content] == outputs
    assert server.exchanges[1].json["input"][-1]["output"] == outputs


@pytest.mark.parametrize("tool", ["shell", "local_shell", "computer", "mcp"])
@pytest.mark.parametrize("handled", [False, True])
def test_an_item_of_a_tool_that_a_turn_leaves_out_is_answered(start: Callable[..., Talk], tool: str, handled: bool) -> None:
    """No handler runs and nobody is asked; a turn later the tool is there again."""
    calls: Calls = []
    handler = Handler(handling(tool, calls), requires_approval=False)
    again = {**CALLS[tool], "id": "again", **({} if tool == "mcp" else {"call_id": "call_again"})}
    model, server = start(
        [reply(message("Look."), CALLS[tool]), reply(again), Turn("Fine.")],
        tool,
        handlers={KINDS.get(tool, tool): handler} if handled else None,
        before_turn=lambda turn: replace(turn, tools=["get_temperature"]) if turn.number == 1 else None,
        use_responses_api=True,
    )
    run = model.invoke(QUESTION)
    (refused, *_) = [one for one in new_messages(run) if one.type == "tool"]
    assert (stop_reason(run), len(calls)) == (("complete", 1) if handled else ("calls_pending", 0))
    assert refused.status == "error" and "is not allowed here" in refused.text  # type: ignore[attr-defined]
    assert [call.id for call in pending_calls(run)] == ([] if handled else ["again" if tool == "mcp" else "call_again"])
    assert "is not allowed here" in json.dumps(server.exchanges[1].json["input"][-1])
