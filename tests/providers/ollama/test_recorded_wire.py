"""Recorded replies of /api/chat, served again over HTTP: text, thinking, calls and token counts come out exactly."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import ollama
import pytest
from langchain_core.exceptions import ModelError, ModelNotFoundError
from langchain_core.messages import AIMessage

from langchain_autotools import ChatOllama
from langchain_autotools.providers._encode.encoder import message_origin
from langchain_autotools.providers.ollama.mapper import OllamaMapper
from tests.support.ollama_server import OllamaServer
from tests.support.recorded import Recording, differences
from tests.support.recorded_suite import RecordedSuite, Records, Serve, failed, followed, whole
from tests.support.scripted_server import Script

DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


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


class TestOllama(RecordedSuite):
    wire = "ollama"
    least: ClassVar[tuple[int, int]] = (14, 12)

    def server(self, script: Script) -> OllamaServer:
        """A server that takes any request."""
        return OllamaServer(script, strict=False)

    def model(self, url: str) -> ChatOllama:
        """A model that asks the server."""
        return ChatOllama(model="recorded", base_url=url, max_retries=0)

    def asking(self, model: Any, name: str, record: Recording) -> Any:
        """The model asking for the record, with the tools that it was asked with then."""
        return model.bind(model=name, **({"tools": record.tools} if record.tools else {}))

    def told(self, record: Recording, message: AIMessage) -> Any:
        """What a message says otherwise than the record."""
        return [*differences(record, message), *also(record, message).items()]

    def test_errors_are_typed(self, every: Records, serve: Serve) -> None:
        """A recorded error is raised as the vendor SDK's error and as LangChain's, with the server's words and status."""
        model = serve("arrived")
        [(name, record)] = failed(every).items()
        for ask in (lambda model: model.invoke("x"), lambda model: list(model.stream("x"))):
            with pytest.raises(ModelError) as raised:
                ask(self.asking(model, name, record))
            assert isinstance(raised.value, ollama.ResponseError) and isinstance(raised.value, ModelNotFoundError)
            assert (raised.value.status_code, raised.value.error) == (404, record.expected["error"]["message"])

    def test_replies_go_back_as_they_came(self, records: Records, serve: Serve) -> None:
        """Each recorded whole reply, sent back to its model, has its text, thinking (with calls) and calls unchanged; other models get no
        thinking."""
        model = serve("arrived")
        for name, record in whole(records).items():
            message = self.invoked(model, name, record)
            history, origin = followed(message), message_origin(message) or "home"
            came = record.body_json["message"]
            sent = sent_back(OllamaMapper(origin=origin), history)
            calls = came.get("tool_calls") or []
            assert (sent["role"], sent["content"]) == (came["role"], came["content"])
            for position, (call, was) in enumerate(zip(sent.get("tool_calls", []), calls, strict=True)):
                assert call["function"] == {"index": position, **was["function"]}
                assert call["id"] == was.get("id", call["id"])
            assert sent.get("thinking") == (came.get("thinking") if calls else None)
            assert "thinking" not in sent_back(OllamaMapper(origin="elsewhere"), history)


def sent_back(mapper: OllamaMapper, history: list[Any]) -> dict[str, Any]:
    """The assistant's message in a request."""
    messages = json.loads(mapper.encode_request(history, {"model": "any"}))["messages"]
    return next(message for message in messages if message["role"] == "assistant")
