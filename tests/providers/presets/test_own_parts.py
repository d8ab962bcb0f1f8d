"""What the SDKs of Groq and Mistral name besides chat completions is read, and sent in the vendor's form."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_autotools import ChatGroq, ChatMistralAI, ChatOpenAI, ChatOpenRouter, events, new_messages
from langchain_autotools.errors import UnsupportedFeatureError
from langchain_autotools.event_types import SourceFound
from tests.support.openai_server import OpenAIServer
from tests.support.script import Events, Turn
from tests.support.vendor_server import VendorServer
from tests.support.vendors import VENDORS

Body = dict[str, Any]
HEAD = {"id": "c1", "object": "chat.completion.chunk", "model": "any", "created": 1}
CALL = {"id": "Ab3dE5gH7", "type": "function", "function": {"name": "look_up", "arguments": '{"key":"here"}'}}
SOURCE = {"type": "tool_reference", "tool": "web_search", "title": "A page", "url": "https://example.org/a"}
LINK = {"type": "resource_link", "uri": "https://example.org/b", "metadata": {"page": "1"}}
CITED = {"type": "reference", "reference_ids": [1, 2]}


def look_up(key: str) -> str:
    """Look something up."""
    return f"found {key}"


def text(said: str) -> Body:
    """A text part."""
    return {"type": "text", "text": said}


def thought(*entries: Body, **more: Any) -> Body:
    """A thinking part, or a piece of one."""
    return {"type": "thinking", "thinking": list(entries), **more}


def streamed(*deltas: Body, whole: Body, **beside: Any) -> Events:
    """A reply in deltas and the same whole; the first chunk and the whole have something beside the message."""
    last = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if whole.get("tool_calls") else "stop"}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices[0] |= beside
    message = {"index": 0, "message": {"role": "assistant", **whole}, "finish_reason": last["finish_reason"], **beside}
    return Events([{**HEAD, "choices": [one]} for one in (*choices, last)], {**HEAD, "object": "chat.completion", "choices": [message]})


async def _stream(model: Any) -> AIMessage:
    chunks = [chunk async for chunk in model.astream("Hello")]
    total: AIMessage = sum(chunks[1:], chunks[0])
    return total


async def _invoke(model: Any) -> AIMessage:
    message: AIMessage = model.invoke("Hello")
    return message


ways = pytest.mark.parametrize("ask", [_invoke, _stream], ids=["invoke", "astream"])
Ask = Callable[[Any], Awaitable[AIMessage]]


def mistral(server: OpenAIServer, **more: Any) -> ChatMistralAI:
    """A model that asks a server."""
    return ChatMistralAI(model="any", base_url=server.url, api_key="key", max_retries=0, **more)


@ways
async def test_a_signed_thought_goes_back_whole(ask: Ask) -> None:
    """Signature, sources and their places go back with the calls as they came; the thought is text to LangChain's users."""
    whole = thought(text("Let me see."), SOURCE, signature="c2lnbmVk")
    pieces = [thought(text("Let me ")), thought(text("see.")), thought(SOURCE), thought(signature="c2lnbmVk"), thought(text("More."))]
    reply = streamed(
        *({"content": [piece]} for piece in pieces),
        {"content": "Well."},
        {"tool_calls": [{"index": 0, **CALL}]},
        whole={"content": [whole, thought(text("More.")), text("Well.")], "tool_calls": [CALL]},
    )
    with OpenAIServer([reply, Turn("Done.")], rules=None) as server:
        run = await ask(mistral(server, tools=[look_up]))
        assert server.messages[1][1]["content"] == [whole, thought(text("More.")), text("Well.")]
    first = new_messages(run)[0]
    assert first.additional_kwargs["reasoning_content"] == "Let me see.More."
    assert first.text == "Well."


def test_sources_of_a_thought_are_told() -> None:
    """A page that a thought names is a source, once."""
    reply = streamed(*({"content": [thought(one)]} for one in (text("See."), SOURCE, SOURCE)), whole={"content": "Well."})
    with OpenAIServer([reply], rules=None) as server:
        found = [event for event in events(mistral(server).stream("Hello")) if isinstance(event, SourceFound)]
    assert [(one.url, one.title) for one in found] == [("https://example.org/a", "A page")]


@ways
async def test_parts_beside_a_text_stay_in_the_message(ask: Ask) -> None:
    """References and links that the model puts into its text are in the message, in their order, and the text is whole."""
    parts = [text("Oslo"), CITED, text(" is cold."), LINK]
    with OpenAIServer([streamed(*({"content": [part]} for part in parts), whole={"content": parts})], rules=None) as server:
        message = await ask(mistral(server))
    assert (message.text, message.additional_kwargs["content_parts"]) == ("Oslo is cold.", [CITED, LINK])


@ways
async def test_what_a_choice_says_besides_is_kept(ask: Ask) -> None:
    """Log probabilities of the prompt come with the first chunk; messages of the server's own tools are a list; their place is kept."""
    beside = {"prompt_logprobs": {"content": [{"token": "Hi", "logprob": -0.5}]}, "messages": [{"role": "tool", "content": "found"}]}
    said = {"content": "Well.", "tool_call_id": "call_1"}
    with OpenAIServer([streamed(said, whole=said, **beside)], rules=None) as server:
        kept = (await ask(mistral(server))).response_metadata
    assert {key: kept[key] for key in (*beside, "tool_call_id")} == {**beside, "tool_call_id": "call_1"}


async def test_a_list_of_a_choice_that_comes_in_pieces_is_whole() -> None:
    """Every chunk's piece counts, also of chunks that have nothing else but text."""
    pieces = [{"index": 0, "delta": {"content": word}, "finish_reason": None, "token_ids": [place]} for place, word in enumerate("abcd")]
    events = [{**HEAD, "choices": [one]} for one in (*pieces, {"index": 0, "delta": {}, "finish_reason": "stop"})]
    with OpenAIServer([Events(events)], rules=None) as server:
        message = await _stream(ChatOpenAI(model="any", base_url=server.url, api_key="key"))
    assert (message.text, message.response_metadata["token_ids"]) == ("abcd", [0, 1, 2, 3])


OF_MISTRAL = [
    CITED,
    LINK,
    {"type": "resource", "uri": "u", "content": text("It is cold.")},
    {"type": "document_url", "document_url": "https://example.org/a.pdf", "document_name": "a.pdf"},
    {"type": "file", "file_id": "file_1"},
]


def test_parts_of_a_vendor_are_sent_in_its_form() -> None:
    """Mistral's in a user's and a system's message, Groq's documents; LangChain's additions to a block are not sent."""
    with OpenAIServer([Turn("Well."), Turn("Well.")], rules=None) as server:
        template = [text("Think first."), thought(text("..."), closed=True)]
        mistral(server).invoke([SystemMessage([*template]), HumanMessage([{**part, "index": 3} for part in OF_MISTRAL])])
        document = {"type": "document", "document": {"id": "d1", "data": {"city": "Oslo"}}}
        told = ChatMessage("Be kind.", role="developer")
        ChatGroq(model="any", base_url=server.url, api_key="key").invoke([told, HumanMessage([document])])
        assert [message["content"] for message in server.messages[0]] == [template, OF_MISTRAL]
        assert [message["content"] for message in server.messages[1]] == ["Be kind.", [document]]
        assert server.messages[1][0]["role"] == "developer"


def test_sound_and_documents_in_mistrals_form() -> None:
    """Sound is base64 alone, a PDF has an address or is a data URL, wherever they are."""
    sound = {"type": "audio", "base64": "SUQz", "mime_type": "audio/mpeg"}
    document = {"type": "file", "base64": "JVBERg==", "mime_type": "application/pdf", "filename": "a.pdf"}
    linked = {"type": "file", "url": "https://example.org/b.pdf", "mime_type": "application/pdf"}
    vendor = next(vendor for vendor in VENDORS if vendor.name == "mistralai")
    with VendorServer(vendor, [Turn("Well.")]) as server:
        call = {"name": "look_up", "args": {"key": "x"}, "id": "Ab3dE5gH7"}
        history = [HumanMessage([sound, document]), AIMessage("", tool_calls=[call]), ToolMessage([linked], tool_call_id="Ab3dE5gH7")]
        ChatMistralAI(model="any", base_url=server.url, api_key="key").invoke(history)
        assert [rejection.message for rejection in server.rejections] == []
        said = server.exchanges[0].json["messages"]
    named = {"type": "document_url", "document_url": "data:application/pdf;base64,JVBERg==", "document_name": "a.pdf"}
    assert said[0]["content"] == [{"type": "input_audio", "input_audio": "SUQz"}, named]
    assert said[-1]["content"][1] == {"type": "document_url", "document_url": linked["url"]}


def test_videos_sound_and_linked_documents_in_openrouters_form() -> None:
    """OpenRouter takes what chat completions has no form for."""
    blocks: list[Any] = [
        {"type": "video", "url": "https://example.com/v.mp4"},
        {"type": "audio", "base64": "T2dnUw==", "mime_type": "audio/ogg"},
        {"type": "file", "url": "https://example.org/b.pdf", "mime_type": "application/pdf"},
        {"type": "audio", "base64": "SUQz", "mime_type": "audio/mpeg"},
    ]
    vendor = next(vendor for vendor in VENDORS if vendor.name == "openrouter")
    with VendorServer(vendor, [Turn("Well.")]) as server:
        ChatOpenRouter(model="any", base_url=server.url, api_key="key").invoke([HumanMessage(blocks)])
        assert [rejection.message for rejection in server.rejections] == []
        assert server.exchanges[0].json["messages"][0]["content"] == [
            {"type": "video_url", "video_url": {"url": "https://example.com/v.mp4"}},
            {"type": "input_audio", "input_audio": {"data": "T2dnUw==", "format": "ogg"}},
            {"type": "file", "file": {"filename": "file.pdf", "file_data": "https://example.org/b.pdf"}},
            {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}},
        ]


@pytest.mark.parametrize("part", [CITED, {"type": "document", "document": {"data": {}}}], ids=lambda part: str(part["type"]))
def test_elsewhere_they_are_refused(part: Body) -> None:
    """Chat completions itself has none of them, and says so by name."""
    with pytest.raises(UnsupportedFeatureError, match=str(part["type"])):
        ChatOpenAI(model="any", base_url="http://127.0.0.1:9", api_key="key").invoke([HumanMessage([part])])
