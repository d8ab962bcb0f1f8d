"""Questions of MCP servers: answered at once, or waited for until somebody answers, wherever the call is made."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from langchain_core.messages import AIMessage, HumanMessage
from mcp import ClientSession

from langchain_autotools import (
    Agent,
    ConfigurationError,
    Decision,
    McpServer,
    PendingCall,
    ToolExecutor,
    mcp_server,
    new_messages,
    pending_calls,
    results_of,
    stop_reason,
)
from langchain_autotools.executor.pending import check_answer
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.talk import WAYS, run_in
from tests.support.http_server import HttpReply, LoopbackServer
from tests.unit.mcp_client.test_mcp_server import PROGRAM, Notes, asks, model, said, until

Serve = Callable[..., McpServer]
QUESTION = [HumanMessage("Go")]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ROME = {"city": {"action": "accept", "content": {"city": "Rome"}}}
NONE = {"city": {"action": "decline"}}
waits = pytest.mark.skipif(not hasattr(ClientSession, "discover"), reason="calls can wait since the protocol of version 2 of `mcp`")


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    """The notes of this test's servers."""
    return Notes(tmp_path / "notes")


@pytest.fixture
def serve(notes: Notes) -> Iterator[Serve]:
    """A function that starts a server, of the newest protocol or of the last with a handshake."""
    with ExitStack() as stack:
        yield lambda *modern, **known: stack.enter_context(mcp_server([sys.executable, str(PROGRAM), str(notes.path), *modern], **known))


def sent(decision: Decision) -> list[dict[str, Any]]:
    """A decision as another process would read it."""
    return [json.loads(json.dumps(decision.to_dict()))]


@waits
@pytest.mark.parametrize("way", WAYS)
async def test_a_call_waits_for_the_answer_and_goes_on(way: str, serve: Serve, notes: Notes) -> None:
    """It was begun once, asked about once, in another server's session it has the answer; the approval and the answer are claimed."""
    claimed: list[str] = []

    def calls() -> int:
        return sum(not key.startswith("decided.") for key in claimed)

    def claim(key: str) -> bool:
        claimed.append(key)
        return True

    made = model(serve("modern"), asks("ask"), requires_approval=["ask"], claim=claim)
    history: list[Any] = [*QUESTION, *(await run_in(way, made, QUESTION)).new]
    (call,) = pending_calls(history)
    asked = await run_in(way, made, history, resume=sent(call.approve()))
    history += asked.new
    (question,) = pending_calls(asked.message)
    assert (pending_calls(history), stop_reason(asked.message)) == ([question], "calls_pending")
    assert (question.kind, question.path, question.args) == ("elicitation", ("ask",), {"message": "Which city?", "schema": SCHEMA})
    assert (calls(), notes.begun("ask"), notes.begun("goes on")) == (1, 1, 0)
    other = ScriptedChatModel(tools=[serve("modern")], replies=["Done."], requires_approval=["ask"], claim=claim)
    done = await run_in(way, other, history, resume=sent(question.respond({"city": "Rome"})))
    assert (done.message.text, json.loads(done.new[0].text)) == ("Done.", ROME)
    assert (calls(), notes.begun("ask"), notes.begun("goes on"), len(notes.processes)) == (2, 1, 1, 2)


@waits
def test_only_an_answer_that_fits_goes_on(serve: Serve, notes: Notes) -> None:
    """A misfit, another action, another state of the call: nothing reaches the server; a refusal declines."""
    made = model(serve("modern"), asks("ask"), approval_key="secret")
    history = [*QUESTION, *new_messages(made.invoke(QUESTION))]
    (question,) = pending_calls(history)
    with pytest.raises(ConfigurationError, match="does not fit its schema: 3 is not of type 'string'"):
        made.resume(history, [question.respond({"city": 3})])
    with pytest.raises(ConfigurationError, match="its server asks a question"):
        question.approve()
    with pytest.raises(ConfigurationError, match="binds nothing|the calls that wait"):
        made.resume(history, True)
    forged = json.loads(json.dumps(history[-1].model_dump()).replace("at the first question", "somewhere else"))
    with pytest.raises(ConfigurationError, match="is not the one that was made"):
        made.resume([*history[:-1], type(history[-1])(**forged)], [question.respond({"city": "Rome"})])
    assert notes.begun("goes on") == 0
    assert json.loads(said(made.resume(history, [question.reject()]))[0]) == NONE


@pytest.mark.parametrize("modern", [pytest.param(("modern",), marks=waits), ()], ids=["modern", "handshake"])
@pytest.mark.parametrize("way", ["invoke", "astream"])
async def test_approve_answers_at_once(way: str, modern: Any, serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    """It is shown the same call in both protocols, synchronous or not; what it leaves open waits, or is declined where no call can."""
    server, shown = serve(*modern), list[Any]()

    async def later(call: Any) -> Any:
        return decided(call)

    def decided(call: Any) -> Any:
        if call.kind != "elicitation":
            return call.approve()
        shown.append((call.path, call.args))
        return answers.pop()(call)

    for approve in (decided, later) if way == "astream" else (decided,):
        answers = [
            lambda call: None,
            lambda call: call.reject(),
            lambda call: call.respond({}),
            lambda call: call.respond({"city": "Rome"}),
        ]
        outcomes = []
        for _ in range(4):
            run = await run_in(way, model(server, asks("ask"), approve=approve), QUESTION)
            outcomes.append(stop_reason(run.message) if pending_calls(run.message) else json.loads(run.new[1].text))
        rome, none = (ROME, NONE) if modern else (ROME["city"], NONE["city"])
        assert outcomes == [rome, none, none, "calls_pending" if modern else none]
        assert "does not fit its schema" in caplog.text and ("which is declined" in caplog.text) == (not modern)
    assert set(map(str, shown)) == {str((("ask",), {"message": "Which city?", "schema": SCHEMA}))}


def test_a_question_that_may_be_of_several_calls_is_declined(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    """By the handshake's protocol it names none, and another's answer would be a guess."""
    shown: list[str] = []

    def approve(call: Any) -> Any:
        shown.append(call.kind)
        return call.approve()

    with caplog.at_level(logging.WARNING):
        rule: Any = {"requires_approval": ["double"], "approve": approve}  # so that it is called after the other one
        results = said(model(serve(), asks("ask", "double", number=1), **rule).invoke(QUESTION))
    assert (results, shown) == ([json.dumps(NONE["city"]), "2"], ["approval"])
    assert "does not say which of them asks" in caplog.text


def test_what_approve_raises_is_the_calls_error(serve: Serve) -> None:
    """The server's question is cancelled, the session stays."""
    server = serve()

    def approve(call: Any) -> Any:
        if call.kind == "elicitation":
            raise KeyError("no such city")
        return call.approve()

    (result, double) = results_of(model(server, asks("ask"), asks("double", number=2), approve=approve).invoke(QUESTION))
    assert (result.status, "no such city" in result.text, double.content) == ("error", True, "4")


@waits
def test_it_waits_inside_an_agent_and_in_a_loop_of_ones_own(serve: Serve, notes: Notes) -> None:
    """The outermost human is shown the way to it; an executor goes on with it too, and tells its folders by itself."""
    server = serve("modern", roots=["file:///a"])
    inner = model(server, asks("ask"))
    call = {"name": "helper", "args": {"question": "Which?"}, "id": "h"}
    outer = ScriptedChatModel(tools=[Agent(inner).as_tool("helper", "Help.")], replies=[AIMessage("", tool_calls=[call]), "Done."])
    history = [*QUESTION, *new_messages(outer.invoke(QUESTION))]
    (question,) = pending_calls(history)
    assert (question.kind, question.path) == ("elicitation", ("helper", "ask"))
    assert outer.resume(history, sent(question.respond({"city": "Rome"}))).text == "Done."

    executor, message = ToolExecutor([server]), asks("ask", number=1)
    results = executor.execute_all(message)
    (question,) = pending_calls([message, *results])
    known = executor.execute_all(message, messages=[message, *results], decisions=[question.respond({"city": "Rome"})])
    assert json.loads(known[-1].text) == {**ROME, "folders": {"roots": [{"uri": "file:///a"}]}}
    assert (notes.begun("ask"), notes.begun("goes on")) == (2, 2)


@waits
def test_calls_behind_one_that_waits(serve: Serve, notes: Notes) -> None:
    """One after another they do not run before it."""
    made = model(serve("modern"), asks("ask", "double", number=1), parallel=False)
    (question,) = pending_calls(made.invoke(QUESTION))
    assert (question.kind, notes.begun("double 1")) == ("elicitation", 0)


@waits
@pytest.mark.parametrize("kind", ["modern", "hangs up"])
def test_other_tools_are_heard_of(kind: str, serve: Serve) -> None:
    """By the newest protocol only who has subscribed is told: a subscription that has ended is made anew, and the list read."""
    server = serve(kind)
    made = model(server, asks("grow"), "Done.", asks("more"))
    assert said(made.invoke("Go")) == ["grown"]
    until(server.is_changed)
    assert said(made.invoke("Go")) == ["more"]


@waits
def test_the_newest_protocol_keeps_the_rest(serve: Serve, notes: Notes) -> None:
    """No server has the model; progress is reported; what ends during a call is not repeated, and the next call has a new server."""
    heard: list[Any] = []
    replies = (asks("think"), asks("steps"), asks("die"), asks("double", number=2))
    run = model(serve("modern"), *replies, on_progress=lambda call, value: heard.append(value["message"])).invoke("Go")
    thought, steps, died, doubled = said(run)
    assert ("not supported" in thought, steps, "interrupted, outcome unknown" in died, doubled) == (True, "done", True, "4")
    assert (heard, notes.begun("die"), len(notes.processes)) == (["step 1", "step 2"], 1, 2)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:{port}/schema"},
        {"type": "object", "properties": {"city": {"$ref": "http://127.0.0.1:{port}/city"}}},
        {"type": "nothing"},
        {"type": "object", "properties": {"city": {"pattern": "["}}},
    ],
)
def test_a_schema_that_is_none_fits_nothing_and_fetches_nothing(schema: Any) -> None:
    """A server cannot have this process ask another one: what a schema refers to elsewhere is not known."""
    with LoopbackServer(lambda exchange: HttpReply([b"{}"])) as other:
        port = other.address.rpartition(":")[2]
        known = json.loads(json.dumps(schema).replace("{port}", port))
        with pytest.raises(ConfigurationError, match="'Which city\\?' does not fit its schema: that is no schema"):
            check_answer({"message": "Which city?", "schema": known}, {"city": "Rome"})
        assert other.exchanges == []


@waits
def test_a_question_that_is_dismissed(serve: Serve) -> None:
    """It is neither answered nor declined, at once or later."""
    made = model(serve("modern"), asks("ask"))
    history = [*QUESTION, *new_messages(made.invoke(QUESTION))]
    (question,) = pending_calls(history)
    assert json.loads(said(made.resume(history, sent(question.cancel())))[0]) == {"city": {"action": "cancel"}}
    at_once = model(serve("modern"), asks("ask"), approve=lambda call: call.cancel() if call.kind == "elicitation" else call.approve())
    assert json.loads(said(at_once.invoke(QUESTION))[0]) == {"city": {"action": "cancel"}}
    with pytest.raises(ConfigurationError, match="takes no cancel"):
        PendingCall("1", "send", {}, "approval").cancel()
    with pytest.raises(ConfigurationError, match="cancel takes no value"):
        Decision("1", "cancel", "later")
