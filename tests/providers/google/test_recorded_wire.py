"""Recorded replies of Google's two APIs, served again over HTTP: text, thoughts, signatures, calls and token counts come out exactly.

A JSON array in place of an event stream is among them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest
from google.genai.errors import APIError
from langchain_core.exceptions import ModelError
from langchain_core.messages import AIMessage

from langchain_autotools import ChatGoogleGenerativeAI
from langchain_autotools.messages.calls import calls_of
from langchain_autotools.providers._encode.encoder import message_origin
from langchain_autotools.providers.google.mapper import GenerateContentMapper
from tests.support.google_server import GoogleServer
from tests.support.http_server import Exchange
from tests.support.recorded import Recording, recordings
from tests.support.recorded_suite import RecordedSuite, Records, Serve, failed, followed, unequal, whole
from tests.support.scripted_server import Script

REASONS = {1: "STOP", "PROMPT_BLOCKED:MODEL_ARMOR": "PROMPT_BLOCKED", None: "incomplete"}
SERVER_PARTS = {"executable_code": "executableCode", "code_execution_result": "codeExecutionResult"}


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
        "id": message.response_metadata.get("id") or message.id,
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


class TestGoogle(RecordedSuite):
    wire = "google"
    least: ClassVar[tuple[int, int]] = (61, 201)

    @pytest.fixture
    def every(self, wire_folder: Path) -> Records:
        """The recordings by number: their ids cannot be in a path."""
        return {f"r{number}": record for number, record in enumerate(recordings(wire_folder, self.wire))}

    def server(self, script: Script) -> GoogleServer:
        """A server that takes any request."""
        return GoogleServer(script, strict=False)

    def model(self, url: str) -> ChatGoogleGenerativeAI:
        """A model that asks the server."""
        return ChatGoogleGenerativeAI(model="recorded", base_url=url, api_key="k", max_retries=0)

    def named(self, exchange: Exchange) -> str:
        """The name of the recording that a request asks for, which is in its path."""
        return exchange.path.rpartition("/")[2].partition(":")[0]

    def asking(self, model: Any, name: str, record: Recording) -> Any:
        """The model asking for the record, with the tools that it was given then."""
        tools = [declared for tool in record.request.get("tools") or () for declared in tool.get("functionDeclarations") or ()]
        return model.bind_tools([{"name": tool["name"], "parametersJsonSchema": {"type": "object"}} for tool in tools], model=name)

    def told(self, record: Recording, message: AIMessage) -> Any:
        """What a message says otherwise than the record."""
        return unequal(found(message), wanted(record, message))

    def test_errors_are_typed(self, every: Records, serve: Serve) -> None:
        """A recorded error is raised as the vendor SDK's error and as LangChain's, with the server's words and status."""
        model = serve("arrived")
        assert len(failed(every)) >= 5
        for name, record in failed(every).items():
            for ask in (lambda model: model.invoke("x"), lambda model: list(model.stream("x"))):
                with pytest.raises(ModelError) as raised:
                    ask(self.asking(model, name, record))
                error = raised.value
                assert isinstance(error, APIError)
                assert (error.code, error.status) == (record.status, record.expected["error"]["status"])
                assert error.message == record.expected["error"]["message"]
                assert record.expected["error"]["message"] in str(error)

    def test_replies_go_back_as_they_came(self, records: Records, serve: Serve) -> None:
        """Each recorded whole reply, sent back to its model, has its parts unchanged and in order, signatures and ids included; other
        models get its text and calls alone, and the word that stands for a signature."""
        model = serve("arrived")
        for name, record in whole(records).items():
            message = self.invoked(model, name, record)
            history, origin = followed(message), message_origin(message) or "home"
            newer = "gemini-3" in str(record.expected["model"])
            candidate = (record.body_json.get("candidates") or [{}])[0]
            came = [part for part in candidate.get("content", {}).get("parts") or () if part != {"text": ""}]
            assert sent_back(GenerateContentMapper(origin=origin, older=not newer), history) == list(map(normal, came)), record.id
            abroad = sent_back(GenerateContentMapper(origin="elsewhere"), history)
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
