"""Calls of the vendor's tools that the caller's machine answers (Responses): they end a run as pending, and never vanish."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_autotools import ChatOpenAI, ConfigurationError, events, new_messages, pending_calls
from tests.contract.talk import WAYS, run_in
from tests.support.responses_server import ResponsesServer
from tests.support.script import Events, Turn
from tests.support.weather import get_temperature

QUESTION = [HumanMessage("How warm is it?")]
FUNCTION = {"id": "fc_9", "type": "function_call", "call_id": "call_f", "name": "get_temperature", "arguments": '{"city":"Rome"}'}
SHELL = {
    **{"id": "sh_1", "type": "shell_call", "call_id": "call_s", "status": "completed"},
    "action": {"commands": ["ls"], "timeout_ms": None, "max_output_length": 100},
}
LOCAL = {
    **{"id": "lsh_1", "type": "local_shell_call", "call_id": "call_l", "status": "completed"},
    "action": {"type": "exec", "command": ["ls"], "env": {}},
}
PATCH = {
    **{"id": "apc_1", "type": "apply_patch_call", "call_id": "call_p", "status": "completed"},
    "operation": {"type": "delete_file", "path": "a.txt"},
}
SCREEN = {"id": "cu_1", "type": "computer_call", "call_id": "call_c", "action": {"type": "screenshot"}, "status": "completed"}
APPROVAL = {"id": "mcpr_1", "type": "mcp_approval_request", "server_label": "docs", "name": "read", "arguments": "{}"}

SHOWN = {"type": "input_image", "image_url": "https://example.org/a.png"}
RAN = [{"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
ANSWERS: dict[str, dict[str, Any]] = {
    "shell": {"type": "shell_call_output", "call_id": "call_s", "output": RAN},
    "local_shell": {"type": "local_shell_call_output", "id": "lsh_1", "output": "a.txt"},
    "apply_patch": {"type": "apply_patch_call_output", "call_id": "call_p", "status": "completed", "output": "done"},
    "computer": {"type": "computer_call_output", "call_id": "call_c", "output": SHOWN},
    "mcp": {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
}
CALLS: dict[str, dict[str, Any]] = {"shell": SHELL, "local_shell": LOCAL, "apply_patch": PATCH, "computer": SCREEN, "mcp": APPROVAL}

Talk = tuple[ChatOpenAI, ResponsesServer]
each_tool = pytest.mark.parametrize("tool", CALLS)


@pytest.fixture
def start() -> Iterator[Callable[..., Talk]]:
    """A function from replies to a model with a function and a tool of the vendor's, and its server. Afterwards: nothing was refused."""
    with ExitStack() as stack:
        servers: list[ResponsesServer] = []

        def begin(script: Any, tool: str = "shell", **arguments: Any) -> Talk:
            server = stack.enter_context(ResponsesServer(script))
            servers.append(server)
            known = {"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0}
            return ChatOpenAI(**{**known, "tools": [get_temperature, {"type": tool}], **arguments}), server

        yield begin
        assert [rejection.message for server in servers for rejection in server.rejections] == []


def reply(*items: dict[str, Any]) -> Events:
    """A reply of these items, streamed or whole."""
    whole = {"id": "resp_1", "object": "response", "status": "completed", "model": "any", "output": list(items)}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        for part in item.get("content", ()):
            at = {"output_index": index, "item_id": item["id"]}
            events += [{"type": "response.output_text.delta", **at, "delta": piece} for piece in (part["text"][:3], part["text"][3:])]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    return Events([*events, {"type": "response.completed", "response": whole}], whole)


def message(text: str) -> dict[str, Any]:
    """A message item."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}


def kinds(server: ResponsesServer, request: int = -1) -> list[str]:
    """The types, or roles, of a request's items."""
    items = server.exchanges[request].json["input"]
    return [item["role"] if item.get("type", "message") == "message" else item["type"] for item in items]


def blocks(message: AIMessage) -> list[Any]:
    """The content blocks of a message that are items of the vendor's, without their numbers."""
    found = [block.get("value", block) for block in message.content if isinstance(block, dict)]
    return [
        {key: value for key, value in block.items() if key != "index"} for block in found if block["type"].endswith(("call", "request"))
    ]


@each_tool
@pytest.mark.parametrize("way", WAYS)
async def test_the_run_ends_there_and_goes_on_with_the_answer(start: Callable[..., Talk], tool: str, way: str) -> None:
    """The function beside it runs, no further request is made; with the caller's answer the call goes back, unchanged."""
    model, server = start([reply(message("Look."), FUNCTION, CALLS[tool]), Turn("Fine.")], tool)
    ran = await run_in(way, model, QUESTION)
    assert ran.message.response_metadata["autotools"]["stop_reason"] == "calls_pending"
    assert [one.type for one in ran.new] == ["ai", "tool"]
    assert (len(server.exchanges), ran.message.text, ran.message.tool_calls) == (1, "Look.", [])
    assert blocks(ran.message) == [CALLS[tool]]
    assert [block for block in blocks(ran.new[0]) if block["type"] != "function_call"] == [CALLS[tool]]  # type: ignore[arg-type]
    for history in ([ran.message], ran.new):
        server.extend([Turn("Fine.")])
        answered = await run_in(way, model, [*QUESTION, *history, HumanMessage([ANSWERS[tool]])])
        assert answered.message.text == "Fine."
        assert kinds(server) == ["user", "assistant", "function_call", CALLS[tool]["type"], "function_call_output", ANSWERS[tool]["type"]]
        sent = server.exchanges[-1].json["input"]
        assert (sent[3], sent[5]) == (CALLS[tool], ANSWERS[tool])


@each_tool
@pytest.mark.parametrize("version", [None, "v1"])
def test_it_is_shown_as_a_call_of_a_client_tool(start: Callable[..., Talk], tool: str, version: str | None) -> None:
    """With what the item says, as long as nothing answers it; what cannot be done here cannot be decided."""
    model, _ = start([reply(message("Look."), FUNCTION, CALLS[tool])], tool, output_version=version)
    ran = model.invoke(QUESTION)
    history = [*QUESTION, *new_messages(ran)]
    (pending,) = pending_calls(ran)
    assert pending_calls(history) == [pending]
    item = CALLS[tool]
    kind = "vendor_approval" if tool == "mcp" else "client_tool"
    assert (pending.id, pending.name, pending.kind) == (item.get("call_id", item["id"]), item["type"], kind)
    assert pending.args == {key: value for key, value in item.items() if key not in ("type", "id", "call_id", "status")}
    decide: list[Callable[[], Any]] = [lambda: pending.edit({}), lambda: model.resume(history, True)]
    for other in (*decide, (lambda: pending.respond("done")) if tool == "mcp" else pending.approve):
        with pytest.raises(ConfigurationError, match="its vendor runs it|run it yourself|binds nothing"):
            other()
    assert pending_calls([*history, HumanMessage([ANSWERS[tool]])]) == []


@pytest.mark.parametrize("version", [None, "v1"])
async def test_alone_it_ends_the_run_too(start: Callable[..., Talk], version: str | None) -> None:
    """Without a function beside it the run is pending as well; all ways hand out the same message."""
    said = []
    for way in WAYS:
        model, _ = start([reply(SHELL)], output_version=version)
        ran = await run_in(way, model, QUESTION)
        assert ran.message.response_metadata["autotools"]["stop_reason"] == "calls_pending"
        assert blocks(ran.message) == blocks(ran.new[-1]) == [SHELL]  # type: ignore[arg-type]
        said.append((ran.message.content, ran.new[-1].content))
    assert all(one == said[0] for one in said)


@pytest.mark.parametrize("failed", [False, True])
def test_an_answer_may_be_a_tool_message(start: Callable[..., Talk], failed: bool) -> None:
    """The type of the item in `additional_kwargs`, as LangChain has it for screens."""
    status: Any = "error" if failed else "success"
    exit_code = {"type": "exit", "exit_code": int(failed)}
    wanted = {
        "shell": {"output": [{"stdout": "" if failed else "x", "stderr": "x" if failed else "", "outcome": exit_code}]},
        "local_shell": {"output": "x"},
        "apply_patch": {"output": "x", "status": "failed" if failed else "completed"},
    }
    for tool, said in wanted.items():
        model, server = start([reply(CALLS[tool]), Turn("Fine.")], tool)
        result = model.invoke(QUESTION)
        kind, identifier = ANSWERS[tool]["type"], CALLS[tool]["call_id"]
        answer = ToolMessage("x", tool_call_id=identifier, additional_kwargs={"type": kind}, status=status)
        assert model.invoke([*QUESTION, result, answer]).text == "Fine."
        assert server.exchanges[1].json["input"][1:] == [CALLS[tool], {"type": kind, "call_id": identifier, **said}]


def test_what_nobody_answers_is_left_out_with_a_warning(start: Callable[..., Talk], caplog: pytest.LogCaptureFixture) -> None:
    """The API refuses a call without its output; the words beside it and the function's result go."""
    model, server = start([reply(message("Look."), FUNCTION, SHELL), Turn("Fine.")])
    model.invoke([*QUESTION, model.invoke(QUESTION), HumanMessage("Never mind.")])
    assert kinds(server) == ["user", "assistant", "function_call", "function_call_output", "user"]
    assert any("call_s" in record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)


def test_a_shell_of_the_vendors_own_is_not_the_callers(start: Callable[..., Talk]) -> None:
    """A call that the reply itself answers ends nothing, and goes back with its answer."""
    there = {**ANSWERS["shell"], "id": "sho_1", "status": "completed"}
    model, server = start([reply(SHELL, there, message("One file.")), Turn("Yes.")])
    ran = model.invoke(QUESTION)
    assert (ran.text, ran.response_metadata["autotools"]["stop_reason"]) == ("One file.", "complete")
    model.invoke([*QUESTION, ran, HumanMessage("Sure?")])
    assert kinds(server) == ["user", "shell_call", "shell_call_output", "assistant", "user"]


def test_a_call_for_a_container_of_the_vendors_own_never_waits_for_the_caller(start: Callable[..., Talk]) -> None:
    """A command whose output the reply does not bring is nobody else's to run; it is not sent again without an answer."""
    hosted = {**SHELL, "environment": {"type": "container_reference", "container_id": "cntr_1"}}
    model, server = start([reply(hosted, message("No output.")), Turn("Yes.")])
    ran = model.invoke(QUESTION)
    assert (ran.text, ran.response_metadata["autotools"]["stop_reason"], pending_calls(ran)) == ("No output.", "complete", [])
    model.invoke([*QUESTION, ran, HumanMessage("Sure?")])
    assert kinds(server) == ["user", "assistant", "user"]


def test_a_call_for_a_container_of_the_vendors_own_is_shown_as_the_vendors(start: Callable[..., Talk]) -> None:
    """Its beginning and end are events of a vendor's call; a call on the caller's machine has none."""
    hosted = {**SHELL, "environment": {"type": "container_reference", "container_id": "cntr_1"}}
    model, _ = start([reply(hosted, {**ANSWERS["shell"], "id": "sho_1"}, message("One file.")), reply(SHELL)])
    kinds_of = [type(event).__name__ for event in events(model.stream(QUESTION)) if type(event).__name__.startswith("Vendor")]
    assert kinds_of == ["VendorCallStarted", "VendorCallDone"]
    assert not [event for event in events(model.stream(QUESTION)) if type(event).__name__.startswith("Vendor")]


def test_a_local_environment_is_the_callers(start: Callable[..., Talk]) -> None:
    """A call that names the caller's own machine waits like one that names nothing."""
    model, _ = start([reply({**SHELL, "environment": {"type": "local"}})])
    assert [call.id for call in pending_calls(model.invoke(QUESTION))] == ["call_s"]


def test_a_cut_reply_leaves_no_call_to_the_caller(start: Callable[..., Talk]) -> None:
    """A reply that its limit cut may hold half a call: the run says so instead."""
    cut = reply({**SHELL, "status": "incomplete"})
    assert cut.whole is not None
    whole = {**cut.whole, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    model, _ = start([Events([*cut.events[:-1], {"type": "response.incomplete", "response": whole}], whole)])
    assert model.invoke(QUESTION).response_metadata["autotools"]["stop_reason"] == "length"


@pytest.mark.parametrize("way", WAYS)
async def test_without_tools_of_its_own_the_message_has_the_call(start: Callable[..., Talk], way: str) -> None:
    """A model that runs nothing returns it as a content block, beside the calls of functions."""
    model, _ = start([reply(message("Look."), FUNCTION, SHELL)], tools=())
    ran = await run_in(way, model.bind_tools([get_temperature, {"type": "shell"}]), QUESTION)
    assert [block for block in blocks(ran.message) if block["type"] != "function_call"] == [SHELL]
    assert [call["name"] for call in ran.message.tool_calls] == ["get_temperature"]
    assert [block["type"] for block in ran.message.content_blocks] == ["text", "non_standard", "tool_call"]
    assert ran.message.text == "Look."


async def test_unstored_calls_go_back_without_ids(start: Callable[..., Talk]) -> None:
    """A server that keeps nothing knows no item by its id."""
    model, server = start([reply(SHELL), Turn("Fine.")], store=False)
    model.invoke([*QUESTION, model.invoke(QUESTION), HumanMessage([ANSWERS["shell"]])])
    assert server.exchanges[1].json["input"][1] == {key: value for key, value in SHELL.items() if key != "id" and value is not None}


# ---------------------------------------------------------------------------------------------- programs of the vendor's


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_calls_of_programs_keep_their_caller(start: Callable[..., Talk], way: str) -> None:
    """What may call a function, what it gives, and which program called it: all is said where the vendor asks for it."""
    caller = {"type": "program", "caller_id": "prog_1"}
    declared = {
        **{"type": "function", "name": "get_temperature", "description": "d", "parameters": {"type": "object", "properties": {}}},
        **{"allowed_callers": ["programmatic"], "output_schema": {"type": "string"}},
    }
    model, server = start(
        [reply({**FUNCTION, "caller": caller}), Turn("Fine."), Turn("Yes.")], tools=[get_temperature], use_responses_api=True
    )
    bound = model.bind_tools([declared])
    chunks = [bound.invoke(QUESTION)] if way == "invoke" else list(bound.stream(QUESTION))
    [pending] = [new for chunk in chunks for new in new_messages(chunk)]
    tool = server.exchanges[0].json["tools"][0]
    assert (tool["allowed_callers"], tool["output_schema"]) == (["programmatic"], {"type": "string"})
    server.memory.note("resp_1", [{**FUNCTION, "caller": caller}], stored=True)
    bound.invoke([*QUESTION, pending, ToolMessage("21", tool_call_id="call_f")])
    edited = pending.model_copy(update={"content": "Now."})
    bound.invoke([*QUESTION, edited, ToolMessage("21", tool_call_id="call_f")])
    for exchange in server.exchanges[1:]:
        call, output = exchange.json["input"][-2:]
        assert (call["caller"], output["caller"]) == (caller, caller), json.dumps(exchange.json["input"])
