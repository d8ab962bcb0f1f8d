"""The real local model on its real server: `pytest -m local`. Skipped where the server or the weights are not installed."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_autotools import ChatLocal, ChatOpenAI, new_messages, run_usage
from langchain_autotools.cli.tools import get_temperature

pytestmark = pytest.mark.local

REPOSITORY = Path(__file__).parents[2]
QUESTION = "How warm is it in Paris and in Rome?"


def test_two_cities_are_asked_for_at_once_and_answered(model):
    """One turn asks for both cities, the next tells both temperatures; usage of both turns is counted."""
    history = [HumanMessage(QUESTION)]
    text = ""
    for chunk in model.stream(history):
        text += chunk.text
        history += new_messages(chunk)
    assert [type(message) for message in history[1:]] == [AIMessage, ToolMessage, ToolMessage, AIMessage]
    assert [call["args"] for call in history[1].tool_calls] == [{"city": "Paris"}, {"city": "Rome"}]
    assert "18" in text and "24" in text
    assert chunk.response_metadata["autotools"]["stop_reason"] == "complete"
    assert run_usage(chunk)["output_tokens"] > chunk.usage_metadata["output_tokens"] > 0


def test_invoke_and_the_asynchronous_twins_say_the_same(model):
    """At temperature 0 all four ways give one answer."""

    async def both() -> list[str]:
        return [(await model.ainvoke(QUESTION)).text, "".join([chunk.text async for chunk in model.astream(QUESTION)])]

    answers = {model.invoke(QUESTION).text, *asyncio.run(both())}
    assert len(answers) == 1 and "18" in answers.pop()


def test_a_conversation_goes_on(model):
    """The history of one question is accepted with the next."""
    history = [HumanMessage("How warm is it in Berlin?")]
    history += new_messages(model.invoke(history))
    history.append(HumanMessage("How warm is it in Tokyo?"))
    assert "19" in model.invoke(history).text


def test_declared_tools_are_left_to_the_caller(model):
    """`bind_tools` on a model without tools: the call comes back, nothing runs."""
    message = ChatLocal().bind_tools([get_temperature]).invoke("How warm is it in Berlin?")
    assert [(call["name"], call["args"]) for call in message.tool_calls] == [("get_temperature", {"city": "Berlin"})]


def test_output_of_a_schema_is_held_to_it(model):
    """`with_structured_output` is enforced by the server's grammar."""
    schema = {
        "title": "City",
        "type": "object",
        "properties": {"name": {"type": "string"}, "country": {"type": "string"}},
        "required": ["name", "country"],
        "additionalProperties": False,
    }
    found = ChatLocal().with_structured_output(schema).invoke("Which city is the capital of France? Answer as JSON.")
    assert found.keys() == {"name", "country"} and "Paris" in found["name"]


def test_a_reply_that_hits_its_length_runs_nothing(model):
    """A call that is cut off by `max_tokens` is not executed."""
    ran = []
    run = model.invoke(QUESTION, max_tokens=12, max_turns=1, on_limit="return", on_executing=ran.append)
    assert ran == []
    assert run.response_metadata["autotools"]["stop_reason"] != "complete" or not run.tool_calls


def test_a_conversation_that_is_too_long_is_a_typed_error(model):
    """More than the context holds: the vendor-neutral error for it."""
    from langchain_core.exceptions import ContextOverflowError

    with pytest.raises(ContextOverflowError):
        model.invoke("word " * 20_000)


def test_other_clients_may_use_the_server_with_its_key(model):
    """Address and key are enough for any OpenAI-compatible client."""
    server = model.start()
    other = ChatOpenAI(model="any", base_url=server.base_url, api_key=server.api_key, temperature=0, tools=[get_temperature])
    assert "13" in other.invoke("How warm is it in Berlin?").text


def test_many_runs_at_once_are_each_answered(model):
    """Eight threads on one small server: no run gets another's results."""
    cities = {"Berlin": "13", "Tokyo": "19", "Oslo": "6", "Cairo": "30", "Madrid": "23", "London": "12", "Vienna": "14", "Dublin": "11"}
    runs = model.batch([f"How warm is it in {city}?" for city in cities])
    for (city, degrees), run in zip(cities.items(), runs, strict=True):
        results = [message for message in new_messages(run) if isinstance(message, ToolMessage)]
        assert [message.content for message in results] == [f"{degrees} °C"], city


@pytest.mark.usefixtures("model")
def test_the_command_line_answers(tmp_path):
    """The README's first command, from this checkout: a right answer that used the tool."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "langchain_autotools", "chat", QUESTION, "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["args"]["city"] for event in events if event["type"] == "tool_call"] == ["Paris", "Rome"]
    text = "".join(event["text"] for event in events if event["type"] == "text")
    assert "18" in text and "24" in text and events[-1]["stop_reason"] == "complete"
