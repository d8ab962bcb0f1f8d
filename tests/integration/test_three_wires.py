"""The two-cities conversation on every protocol that the real local server speaks: `pytest -m integration`."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_autotools import ChatAnthropic, ChatLocal, ChatOpenAI, new_messages, run_usage
from langchain_autotools.cli.tools import get_temperature

pytestmark = [pytest.mark.local, pytest.mark.integration]

QUESTION = [HumanMessage("How warm is it in Paris and in Rome?")]
WIRES = ("chat completions", "Responses", "Responses, nothing stored", "Anthropic")


def asking(wire: str, model: ChatLocal) -> Any:
    """The class of a wire, pointed at the local server."""
    server = model.start()
    settings: dict[str, Any] = {"model": "any", "api_key": server.api_key, "temperature": 0, "tools": [get_temperature]}
    if wire == "Anthropic":
        return ChatAnthropic(base_url=server.base_url.removesuffix("/v1"), max_tokens=500, **settings)
    if wire == "chat completions":
        return ChatOpenAI(base_url=server.base_url, stream_usage=True, **settings)
    return ChatOpenAI(base_url=server.base_url, use_responses_api=True, store="nothing" not in wire, **settings)


@pytest.fixture(params=WIRES)
def other(request: pytest.FixtureRequest, model: ChatLocal) -> Any:
    """The local model through each wire."""
    return asking(request.param, model)


def check(text: str, messages: list[Any]) -> None:
    """Both tools ran, and both temperatures are told."""
    assert [type(message) for message in messages] == [AIMessage, ToolMessage, ToolMessage, AIMessage]
    assert [call["args"] for call in messages[0].tool_calls] == [{"city": "Paris"}, {"city": "Rome"}]
    assert "18" in text and "24" in text


def test_two_cities_streamed(other: Any) -> None:
    """One turn asks for both cities, the next tells both temperatures; usage of both turns is counted; the next question follows."""
    history = [*QUESTION]
    text = ""
    for chunk in other.stream(history):
        text += chunk.text
        history += new_messages(chunk)
    check(text, history[1:])
    assert chunk.response_metadata["autotools"]["stop_reason"] == "complete"
    assert run_usage(chunk)["output_tokens"] > chunk.usage_metadata["output_tokens"] > 0
    assert "13" in other.invoke([*history, HumanMessage("How warm is it in Berlin?")]).text


async def test_the_asynchronous_stream_and_the_whole_reply_say_the_same(other: Any) -> None:
    """At temperature 0 a stream, read asynchronously, and `ainvoke` give the same conversation."""
    chunks = [chunk async for chunk in other.astream(QUESTION)]
    text = "".join(chunk.text for chunk in chunks)
    check(text, [message for chunk in chunks for message in new_messages(chunk)])
    whole = await other.ainvoke(QUESTION)
    check(whole.text, new_messages(whole))
    assert whole.text == text


def test_a_history_of_one_wire_goes_on_at_the_others(model: ChatLocal) -> None:
    """What one wire's run made is accepted, and understood, through the next."""
    history: list[Any] = []
    for wire, (city, degrees) in zip(WIRES, {"Berlin": "13", "Tokyo": "19", "Oslo": "6", "Cairo": "30"}.items(), strict=True):
        history.append(HumanMessage(f"How warm is it in {city}?"))
        run = asking(wire, model).invoke(history)
        history += new_messages(run)
        assert [message.content for message in new_messages(run) if isinstance(message, ToolMessage)] == [f"{degrees} °C"], wire
