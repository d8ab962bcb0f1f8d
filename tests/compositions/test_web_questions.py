"""Questions of MCP servers at the endpoints under examples/web: shown, answered, and refused with status 400 where they do not fit."""

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from mcp import ClientSession

from langchain_autotools import mcp_server
from langchain_autotools.testing import ScriptedChatModel
from tests.compositions.test_web_examples import WEB
from tests.support.asgi_server import AsgiServer
from tests.support.event_stream import frames_of
from tests.unit.mcp_client.test_mcp_server import PROGRAM, Notes, asks

pytestmark = pytest.mark.skipif(not hasattr(ClientSession, "discover"), reason="calls can wait since the protocol of version 2 of `mcp`")


@contextmanager
def served(example: str, model: Any, patch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an example with this model."""
    patch.setenv("OPENAI_API_KEY", "key")
    patch.setenv("CHATS", ":memory:")
    spec = importlib.util.spec_from_file_location(example, WEB / f"{example}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    patch.setitem(sys.modules, example, module)
    spec.loader.exec_module(module)
    module.model = model  # type: ignore[attr-defined]
    with AsgiServer(module.app) as server:
        yield server.address


def ai_sdk_posts(frames: list[Any]) -> Callable[[Any], dict[str, Any]]:
    """What a page of the AI SDK posts with an answer to the question that it was shown."""
    (asked,) = [one for one in frames if "providerMetadata" in one]
    part = {"type": f"tool-{asked['toolName']}", "toolCallId": asked["toolCallId"], "state": "output-available"}
    return lambda content: message("assistant", {**part, "output": {"action": "accept", "content": content}})


def message(role: str, part: dict[str, Any]) -> dict[str, Any]:
    """A post of a page of the AI SDK."""
    return {"id": "chat", "messages": [{"role": role, "parts": [part]}], "trigger": "submit-message"}


def ag_ui_posts(frames: list[Any]) -> Callable[[Any], dict[str, Any]]:
    """What a client of AG-UI posts with an answer to the interrupt that it was shown."""
    (interrupt,) = frames[-1]["outcome"]["interrupts"]
    return lambda content: thread(resume=[{"interruptId": interrupt["id"], "status": "resolved", "payload": content}])


def thread(*messages: Any, **fields: Any) -> dict[str, Any]:
    """A post of a client of AG-UI."""
    return {"threadId": "t", "runId": "r", "state": {}, "messages": messages, "tools": [], "context": [], "forwardedProps": {}, **fields}


@pytest.mark.parametrize(
    "example, path, first, posts",
    [
        ("ai_sdk_endpoint", "/api/chat", message("user", {"type": "text", "text": "Go."}), ai_sdk_posts),
        ("ag_ui_endpoint", "/agent", thread({"id": "u", "role": "user", "content": "Go."}), ag_ui_posts),
    ],
)
def test_a_question_at_an_endpoint(
    example: str, path: str, first: Any, posts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer of another type is refused, and nothing goes on; the right one reaches the server, whose result the model has."""
    notes = Notes(tmp_path / "notes")
    with mcp_server([sys.executable, str(PROGRAM), str(notes.path), "modern"]) as server:
        replies: Any = lambda messages, **_: f"It is {messages[-1].text}." if messages[-1].type == "tool" else asks("ask")  # noqa: E731
        model = ScriptedChatModel(tools=[server], replies=replies)
        with served(example, model, monkeypatch) as address:
            post = posts([json.loads(one.data) for one in frames_of([httpx.post(address + path, json=first).content]) if "{" in one.data])
            refused = httpx.post(address + path, json=post({"city": 3}))
            assert (refused.status_code, notes.begun("goes on")) == (400, 0)
            assert [words for _, _, words in refused.json()["detail"]] == ["The answer does not fit: 3 is not of type 'string'."]
            answered = httpx.post(address + path, json=post({"city": "Rome"}))
            assert (answered.status_code, "Rome" in answered.text, notes.begun("goes on")) == (200, True, 1)
