"""What users do with a run besides reading it: structured output, batches, event streams; tools run in each of them."""

import asyncio
import json
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import tool
from pydantic import BaseModel
from typing_extensions import TypedDict

from tests.contract.talk import Start
from tests.contract.wires import Wire
from tests.support.http_server import Exchange, Gate
from tests.support.script import Call, Reply, Turn

QUESTION = [HumanMessage("How warm is it in Paris? Answer as JSON.")]
ANSWER = '{"city": "Paris", "degrees": 21}'


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


class WeatherDict(TypedDict):
    """The weather of a city."""

    city: str
    degrees: int


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return f"{city}: 21 °C"


LOOKING = Turn("Let me look.", [Call("get_temperature", {"city": "Paris"})])
ANSWERED: list[Reply] = [LOOKING, Turn("21 °C.")]


async def test_a_schema_without_a_title_is_taken_where_nothing_needs_a_name(start: Start, wire: Wire) -> None:
    """By the methods whose request names no schema: JSON by a schema of Anthropic, Google and Ollama, and any JSON of the others."""
    bare = {name: value for name, value in Weather.model_json_schema().items() if name != "title"}
    method = "json_schema" if wire.name in ("anthropic", "google", "ollama") else "json_mode"
    chain = start([Turn(ANSWER)]).model.with_structured_output(bare, method=method)
    assert chain.get_output_schema().model_json_schema()["required"] == ["city", "degrees"]
    assert await chain.ainvoke(QUESTION) == {"city": "Paris", "degrees": 21}


@pytest.mark.parametrize("method", ["json_schema", "json_mode", "function_calling"])
@pytest.mark.parametrize("schema", [Weather, Weather.model_json_schema()], ids=["pydantic", "schema"])
async def test_structured_output_after_a_tool(start: Start, wire: Wire, way: str, method: str, schema: Any) -> None:
    """The output is parsed from the last turn alone, whole and streamed, whatever the first turn said."""

    def reply(exchange: Exchange) -> Turn:
        if not wire.results(exchange):
            return LOOKING
        return Turn(calls=[Call("Weather", ANSWER)]) if "Weather" in json.dumps(exchange.json["tools"]) else Turn(ANSWER)

    expected = Weather(city="Paris", degrees=21) if schema is Weather else {"city": "Paris", "degrees": 21}
    talk = start(reply, tools=[get_temperature])
    chain = talk.model.with_structured_output(schema, method=method)
    if way == "invoke":
        assert await asyncio.to_thread(chain.invoke, QUESTION) == expected
    elif way == "ainvoke":
        assert await chain.ainvoke(QUESTION) == expected
    elif way == "stream":
        assert (await asyncio.to_thread(lambda: list(chain.stream(QUESTION))))[-1] == expected
    else:
        assert [part async for part in chain.astream(QUESTION)][-1] == expected
    assert (talk.texts(1), len(talk.server.exchanges)) == (["Paris: 21 °C"], 2)


@pytest.mark.parametrize("schema", [Weather, Weather.model_json_schema(), WeatherDict], ids=["pydantic", "schema", "typed dict"])
async def test_the_model_is_told_what_the_schema_is_for(start: Start, schema: Any) -> None:
    """The description of a schema is sent along with its fields, in whatever form the schema is."""
    talk = start([Turn(ANSWER)])
    await talk.model.with_structured_output(schema, method="json_schema", include_raw=True).ainvoke(QUESTION)
    assert "The weather of a city." in json.dumps(talk.server.exchanges[0].json)


async def test_a_chain_gives_the_text_of_the_run(start: Start) -> None:
    """`prompt | model | parser` gives the same text whole and streamed."""
    prompt = ChatPromptTemplate.from_messages([("human", "How warm is it in {city}?")])
    text = "Let me look.\n21 °C."
    talk = start(ANSWERED, tools=[get_temperature])
    assert await (prompt | talk.model | StrOutputParser()).ainvoke({"city": "Paris"}) == text
    talk = start(ANSWERED, tools=[get_temperature])
    assert "".join((prompt | talk.model | StrOutputParser()).stream({"city": "Paris"})) == text


def per_question(wire: Wire) -> Any:
    """A script that calls the tool for each question's city."""

    def reply(exchange: Exchange) -> Turn:
        results = wire.results(exchange)
        return Turn(results[0][1]) if results else Turn(calls=[Call("get_temperature", {"city": wire.question(exchange)})])

    return reply


async def test_batches_are_runs(start: Start, wire: Wire) -> None:
    """Each input of a batch is a run of its own."""
    talk = start(per_question(wire), tools=[get_temperature])
    cities = ["Paris", "Rome", "Oslo"]
    expected = [f"{city}: 21 °C" for city in cities]
    assert [message.text for message in await asyncio.to_thread(talk.model.batch, cities)] == expected
    assert [message.text for message in await talk.model.abatch(cities)] == expected


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
async def test_event_streams_are_runs(start: Start) -> None:
    """The v3 event streams run the tools too and end in the run's text, with no call left over."""
    talk = start(ANSWERED, tools=[get_temperature])
    stream = talk.model.stream_events(QUESTION, version="v3")
    assert (stream.output.text, stream.output.tool_calls, talk.server.left) == ("Let me look.\n21 °C.", [], 0)
    talk = start(ANSWERED, tools=[get_temperature])
    async_stream = await talk.model.astream_events(QUESTION, version="v3")
    output = await async_stream.output
    assert (output.text, output.tool_calls, talk.server.left) == ("Let me look.\n21 °C.", [], 0)


async def test_cancelling_a_whole_request_ends_the_connection(start: Start) -> None:
    """A cancelled `ainvoke` leaves the server while it still thinks."""
    gate = Gate()
    talk = start([Turn("Never.", holds={0: gate})], tools=[get_temperature])
    task = asyncio.create_task(talk.model.ainvoke(QUESTION))
    assert await asyncio.to_thread(gate.reached.wait, 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(talk.server.exchanges[0].disconnected.wait, 20)
