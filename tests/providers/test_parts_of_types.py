"""Parts and parameters that vendors' types name reach the request as they were given, beside what every vendor has."""

from __future__ import annotations

from typing import Any

import pytest
from google.genai import types
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import ChatAnthropic, ChatGoogleGenerativeAI, ChatOpenAI, ConfigurationError, UnsupportedFeatureError
from tests.support.anthropic_server import AnthropicServer
from tests.support.google_server import GoogleServer
from tests.support.openai_server import OpenAIServer
from tests.support.responses_server import ResponsesServer
from tests.support.script import Turn

MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}
MARKED = {"type": "text", "text": "long", **MARK}
CITED = [
    {"type": "char_location", "cited_text": "a", "document_index": 0, "document_title": None, "start_char_index": 0, "end_char_index": 1}
]
DATA = "iVBORw0KGgo="


def _called(result: list[Any]) -> list[BaseMessage]:
    call = {"name": "look_up", "args": {}, "id": "call_1", "type": "tool_call"}
    return [HumanMessage("Hello"), AIMessage("", tool_calls=[call]), ToolMessage(result, tool_call_id="call_1")]


@pytest.mark.parametrize(
    ("history", "place", "content"),
    [
        (_called([MARKED, "more"]), 2, [MARKED, {"type": "text", "text": "more"}]),
        (_called(["one", "two"]), 2, "one\ntwo"),
        ([HumanMessage("Hello"), AIMessage([MARKED]), HumanMessage("Go on")], 1, [MARKED]),
        ([HumanMessage([{"type": "file", "file": {"file_id": "f", "filename": "a.pdf"}}])], 0, None),
    ],
    ids=["result", "plain result", "reply", "file"],
)
def test_a_mark_on_a_text_goes_along_on_chat_completions(history: list[BaseMessage], place: int, content: Any) -> None:
    """A cache breakpoint of a result or a reply keeps its text a part; a file keeps its name beside its id."""
    with OpenAIServer([Turn("Well.")], rules=None) as server:
        ChatOpenAI(model="any", base_url=server.url, api_key="key").invoke(history)
    sent = server.messages[0][place]["content"]
    assert sent == (content or [{"type": "file", "file": {"file_id": "f", "filename": "a.pdf"}}])


def test_a_mark_on_a_result_goes_along_on_responses() -> None:
    """A cache breakpoint keeps a result's text a part."""
    part = {"type": "input_text", "text": "long", **MARK}
    with ResponsesServer([Turn("Well.")], rules=None) as server:
        ChatOpenAI(model="any", base_url=server.url, api_key="key", use_responses_api=True).invoke(_called([part]))
    assert server.requests[0]["input"][-1]["output"] == [part]


@pytest.mark.parametrize(
    "kind, why",
    [
        ("custom_tool_call_output", "the result of a call is a ToolMessage"),
        ("function_call_output", "the result of a call is a ToolMessage"),
        ("program_output", "it goes back with the reply that it is in"),
        ("hologram", "the Responses API has no such content"),
    ],
)
def test_an_output_is_no_part_of_a_users_message(kind: str, why: str) -> None:
    """It would reach the model without its call: refused by its name, in words of this API, as what nobody knows is."""
    model = ChatOpenAI(model="any", base_url="http://127.0.0.1:9", api_key="key", use_responses_api=True)
    with pytest.raises(UnsupportedFeatureError, match=f"{kind}.*{why}"):
        model.invoke([HumanMessage([{"type": kind, "call_id": "c", "output": "x"}])])


def test_citations_and_what_may_be_done_to_an_image_reach_anthropic() -> None:
    """A text of the user's keeps its citations, an image its transformations."""
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": DATA},
        "transformations": {"oversized_image": "fail"},
    }
    text = {"type": "text", "text": "a", "citations": CITED}
    with AnthropicServer([Turn("Well.")], strict=False) as server:
        ChatAnthropic(model="any", base_url=server.url, api_key="key").invoke([HumanMessage([text, image])])
    assert server.messages[0][0]["content"] == [text, image]


def test_a_text_keeps_what_stands_beside_it_on_google() -> None:
    """A part of the wire's own is sent whole; thresholds may be a list, and top_k a fraction."""
    part = {"text": "a", "partMetadata": {"page": 1}}
    setting = types.SafetySetting(category=types.HarmCategory.HARM_CATEGORY_HARASSMENT, threshold=types.HarmBlockThreshold.BLOCK_NONE)
    with GoogleServer([Turn("Well.")], strict=False) as server:
        model = ChatGoogleGenerativeAI(model="any", base_url=server.url, api_key="key", safety_settings=[setting], top_k=1.5)
        model.invoke([HumanMessage([part])])
    (request,) = server.requests
    assert request["contents"][0]["parts"] == [part]
    assert request["safetySettings"] == [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    assert request["generationConfig"]["topK"] == 1.5


def test_a_refusal_names_the_argument_that_was_given() -> None:
    """Of an argument with several names the error has the one that the caller wrote."""
    with pytest.raises(ConfigurationError, match="candidate_count"):
        ChatGoogleGenerativeAI(model="any", api_key="key", candidate_count=2)
