"""The conversation that every composition has: two cities, two calls, one answer."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langchain_autotools.testing import ScriptedChatModel

CALLS = [
    {"name": "get_temperature", "args": {"city": "Paris"}, "id": "call_1"},
    {"name": "get_temperature", "args": {"city": "Rome"}, "id": "call_2"},
]
TEXT = "Let me look.\nParis 5 °C, Rome 4 °C."
ran: list[str] = []


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    ran.append(city)
    return f"{len(city)} °C"


def answer(messages: list[Any], **kwargs: Any) -> AIMessage:
    """Two calls first, then the answer."""
    last = messages[-1]
    usage = {"input_tokens": 10 * len(messages), "output_tokens": 5, "total_tokens": 10 * len(messages) + 5}
    metadata = {"finish_reason": "stop", "model_name": "scripted-1"}
    if last.type == "tool" or (last.type == "human" and "thanks" in last.text):
        text = "Paris 5 °C, Rome 4 °C." if last.type == "tool" else "You are welcome."
        return AIMessage(text, usage_metadata=usage, response_metadata=metadata)
    return AIMessage("Let me look.", tool_calls=CALLS, usage_metadata=usage, response_metadata=metadata)


@pytest.fixture
def chat() -> Callable[..., ScriptedChatModel]:
    """Makes the model; `ran` starts empty."""
    ran.clear()

    def make(**fields: Any) -> ScriptedChatModel:
        return ScriptedChatModel(**{"replies": answer, "tools": [get_temperature], **fields})

    return make


@pytest.fixture
def saver() -> InMemorySaver:
    """Keeps what LangGraph's serializer writes, in strict mode: of types it reads back only those that are known as safe."""
    return InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))
