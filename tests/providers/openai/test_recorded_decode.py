"""Recorded replies of real servers, read by the mapper and put together by the accumulator: every one comes out as it was meant."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.exceptions import ModelError
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.messages.ai import add_ai_message_chunks

from langchain_autotools.messages.calls import calls_of
from langchain_autotools.providers.openai.decode import REASONING_KEYS, ChatCompletionsDecoder
from langchain_autotools.providers.openai.mapper import THINKING_PART, ChatCompletionsMapper
from langchain_autotools.turn.accumulator import TurnAccumulator
from langchain_autotools.turn.stored_messages import canonical_message
from tests.support.recorded import Recording, recordings
from tests.support.strict import Rules
from tests.support.strict_openai import check_request

MAPPER = ChatCompletionsMapper(origin="home")
ENDS = {"length", "content_filter"}


@pytest.fixture(scope="module")
def records(wire_folder: Path) -> tuple[Recording, ...]:
    """The recordings of this wire that have one right answer."""
    return recordings(wire_folder, "openai-chat")


def raw_chunks(record: Recording) -> Iterator[AIMessageChunk]:
    """The reply as raw chunks."""
    choices = record.request.get("n") or 1
    decoder = ChatCompletionsDecoder(origin="home", choices=choices)
    if not record.streamed:
        yield decoder.decode_body(json.loads(record.body))
        return
    for line in record.body.decode().splitlines():
        if not line.startswith("data:"):
            continue
        data = line[5:].strip()
        if data == "[DONE]":
            decoder.done()
        else:
            chunk = decoder.feed(json.loads(data))
            if chunk is not None:
                yield chunk
    yield decoder.finish()


def message_of(record: Recording) -> AIMessage:
    """The reply as the stored message of its turn."""
    names = [tool["function"]["name"] for tool in record.tools]
    accumulator = TurnAccumulator(declared=names, new_id=lambda position: f"ours_{position}")
    left = [chunk for chunk in map(accumulator.feed, raw_chunks(record)) if chunk is not None]
    return canonical_message(add_ai_message_chunks(*left, accumulator.finish()) if left else accumulator.finish(), stored=True)


def facts(message: AIMessage) -> dict[str, Any]:
    """What a message says, in the recordings' terms."""
    usage, extra = message.usage_metadata, message.additional_kwargs
    return {
        "text": message.content,
        "reasoning": next((extra[key] for key in (*REASONING_KEYS, THINKING_PART) if extra.get(key)), ""),
        "refusal": extra.get("refusal"),
        "finish_reason": message.response_metadata.get("finish_reason"),
        "model": message.response_metadata.get("model_name"),
        "response_id": message.response_metadata.get("id"),
        "usage": usage and (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]),
        "calls": [(call.name, call.args) for call in calls_of(message)],
    }


def wanted(record: Recording) -> dict[str, Any]:
    """What the recording's own decoder read."""
    expected, usage = record.expected, record.expected["usage_norm"]
    values = {key: expected[key] or "" for key in ("text", "reasoning")}
    values |= {key: expected[key] or None for key in ("refusal", "finish_reason", "model", "response_id")}
    values["usage"] = (usage["input"], usage["output"], usage["total"]) if usage else None
    values["calls"] = [(call["name"], _arguments(call, runs=values["finish_reason"] not in ENDS)) for call in expected["tool_calls"]]
    return values


def _arguments(call: Mapping[str, Any], *, runs: bool) -> Any:
    if call["kind"] == "custom":
        return {"__arg1": call["args_raw"]} if runs else None
    return call["args"] if call["args_ok"] and runs else None


def test_every_reply_comes_out_as_it_was_meant(records: tuple[Recording, ...]) -> None:
    """Text, reasoning, refusal, calls in order, usage, finish reason, model and id of every recorded reply, streamed and whole."""
    seen: Counter[str] = Counter()
    wrong = []
    for record in records:
        if record.failed:
            continue
        seen["streamed" if record.streamed else "whole"] += 1
        found, want = facts(message_of(record)), wanted(record)
        wrong += [(record.id, key, found[key], want[key]) for key in want if found[key] != want[key]]
    assert not wrong, f"{len(wrong)} differences: {wrong[:5]}"
    assert min(seen["streamed"], seen["whole"]) > 100


def test_details_of_usage_are_found(records: tuple[Recording, ...]) -> None:
    """Cached and reasoning tokens that a reply reports are in the usage details."""
    for record in records:
        usage = record.expected["usage_norm"]
        if not record.failed and usage:
            found = message_of(record).usage_metadata
            assert found is not None
            details = {**found["input_token_details"], **found["output_token_details"]}
            for key, name in (("cached", "cache_read"), ("reasoning", "reasoning")):
                assert usage[key] is None or details[name] == usage[key], record.id  # type: ignore[literal-required]


def test_every_recorded_error_is_raised(records: tuple[Recording, ...]) -> None:
    """A reply that is an error, or that breaks off with one, is raised as an error with its words."""
    for record in records:
        if record.failed:
            with pytest.raises(ModelError) as raised:
                list(raw_chunks(record))
            assert record.expected["error"]["message"] in str(raised.value), record.id


def test_every_reply_can_be_sent_back(records: tuple[Recording, ...]) -> None:
    """Each recorded reply, its calls answered, is a history that the strict server takes; its server gets its own ids again.

    Wire quirk R-07.
    """
    rules = Rules(message_keys=[*REASONING_KEYS, "reasoning_details"], call_keys=["extra_content"], longest_id=200)
    for record in records:
        if record.failed:
            continue
        message = message_of(record)
        results = [ToolMessage("r", tool_call_id=call.id) for call in calls_of(message)]
        history = [HumanMessage("q"), message, *results, HumanMessage("?")]
        check_request(ChatCompletionsMapper().encode_request(history, {"model": "any"}), Rules())
        sent = check_request(MAPPER.encode_request(history, {"model": "any"}), rules)["messages"][1]
        own = [call["id"] for call in record.expected["tool_calls"]]
        assert all(not had or call["id"] == had for call, had in zip(sent.get("tool_calls", ()), own, strict=True)), record.id
        _check_state(record, message, sent)


def _check_state(record: Recording, message: AIMessage, sent: Mapping[str, Any]) -> None:
    """Reasoning goes back under its own key, beside calls only."""
    keys = {key for key in (*REASONING_KEYS, "reasoning_details") if message.additional_kwargs.get(key)}
    found = {key for key in keys if sent.get(key) == message.additional_kwargs[key]}
    assert found == (keys if sent.get("tool_calls") else set()), record.id
