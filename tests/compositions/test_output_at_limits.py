"""Structured output of a run that reaches a limit: the last request asks for it, or an error says that there is none."""

import asyncio
import json
from typing import Any

import pytest
from langchain_core.exceptions import OutputParserException
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from pydantic import BaseModel

from langchain_autotools import new_messages
from tests.contract.wires import WIRES, Wire
from tests.support.http_server import Exchange
from tests.support.script import Call, Turn

QUESTION = [HumanMessage("How warm is it in Paris?")]
# One row of each wire: presets say these words as chat completions do.
ROWS = [wire for wire in WIRES if wire.name in ("openai-chat", "openai-responses", "anthropic", "google")]
rows = pytest.mark.parametrize("wire", ROWS, ids=lambda wire: wire.name)


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


@tool
def get_temperature(city: str, hour: int) -> str:
    """Current temperature of a city."""
    return f"{city}: {hour} °C"


def _restless(exchange: Exchange) -> Turn:
    """Looks again and again, until it is held to the schema."""
    body = exchange.json
    asked = json.dumps(body.get("tool_choice") or body.get("toolConfig"))
    number = exchange.number
    if "Weather" in asked and number > 1:
        return Turn(calls=[Call("Weather", {"city": "Paris", "degrees": 21})])
    return Turn("Let me look.", [Call("get_temperature", {"city": "Paris", "hour": number})])


@rows
@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
async def test_the_last_request_asks_for_the_schema(wire: Wire, way: str) -> None:
    """A run that would call tools for ever is held to the schema at its limit, with all tools still declared (wire quirk H-10)."""
    with wire.serve(_restless) as server:
        model = wire.model(server, tools=[get_temperature], max_turns=2).with_structured_output(Weather, method="function_calling")
        if way == "invoke":
            output = await asyncio.to_thread(model.invoke, QUESTION)
        elif way == "ainvoke":
            output = await model.ainvoke(QUESTION)
        elif way == "stream":
            output = (await asyncio.to_thread(lambda: list(model.stream(QUESTION))))[-1]
        else:
            output = [part async for part in model.astream(QUESTION)][-1]
        assert output == Weather(city="Paris", degrees=21) and not server.rejections
    tools = [exchange.json["tools"] for exchange in server.exchanges]
    assert len(tools) == 3 and tools[0] == tools[1] == tools[2]


@rows
@pytest.mark.parametrize("method", ["function_calling", "json_schema"])
@pytest.mark.parametrize("include_raw", [False, True])
def test_no_output_is_an_error(wire: Wire, method: str, include_raw: bool) -> None:
    """Where no last request is made the error says why, and brings what the run did."""

    def reply(exchange: Exchange) -> Turn:
        return Turn(calls=[Call("get_temperature", {"city": "Paris", "hour": exchange.number})])

    with wire.serve(reply) as server:
        model = wire.model(server, tools=[get_temperature], max_turns=2, on_limit="return")
        chain = model.with_structured_output(Weather, method=method, include_raw=include_raw)
        error: Any
        if include_raw:
            output = chain.invoke(QUESTION)
            error = output["parsing_error"]
            assert output["parsed"] is None and len(new_messages(output["raw"])) == 4
        else:
            with pytest.raises(OutputParserException) as caught:
                chain.invoke(QUESTION)
            error = caught.value
    assert "the stop reason 'max_turns'" in str(error)
    assert [message.type for message in new_messages(error)] == ["ai", "tool", "ai", "tool"]
