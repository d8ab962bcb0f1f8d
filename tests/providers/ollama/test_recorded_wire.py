"""Recorded replies of /api/chat, served again over HTTP: text, thinking, calls and token counts come out exactly.

Each request carries its recording's id as the model name; the server answers with that recording's bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import ollama
import pytest
from langchain_core.exceptions import ModelError, ModelNotFoundError
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, message_chunk_to_message

from langchain_autotools import ChatOllama
from langchain_autotools.messages import calls_of
from langchain_autotools.providers.ollama.mapper import OllamaMapper
from tests.support.http_server import Exchange
from tests.support.ollama_server import OllamaServer
from tests.support.recorded import Recording, differences, recordings
from tests.support.script import Raw

Serve = Callable[[str], ChatOllama]
DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


@pytest.fixture(scope="module")
def records(wire_folder: Path) -> dict[str, Recording]:
    """The recordings by id."""
    return {record.id: record for record in recordings(wire_folder, "ollama")}


@pytest.fixture
def serve(records: dict[str, Recording]) -> Iterator[Serve]:
    """A function that gives a model whose server answers with recordings, cut into pieces in the named way."""
    cuts = {"now": "arrived"}

    def answer(exchange: Exchange) -> Raw:
        record = records[exchange.json["model"]]
        return Raw(record.pieces(cuts["now"]), record.content_type or "application/json", record.status)

    with OllamaServer(answer, strict=False) as server:

        def model(cut: str) -> ChatOllama:
            cuts["now"] = cut
            return ChatOllama(model="recorded", base_url=server.url, max_retries=0)

        yield model


def streamed(records: dict[str, Recording]) -> list[Recording]:
    """The streams that end well."""
    return [record for record in records.values() if record.streamed and not record.failed]


def whole(records: dict[str, Recording]) -> list[Recording]:
    """The whole bodies that are no errors."""
    return [record for record in records.values() if not record.streamed and not record.failed]


def asking(model: ChatOllama, record: Recording) -> Any:
    """The model asking for the record, with the tools that it was asked with then."""
    return model.bind(model=record.id, **({"tools": record.tools} if record.tools else {}))


def summed(chunks: list[Any]) -> AIMessage:
    """The message that chunks sum to, as any user of LangChain makes it."""
    return message_chunk_to_message(reduce(add, chunks))  # type: ignore[return-value]


def also(record: Recording, message: AIMessage) -> dict[str, tuple[Any, Any]]:
    """What beside text and calls a message says otherwise than the record: thinking, reason, model, counts, durations."""
    expected, usage, metadata = record.expected, message.usage_metadata, message.response_metadata
    counts = expected["usage_norm"]
    pairs = {
        "reasoning": (message.additional_kwargs.get("reasoning_content", ""), expected["reasoning"]),
        "finish_reason": (metadata.get("finish_reason"), expected["finish_reason"]),
        "model": (metadata.get("model_name"), expected["model"]),
        "usage": (usage and (usage["input_tokens"], usage["output_tokens"]), counts and (counts["input"], counts["output"])),
        "durations": (
            {key: metadata[key] for key in DURATIONS if key in metadata},
            {key: value for key, value in (expected["usage"] or {}).items() if key in DURATIONS},
        ),
    }
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def differing(records: list[Recording], message_of: Callable[[Recording], AIMessage]) -> dict[str, Any]:
    """The records whose message differs, and how."""
    messages = {record.id: (record, message_of(record)) for record in records}
    return {
        name: told
        for name, (record, message) in messages.items()
        if (told := [*differences(record, message), *also(record, message).items()])
    }


@pytest.mark.parametrize("cut", ["arrived", "seven", "random", pytest.param("one", marks=pytest.mark.exhaustive)])
def test_streams_are_read_exactly(records: dict[str, Recording], serve: Serve, cut: str) -> None:
    """Every recorded stream gives its text, thinking, calls, counts and durations, however its bytes are cut."""
    model, chosen = serve(cut), streamed(records)
    assert len(chosen) == 14
    assert differing(chosen, lambda record: summed(list(asking(model, record).stream("x")))) == {}


async def test_streams_are_read_exactly_asynchronously(records: dict[str, Recording], serve: Serve) -> None:
    """The asynchronous stream reads the same."""
    model = serve("random")
    messages = {record.id: summed([chunk async for chunk in asking(model, record).astream("x")]) for record in streamed(records)}
    assert differing(streamed(records), lambda record: messages[record.id]) == {}


def test_whole_bodies_are_read_exactly(records: dict[str, Recording], serve: Serve) -> None:
    """Every recorded whole body gives the same through `invoke`, and where a stream was asked for."""
    model, chosen = serve("arrived"), whole(records)
    assert len(chosen) == 12
    assert differing(chosen, lambda record: asking(model, record).invoke("x")) == {}
    assert differing(chosen, lambda record: summed(list(asking(model, record).stream("x")))) == {}


async def test_whole_bodies_are_read_exactly_asynchronously(records: dict[str, Recording], serve: Serve) -> None:
    """`ainvoke` reads the same."""
    model, chosen = serve("random"), whole(records)
    messages = {record.id: await asking(model, record).ainvoke("x") for record in chosen}
    assert differing(chosen, lambda record: messages[record.id]) == {}


def test_errors_are_typed(records: dict[str, Recording], serve: Serve) -> None:
    """A recorded error is raised as the vendor SDK's error and as LangChain's, with the server's words and status."""
    model = serve("arrived")
    [record] = [record for record in records.values() if record.failed]
    for ask in (lambda model: model.invoke("x"), lambda model: list(model.stream("x"))):
        with pytest.raises(ModelError) as raised:
            ask(asking(model, record))
        assert isinstance(raised.value, ollama.ResponseError) and isinstance(raised.value, ModelNotFoundError)
        assert (raised.value.status_code, raised.value.error) == (404, record.expected["error"]["message"])


def test_replies_go_back_as_they_came(records: dict[str, Recording], serve: Serve) -> None:
    """Each recorded whole reply, sent back to its model, has its text, thinking (with calls) and calls unchanged; other models get no
    thinking."""
    model = serve("arrived")
    for record in whole(records):
        message = asking(model, record).invoke("x")
        results = [ToolMessage("r", tool_call_id=call.id) for call in calls_of(message)]
        history = [HumanMessage("q"), message, *results, HumanMessage("?")]
        origin = message.response_metadata.get("autotools", {}).get("origin", "home")
        came = record.body_json["message"]
        sent = sent_back(OllamaMapper(origin=origin), history)
        calls = came.get("tool_calls") or []
        assert (sent["role"], sent["content"]) == (came["role"], came["content"])
        assert [call["function"]["arguments"] for call in sent.get("tool_calls", [])] == [call["function"]["arguments"] for call in calls]
        for position, (call, was) in enumerate(zip(sent.get("tool_calls", []), calls, strict=True)):
            assert (call["function"]["name"], call["function"]["index"]) == (
                was["function"]["name"],
                was["function"].get("index", position),
            )
            assert call["id"] == was.get("id", call["id"])
        assert sent.get("thinking") == (came.get("thinking") if calls else None)
        assert "thinking" not in sent_back(OllamaMapper(origin="elsewhere"), history)


def sent_back(mapper: OllamaMapper, history: list[Any]) -> dict[str, Any]:
    """The assistant's message in a request."""
    messages = json.loads(mapper.encode_request(history, {"model": "any"}))["messages"]
    return next(message for message in messages if message["role"] == "assistant")
