"""Durable runs with the tools of an MCP server."""

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")
pytest.importorskip("mcp", reason="needs the extra `mcp`")

from langchain_core.messages import BaseMessage

from langchain_autotools import mcp_server
from langchain_autotools.durable import RunFailedError
from tests.support.durable import Life, answered, asks, contents, crash

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
