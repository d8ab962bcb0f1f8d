"""Streams: text at once, several side by side on one model, the same however they are run, and closed when the caller is done."""

import asyncio
import itertools
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.tools import tool

from langchain_autotools import StreamError, new_messages
from tests.contract.talk import WAYS, Run, Start, Talk, run_in, summed
from tests.contract.wires import Wire
from tests.support.calls import MADE_HERE
from tests.support.http_server import Exchange, Gate
from tests.support.script import Call, Cut, Failure, Raw, Reply, Turn

QUESTION = [HumanMessage("How warm is it in Paris?")]


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return f"{city}: 21 °C"


def two_turns() -> list[Reply]:
    """A call and an answer, with text in both turns."""
    calls = [Call("get_temperature", {"city": "Paris"}), Call("get_temperature", {"city": "Rome"})]
    return [Turn("Let me look.", calls), Turn("Both are warm.", reasoning="Hm.")]


def told(message: AIMessage) -> dict[str, Any]:
    """A message as data, without what differs between two runs. That is its id, the digest of the server's address, core's run ids (of
    wires without message ids) with the ids of generations and results that are made of them, and ids made for calls without one. Of
    generations and calls the order counts."""
    return {key: comparable(value, []) for key, value in message.model_dump().items() if key != "id"}


def comparable(value: Any, made: list[str]) -> Any:
    """Data without digests of addresses and run ids; a generation and an id made here are their numbers."""
    if isinstance(value, dict):
        aside = {"origin", *(["id"] if "tool_call_id" in value else ())}
        kept = {key: inner for key, inner in value.items() if key not in aside and not str(inner).startswith("lc_run--")}
        generation = kept.get("generation_id")
        return {key: comparable(inner, made) for key, inner in kept.items()} | (
            {} if generation is None else {"generation_id": number(generation, made)}
        )
    if isinstance(value, str) and MADE_HERE.fullmatch(value):
        return number(value, made)
    return [comparable(inner, made) for inner in value] if isinstance(value, list) else value


def number(value: str, made: list[str]) -> str:
    """Where a value first was among those that were made."""
    made += [] if value in made else [value]
    return str(made.index(value))


async def test_text_leaves_at_once(start: Start) -> None:
    """A text chunk reaches the caller before the server sends the next event."""
    gates = {position: Gate() for position in (2, 3, 4)}
    talk = start([Turn("abcdefghijkl", characters=4, holds=gates)])
    chunks = (chunk.text for chunk in talk.model.stream(QUESTION) if chunk.text)
    for text, gate in zip(("abcd", "efgh", "ijkl"), gates.values(), strict=True):
        assert next(chunks) == text
        assert gate.reached.wait(20)
        gate.open()
    gates = {position: Gate() for position in (2, 3, 4)}
    talk.server.extend([Turn("abcdefghijkl", characters=4, holds=gates)])
    achunks = talk.model.astream(QUESTION)
    for text, gate in zip(("abcd", "efgh", "ijkl"), gates.values(), strict=True):
        assert await anext(chunk.text async for chunk in achunks if chunk.text) == text
        gate.open()
    await achunks.aclose()


async def test_every_way_gives_the_same(start: Start) -> None:
    """`invoke`, the sum of `stream`, and their asynchronous twins give the same run message, new messages and requests."""
    outcomes = []
    for way in WAYS:
        talk = start(two_turns(), tools=[get_temperature])
        ran = await run_in(way, talk.model, QUESTION)
        messages = [talk.wire.messages(exchange) for exchange in talk.server.exchanges]
        outcomes.append((told(ran.message), [told(message) for message in ran.new], messages))
    for outcome in outcomes[1:]:
        assert outcome == outcomes[0]


async def test_a_caller_may_change_the_chunks_it_is_given(start: Start) -> None:
    """A chunk belongs to who gets it: what is done to it changes neither the run that goes on nor any other."""
    outcomes = []
    for change in (spoil, lambda chunk: None, lambda chunk: None):
        talk = start(two_turns(), tools=[get_temperature])
        new = []
        for chunk in talk.model.stream(QUESTION):
            assert "spoilt" not in repr(chunk)
            new += [told(message) for message in new_messages(chunk)]
            change(chunk)
        outcomes.append((new, [talk.wire.messages(exchange) for exchange in talk.server.exchanges]))
    assert outcomes[0] == outcomes[1] == outcomes[2]


async def test_a_caller_may_change_thoughts_it_is_given(start: Start) -> None:
    """The message that a model without tools has streamed is what the model wrote, whatever became of the chunks."""
    streamed: list[tuple[Any, Any, Any]] = []
    for change in (spoil, lambda chunk: None):
        for chunk in start([Turn("All warm.", reasoning="That is all there is.")]).model.stream(QUESTION):
            change(chunk)
            streamed += [(message.content, message.additional_kwargs, message.response_metadata.keys()) for message in new_messages(chunk)]
    spoilt, left = streamed
    assert spoilt == left


def spoil(chunk: AIMessageChunk) -> None:
    """Change every container of a chunk."""
    for values in (chunk.additional_kwargs, chunk.response_metadata):
        values["spoilt"] = True
    for calls in (chunk.tool_calls, chunk.invalid_tool_calls, chunk.tool_call_chunks):
        calls.append({"name": "spoilt", "args": {}, "id": "spoilt"})  # type: ignore[arg-type]
    if isinstance(chunk.content, list):
        for block in chunk.content:
            if isinstance(block, dict):
                block["spoilt"] = True
        chunk.content.append("spoilt")


async def test_new_messages_of_chunks_sum_and_message_agree(start: Start) -> None:
    """The new messages of the chunks, one after another, are those of their sum, and each arrives as soon as it is complete."""
    talk = start(two_turns(), tools=[get_temperature])
    chunks = list(talk.model.stream(QUESTION))
    piecewise = [new_messages(chunk) for chunk in chunks]
    assert [len(messages) for messages in piecewise if messages] == [1, 1, 1, 1]
    assert [told(message) for messages in piecewise for message in messages] == [told(message) for message in new_messages(summed(chunks))]


async def test_the_run_message_and_its_parts_are_the_same_input(start: Start, run: Run) -> None:
    """A history that stores the run message and one that stores its parts give the same requests, byte for byte."""
    first = start(two_turns(), tools=[get_temperature])
    ran = await run(first.model, QUESTION)
    bodies = []
    for middle in ([ran.message], ran.new):
        first.server.extend([Turn("Yes.")])
        await run(first.model, [*QUESTION, *middle, HumanMessage("Really?")])
        bodies.append(first.server.exchanges[-1].body)
    assert bodies[0] == bodies[1]
    assert first.wire.messages(first.server.exchanges[-1]).startswith(first.wire.messages(first.server.exchanges[1])[:-1])


def by_question(wire: Wire, gates: dict[str, Gate] | None = None) -> Any:
    """A script that calls a tool with the user's words and repeats the result; it keeps apart what belongs to whom."""

    def reply(exchange: Exchange) -> Turn:
        question = wire.question(exchange)
        results = wire.results(exchange)
        if not results:
            return Turn(f"Asked {question}.", [Call("get_temperature", {"city": question})])
        return Turn(f"Heard {results[0][1]}.", characters=5, holds={2: gates[question]} if gates else {})

    return reply


def belongs(question: str) -> str:
    """The text of a run over `by_question`."""
    return f"Asked {question}.\nHeard {question}: 21 °C."


async def test_interleaved_streams_of_one_model(start: Start, wire: Wire) -> None:
    """Two streams of one model, read in turn, each give their own conversation."""
    talk = start(by_question(wire), tools=[get_temperature])
    streams = [talk.model.stream([HumanMessage(name)]) for name in ("left", "right")]
    pairs = list(itertools.zip_longest(*streams))
    for position, name in enumerate(("left", "right")):
        assert summed([pair[position] for pair in pairs if pair[position] is not None]).text == belongs(name)


async def test_interleaved_asynchronous_streams_of_one_model(start: Start, wire: Wire) -> None:
    """Two asynchronous streams wait for each other in the middle of their answers and do not mix."""
    gates = {"left": Gate(), "right": Gate()}
    talk = start(by_question(wire, gates), tools=[get_temperature])

    async def read(name: str) -> str:
        return summed([chunk async for chunk in talk.model.astream([HumanMessage(name)])]).text

    tasks = [asyncio.create_task(read(name)) for name in gates]
    for gate in gates.values():
        assert await asyncio.to_thread(gate.reached.wait, 20)
    for gate in gates.values():
        gate.open()
    assert await asyncio.gather(*tasks) == [belongs(name) for name in gates]


@pytest.mark.parametrize("times", ["many", "few", pytest.param("a hundred", marks=pytest.mark.exhaustive)])
async def test_many_runs_at_once(start: Start, wire: Wire, times: str) -> None:
    """Many runs of one model at once, half of them in threads and half in tasks, each get their own answer."""
    talk = start(by_question(wire), tools=[get_temperature])
    names = [f"city {number}" for number in range({"a hundred": 100, "many": 24, "few": 10}[times])]

    def threaded(name: str) -> str:
        return summed(list(talk.model.stream([HumanMessage(name)]))).text

    async def tasked(name: str) -> str:
        return (await talk.model.ainvoke([HumanMessage(name)])).text

    with ThreadPoolExecutor(50) as pool:
        in_threads = [asyncio.get_running_loop().run_in_executor(pool, threaded, name) for name in names[::2]]
        assert await asyncio.gather(*in_threads, *map(tasked, names[1::2])) == [belongs(name) for name in names[::2] + names[1::2]]


def held(talk: Talk) -> Exchange:
    """The exchange that the server holds now."""
    return talk.server.exchanges[-1]


async def test_closing_a_stream_ends_the_connection(start: Start) -> None:
    """When the caller closes the stream, the server sees the connection end before it can send its next event."""
    for turns in (0, 1):
        gate = Gate()
        before: list[Reply] = [Turn("Wait.", [Call("get_temperature", {"city": "Paris"})])][:turns]
        talk = start([*before, Turn("abcdefgh", characters=4, holds={2: gate})], tools=[get_temperature])
        chunks = talk.model.stream(QUESTION)
        assert next(chunk.text for chunk in chunks if "abcd" in chunk.text)
        chunks.close()
        assert held(talk).disconnected.wait(20)
        assert not held(talk).finished.is_set()


async def test_closing_an_asynchronous_stream_ends_the_connection(start: Start) -> None:
    """So it does when an asynchronous stream is closed, or its task is cancelled while it waits for the next chunk."""
    for cancel in (False, True):
        gate = Gate()
        talk = start([Turn("abcdefgh", characters=4, holds={2: gate})], tools=[get_temperature])
        chunks = talk.model.astream(QUESTION)
        assert await anext(chunk.text async for chunk in chunks if chunk.text) == "abcd"
        if cancel:
            waiting = asyncio.create_task(anext(chunks))
            assert await asyncio.to_thread(gate.reached.wait, 20)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        else:
            await chunks.aclose()
        assert await asyncio.to_thread(held(talk).disconnected.wait, 20)
        assert not held(talk).finished.is_set()


async def test_cancelling_a_run_cancels_its_tools(start: Start) -> None:
    """A cancelled asynchronous run cancels the coroutines of its tools, and asks the model nothing more."""
    running, cancelled = asyncio.Event(), asyncio.Event()

    async def wait_long() -> str:
        """Wait until somebody gives up."""
        running.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "never"

    talk = start([Turn(calls=[Call("wait_long")]), Turn("Never.")], tools=[wait_long])
    task = asyncio.create_task(talk.model.ainvoke(QUESTION))
    await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(20):
        await cancelled.wait()
    assert (len(talk.server.exchanges), talk.server.left) == (1, 1)


async def test_closing_a_stream_while_tools_run(start: Start) -> None:
    """A stream closed between two results does not wait for the tool that still runs, and gives what was delivered."""
    release, entered = threading.Event(), threading.Event()

    @tool
    def slow() -> str:
        """Wait for the test."""
        entered.set()
        release.wait(20)
        return "late"

    talk = start([Turn(calls=[Call("get_temperature", {"city": "Paris"}), Call("slow")]), Turn("Never.")], tools=[get_temperature, slow])
    chunks = talk.model.stream(QUESTION)
    delivered: list[Any] = []
    while not any(message.type == "tool" for message in delivered):
        delivered += new_messages(next(chunks))
    assert entered.wait(20)
    chunks.close()
    release.set()
    assert [message.type for message in delivered] == ["ai", "tool"]
    talk = start([Turn("Fine.")], tools=[get_temperature])
    assert talk.model.invoke([*QUESTION, *delivered, HumanMessage("Go on.")]).text == "Fine."


def broken() -> list[Any]:
    """Second turns that fail."""
    return [
        pytest.param(Cut(Turn("This is never heard to its end."), after=700), id="torn connection"),
        pytest.param(Failure(500), id="server error"),
        pytest.param(Failure(429, "Slow down.", "requests", "rate_limit_exceeded"), id="rate limit"),
    ]


@pytest.mark.parametrize("failure", broken())
async def test_an_error_in_a_later_turn_loses_nothing(start: Start, way: str, failure: Reply) -> None:
    """When a turn fails, what was complete before it is in the chunks or in the error, and a history with it can go on."""
    talk = start([Turn("Look.", [Call("get_temperature", {"city": "Paris"})]), failure], tools=[get_temperature])
    kept: list[Any] = []
    with pytest.raises(Exception) as raised:
        await collect(way, talk.model, kept)
    kept += new_messages(raised.value)
    assert [message.type for message in kept] == ["ai", "tool"]
    talk = start([Turn("Fine.")], tools=[get_temperature])
    assert (await run_in(way, talk.model, [*QUESTION, *kept, HumanMessage("Go on.")])).message.text == "Fine."


async def collect(way: str, model: Any, kept: list[Any]) -> None:
    """Run a model and keep the new messages of each chunk."""
    if way == "stream":
        for chunk in model.stream(QUESTION):
            kept += new_messages(chunk)
    elif way == "astream":
        async for chunk in model.astream(QUESTION):
            kept += new_messages(chunk)
    else:
        await run_in(way, model, QUESTION)


@pytest.mark.parametrize("places", ["some", pytest.param("all", marks=pytest.mark.exhaustive)])
async def test_a_stream_that_just_ends_is_an_error_or_runs_nothing(start: Start, wire: Wire, way: str, places: str) -> None:
    """A stream that ends cleanly before its end marker, in the middle of a call, executes nothing."""
    ran: list[str] = []

    @tool
    def note(text: str) -> str:
        """Note a text."""
        ran.append(text)
        return "noted"

    def reply(exchange: Exchange) -> Reply:
        turn = Turn(calls=[Call("note", {"text": "a long text that is cut"})])
        return Turn("Sorry.") if wire.results(exchange) else Cut(turn, int(wire.question(exchange)), drop=False)

    model = start(reply, tools=[note]).model
    for after in range(0, 1200, 30) if places == "all" else range(30 * WAYS.index(way), 1200, 120):
        try:
            await run_in(way, model, [HumanMessage(str(after))])
        except Exception as error:
            assert [message.type for message in new_messages(error)] in ([], ["ai", "tool"])
    assert set(ran) <= {"a long text that is cut"}


@pytest.mark.parametrize(
    "words", ["Streaming is not supported for this model.", "Unsupported value: 'stream' does not support true with this model."]
)
async def test_a_server_that_does_not_stream_is_asked_for_whole_replies(start: Start, words: str) -> None:
    """A refusal of streams is answered with the same request, not streamed; the run and its messages are what they are elsewhere.

    Wire quirk E-12.
    """
    refusal = Failure(400, words, "invalid_request_error")
    for way in ("stream", "astream"):
        talk = start([reply for turn in two_turns() for reply in (refusal, turn)], tools=[get_temperature])
        ran = await run_in(way, talk.model, QUESTION)
        assert (ran.message.text, talk.server.left) == ("Let me look.\nBoth are warm.", 0)
        assert [message.type for message in ran.new] == ["ai", "tool", "tool", "ai"]


async def test_other_refusals_are_errors(start: Start) -> None:
    """A refusal of something else is raised, not tried again."""
    talk = start([Failure(400, "Unknown parameter: 'stream_options'.", "invalid_request_error"), Turn("Never.")], tools=[get_temperature])
    with pytest.raises(Exception, match="stream_options"):
        await run_in("stream", talk.model, QUESTION)


MISSHAPEN = [
    {"choices": 7},
    {"choices": [{"index": 0, "delta": {"content": 7}, "message": {"content": 7}}]},
    {"candidates": [{"content": {"parts": [{"text": 7}]}}]},
    {"candidates": [7], "usageMetadata": 7},
    {"type": "message", "content": [7], "usage": []},
    {"type": "message_start", "message": 7},
    {"type": "response.output_item.added", "output_index": [1], "item": {"type": "message"}},
    {"type": "response.completed", "object": "response", "output": 7, "response": 7},
    {"message": {"tool_calls": 7}, "done": True},
    {},
]


async def test_a_reply_of_another_form_is_a_stream_error(start: Start, run: Run) -> None:
    """JSON that is no reply of this wire, or has something else where the wire has a text or a list, never ends in a bare TypeError."""
    talk = start([Raw([json.dumps(document).encode()], "application/json") for document in MISSHAPEN])
    for left, document in reversed(list(enumerate(reversed(MISSHAPEN)))):
        with pytest.raises(StreamError):
            raise AssertionError(f"{document} is read as {await run(talk.model, QUESTION)}")
        assert talk.server.left == left
