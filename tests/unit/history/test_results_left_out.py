"""Results without a call before them: dropped aloud, or sent where the server knows the call."""

import logging
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import ChatOpenAI
from langchain_autotools.history import explain, repair, validate
from langchain_autotools.testing import ScriptedChatModel
from tests.support.responses_server import ResponsesServer
from tests.support.script import Call, Turn

RESULT = ToolMessage("21", tool_call_id="call_lost")
ASKED = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "call_1"}])


def get_temperature(city: str) -> str:
    """The temperature in a city."""
    return f"21 in {city}"


@pytest.mark.parametrize("tools", [(), (get_temperature,)])
def test_a_result_that_is_left_out_is_named(tools: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Once for each, with its call's id; `explain` says it too."""
    with caplog.at_level(logging.WARNING, "langchain_autotools"):
        ScriptedChatModel(tools=list(tools), replies=["Hi."]).invoke([HumanMessage("Hi"), RESULT])
    assert [record.getMessage().count("call_lost") for record in caplog.records] == [1]
    assert "call_lost" in explain([HumanMessage("Hi"), RESULT])


def test_a_second_result_is_named_too(caplog: pytest.LogCaptureFixture) -> None:
    """The first counts."""
    history = [HumanMessage("Hi"), ASKED, ToolMessage("1", tool_call_id="call_1"), ToolMessage("2", tool_call_id="call_1")]
    assert repair(history) == history[:3]
    assert [record.levelname for record in caplog.records] == ["WARNING"] and "call_1" in caplog.text


def test_results_before_the_first_reply_stay_where_the_server_keeps_the_conversation() -> None:
    """Only there: a result after an AI message must have its call."""
    ask = HumanMessage("And?")
    answer = [ASKED, ToolMessage("1", tool_call_id="call_1")]
    assert repair([RESULT, ask, *answer], open_start=True) == [RESULT, ask, *answer] != repair([RESULT, ask, *answer])
    assert validate([RESULT, ask], open_start=True) == []
    assert repair([RESULT, *answer, RESULT], open_start=True) == [RESULT, *answer]


RESULTS: list[list[BaseMessage]] = [
    [ToolMessage("21", tool_call_id="call_000000")],
    [HumanMessage([{"type": "tool_result", "tool_use_id": "call_000000", "content": "21"}])],
]


@pytest.mark.parametrize("messages", RESULTS, ids=["tool message", "block"])
@pytest.mark.parametrize("tools", [(), (get_temperature,)], ids=["plain", "own tools"])
def test_a_result_whose_call_the_server_remembers_is_sent(messages: list[BaseMessage], tools: Any) -> None:
    """`previous_response_id`: the call is in the response that it names."""
    said = Turn(calls=[Call("get_temperature", {"city": "Rome"})])
    more = Turn(calls=[Call("get_temperature", {"city": "Oslo"})])
    with ResponsesServer([said, *([more] if tools else []), Turn("Warm.")], rules=None) as server:
        settings: dict[str, Any] = {"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, "use_responses_api": True}
        first = ChatOpenAI(**settings).bind_tools([get_temperature]).invoke("How warm is it in Rome?")
        model = ChatOpenAI(**settings, tools=list(tools))
        run = model.invoke(messages, previous_response_id=first.id)
        sent = [[item for item in body["input"] if item.get("type") == "function_call_output"] for body in server.requests[1:]]
    assert run.text == "Warm."
    assert [item["output"] for item in sent[0]] == ["21"] and sent[0][0]["call_id"] == "call_000000"
    assert [item["output"] for item in sent[-1]] == (["21", "21 in Oslo"] if tools else ["21"])
