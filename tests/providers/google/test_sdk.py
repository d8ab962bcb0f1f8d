"""Objects of google-genai beside a model: schemas and contents as its input, and the SDK's client with its settings."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.genai import types

from langchain_autotools import ChatGoogleGenerativeAI
from tests.contract.talk import WAYS, run_in
from tests.providers.google.test_vertex import Tokens
from tests.support.google_server import GoogleServer
from tests.support.http_server import HttpReply, LoopbackServer
from tests.support.script import Turn
from tests.support.weather import get_temperature

SCHEMA = types.Schema(
    type=types.Type.OBJECT,
    properties={"city": types.Schema(type=types.Type.STRING, description="Its name."), "warm": types.Schema(type=types.Type.BOOLEAN)},
    required=["city"],
)
PICTURE = b"\xff\xfe\xfd\x00"


def model(url: str, **more: Any) -> ChatGoogleGenerativeAI:
    """A model at this address."""
    return ChatGoogleGenerativeAI(**{"model": "gemini-3.5-flash", "base_url": url, "api_key": "key", "max_retries": 0, **more})


@pytest.mark.parametrize("tools", [(), (get_temperature,)])
def test_schemas_of_the_sdk(tools: Any) -> None:
    """As the schema of structured output, of the constructor and of one call; it goes as JSON schema."""
    with GoogleServer([Turn('{"city": "Rome"}')] * 3) as server:
        asking = model(server.url, tools=tools)
        assert asking.with_structured_output(SCHEMA, method="json_schema").invoke("Where?") == {"city": "Rome"}
        asking.invoke("Where?", response_format=SCHEMA)
        model(server.url, response_mime_type="application/json", response_schema=SCHEMA).invoke("Where?")
        for request in server.requests:
            sent = request["generationConfig"]["responseJsonSchema"]
            assert (sent["type"], sent["required"]) == ("object", ["city"])
            assert sent["properties"]["city"] == {"type": "string", "description": "Its name."}


@pytest.mark.parametrize("way", WAYS)
async def test_contents_of_the_sdk_are_a_history(way: str) -> None:
    """Texts, media, calls and responses; thoughts are left out, for nothing says which model had them."""
    history: Any = [
        types.Content(role="user", parts=[types.Part(text="What is this?"), types.Part.from_bytes(data=PICTURE, mime_type="image/png")]),
        types.Content(
            role="model",
            parts=[
                types.Part(text="Hm.", thought=True),
                types.Part(text="Let me see."),
                types.Part(function_call=types.FunctionCall(name="get_temperature", args={"city": "Rome"})),
            ],
        ),
        types.Content(role="user", parts=[types.Part.from_function_response(name="get_temperature", response={"result": "21"})]),
        ("human", "And now?"),
    ]
    with GoogleServer([Turn("Warm."), Turn("Hi.")]) as server:
        asking = model(server.url, tools=[get_temperature])
        assert (await run_in(way, asking, history)).message.text == "Warm."
        first, second, third, *_ = server.requests[0]["contents"]
        assert first["parts"][1]["inlineData"] == {"mimeType": "image/png", "data": base64.b64encode(PICTURE).decode()}
        assert second["parts"][0] == {"text": "Let me see."}
        assert second["parts"][1]["functionCall"]["args"] == {"city": "Rome"}
        assert third["parts"][0]["functionResponse"]["name"] == "get_temperature"
        assert "21" in json.dumps(third["parts"][0]["functionResponse"]["response"])
        assert server.rejections == []
        await run_in(way, asking, types.Content(role="user", parts=[types.Part(text="Hello")]))
        assert server.requests[1]["contents"] == [{"role": "user", "parts": [{"text": "Hello"}]}]


async def test_the_client_of_the_sdk_has_the_models_settings() -> None:
    """Address, key and headers; it counts tokens and lists models, also asynchronously."""

    def reply(exchange: Any) -> HttpReply:
        said = {"totalTokens": 7} if "countTokens" in exchange.path else {"models": [{"name": "models/m"}]}
        return HttpReply([json.dumps(said).encode()], 200, {"content-type": "application/json"}, "length")

    with LoopbackServer(reply) as server:
        asking = model(server.address, additional_headers={"X-Team": "a"}, timeout=5)
        client = asking.sdk_client()
        assert client.models.count_tokens(model=asking.model, contents="Hello").total_tokens == 7
        assert [one.name for one in client.models.list()] == ["models/m"]
        assert (await client.aio.models.count_tokens(model=asking.model, contents="Hello")).total_tokens == 7
        await client.aio.aclose()
        client.close()
        for exchange in server.exchanges:
            assert (exchange.headers["x-goog-api-key"], exchange.headers["x-team"]) == ("key", "a")
            assert exchange.path.startswith("/v1beta/models")


def test_on_vertex_ai_the_client_has_its_credentials_and_project() -> None:
    """As the model's own requests have them, or its key."""

    def reply(exchange: Any) -> HttpReply:
        return HttpReply([b'{"totalTokens": 7}'], 200, {"content-type": "application/json"}, "length")

    with LoopbackServer(reply) as server:
        ours = {"api_key": None, "credentials": Tokens(), "project": "p", "location": "l"}
        for more in (ours, {"vertexai": True}):
            asking = model(server.address, **more)
            client = asking.sdk_client()
            assert client.models.count_tokens(model=asking.model, contents="Hello").total_tokens == 7
            client.close()
        first, second = server.exchanges
        assert first.headers["authorization"] == "Bearer token-1"
        assert "/projects/p/locations/l/publishers/google/models/gemini-3.5-flash:countTokens" in first.path
        assert second.headers["x-goog-api-key"] == "key"
