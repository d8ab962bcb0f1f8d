"""Runs over the Responses API, against a server that remembers its items: reasoning, stored or not, previous ids, tools of the vendor."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

import openai
import pytest
from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, message_chunk_to_message
from langchain_core.tools import Tool
from pydantic import BaseModel

from langchain_autotools import ChatOpenAI, ConfigurationError, ModelRefusalError, new_messages
from tests.contract import talk
from tests.support.responses_server import ResponsesServer
from tests.support.script import Call, Events, Failure, Reply, Turn
from tests.support.weather import get_temperature

QUESTION = [HumanMessage("How warm is it?")]
Talk = tuple[ChatOpenAI, ResponsesServer]
Start = Callable[..., Talk]


@pytest.fixture
def start() -> Iterator[Start]:
    """A function from a script and constructor arguments to a model and its server. Afterwards: no request was refused."""
    with ExitStack() as stack:
        servers: list[ResponsesServer] = []

        def begin(script: Any, **arguments: Any) -> Talk:
            server = stack.enter_context(ResponsesServer(script))
            servers.append(server)
            known = {"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, "use_responses_api": True}
            return ChatOpenAI(**{**known, **arguments}), server

        yield begin
        assert [rejection.message for server in servers for rejection in server.rejections] == []


def thinking() -> list[Reply]:
    """Two turns with reasoning and calls, and an answer."""
    calls = [Call("get_temperature", {"city": "Paris"}), Call("get_temperature", '{ "city" : "Rome" }')]
    return [
        Turn("Let me look.", calls, reasoning="Two cities."),
        Turn(calls=[Call("get_temperature", {"city": "Oslo"})], reasoning="And one."),
        Turn("All warm.", reasoning="Done."),
        Turn("Yes."),
    ]


def kinds(server: ResponsesServer, request: int) -> list[str]:
    """The types, or roles, of a request's items."""
    return [
        item.get("type") if item.get("type") not in (None, "message") else item["role"] for item in server.exchanges[request].json["input"]
    ]


@pytest.mark.parametrize("how", ["invoke", "stream"])
def test_reasoning_goes_back_with_the_calls_of_a_callers_own_loop(start: Start, how: str) -> None:
    """Of a model that only declares its tools, too: the reasoning is before the calls that it led to."""
    asks = Turn(calls=[Call("get_temperature", '{"city":"Oslo"}')], reasoning="One city.")
    model, server = start([asks, Turn("21 °C.")], store=False, include=["reasoning.encrypted_content"])
    bound = model.bind_tools([get_temperature])
    answer = bound.invoke(QUESTION) if how == "invoke" else message_chunk_to_message(reduce(add, bound.stream(QUESTION)))
    bound.invoke([*QUESTION, answer, ToolMessage("21 °C", tool_call_id=answer.tool_calls[0]["id"])])
    assert kinds(server, 1) == ["user", "reasoning", "function_call", "function_call_output"]


ASKING = [
    {},
    {"store": True},
    {"store": False},
    {"store": False, "include": ["reasoning.encrypted_content"]},
    {"store": False, "model": "gpt-5"},
    {"output_version": "v1"},
]


@pytest.mark.parametrize("asked", ASKING, ids=json.dumps)
@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_reasoning_goes_back_with_what_follows_it(start: Start, asked: dict[str, Any], way: str) -> None:
    """Over a loop, stored or not, every request is accepted; reasoning goes back where the server can know it, and later turns too.

    Wire quirk P-05.
    """
    model, server = start(thinking(), tools=[get_temperature], **asked)
    if way == "invoke":
        new = new_messages(model.invoke(QUESTION))
    else:
        new = [message for chunk in model.stream(QUESTION) for message in new_messages(chunk)]
    model.invoke([*QUESTION, *new, HumanMessage("Sure?")])
    known = asked.get("store") is not False or asked.get("include") or asked.get("model")
    turn = ["reasoning"] if known else []
    first = ["user", *turn, "assistant", "function_call", "function_call", "function_call_output", "function_call_output"]
    second = [*first, *turn, "function_call", "function_call_output"]
    assert [kinds(server, number) for number in range(4)] == [["user"], first, second, [*second, *turn, "assistant", "user"]]
    inputs = [exchange.body.split(b'"input":')[1][:-2] for exchange in server.exchanges]
    assert all(later.startswith(earlier) for earlier, later in pairwise(inputs))
    calls = [item["arguments"] for item in server.exchanges[1].json["input"] if item.get("type") == "function_call"]
    assert calls[1] == '{ "city" : "Rome" }'
    assert server.exchanges[0].json.get("include") == (
        ["reasoning.encrypted_content"] if known and "store" in asked and not asked["store"] else None
    )


@pytest.mark.parametrize("version", [None, "v1"])
def test_the_sum_of_a_stream_is_the_message_of_invoke(start: Start, version: str | None) -> None:
    """Whole and streamed, a run says the same, reasoning included; block numbers and ids of messages apart."""
    said = []
    for way in ("invoke", "stream"):
        model, _ = start(thinking(), tools=[get_temperature], output_version=version)
        message = model.invoke(QUESTION) if way == "invoke" else talk.whole(model, talk.summed(list(model.stream(QUESTION))))
        said.append((message, new_messages(message)))
    (whole, whole_new), (summed, summed_new) = said
    assert whole.content == summed.content
    assert [message.content for message in whole_new] == [message.content for message in summed_new]
    assert whole.additional_kwargs == summed.additional_kwargs
    blocks = [block["type"] for block in whole_new[0].content_blocks]
    assert blocks[:2] == ["reasoning", "text"]
    if version is None:
        assert whole_new[0].additional_kwargs == {"reasoning_content": "Two cities."}


def test_only_what_is_new_is_sent_where_the_server_has_the_rest(start: Start) -> None:
    """With `use_previous_response_id` each request has the results or words since the last reply, and that reply's id.

    Wire quirk P-06.
    """
    model, server = start(thinking(), tools=[get_temperature], use_previous_response_id=True)
    new = new_messages(model.invoke(QUESTION))
    model.invoke([*QUESTION, *new, HumanMessage("Sure?")])
    assert [kinds(server, number) for number in range(4)] == [
        ["user"],
        ["function_call_output"] * 2,
        ["function_call_output"],
        ["user"],
    ]
    previous = [exchange.json.get("previous_response_id") for exchange in server.exchanges]
    assert previous == [None, *(message.response_metadata["id"] for message in new if isinstance(message, AIMessage))]


def test_items_that_the_server_has_forgotten_are_left_out_at_once(start: Start) -> None:
    """A server that refuses its own reasoning gets the same request again, as text and calls."""
    model, server = start(thinking(), tools=[get_temperature])
    new = new_messages(model.invoke(QUESTION))
    server.memory.sent.clear()
    assert model.invoke([*QUESTION, *new, HumanMessage("Sure?")]).text == "Yes."
    assert [rejection.status for rejection in server.rejections] == [404]
    assert "reasoning" not in kinds(server, -1)
    server.rejections.clear()


def test_an_edited_message_goes_back_as_text_and_calls(start: Start) -> None:
    """Whoever edits a reply's text or arguments gets what he wrote, without reasoning that no longer fits."""
    model, server = start(thinking(), tools=[get_temperature])
    first = new_messages(model.invoke(QUESTION))[0]
    assert isinstance(first, AIMessage)
    results = [ToolMessage("cold", tool_call_id=call["id"]) for call in first.tool_calls]
    shorter = first.model_copy(update={"content": "Look."})
    changed = first.model_copy(update={"tool_calls": [{**first.tool_calls[0], "args": {"city": "Bonn"}}, first.tool_calls[1]]})
    for edited, said in ((shorter, "Look."), (changed, '{"city":"Bonn"}')):
        server.extend([Turn("Fine.")])
        model.invoke([*QUESTION, edited, *results, HumanMessage("Go on.")])
        assert "reasoning" not in kinds(server, -1)
        assert said in [item.get("arguments") or item["content"][0]["text"] for item in server.exchanges[-1].json["input"][1:3]]


# ---------------------------------------------------------------------------------------------- replies of other kinds

SEARCH = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "warm"}}
CITED = {"type": "url_citation", "start_index": 0, "end_index": 4, "url": "https://example.org", "title": "Example"}


def response(output: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A whole response."""
    return {"id": "resp_9", "object": "response", "status": "completed", "model": "any", "output": output, **more}


def events(output: list[dict[str, Any]], **more: Any) -> Events:
    """A reply of given items, streamed without deltas and whole."""
    done = [{"type": "response.output_item.done", "output_index": number, "item": item} for number, item in enumerate(output)]
    created = {"type": "response.created", "response": response([], status="in_progress")}
    end = {"type": "response.completed", "response": response(output, **more)}
    return Events([created, *done, end], whole=response(output, **more))


def message(text: str, **more: Any) -> dict[str, Any]:
    """A message item."""
    part = {"type": "output_text", "text": text, "annotations": more.pop("annotations", [])}
    return {"id": "msg_9", "type": "message", "role": "assistant", "status": "completed", "content": [part], **more}


def ask(model: Any, way: str) -> AIMessage:
    """One turn, as it is stored."""
    if way == "invoke":
        return model.invoke(QUESTION)  # type: ignore[no-any-return]
    return next(message for chunk in model.stream(QUESTION) for message in new_messages(chunk))  # type: ignore[no-any-return]


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_tools_of_the_vendor_pass_through(start: Start, way: str) -> None:
    """What a builtin tool did is told, is never executed, and goes back unchanged; citations are told too (wire quirk P-07)."""
    output = [SEARCH, message("Warm.", annotations=[CITED], phase="final_answer")]
    model, server = start([events(output), Turn("Yes.")], tools=[{"type": "web_search"}, get_temperature])
    reply = new_messages(model.invoke(QUESTION))[0] if way == "invoke" else ask(model, way)
    assert (reply.text, reply.tool_calls) == ("Warm.", [])
    assert (reply.additional_kwargs["tool_outputs"], reply.additional_kwargs["annotations"]) == ([SEARCH], [CITED])
    server.memory.note("resp_9", output, stored=True)
    model.invoke([*QUESTION, reply, HumanMessage("Sure?")])
    sent = server.exchanges[1].json["input"]
    assert sent[1] == SEARCH
    assert sent[2] == {key: value for key, value in output[1].items() if key != "status"}
    assert [tool["type"] for tool in server.exchanges[0].json["tools"]] == ["function", "web_search"]


def test_what_a_tool_of_the_vendors_did_is_left_out_where_it_is_refused(start: Start) -> None:
    """Servers refuse keys that they sent themselves: then the same request goes as text and calls, at once."""
    found = {**SEARCH, "action": {**SEARCH["action"], "sources": [{"type": "api", "name": "oai-weather"}]}}
    refused = Failure(400, "Unknown parameter: 'input[1].action.sources'.", "invalid_request_error", "unknown_parameter")
    model, server = start([events([found, message("Warm.")]), refused, Turn("Yes.")])
    reply = model.invoke(QUESTION)
    server.memory.note("resp_9", [found, message("Warm.")], stored=True)
    assert model.invoke([*QUESTION, reply, HumanMessage("Sure?")]).text == "Yes."
    assert (kinds(server, 1), kinds(server, 2)) == (["user", "web_search_call", "assistant", "user"], ["user", "assistant", "user"])


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_tools_of_the_vendor_are_standard_blocks_in_v1(start: Start, way: str) -> None:
    """With `output_version="v1"` the content holds the server's calls, results, images and citations as LangChain's blocks, in order."""
    picture = {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": "aGk=", "output_format": "png"}
    model, _ = start([events([SEARCH, message("Warm.", annotations=[CITED]), picture])], output_version="v1")
    reply = ask(model, way)
    assert [block["type"] for block in reply.content_blocks] == ["server_tool_call", "server_tool_result", "text", "image"]
    assert reply.content_blocks[2]["annotations"][0]["url"] == "https://example.org"  # type: ignore[typeddict-item]
    assert (reply.text, reply.tool_calls) == ("Warm.", [])


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_phases_go_back(start: Start, way: str) -> None:
    """Words between calls keep the phase that the server gave them, and their place (wire quirk P-08)."""
    call = {"id": "fc_9", "type": "function_call", "call_id": "call_9", "name": "get_temperature", "arguments": '{"city":"Rome"}'}
    output = [message("Look.", id="msg_8", phase="commentary"), {**call, "status": "completed"}]
    model, server = start([events(output), Turn("21.")], tools=[get_temperature])
    server.memory.note("resp_9", output, stored=True)
    if way == "invoke":
        model.invoke(QUESTION)
    else:
        list(model.stream(QUESTION))
    assert [item.get("phase") for item in server.exchanges[1].json["input"]] == [None, "commentary", None, None]


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_a_custom_tool_gets_its_text(start: Start, way: str) -> None:
    """The free text of a custom tool is the one argument of the function, and its result goes back as that tool's output."""
    ran: list[str] = []

    def execute(code: str) -> str:
        ran.append(code)
        return "27"

    item = {"id": "ctc_9", "type": "custom_tool_call", "call_id": "call_9", "name": "execute", "input": 'print("3")', "status": "completed"}
    reasoning = {"id": "rs_9", "type": "reasoning", "summary": []}
    model, server = start([events([reasoning, item]), Turn("27.")], tools=[Tool("execute", execute, "Run code.")])
    server.memory.note("resp_9", [reasoning, item], stored=True)
    if way == "invoke":
        model.invoke(QUESTION)
    else:
        list(model.stream(QUESTION))
    assert ran == ['print("3")']
    assert server.exchanges[1].json["input"][1:] == [
        reasoning,
        {key: value for key, value in item.items() if key != "status"},
        {"type": "custom_tool_call_output", "call_id": "call_9", "output": "27"},
    ]


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_a_call_of_the_vendors_that_nobody_answers_is_not_sent(start: Start, way: str) -> None:
    """A computer call goes back with its output, which a user message holds, or a result that says so; without one, only the words."""
    call = {"id": "cu_1", "type": "computer_call", "call_id": "call_c", "action": {"type": "screenshot"}, "status": "completed"}
    model, server = start([events([message("Look."), call]), Turn("A page."), Turn("Nothing."), Turn("A page."), Turn("A page.")])
    reply = ask(model, way)
    shot = {
        "type": "computer_call_output",
        "call_id": "call_c",
        "output": {"type": "input_image", "image_url": "https://example.org/a.png"},
    }
    server.memory.note("resp_9", [message("Look."), call], stored=True)
    model.invoke([*QUESTION, reply, HumanMessage([shot])])
    model.invoke([*QUESTION, reply, HumanMessage("What now?")])
    assert kinds(server, 1) == ["user", "assistant", "computer_call", "computer_call_output"]
    assert kinds(server, 2) == ["user", "assistant", "user"]
    for content in ([shot["output"]], "https://example.org/a.png"):
        model.invoke([*QUESTION, reply, ToolMessage(content, tool_call_id="call_c", additional_kwargs={"type": "computer_call_output"})])
        assert server.exchanges[-1].json["input"] == server.exchanges[1].json["input"]


def test_an_answer_to_a_call_that_is_not_sent_is_not_sent(start: Start) -> None:
    """The call is of another server, or its message was edited: the API would refuse an answer to nothing. Words beside it go."""
    call = {"id": "cu_1", "type": "computer_call", "call_id": "call_c", "action": {"type": "screenshot"}, "status": "completed"}
    model, server = start([Turn("A page."), Turn("A page."), Turn("A page.")])
    shot = {
        "type": "computer_call_output",
        "call_id": "call_c",
        "output": {"type": "input_image", "image_url": "https://example.org/a.png"},
    }
    foreign = AIMessage([{"type": "text", "text": "Look."}, call])
    for answer in (HumanMessage([shot]), HumanMessage([shot, {"type": "text", "text": "Well?"}])):
        model.invoke([*QUESTION, foreign, answer])
    model.invoke([*QUESTION, foreign, HumanMessage([shot])], previous_response_id="resp_000000000001")
    assert kinds(server, 0) == ["user", "assistant"]
    assert kinds(server, 1) == ["user", "assistant", "user"]
    assert kinds(server, 2) == ["user", "assistant", "computer_call_output"]


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_a_call_that_its_item_calls_incomplete_never_runs(start: Start, way: str) -> None:
    """Items with status incomplete are told to the model as not run, though the response calls itself completed."""
    call = {"id": "fc_9", "type": "function_call", "call_id": "call_9", "name": "get_temperature", "arguments": '{"city":"Rome"}'}
    model, _ = start([events([{**call, "status": "incomplete"}])])
    reply = ask(model.bind_tools([get_temperature]), way)
    assert (reply.tool_calls, len(reply.invalid_tool_calls)) == ([], 1)


# ---------------------------------------------------------------------------------------------- output and errors


class Weather(BaseModel):
    """The weather."""

    degrees: int


def test_structured_output_is_asked_for_as_text(start: Start) -> None:
    """Schemas go as `text.format`, beside the verbosity; a refusal and a cut reply are errors."""
    replies = [Turn('{"degrees": 21}'), Turn(refusal="I cannot."), Turn('{"degrees": 2', finish="length")]
    model, server = start(replies, verbosity="low")
    chain = model.with_structured_output(Weather)
    assert chain.invoke(QUESTION) == Weather(degrees=21)
    text = server.exchanges[0].json["text"]
    assert (text["verbosity"], text["format"]["type"], text["format"]["strict"], "response_format" in server.exchanges[0].json) == (
        "low", "json_schema", True, False,
    )  # fmt: skip
    with pytest.raises(ModelRefusalError, match="I cannot"):
        chain.invoke(QUESTION)
    with pytest.raises(OutputParserException, match="token limit"):
        chain.invoke(QUESTION)


def test_a_failed_response_is_an_error(start: Start) -> None:
    """`response.failed` and `error` events in a stream, and a failed body, are the typed errors that they name."""
    failed = response([], status="failed", error={"code": "rate_limit_exceeded", "message": "Slow down."})
    created = {"type": "response.created", "response": response([], status="in_progress")}
    flat = {"type": "error", "code": "server_error", "message": "Slow down.", "param": None}
    vague = {"type": "error", "error": {"code": "unknown-error", "message": "Something happened.", "param": None}}
    for reply in (
        Events([created, vague, {"type": "response.failed", "response": failed}], whole=failed),
        Events([created, {"type": "response.failed", "response": failed}], whole=failed),
        Events([created, flat], whole=failed),
        Failure(429, "Slow down.", "requests", "rate_limit_exceeded"),
    ):
        model, _ = start([reply, reply])
        for call in (lambda model=model: list(model.stream(QUESTION)), lambda model=model: model.invoke(QUESTION)):
            with pytest.raises((openai.RateLimitError, openai.InternalServerError), match="Slow down"):
                call()


def test_what_this_api_does_not_have_is_refused() -> None:
    """Parameters without meaning here are errors that say so, at construction or at the call; those of this API choose it."""
    for name, value in (("seed", 1), ("seed", 0), ("presence_penalty", 0.5), ("logit_bias", {1: 1}), ("modalities", ["audio"])):
        with pytest.raises(ValueError, match=f"{name} cannot be sent"):
            ChatOpenAI(model="any", use_responses_api=True, **{name: value})
    with pytest.raises(ConfigurationError, match="seed cannot be sent"):
        ChatOpenAI(model="any", api_key="k", use_responses_api=True).invoke("x", seed=0)
    assert ChatOpenAI(model="any", use_responses_api=True, presence_penalty=0).presence_penalty == 0  # no penalty asks for nothing
    with pytest.raises(ValueError, match="rules out"):
        ChatOpenAI(model="any", use_responses_api=False, truncation="auto")
    with pytest.raises(ValueError, match="store cannot be False"):
        ChatOpenAI(model="any", use_previous_response_id=True, store=False)
    assert ChatOpenAI(model="any", reasoning={"effort": "low"}).use_responses_api is True
    assert ChatOpenAI(model="any").use_responses_api is None  # each request decides
