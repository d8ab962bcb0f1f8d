"""Durable runs with the tools of an MCP server."""

import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")
pytest.importorskip("mcp", reason="needs the extra `mcp`")

from langchain_core.messages import BaseMessage, HumanMessage
from mcp import ClientSession

from langchain_autotools import ConfigurationError, mcp_server, new_messages, pending_calls
from langchain_autotools.durable import RunFailedError
from tests.support.durable import Life, answered, asks, contents, crash
from tests.support.login_server import LoginServer, log_in
from tests.support.login_storage import Folder

PROGRAM = Path(__file__).parents[2] / "support" / "mcp_program.py"


def test_a_recorded_call_is_not_made_again(life: Life) -> None:
    """After a crash the run goes on with the result that it had."""
    crashes = [True]

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        if not answered(messages):
            return asks(("double", {"number": 4}))
        if crashes and crashes.pop():
            crash()
        return f"It is {messages[-1].text}."

    notes = life.folder / "notes"
    with mcp_server([sys.executable, str(PROGRAM), str(notes)]) as server:
        chat = life.model(reply, [server])
        life.begin()
        with pytest.raises(RunFailedError):
            chat.invoke("Go", run_id="one")
        life.again()
        assert contents(chat.result("one")) == ["", "8", "It is 8."]
    assert notes.read_text().count("double 4") == 1


@pytest.mark.skipif(not hasattr(ClientSession, "discover"), reason="calls can wait since the protocol of version 2 of `mcp`")
def test_a_call_that_waits_for_an_answer_is_kept(life: Life) -> None:
    """The run ends with the question, and after the worker has begun again another one goes on with the answer, once."""

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        return f"It is {messages[-1].text}." if answered(messages) else asks(("ask", {}))

    notes = life.folder / "notes"
    with mcp_server([sys.executable, str(PROGRAM), str(notes), "modern"]) as server:
        chat = life.model(reply, [server])
        life.begin()
        history = [HumanMessage("Go"), *new_messages(chat.invoke("Go", run_id="one"))]
        life.again()
        history = [HumanMessage("Go"), *new_messages(chat.result("one"))]
        (question,) = pending_calls(history)
        decided = [question.respond({"city": "Rome"})]
        for _ in range(2):
            assert '"Rome"' in chat.invoke(history, resume=decided, run_id="two").text
    assert [notes.read_text().count(text) for text in (" ask", " goes on")] == [1, 1]


@pytest.mark.skipif(not hasattr(ClientSession, "discover"), reason="calls can wait since the protocol of version 2 of `mcp`")
def test_an_answer_that_does_not_fit_is_refused_by_a_conversation(life: Life) -> None:
    """Where it is given, so that no run begins with it; the question still waits for one that fits."""

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        return f"It is {messages[-1].text}." if answered(messages) else asks(("ask", {}))

    notes = life.folder / "notes"
    with mcp_server([sys.executable, str(PROGRAM), str(notes), "modern"]) as server:
        chats = life.conversations(reply, [server])
        life.begin()
        chats.result(chats.send("alice", "Go"))
        (question,) = chats.pending("alice")
        with pytest.raises(ConfigurationError, match="does not fit its schema: 3 is not of type"):
            chats.decide("alice", [question.respond({"city": 3})])
        assert chats.pending("alice") == [question]
        chats.result(chats.decide("alice", [question.respond({"city": "Rome"})]))
        assert '"Rome"' in chats.messages("alice")[-1].text
    assert [notes.read_text().count(text) for text in (" ask", " goes on")] == [1, 1]


def test_a_call_that_waits_for_a_login_is_kept(life: Life) -> None:
    """The call has not run; after the worker has begun again, and somebody has logged in, another run makes it, once."""

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        if answered(messages):
            return f"It is {messages[-1].text}."
        served.authorization.forget()
        return asks(("double", {"number": 4}))

    (life.folder / "logins").mkdir()
    with LoginServer() as served, closing(mcp_server(served.url, storage=Folder(life.folder / "logins"))) as server:
        server.finish_login(**log_in(server.login_url("https://app.example/callback")))
        chat = life.model(reply, [server])
        life.begin()
        chat.invoke("Go", run_id="one")
        life.again()
        history = [HumanMessage("Go"), *new_messages(chat.result("one"))]
        (question,) = pending_calls(history)
        server.finish_login(**log_in(question.args["url"]))
        for _ in range(2):
            assert chat.invoke(history, resume=[question.respond({})], run_id="two").text == "It is 8."
        assert served.calls == [4]
