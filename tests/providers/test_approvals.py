"""Approvals of a vendor's model, over HTTP: in runs, and where structured output is wanted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.exceptions import OutputParserException
from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import BaseModel

from langchain_autotools import CallsPendingError, ChatOpenAI, ConfigurationError, new_messages, pending_calls
from langchain_autotools.providers.registry import init_chat_model
from tests.laws.ways import WAYS, run
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

QUESTION = HumanMessage("Write to Anna, and say how it went.")
SENT: list[str] = []


def send(to: str) -> str:
    """Send."""
    SENT.append(to)
    return f"Sent to {to}."


class Report(BaseModel):
    """How it went."""

    sent: bool


def chat(server: OpenAIServer, **fields: Any) -> ChatOpenAI:
    """A model that must ask before it sends."""
    SENT.clear()
    return ChatOpenAI(model="gpt-5", api_key="key", base_url=server.url, tools=[send], requires_approval=["send"], **fields)


@pytest.mark.parametrize("way", WAYS)
def test_the_request_of_a_resumed_run_has_the_history_and_no_records(way: str) -> None:
    """The server sees calls and results, and nothing of approvals; what came before is sent as it was."""
    with OpenAIServer([Turn(calls=[Call("send", {"to": "Anna"})]), Turn("Done.")]) as server:
        model = chat(server, approval_key="secret")
        first = run(way, model, [QUESTION])
        history = [QUESTION, *first.new]
        second = run(way, model, history, resume=[one.edit({"to": "Eve"}) for one in pending_calls(history)])
        assert second.message is not None
        assert (SENT, second.message.text, server.rejections) == (["Eve"], "Done.", [])
        asked, resumed = (request["messages"] for request in server.requests)
    assert resumed[: len(asked)] == asked
    assert [message["role"] for message in resumed[len(asked) :]] == ["assistant", "tool"]
    assert resumed[-2]["tool_calls"][0]["function"] == {"name": "send", "arguments": '{"to": "Anna"}'}
    assert 'It ran with: {"to": "Eve"}' in resumed[-1]["content"]
    assert not {"approval", "digest", "uuid"} & set(str(resumed).replace("'", " ").split())


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output_of_a_pending_run_is_an_error_that_brings_the_messages(method: Any) -> None:
    """With them the run goes on to its output."""
    answer = Turn(calls=[Call("Report", {"sent": True})]) if method == "function_calling" else Turn('{"sent": true}')
    with OpenAIServer([Turn(calls=[Call("send", {"to": "Anna"})]), answer]) as server:
        structured: Any = chat(server).with_structured_output(Report, method=method)
        history: list[BaseMessage] = [QUESTION]
        with pytest.raises(CallsPendingError, match="calls wait for approval, or for the caller: 'call_") as raised:
            structured.invoke(history)
        assert SENT == []
        history += new_messages(raised.value)
        output = structured.invoke(history, resume=[one.approve() for one in pending_calls(history)])
    assert (output, SENT) == (Report(sent=True), ["Anna"])


@pytest.mark.parametrize("way", WAYS)
def test_what_is_asked_for_with_its_raw_message_takes_the_keywords_of_a_call(way: str) -> None:
    """Decisions go with them, which LangChain's own map would leave behind; a batch takes none."""
    with OpenAIServer([Turn(calls=[Call("send", {"to": "Anna"})]), Turn('{"sent": true}')]) as server:
        structured: Any = chat(server).with_structured_output(Report, include_raw=True)
        history: list[BaseMessage] = [QUESTION, *new_messages(structured.invoke([QUESTION])["raw"])]
        decisions = [one.approve() for one in pending_calls(history)]
        with pytest.raises(ConfigurationError, match="batch takes none"):
            structured.batch([history], resume=decisions)
        output = said(way, structured, history, resume=decisions)
        assert (output["parsed"], SENT, server.rejections) == (Report(sent=True), ["Anna"], [])


def said(way: str, runnable: Any, history: list[BaseMessage], **keywords: Any) -> Any:
    """What a runnable comes to, in the named way."""

    async def streamed() -> Any:
        return [part async for part in runnable.astream(history, **keywords)]

    if way == "invoke":
        return runnable.invoke(history, **keywords)
    if way == "ainvoke":
        return asyncio.run(runnable.ainvoke(history, **keywords))
    parts = list(runnable.stream(history, **keywords)) if way == "stream" else asyncio.run(streamed())
    return {name: value for part in parts for name, value in part.items()}


def test_output_that_stands_beside_a_waiting_call_is_none() -> None:
    """The run has not come to its end, whatever its text says; `include_raw` keeps the error beside the message."""
    with OpenAIServer([Turn('{"sent": true}', calls=[Call("send", {"to": "Anna"})])]) as server:
        output: Any = chat(server).with_structured_output(Report, include_raw=True).invoke([QUESTION])
    assert output["parsed"] is None
    assert isinstance(output["parsing_error"], CallsPendingError)
    assert isinstance(output["parsing_error"], OutputParserException)
    assert [one.name for one in pending_calls(output["raw"])] == ["send"]


def test_a_rule_that_names_no_tool_is_refused_where_the_model_is_made() -> None:
    """As a ConfigurationError, as of all arguments; so is an empty key, and neither is a keyword of a call."""
    for fields, text in [
        ({"requires_approval": ["sned"]}, "names tools that do not exist: 'sned'"),
        ({"requires_approval": ["send"], "tools": []}, "names tools that do not exist: 'send'"),
        ({"approval_key": ""}, "approval_key"),
    ]:
        with pytest.raises(ConfigurationError, match=text):
            ChatOpenAI(**{"model": "gpt-5", "api_key": "key", "tools": [send], **fields})  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="approval_key is set where the model is made"):
        ChatOpenAI(model="gpt-5", api_key="key", tools=[send]).invoke("Hi", approval_key="secret")


def test_a_configurable_model_resumes_no_batch() -> None:
    """As any other."""
    model: Any = init_chat_model(configurable_fields="any", tools=[send])
    with pytest.raises(ConfigurationError, match="batch takes none"):
        model.batch([[QUESTION]], {"configurable": {"model": "openai:gpt-5"}}, resume=True)
