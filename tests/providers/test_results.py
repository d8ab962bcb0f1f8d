"""`format_for_...`: results of our executor go back through each vendor's own SDK, to strict servers."""

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from typing import Any

import anthropic
import ollama
import openai
import pytest
from google import genai
from google.genai import types
from langchain_core.messages import ToolMessage

from langchain_autotools import ConfigurationError, ToolExecutor
from langchain_autotools.providers.results import format_for_anthropic, format_for_google, format_for_ollama, format_for_openai
from tests.support.anthropic_server import AnthropicServer
from tests.support.google_server import GoogleServer
from tests.support.ollama_server import OllamaServer
from tests.support.openai_server import OpenAIServer
from tests.support.responses_server import ResponsesServer
from tests.support.script import Call, Turn
from tests.support.scripted_server import ScriptedServer

QUESTION = "How warm is it in Rome and in Oslo?"
SCRIPT = [
    Turn(calls=[Call("get_temperature", {"city": "Rome"}), Call("get_temperature", {"city": "Oslo"})]),
    Turn(text="21 °C, and no idea."),
]
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION: Mapping[str, Any] = {"name": "get_temperature", "description": "Current temperature of a city."}


def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return {"Rome": "21 °C"}[city]


EXECUTOR = ToolExecutor([get_temperature])
OPEN = ExitStack()
"""The clients of one conversation."""


def chat(url: str) -> str:
    """OpenAI's chat completions."""
    client = OPEN.enter_context(openai.OpenAI(base_url=url, api_key="k", max_retries=0))
    tools: Any = [{"type": "function", "function": {**FUNCTION, "parameters": SCHEMA}}]
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    reply = client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message
    calls = [{"id": call.id, "name": call.function.name, "args": json.loads(call.function.arguments)} for call in reply.tool_calls or ()]  # type: ignore[union-attr]
    messages += [reply.model_dump(include={"role", "content", "tool_calls"}), *format_for_openai(EXECUTOR.execute_all(calls))]
    return client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message.content or ""


def responses(url: str) -> str:
    """OpenAI's Responses."""
    client = OPEN.enter_context(openai.OpenAI(base_url=url, api_key="k", max_retries=0))
    tools: Any = [{"type": "function", "strict": False, **FUNCTION, "parameters": SCHEMA}]
    items: list[Any] = [{"role": "user", "content": QUESTION}]
    output = client.responses.create(model="m", input=items, tools=tools, store=False).output
    asked = [item for item in output if item.type == "function_call"]
    calls = [{"id": item.call_id, "name": item.name, "args": json.loads(item.arguments)} for item in asked]
    items += [
        *(item.model_dump(exclude_none=True, exclude={"id"}) for item in asked),
        *format_for_openai(EXECUTOR.stream(calls), use_responses_api=True),
    ]
    return client.responses.create(model="m", input=items, tools=tools, store=False).output_text


def messages_api(url: str) -> str:
    """Anthropic's Messages."""
    client = OPEN.enter_context(anthropic.Anthropic(base_url=url, api_key="k", max_retries=0))
    tools: Any = [{**FUNCTION, "input_schema": SCHEMA}]
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    reply = client.messages.create(model="claude", max_tokens=100, messages=messages, tools=tools)
    calls = [{"id": block.id, "name": block.name, "args": block.input} for block in reply.content if block.type == "tool_use"]
    content = [block.model_dump(exclude_none=True) for block in reply.content]
    messages += [{"role": "assistant", "content": content}, *format_for_anthropic(EXECUTOR.execute_all(calls))]
    end = client.messages.create(model="claude", max_tokens=100, messages=messages, tools=tools).content[0]
    return end.text if end.type == "text" else ""


def gemini(url: str) -> str:
    """Google's generateContent."""
    client = OPEN.enter_context(closing(genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url))))
    declared = types.FunctionDeclaration(**FUNCTION, parameters=types.Schema.model_validate(SCHEMA))
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])])
    contents: list[Any] = [{"role": "user", "parts": [{"text": QUESTION}]}]
    reply = client.models.generate_content(model="gemini-2.5-flash", contents=contents, config=config)
    calls = [{"id": call.id, "name": call.name, "args": call.args} for call in reply.function_calls or ()]
    assert reply.candidates
    contents += [reply.candidates[0].content, *format_for_google(EXECUTOR.execute_all(calls))]
    return client.models.generate_content(model="gemini-2.5-flash", contents=contents, config=config).text or ""


def chat_of_ollama(url: str) -> str:
    """Ollama's /api/chat."""
    if "tool_name" not in ollama.Message.model_fields:
        pytest.skip("this release of Ollama's SDK cannot say which tool a result is of")
    client = ollama.Client(host=url, headers={"connection": "close"})  # its older releases cannot be closed
    tools: Any = [{"type": "function", "function": {**FUNCTION, "parameters": SCHEMA}}]
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    reply = client.chat(model="m", messages=messages, tools=tools).message
    calls = [{"name": call.function.name, "args": dict(call.function.arguments)} for call in reply.tool_calls or ()]
    messages += [reply, *format_for_ollama(EXECUTOR.execute_all(calls))]
    return client.chat(model="m", messages=messages, tools=tools).message.content or ""


@pytest.mark.parametrize(
    ("kind", "conversation"),
    [
        pytest.param(OpenAIServer, chat, id="openai"),
        pytest.param(ResponsesServer, responses, id="openai-responses"),
        pytest.param(AnthropicServer, messages_api, id="anthropic"),
        pytest.param(GoogleServer, gemini, id="google"),
        pytest.param(OllamaServer, chat_of_ollama, id="ollama"),
    ],
)
def test_results_go_back_through_the_sdk(kind: type[ScriptedServer], conversation: Callable[[str], str]) -> None:
    """What an executor gave, a failure among it, is taken by the vendor's SDK and by its server."""
    with kind(SCRIPT) as server, OPEN:
        assert conversation(server.url) == "21 °C, and no idea."
        sent = json.dumps(server.exchanges[-1].json, ensure_ascii=False)
    assert "21 °C" in sent
    assert "KeyError" in sent


@pytest.mark.parametrize("format_for", [format_for_openai, format_for_anthropic, format_for_google, format_for_ollama])
def test_what_is_no_result_is_refused(format_for: Callable[[Any], Any]) -> None:
    """Messages that are no results, and values, are refused by name; no results are no messages."""
    for wrong in ("21 °C", {"role": "tool"}):
        with pytest.raises(ConfigurationError, match="a result is a ToolMessage or a ToolCallResult"):
            format_for([wrong])
    assert format_for([]) == []


def test_media_follow_the_results() -> None:
    """Chat completions take text alone in a tool message: an image follows in a message of the user."""
    picture = {"type": "image", "base64": "eHg=", "mime_type": "image/png"}
    tool, user = format_for_openai([ToolMessage([{"type": "text", "text": "the map"}, picture], tool_call_id="a", name="map")])
    assert tool == {"role": "tool", "tool_call_id": "a", "content": "the map"}
    assert user["content"][1]["image_url"]["url"] == "data:image/png;base64,eHg="
