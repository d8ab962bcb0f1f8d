"""Common mistakes: each prints at most 35 lines, in every way of asking."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_autotools import Agent, ChatAnthropic, ChatGoogleGenerativeAI, ChatOllama, ChatOpenAI, events

MOST = 35
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY")
CLASSES: dict[str, Callable[..., Any]] = {
    "openai": lambda **fields: ChatOpenAI(**{"base_url": "http://127.0.0.1:9/v1", "api_key": "key", **fields}),
    "anthropic": lambda **fields: ChatAnthropic(**{"base_url": "http://127.0.0.1:9", "api_key": "key", **fields}),
    "google": lambda **fields: ChatGoogleGenerativeAI(**{"base_url": "http://127.0.0.1:9", "api_key": "key", **fields}),
    "ollama": lambda **fields: ChatOllama(**{"base_url": "http://127.0.0.1:9", **fields}),
}


def look(place: str) -> str:
    """Look."""
    return place


def undocumented(*places) -> str:  # type: ignore[no-untyped-def]  # noqa: D103
    return "there"


async def read(chunks: Any) -> None:
    """Read a stream to its end."""
    async for _ in chunks:
        pass


WAYS: dict[str, Callable[..., Any]] = {
    "invoke": lambda model, asked, keywords: model.invoke(asked, **keywords),
    "stream": lambda model, asked, keywords: list(model.stream(asked, **keywords)),
    "ainvoke": lambda model, asked, keywords: asyncio.run(model.ainvoke(asked, **keywords)),
    "astream": lambda model, asked, keywords: asyncio.run(read(model.astream(asked, **keywords))),
    "bound": lambda model, asked, keywords: model.bind(stop=["."]).invoke(asked, **keywords),
    "a bound stream": lambda model, asked, keywords: list(model.bind(stop=["."]).stream(asked, **keywords)),
    "batch": lambda model, asked, keywords: model.batch([asked], **keywords),
    "generate": lambda model, asked, keywords: model.generate([_listed(asked)], **keywords),
    "agenerate": lambda model, asked, keywords: asyncio.run(model.agenerate([_listed(asked)], **keywords)),
    "structured output": lambda model, asked, keywords: model.with_structured_output(SCHEMA).invoke(asked, **keywords),
    "events": lambda model, asked, keywords: list(events(model.stream(asked, **keywords))),
    "Agent": lambda model, asked, keywords: Agent(model, history=_listed(asked)).run("Go on.", **keywords),
    "Agent.arun": lambda model, asked, keywords: asyncio.run(Agent(model, history=_listed(asked)).arun("Go on.", **keywords)),
    "Agent.run_stream": lambda model, asked, keywords: list(Agent(model, history=_listed(asked)).run_stream("Go on.", **keywords)),
}
SCHEMA = {"title": "Place", "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
CALL = AIMessage("", tool_calls=[{"name": "look", "args": {"place": "Rome"}, "id": "call_1"}])


def _listed(asked: Any) -> Any:
    return asked if isinstance(asked, list) else []


MISTAKES: dict[str, tuple[dict[str, Any], Any, dict[str, Any]]] = {
    "a wrong content block": ({}, [HumanMessage([{"type": "image_uri", "url": "http://a"}])], {}),
    "data that is no base64": ({}, [HumanMessage([{"type": "image", "base64": "%%%", "mime_type": "image/png"}])], {}),
    "a wrong role": ({}, [("robot", "Hi")], {}),
    "a message without a role": ({}, [{"rol": "user", "content": "Hi"}], {}),
    "a number in place of messages": ({}, [5], {}),
    "a misspelt keyword": ({}, "Hi", {"temprature": 2}),
    "a misspelt setting": ({}, "Hi", {"max_turn": 2}),
    "an impossible setting": ({}, "Hi", {"max_turns": 0}),
    "an impossible value": ({}, "Hi", {"temperature": -1}),
    "a choice of an unknown tool": ({}, "Hi", {"tool_choice": 5}),
    "decisions that decide nothing": ({}, [HumanMessage("Hi"), CALL], {"resume": {"call_9": True}}),
    "a missing key": ({"api_key": None}, "Hi", {}),
    "a wrong tool": ({"tools": [5]}, "Hi", {}),
    "a tool without a description": ({"tools": [undocumented]}, "Hi", {}),
    "two tools of one name": ({"tools": [look, look]}, "Hi", {}),
    "a wrong argument": ({"temprature": 2}, "Hi", {}),
    "a server that is not there": ({"max_retries": 0}, "Hi", {}),
}


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No key is in the environment."""
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    yield


def printed(make: Callable[..., Any], mistake: str, way: str) -> list[str]:
    """The lines that Python prints of a mistake; empty where nothing is raised."""
    fields, asked, keywords = MISTAKES[mistake]
    try:
        WAYS[way](make(**{"model": "any", "tools": [look], "max_retries": 0, **fields}), asked, keywords)
    except Exception as error:
        return "".join(traceback.format_exception(error)).splitlines()
    return []


@pytest.mark.further
@pytest.mark.usefixtures("no_keys")
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("way", WAYS)
def test_a_mistake_prints_at_most_35_lines(way: str, name: str) -> None:
    """As a program prints it that does not catch the error."""
    lengths = {mistake: printed(CLASSES[name], mistake, way) for mistake in MISTAKES}
    assert {mistake: lines[-1] for mistake, lines in lengths.items() if len(lines) > MOST} == {}
    assert [mistake for mistake, lines in lengths.items() if lines and mistake.startswith("a wrong")] != []
