"""The content of whole messages: as langchain-anthropic gives that of whole replies, wherever a message is handed out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import ChatAnthropic, ChatGoogleGenerativeAI, ChatOllama, ChatOpenAI, final_message, new_messages
from langchain_autotools.messages.metadata import KEY
from tests.contract.talk import run_in, summed
from tests.laws.ways import LISTENERS
from tests.support.anthropic_server import AnthropicServer
from tests.support.google_server import GoogleServer
from tests.support.ollama_server import OllamaServer
from tests.support.openai_server import OpenAIServer
from tests.support.responses_server import ResponsesServer
from tests.support.script import Call, Events, Reply, Turn
from tests.support.weather import get_temperature

PLACE = {"type": "char_location", "cited_text": "c", "document_index": 0, "document_title": "t"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "get_altitude", "input": {"city": "Paris"}}

BODIES: Mapping[str, Sequence[dict[str, Any]]] = {
    "text": [{"type": "text", "text": "So it is."}],
    "citations": [{"type": "text", "text": "So it is.", "citations": [PLACE]}],
    "thinking": [{"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}, {"type": "text", "text": "So it is."}],
    "two texts": [{"type": "text", "text": "So it"}, {"type": "text", "text": " is."}],
    "empty": [],
    "a server's tool": [SEARCH, FOUND, {"type": "text", "text": "So it is."}],
    "a call": [{"type": "text", "text": "Let me look."}, CALL],
    "a call alone": [CALL],
}
DOCUMENT: Any = [{"type": "text-plain", "text": "long", "mime_type": "text/plain", "extras": {"citations": {"enabled": True}}}]
HEAD = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "usage": {"input_tokens": 1, "output_tokens": 1}}


def body_of(blocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A whole reply of these blocks."""
    return {**HEAD, "content": list(blocks), "stop_reason": "end_turn", "stop_sequence": None}


def streamed(blocks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The events of the same reply, its texts in pieces."""
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**HEAD, "content": []}}]
    for index, block in enumerate(blocks):
        start, deltas = _pieces(block)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    return [*events, {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}}]


def _pieces(block: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[dict[str, Any]]]:
    if block["type"] == "text":
        text = [{"type": "text_delta", "text": piece} for piece in (block["text"][:3], block["text"][3:])]
        return {"type": "text", "text": ""}, [*({"type": "citations_delta", "citation": one} for one in block.get("citations", ())), *text]
    if block["type"] == "thinking":
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [{"type": "thinking_delta", "thinking": block["thinking"]}, signed]
    return block, []


def model(server: AnthropicServer, **more: Any) -> ChatAnthropic:
    """A model that asks the server."""
    return ChatAnthropic(**{"model": "claude-test", "base_url": server.url, "api_key": "key", "max_retries": 0, **more})


def numbers(content: Any) -> list[Any]:
    """The blocks that have a number."""
    return [block for block in content if isinstance(block, dict) and "index" in block]


HOW: Sequence[tuple[str, dict[str, Any], str]] = (
    ("invoke", {"streaming": False}, "nobody"),
    ("ainvoke", {"streaming": True}, "nobody"),
    ("invoke", {}, "a tap"),
    ("stream", {}, "nobody"),
    ("astream", {}, "a listener"),
)
ENTRANCES = ("plain", "bound", "built in")


@pytest.mark.parametrize("said", BODIES)
async def test_whole_messages_have_the_form_of_whole_replies(said: str) -> None:
    """One text without citations is a string, all else a list of the wire's blocks without numbers, and v1 content such a list always."""
    blocks = BODIES[said]
    content: Any = blocks[0]["text"] if said == "text" else blocks
    question = [HumanMessage(DOCUMENT if said == "citations" else "Is it?")]
    with AnthropicServer(strict=False) as server:
        for (way, how, listeners), entrance, version in product(HOW, ENTRANCES, (None, "v1")):
            goes_on = entrance == "built in" and CALL in blocks  # a call of a tool that it does not have
            server.extend([Events(streamed(blocks), body_of(blocks)), *([Turn("Done.")] if goes_on else [])])
            asked: Any = model(server, **how, output_version=version, tools=[get_temperature] if entrance == "built in" else ())
            asked = asked.bind_tools([get_temperature]) if entrance == "bound" else asked
            ran = await run_in(way, asked, question, config={"callbacks": LISTENERS[listeners]()})
            place = (way, how, listeners, entrance, version)
            assert [numbers(message.content) for message in (ran.message, *ran.new)] == [[]] * (1 + len(ran.new)), place
            if version is None:
                assert ran.new[0].content == content, place
                assert goes_on or ran.message.content == content, place
            else:
                assert isinstance(ran.message.content, list) and isinstance(ran.new[0].content, list), place


def turns() -> list[Reply]:
    """A turn of a call alone, and the answer."""
    return [Turn(calls=[Call("get_temperature", {"city": "Paris"})]), Turn("21 °C.")]


@pytest.mark.parametrize("streaming", [False, True])
def test_an_agent_s_state_and_the_cache_hold_texts(streaming: bool) -> None:
    """In `create_agent` and from LangChain's cache, too, an answer is a string, and no block has a number."""
    agents = pytest.importorskip("langchain.agents")
    with AnthropicServer(turns()) as server:
        asked = model(server, streaming=streaming, cache=InMemoryCache())
        for _ in range(2):
            state = agents.create_agent(asked, [get_temperature]).invoke({"messages": [HumanMessage("How warm?", id="1")]})["messages"]
            assert [type(message) for message in state] == [HumanMessage, AIMessage, ToolMessage, AIMessage]
            assert numbers(state[1].content) == [] and state[3].content == "21 °C."
    assert len(server.exchanges) == 2


async def test_a_run_hands_out_whole_contents_and_its_chunks_keep_their_blocks() -> None:
    """The run message and the messages that it carries have the same form in all ways; chunks are lists of numbered blocks."""
    said = [Turn("Let me look.", [Call("get_temperature", {"city": "Paris"})]), Turn("21 °C.")]
    with AnthropicServer([*said * 5, *turns()]) as server:
        asked = model(server, tools=[get_temperature])
        for way in ("invoke", "stream", "ainvoke", "astream"):
            ran = await run_in(way, asked, "How warm?")
            assert ran.message.content == [{"type": "text", "text": text} for text in ("Let me look.", "\n", "21 °C.")]
            data = ran.message.response_metadata[KEY]["messages"]
            assert [numbers(message["data"]["content"]) for message in data] == [[], [], []]
            assert (ran.new[2].content, final_message(ran.message).content) == ("21 °C.", "21 °C.")
        chunks = list(asked.stream("How warm?"))
        assert [chunk.content for chunk in chunks if chunk.text] == [numbers(chunk.content) for chunk in chunks if chunk.text]
        assert asked.invoke("How warm?").content == "21 °C."


def test_stored_contents_of_either_form_make_one_request() -> None:
    """Histories with the string, with the blocks and with the numbered blocks of earlier versions are one history, on every wire."""
    with AnthropicServer([*turns(), Turn("Yes.")]) as server:
        bound = model(server).bind_tools([get_temperature])
        called, answer = bound.invoke("How warm?"), bound.invoke("Well?")
        chunks = list(bound.stream("Really?"))
        [plain] = new_messages(chunks[-1])
        assert isinstance(summed(chunks).content, list) and plain.content == "Yes."
    numbered = [{**block, "index": place} for place, block in enumerate(called.content) if isinstance(block, dict)]
    old_answers = [[{"type": "text", "text": "21 °C."}], [{"type": "text", "text": "21 °C.", "index": 0}]]
    result = ToolMessage("21", tool_call_id=called.tool_calls[0]["id"])
    for server_of, model_of, more in WIRES:
        with server_of([Turn("Yes.")] * 3) as wire:
            for first, last in [(called.content, answer.content), *((numbered, old) for old in old_answers)]:
                asked, replied = called.model_copy(update={"content": first}), answer.model_copy(update={"content": last})
                history: list[BaseMessage] = [HumanMessage("How warm?"), asked, result, replied, HumanMessage("Really?")]
                model_of(base_url=wire.url, max_retries=0, **more).invoke(history)
            bodies = {exchange.body for exchange in wire.exchanges}
        assert len(bodies) == 1, model_of


WIRES: Sequence[tuple[Any, Any, dict[str, Any]]] = (
    (AnthropicServer, ChatAnthropic, {"model": "claude-test", "api_key": "key"}),
    (OpenAIServer, ChatOpenAI, {"model": "any", "api_key": "key"}),
    (ResponsesServer, ChatOpenAI, {"model": "any", "api_key": "key", "use_responses_api": True}),
    (GoogleServer, ChatGoogleGenerativeAI, {"model": "gemini-3-pro", "api_key": "key"}),
    (OllamaServer, ChatOllama, {"model": "any"}),
)


async def test_a_call_without_an_id_is_sent_the_same_behind_either_form() -> None:
    """What is sent for a call that its server gave no id is derived from the history, whose contents count in one form."""
    sent = []
    for content in ("Hello.", [{"type": "text", "text": "Hello."}], [{"type": "text", "text": "Hello.", "index": 0}]):
        with AnthropicServer([Turn(calls=[Call("get_temperature", {"city": "Paris"}, id="")], style="empty_ids"), Turn("21.")]) as server:
            ran = await run_in(
                "invoke", model(server, tools=[get_temperature]), [HumanMessage("Hi"), AIMessage(content), HumanMessage("So?")]
            )
            assert ran.message.content == "21."
            sent.append(server.exchanges[1].body)
    assert sent[0] == sent[1] == sent[2]
