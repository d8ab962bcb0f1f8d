"""Replies with text, pictures, calls and what the vendor's tools did, as content blocks."""

import pytest

from langchain_autotools import ChatGroq, ChatOpenAI
from tests.support.openai_server import OpenAIServer
from tests.support.responses_server import ResponsesServer
from tests.support.script import Events
from tests.support.vendor_replies import chat
from tests.surface.replied import WAYS

pytestmark = pytest.mark.further


@pytest.mark.parametrize("version", [None, "v1"])
@pytest.mark.parametrize("way", WAYS)
def test_blocks_have_the_text_the_picture_and_the_call(way: str, version: str | None) -> None:
    """In every way. (LangChain's reading of a list passes over bare texts and over calls.)"""
    with OpenAIServer([chat()]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key", max_retries=0, output_version=version)
        message = WAYS[way](model)
        assert [block["type"] for block in message.content_blocks] == ["text", "image", "tool_call"]
        assert message.text == "Oslo."


SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "oslo"}}
TEXT = {"type": "output_text", "text": "Oslo.", "annotations": []}
SAID = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [TEXT]}


@pytest.mark.parametrize("way", WAYS)
def test_what_the_vendors_tools_did_is_a_block_before_the_text(way: str) -> None:
    """On the Responses API, where the content is the text alone, in every way; once."""
    done = {"id": "resp_123456789012", "object": "response", "status": "completed", "model": "any", "output": [SEARCH, SAID]}
    events = [{"type": "response.output_item.done", "output_index": place, "item": item} for place, item in enumerate(done["output"])]
    with ResponsesServer([Events([*events, {"type": "response.completed", "response": done}], done)]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key", max_retries=0, use_responses_api=True)
        message = WAYS[way](model)
    assert message.content == "Oslo."
    assert [block["type"] for block in message.content_blocks] == ["server_tool_call", "server_tool_result", "text"]


@pytest.mark.parametrize("way", WAYS)
def test_a_run_of_groqs_tool_is_one_run(way: str) -> None:
    """A stream says it twice, without its output and with it; runs that have one index but other arguments are several."""
    begun = [{"index": 0, "type": "python", "arguments": f'{{"code": "{code}"}}'} for code in "ab"]
    ended = [{**run, "output": "1"} for run in begun]
    deltas = [{"role": "assistant", "executed_tools": [run]} for pair in zip(begun, ended, strict=True) for run in pair]
    head = {"id": "chatcmpl-1234567890ab", "model": "any", "created": 1}
    events = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in [*deltas, {"content": "Hi"}]]
    last = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    message = {"role": "assistant", "content": "Hi", "executed_tools": ended}
    whole = {**head, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    with OpenAIServer([Events([*events, last], whole)]) as server:
        found = WAYS[way](ChatGroq(model="any", base_url=server.url, api_key="key", max_retries=0))
    assert found.additional_kwargs["executed_tools"] == ended
