"""The official clients of pages are shown the questions of MCP servers, and what they post answers them."""

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp_types", reason="needs the extra `mcp`, of version 2")

from langchain_core.messages import BaseMessage

from langchain_autotools import events, mcp_server, new_messages
from langchain_autotools.encoders import ag_ui, ai_sdk, from_ag_ui, from_ai_sdk
from langchain_autotools.testing import ScriptedChatModel
from tests.unit.mcp_client.test_mcp_server import PROGRAM, asks

from .official import Parsers, pieces_of

pytestmark = pytest.mark.parsers

ANSWER = {"action": "accept", "content": {"city": "Rome"}}


@pytest.fixture
def model(tmp_path: Path) -> Iterator[ScriptedChatModel]:
    """A model that calls a tool whose server asks."""
    with mcp_server([sys.executable, str(PROGRAM), str(tmp_path / "notes"), "modern"]) as server:
        yield ScriptedChatModel(tools=[server], replies=[asks("ask"), "Done."])


def test_the_client_of_the_ai_sdk_answers_a_question(parsers: Parsers, model: ScriptedChatModel) -> None:
    """It is shown as a call that is left to the page, once; its output goes on with the run, in the same message."""

    def replied(history: list[BaseMessage], resume: Any = None) -> Any:
        told = events(model.stream(history, resume=resume))
        data = b"".join(ai_sdk(told))
        history += new_messages(told.message)
        return parsers.ask("ai_sdk", page="question", reply=pieces_of(data, random.Random(1)))

    history = list(from_ai_sdk(parsers.ask("ai_sdk", page="question", text="Go.")["body"], []).messages)
    asked = replied(history)
    (part,) = [one for one in asked["message"]["parts"] if one.get("callProviderMetadata") == {"autotools": {"kind": "elicitation"}}]
    assert (asked["errors"], asked["valid"], part["state"], part["input"]["message"]) == ([], None, "input-available", "Which city?")
    assert [call["toolCallId"] for call in asked["calls"]] == ["ask 0", part["toolCallId"]]
    output = {"tool": part["type"][5:], "toolCallId": part["toolCallId"], "output": ANSWER}
    posted = from_ai_sdk(parsers.ask("ai_sdk", page="question", decide={"outputs": [output]})["body"], history)
    went_on = replied(history, posted.decisions)
    assert (went_on["errors"], went_on["calls"], went_on["valid"], went_on["count"]) == ([], [], None, 2)
    states = {part["toolCallId"]: part["state"] for part in went_on["message"]["parts"] if "toolCallId" in part}
    assert states == {"ask 0": "output-available", part["toolCallId"]: "output-available"}
    assert "Rome" in history[-2].text


@pytest.mark.parametrize("answer", [{"status": "resolved", "payload": ANSWER["content"]}, {"status": "cancelled"}])
def test_the_client_of_ag_ui_answers_a_question(answer: Any, parsers: Parsers, model: ScriptedChatModel) -> None:
    """It is an interrupt with the schema, which the client keeps open until it is answered."""
    page = f"question {answer['status']}"

    def replied(history: list[BaseMessage], resume: Any = None) -> Any:
        told = events(model.stream(history, resume=resume))
        data = b"".join(ag_ui(told, thread_id="thread", run_id="run"))
        history += new_messages(told.message)
        return parsers.ask("ag_ui", page=page, reply=pieces_of(data, random.Random(1)))

    body = parsers.ask("ag_ui", page=page, post={"text": "Go.", "id": "u1"})["body"]
    history = list(from_ag_ui(body, []).messages)
    asked = replied(history)
    (interrupt,) = asked["interrupts"]
    assert (asked["complaints"], interrupt["reason"], interrupt["responseSchema"]["required"]) == ([], "input_required", ["city"])
    body = parsers.ask("ag_ui", page=page, post={"answers": {interrupt["id"]: answer}})["body"]
    went_on = replied(history, from_ag_ui(body, history).decisions)
    assert (went_on["complaints"], went_on["interrupts"], went_on["failed"]) == ([], [], None)
    assert ("Rome" in history[-2].text) == (answer["status"] == "resolved") and history[-1].text == "Done."
