"""Objects of Ollama's SDK beside a model: options, tools and messages as its input, and the SDK's client with its settings."""

from __future__ import annotations

import base64
from typing import Any

import ollama
import pytest

from langchain_autotools import ChatOllama, ConfigurationError, pending_calls
from tests.contract.talk import WAYS, run_in
from tests.support.ollama_server import OllamaServer
from tests.support.script import Call, Turn
from tests.support.weather import get_temperature

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
DECLARED = ollama.Tool(
    function=ollama.Tool.Function(
        name="look",
        description="Look somewhere.",
        parameters=ollama.Tool.Function.Parameters(
            type="object",
            required=["where"],
            properties={"where": ollama.Tool.Function.Parameters.Property(type="string", description="A place.")},
        ),
    )
)


def model(server: OllamaServer, **more: Any) -> ChatOllama:
    """A model on this server."""
    return ChatOllama(**{"model": "m", "base_url": server.url, **more})


def test_options_of_the_sdk() -> None:
    """In the constructor and in a call; what they leave open is not sent."""
    with OllamaServer([Turn("Hi."), Turn("Hi.")]) as server:
        asking = model(server, options=ollama.Options(num_ctx=1024, top_k=3))
        asking.invoke("Hello", options=ollama.Options(top_k=4))
        asking.invoke("Hello")
        assert [request["options"] for request in server.requests] == [{"num_ctx": 1024, "top_k": 4}, {"num_ctx": 1024, "top_k": 3}]


def test_tools_of_the_sdk_are_declared() -> None:
    """Their calls are left to the caller; as tools that run they are refused with a reason."""
    with OllamaServer([Turn("", [Call("look", {"where": "up"})])]) as server:
        ran = model(server, tools=[get_temperature]).bind_tools([DECLARED]).invoke("Look!")
        assert [(call.name, call.args) for call in pending_calls(ran)] == [("look", {"where": "up"})]
        declared = server.requests[0]["tools"][-1]["function"]
        assert (declared["name"], declared["description"], declared["parameters"]["required"]) == ("look", "Look somewhere.", ["where"])
        assert declared["parameters"]["properties"] == {"where": {"type": "string", "description": "A place."}}
    with pytest.raises(ConfigurationError):
        _ = model(server, tools=[DECLARED]).invoke("Look!")


@pytest.mark.parametrize("way", WAYS)
async def test_messages_of_the_sdk_are_a_history(way: str) -> None:
    """Of all roles, with pictures, thinking, calls and results, also beside LangChain's own."""
    function = ollama.Message.ToolCall.Function
    history: Any = [
        ollama.Message(role="system", content="Be brief."),
        ollama.Message(role="user", content="What is this?", images=[ollama.Image(value=PIXEL)]),
        ollama.Message(
            role="assistant",
            thinking="Hm.",
            tool_calls=[ollama.Message.ToolCall(function=function(name="get_temperature", arguments={"city": "Rome"}))],
        ),
        ollama.Message(role="tool", content="21", tool_name="get_temperature"),
        ("user", "And now?"),
    ]
    with OllamaServer([Turn("Warm."), Turn("Hi.")]) as server:
        asking = model(server, tools=[get_temperature])
        assert (await run_in(way, asking, history)).message.text == "Warm."
        sent = server.requests[0]["messages"]
        assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "user"]
        assert sent[1]["images"] == [base64.b64encode(PIXEL).decode()]
        assert sent[2]["tool_calls"][0]["function"]["arguments"] == {"city": "Rome"}
        assert (sent[3]["content"], sent[3]["tool_name"]) == ("21", "get_temperature")
        await run_in(way, asking, ollama.Message(role="user", content="Hello"))
        assert server.requests[1]["messages"] == [{"role": "user", "content": "Hello"}]
        with pytest.raises(ConfigurationError, match="role 'judge'"):
            asking.invoke([ollama.Message(role="judge", content="Guilty.")])


async def test_the_client_of_the_sdk_has_the_models_settings() -> None:
    """Address, key and headers of the model; both clients list its server's models."""
    with OllamaServer(models=("m:latest",)) as server:
        host = server.url.removeprefix("http://")
        asking = model(server, api_key="key", client_kwargs={"headers": {"X-Team": "a"}}, sync_client_kwargs={"headers": {"X-Side": "s"}})
        client = asking.sdk_client()
        assert [one.model for one in client.list().models] == ["m:latest"]
        client._client.close()
        other = ChatOllama(model="m", base_url=f"user:pass@{host}").async_sdk_client()
        assert [one.model for one in (await other.list()).models] == ["m:latest"]
        await other._client.aclose()
        first, second = (exchange.headers for exchange in server.exchanges)
        assert (first["authorization"], first["x-team"], first["x-side"]) == ("Bearer key", "a", "s")
        assert second["authorization"] == f"Basic {base64.b64encode(b'user:pass').decode()}"
