"""Structured output whose reply does not fit its schema: it goes back to the model with the error, in the same run."""

import asyncio
import json
from typing import Any

import pytest
from langchain_core.exceptions import OutputParserException
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from pydantic import BaseModel, field_validator

from langchain_autotools import ConfigurationError, ModelRefusalError, new_messages, run_usage
from tests.contract.wires import WIRES, Wire
from tests.support.http_server import Exchange
from tests.support.script import Call, Turn

QUESTION = [HumanMessage("How warm is it in Paris?")]
ROWS = [wire for wire in WIRES if wire.name in ("openai-chat", "openai-responses", "anthropic", "google")]
rows = pytest.mark.parametrize("wire", ROWS, ids=lambda wire: wire.name)
WAYS = ("invoke", "stream", "ainvoke", "astream")


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int

    @field_validator("degrees")
    @classmethod
    def _above_zero(cls, degrees: int) -> int:
        if degrees < 0:
            raise ValueError("it is never so cold there")
        return degrees


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return f"{city}: 21 °C"


def output(method: str, degrees: int) -> Turn:
    """A reply with an output."""
    value = {"city": "Paris", "degrees": degrees}
    return Turn(calls=[Call("Weather", value)]) if method == "function_calling" else Turn(json.dumps(value))


async def run(chain: Any, way: str) -> Any:
    """The output of a chain, in one of the ways."""
    if way == "invoke":
        return await asyncio.to_thread(chain.invoke, QUESTION)
    if way == "ainvoke":
        return await chain.ainvoke(QUESTION)
    if way == "stream":
        return (await asyncio.to_thread(lambda: list(chain.stream(QUESTION))))[-1]
    return [part async for part in chain.astream(QUESTION)][-1]


@rows
@pytest.mark.parametrize("method", ["function_calling", "json_schema"])
@pytest.mark.parametrize("tools", [[], [get_temperature]], ids=["no tools", "tools"])
async def test_the_error_goes_back_to_the_model_in_the_same_run(wire: Wire, method: str, tools: Any) -> None:
    """A validator's error is sent with the reply that it is about, the same tools declared; the next output counts."""
    looks = [Turn(calls=[Call("get_temperature", {"city": "Paris"})])] if tools else []
    for way in WAYS:
        with wire.serve([*looks, output(method, -1), output(method, 21)]) as server:
            chain = wire.model(server, tools=tools).with_structured_output(Weather, method=method, retries=1)
            assert await run(chain, way) == Weather(city="Paris", degrees=21)
            assert not server.rejections
        last, again = server.exchanges[-2:]
        assert "it is never so cold there" in json.dumps(again.json) and "never so cold" not in json.dumps(last.json)
        assert again.json.get("tools") == last.json.get("tools")
        assert len(server.exchanges) == 2 + len(looks)


@pytest.mark.parametrize("method", ["function_calling", "json_schema"])
@pytest.mark.parametrize("way", WAYS)
async def test_the_last_error_is_raised_with_its_text(method: str, way: str) -> None:
    """When no retry is left the error is that of the last reply; without retries that of the first."""
    wire = ROWS[0]
    for retries in (0, 2):  # by either method the parser's error is a ValueError
        replies = [output(method, -number) for number in range(1, retries + 2)]
        with wire.serve(replies) as server:
            chain = wire.model(server, tools=[get_temperature]).with_structured_output(Weather, method=method, retries=retries)
            with pytest.raises(ValueError, match=f"-{retries + 1}"):
                await run(chain, way)
            assert len(server.exchanges) == retries + 1


@pytest.mark.parametrize("method", ["function_calling", "json_schema"])
@pytest.mark.parametrize("tools", [[], [get_temperature]], ids=["no tools", "tools"])
@rows
async def test_the_tokens_of_rejected_replies_count(wire: Wire, method: str, tools: Any) -> None:
    """`raw` has the usage of all replies; its messages are the accepted reply alone."""
    with wire.serve([output(method, -1), output(method, -2), output(method, 21)]) as server:
        chain = wire.model(server, tools=tools).with_structured_output(Weather, method=method, retries=2, include_raw=True)
        raw = (await chain.ainvoke(QUESTION))["raw"]
    usage = run_usage(raw)
    assert usage is not None and (usage["input_tokens"], usage["output_tokens"]) == (33, 21)
    assert [(message.type, message.usage_metadata["total_tokens"]) for message in new_messages(raw)][:1] == [("ai", 18)]  # type: ignore[attr-defined]


async def test_a_retry_may_call_tools() -> None:
    """The reply to an error may look first."""
    wire = ROWS[0]
    replies = [Turn("That I know: 21 °C."), Turn(calls=[Call("get_temperature", {"city": "Paris"})]), output("json_schema", 21)]
    with wire.serve(replies) as server:
        chain = wire.model(server, tools=[get_temperature]).with_structured_output(
            Weather, method="json_schema", retries=1, include_raw=True
        )
        found = await chain.ainvoke(QUESTION)
    assert found["parsed"] == Weather(city="Paris", degrees=21)
    assert [message.type for message in new_messages(found["raw"])] == ["ai", "tool", "ai"]


BROKEN = Call("Weather", '{"city": "Par')
FAILURES: dict[str, tuple[Turn, bool]] = {
    "cut": (Turn(calls=[BROKEN], finish="length"), False),
    "whole at its limit": (Turn(calls=[Call("Weather", {"city": "Paris", "degrees": 21})], finish="length"), False),
    "broken": (Turn(calls=[BROKEN]), True),
    "no object": (Turn(calls=[Call("Weather", "[1]")]), True),
    "unfit": (Turn(calls=[Call("Weather", {"city": "Paris"})]), True),
    "twice": (Turn(calls=[BROKEN, Call("Weather", {"city": 1})]), True),
    "beside a tool": (Turn(calls=[BROKEN, Call("get_temperature", {"city": "Paris"})]), True),
}


@rows
@pytest.mark.parametrize("tools", [[], [get_temperature]], ids=["no tools", "tools"])
async def test_one_attempt_is_one_request(wire: Wire, tools: Any) -> None:
    """However a reply by a call fails to be the output, it is asked for again `retries` times at most, and what is cut off not at all.
    Half an object is never the output. The ways of a run take turns."""
    for number, (reply, again) in enumerate(FAILURES.values()):
        for retries in (0, 2):
            with wire.serve(lambda exchange, reply=reply: reply) as server:  # type: ignore[misc]
                chain = wire.model(server, tools=tools).with_structured_output(Weather, method="function_calling", retries=retries)
                with pytest.raises(ValueError, match=r"limit|not one complete JSON object|degrees"):
                    await run(chain, WAYS[(number + retries) % 4])
                assert len(server.exchanges) == (1 + retries if again else 1)
                assert not server.rejections


async def test_a_refusal_is_not_asked_again() -> None:
    """Nor a reply that was cut off: another one would end in the same way."""
    wire = ROWS[0]
    for reply, error in ((Turn(refusal="No."), ModelRefusalError), (Turn('{"city', finish="length"), OutputParserException)):
        with wire.serve(lambda exchange, reply=reply: reply) as server:  # type: ignore[misc]
            with pytest.raises(error):
                await wire.model(server).with_structured_output(Weather, method="json_schema", retries=3).ainvoke(QUESTION)
            assert len(server.exchanges) == 1


def _tell(exchange: Exchange) -> Turn:
    raise AssertionError("no request is made")


@pytest.mark.parametrize("retries", [-1, True, 1.5, "one"])
def test_what_is_no_number_is_refused(retries: Any) -> None:
    """Where the chain is made."""
    with ROWS[0].serve(_tell) as server, pytest.raises(ConfigurationError, match="retries must be a whole number"):
        ROWS[0].model(server).with_structured_output(Weather, retries=retries)
