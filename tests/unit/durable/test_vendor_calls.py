"""Calls of a vendor's own tools in a conversation: they wait, and are decided, as every call does."""

from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_autotools import ChatOpenAI, Handler, stop_reason
from langchain_autotools.durable import Conversations, RunFailedError, durable
from tests.providers.openai.test_client_calls import ANSWERS, APPROVAL, RAN, SHELL, message, reply
from tests.support.durable import Life, crash
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


def handled(life: Life, server: ResponsesServer, handler: Handler) -> tuple[ChatOpenAI, Conversations]:
    """A model whose shell a handler answers, and its conversations."""
    known: dict[str, Any] = {"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, "tools": [{"type": "shell"}]}
    model = ChatOpenAI(**known, handlers={"shell": handler})
    return model, Conversations(model, life.url, name="test")


def test_a_handler_runs_what_was_decided(life: Life) -> None:
    """Approved or edited, in a conversation that waits in the database; events name the call as one that ran."""
    ran: list[Any] = []

    def handle(arguments: dict[str, Any]) -> Any:
        ran.append(arguments["action"]["commands"])
        return RAN

    with ResponsesServer([reply(SHELL), Turn("Fine."), reply(SHELL), Turn("Fine.")]) as server:
        _, chats = handled(life, server, Handler(handle))
        for user, edits in (("alice", False), ("bob", True)):
            chats.result(chats.send(user, "Go"))
            (shell,) = chats.pending(user)
            assert (shell.kind, shell.args["action"]["commands"]) == ("approval", ["ls"])
            decision = shell.edit({"action": {"commands": ["pwd"]}}) if edits else shell.approve()
            run = chats.decide(user, [decision])
            assert chats.result(run).text == "Fine."
        assert (ran, server.rejections) == ([["ls"], ["pwd"]], [])
        assert server.exchanges[1].json["input"][-1] == ANSWERS["shell"]


def test_a_handler_is_not_called_twice_after_a_crash(life: Life) -> None:
    """A handler whose process died is answered as interrupted; one whose result was recorded is not asked again."""
    ran: list[Any] = []

    def handle(arguments: dict[str, Any]) -> Any:
        ran.append(arguments)
        if len(ran) == 2:
            crash()
        return RAN

    with ResponsesServer([reply(SHELL), reply({**SHELL, "id": "sh_2", "call_id": "call_t"}), Turn("Fine.")]) as server:
        model, _ = handled(life, server, Handler(handle, requires_approval=False))
        chat = durable(model, "shells")
        life.begin()
        with pytest.raises(RunFailedError):
            chat.invoke("Go", run_id="one")
        life.again()
        assert (chat.result("one").text, len(ran), server.rejections) == ("Fine.", 2, [])
        first, second = (item for item in server.exchanges[2].json["input"] if item.get("type") == "shell_call_output")
        assert (first["output"], "interrupted, outcome unknown" in second["output"][0]["stderr"]) == (RAN, True)
