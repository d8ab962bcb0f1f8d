"""Law 8, nothing is lost: what a failed run had completed is in the chunks and in the error, each message once."""

import asyncio
import itertools
import json
import threading
from collections.abc import Sequence
from contextlib import aclosing, closing
from typing import Any

import pytest
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import ModelError
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from pydantic import BaseModel

from langchain_autotools import ModelRefusalError, new_messages
from tests.laws.checks import check_answered, check_goes_on, check_plain, check_told
from tests.laws.outcomes import Breaks, failures
from tests.laws.stories import Said, Script, replies, stories
from tests.laws.ways import LISTENERS, QUESTION, WAYS, After, EventTap, Listener, Tap, chat, law, run, serving, waited
from tests.laws.workshop import Workshop
from tests.support.http_server import Gate
from tests.support.middleware import Around
from tests.support.script import Call, Failure, Turn

listeners = st.sampled_from(sorted(LISTENERS))
ways = st.sampled_from(WAYS)


@law(5)
def test_law_8_a_failed_turn_takes_nothing_with_it(data: st.DataObject) -> None:
    """All turns before the one that fails are there, with their results: in the chunks if streamed, else in the error."""
    begun: list[Said] = data.draw(stories(turns=3))[:-1]
    torn = st.builds(Breaks, replies(), st.floats(0, 0.9), st.just(True))
    way = data.draw(ways)
    with serving(Script([*begun, data.draw(st.one_of(failures, torn))])) as server:
        ran = run(way, chat(server, tools=Workshop().tools()), [QUESTION], listeners=data.draw(listeners))
        assert ran.error is not None
        check_plain(ran)
        check_told(ran.new, begun)
        assert ran.delivered == (len(ran.new) if "stream" in way else 0)
        for other in wrapped(ran.error):
            assert new_messages(other) == new_messages(ran.error)
        check_goes_on(server, ran.new)


@law(5)
def test_law_8_a_cancelled_run_keeps_what_had_completed(data: st.DataObject) -> None:
    """Every result that a listener heard of, and every word that a chunk brought, is in a new message."""
    story: list[Said] = data.draw(stories(turns=3, least=2))
    heard: list[Any] = []
    flag = After(data.draw(st.integers(0, 40)))
    with serving(Script(story)) as server:
        model = chat(server, tools=Workshop().tools(), message_separator="", on_executed=heard.append)
        ran = run(data.draw(ways), model, [QUESTION], listeners=data.draw(listeners), cancel=flag)
    assert ran.error is None and ran.message is not None
    told = {message.tool_call_id: message.content for message in ran.new if isinstance(message, ToolMessage)}
    assert [(result.call.id, told[result.call.id]) for result in heard] == [(result.call.id, result.message.content) for result in heard]
    assert ran.message.text == "".join(message.text for message in ran.new if message.type == "ai")


def wrapped(error: BaseException) -> list[BaseException]:
    """The error as callers meet it: as a cause, as a context, in a group of groups, hidden behind `from None`."""
    caught: list[BaseException] = []
    try:
        raise RuntimeError("mine") from error
    except RuntimeError as outer:
        caught.append(outer)
    try:
        try:
            raise error
        except BaseException:
            raise LookupError("while handling it") from None
    except LookupError as outer:
        caught.append(outer)
    caught.append(BaseExceptionGroup("several", [ValueError("another"), BaseExceptionGroup("inner", [error])]))
    return caught


class Stop(BaseException):
    """Ends a program, as KeyboardInterrupt does."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("position", [0, 1, 2])
def test_law_8_a_tool_that_ends_the_run_loses_no_other_result(way: str, position: int) -> None:
    """What no tool may catch ends the run; the error brings the turn, with every call answered, results that were there included."""

    def fine(number: int) -> str:
        """Work."""
        return f"fine {number}"

    def stop(number: int) -> str:
        """End everything."""
        raise Stop

    names = ["fine", "fine", "fine"]
    names[position] = "stop"
    calls = [Call(name, {"number": number}) for number, name in enumerate(names)]
    with serving(Script([Turn("Look.", calls), Turn("Fine.")])) as server:
        model = chat(server, tools=[fine, stop], parallel=False)
        delivered: list[BaseMessage] = []
        with pytest.raises(Stop) as raised:
            collect(way, model, delivered)
        messages = [*delivered, *new_messages(raised.value)]
        check_answered(messages)
        results = [message for message in messages if isinstance(message, ToolMessage)]
        assert [result.status for result in results] == ["success"] * position + ["error"] * (3 - position)
        check_goes_on(server, messages, tools=[fine])


def collect(way: str, model: Any, delivered: list[BaseMessage]) -> None:
    """Run a model; keep what chunks bring."""
    if way == "stream":
        for chunk in model.stream([QUESTION]):
            delivered += new_messages(chunk)
    elif way == "invoke":
        model.invoke([QUESTION])
    elif way == "ainvoke":
        waited(model.ainvoke([QUESTION]))
    else:

        async def take() -> None:
            async for chunk in model.astream([QUESTION]):
                delivered.extend(new_messages(chunk))

        waited(take())


@law(5)
def test_law_8_a_stream_that_is_left_keeps_what_it_delivered(data: st.DataObject) -> None:
    """A caller who closes the stream after any chunk has whole messages; with them any conversation goes on."""
    story = data.draw(stories(least=1))
    count = data.draw(st.integers(0, 40))
    way, heard = data.draw(st.sampled_from(["stream", "astream"])), data.draw(listeners)
    shop = Workshop()
    with serving(Script(story)) as server:
        model = chat(server, tools=shop.tools())
        delivered = left_after(count, way, model, LISTENERS[heard]())
        check_begins(delivered, story)
        check_goes_on(server, delivered, tools=shop.tools())


def left_after(count: int, way: str, model: Any, callbacks: list[Any]) -> list[BaseMessage]:
    """The new messages of the first chunks of a stream that is closed then."""
    delivered: list[BaseMessage] = []
    config = {"callbacks": callbacks}

    async def take() -> None:
        async with aclosing(model.astream([QUESTION], config)) as chunks:
            for _ in range(count):
                chunk = await anext(chunks, None)
                delivered.extend(new_messages(chunk) if chunk is not None else [])

    if way == "astream":
        waited(take())
        return delivered
    with closing(model.stream([QUESTION], config)) as chunks:
        for chunk in itertools.islice(chunks, count):
            delivered += new_messages(chunk)
    return delivered


def check_begins(messages: Sequence[BaseMessage], story: Sequence[Said]) -> None:
    """The messages are those that the script begins with."""
    kinds = [kind for said in story for kind in ("ai", *["tool"] * len(said.calls))]
    assert [message.type for message in messages] == kinds[: len(messages)]
    texts = [said.text for said in story]
    assert [message.text for message in messages if message.type == "ai"] == texts[: sum(message.type == "ai" for message in messages)]


@pytest.mark.parametrize("place", ["first reply", "tool", "second reply"])
@pytest.mark.parametrize("way", ["ainvoke", "astream"])
def test_law_8_a_cancelled_task_brings_what_was_complete(way: str, place: str) -> None:
    """Cancelled while it waits for the server or for a tool: the error brings what no chunk has, and history goes on from it."""
    gates = {"first reply": Gate(), "second reply": Gate()}
    inside = asyncio.Event()

    def quick() -> str:
        """Be quick."""
        return "quick"

    async def work() -> str:
        """Work, until cancelled if the test says so."""
        if place == "tool":
            inside.set()
            await asyncio.Event().wait()
        return "worked"

    holds = {name: ({2: gate} if name == place else {}) for name, gate in gates.items()}
    script = [
        Turn("Let me look.", [Call("quick"), Call("work")], holds=holds["first reply"]),
        Turn("It is warm.", characters=3, holds=holds["second reply"]),
    ]

    async def cancelled(model: Any, delivered: list[BaseMessage]) -> BaseException:
        task = asyncio.create_task(consumed(way, model, delivered))
        await (inside.wait() if place == "tool" else asyncio.to_thread(gates[place].reached.wait, 20))
        task.cancel()
        try:
            await task
        except asyncio.CancelledError as error:
            return error
        raise AssertionError("the run was not cancelled")

    with serving(Script(script)) as server:
        model = chat(server, tools=[quick, work], streaming=True)
        delivered: list[BaseMessage] = []
        error = waited(cancelled(model, delivered))
        messages = [*delivered, *new_messages(error)]
        check_answered(messages)
        kinds = {"first reply": [], "tool": ["ai", "tool", "tool"], "second reply": ["ai", "tool", "tool"]}[place]
        assert [message.type for message in messages] == kinds
        if place == "second reply":
            assert [message.text for message in messages] == ["Let me look.", "quick", "worked"]
        if place != "tool":
            assert server.exchanges[-1].disconnected.wait(20)
        check_goes_on(server, messages)


async def consumed(way: str, model: Any, delivered: list[BaseMessage]) -> None:
    """Run a model; keep what chunks bring."""
    if way == "ainvoke":
        await model.ainvoke([QUESTION])
        return
    async for chunk in model.astream([QUESTION]):
        delivered.extend(new_messages(chunk))


def test_law_8_a_listener_that_raises_loses_nothing() -> None:
    """What `on_executed` raises ends the run; the turn and its results are in the error."""
    calls = [Call("fine", {"number": number}) for number in range(3)]

    def fine(number: int) -> str:
        """Work."""
        return f"fine {number}"

    heard = threading.Event()

    def on_executed(_: Any) -> None:
        heard.set()
        raise RuntimeError("the listener broke")

    for way in WAYS:
        with serving(Script([Turn("Look.", calls), Turn("Fine.")])) as server:
            delivered: list[BaseMessage] = []
            try:
                collect(way, chat(server, tools=[fine], on_executed=on_executed), delivered)
            except RuntimeError as error:
                delivered += new_messages(error)
            assert heard.is_set()
            assert [message.type for message in delivered[:4]] == ["ai", "tool", "tool", "tool"]
            check_answered(delivered)
            check_goes_on(server, delivered)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
def test_law_8_events_that_break_off_lose_nothing(is_async: bool, carried: bool) -> None:
    """v3 events tell of messages only at the end of the run, so the error that ends it before brings them."""

    def fine() -> str:
        """Work."""
        return "fine"

    async def take(model: Any) -> None:
        async for _ in await model.astream_events([QUESTION], version="v3"):
            pass

    with serving(Script([Turn("Look.", [Call("fine")]), Failure(400)])) as server:
        model = chat(server, tools=[fine], carry_messages=carried)
        with pytest.raises(ModelError) as raised:
            waited(take(model)) if is_async else list(model.stream_events([QUESTION], version="v3"))
        assert [message.text for message in new_messages(raised.value)] == ["Look.", "fine"]


class EndBreaks(BaseCallbackHandler):
    """Raises when a run has ended."""

    raise_error = True

    def on_chain_end(self, *_: Any, **__: Any) -> None:
        """Break."""
        raise RuntimeError("the handler broke")


@pytest.mark.parametrize("way", WAYS)
def test_law_8_a_handler_that_raises_at_the_end_loses_nothing(way: str) -> None:
    """When all is done but the telling of it, the error brings the whole run, or what no chunk has."""

    def fine() -> str:
        """Work."""
        return "fine"

    with serving(Script([Turn("Look.", [Call("fine")]), Turn("Fine.")])) as server:
        delivered: list[BaseMessage] = []
        with pytest.raises(RuntimeError) as raised:
            collect(way, chat(server, tools=[fine], callbacks=[EndBreaks()]), delivered)
        assert [message.text for message in (*delivered, *new_messages(raised.value))] == ["Look.", "fine", "Fine."]


class Weather(BaseModel):
    """The weather."""

    degrees: int


NO_OUTPUT = {
    "what does not fit": lambda method: wrong_output(method),
    "a cut reply": lambda method: Turn('{"degrees": 2', finish="length"),
    "a refusal": lambda method: Turn(refusal="That I do not do."),
    "no output at all": lambda method: Turn("It is warm."),
    "an error of the server": lambda method: Failure(400),
}


def wrong_output(method: str) -> Turn:
    """A reply that does not fit the schema."""
    value = {"degrees": "many"}
    return Turn(calls=[Call("Weather", value)]) if method == "function_calling" else Turn(json.dumps(value))


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
@pytest.mark.parametrize("kind", NO_OUTPUT)
def test_law_8_a_run_without_its_output_is_in_the_error(kind: str, method: str) -> None:
    """Where the output is parsed the caller gets nothing else of a run: whatever there is in its place, the error brings what it did."""

    def fine() -> str:
        """Work."""
        return "fine"

    for way, options in itertools.product(WAYS, [{}, {"carry_messages": False}]):
        retries = int(way == "ainvoke")
        last = NO_OUTPUT[kind](method)
        with serving(Script([Turn("Look.", [Call("fine")]), *[last] * (retries + 1)])) as server:
            chain = chat(server, tools=[fine], **options).with_structured_output(Weather, method=method, retries=retries)
            with pytest.raises((ModelError, ModelRefusalError, ValueError)) as raised:
                output_of(way, chain)
        brought = new_messages(raised.value)
        check_answered(brought[:2])
        kinds = ["ai", "tool"] if isinstance(last, Failure) else ["ai", "tool", "ai"]
        assert [message.type for message in brought] == kinds, (way, raised.value)
        assert [message.text for message in brought[:2]] == ["Look.", "fine"]


def test_law_8_without_tools_an_output_that_is_not_there_is_none() -> None:
    """As of LangChain's models; the error of one that does not fit brings the reply."""
    for way in WAYS:
        with serving(Script([Turn("It is warm."), wrong_output("function_calling")])) as server:
            chain = chat(server).with_structured_output(Weather, method="function_calling")
            assert output_of(way, chain) is None
            with pytest.raises(ValueError) as raised:
                output_of(way, chain)
        assert [message.type for message in new_messages(raised.value)] == ["ai"]


def output_of(way: str, chain: Any) -> Any:
    """The output of a chain; what is a stream is read to its end."""
    if way == "invoke":
        return chain.invoke([QUESTION])
    if way == "stream":
        return next(reversed([*chain.stream([QUESTION])]), None)
    if way == "ainvoke":
        return waited(chain.ainvoke([QUESTION]))

    async def take() -> Any:
        return next(reversed([part async for part in chain.astream([QUESTION])]), None)

    return waited(take())


class BudgetBreaks(BaseCallbackHandler):
    """A guard that raises when a certain reply is whole.

    Args:
        number: Which reply that is.
        error: What it raises.
    """

    raise_error = True

    def __init__(self, number: int, error: type[BaseException] = RuntimeError) -> None:
        self._left = number
        self._error = error

    def on_llm_end(self, *_: Any, **__: Any) -> None:
        """Break at this reply."""
        self._left -= 1
        if not self._left:
            raise self._error("the budget is spent")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number", [1, 2])
def test_law_8_a_handler_that_raises_at_the_end_of_a_reply_does_not_lose_it(way: str, number: int) -> None:
    """The reply is whole and paid: the error brings it, its calls answered as not run; with tools, without, and inside a wrapper."""

    def fine() -> str:
        """Work."""
        return "fine"

    tools: dict[str, Any] = {"tools": [fine]}
    several = [tools, {**tools, "middleware": [Around()]}, {**tools, "output_version": "v1"}, {}]
    for options, extra in zip(several, itertools.islice(itertools.cycle([Listener, Tap, EventTap]), number, None), strict=False):
        calls = [Call("fine")] if options else []
        kind = Stop if way == "invoke" else RuntimeError
        guard = BudgetBreaks(number if options else 1, kind)
        with serving(Script([Turn("Look.", calls), Turn("It is fine.")])) as server:
            delivered: list[BaseMessage] = []
            with pytest.raises(kind) as raised:
                collect(way, chat(server, callbacks=[guard, extra()], **options), delivered)
            messages = [*delivered, *new_messages(raised.value)]
            check_answered(messages)
            said = ["Look.", "fine", "It is fine."] if number == 2 else ["Look.", '{"error": "cancelled before it ran"}']
            assert [message.text for message in messages] == (said if options else ["Look."])
            assert all(message.id for message in messages)
            assert all("finish_reason" in message.response_metadata for message in messages if isinstance(message, AIMessage))
            check_goes_on(server, messages)


@law(4)
def test_law_8_a_second_run_starts_from_what_was_kept(data: st.DataObject) -> None:
    """After a failure the run that goes on from the kept messages ends as the first would have."""
    story = data.draw(stories(turns=3, least=2))
    broken = data.draw(st.integers(1, len(story) - 1))
    with serving(Script([*story[:broken], data.draw(failures), *story[broken:]])) as server:
        model = chat(server, tools=Workshop().tools())
        first = run(data.draw(ways), model, [QUESTION], listeners=data.draw(listeners))
        second = run(data.draw(ways), model, [QUESTION, *first.new], listeners=data.draw(listeners))
        assert second.error is None, second.error
        check_told([*first.new, *second.new], story)
