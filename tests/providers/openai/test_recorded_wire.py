"""Recorded replies of real servers of the chat completions wire, served again over HTTP: text, calls, reasoning, signatures and token
counts come out exactly.

Each request carries its recording's id as the model name; the server answers with that recording's bytes.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest
from langchain_core.exceptions import ContextOverflowError, ModelError
from langchain_core.messages import AIMessage, AIMessageChunk, message_chunk_to_message

from langchain_autotools import ChatOpenAI
from tests.support.accounts import unlike
from tests.support.http_server import Exchange
from tests.support.openai_server import OpenAIServer
from tests.support.recorded import Recording, differences, recordings
from tests.support.script import Raw

WIRE = "openai-chat"
Serve = Callable[[str], ChatOpenAI]


@pytest.fixture(scope="module")
def records(wire_folder: Path) -> dict[str, Recording]:
    """The recordings by id."""
    return {record.id: record for record in recordings(wire_folder, WIRE)}


@pytest.fixture
def serve(records: dict[str, Recording]) -> Iterator[Serve]:
    """A function that gives a model whose server answers with recordings, cut into pieces in the named way."""
    cuts = {"now": "arrived"}

    def answer(exchange: Exchange) -> Raw:
        record = records[exchange.json["model"]]
        return Raw(record.pieces(cuts["now"]), record.content_type, record.status)

    with OpenAIServer(answer, rules=None) as server:

        def model(cut: str) -> ChatOpenAI:
            cuts["now"] = cut
            return ChatOpenAI(model="recorded", base_url=server.url, api_key="k", max_retries=0)

        yield model


def streamed(records: dict[str, Recording]) -> list[Recording]:
    """The streams that end well."""
    return [record for record in records.values() if record.streamed and not record.failed]


def whole(records: dict[str, Recording]) -> list[Recording]:
    """The whole bodies that are no errors."""
    return [record for record in records.values() if not record.streamed and not record.failed]


def asking(model: ChatOpenAI, record: Recording) -> Any:
    """The model with the recorded tools declared, asking for the record (for several choices where the recorded client did)."""
    bound = model.bind_tools(record.tools) if record.tools else model
    several = {"n": record.request["n"]} if record.request.get("n", 1) > 1 else {}
    return bound.bind(model=record.id, **several)


def summed(chunks: list[AIMessageChunk]) -> AIMessage:
    """The message that chunks sum to, as any user of LangChain makes it."""
    full = chunks[0]
    for chunk in chunks[1:]:
        full = full + chunk
    return message_chunk_to_message(full)  # type: ignore[return-value]


def wrong(records: list[Recording], message_of: Callable[[Recording], AIMessage]) -> dict[str, Any]:
    """The records whose message differs, and how."""
    found: dict[str, Any] = {}
    for record in records:
        try:
            message = message_of(record)
            told = [*differences(record, message), *unlike(record, message)]
        except Exception as error:
            told = [repr(error)]
        if told:
            found[record.id] = told
    return found


@pytest.mark.parametrize("cut", ["arrived", "seven", "random", pytest.param("one", marks=pytest.mark.exhaustive)])
def test_streams_are_read_exactly(records: dict[str, Recording], serve: Serve, cut: str) -> None:
    """Every recorded stream gives its text, its calls in order, its reasoning and its counts, however its bytes are cut."""
    model = serve(cut)
    chosen = streamed(records)
    assert len(chosen) > 150
    assert wrong(chosen, lambda record: summed(list(asking(model, record).stream("x")))) == {}


async def test_streams_are_read_exactly_asynchronously(records: dict[str, Recording], serve: Serve) -> None:
    """The asynchronous stream reads the same."""
    model = serve("random")
    found = {}
    for record in streamed(records):
        message = summed([chunk async for chunk in asking(model, record).astream("x")])
        if told := [*differences(record, message), *unlike(record, message)]:
            found[record.id] = told
    assert found == {}


def test_invoke_reads_streams_exactly(records: dict[str, Recording], serve: Serve) -> None:
    """A model told to stream inside `invoke` gives the same messages."""
    model = serve("random").model_copy(update={"streaming": True})
    assert wrong(streamed(records), lambda record: asking(model, record).invoke("x")) == {}


def test_whole_bodies_are_read_exactly(records: dict[str, Recording], serve: Serve) -> None:
    """Every recorded whole body gives its text and calls through `invoke` with streaming off."""
    model = serve("arrived").model_copy(update={"streaming": False})
    chosen = whole(records)
    assert len(chosen) > 350
    assert wrong(chosen, lambda record: asking(model, record).invoke("x")) == {}


async def test_whole_bodies_are_read_exactly_asynchronously(records: dict[str, Recording], serve: Serve) -> None:
    """`ainvoke` reads the same."""
    model = serve("random")
    found = {}
    for record in whole(records):
        message = await asking(model, record).ainvoke("x")
        if told := [*differences(record, message), *unlike(record, message)]:
            found[record.id] = told
    assert found == {}


def test_whole_bodies_where_a_stream_was_asked(records: dict[str, Recording], serve: Serve) -> None:
    """A server that ignores `stream` and sends a whole body is understood all the same."""
    model = serve("arrived")
    assert wrong(whole(records), lambda record: summed(list(asking(model, record).stream("x")))) == {}


def test_many_threads_share_one_model(records: dict[str, Recording], serve: Serve) -> None:
    """Streams of one model at the same time do not mix."""
    model = serve("random")
    chosen = streamed(records)
    with ThreadPoolExecutor(16) as pool:
        messages = list(pool.map(lambda record: summed(list(asking(model, record).stream("x"))), chosen))
    found = {record.id: told for record, message in zip(chosen, messages, strict=True) if (told := differences(record, message))}
    assert found == {}


def test_usage_and_names_are_read(records: dict[str, Recording], serve: Serve) -> None:
    """Tokens, finish reason and the model's name are what the server says; a stream counts them once."""
    model = serve("arrived")
    found = {}
    for record in [*streamed(records), *whole(records)]:
        bound = asking(model, record)
        message = summed(list(bound.stream("x"))) if record.streamed else bound.invoke("x")
        if told := described(record, message):
            found[record.id] = told
    assert found == {}


def described(record: Recording, message: AIMessage) -> dict[str, Any]:
    """What differs between a message's metadata and the record."""
    usage = message.usage_metadata or {}
    counts = record.expected["usage_norm"] or {}
    names = {"input": "input_tokens", "output": "output_tokens", "total": "total_tokens"}
    pairs = {name: (usage.get(names[name]), counts[name]) for name in names if counts.get(name) is not None}
    metadata = message.response_metadata
    pairs["finish"] = (metadata.get("finish_reason") or None, record.expected["finish_reason"])
    pairs["model"] = (metadata.get("model_name") or None, record.expected["model"] or None)
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def test_errors_are_typed(records: dict[str, Recording], serve: Serve) -> None:
    """A recorded error is raised as the vendor SDK's error and as LangChain's, with the server's words."""
    model = serve("arrived")
    failed = [record for record in records.values() if record.failed]
    assert len(failed) >= 5
    for record in failed:
        with pytest.raises((openai.APIError, ModelError)) as raised:
            list(asking(model, record).stream("x")) if record.streamed else asking(model, record).invoke("x")
        error = raised.value
        assert isinstance(error, openai.APIError) and isinstance(error, ModelError | ContextOverflowError), (record.id, type(error))
        assert record.expected["error"]["message"][:40] in str(error), record.id
        if not record.streamed:
            assert isinstance(error, openai.APIStatusError) and error.status_code == record.status
