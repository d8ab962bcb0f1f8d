"""Servers that speak a vendor's wire in their own way: what their errors, accounts, refusals and repeats become of a run."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from langchain_core.exceptions import ModelError, OutputParserException
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel

from langchain_autotools import ChatAnthropic, ChatDeepSeek, ChatGroq, ChatOpenAI, RetryPolicy, StreamError, new_messages, stop_reason
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.providers._encode.encoder import origin_of
from tests.contract.talk import WAYS, run_in
from tests.contract.wires import WIRES, Wire
from tests.support.anthropic_server import AnthropicServer
from tests.support.google_server import GoogleServer
from tests.support.http_server import Exchange, HttpReply
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import Asked, chunk_of, event
from tests.support.pairwise import by_turns
from tests.support.script import Call, Events, Failure, Raw, Reply, Turn

QUESTION = "How warm is it?"
ASKED = Asked(0, "any", True, False)
ROLE = chunk_of(ASKED, {"role": "assistant", "content": ""})
TEXT = chunk_of(ASKED, {"content": "Hello"})
FAST = RetryPolicy(wait_scale=0)


@pytest.fixture
def cities() -> list[str]:
    """The cities that `look` was asked about."""
    return []


@pytest.fixture
def look(cities: list[str]) -> Any:
    """A tool that runs."""

    @tool
    def look(city: str = "nowhere") -> str:
        """Look at a city."""
        cities.append(city)
        return f"{city} is fine"

    return look


def chat_call(arguments: str, /, **more: Any) -> dict[str, Any]:
    """An event with a whole call."""
    return chunk_of(ASKED, {"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "look", "arguments": arguments}, **more}]})


def chat_model(server: OpenAIServer, **more: Any) -> ChatOpenAI:
    """A model that talks to the server and never waits."""
    return ChatOpenAI(**{"model": "any", "base_url": server.url, "api_key": "k", "retry": FAST, **more})


# ---------------------------------------------------------------------------------------------- frames of errors

ZEROS = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
ERROR_FRAMES: dict[str, tuple[Any, str, int]] = {
    "type": ({"choices": None, "error_type": "invalid_request", "note": "too hot"}, "too hot", 1),
    "minimax": ({"base_resp": {"status_code": 2013, "status_msg": "too hot"}, "usage": ZEROS, "choices": []}, "too hot", 1),
    "minimax busy": ({"base_resp": {"status_code": 1002, "status_msg": "too hot"}, "choices": None}, "too hot", 2),
    "qianfan": ({"error_code": 336003, "error_msg": "too hot"}, "too hot", 2),
    "dashscope": ({"code": "InvalidParameter", "message": "too hot", "request_id": "r"}, "too hot", 1),
    "dashscope busy": ({"code": "Throttling.RateQuota", "message": "too hot", "usage": ZEROS}, "too hot", 2),
    "fastapi": ({"detail": [{"loc": ["body", "tools"], "msg": "too hot"}]}, "too hot", 1),
    "fastapi text": ({"detail": "too hot"}, "too hot", 2),
    "status code": ({"statusCode": 400, "msg": "too hot"}, "too hot", 1),
    "object": ({"object": "error", "reason": "too hot"}, "too hot", 2),
    "err": ({"err_code": "401", "err_msg": "too hot"}, "too hot", 1),
    "errors": ({"choices": [], "errors": ["too hot"]}, "too hot", 2),
}


@pytest.mark.parametrize(("way", "name"), by_turns(WAYS, ERROR_FRAMES))
async def test_a_frame_that_says_it_is_an_error_is_the_vendors(way: str, name: str, look: Any, cities: list[str]) -> None:
    """Before anything, after text and after a whole call, in a stream and as a whole body: it is raised in the vendor's words, no call
    runs, and only one that may pass is asked for again (wire quirk E-16)."""
    frame, words, requests = ERROR_FRAMES[name]
    for before in ([], [ROLE, TEXT], [ROLE, chat_call('{"city": "Rome"}')]):
        with OpenAIServer(lambda _, before=before: Events([*before, frame], frame)) as server:  # type: ignore[misc]
            with pytest.raises(ModelError, match=words):
                await run_in(way, chat_model(server, tools=[look], max_retries=1), QUESTION)
            assert len(server.requests) == (1 if before == [ROLE, TEXT] and "stream" in way else requests)
    assert cities == []


@pytest.mark.parametrize("data", [b"{}", b'{"reason": "too hot"}', b'{"error": null, "message": "too hot"}', b'"too hot"', b"too hot"])
def test_an_event_named_error_is_an_error_whatever_it_holds(data: bytes) -> None:
    """The name that an event has in the stream is enough (wire quirk E-16)."""
    with OpenAIServer([Raw([event(ROLE), event(TEXT), b"event: error\ndata: " + data + b"\n\ndata: [DONE]\n\n"])]) as server:
        with pytest.raises(ModelError, match="too hot|without a word"):
            list(chat_model(server).stream(QUESTION))


FINE_FRAMES: list[Mapping[str, Any]] = [
    {"choices": [], "prompt_filter_results": [{"prompt_index": 0}], "id": "", "model": "", "object": ""},
    {"type": "ping"},
    {"choices": None, "base_resp": {"status_code": 0, "status_msg": "success"}},
    {"code": 200, "message": "success", "error_code": 0, "error_msg": "", "error": None},
]


@pytest.mark.parametrize("way", WAYS[1:4:2])
@pytest.mark.parametrize("frame", FINE_FRAMES, ids=["filter", "ping", "base_resp", "code"])
async def test_another_frame_is_passed_over_and_done_alone_does_not_end_a_reply_after_it(
    way: str, frame: Any, look: Any, cities: list[str]
) -> None:
    """It may be an error of a kind that nobody knows: with a finish reason the reply is whole, with `[DONE]` alone its calls do not run
    (wire quirk E-16)."""
    call = chat_call('{"city": "Rome"}')
    with OpenAIServer([Events([frame, ROLE, call, frame, chunk_of(ASKED, {}, "tool_calls")]), Turn("Fine.")]) as server:
        assert (await run_in(way, chat_model(server, tools=[look]), QUESTION)).message.text == "Fine."
    assert cities == ["Rome"]
    with OpenAIServer([Events([ROLE, TEXT, call, frame]), Turn("Sorry.")]) as server:
        ran = await run_in(way, chat_model(server, tools=[look]), QUESTION)
    assert cities == ["Rome"]
    assert ran.new[0].response_metadata["finish_reason"] == "incomplete"


def _anthropic_events() -> list[dict[str, Any]]:
    head = {"id": "msg_1", "model": "m", "content": [], "usage": {"input_tokens": 1}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hello"}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
    return [{"type": "message_start", "message": head}, block, end, {"type": "message_stop"}]


def _responses_events() -> list[dict[str, Any]]:
    part = {"type": "output_text", "text": "Hello", "annotations": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    whole = {"id": "r", "object": "response", "status": "completed", "model": "any", "output": [item]}
    return [{"type": "response.output_item.done", "output_index": 0, "item": item}, {"type": "response.completed", "response": whole}]


def _google_events() -> list[dict[str, Any]]:
    return [{"candidates": [{"content": {"role": "model", "parts": [{"text": "Hello"}]}, "finishReason": "STOP"}], "modelVersion": "m"}]


def _ollama_events() -> list[dict[str, Any]]:
    said = {"model": "any", "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", "content": "Hello"}}
    return [{**said, "done": False}, {**said, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}]


OTHER_WIRES = {
    "openai-responses": _responses_events,
    "anthropic": _anthropic_events,
    "google": _google_events,
    "ollama": _ollama_events,
}


@pytest.mark.parametrize("wire", [row for row in WIRES if row.name in OTHER_WIRES], ids=lambda wire: wire.name)
async def test_unknown_events_of_other_wires_are_passed_over(wire: Wire) -> None:
    """Where every event says its kind, or is a reply, an unknown one says nothing."""
    events = [one for event in OTHER_WIRES[wire.name]() for one in ({"type": "provider.heartbeat", "note": 1}, event)]
    with wire.serve([Events(events)]) as server:
        assert (await run_in("stream", wire.model(server), QUESTION)).message.text == "Hello"


# ---------------------------------------------------------------------------------------------- accounts of one call

ROME, OSLO = '{"city": "Rome"}', '{ "city":"Oslo" }'


def told_by_responses(*accounts: Any) -> Events:
    """A call of Responses: its deltas, what ends them, its item, the item in the reply as a whole. None: it is not sent."""
    deltas, done, item, whole = (*accounts, None, None, None)[:4]
    call = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "look", "status": "completed"}
    place = {"output_index": 0, "item_id": "fc_1"}
    events: list[dict[str, Any]] = [{"type": "response.output_item.added", "output_index": 0, "item": {**call, "arguments": ""}}]
    events += [{"type": "response.function_call_arguments.delta", **place, "delta": one} for one in (deltas or "")]
    events += [] if done is None else [{"type": "response.function_call_arguments.done", **place, "arguments": done}]
    said = {} if item is ... else {"arguments": item}
    events.append({"type": "response.output_item.done", "output_index": 0, "item": {**call, **said}})
    output = [] if whole is None else [{**call, "arguments": whole}]
    response = {"id": "r", "object": "response", "status": "completed", "model": "any", "output": output}
    return Events([*events, {"type": "response.completed", "response": response}])


def told_by_anthropic(start: Any, deltas: str) -> Events:
    """A call of the Messages API: the input in its block's start, and the deltas."""
    block = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": start}
    written = [{"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": one}} for one in deltas]
    end = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}}
    head = {"type": "message_start", "message": {"id": "msg_1", "model": "m", "content": [], "usage": {"input_tokens": 1}}}
    begun = {"type": "content_block_start", "index": 0, "content_block": block}
    return Events([head, begun, *written, {"type": "content_block_stop", "index": 0}, end, {"type": "message_stop"}])


def told_by_chat(deltas: str, whole: Any, call_id: str | None = "call_1") -> Events:
    """A call of chat completions in pieces, and once more in a whole message."""
    head = {"index": 0, "id": call_id, "function": {"name": "look", "arguments": ""}}
    pieces = [chunk_of(ASKED, {"tool_calls": [one]}) for one in [head, *({"index": 0, "function": {"arguments": one}} for one in deltas)]]
    message = {"role": "assistant", "tool_calls": [{"id": call_id, "function": {"name": "look", "arguments": whole}}]}
    return Events([ROLE, *pieces, {**ROLE, "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}])


def told_nested_and_flat(nested: str, flat: Any) -> Events:
    """A whole call of chat completions whose arguments are inside and beside `function`."""
    return Events([ROLE, chat_call(nested, arguments=flat), chunk_of(ASKED, {}, "tool_calls")])


def told_by_google(whole: Any, path: str, ended: bool = True) -> Events:
    """A call of generateContent whole and in pieces."""
    call = {"name": "look", "args": whole, "partialArgs": [{"jsonPath": "$.city", "stringValue": path}], "willContinue": True}
    parts = [{"functionCall": call}, *([{"functionCall": {}}] if ended else [])]
    said = [{"candidates": [{"content": {"role": "model", "parts": [part]}}], "modelVersion": "m"} for part in parts]
    return Events([*said, {"candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "STOP"}], "modelVersion": "m"}])


RUNS, REFUSED, EMPTY = "Rome", "", "nowhere"
TOLD: list[tuple[str, Events, str]] = [
    *(("openai-responses", told_by_responses(ROME, None, empty), RUNS) for empty in ("", None, ..., "{}", "null", "none", {})),
    *(
        ("openai-responses", told_by_responses(ROME[:11], done, item, whole), said)
        for done, item, whole, said in [
            (None, "{}", None, REFUSED),
            (None, None, None, REFUSED),
            (ROME, "{}", "{}", RUNS),
            (None, ROME, None, RUNS),
            (None, OSLO, None, REFUSED),
            (None, "", ROME, RUNS),
        ]
    ),
    ("openai-responses", told_by_responses(ROME, ROME, '{"city":"Rome"}', {"city": "Rome"}), RUNS),
    ("openai-responses", told_by_responses(ROME, None, OSLO), REFUSED),
    ("openai-responses", told_by_responses(ROME, OSLO, ROME), REFUSED),
    ("openai-responses", told_by_responses(None, None, ROME, OSLO), REFUSED),
    ("openai-responses", told_by_responses("{}", "", None, "null"), EMPTY),
    ("anthropic", told_by_anthropic({}, ROME), RUNS),
    ("anthropic", told_by_anthropic({"city": "Rome"}, ROME[:9]), RUNS),
    ("anthropic", told_by_anthropic({"city": "Oslo"}, ROME), REFUSED),
    ("anthropic", told_by_anthropic({"city": "Rome"}, ""), RUNS),
    ("openai-chat", told_by_chat(ROME, '{"city":"Rome"}'), RUNS),
    ("openai-chat", told_by_chat(ROME[:9], {"city": "Rome"}, None), RUNS),
    ("openai-chat", told_by_chat(ROME, "{}"), RUNS),
    ("openai-chat", told_by_chat(ROME, OSLO), REFUSED),
    ("openai-chat", told_by_chat(ROME, OSLO, None), REFUSED),
    ("openai-chat", told_nested_and_flat("{}", ROME), RUNS),
    ("openai-chat", told_nested_and_flat(ROME, {"city": "Oslo"}), REFUSED),
    ("google", told_by_google({"city": "Rome"}, "Rome"), RUNS),
    ("google", told_by_google({"city": "Oslo"}, "Rome"), REFUSED),
    ("google", told_by_google({}, "Rome"), RUNS),
]


@pytest.mark.parametrize(("number", "wire", "told", "city"), [(number, *told) for number, told in enumerate(TOLD)], ids=str)
async def test_accounts_of_one_call_agree_or_it_does_not_run(
    number: int, wire: str, told: Events, city: str, look: Any, cities: list[str]
) -> None:
    """Compared as values: one object wins over empty accounts and over pieces of itself; two different ones, and pieces alone, are refused
    (wire quirks P-02, P-11, C-02, A-33, A-28, G-05)."""
    row = next(row for row in WIRES if row.name == wire)
    with row.serve([told, Turn("Fine.")]) as server:
        ran = await run_in(("stream", "astream")[number % 2], row.model(server, tools=[look]), QUESTION)
    assert cities == ([city] if city else [])
    assert [message.status for message in ran.new if message.type == "tool"] == ["success" if city else "error"]  # type: ignore[attr-defined]


# ---------------------------------------------------------------------------------------------- what a refusal teaches

MISSED = "The `reasoning_content` in the thinking mode must be passed back to the API."
EXTRA = "messages.1.reasoning_content: Extra inputs are not permitted"


def thoughtful(server: OpenAIServer, question: str = "Hi") -> list[BaseMessage]:
    """A history with a call, and the thoughts that this server's model had."""
    call: Any = {"type": "tool_call", "id": "call_1", "name": "look", "args": {}}
    own = {KEY: {"origin": origin_of(server.url, "any")}}
    said = AIMessage("", tool_calls=[call], additional_kwargs={"reasoning_content": "Hm"}, response_metadata=own)
    return [HumanMessage(question), said, ToolMessage("ok", tool_call_id="call_1")]


def has_thoughts(exchange: Exchange) -> bool:
    """Whether a request sends thoughts."""
    return any("reasoning_content" in message for message in exchange.json["messages"])


@pytest.mark.parametrize("way", WAYS)
async def test_servers_of_one_name_that_want_the_opposite_are_asked_a_few_times(way: str) -> None:
    """One demands thoughts, the other refuses them, by turns: the rule changes its direction once, then the refusal is raised, whatever
    `max_retries` is (wire quirk R-08)."""

    def picky(exchange: Exchange) -> Reply:
        return Failure(400, EXTRA if has_thoughts(exchange) else MISSED, "invalid_request_error")

    with OpenAIServer(picky, rules=None) as server:
        model = chat_model(server, max_retries=0)
        for most in (3, 2, 2):
            with pytest.raises(ModelError, match="reasoning_content"):
                await run_in(way, model, thoughtful(server))
            assert 0 < len(server.exchanges) <= most
            server.exchanges.clear()


FILTERED = [
    Failure(400, "Your prompt holds 'reasoning_content', which is not permitted.", "invalid_request_error"),
    Failure(400, "reasoning_content: not allowed", "invalid_request_error", "content_filter"),
    Failure(400, "The maximum context length is 8 tokens: unsupported reasoning_content", code="context_length_exceeded"),
    Failure(429, "No more reasoning_content is permitted", code="insufficient_quota"),
    Failure(403, EXTRA),
    Failure(400, "Something about reasoning_content went wrong."),
]


@pytest.mark.parametrize(("number", "refusal"), [*enumerate(FILTERED)], ids=str)
def test_words_that_are_not_the_servers_own_teach_nothing(number: int, refusal: Failure) -> None:
    """A filter that quotes the user, refusals for length and quota, another status, no word for unknown or missing: nothing is changed, and
    the next history keeps its bytes (wire quirk R-08)."""
    question = "What is `reasoning_content`?" if number == 0 else "Hi"
    with OpenAIServer([refusal, Turn("ok")], rules=None) as server:
        model = chat_model(server, max_retries=0)
        with pytest.raises(ModelError):
            model.invoke(thoughtful(server, question))
        assert model.invoke(thoughtful(server)).text == "ok"
        assert [has_thoughts(exchange) for exchange in server.exchanges] == [True, True]


def test_what_a_refused_form_would_have_taught_is_not_kept() -> None:
    """A changed request that is refused as well taught nothing."""
    refusals = [Failure(400, EXTRA, param="messages.1.reasoning_content"), Failure(400, "You asked too much."), Turn("ok")]
    with OpenAIServer(refusals, rules=None) as server:
        model = chat_model(server, max_retries=0)
        with pytest.raises(ModelError, match="too much"):
            model.invoke(thoughtful(server))
        assert model.invoke(thoughtful(server)).text == "ok"
        assert [has_thoughts(exchange) for exchange in server.exchanges] == [True, False, True]


def test_many_threads_learn_one_form() -> None:
    """Requests that are refused at once all succeed, with one change each, and those that follow are not refused."""

    def picky(exchange: Exchange) -> Reply:
        return Failure(422, EXTRA) if has_thoughts(exchange) else Turn("ok")

    with OpenAIServer(picky, rules=None) as server, ThreadPoolExecutor(50) as pool:
        model = chat_model(server, max_retries=0)
        history = thoughtful(server)
        assert {message.text for message in pool.map(lambda _: model.invoke(history), range(50))} == {"ok"}
        assert len(server.exchanges) <= 100
        before = len(server.exchanges)
        assert model.invoke(history).text == "ok"
        assert len(server.exchanges) == before + 1


@pytest.mark.parametrize("way", ["invoke", "astream"])
async def test_a_changed_request_stands_inside_the_deadline(way: str, look: Any) -> None:
    """A server that refuses one form and never answers the other ends the run at its deadline."""
    over = threading.Event()

    def picky(exchange: Exchange) -> Reply:
        if has_thoughts(exchange):
            return Failure(422, EXTRA)
        if len(exchange.json["messages"]) > 1:
            over.wait(30)
        return Turn("ok")

    with OpenAIServer(picky, rules=None) as server:
        model = chat_model(server, deadline=1, tools=[look])
        await run_in(way, model, "Hi")  # the SDK is loaded
        server.exchanges.clear()
        try:
            ran = await run_in(way, model, thoughtful(server))
        finally:
            over.set()
        assert stop_reason(ran.message) == "deadline"
        assert [has_thoughts(exchange) for exchange in server.exchanges] == [True, False]


def test_what_is_learnt_is_known_to_the_whole_process() -> None:
    """A program that makes a model for each of its requests is refused once; what one key was refused says nothing of another's server."""

    def picky(exchange: Exchange) -> Reply:
        return Failure(422, EXTRA) if has_thoughts(exchange) else Turn("ok")

    with OpenAIServer(picky, rules=None) as server:
        for options, requests in (({}, 2), ({}, 1), ({"api_key": "sk-other"}, 2), ({"api_key": "sk-other"}, 1)):
            assert chat_model(server, max_retries=0, **options).invoke(thoughtful(server)).text == "ok"
            assert len(server.exchanges) == requests, options
            server.exchanges.clear()


class Weather(BaseModel):
    """The weather of a city."""

    city: str


CHOICE = Failure(400, "Thinking mode does not support this tool_choice", "invalid_request_error")
FORCED_ROWS = [row for row in WIRES if row.name in ("openai-chat", "openai-responses", "anthropic", "google")]


@pytest.mark.parametrize(("number", "wire"), [*enumerate(FORCED_ROWS)], ids=lambda value: getattr(value, "name", str(value)))
async def test_a_refused_force_goes_once_more_without_it(number: int, wire: Wire) -> None:
    """The schema's call is asked for as the model likes; what was learnt is kept; no call is an error that carries the reply, and with
    `retries` a reply to answer (wire quirk T-08)."""
    way = WAYS[number]
    called = Turn(calls=[Call("Weather", {"city": "Rome"})])
    with wire.serve([CHOICE, called, Turn("It is Rome."), Turn("It is Rome."), called]) as server:
        model = wire.model(server, max_retries=0)
        asking = model.with_structured_output(Weather, method="function_calling", include_raw=False)
        assert await _asked(way, asking) == Weather(city="Rome")
        with pytest.raises(OutputParserException, match="did not call Weather") as raised:
            await _asked(way, asking)
        assert [message.text for message in new_messages(raised.value)] == ["It is Rome."]
        again = model.with_structured_output(Weather, method="function_calling", retries=1)
        assert await _asked(way, again) == Weather(city="Rome")
        assert len(server.exchanges) == 5


async def _asked(way: str, runnable: Any) -> Any:
    if way == "invoke":
        return await asyncio.to_thread(runnable.invoke, QUESTION)
    if way == "ainvoke":
        return await runnable.ainvoke(QUESTION)
    if way == "stream":
        return (await asyncio.to_thread(lambda: list(runnable.stream(QUESTION))))[-1]
    return [one async for one in runnable.astream(QUESTION)][-1]


def test_a_refusal_that_is_not_of_force_is_raised() -> None:
    """A choice that forces nothing stays, and so does one that the user's words name."""
    for question, choice in (("Hi", "none"), ("What is tool_choice?", "any")):
        with OpenAIServer([CHOICE, Turn("ok")]) as server:
            model = chat_model(server, max_retries=0).bind_tools([Weather], tool_choice=choice)
            with pytest.raises(ModelError, match="tool_choice"):
                model.invoke(question)
            assert len(server.exchanges) == 1


@pytest.mark.parametrize("chat_class", [ChatOpenAI, ChatGroq])
def test_a_call_that_the_server_could_not_read_ends_a_run_at_its_limit(chat_class: Any, look: Any) -> None:
    """Where no call is allowed the model writes one, and Groq refuses it: the run returns, whichever class asks (wire quirk T-07)."""
    failed = {"message": "Tool choice is none, but model called a tool", "code": "tool_use_failed", "failed_generation": '{"name": "look"}'}
    refused = Raw([json.dumps({"error": failed}).encode()], "application/json", 400, framing="length")
    with OpenAIServer([Turn(calls=[Call("look", {"city": "Rome"})]), refused], rules=None) as server:
        model = chat_class(model="any", base_url=server.url, api_key="k", max_retries=0, tools=[look], max_turns=1)
        run = model.invoke(QUESTION)
        assert run.response_metadata[KEY]["stop_reason"] == "max_turns"
        assert [message.type for message in new_messages(run)] == ["ai", "tool", "ai", "tool"]


# ---------------------------------------------------------------------------------------------- thinking that must go back


def demanding(key: str, turns: list[Turn]) -> Callable[[Exchange], Reply]:
    """DeepSeek V4: every assistant message since the first call must have its thoughts as they were."""
    said: list[Turn] = []

    def reply(exchange: Exchange) -> Reply:
        asked = [message for message in exchange.json["messages"] if message["role"] == "assistant"]
        first = next((place for place, message in enumerate(asked) if message.get("tool_calls")), len(asked))
        if [message.get(key, "") for message in asked[first:]] != [turn.reasoning for turn in said[first : len(asked)]]:
            return Failure(400, MISSED, "invalid_request_error")
        said.append(turns[len(said)])
        return said[-1]

    return reply


@pytest.mark.parametrize(("number", "chat_class"), [(0, ChatDeepSeek), (1, ChatOpenAI), (2, ChatDeepSeek), (3, ChatOpenAI)])
async def test_thoughts_go_back_with_every_message_since_the_first_call(number: int, chat_class: Any, look: Any) -> None:
    """Of the final answer too, to the question after it, once the server has demanded it or is known to (wire quirk R-02); before any call
    nothing is sent back."""
    calling = Turn(reasoning="I look.", calls=[Call("look", {"city": "Rome"})])
    turns = [Turn("Hi.", reasoning="A greeting."), calling, Turn("Fine.", reasoning="It is fine."), Turn("Still.", reasoning="No change.")]
    with OpenAIServer(demanding("reasoning_content", turns), rules=None) as server:
        model = chat_class(model="any", base_url=server.url, api_key="k", max_retries=0, tools=[look])
        history: list[BaseMessage] = []
        for question in ("Hello", QUESTION, "And now?"):
            history.append(HumanMessage(question))
            history += (await run_in(WAYS[number], model, history)).new
        assert history[-1].text == "Still."
        assert len(server.exchanges) == (4 if chat_class is ChatDeepSeek else 5)
        assert "reasoning_content" not in server.messages[1][1]


def thinking_turn(*blocks: dict[str, Any], stop: str | None) -> Events:
    """A reply of the Messages API with these blocks, whole in their starts; `stop`: None where the stream breaks off in the last one."""
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "", "model": "m", "content": [], "usage": {}}}]
    for number, block in enumerate(blocks):
        thinking = block["type"] == "thinking"
        start = {**block, "thinking": ""} if thinking else block
        events.append({"type": "content_block_start", "index": number, "content_block": start})
        delta = {"type": "thinking_delta", "thinking": block.get("thinking")}
        events += [{"type": "content_block_delta", "index": number, "delta": delta}] if thinking else []
        events.append({"type": "content_block_stop", "index": number})
    if stop is None:
        return Events(events[:-1], done=False)
    end = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 1}}
    return Events([*events, end, {"type": "message_stop"}])


@pytest.mark.parametrize("way", WAYS[1:4:2])
@pytest.mark.parametrize("more", [{}, {"signature": ""}], ids=["no signature", "an empty one"])
async def test_unsigned_thinking_goes_back_to_the_server_that_sent_it(way: str, more: Any, look: Any) -> None:
    """As it came, in a run of tools and in later ones; not what was cut, and not to another server (wire quirk C-20)."""
    thought = {"type": "thinking", "thinking": "I look.", **more}
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"city": "Rome"}}
    text = {"type": "text", "text": "Fine."}
    script = [
        thinking_turn(thought, call, stop="tool_use"),
        thinking_turn({**thought, "thinking": "So."}, text, stop="end_turn"),
        thinking_turn({**thought, "thinking": "Cut"}, stop="max_tokens"),
        thinking_turn(text, stop="end_turn"),
    ]
    with AnthropicServer(script, strict=False) as server, AnthropicServer([thinking_turn(text, stop="end_turn")], strict=False) as other:
        model = ChatAnthropic(model="any", base_url=server.url, api_key="k", max_retries=0, tools=[look])
        history: list[BaseMessage] = []
        for question in (QUESTION, "And now?", "Go on."):
            history.append(HumanMessage(question))
            history += (await run_in(way, model, history)).new
        sent = [block for message in server.messages[-1] for block in message["content"] if block["type"] == "thinking"]
        assert sent == [thought, {**thought, "thinking": "So."}]
        model.model_copy(update={"anthropic_api_url": other.url}).invoke(history)
        assert "thinking" not in str(other.messages[-1])


@pytest.mark.parametrize("address", [None, "https://api.anthropic.com", "https://api.anthropic.com/v1"])
def test_the_vendor_itself_never_gets_unsigned_thinking(address: str | None) -> None:
    """It refuses it: what came unsigned from there was cut."""
    model = ChatAnthropic(model="any", base_url=address, api_key="k")
    origin = {KEY: {"origin": origin_of(model.anthropic_api_url, "any")}}
    said = AIMessage([{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Hi."}], response_metadata=origin)
    body = model._exchange([HumanMessage("Hi"), said, HumanMessage("Go on")], None, {}, stream=False).body
    assert b"Hm" not in body and b"Hi." in body


# ---------------------------------------------------------------------------------------------- a server that streams unasked


@pytest.mark.parametrize(("number", "wire"), [*enumerate(WIRES)], ids=lambda value: getattr(value, "name", str(value)))
async def test_a_server_that_streams_unasked_is_read(number: int, wire: Wire, look: Any, cities: list[str]) -> None:
    """`invoke` gets the message that the stream makes, calls run, and of a stream that breaks off none does (wire quirk E-17)."""
    made: list[HttpReply] = []
    with wire.serve([Turn("Look.", calls=[Call("look", {"city": "Rome"})])]) as server:
        encode = server.encode
        server.encode = lambda *asked: made.append(encode(*asked)) or made[-1]  # type: ignore[method-assign, func-returns-value]
        list(wire.model(server).bind_tools([look]).stream(QUESTION))
        kind, body = made[0].headers["content-type"], b"".join(part for part in made[0].parts if isinstance(part, bytes))
        server.extend([Raw([body], kind), Turn("Fine."), Raw([body[: len(body) * 3 // 4]], kind), Turn("Sorry.")])
        model = wire.model(server, tools=[look])
        ran = await run_in(("invoke", "ainvoke")[number % 2], model, QUESTION)
        assert (ran.new[0].text, ran.new[-1].text, cities) == ("Look.", "Fine.", ["Rome"])
        with suppress(StreamError):
            await run_in(("invoke", "ainvoke")[number % 2], model, QUESTION)
        assert cities == ["Rome"]


# ---------------------------------------------------------------------------------------------- calls that come again


SIGNED, NAMED = {"thoughtSignature": "c2ln"}, {"id": "c1"}


@pytest.mark.parametrize("way", ["stream", "ainvoke"])
@pytest.mark.parametrize(
    ("marks", "runs"),
    [
        ([({"args": {"city": "Oslo"}}, SIGNED), ({}, SIGNED), ({}, {})], 1),
        ([(NAMED, {}), ({}, {})], 1),
        ([({}, SIGNED), ({}, {})], 2),
        ([(NAMED, SIGNED), ({}, {})], 1),
        ([({}, {}), ({}, {})], 2),
        ([(NAMED, {}), ({"id": "c2"}, {})], 2),
        ([({}, SIGNED), ({}, {"thoughtSignature": "c2ln2"})], 2),
        ([({}, {}), (NAMED, {})], 2),
    ],
    ids=["a later signature", "id", "the first of parallel calls is signed", "both", "none", "two ids", "two signatures", "the second's"],
)
async def test_a_call_that_comes_again_unmarked_is_a_repeat(way: str, marks: Any, runs: int, look: Any, cities: list[str]) -> None:
    """The repeat is answered as not run; two dice are rolled twice (wire quirk G-18)."""
    parts = [{"functionCall": {"name": "look", "args": {"city": "Rome"}, **call}, **beside} for call, beside in marks]
    events = [{"candidates": [{"content": {"role": "model", "parts": [part]}}], "modelVersion": "m"} for part in parts]
    end = {"finishReason": "STOP"}
    events.append({"candidates": [{"content": {"role": "model", "parts": []}, **end}], "modelVersion": "m"})
    whole = {"candidates": [{"content": {"role": "model", "parts": parts}, **end}], "modelVersion": "m"}
    row = next(row for row in WIRES if row.name == "google")
    with GoogleServer([Events(events, whole), Turn("Fine.")], strict=False) as server:
        ran = await run_in(way, row.model(server, tools=[look]), QUESTION)
    assert cities.count("Rome") == runs
    answers = [message for message in ran.new if isinstance(message, ToolMessage)]
    assert [message.status for message in answers] == ["success"] * len(cities) + ["error"] * (len(marks) - len(cities))
