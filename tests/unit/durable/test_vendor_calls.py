"""Calls of a vendor's own tools in a conversation: they wait, and are decided, as every call does."""

from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_autotools import ChatOpenAI, stop_reason
from langchain_autotools.durable import Conversations
from tests.providers.openai.test_client_calls import ANSWERS, APPROVAL, RAN, SHELL, message, reply
from tests.support.durable import Life
from tests.support.responses_server import ResponsesServer
from tests.support.script import Turn
from tests.support.weather import get_temperature


def test_items_of_the_vendors_are_decided(life: Life) -> None:
    """One after another; the run that goes on with the last of them sends the vendor's items."""
    with ResponsesServer([reply(message("Look."), SHELL, APPROVAL), Turn("Fine.")]) as server:
        tools: list[Any] = [get_temperature, {"type": "shell"}, {"type": "mcp"}]
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key", max_retries=0, tools=tools)
        chats = Conversations(model, life.url, name="test")
        assert stop_reason(chats.result(chats.send("alice", "Go"))) == "calls_pending"
        shell, approval = chats.pending("alice")
        chats.result(chats.decide("alice", [shell.respond(RAN)]))
        assert [call.id for call in chats.pending("alice")] == [approval.id]
        assert chats.result(chats.decide("alice", [approval.approve()])).text == "Fine."
        assert (chats.pending("alice"), server.rejections) == ([], [])
        assert server.exchanges[1].json["input"][-2:] == [ANSWERS["shell"], ANSWERS["mcp"]]
