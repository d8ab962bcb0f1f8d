"""Turns that the vendor pauses (wire quirks C-15, C-16): the run goes on with them, and what its own tools did goes back verbatim."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from langchain_autotools import ChatAnthropic, LimitReachedError, run_usage
from tests.contract.talk import WAYS, run_in
from tests.support.anthropic_server import AnthropicServer
from tests.support.http_server import Exchange
from tests.support.script import Events, Turn
from tests.support.weather import Weather, get_temperature

SEARCH = {"type": "web_search_20250305", "name": "web_search"}
QUESTION = [HumanMessage("Search.")]
THOUGHT = {"type": "thinking", "thinking": "", "signature": "b3BhcXVl"}


def asked(number: int) -> dict[str, Any]:
    """A call of the vendor's own tool."""
    return {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": "web_search", "input": {"query": "x"}}


def found(number: int) -> dict[str, Any]:
    """What that call gave."""
    content = [{"type": "web_search_result", "url": "http://x", "title": "X", "encrypted_content": "ZW5j", "page_age": None}]
    return {"type": "web_search_tool_result", "tool_use_id": f"srvtoolu_{number}", "content": content}


def said(text: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": text}


def reply(number: int, *blocks: dict[str, Any], reason: str = "pause_turn", container: str | None = None) -> Events:
    """A reply of these blocks, streamed or whole, and the container that code ran in, if any."""
    where = {"container": {"id": container, "expires_at": "2026-11-22T12:00:00Z"}} if container else {}
    head = {"id": f"msg_{number:012d}", "type": "message", "role": "assistant", "model": "claude-test"}
    events: list[Any] = [{"type": "message_start", "message": {**head, "content": [], "usage": {"input_tokens": 10, "output_tokens": 1}}}]
    for index, block in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": reason, **where}, "usage": {"output_tokens": 5}})
    usage = {"input_tokens": 10, "output_tokens": 5}
    return Events(events, {**head, "content": list(blocks), "stop_reason": reason, "usage": usage, **where})


def model(server: AnthropicServer, **more: Any) -> ChatAnthropic:
    """A model with a tool of its own and one of the vendor's."""
    settings = {"model": "claude-test", "base_url": server.url, "api_key": "key", "max_retries": 0, "tools": [get_temperature, SEARCH]}
    return ChatAnthropic(**{**settings, **more})


def long_turn() -> list[Events]:
    """A turn that is paused twice, once between a call of the vendor's tool and its result."""
    return [
        reply(1, THOUGHT, said("Let me"), asked(1), found(1), asked(2)),
        reply(2, found(2), said(" see."), asked(3)),
        reply(3, found(3), said(" Here it is."), reason="end_turn"),
    ]


@pytest.mark.parametrize("version", [None, "v1"])
async def test_a_run_goes_on_with_a_paused_turn(version: str | None) -> None:
    """Each continuation is asked for with the content so far, unchanged, as one assistant message; texts join without a separator."""
    told: list[Any] = []
    for way in WAYS:
        with AnthropicServer(long_turn()) as server:
            ran = await run_in(way, model(server, output_version=version), QUESTION)
            assert server.rejections == []
        assert ran.message.text == "Let me see. Here it is."
        assert [message.type for message in ran.new] == ["ai", "ai", "ai"]
        assert [message.text for message in ran.new] == ["Let me", " see.", " Here it is."]
        assert ran.message.response_metadata["autotools"]["stop_reason"] == "complete"
        assert (ran.message.response_metadata["finish_reason"], ran.message.id) == ("end_turn", "msg_000000000003")
        total = run_usage(ran.message)
        assert total is not None and (total["input_tokens"], total["output_tokens"]) == (30, 15)
        sent = [messages[1:] for messages in server.messages]
        whole = [THOUGHT, said("Let me"), asked(1), found(1), asked(2), found(2), said(" see."), asked(3)]
        assert sent == [[], [{"role": "assistant", "content": whole[:5]}], [{"role": "assistant", "content": whole}]]
        bodies = [json.dumps(messages) for messages in server.messages]
        assert all(later.startswith(earlier.removesuffix("}]").removesuffix("]")) for earlier, later in pairwise(bodies))
        told.append([message.model_dump(exclude={"response_metadata"}) for message in ran.new])
    assert all(one == told[0] for one in told[1:])


async def test_histories_with_a_paused_turn_are_accepted() -> None:
    """The run message and its parts are the same input; a pause that nobody went on with loses only what has no result."""
    with AnthropicServer([*long_turn(), *[Turn("Yes.")] * 4]) as server:
        asking = model(server)
        ran = await run_in("stream", asking, QUESTION)
        later = [HumanMessage("Really?")]
        for middle in ([ran.message], ran.new, ran.new[:1], [*ran.new[:2], SystemMessage("Hurry.")]):
            await asking.ainvoke([*QUESTION, *middle, *later])
        assert server.rejections == []
        assert server.exchanges[3].body == server.exchanges[4].body
        assert server.messages[5][1]["content"] == [THOUGHT, said("Let me"), asked(1), found(1)]
        assert [block["type"] for block in server.messages[6][1]["content"]][-1] == "text"


async def test_a_paused_turn_beside_calls() -> None:
    """Calls of a paused turn run, their results go first, and a separator is where text follows results."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "get_temperature", "input": {"city": "Paris"}}
    turns = [
        reply(1, said("Look."), call, asked(1)),
        reply(2, found(1), said("Warm"), asked(2)),
        reply(3, found(2), said("."), reason="end_turn"),
    ]
    for way in ("invoke", "stream"):
        with AnthropicServer(turns) as server:
            ran = await run_in(way, model(server), QUESTION)
            assert server.rejections == []
        assert ran.message.text == "Look.\nWarm."
        assert [message.type for message in ran.new] == ["ai", "tool", "ai", "ai"]
        roles = [message["role"] for message in server.messages[2]]
        assert roles == ["user", "assistant", "user", "assistant"]


async def test_pauses_count_as_turns() -> None:
    """A vendor that pauses for ever is asked `max_turns` times, and once more for an answer."""
    with AnthropicServer(lambda exchange: reply(exchange.number, asked(exchange.number), found(exchange.number))) as server:
        ran = await run_in("stream", model(server, max_turns=3, no_progress=None), QUESTION)
        assert (len(server.exchanges), ran.message.response_metadata["autotools"]["stop_reason"]) == (4, "max_turns")
        assert server.requests[-1]["tool_choice"] == {"type": "none"}
        with pytest.raises(LimitReachedError):
            model(server, max_turns=1, on_limit="raise").invoke(QUESTION)
        assert server.rejections == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", [None, "v1"])
async def test_pauses_that_bring_nothing_end_the_run(way: str, version: str | None) -> None:
    """Compactions alone, each with other words, are no progress: after three the model is asked once more, not 25 times."""

    def compacted(exchange: Exchange) -> Events:
        return reply(exchange.number, {"type": "compaction", "content": f"Summary {exchange.number}."}, reason="compaction")

    asking = {"compaction": {"trigger": {"type": "input_tokens", "value": 50_000}}}
    with AnthropicServer(compacted, strict=False) as server:
        ran = await run_in(way, model(server, output_version=version), QUESTION, **asking)
        assert (len(server.exchanges), ran.message.response_metadata["autotools"]["stop_reason"]) == (4, "no_progress")
        with pytest.raises(LimitReachedError, match="no_progress"):
            await run_in(way, model(server, output_version=version, on_limit="raise"), QUESTION, **asking)


SUMMARY = {"type": "compaction", "content": "They want a search.", "encrypted_content": "ZW5j", "signature": "c2ln"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", [None, "v1"])
async def test_a_compaction_that_is_asked_for_is_made_once(way: str, version: str | None) -> None:
    """The first request of a run asks for it; the summary is first in all later ones, in place of what it summarizes."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "get_temperature", "input": {"city": "Paris"}}

    def answered(exchange: Exchange) -> Events:
        if "compaction" in exchange.json:
            return reply(exchange.number, SUMMARY, reason="compaction")
        called = any(block["type"] == "tool_use" for message in exchange.json["messages"] for block in message["content"])
        return reply(exchange.number, said("Done."), reason="end_turn") if called else reply(exchange.number, call, reason="tool_use")

    history = [HumanMessage("Hello."), AIMessage("Hello."), *QUESTION]
    with AnthropicServer(answered, strict=False) as server:
        asking = model(server, output_version=version)
        ran = await run_in(way, asking, history, compaction={"type": "summarize"})
        assert (ran.message.text, ran.message.response_metadata["autotools"]["stop_reason"]) == ("Done.", "complete")
        assert ["compaction" in request for request in server.requests] == [True, False, False]
        assert [len(messages) for messages in server.messages] == [3, 1, 2]
        await run_in(way, asking, [*history, *ran.new, HumanMessage("Thanks.")])
        for messages in server.messages[1:]:
            assert (messages[0]["role"], messages[0]["content"][0]) == ("assistant", SUMMARY)
        assert all("compact-2026-09-04" in exchange.headers["anthropic-beta"] for exchange in server.exchanges)
        other = model(server, model="another", output_version=version)
        await run_in(way, other, [*history, *ran.new, HumanMessage("Thanks.")])
        assert server.messages[-1][0]["content"] == [said("Hello.")]


async def test_pauses_that_bring_something_go_on() -> None:
    """Each pause with other blocks is progress; the same search again and again is none, whatever its ids."""

    def searched(exchange: Exchange) -> Events:
        query = {"query": f"x{exchange.number}" if exchange.number < 6 else "x"}
        return reply(exchange.number, {**asked(exchange.number), "input": query}, found(exchange.number))

    with AnthropicServer(searched, strict=False) as server:
        ran = await run_in("stream", model(server), QUESTION)
        assert (len(server.exchanges), ran.message.response_metadata["autotools"]["stop_reason"]) == (10, "no_progress")


def test_a_forced_choice_holds_for_the_first_request() -> None:
    """The continuation of a paused turn is not forced again."""
    with AnthropicServer([reply(1, asked(1), found(1)), Turn("Done.")]) as server:
        model(server).invoke(QUESTION, tool_choice="any")
        assert [request.get("tool_choice") for request in server.requests] == [{"type": "any"}, None]


def test_structured_output_is_read_after_the_pause() -> None:
    """What was said before the pause is no part of the output."""
    with AnthropicServer(
        [reply(1, said("Let me search."), asked(1)), reply(2, found(1), said('{"city": "Paris", "degrees": 21}'), reason="end_turn")]
    ) as server:
        assert model(server).with_structured_output(Weather, method="json_schema").invoke(QUESTION) == Weather(city="Paris", degrees=21)


@pytest.mark.parametrize("way", WAYS)
async def test_without_tools_of_its_own_a_pause_is_the_callers(way: str) -> None:
    """A model that runs nothing returns the paused turn; sent again, it goes on."""
    with AnthropicServer([reply(1, asked(1)), Turn("Found."), Turn("Found.")]) as server:
        bound = model(server, tools=()).bind_tools([SEARCH])
        ran = await run_in(way, bound, QUESTION)
        assert isinstance(ran.message, AIMessage) and ran.message.response_metadata["finish_reason"] == "pause_turn"
        assert (await run_in(way, bound, [*QUESTION, *ran.new])).message.text == "Found."
        assert server.messages[1][1:] == [{"role": "assistant", "content": [asked(1)]}]
        assert (server.requests[0]["tools"], server.rejections) == ([SEARCH], [])


def test_the_server_knows_its_own_blocks() -> None:
    """The strict server refuses blocks that it did not write, and a call of its tools that was left open."""
    with AnthropicServer([reply(1, asked(1))]) as server:
        paused = model(server, tools=()).bind_tools([SEARCH]).invoke(QUESTION)
        changed = paused.model_copy(update={"content": [asked(7)]})
        with pytest.raises(Exception, match="Invalid `signature` in `server_tool_use`"):
            model(server).invoke([*QUESTION, changed])


@pytest.mark.parametrize("way", WAYS)
async def test_code_of_the_vendors_that_calls_our_tools_stays_open(way: str) -> None:
    """Code that runs at the vendor calls our tool in one turn after another and ends in the last: what asked for it stays where it was.

    Wire quirk C-19.
    """

    def called(number: int) -> dict[str, Any]:
        caller = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
        return {"type": "tool_use", "id": f"toolu_{number}", "name": "get_temperature", "input": {"city": "Rome"}, "caller": caller}

    replies = [reply(1, asked(1), called(1), reason="tool_use"), reply(2, called(2), reason="tool_use")]
    with AnthropicServer([*replies, reply(3, found(1), said("Warm."), reason="end_turn")]) as server:
        ran = await run_in(way, model(server, no_progress=None), QUESTION)
        assert (ran.message.text, server.rejections) == ("Warm.", [])
        assert server.messages[2][1]["content"] == [asked(1), called(1)]
        assert server.messages[2][: len(server.messages[1])] == server.messages[1]


@pytest.mark.parametrize("way", WAYS)
async def test_code_that_waits_for_a_call_goes_on_in_its_container(way: str) -> None:
    """The vendor refuses results of calls that its code made without the container it runs in; later questions begin a new one."""
    code = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {"code": "x"}}
    caller = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
    call = {"type": "tool_use", "id": "toolu_1", "name": "get_temperature", "input": {"city": "Paris"}, "caller": caller}
    output = {"type": "code_execution_result", "stdout": "21", "stderr": "", "return_code": 0, "content": []}
    done = {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": output}
    turns = [reply(1, code, call, reason="tool_use", container="c1"), reply(2, done, said("21."), reason="end_turn", container="c1")]
    skills: list[Any] = [{"type": "anthropic", "skill_id": "pptx"}]
    with AnthropicServer([*turns, *turns, *[Turn("Yes.")] * 3], strict=False) as server:
        ran = await run_in(way, model(server), QUESTION)
        await run_in(way, model(server, container={"skills": skills}), QUESTION)
        later = [*QUESTION, *ran.new, HumanMessage("Really?")]
        await run_in(way, model(server), later)
        await run_in(way, model(server, reuse_last_container=True), later)
        await run_in(way, model(server, reuse_last_container=True, container="c2"), later)
        sent = [request.get("container") for request in server.requests]
    assert sent == [None, "c1", {"skills": skills}, {"skills": skills, "id": "c1"}, None, "c1", "c2"]
