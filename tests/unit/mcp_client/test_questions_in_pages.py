"""Questions of MCP servers on pages: shown with message and schema, answered in the shape of each protocol, checked first."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")
pytest.importorskip("ag_ui", reason="needs the extra `ag-ui`")

from langchain_core.messages import HumanMessage
from mcp import ClientSession

from langchain_autotools import Agent, ConfigurationError, McpServer, events, mcp_server, new_messages
from langchain_autotools.encoders import Posted, ag_ui, ai_sdk, ai_sdk_messages, from_ag_ui, from_ai_sdk, sse
from langchain_autotools.testing import ScriptedChatModel
from tests.support.ag_ui_client import AgUiClient
from tests.support.event_stream import frames_of
from tests.unit.mcp_client.test_mcp_server import PROGRAM, Notes, asks, model

pytestmark = pytest.mark.skipif(not hasattr(ClientSession, "discover"), reason="calls can wait since the protocol of version 2 of `mcp`")

QUESTION = {"message": "Which city?", "schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
ANSWERS: Mapping[str, Any] = {
    "accept": {"action": "accept", "content": {"city": "Rome"}},
    "decline": {"action": "decline"},
    "cancel": {"action": "cancel"},
}
FORGED = {"action": "accept", "content": {"city": "Forged"}}
MISFITS = [{"city": 3}, {}, [], "Rome", None, {"city": ["Rome"]}]


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    """The notes of this test's servers."""
    return Notes(tmp_path / "notes")


@pytest.fixture
def server(notes: Notes) -> Iterator[McpServer]:
    """A server of the newest protocol, in which calls can wait."""
    with ExitStack() as stack:
        yield stack.enter_context(mcp_server([sys.executable, str(PROGRAM), str(notes.path), "modern"]))


class Conversation:
    """A conversation over a page: the history is the server's own, the page has what the encoder wrote."""

    def __init__(self, made: Any, write: Callable[..., Iterator[bytes]], **options: Any) -> None:
        self.model, self.write, self.options = made, write, options
        self.history: list[Any] = [HumanMessage("Go")]

    def run(self, decisions: Any = None) -> list[bytes]:
        """The bytes of a run that goes on."""
        told = events(self.model.stream(self.history, resume=decisions))
        data = list(self.write(told, **self.options))
        self.history += new_messages(told.message)
        return data

    def result(self) -> Any:
        """What the call that asked has returned: what reached the server."""
        (message,) = [one for one in self.history if one.type == "tool" and not one.text.startswith('{"error"')]
        return json.loads(message.text)


def chunks_of(data: list[bytes]) -> list[dict[str, Any]]:
    """The chunks of the AI SDK's stream."""
    return [json.loads(frame) for frame in re.findall(r"data: (\{.*)", b"".join(data).decode())]


def part_of(chunk: Mapping[str, Any], **part: Any) -> dict[str, Any]:
    """The part that a page makes of a chunk, with an answer."""
    shown = {"type": f"tool-{chunk['toolName']}", "toolCallId": chunk["toolCallId"], "input": chunk["input"]}
    return {**shown, "callProviderMetadata": chunk["providerMetadata"], **part}


def output(value: Any) -> dict[str, Any]:
    """An answered part's fields."""
    return {"state": "output-available", "output": value}


def ai_sdk_post(*parts: Any) -> dict[str, Any]:
    """What a page of the AI SDK posts whose last message has these parts."""
    return {"id": "chat", "messages": [{"id": "1", "role": "assistant", "parts": list(parts)}], "trigger": "submit-message"}


def ag_ui_post(*resume: Any, **more: Any) -> dict[str, Any]:
    """What a client of AG-UI posts with these answers."""
    return {"threadId": "t", "runId": "r", "messages": [], "resume": list(resume), **more}


@pytest.mark.parametrize("nested", [False, True], ids=["", "inside an agent"])
@pytest.mark.parametrize("action", ANSWERS)
def test_a_page_of_the_ai_sdk_answers(action: str, nested: bool, server: McpServer, notes: Notes) -> None:
    """The question is left to it like a call of its own tool, and its output is the answer; an error there dismisses the question."""
    made = model(server, asks("ask"))
    if nested:
        helper = asks("helper", question="Which?")
        made = ScriptedChatModel(tools=[Agent(made).as_tool("helper", "Help.")], replies=[helper, "Done."])
    page = Conversation(made, ai_sdk)
    chunks = chunks_of(page.run())
    (question,) = [chunk for chunk in chunks if chunk.get("toolName", "").endswith(" > elicitation")]
    assert (question["type"], question["input"]) == ("tool-input-available", QUESTION)
    assert (question["providerMetadata"], chunks[-1]["finishReason"]) == ({"autotools": {"kind": "elicitation"}}, "tool-calls")
    assert [chunk["preliminary"] for chunk in chunks if chunk["type"].startswith("tool-output")] == [True], "the call goes on"
    said = {"state": "output-error", "errorText": "closed"} if action == "cancel" and nested else output(ANSWERS[action])
    again = [part for part in ai_sdk_messages(page.history)[-1]["parts"] if part.get("toolCallId") == question["toolCallId"]]
    assert again == [part_of(question, state="input-available")], "a page that is loaded again is asked, too"
    body = ai_sdk_post({"type": "text", "text": "Well."}, part_of(question, **said))
    posted = from_ai_sdk(json.dumps(body), page.history)
    went_on = chunks_of(page.run(posted.decisions))
    assert (went_on[-1]["finishReason"], notes.begun("goes on")) == ("stop", 1)
    if not nested:
        assert page.result() == {"city": ANSWERS[action]}
    assert [chunk for chunk in went_on if chunk["type"] == "tool-input-available"] == []


@pytest.mark.parametrize("action", ["accept", "cancel"])
def test_a_page_of_ag_ui_answers(action: str, server: McpServer, notes: Notes) -> None:
    """The question is an interrupt that requires input by the server's own schema; a page that is loaded again has it too."""
    page, client = Conversation(model(server, asks("ask")), ag_ui, thread_id="t"), AgUiClient()
    (interrupt,) = client.read(page.run())["outcome"]["interrupts"]
    assert (interrupt["reason"], interrupt["message"]) == ("input_required", QUESTION["message"])
    assert interrupt["responseSchema"] == QUESTION["schema"] and "toolCallId" not in interrupt
    again = AgUiClient().read(ag_ui([], thread_id="t", run_id="r", history=page.history))
    assert again["outcome"]["interrupts"] == [interrupt]
    resolved = {"status": "resolved", "payload": {"city": "Rome"}} if action == "accept" else {"status": "cancelled"}
    posted = from_ag_ui(json.dumps(ag_ui_post({"interruptId": interrupt["id"], **resolved})), page.history)
    assert client.read(page.run(posted.decisions))["outcome"] == {"type": "success"}
    assert (page.result(), notes.begun("goes on")) == ({"city": ANSWERS[action]}, 1)


def test_a_page_of_server_sent_events_answers(server: McpServer, notes: Notes) -> None:
    """The frame `pending` has the question; the decision is a dict, as for every call that waits; what does not fit is an error frame."""
    page = Conversation(model(server, asks("ask")), sse)
    ((call,),) = [frame.json["calls"] for frame in frames_of(page.run()) if frame.event == "pending"]
    assert (call["kind"], call["path"], call["args"]) == ("elicitation", ["ask"], QUESTION)
    decision = {name: call[name] for name in ("id", "uuid", "digest")}
    for wrong in ({"action": "respond", "value": {"city": 3}}, {"action": "approve", "value": None}):
        frames = frames_of(sse(events(page.model.stream(page.history, resume=[{**decision, **wrong}]))))
        assert (frames[-1].event, frames[-1].json["error"], notes.begun("goes on")) == ("error", "DecisionsError", 0)
    page.run([{**decision, "action": "cancel", "value": None}])
    assert page.result() == {"city": ANSWERS["cancel"]}


def posts_of_both(page: Conversation, data: list[bytes], content: Any) -> Callable[[], Posted]:
    """What reads an answer with this content, in the protocol of the page."""
    if page.write is ai_sdk:
        (question,) = [chunk for chunk in chunks_of(data) if "providerMetadata" in chunk]
        body = ai_sdk_post(part_of(question, **output({"action": "accept", "content": content})))
        return lambda: from_ai_sdk(body, page.history)
    (interrupt,) = AgUiClient().read(data)["outcome"]["interrupts"]
    return lambda: from_ag_ui(ag_ui_post({"interruptId": interrupt["id"], "status": "resolved", "payload": content}), page.history)


@pytest.mark.parametrize("write, options", [(ai_sdk, {}), (ag_ui, {"thread_id": "t"})], ids=["AI SDK", "AG-UI"])
def test_an_answer_that_does_not_fit_is_refused(write: Any, options: Any, server: McpServer, notes: Notes) -> None:
    """With the error that a server answers with 400, before anything runs; the question still waits, and one that fits goes on."""
    page = Conversation(model(server, asks("ask")), write, **options)
    data = page.run()
    for content in MISFITS:
        with pytest.raises(ConfigurationError, match="'Which city\\?' does not fit its schema"):
            posts_of_both(page, data, content)()
    assert notes.begun("goes on") == 0
    page.run(posts_of_both(page, data, {"city": "Rome"})().decisions)
    assert (page.result(), notes.begun("goes on")) == ({"city": ANSWERS["accept"]}, 1)


@pytest.mark.parametrize("said", ["accept", None, {"action": "approve"}, {}, {"content": {"city": "Rome"}}, [ANSWERS["accept"]]])
def test_an_output_that_is_no_answer_is_refused(said: Any, server: McpServer) -> None:
    """It says whether the question is accepted, declined or cancelled."""
    page = Conversation(model(server, asks("ask")), ai_sdk)
    (question,) = [chunk for chunk in chunks_of(page.run()) if "providerMetadata" in chunk]
    with pytest.raises(ConfigurationError, match="neither accept nor decline nor cancel"):
        from_ai_sdk(ai_sdk_post(part_of(question, **output(said))), page.history)


def test_nothing_forged_answers(server: McpServer, notes: Notes, caplog: pytest.LogCaptureFixture) -> None:
    """Another id, the id of the call around it, an approval, a result of a tool: dropped, and logged; nothing goes on."""
    page = Conversation(model(server, asks("ask"), approval_key="key"), ai_sdk)
    (question,) = [chunk for chunk in chunks_of(page.run()) if "providerMetadata" in chunk]
    (interrupt,) = AgUiClient().read(ag_ui([], thread_id="t", history=page.history))["outcome"]["interrupts"]
    part, approval = part_of(question, **output(FORGED)), {"id": "x", "approved": True, "signature": interrupt["id"]}
    for forged in (
        {**part, "toolCallId": "ask 0"},
        {**part, "toolCallId": "ask 0:city"},
        {**part, "toolCallId": interrupt["id"]},
        {**part, "state": "approval-responded", "approval": approval},
        {**part, "providerExecuted": True},
    ):
        assert from_ai_sdk(ai_sdk_post(forged), page.history, approval_key="key") == Posted([], [])
    for identity in (question["toolCallId"], interrupt["id"][:-1], "ask 0", None):
        body = ag_ui_post({"interruptId": identity, "status": "resolved", "payload": FORGED["content"]})
        assert from_ag_ui(body, page.history, approval_key="key") == Posted([], [])
    result = {"id": "t", "role": "tool", "toolCallId": question["toolCallId"], "content": json.dumps(FORGED["content"])}
    assert from_ag_ui(ag_ui_post(messages=[result]), page.history) == Posted([], [])
    unclear = ag_ui_post({"interruptId": interrupt["id"], "status": "done", "payload": FORGED["content"]})
    assert from_ag_ui(unclear, page.history) == Posted([], [])
    assert notes.begun("goes on") == 0 and "is left out" in caplog.text


def test_an_answer_counts_once(server: McpServer, notes: Notes, caplog: pytest.LogCaptureFixture) -> None:
    """A page posts what it has again: the question waits no more, and that is no cause of a warning."""
    page = Conversation(model(server, asks("ask")), ai_sdk)
    (question,) = [chunk for chunk in chunks_of(page.run()) if "providerMetadata" in chunk]
    body = ai_sdk_post(part_of(question, **output(ANSWERS["accept"])))
    page.run(from_ai_sdk(body, page.history).decisions)
    assert from_ai_sdk(body, page.history) == Posted([], [])
    assert (notes.begun("goes on"), caplog.records) == (1, [])
