"""Structured output while it is written: what a stream yields before the output is whole, and what may still happen then."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from itertools import pairwise, product
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel, field_validator

from langchain_autotools import CallsPendingError, ChatOpenAI, RetryPolicy, aevents, events, new_messages, pending_calls
from langchain_autotools.event_types import CallResult, MessageDone
from langchain_autotools.providers._base.output_parsers import call_parser, json_parser, requested_schema
from langchain_autotools.providers.openai.errors import OpenAIConnectionError
from tests.contract.wires import WIRES, Wire
from tests.support.http_server import Exchange, Gate
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Cut, Early, Reply, Turn


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int
    summary: str


OUTPUT = {"city": "Paris", "degrees": 21, "summary": "Sunny, with a little wind."}
WEATHER = Weather.model_validate(OUTPUT)
SCHEMA = Weather.model_json_schema()
CALLED = Turn(calls=[Call("Weather", OUTPUT)])
LOOKING = Turn("Let me look.", calls=[Call("get_temperature", {"city": "Paris"})])
BOTH = Turn(calls=[Call("get_temperature", {"city": "Paris"}), Call("Weather", OUTPUT)])
BROKEN = Turn(calls=[Call("Weather", '{"city": "Pa')])
QUESTION = "How is the weather in Paris? Answer as JSON."


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return f"{city}: 21 °C"


def model_of(server: OpenAIServer, **more: Any) -> ChatOpenAI:
    """A model that talks to the server."""
    return ChatOpenAI(**{"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, **more})


def calling(server: OpenAIServer, schema: Any = SCHEMA, **more: Any) -> Any:
    """Its output as a call."""
    return model_of(server, **more).with_structured_output(schema, method="function_calling")


def grows(snapshots: list[dict[str, Any]]) -> bool:
    """Whether each snapshot has what the one before it had, and more."""
    pairs = pairwise(snapshots)
    return all(before != after and all(_begins(value, after.get(key)) for key, value in before.items()) for before, after in pairs)


def _begins(value: Any, longer: Any) -> bool:
    return str(longer).startswith(str(value))


async def read(chain: Any, way: str, **keywords: Any) -> list[Any]:
    """What a stream of the chain yields."""
    if way == "stream":
        return list(chain.stream(QUESTION, **keywords))
    return [output async for output in chain.astream(QUESTION, **keywords)]


both_ways = pytest.mark.parametrize("way", ["stream", "astream"])


@both_ways
@pytest.mark.parametrize("tools", [[], [get_temperature]], ids=["alone", "with tools"])
async def test_a_dict_and_an_object_grow_while_their_call_is_written(way: str, tools: list[Any]) -> None:
    """Each piece of the call adds to a dict; an object comes as soon as all its fields have begun. Tools run before."""
    script: list[Reply] = [LOOKING, CALLED] if tools else [CALLED]
    with OpenAIServer([*script, *script]) as server:
        dicts = await read(calling(server, tools=tools), way)
        objects = await read(calling(server, Weather, tools=tools), way)
    assert (dicts[0], dicts[-1], grows(dicts)) == ({}, OUTPUT, True)
    assert len(dicts) > 10
    assert (objects[0].summary, objects[-1], len(objects) > 3) == ("", WEATHER, True)


@both_ways
@pytest.mark.parametrize("method", ["json_schema", "json_mode", "function_calling"])
@pytest.mark.parametrize("wire", [row for row in WIRES if "azure" not in row.name], ids=lambda row: row.name)
async def test_output_grows_on_every_wire(wire: Wire, method: str, way: str) -> None:
    """By every method; what comes last is what `invoke` returns. Ollama and Google have calls in one piece: there is nothing between."""

    def reply(exchange: Exchange) -> Turn:
        return CALLED if "Weather" in json.dumps(exchange.json.get("tools", [])) else Turn(json.dumps(OUTPUT))

    least = 1 if method == "function_calling" and wire.name in ("ollama", "google") else 4
    with wire.serve(reply) as server:
        for schema in (SCHEMA, Weather):
            chain = wire.model(server).with_structured_output(schema, method=method)
            outputs = await read(chain, way)
            assert (outputs[-1], len(outputs) >= least) == (await chain.ainvoke(QUESTION), True)
        assert server.rejections == []


@both_ways
async def test_a_snapshot_is_there_before_the_next_piece(way: str) -> None:
    """A snapshot does not wait for what the server writes after it."""
    gate = Gate()
    with OpenAIServer([Turn(calls=[Call("Weather", OUTPUT)], holds={4: gate})]) as server:
        if way == "stream":
            stream = calling(server).stream(QUESTION)
            assert [next(stream), next(stream)] == [{}, {"city": ""}]
            gate.open()
            assert list(stream)[-1] == OUTPUT
            return
        astream = calling(server).astream(QUESTION)
        assert [await anext(astream), await anext(astream)] == [{}, {"city": ""}]
        gate.open()
        assert [output async for output in astream][-1] == OUTPUT


class Recorded(BaseCallbackHandler):
    """Keeps the chunks that callbacks are given."""

    def __init__(self) -> None:
        self.chunks: list[AIMessageChunk] = []

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **kwargs: Any) -> None:
        """Keep a chunk."""
        self.chunks.append(chunk.message)


@both_ways
async def test_no_chunk_holds_a_piece(way: str) -> None:
    """Callbacks see the call once, whole, at the end of its turn, as without a reader of snapshots."""
    with OpenAIServer([LOOKING, CALLED]) as server:
        handler = Recorded()
        await read(calling(server, tools=[get_temperature]), way, config={"callbacks": [handler]})
    pieces = [call for chunk in handler.chunks for call in chunk.tool_call_chunks]
    assert [call["name"] for call in pieces] == ["get_temperature", "Weather"]
    assert all(chunk.tool_call_chunks or not chunk.additional_kwargs for chunk in handler.chunks)


@both_ways
@pytest.mark.parametrize("method", ["json_schema", "json_mode"])
async def test_a_text_beside_tools_waits_for_its_turns_end(way: str, method: Any) -> None:
    """Only then is it known that no call follows the text."""
    with OpenAIServer([LOOKING, Turn(WEATHER.model_dump_json())]) as server:
        chain = model_of(server, tools=[get_temperature]).with_structured_output(SCHEMA, method=method)
        assert await read(chain, way) == [OUTPUT]


async def test_include_raw_gives_a_dict_for_each_key() -> None:
    """As of LangChain's models, by every method, with tools or without; they add up to what `invoke` gives. Errors are in them, too."""
    for tools, method in product([[], [get_temperature]], ["function_calling", "json_schema", "json_mode"]):
        for answer in (CALLED, BROKEN) if method == "function_calling" else (Turn(WEATHER.model_dump_json()), Turn('{"city": "Pa')):
            script = [LOOKING, answer] if tools else [answer]
            with OpenAIServer(script * 3) as server:
                chain = model_of(server, tools=tools, max_turns=2, on_limit="return").with_structured_output(
                    Weather, method=method, include_raw=True
                )
                once = chain.invoke(QUESTION)
                for way in ("stream", "astream"):
                    raw, parsed, error = given = await read(chain, way)
                    assert [list(one) for one in given] == [["raw"], ["parsed"], ["parsing_error"]]
                    assert parsed["parsed"] == once["parsed"] == (WEATHER if answer in (CALLED, Turn(WEATHER.model_dump_json())) else None)
                    assert type(error["parsing_error"]) is type(once["parsing_error"])
                    assert raw["raw"].text == once["raw"].text


# ---------------------------------------------------------------------------------------------- replies that come to nothing


@both_ways
@pytest.mark.parametrize("schema", [SCHEMA, Weather], ids=["dict", "pydantic"])
@pytest.mark.parametrize(
    "reply",
    [BROKEN, Turn(calls=[Call("Weather", OUTPUT)], finish="length"), Turn("No.", refusal="No.")],
    ids=["broken", "cut", "refused"],
)
async def test_a_stream_ends_in_the_error_of_invoke(way: str, schema: Any, reply: Reply) -> None:
    """Snapshots may have come; then the same error."""
    with OpenAIServer([reply] * 2) as server:
        with pytest.raises(Exception) as invoked:
            calling(server, schema).invoke(QUESTION)
        with pytest.raises(type(invoked.value)) as streamed:
            await read(calling(server, schema), way)
    assert str(streamed.value) == str(invoked.value)


@both_ways
async def test_a_reply_that_ends_early_is_an_error(way: str) -> None:
    """It has left in part, so it is not asked for again, with tools or without them."""
    for tools in ([], [get_temperature]):
        with OpenAIServer([Early(CALLED, text="Sunn"), CALLED]) as server:
            with pytest.raises(OutputParserException, match="broke off"):
                await read(calling(server, max_retries=2, tools=tools), way)
            assert server.left == 1


@both_ways
async def test_an_answer_without_the_call_is_nothing(way: str) -> None:
    """As of LangChain's parsers."""
    with OpenAIServer([Turn("It is fine.")] * 2) as server:
        assert calling(server).invoke(QUESTION) is None
        assert await read(calling(server), way) == []


def dropped(turn: Turn, text: str) -> Cut:
    """The connection breaks off some bytes after the text has been sent."""
    from tests.support.openai_wire import Asked, event, turn_chunks

    sent = b"".join(event(chunk) for chunk in turn_chunks(Asked(1, "any", stream=True, include_usage=True), turn))
    return Cut(turn, sent.index(text.encode()) + 250)


@both_ways
async def test_a_request_whose_snapshot_has_left_is_not_made_again(way: str) -> None:
    """What the caller has seen cannot be taken back: the error is raised, also while retries are left."""
    seen: list[Any] = []
    with OpenAIServer([dropped(CALLED, "Sunn"), CALLED]) as server:
        chain = calling(server, max_retries=2)
        with pytest.raises(OpenAIConnectionError):
            if way == "stream":
                seen.extend(chain.stream(QUESTION))
            else:
                async for output in chain.astream(QUESTION):
                    seen.append(output)
        assert server.left == 1
    assert seen[-1]["summary"].startswith("Sunn")


@both_ways
async def test_a_request_of_which_nothing_has_left_is_made_again(way: str) -> None:
    """An object of which not all fields have begun is no snapshot."""
    with OpenAIServer([dropped(CALLED, "Pari"), CALLED]) as server:
        outputs = await read(calling(server, Weather, max_retries=None, retry=RetryPolicy(wait_scale=0)), way)
        assert (outputs[0].summary, outputs[-1], server.left) == ("", WEATHER, 0)


# ---------------------------------------------------------------------------------------------- beside tools


@both_ways
async def test_of_two_calls_the_first_that_is_an_object_is_the_output(way: str) -> None:
    """The snapshots are those of the first."""
    with OpenAIServer([Turn(calls=[*BROKEN.calls, *CALLED.calls])]) as server:
        outputs = await read(calling(server, tools=[get_temperature]), way)
    assert (outputs[0], outputs[-2], outputs[-1]) == ({}, {"city": "Pa"}, OUTPUT)


@both_ways
async def test_output_beside_a_call_that_waits_is_none(way: str) -> None:
    """Snapshots of the schema's call may come; the stream ends in `CallsPendingError`, and goes on once it is decided."""
    with OpenAIServer([LOOKING, CALLED]) as server:
        chain = calling(server, tools=[get_temperature], requires_approval=["get_temperature"])
        with pytest.raises(CallsPendingError) as raised:
            await read(chain, way)
        history = [HumanMessage(QUESTION), *new_messages(raised.value)]
        decided = [call.approve() for call in pending_calls(history)]
        outputs = list(chain.stream(history, resume=decided))
    assert (outputs[0], outputs[-1], grows(outputs)) == ({}, OUTPUT, True)


@both_ways
async def test_output_after_a_call_that_was_denied(way: str) -> None:
    """The model is told, and the output comes as ever."""
    with OpenAIServer([LOOKING, CALLED]) as server:
        chain = calling(server, tools=[get_temperature], approve=lambda call: call.reject("not now"))
        outputs = await read(chain, way)
        assert "not now" in server.messages[1][-1]["content"]
    assert (outputs[0], outputs[-1]) == ({}, OUTPUT)


@both_ways
async def test_only_the_calls_of_the_schema_are_output(way: str) -> None:
    """A call of a tool beside it brings no snapshot."""
    with OpenAIServer([BOTH]) as server:
        outputs = await read(calling(server, tools=[get_temperature]), way)
    assert (outputs[0], outputs[-1], grows(outputs)) == ({}, OUTPUT, True)


def test_what_tools_run_is_not_listened_to() -> None:
    """A model inside a tool makes the request that it makes without a reader of snapshots, and its output is none of the run's."""
    with OpenAIServer([Turn(calls=[Call("ask", {})]), CALLED, CALLED]) as server:

        @tool
        def ask() -> str:
            """Ask somebody."""
            return str(calling(server).invoke("Psst?"))

        assert grows(list(calling(server, tools=[ask]).stream(QUESTION)))
        assert [request.get("stream", False) for request in server.requests] == [True, False, True]


@both_ways
async def test_who_listens_around_hears_everything(way: str) -> None:
    """`events` of the chain tells of the whole run, of its tools' runs, and knows its message."""
    with OpenAIServer([LOOKING, CALLED]) as server:
        chain = calling(server, tools=[get_temperature])
        stream: Any = events(chain.stream(QUESTION)) if way == "stream" else aevents(chain.astream(QUESTION))
        told = list(stream) if way == "stream" else [event async for event in stream]
    assert [event.message.content for event in told if isinstance(event, CallResult)] == ["Paris: 21 °C"]
    assert [type(event.message) for event in told if isinstance(event, MessageDone)][1] is ToolMessage
    assert [call["name"] for call in stream.message.tool_calls] == ["Weather"]


class Careless(BaseModel):
    """A class whose validator expects the whole."""

    city: str
    code: str

    @field_validator("code")
    @classmethod
    def known(cls, code: str) -> str:
        """The code in full; raises what pydantic does not take for an invalid value."""
        return {"FR-75": "Paris"}[code]


def test_a_validator_that_fails_on_halves_only_delays_the_output() -> None:
    """Whatever it raises; of the whole its error is raised."""
    with OpenAIServer([Turn(calls=[Call("Careless", {"city": "Paris", "code": code})]) for code in ("FR-75", "FR-76")]) as server:
        assert list(calling(server, Careless).stream(QUESTION)) == [Careless(city="Paris", code="FR-75")]
        with pytest.raises(KeyError):
            list(calling(server, Careless).stream(QUESTION))


# ---------------------------------------------------------------------------------------------- who leaves


@both_ways
async def test_leaving_ends_the_request(way: str) -> None:
    """A stream that is closed after its first snapshot reads nothing more."""
    with OpenAIServer([LOOKING, Turn(calls=[Call("Weather", OUTPUT)], holds={6: Gate()})]) as server:
        chain = calling(server, tools=[get_temperature])
        if way == "stream":
            stream: Iterator[Any] = chain.stream(QUESTION)
            assert next(stream) == {}
            stream.close()  # type: ignore[attr-defined]
        else:
            astream: AsyncIterator[Any] = chain.astream(QUESTION)
            async with aclosing(astream):  # type: ignore[type-var]
                assert await anext(astream) == {}
        assert await asyncio.to_thread(server.exchanges[-1].disconnected.wait, 10)
        assert len(server.requests) == 2


def test_a_whole_reply_is_the_output() -> None:
    """Of a model that does not stream the output comes once."""
    with OpenAIServer([CALLED, Turn(WEATHER.model_dump_json())]) as server:
        model = model_of(server, disable_streaming=True)
        assert list(model.with_structured_output(SCHEMA, method="function_calling").stream(QUESTION)) == [OUTPUT]
        assert list(model.with_structured_output(Weather).stream(QUESTION)) == [WEATHER]


@both_ways
async def test_of_an_empty_stream_comes_nothing(way: str) -> None:
    """As of LangChain's parsers."""

    async def nothing() -> AsyncIterator[Any]:
        for chunk in ():
            yield chunk

    asked = [requested_schema(schema) for schema in (SCHEMA, Weather)]
    for parser in [*map(json_parser, asked), *(call_parser(one, "Weather") for one in asked)]:
        outputs = list(parser.transform(iter(()))) if way == "stream" else [output async for output in parser.atransform(nothing())]
        assert outputs == []


def test_an_invalid_object_is_an_error() -> None:
    """A call that does not fit its class is an error at the stream's end, as of `invoke`."""
    wrong = {**OUTPUT, "degrees": "warm"}
    with OpenAIServer([Turn(calls=[Call("Weather", wrong)]), Turn(json.dumps(wrong))]) as server:
        with pytest.raises(ValueError, match="degrees"):
            list(calling(server, Weather).stream(QUESTION))
        with pytest.raises(OutputParserException):
            list(model_of(server).with_structured_output(Weather).stream(QUESTION))
