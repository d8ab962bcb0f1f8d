"""Recorded replies of real servers of the Responses API, served again over HTTP: text, calls and reasoning come out exactly.

Each request carries its recording's id as the model name; the server answers with that recording's bytes.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import openai
import pytest
from langchain_core.exceptions import ModelError
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, message_chunk_to_message

from langchain_autotools import ChatOpenAI, new_messages
from langchain_autotools.messages import KEY, calls_of
from langchain_autotools.providers.openai.responses.mapper import ResponsesMapper
from tests.support.accounts import unlike
from tests.support.http_server import Exchange
from tests.support.recorded import Recording, differences, recordings
from tests.support.responses_server import ResponsesServer
from tests.support.script import Raw

Serve = Callable[[str], ChatOpenAI]


@pytest.fixture(scope="module")
def records(wire_folder: Path) -> dict[str, Recording]:
    """The recordings by id, with finish reasons as this package says them."""
    found = {}
    for record in recordings(wire_folder, "openai-responses"):
        if record.expected["finish_reason"] == "incomplete:max_output_tokens":
            object.__setattr__(record, "expected", {**record.expected, "finish_reason": "length"})
        found[record.id] = record
    return found


@pytest.fixture
def serve(records: dict[str, Recording]) -> Iterator[Serve]:
    """A function that gives a model whose server answers with recordings, cut into pieces in the named way."""
    cuts = {"now": "arrived"}

    def answer(exchange: Exchange) -> Raw:
        record = records[exchange.json["model"]]
        return Raw(record.pieces(cuts["now"]), record.content_type, record.status)

    with ResponsesServer(answer, rules=None) as server:

        def model(cut: str) -> ChatOpenAI:
            cuts["now"] = cut
            return ChatOpenAI(model="recorded", base_url=server.url, api_key="k", max_retries=0, use_responses_api=True)

        yield model


def chosen(records: dict[str, Recording], *, streamed: bool) -> list[Recording]:
    """The replies of one kind that are no errors."""
    return [record for record in records.values() if record.streamed is streamed and not record.failed]


def asking(model: ChatOpenAI, record: Recording) -> Any:
    """The model with the recorded functions declared, asking for the record."""
    bound = model.bind_tools(record.tools) if record.tools else model
    return bound.bind(model=record.id)


def streamed_message(model: ChatOpenAI, record: Recording) -> AIMessage:
    """The message that the chunks of a stream sum to, as any user of LangChain makes it."""
    return message_chunk_to_message(reduce(add, asking(model, record).stream("x")))  # type: ignore[return-value]


def told(record: Recording, message: AIMessage) -> list[str]:
    """What a message says otherwise than the record: text, calls, reasoning, signatures, usage, refusal, model, id."""
    expected = record.expected
    pairs: dict[str, tuple[Any, Any]] = {
        "refusal": (message.additional_kwargs.get("refusal"), expected["refusal"]),
        "model": (message.response_metadata.get("model_name"), expected["model"]),
        "id": (message.response_metadata.get("id"), expected["response_id"]),
    }
    unequal = [f"{name}: {pair}" for name, pair in pairs.items() if pair[0] != pair[1]]
    return [*differences(record, message), *unlike(record, message), *unequal]


def wrong(records: list[Recording], message_of: Callable[[Recording], AIMessage]) -> dict[str, Any]:
    """The records whose message differs, and how."""
    found: dict[str, Any] = {}
    for record in records:
        try:
            said = told(record, message_of(record))
        except Exception as error:
            said = [repr(error)]
        if said:
            found[record.id] = said
    return found


@pytest.mark.parametrize("cut", ["arrived", "seven", "random", pytest.param("one", marks=pytest.mark.exhaustive)])
def test_streams_are_read_exactly(records: dict[str, Recording], serve: Serve, cut: str) -> None:
    """Every recorded stream gives its text, calls, reasoning and usage, however its bytes are cut."""
    model = serve(cut)
    streams = chosen(records, streamed=True)
    assert len(streams) > 100
    assert wrong(streams, lambda record: streamed_message(model, record)) == {}


async def test_streams_are_read_exactly_asynchronously(records: dict[str, Recording], serve: Serve) -> None:
    """The asynchronous stream reads the same."""
    model, found = serve("random"), {}
    for record in chosen(records, streamed=True):
        chunks = [chunk async for chunk in asking(model, record).astream("x")]
        if said := told(record, message_chunk_to_message(reduce(add, chunks))):  # type: ignore[arg-type]
            found[record.id] = said
    assert found == {}


def test_whole_bodies_are_read_exactly(records: dict[str, Recording], serve: Serve) -> None:
    """Every recorded whole body gives its text, calls, reasoning and usage through `invoke`."""
    model = serve("arrived")
    bodies = chosen(records, streamed=False)
    assert len(bodies) > 200
    assert wrong(bodies, lambda record: asking(model, record).invoke("x")) == {}


def test_whole_bodies_where_a_stream_was_asked(records: dict[str, Recording], serve: Serve) -> None:
    """A server that ignores `stream` and sends a whole body is understood all the same."""
    model = serve("arrived")
    assert wrong(chosen(records, streamed=False), lambda record: streamed_message(model, record)) == {}


def test_errors_are_typed(records: dict[str, Recording], serve: Serve) -> None:
    """A recorded error is raised as the vendor SDK's error and as LangChain's, with the server's words."""
    model = serve("arrived")
    failed = [record for record in records.values() if record.failed]
    assert len(failed) >= 5
    for record in failed:
        with pytest.raises(openai.APIError) as raised:
            list(asking(model, record).stream("x")) if record.streamed else asking(model, record).invoke("x")
        error = record.expected["error"]
        assert isinstance(raised.value, ModelError), (record.id, type(raised.value))
        assert str(error.get("message") or error.get("detail"))[:60] in str(raised.value), record.id


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


def test_items_go_back_as_they_came(records: dict[str, Recording], serve: Serve) -> None:
    """The items of each reply with reasoning, tools of the vendor or phases go back unchanged and in order, to their own server only."""
    model, seen = serve("arrived"), Counter[str]()
    for record in records.values():
        if record.failed or not record.ended_well:
            continue
        bound = asking(model, record)
        message = new_messages(list(bound.stream("x"))[-1])[0] if record.streamed else bound.invoke("x")
        own = message.response_metadata[KEY]
        history = [HumanMessage("q"), message, *(ToolMessage("r", tool_call_id=call.id) for call in calls_of(message))]
        mapper = ResponsesMapper(origin=own["origin"])
        sent = [item for item in json.loads(mapper.encode_request(history, {}))["input"] if not str(item.get("type")).endswith("l_output")]
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
    assert seen["items"] > 150
