"""One history works on every provider: what a run of any row made is accepted by the strict server of every row, and secrets stay home."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, messages_from_dict, messages_to_dict

from langchain_autotools import UnsupportedFeatureError
from tests.contract.stories import PIXEL, QUESTION, THOUGHT, TOOLS, history, opaque, script
from tests.contract.talk import WAYS, Start, Talk, run_in
from tests.contract.wires import ROWS
from tests.support.script import Call, Turn

BY_NAME = {row.name: row for row in ROWS}
GO_ON = HumanMessage("Go on.")


def sent(talk: Talk, request: int = -1) -> str:
    """A request as text, without the escapes of JSON."""
    return json.dumps(talk.server.exchanges[request].json, ensure_ascii=False)


@pytest.mark.parametrize("origin", BY_NAME)
async def test_a_history_from_every_row_is_accepted(start: Start, origin: str) -> None:
    """A run of one row goes on at every other, and at another server of the same: whole, as parts, as v1 blocks stored and read again,
    with more calls on top. What only its own server may see is not sent."""
    message, new = history(BY_NAME[origin])
    _, standard = history(BY_NAME[origin], "v1")
    stored = messages_from_dict(json.loads(json.dumps(messages_to_dict(list(standard)))))
    for number, middle in enumerate(([message], list(new), stored)):
        talk = start([Turn("Again.", [Call("get_temperature", {"city": "Rome"})], reasoning=THOUGHT[::-1]), Turn("Fine.")], tools=TOOLS)
        ran = await run_in(WAYS[number], talk.model, [*QUESTION, *middle, GO_ON])
        assert ran.message.text == "Again.\nFine."
        body = sent(talk, 0)
        assert [secret for secret in opaque(standard) | opaque(new) if secret in body] == []
        assert all(text in body for text in ("Let me look.", "Once more.", "21 °C.", "Zürich: 21 °C", "Atlantis", PIXEL))


async def test_another_model_of_the_same_server_is_not_sent_what_is_sealed(start: Start, wire: Any) -> None:
    """Signatures and the like belong to a model: another one gets texts, calls and results. At home the history is accepted as it is."""
    talk = start([*script(wire), Turn("Fine."), Turn("Fine.")], tools=TOOLS)
    ran = await run_in("ainvoke", talk.model, QUESTION)
    assert (await run_in("invoke", talk.model, [*QUESTION, *ran.new, GO_ON])).message.text == "Fine."
    other = wire.model(talk.server, tools=TOOLS, model="other")
    assert (await run_in("invoke", other, [*QUESTION, *ran.new, GO_ON])).message.text == "Fine."
    assert [secret for secret in opaque(tuple(ran.new)) if secret in sent(talk)] == []


@pytest.mark.parametrize("times", ["many", "few"])
async def test_a_conversation_that_wanders_through_every_row(start: Start, wire: Any, times: str) -> None:
    """One history is continued at every row in turn, each with calls of its own, and comes back to where it began."""
    rows = [row for row in ROWS[:: {"many": 1, "few": 3}[times]] if row is not wire]
    replies = [Turn("So.", [Call("get_temperature", {"city": "Oslo"})], reasoning=THOUGHT), Turn("Cold.")]
    home = start([*replies, Turn("Home.")], tools=TOOLS)
    talked = [*QUESTION, *(await run_in("invoke", home.model, QUESTION)).new]
    for row in rows:
        with row.serve(replies) as server:
            ran = await run_in("stream", row.model(server, tools=TOOLS), [*talked, GO_ON])
            assert [rejection.message for rejection in server.rejections] == []
        talked += [GO_ON, ran.message]
    assert (await run_in("astream", home.model, [*talked, GO_ON])).message.text == "Home."


async def test_a_system_message_alone_is_refused_where_it_is_no_request(start: Start, wire: Any) -> None:
    """In words, before anything is sent; the other vendors take it, or say themselves what is missing."""
    talk = start([Turn("Fine.")])
    if wire.name.startswith(("anthropic", "google")):
        with pytest.raises(UnsupportedFeatureError, match="add a HumanMessage"):
            await run_in("invoke", talk.model, [SystemMessage("Be brief.")])
        assert not talk.server.exchanges
    elif wire.name != "mistralai":  # whose own error says that the last message must be the user's
        assert (await run_in("invoke", talk.model, [SystemMessage("Be brief.")])).message.text == "Fine."


def foreign() -> list[Any]:
    """A history that no class of ours has written: ids that no server takes, used twice; blocks of several vendors; empty texts."""
    image = f"data:image/png;base64,{PIXEL}"
    return [
        SystemMessage("You are one of many.", additional_kwargs={"__openai_role__": "developer"}),
        SystemMessage([{"type": "text", "text": "Be"}, {"type": "text", "text": " brief."}]),
        HumanMessage([{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": image}}]),
        AIMessage(
            [
                {"type": "reasoning", "reasoning": "Foreign thought.", "extras": {"signature": "foreign-signature"}},
                {"type": "thinking", "thinking": "Foreign thought.", "signature": "foreign-signature"},
                {"type": "text", "text": "I see "},
                {"type": "tool_use", "id": "functions.look:0", "name": "look", "input": {"a": 1}},
            ],
            tool_calls=[
                {"name": "look", "args": {"a": 1}, "id": "functions.look:0"},
                {"name": "default_api:look at", "args": {}, "id": "x" * 90},
                {"name": "look", "args": {}, "id": "ä ö"},
            ],
            response_metadata={"model_provider": "somebody", "model_name": "else"},
            additional_kwargs={"reasoning_content": "Foreign thought."},
        ),
        ToolMessage(
            [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}], tool_call_id="functions.look:0"
        ),
        ToolMessage("", tool_call_id="x" * 90),
        ToolMessage([], tool_call_id="ä ö", status="error"),
        AIMessage("  ", tool_calls=[{"name": "look", "args": {"a": 2}, "id": "functions.look:0"}]),
        ToolMessage([{"type": "text", "text": "Seen."}], tool_call_id="functions.look:0"),
        AIMessage("Half a", invalid_tool_calls=[{"name": "look", "args": '{"a', "id": None, "error": "cut"}]),
        AIMessage(""),
        SystemMessage("Later rules."),
        HumanMessage("a"),
        HumanMessage("b"),
        AIMessage("c"),
        AIMessage([{"type": "non_standard", "value": {"type": "mystery", "x": 1}}, {"type": "text", "text": "d "}]),
        HumanMessage("e"),
    ]


@pytest.mark.parametrize("bound", [False, True], ids=["own tools", "no tools"])
async def test_a_history_from_elsewhere_is_accepted(start: Start, bound: bool) -> None:
    """A history that other packages wrote is sent as what it says, and nothing of its sealed state."""
    talk = start([Turn("Fine.")], **({} if bound else {"tools": TOOLS}))
    assert (await run_in("invoke", talk.model, foreign())).message.text == "Fine."
    body = sent(talk)
    assert "oreign" not in body and PIXEL in body and "Later rules." in body


@pytest.mark.parametrize("declared", [True, False], ids=["calls", "blocks only"])
async def test_results_among_a_users_blocks_are_results(start: Start, declared: bool) -> None:
    """A history in the form of one vendor's API, its calls and results as blocks, goes everywhere: each call once, with its own result."""
    calls = [{"name": "get_temperature", "args": {"city": city}, "id": name} for city, name in (("Bern", "toolu_1"), ("Oslo", "toolu_2"))]
    blocks = [{"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]} for call in calls]
    said = {"type": "text", "text": "Let me see."}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "18 °C", "cache_control": {"type": "ephemeral"}}
    history = [
        HumanMessage("Warm?"),
        AIMessage([said, *blocks], tool_calls=calls if declared else []),
        HumanMessage([result, {"type": "tool_result", "tool_use_id": "lost", "content": "Nobody asked."}, {"type": "text", "text": "So?"}]),
    ]
    talk = start([Turn("Fine.")], tools=TOOLS)
    assert (await run_in("invoke", talk.model, history)).message.text == "Fine."
    body = sent(talk)
    assert [body.count(text) for text in ("Bern", "18 °C", "So?", "interrupted", "Nobody asked.")] == [1, 1, 1, 1, 0]


async def test_a_history_written_for_a_vendors_own_client(start: Start) -> None:
    """Plain dicts whose calls and results are blocks of their content say the same to every row as LangChain's own messages."""
    call: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "get_temperature", "input": {"city": "Kyiv"}}
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "17 °C"}
    written: list[Any] = [
        {"role": "user", "content": "How warm?"},
        {"role": "assistant", "content": [{"type": "text", "text": "Let me look."}, call]},
        {"role": "user", "content": [result, {"type": "text", "text": "Well?"}]},
    ]
    made = {"name": "get_temperature", "args": {"city": "Kyiv"}, "id": "toolu_1", "type": "tool_call"}
    messages = [
        HumanMessage("How warm?"),
        AIMessage("Let me look.", tool_calls=[made]),
        ToolMessage("17 °C", tool_call_id="toolu_1"),
        HumanMessage("Well?"),
    ]
    bodies = []
    for said in (written, messages):
        talk = start([Turn("Warm.")], tools=TOOLS)
        assert (await talk.model.ainvoke(said)).text == "Warm."
        bodies.append(sent(talk))
    assert bodies[0] == bodies[1]
    assert "Kyiv" in bodies[0] and "17 °C" in bodies[0] and "interrupted" not in bodies[0]


@pytest.mark.parametrize("block", [{"type": "image", "url": 5}, {"type": "image", "base64": {}, "mime_type": []}], ids=["url", "data"])
async def test_a_block_of_no_known_form_is_told_as_such(start: Start, block: dict[str, Any]) -> None:
    """What no wire can carry is the package's own error before anything is sent, whatever it fails at."""
    talk = start([])
    with pytest.raises(UnsupportedFeatureError):
        await talk.model.ainvoke([HumanMessage([block])])
    assert talk.server.exchanges == []
