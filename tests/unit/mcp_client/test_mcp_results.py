"""What a model gets of an MCP server: declarations, results of every kind, progress; and what is stored of it."""

from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from langchain_core.messages import ToolMessage

from langchain_autotools import McpServer, events, results_of
from langchain_autotools.event_types import CallProgress
from langchain_autotools.executor.names import tool_name
from langchain_autotools.testing import ScriptedChatModel
from tests.unit.mcp_client.test_mcp_server import WAYS, Notes, asks, model, notes, server

__all__ = ["notes", "server"]


@pytest.mark.parametrize("way", WAYS)
def test_bound_to_a_model_its_tools_are_declared_only(way: str, server: McpServer, notes: Notes) -> None:
    """The run ends with the call, which reaches no server."""
    made = ScriptedChatModel(replies=[asks("double", number=4)])
    run = WAYS[way](made.bind_tools([server]))
    assert [call["name"] for call in run.tool_calls] == ["double"] and notes.begun("double 4") == 0
    assert "double" in {tool_name(tool) for tool in made.requests[0].tools}


def test_results_of_every_kind(server: McpServer) -> None:
    """A text is a text, several parts are blocks, data is the artifact, an error is an error, with its pictures."""
    run = model(server, asks("picture", "fail", "double", number="x")).invoke("Go")
    picture, failed, _ = results_of(run)
    assert picture.content == [
        {"type": "image", "base64": "aGk=", "mime_type": "image/png"},
        {"type": "text", "text": "a picture"},
    ]
    assert picture.artifact == {"structured_content": {"size": 2}}
    assert (failed.status, "no luck" in failed.text) == ("error", True)
    (shown,) = results_of(model(server, asks("fail", number=7)).invoke("Go"))
    assert (shown.status, shown.content) == ("error", picture.content)


def test_a_part_of_every_kind(server: McpServer) -> None:
    """Sound and files are LangChain's blocks, a link is a text; data alone is the content too, and nothing says so."""
    kinds, data, nothing = results_of(model(server, asks("kinds", "data", "nothing")).invoke("Go"))
    assert kinds.content == [
        {"type": "audio", "base64": "aGk=", "mime_type": "audio/wav"},
        {"type": "text", "text": "a text"},
        {"type": "image", "base64": "aGk=", "mime_type": "image/png"},
        {"type": "file", "base64": "aGk=", "mime_type": "application/pdf", "extras": {"filename": "a.pdf"}},
        {"type": "text", "text": "b.txt: file:///b.txt"},
    ]
    assert (data.content, data.artifact) == ('{"size": 2}', {"structured_content": {"size": 2}})
    assert nothing.content == "(no output)"


def test_progress_is_reported(server: McpServer) -> None:
    """To the listeners of any tool's progress, and to readers of the run's events."""
    heard: list[Any] = []
    model(server, asks("steps"), on_progress=lambda call, value: heard.append((call.name, value["message"]))).invoke("Go")
    assert heard == [("steps", "step 1"), ("steps", "step 2")]
    told = [event.value for event in events(model(server, asks("steps")).stream("Go")) if isinstance(event, CallProgress)]
    assert told == [{"progress": step, "total": 2, "message": f"step {step}"} for step in (1, 2)]


def test_messages_are_plain(server: McpServer) -> None:
    """What is stored is LangChain's own."""
    run = model(server, asks("double", number=1)).invoke("Go")
    assert type(results_of(run)[0]) is ToolMessage
