"""Recorded replies of the Messages API, served again over HTTP: text, thinking, signatures, calls and token counts come out exactly."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import anthropic
import pytest
from langchain_core.exceptions import ModelError
from langchain_core.messages import AIMessage

from langchain_autotools import ChatAnthropic
from langchain_autotools.messages.calls import calls_of
from langchain_autotools.providers._encode.encoder import message_origin
from langchain_autotools.providers.anthropic.mapper import MessagesMapper
from tests.support.anthropic_server import AnthropicServer
from tests.support.recorded import Recording
from tests.support.recorded_suite import RecordedSuite, Records, Serve, failed, followed, unequal, whole
from tests.support.scripted_server import Script

NO_RUN = {"max_tokens", "refusal"}


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
        "id": message.response_metadata.get("id"),
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


class TestAnthropic(RecordedSuite):
    wire = "anthropic"
    least: ClassVar[tuple[int, int]] = (141, 291)

    def server(self, script: Script) -> AnthropicServer:
        """A server that takes any request."""
        return AnthropicServer(script, strict=False)

    def model(self, url: str) -> ChatAnthropic:
        """A model that asks the server."""
        return ChatAnthropic(model="recorded", base_url=url, api_key="k", max_retries=0)

    def asking(self, model: Any, name: str, record: Recording) -> Any:
        """The model asking for the record, with what it was asked then: tools, and thinking."""
        asked = {key: record.request[key] for key in ("tools", "thinking") if record.request.get(key)}
        return model.bind(model=name, **asked)

    def told(self, record: Recording, message: AIMessage) -> Any:
        """What a message says otherwise than the record."""
        return unequal(found(message), wanted(record))

    def test_errors_are_typed(self, every: Records, serve: Serve) -> None:
        """A recorded error is raised as the vendor SDK's error and as LangChain's, with the server's words and status."""
        model = serve("arrived")
        assert len(failed(every)) >= 10
        for name, record in failed(every).items():
            for ask in (lambda model: model.invoke("x"), lambda model: list(model.stream("x"))):
                with pytest.raises(ModelError) as raised:
                    ask(self.asking(model, name, record))
                assert isinstance(raised.value, anthropic.APIStatusError)
                assert (raised.value.status_code, raised.value.type) == (record.status, record.expected["error"]["type"])
                assert record.expected["error"]["message"] in str(raised.value), record.id

    def test_replies_go_back_as_they_came(self, records: Records, serve: Serve) -> None:
        """Each recorded whole reply, sent back to its model, has its thinking, server tools and calls unchanged and in order; other
        models get its text and calls alone."""
        model = serve("arrived")
        for name, record in whole(records).items():
            message = self.invoked(model, name, record)
            history, origin = followed(message), message_origin(message) or "home"
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
