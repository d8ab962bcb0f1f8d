"""Decisions about calls of the vendor's tools that the caller's machine answers (Responses), made as about every call that waits."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from langchain_autotools import Agent, ChatAnthropic, ConfigurationError, ToolExecutor, events, new_messages, pending_calls
from langchain_autotools.encoders.posted import PostedDecisions, signature_of
from langchain_autotools.event_types import CallResult, CallsPending, MessageDone
from tests.contract.talk import WAYS, run_in
from tests.providers.openai.test_client_calls import (
    ANSWERS,
    APPROVAL,
    CALLS,
    FUNCTION,
    QUESTION,
    RAN,
    SCREEN,
    SHELL,
    SHOWN,
    Talk,
    each_tool,
    message,
    reply,
    start,
)
from tests.support.anthropic_server import AnthropicServer
from tests.support.script import Turn
from tests.support.weather import get_temperature

__all__ = ["start"]

RESPONSES: dict[str, tuple[Any, dict[str, Any]]] = {
    "shell": (RAN, ANSWERS["shell"]),
    "local_shell": ("a.txt", {"type": "local_shell_call_output", "call_id": "call_l", "output": "a.txt"}),
    "apply_patch": ("done", ANSWERS["apply_patch"]),
    "computer": ({"type": "image", "url": "https://example.org/a.png"}, {**ANSWERS["computer"], "output": {**SHOWN, "detail": "auto"}}),
    "mcp": (True, ANSWERS["mcp"]),
}


@each_tool
@pytest.mark.parametrize("way", WAYS)
async def test_a_decision_answers_it(start: Callable[..., Talk], tool: str, way: str) -> None:
    """`resume` writes the item that the vendor wants, and the model goes on; what it stored does so in later requests."""
    model, server = start([reply(message("Look."), FUNCTION, CALLS[tool]), Turn("Fine."), Turn("Yes.")], tool)
    ran = await run_in(way, model, QUESTION)
    (pending,) = pending_calls(ran.message)
    content, item = RESPONSES[tool]
    decision = pending.approve() if tool == "mcp" else pending.respond(content)
    resumed = await run_in(way, model, [*QUESTION, *ran.new], resume=[json.loads(json.dumps(decision.to_dict()))])
    assert (resumed.message.text, resumed.message.response_metadata["autotools"]["stop_reason"]) == ("Fine.", "complete")
    assert [one.type for one in resumed.new] == ["tool", "ai"]
    await run_in(way, model, [*QUESTION, *ran.new, *resumed.new, HumanMessage("Sure?")])
    for exchange in server.exchanges[1:]:
        assert [exchange.json["input"][place] for place in (3, 5)] == [CALLS[tool], item]


REFUSALS: dict[str, Any] = {
    "shell": {"output": [{"stdout": "", "stderr": "Not now.", "outcome": {"type": "exit", "exit_code": 1}}]},
    "local_shell": {"output": "Not now."},
    "apply_patch": {"output": "Not now.", "status": "failed"},
    "mcp": {"approve": False, "reason": "Not now."},
}


@pytest.mark.parametrize("plain", [False, True])
def test_a_refusal_answers_it(start: Callable[..., Talk], plain: bool) -> None:
    """With its reason, in the vendor's own shape; a computer takes pictures only, so its call goes and the reason is the user's."""
    for tool in CALLS:
        model, server = start([reply(message("Look."), CALLS[tool]), Turn("Fine.")], tool)
        ran = model.invoke(QUESTION)
        (pending,) = pending_calls(ran)
        decisions: Any = {pending.id: "Not now."} if plain else [pending.reject("Not now.")]
        assert model.resume([*QUESTION, *new_messages(ran)], decisions).text == "Fine."
        sent = server.exchanges[1].json["input"][-1]
        if tool == "computer":
            assert (sent["role"], "Not now." in json.dumps(sent)) == ("user", True)
        else:
            assert {key: sent[key] for key in REFUSALS[tool]} == REFUSALS[tool]


@pytest.mark.parametrize("version", [None, "v1"])
def test_calls_are_decided_one_by_one(start: Callable[..., Talk], version: str | None) -> None:
    """What nobody has decided waits on, beside functions that wait too, and no request is made before all is answered."""
    other = {**SHELL, "id": "sh_2", "call_id": "call_t"}
    model, server = start(
        [reply(message("Look."), FUNCTION, SHELL, other), Turn("Fine.")], output_version=version, requires_approval=["get_temperature"]
    )
    ran = model.invoke(QUESTION)
    history = [*QUESTION, *new_messages(ran)]
    assert [call.id for call in pending_calls(history)] == ["call_f", "call_s", "call_t"]
    for call_id in ("call_t", "call_s", "call_f"):
        (pending,) = [call for call in pending_calls(history) if call.id == call_id]
        assert len(server.exchanges) == 1
        resumed = model.resume(history, [pending.approve() if call_id == "call_f" else pending.respond("x")])
        history += new_messages(resumed)
        assert pending_calls(resumed) == pending_calls(history)
    assert (resumed.text, len(server.exchanges)) == ("Fine.", 2)


def test_a_decision_is_about_the_item_that_was_shown(start: Callable[..., Talk]) -> None:
    """With a key nobody else can approve what a vendor runs, nor change what was shown; without one a change is found too."""
    for key in (None, "secret"):
        model, _ = start([reply(APPROVAL), Turn("Fine.")], "mcp", approval_key=key)
        ran = model.invoke(QUESTION)
        (pending,) = pending_calls(ran)
        stored: Any = new_messages(ran)[-1]
        changed = stored.model_copy(update={"content": [{**block, "name": "write"} for block in stored.content]})
        with pytest.raises(ConfigurationError, match="call 'mcpr_1' is"):
            model.resume([*QUESTION, changed], [pending.approve()])
        with pytest.raises(ConfigurationError, match="call 'mcpr_1' is"):
            model.resume([*QUESTION, changed], [pending_calls(changed)[0].approve()]) if key else model.resume(
                [*QUESTION, stored], [pending_calls(changed)[0].approve()]
            )
        if key is not None:
            own = stored.response_metadata["autotools"]
            bare = {**own, "awaits": [{name: entry[name] for name in ("id", "kind", "answer")} for entry in own["awaits"]]}
            stripped = stored.model_copy(update={"response_metadata": {**stored.response_metadata, "autotools": bare}})
            with pytest.raises(ConfigurationError, match="no record"):
                model.resume([*QUESTION, stripped], [pending_calls(stripped)[0].approve()])
        assert model.resume([*QUESTION, stored], [pending.approve()]).text == "Fine."


def test_the_vendors_own_fields_of_an_answer(start: Callable[..., Talk]) -> None:
    """An object with `output` is the item's fields, such as the safety checks that a user has acknowledged."""
    checks = [{"id": "sc_1", "code": "malicious", "message": "Sure?"}]
    model, server = start([reply(SCREEN), Turn("Fine.")], "computer")
    ran = model.invoke(QUESTION)
    (pending,) = pending_calls(ran)
    model.resume([*QUESTION, ran], [pending.respond({"output": SHOWN, "acknowledged_safety_checks": checks})])
    assert server.exchanges[1].json["input"][-1] == {**ANSWERS["computer"], "acknowledged_safety_checks": checks}


def test_found_tools_answer_a_search(start: Callable[..., Talk]) -> None:
    """A client's search for tools is answered by the tools; by none where it was refused."""
    search = {"id": "tsc_1", "type": "tool_search_call", "call_id": "call_q", "execution": "client", "arguments": {}, "status": "completed"}
    found = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}, "strict": False}
    for decide, tools in ((lambda call: call.respond([found]), [found]), (lambda call: call.reject(), [])):
        model, server = start([reply(search), Turn("Fine.")], tools=[get_temperature, {"type": "tool_search", "execution": "client"}])
        ran = model.invoke(QUESTION)
        model.resume([*QUESTION, ran], [decide(pending_calls(ran)[0])])
        known = {"type": "tool_search_output", "call_id": "call_q", "execution": "client", "status": "completed"}
        assert server.exchanges[1].json["input"][-1] == {**known, "tools": tools}


def test_an_executor_alone_takes_the_decision(start: Callable[..., Talk]) -> None:
    """A loop of one's own: the item is left out of the results until it is decided, and its result is sent as the vendor's item."""
    model, server = start([reply(message("Look."), FUNCTION, SHELL), Turn("Fine.")], tools=())
    executor = ToolExecutor([get_temperature])
    bound = model.bind_tools([get_temperature, {"type": "shell"}])
    answer = bound.invoke(QUESTION)
    history = [*QUESTION, answer, *executor.execute_all(answer)]
    assert [call.id for call in executor.pending_calls(answer)] == ["call_s"]
    (pending,) = pending_calls(history)
    history += executor.execute_all(answer, messages=history, decisions=[pending.respond(RAN)])
    assert bound.invoke(history).text == "Fine."
    assert server.exchanges[1].json["input"][-1] == ANSWERS["shell"]


def test_whoever_reads_events_is_told(start: Callable[..., Talk]) -> None:
    """The item waits, and is answered, like any call."""
    model, _ = start([reply(SHELL), Turn("Fine.")])
    told = list(events(model.stream(QUESTION)))
    (waiting,) = [event for event in told if isinstance(event, CallsPending)]
    history = [*QUESTION, *(event.message for event in told if isinstance(event, MessageDone))]
    again = list(events(model.stream(history, resume=[waiting.calls[0].respond("x")])))
    (result,) = [event for event in again if isinstance(event, CallResult)]
    assert (result.call.name, result.message.text) == ("shell_call", "x")


def test_any_vendor_takes_the_history(start: Callable[..., Talk]) -> None:
    """What was answered by a decision is left out of requests to others, as what a message answers is."""
    for tool in CALLS:
        model, _ = start([reply(message("Look."), CALLS[tool]), Turn("Fine.")], tool)
        ran = model.invoke(QUESTION)
        (pending,) = pending_calls(ran)
        resumed = model.resume([*QUESTION, ran], [pending.approve() if tool == "mcp" else pending.respond(RESPONSES[tool][0])])
        with AnthropicServer([Turn("Hello.")]) as server:
            other = ChatAnthropic(model="any", base_url=server.url, api_key="key", max_retries=0)
            assert other.invoke([*QUESTION, ran, resumed, HumanMessage("And you?")]).text == "Hello."
            assert server.rejections == []


def test_a_page_may_decide_with_the_signatures_that_it_was_shown(start: Callable[..., Talk]) -> None:
    """An approval by its signature, which has no other arguments; an output of the page's as that of any call left to it."""
    model, server = start([reply(SHELL, APPROVAL), Turn("Fine.")], approval_key="secret")
    history = [*QUESTION, *new_messages(model.invoke(QUESTION))]
    signature = signature_of(next(call for call in pending_calls(history) if call.id == "mcpr_1"))
    posted = PostedDecisions(history, "secret")
    posted.approve("mcpr_1", "forged")
    posted.approve("mcpr_1", signature, args={"name": "write"})
    assert posted.decisions == []
    posted.approve("mcpr_1", signature)
    posted.respond("call_s", RAN)
    assert model.resume(history, posted.decisions).text == "Fine."
    assert server.exchanges[1].json["input"][-2:] == [ANSWERS["shell"], ANSWERS["mcp"]]


def test_only_what_runs_here_is_claimed(start: Callable[..., Talk]) -> None:
    """A function `claim` is called for all decisions as one, then for the function: the others run elsewhere."""
    taken: list[str] = []

    def claim(key: str) -> bool:
        taken.append(key)
        return True

    model, _ = start(
        [reply(FUNCTION, SHELL, APPROVAL), Turn("Fine.")], claim=claim, approval_key="secret", requires_approval=["get_temperature"]
    )
    history = [*QUESTION, *new_messages(model.invoke(QUESTION))]
    function, shell, approval = pending_calls(history)
    assert model.resume(history, [function.approve(), shell.respond(RAN), approval.approve()]).text == "Fine."
    assert [key.partition(".")[0] == "decided" for key in taken] == [True, False]


def test_an_agent_takes_the_decision(start: Callable[..., Talk]) -> None:
    """Its conversation goes on with what the caller's machine gave."""
    model, server = start([reply(SHELL), Turn("Fine.")])
    agent = Agent(model)
    (pending,) = pending_calls(agent.run("Go"))
    assert agent.run(resume=[pending.respond(RAN)]).text == "Fine."
    assert server.exchanges[1].json["input"][-1] == ANSWERS["shell"]
