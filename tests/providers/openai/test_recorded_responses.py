"""Recorded replies of real servers of the Responses API, served again over HTTP: text, calls and reasoning come out exactly."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import openai
import pytest
from langchain_core.exceptions import ModelError
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_autotools import ChatOpenAI, new_messages
from langchain_autotools.messages.calls import calls_of
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.providers.openai.responses_mapper import ResponsesMapper
from tests.support.accounts import unlike
from tests.support.recorded import Recording, differences, recordings
from tests.support.recorded_suite import RecordedSuite, Records, Serve, failed, unequal
from tests.support.responses_server import ResponsesServer
from tests.support.scripted_server import Script


def _in_our_words(record: Recording) -> Recording:
    if record.expected["finish_reason"] != "incomplete:max_output_tokens":
        return record
    return replace(record, expected={**record.expected, "finish_reason": "length"})


def output_of(record: Recording) -> list[dict[str, Any]]:
    """The output items as the server sent them, each at its end."""
    if not record.streamed:
        return list(json.loads(record.body)["output"])
    events = [json.loads(line[5:]) for line in record.body.decode().splitlines() if line.startswith("data:") and "[DONE]" not in line]
    return [event["item"] for event in events if event["type"] == "response.output_item.done"]


_DROPPED = {
    "message": {"status"},
    "reasoning": {"status"},
    "function_call": {"status", "item_id", "output_index"},
    "custom_tool_call": {"status"},
}


def comparable(item: dict[str, Any]) -> dict[str, Any]:
    """An item without what is not sent back: its status, nulls, log probabilities, empty lists."""
    hidden = _DROPPED.get(item["type"], set())
    kept = {key: value for key, value in item.items() if key not in hidden and value is not None and (value or key == "summary")}
    if item["type"] == "message":
        kept["content"] = [{key: value for key, value in part.items() if key != "logprobs" and value} for part in item["content"]]
    return kept


def stored(record: Recording) -> bool:
    """Whether the server says that it keeps the reply."""
    return '"store":false' not in record.body.decode().replace(" ", "")


class TestResponses(RecordedSuite):
    wire = "openai-responses"
    least: ClassVar[tuple[int, int]] = (101, 201)

    @pytest.fixture
    def every(self, wire_folder: Path) -> Records:
        """The recordings by id, with finish reasons as this package says them."""
        return {record.id: _in_our_words(record) for record in recordings(wire_folder, self.wire)}

    def server(self, script: Script) -> ResponsesServer:
        """A server that takes any request."""
        return ResponsesServer(script, rules=None)

    def model(self, url: str) -> ChatOpenAI:
        """A model that asks the server."""
        return ChatOpenAI(model="recorded", base_url=url, api_key="k", max_retries=0, use_responses_api=True)

    def asking(self, model: Any, name: str, record: Recording) -> Any:
        """The model with the recorded functions declared, asking for the record."""
        bound = model.bind_tools(record.tools) if record.tools else model
        return bound.bind(model=name)

    def told(self, record: Recording, message: AIMessage) -> Any:
        """What a message says otherwise than the record: text, calls, reasoning, signatures, usage, refusal, model, id."""
        metadata, expected = message.response_metadata, record.expected
        found = {
            "refusal": message.additional_kwargs.get("refusal"),
            "model": metadata.get("model_name"),
            "response_id": metadata.get("id"),
        }
        return [*differences(record, message), *unlike(record, message), *unequal(found, {key: expected[key] for key in found}).items()]

    def test_errors_are_typed(self, every: Records, serve: Serve) -> None:
        """A recorded error is raised as the vendor SDK's error and as LangChain's, with the server's words."""
        model = serve("arrived")
        assert len(failed(every)) >= 5
        for name, record in failed(every).items():
            with pytest.raises(openai.APIError) as raised:
                self.summed(model, name, record) if record.streamed else self.invoked(model, name, record)
            error = record.expected["error"]
            assert isinstance(raised.value, ModelError), (record.id, type(raised.value))
            assert str(error.get("message") or error.get("detail"))[:60] in str(raised.value), record.id

    def test_items_go_back_as_they_came(self, records: Records, every: Records, serve: Serve) -> None:
        """Items of a reply with reasoning, tools of the vendor or phases go back unchanged and in order, to their own server only."""
        model, seen = serve("arrived"), Counter[str]()
        for name, record in records.items():
            if record.failed or not record.ended_well:
                continue
            bound = self.asking(model, name, record)
            message = new_messages(list(bound.stream("x"))[-1])[0] if record.streamed else bound.invoke("x")
            own = message.response_metadata[KEY]
            history = [HumanMessage("q"), message, *(ToolMessage("r", tool_call_id=call.id) for call in calls_of(message))]
            mapper = ResponsesMapper(origin=own["origin"])
            sent = [
                item for item in json.loads(mapper.encode_request(history, {}))["input"] if not str(item.get("type")).endswith("l_output")
            ]
            foreign = json.loads(ResponsesMapper(origin="other").encode_request(history, {}))["input"]
            assert not {item.get("type") for item in foreign} - {None, "message", "function_call", "function_call_output"}, record.id
            if "items" not in own or any(item.get("execution") == "client" for item in output_of(record)):
                seen["plain"] += 1
                continue
            seen["items"] += 1
            wanted = [comparable(item) for item in output_of(record)]
            if not stored(record):
                made = ("message", "reasoning", "function_call", "custom_tool_call")
                wanted = [{key: value for key, value in item.items() if key != "id" or item["type"] not in made} for item in wanted]
                wanted = [item for item in wanted if item["type"] != "reasoning" or item.keys() & {"encrypted_content", "content"}]
            assert [comparable(item) for item in sent[1:] if item.get("type") != "function_call_output"] == wanted, record.id
        assert seen["items"] > (150 if len(records) == len(every) else 10)
