"""Recorded replies of the presets' own vendors, read through their classes: text, calls, reasoning and usage come out exactly."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import openai
import pytest
from langchain_core.exceptions import ModelError
from langchain_core.messages import AIMessage, message_chunk_to_message

from tests.support.http_server import Exchange
from tests.support.openai_server import OpenAIServer
from tests.support.recorded import Recording, differences, one_of_each, recordings, styles
from tests.support.script import Raw
from tests.support.vendors import VENDORS, Vendor

SERVERS = {"mistralai": "mistral"}
"""Names of servers in the recordings, where they are not the vendor's."""
REASONING = ("reasoning_content", "reasoning", "thinking_part")
RECORDED = [vendor for vendor in VENDORS if vendor.name not in ("cohere", "fireworks")]
"""The vendors of which there are recordings."""


@pytest.fixture(params=RECORDED, ids=[vendor.name for vendor in RECORDED])
def vendor(request: pytest.FixtureRequest) -> Vendor:
    """Each vendor with recordings."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def records(vendor: Vendor, wire_folder: Path) -> dict[str, Recording]:
    """The vendor's recordings, by id."""
    name = SERVERS.get(vendor.name, vendor.name)
    return {record.id: record for record in recordings(wire_folder, "openai-chat") if record.server == name}


@pytest.fixture
def model(vendor: Vendor, records: dict[str, Recording]) -> Iterator[Any]:
    """The vendor's class on a server that answers with the recording that the request's model names."""

    def reply(exchange: Exchange) -> Raw:
        record = records[exchange.json["model"]]
        cut = "seven" if record.streamed else "arrived"
        return Raw(record.pieces(cut), content_type=record.content_type, status=record.status)

    with OpenAIServer(reply, rules=None) as server:
        yield vendor.chat_model(model="any", base_url=server.url, api_key="key", max_retries=0, stream_usage=True)


def ask(model: Any, record: Recording) -> AIMessage:
    """The recording as a message, streamed where it was."""
    bound = model.bind(model=record.id)
    if record.tools:
        bound = bound.bind(tools=record.tools)
    if not record.streamed:
        return bound.invoke("x")  # type: ignore[no-any-return]
    return message_chunk_to_message(reduce(add, bound.stream("x")))  # type: ignore[return-value]


@pytest.mark.parametrize("amount", ["some", pytest.param("all", marks=pytest.mark.exhaustive)])
def test_recordings_are_read_exactly(vendor: Vendor, records: dict[str, Recording], model: Any, amount: str) -> None:
    """A reply of the vendor gives its text, calls, reasoning and token counts, and says who sent it: one of each style, or every one."""
    found: dict[str, Any] = {}
    for record in records.values() if amount == "all" else one_of_each(records.values(), styles):
        if record.failed:
            continue
        message = ask(model, record)
        told = differences(record, message)
        usage, counts = message.usage_metadata, record.expected["usage_norm"] or {}
        if (
            usage
            and counts.get("output") is not None
            and (usage["input_tokens"], usage["output_tokens"]) != (counts["input"], counts["output"])
        ):
            told.append(f"usage: {usage} instead of {counts}")
        reasoning = next((message.additional_kwargs[key] for key in REASONING if key in message.additional_kwargs), "")
        if reasoning != (record.expected["reasoning"] or ""):
            told.append(f"reasoning: {reasoning!r} instead of {record.expected['reasoning']!r}")
        if message.response_metadata["model_provider"] != vendor.name:
            told.append(str(message.response_metadata))
        if told:
            found[record.id] = told
    assert found == {}


def test_recorded_errors_are_typed(records: dict[str, Recording], model: Any) -> None:
    """Every error of the vendor is raised as the SDK's and LangChain's, in its words."""
    for record in records.values():
        if record.failed and record.expected["error"]["code"] != "tool_use_failed":
            with pytest.raises(ModelError) as raised:
                ask(model, record)
            assert isinstance(raised.value, openai.APIError)
            assert record.expected["error"]["message"][:40] in str(raised.value)


def test_groqs_recorded_failure_of_a_call(wire_folder: Path) -> None:
    """The recorded `tool_use_failed` is a turn with a call that must not run, and the vendor's reason."""
    records = [one for one in recordings(wire_folder, "openai-chat") if one.server == "groq" and one.status == 400]
    [record] = [one for one in records if b"failed_generation" in one.body]
    groq = next(vendor for vendor in VENDORS if vendor.name == "groq").chat_model
    with OpenAIServer(lambda exchange: Raw([record.body], record.content_type, 400, framing="length"), rules=None) as server:
        model = groq(model="any", base_url=server.url, api_key="key", max_retries=0)
        [call] = model.invoke("x", tools=record.tools).invalid_tool_calls
        assert (call["name"], call["args"]) == ("get_something_by_name", '{"foo": "bar"}')
        assert "did not match schema" in call["error"]
        with pytest.raises(ModelError, match="did not match schema"):
            model.invoke("x")
