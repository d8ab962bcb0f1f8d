"""Recorded replies of Google's two APIs, served again over HTTP: text, thoughts, signatures, calls and token counts come out exactly.

Each request carries its recording's number as the model name; the server answers with that recording's bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import pytest
from google.genai.errors import APIError
from langchain_core.exceptions import ModelError
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, message_chunk_to_message

from langchain_autotools import ChatGoogleGenerativeAI
from langchain_autotools.messages import calls_of
from langchain_autotools.providers.google.encode import Home
from langchain_autotools.providers.google.mapper import GenerateContentMapper
from tests.support.google_server import GoogleServer
from tests.support.http_server import Exchange
from tests.support.recorded import Recording, recordings
from tests.support.script import Raw

Serve = Callable[[str], ChatGoogleGenerativeAI]
REASONS = {1: "STOP", "PROMPT_BLOCKED:MODEL_ARMOR": "PROMPT_BLOCKED", None: "incomplete"}
SERVER_PARTS = {"executable_code": "executableCode", "code_execution_result": "codeExecutionResult"}


@pytest.fixture(scope="module")
def records(wire_folder: Path) -> dict[str, Recording]:
    """The recordings by number."""
    return {f"r{number}": record for number, record in enumerate(recordings(wire_folder, "google"))}


@pytest.fixture
def serve(records: dict[str, Recording]) -> Iterator[Serve]:
    """A function that gives a model whose server answers with recordings, cut into pieces in the named way."""
    cuts = {"now": "arrived"}

    def answer(exchange: Exchange) -> Raw:
        record = records[exchange.path.rpartition("/")[2].partition(":")[0]]
        return Raw(record.pieces(cuts["now"]), record.content_type, record.status)

    with GoogleServer(answer, strict=False) as server:

        def model(cut: str) -> ChatGoogleGenerativeAI:
            cuts["now"] = cut
            return ChatGoogleGenerativeAI(model="recorded", base_url=server.url, api_key="k", max_retries=0)

        yield model


def streamed(records: dict[str, Recording]) -> dict[str, Recording]:
    """The streams that end well."""
    return {name: record for name, record in records.items() if record.streamed and not record.failed}


def whole(records: dict[str, Recording]) -> dict[str, Recording]:
    """The whole bodies that are no errors."""
    return {name: record for name, record in records.items() if not record.streamed and not record.failed}


def asking(model: ChatGoogleGenerativeAI, name: str, record: Recording) -> Any:
    """The model asking for the record, with the tools that it was given then."""
    tools = [declared for tool in record.request.get("tools") or () for declared in tool.get("functionDeclarations") or ()]
    return model.bind_tools([{"name": tool["name"], "parametersJsonSchema": {"type": "object"}} for tool in tools], model=name)


def summed(chunks: list[Any]) -> AIMessage:
    """The message that chunks sum to, as any user of LangChain makes it."""
    return message_chunk_to_message(reduce(add, chunks))  # type: ignore[return-value]


def signature_of(block: dict[str, Any]) -> Any:
    """The signature of a content block."""
    return block.get("signature") or (block.get("extras") or {}).get("signature") or (block.get("part") or {}).get("thoughtSignature")


def found(message: AIMessage) -> dict[str, Any]:
    """What a message says, in the recordings' terms."""
    blocks = [block for block in message.content if isinstance(block, dict)]
    calls = calls_of(message)
    usage = message.usage_metadata
    signed = [*map(signature_of, blocks), *((call.extra.get("part") or {}).get("thoughtSignature") for call in calls)]
    return {
        "text": message.text,
        "reasoning": "".join(block["thinking"] for block in blocks if block["type"] == "thinking"),
        "signatures": len([signature for signature in signed if signature]),
        "calls": [(call.name, call.args) for call in calls],
        "raw": [json.loads(call.arguments) for call in calls],
        "ids": [(call.extra.get("call") or {}).get("id") for call in calls],
        "server": [SERVER_PARTS[block["type"]] for block in blocks if block["type"] in SERVER_PARTS],
        "finish_reason": message.response_metadata.get("finish_reason"),
        "model": message.response_metadata.get("model_name"),
        "id": message.id,
        "usage": usage and (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"], reasoning_tokens(usage)),
    }


def reasoning_tokens(usage: Any) -> int | None:
    """The tokens of thoughts."""
    return usage["output_token_details"].get("reasoning")  # type: ignore[no-any-return]


def wanted(record: Recording, message: AIMessage) -> dict[str, Any]:
    """What the recording's own decoder read. As LangChain counts, input includes what server tools added, output the thoughts."""
    expected = record.expected
    usage, counts = expected["usage_norm"], expected["usage"]
    runs = expected["finish_reason"] in {"STOP", 1}
    put = (usage["input"] or 0) + (counts.get("toolUsePromptTokenCount") or 0)
    out = (usage["output"] or 0) + (usage["reasoning"] or 0)
    return {
        **{key: expected[key] or "" for key in ("text", "reasoning")},
        **{key: expected[key] for key in ("signatures", "model")},
        "calls": [(call["name"], call["args"] if call["args_ok"] and runs else None) for call in expected["tool_calls"]],
        "raw": [call["args"] for call in expected["tool_calls"]],
        "ids": [call["id"] for call in expected["tool_calls"]],
        "server": expected["server_tools"],
        "finish_reason": REASONS.get(expected["finish_reason"], expected["finish_reason"]),
        "id": expected["response_id"] or message.id,
        "usage": (put, out, usage["total"], usage["reasoning"]) if usage["total"] is not None else None,
    }


def differing(records: dict[str, Recording], message_of: Callable[[str, Recording], AIMessage]) -> dict[str, Any]:
    """The records whose message differs, and how."""
    wrong: dict[str, Any] = {}
    for name, record in records.items():
        message = message_of(name, record)
        got, want = found(message), wanted(record, message)
        unequal = {key: (got[key], want[key]) for key in want if got[key] != want[key]}
        if unequal:
            wrong[record.id] = unequal
    return wrong


@pytest.mark.parametrize("cut", ["arrived", "seven", "random", pytest.param("one", marks=pytest.mark.exhaustive)])
def test_streams_are_read_exactly(records: dict[str, Recording], serve: Serve, cut: str) -> None:
    """Every recorded stream, a JSON array among them, gives its text, thoughts, signatures, calls and counts, however it is cut."""
    model, chosen = serve(cut), streamed(records)
    assert len(chosen) > 60
    assert differing(chosen, lambda name, record: summed(list(asking(model, name, record).stream("x")))) == {}


async def test_streams_are_read_exactly_asynchronously(records: dict[str, Recording], serve: Serve) -> None:
    """The asynchronous stream reads the same."""
    model, messages = serve("random"), {}
    for name, record in streamed(records).items():
        messages[name] = summed([chunk async for chunk in asking(model, name, record).astream("x")])
    assert differing(streamed(records), lambda name, record: messages[name]) == {}


def test_whole_bodies_are_read_exactly(records: dict[str, Recording], serve: Serve) -> None:
    """Every recorded whole body gives the same through `invoke`, and where a stream was asked for."""
    model, chosen = serve("arrived"), whole(records)
    assert len(chosen) > 200
    assert differing(chosen, lambda name, record: asking(model, name, record).invoke("x")) == {}
    assert differing(chosen, lambda name, record: summed(list(asking(model, name, record).stream("x")))) == {}


async def test_whole_bodies_are_read_exactly_asynchronously(records: dict[str, Recording], serve: Serve) -> None:
    """`ainvoke` reads the same."""
    model, chosen = serve("random"), dict(list(whole(records).items())[::3])
    messages = {name: await asking(model, name, record).ainvoke("x") for name, record in chosen.items()}
    assert differing(chosen, lambda name, record: messages[name]) == {}


def test_errors_are_typed(records: dict[str, Recording], serve: Serve) -> None:
    """A recorded error is raised as the vendor SDK's error and as LangChain's, with the server's words and status."""
    model = serve("arrived")
    failed = {name: record for name, record in records.items() if record.failed}
    assert len(failed) >= 5
    for name, record in failed.items():
        for ask in (lambda model: model.invoke("x"), lambda model: list(model.stream("x"))):
            with pytest.raises(ModelError) as raised:
                ask(asking(model, name, record))
            error = raised.value
            assert isinstance(error, APIError)
            assert (error.code, error.status) == (record.status, record.expected["error"]["status"])
            assert error.message == record.expected["error"]["message"]
            assert record.expected["error"]["message"] in str(error)


def test_replies_go_back_as_they_came(records: dict[str, Recording], serve: Serve) -> None:
    """Each recorded whole reply, sent back to its model, has its parts unchanged and in order, signatures and ids included; other
    models get its text and calls alone, and the word that stands for a signature."""
    model = serve("arrived")
    for name, record in whole(records).items():
        message = asking(model, name, record).invoke("x")
        results = [ToolMessage("r", tool_call_id=call.id) for call in calls_of(message)]
        history = [HumanMessage("q"), message, *results, HumanMessage("?")]
        origin = message.response_metadata.get("autotools", {}).get("origin", "home")
        newer = "gemini-3" in str(record.expected["model"])
        candidate = (record.body_json.get("candidates") or [{}])[0]
        came = [part for part in candidate.get("content", {}).get("parts") or () if part != {"text": ""}]
        assert sent_back(GenerateContentMapper(Home(origin, signs=newer)), history) == list(map(normal, came)), record.id
        abroad = sent_back(GenerateContentMapper(Home("elsewhere")), history)
        assert not any(part.get("thoughtSignature", "skip")[:4] != "skip" or part.get("thought") for part in abroad)
        assert [part["functionCall"].keys() for part in abroad if "functionCall" in part] == [{"name", "args"}] * len(calls_of(message))


def sent_back(mapper: GenerateContentMapper, history: list[Any]) -> list[Any]:
    """The model's parts in a request."""
    contents = json.loads(mapper.encode_request(history, {}))["contents"]
    return [normal(part) for content in contents if content["role"] == "model" for part in content["parts"]]


def normal(part: dict[str, Any]) -> dict[str, Any]:
    """A part without what says nothing: no arguments, `thought: false`."""
    call = part.get("functionCall")
    said = {key: value for key, value in part.items() if value is not None and not (key == "thought" and not value)}
    return {**said, "functionCall": {"args": {}, **{key: value for key, value in call.items() if value}}} if call else said
