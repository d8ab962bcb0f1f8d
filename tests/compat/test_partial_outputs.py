"""Structured output that streams: at least as many snapshots as LangChain's partner packages give of the same bytes."""

import asyncio
import json
from typing import Any, TypedDict

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from tests.contract.wires import WIRES, Wire
from tests.support.http_server import Exchange
from tests.support.script import Call, Turn
from tests.support.scripted_server import ScriptedServer

pytestmark = [pytest.mark.compat, pytest.mark.filterwarnings("ignore")]


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int
    notes: list[str]
    summary: str


class WeatherDict(TypedDict):
    """The weather of a city."""

    city: str
    degrees: int
    notes: list[str]
    summary: str


OUTPUT = {"city": "Paris", "degrees": 2100, "notes": ["sunny in the morning", "later cloudy"], "summary": "A fine day, and no rain."}
SCHEMAS = [Weather, WeatherDict, Weather.model_json_schema()]
METHODS = [None, "function_calling", "json_schema", "json_mode"]
QUESTION = "How is the weather in Paris? Answer as JSON."


def reply(exchange: Exchange) -> Turn:
    """The output as a call of the schema's tool, where there is one, else as text."""
    tools = json.dumps(exchange.json.get("tools", []))
    name = next((name for name in ("WeatherDict", "Weather") if f'"{name}"' in tools), None)
    return Turn(calls=[Call(name, OUTPUT)]) if name else Turn(json.dumps(OUTPUT))


def partner_of(wire: Wire, server: ScriptedServer) -> BaseChatModel:
    """The partner package's model of the same server."""
    about: dict[str, Any] = {"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0}
    if wire.name.startswith("openai"):
        return ChatOpenAI(**about, use_responses_api=wire.name == "openai-responses")
    if wire.name == "anthropic":
        return ChatAnthropic(**about)
    if wire.name == "google":
        return ChatGoogleGenerativeAI(**about)
    return ChatOllama(model="any", base_url=server.url)


def streamed(model: Any, way: str, schema: Any, method: str | None, **more: Any) -> list[Any]:
    """What the stream of a model's structured output yields."""
    chain = model.with_structured_output(schema, **({"method": method} if method else {}), **more)
    if way == "stream":
        return list(chain.stream(QUESTION))

    async def read() -> list[Any]:
        return [output async for output in chain.astream(QUESTION)]

    return asyncio.run(read())


@pytest.mark.parametrize("way", ["stream", "astream"])
@pytest.mark.parametrize("schema", SCHEMAS, ids=["pydantic", "typed dict", "schema"])
@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("wire", [row for row in WIRES if "azure" not in row.name], ids=lambda row: row.name)
def test_at_least_as_many_snapshots_as_the_partner(wire: Wire, method: str | None, schema: Any, way: str) -> None:
    """By each method, default included, of each kind of schema; all of the partner's are among ours, and the last is `invoke`'s."""
    responses = wire.name == "openai-responses"
    strict = {"strict": True} if responses and method == "function_calling" else {}  # which the API requires
    raises = responses and schema is Weather and method in (None, "json_schema")  # the partner's stream raises
    with wire.serve(reply) as server:
        partner = partner_of(wire, server)
        theirs = [] if raises else streamed(partner, way, schema, method, **strict)
        ours = streamed(wire.model(server), way, schema, method)
        assert len(ours) >= len(theirs)
        assert [output for output in theirs if output not in ours] == []
        whole = wire.model(server).with_structured_output(schema, **({"method": method} if method else {}))
        assert ours[-1] == whole.invoke(QUESTION)
        assert server.rejections == []
