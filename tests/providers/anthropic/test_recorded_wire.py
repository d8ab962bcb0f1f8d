"""Recorded replies of the Messages API, served again over HTTP: text, thinking, signatures, calls and token counts come out exactly.

Each request carries its recording's id as the model name; the server answers with that recording's bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import anthropic
import pytest
from langchain_core.exceptions import ModelError
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, message_chunk_to_message

from langchain_autotools import ChatAnthropic
from langchain_autotools.messages import calls_of
from langchain_autotools.providers.anthropic.mapper import MessagesMapper
from tests.support.anthropic_server import AnthropicServer
from tests.support.http_server import Exchange
from tests.support.recorded import Recording, recordings
from tests.support.script import Raw

Serve = Callable[[str], ChatAnthropic]
NO_RUN = {"max_tokens", "refusal"}


@pytest.fixture(scope="module")
def records(wire_folder: Path) -> dict[str, Recording]:
    """The recordings by id."""
    return {record.id: record for record in recordings(wire_folder, "anthropic")}


@pytest.fixture
def serve(records: dict[str, Recording]) -> Iterator[Serve]:
    """A function that gives a model whose server answers with recordings, cut into pieces in the named way."""
    cuts = {"now": "arrived"}

    def answer(exchange: Exchange) -> Raw:
        record = records[exchange.json["model"]]
        return Raw(record.pieces(cuts["now"]), record.content_type, record.status)

    with AnthropicServer(answer, strict=False) as server:

        def model(cut: str) -> ChatAnthropic:
            cuts["now"] = cut
            return ChatAnthropic(model="recorded", base_url=server.url, api_key="k", max_retries=0)

        yield model


def streamed(records: dict[str, Recording]) -> list[Recording]:
    """The streams that end well."""
    return [record for record in records.values() if record.streamed and not record.failed]


def whole(records: dict[str, Recording]) -> list[Recording]:
    """The whole bodies that are no errors."""
    return [record for record in records.values() if not record.streamed and not record.failed]


def asking(model: ChatAnthropic, record: Recording) -> Any:
    """The model asking for the record, with what it was asked then: tools, and thinking."""
    asked = {key: record.request[key] for key in ("tools", "thinking") if record.request.get(key)}
    return model.bind(model=record.id, **asked)


def summed(chunks: list[Any]) -> AIMessage:
    """The message that chunks sum to, as any user of LangChain makes it."""
    return message_chunk_to_message(reduce(add, chunks))  # type: ignore[return-value]


def found(message: AIMessage) -> dict[str, Any]:
    """What a message says, in the recordings' terms."""
    blocks = [block for block in message.content if isinstance(block, dict)]
    usage = message.usage_metadata
    assert usage is not None
    return {
        "text": message.text,
        "reasoning": "".join(block["thinking"] for block in blocks if block["type"] == "thinking"),
        "signatures": sum(1 for block in blocks if block.get("signature") or block["type"] == "redacted_thinking"),
        "calls": [(call.id, call.name, call.args) for call in calls_of(message)],
        "server": [block["type"] for block in blocks if block["type"] not in {"text", "thinking", "redacted_thinking", "tool_use"}],
        "finish_reason": message.response_metadata.get("finish_reason"),
        "model": message.response_metadata.get("model_name"),
        "id": message.id,
        "usage": (usage["input_tokens"], usage["output_tokens"], usage["input_token_details"].get("cache_read")),
    }


def wanted(record: Recording) -> dict[str, Any]:
    """What the recording's own decoder read. Input tokens count those of the cache too, as LangChain has it."""
    expected = record.expected
    usage, counts = expected["usage_norm"], expected["usage"]
    cached = sum(counts.get(key) or 0 for key in ("cache_read_input_tokens", "cache_creation_input_tokens"))
    runs = expected["finish_reason"] not in NO_RUN
    return {
        **{key: expected[key] or "" for key in ("text", "reasoning")},
        **{key: expected[key] for key in ("signatures", "finish_reason", "model")},
        "calls": [(call["id"], call["name"], call["args"] if call["args_ok"] and runs else None) for call in expected["tool_calls"]],
        "server": [kind.split(":")[0] for kind in expected["server_tools"]],
        "id": expected["response_id"],
        "usage": ((usage["input"] or 0) + cached, usage["output"], usage["cached"]),
    }


def differing(records: list[Recording], message_of: Callable[[Recording], AIMessage]) -> dict[str, Any]:
    """The records whose message differs, and how."""
    wrong: dict[str, Any] = {}
    for record in records:
        got, want = found(message_of(record)), wanted(record)
        unequal = {key: (got[key], want[key]) for key in want if got[key] != want[key]}
        if unequal:
            wrong[record.id] = unequal
    return wrong


@pytest.mark.parametrize("cut", ["arrived", "seven", "random", pytest.param("one", marks=pytest.mark.exhaustive)])
def test_streams_are_read_exactly(records: dict[str, Recording], serve: Serve, cut: str) -> None:
    """Every recorded stream gives its text, thinking, signatures, calls and counts, however its bytes are cut."""
    model = serve(cut)
    chosen = streamed(records)
    assert len(chosen) > 140
    assert differing(chosen, lambda record: summed(list(asking(model, record).stream("x")))) == {}


async def test_streams_are_read_exactly_asynchronously(records: dict[str, Recording], serve: Serve) -> None:
    """The asynchronous stream reads the same."""
    model = serve("random")
    messages = {}
    for record in streamed(records):
        messages[record.id] = summed([chunk async for chunk in asking(model, record).astream("x")])
    assert differing(streamed(records), lambda record: messages[record.id]) == {}


def test_whole_bodies_are_read_exactly(records: dict[str, Recording], serve: Serve) -> None:
    """Every recorded whole body gives the same through `invoke`, and where a stream was asked for."""
    model = serve("arrived")
    chosen = whole(records)
    assert len(chosen) > 290
    assert differing(chosen, lambda record: asking(model, record).invoke("x")) == {}
    assert differing(chosen[::5], lambda record: summed(list(asking(model, record).stream("x")))) == {}


async def test_whole_bodies_are_read_exactly_asynchronously(records: dict[str, Recording], serve: Serve) -> None:
    """`ainvoke` reads the same."""
    model, chosen = serve("random"), whole(records)[::3]
    messages = {record.id: await asking(model, record).ainvoke("x") for record in chosen}
    assert differing(chosen, lambda record: messages[record.id]) == {}


def test_errors_are_typed(records: dict[str, Recording], serve: Serve) -> None:
    """A recorded error is raised as the vendor SDK's error and as LangChain's, with the server's words and status."""
    model = serve("arrived")
    failed = [record for record in records.values() if record.failed]
    assert len(failed) >= 10
    for record in failed:
        for ask in (lambda model: model.invoke("x"), lambda model: list(model.stream("x"))):
            with pytest.raises(ModelError) as raised:
                ask(asking(model, record))
            assert isinstance(raised.value, anthropic.APIStatusError)
            assert (raised.value.status_code, raised.value.type) == (record.status, record.expected["error"]["type"])
            assert record.expected["error"]["message"] in str(raised.value), record.id


def test_replies_go_back_as_they_came(records: dict[str, Recording], serve: Serve) -> None:
    """Each recorded whole reply, sent back to its model, has its thinking, server tools and calls unchanged and in order; other
    models get its text and calls alone."""
    model = serve("arrived")
    for record in whole(records):
        message = asking(model, record).invoke("x")
        results = [ToolMessage("r", tool_call_id=call.id) for call in calls_of(message)]
        history = [HumanMessage("q"), message, *results, HumanMessage("?")]
        origin = message.response_metadata.get("autotools", {}).get("origin", "home")
        sent = sent_back(MessagesMapper(origin=origin), history)
        came = [part for part in record.body_json["content"] if part["type"] != "text" or part["text"].strip()]
        assert sent == [without_nulls(part) for part in came], record.id
        abroad = sent_back(MessagesMapper(origin="elsewhere"), history)
        assert {part["type"] for part in abroad} <= {"text", "tool_use"}, record.id


def sent_back(mapper: MessagesMapper, history: list[Any]) -> list[Any]:
    """The assistant's blocks in a request, without what the vendor leaves out as well."""
    messages = json.loads(mapper.encode_request(history, {"model": "any"}))["messages"]
    return [without_nulls(part) for message in messages if message["role"] == "assistant" for part in message["content"]]


def without_nulls(part: dict[str, Any]) -> dict[str, Any]:
    """A block without keys that say nothing, and without the citations that text may lose."""
    return {key: value for key, value in part.items() if value is not None and not (key == "citations" and not value)}
