"""What each LangChain message becomes in a request of chat completions."""

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from langchain_autotools.errors import ConfigurationError, UnsupportedFeatureError
from langchain_autotools.providers.openai.dialect import OPENAI
from langchain_autotools.providers.openai.mapper import ChatCompletionsMapper
from tests.support.strict import Rules
from tests.support.strict_openai import check_request

PIXEL = "iVBORw0KGgo="
CALL = {"name": "add", "args": {"a": 1}, "id": "call_1"}


def sent(*messages: BaseMessage, rules: Rules = Rules(), **options: Any) -> list[dict[str, Any]]:  # noqa: B008 - frozen
    """The messages of a request, which the strict server has accepted."""
    body = ChatCompletionsMapper(**options).encode_request(messages, {"model": "any"})
    return check_request(body, rules)["messages"]


@pytest.mark.parametrize(
    ("message", "wire"),
    [
        (HumanMessage("hi"), {"role": "user", "content": "hi"}),
        (HumanMessageChunk(content="hi", name="Ann"), {"role": "user", "content": "hi", "name": "Ann"}),
        (HumanMessage("hi", name="Ann <of> York"), {"role": "user", "content": "hi", "name": "Ann_of_York"}),
        (HumanMessage([]), {"role": "user", "content": ""}),
        (HumanMessage("hi", additional_kwargs={"lc_source": "x", "lc_data": {}}), {"role": "user", "content": "hi"}),
        (SystemMessage("be kind"), {"role": "system", "content": "be kind"}),
        (SystemMessage("x", additional_kwargs={"__openai_role__": "developer"}), {"role": "developer", "content": "x"}),
        (SystemMessage([{"type": "text", "text": "a"}]), {"role": "system", "content": "a"}),
        (AIMessage("hello", name="bot"), {"role": "assistant", "content": "hello", "name": "bot"}),
        (AIMessageChunk(content="hello"), {"role": "assistant", "content": "hello"}),
        (AIMessage([{"type": "text", "text": "a"}, "b"]), {"role": "assistant", "content": "ab"}),
        (AIMessage("", additional_kwargs={"refusal": "No."}), {"role": "assistant", "content": "No."}),
        (AIMessage([{"type": "refusal", "refusal": "No."}]), {"role": "assistant", "content": "No."}),
        (ChatMessage("x", role="developer"), {"role": "developer", "content": "x"}),
    ],
    ids=lambda value: value.__class__.__name__ if isinstance(value, BaseMessage) else "",
)
def test_each_message_has_its_form(message: BaseMessage, wire: dict[str, Any]) -> None:
    """Every kind of message becomes the wire's message of the same role, with its name made legal."""
    assert sent(message) == [wire]


REFUSAL = {"type": "refusal", "refusal": "No."}


@pytest.mark.further
def test_a_refusal_goes_back_as_one_to_the_vendor() -> None:
    """As the one part of the content, beside a text or calls as the message's own; a server that may not know it gets a text."""
    for content, beside, text in [("", {"refusal": "No."}, None), ([REFUSAL], {}, None), ("Hm.", {"refusal": "No."}, "Hm.")]:
        message = AIMessage(content, additional_kwargs=beside)
        wire = {"content": [REFUSAL]} if text is None else {"content": text, "refusal": "No."}
        assert sent(message, dialect=replace(OPENAI, refusals=True)) == [{"role": "assistant", **wire}]
        assert "refusal" not in str(sent(message))
    calling = AIMessage("", additional_kwargs={"refusal": "No."}, tool_calls=[CALL])
    wire, _ = sent(calling, ToolMessage("1", tool_call_id="call_1"), dialect=replace(OPENAI, refusals=True))
    assert (wire["content"], wire["refusal"], len(wire["tool_calls"])) == (None, "No.", 1)


def test_a_message_that_is_an_order_to_a_store_cannot_be_sent() -> None:
    """A RemoveMessage is for a store, not for a model."""
    with pytest.raises(UnsupportedFeatureError, match="RemoveMessage"):
        sent(RemoveMessage(id="1"))


def test_calls_and_results_are_paired() -> None:
    """Calls go with null content and JSON arguments; results carry the ids, in tool messages."""
    wire = sent(HumanMessage("q"), AIMessage("", tool_calls=[CALL]), ToolMessage("2", tool_call_id="call_1"))
    assert wire[1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "2"},
    ]


def test_a_server_that_refuses_null_gets_an_empty_string() -> None:
    """`null_content=False` says nothing with "" instead of null; text is kept in both."""
    assert sent(AIMessage("", tool_calls=[CALL]), ToolMessage("2", tool_call_id="call_1"), null_content=False)[0]["content"] == ""
    assert sent(AIMessage("Let me see.", tool_calls=[CALL]), ToolMessage("2", tool_call_id="call_1"))[0]["content"] == "Let me see."


@pytest.mark.parametrize(
    ("content", "status", "text"),
    [
        ("", "success", "(no output)"),
        ([], "success", "(no output)"),
        ("", "error", "(failed without output)"),
        ('{"error": "no such city"}', "error", '{"error": "no such city"}'),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "success", "a\nb"),
        ([{"type": "json", "json": {"a": "é"}}], "success", '{"a": "é"}'),
        ([{"type": "search_result", "title": "T", "source": "S", "content": [{"type": "text", "text": "x"}]}], "success", "T S\nx"),
    ],
)
def test_a_result_is_text(content: Any, status: Any, text: str) -> None:
    """A result is sent as one string and is never empty; a failed one as the tool wrote it (wire quirk H-04)."""
    wire = sent(AIMessage("", tool_calls=[CALL]), ToolMessage(content, tool_call_id="call_1", status=status))
    assert wire[1]["content"] == text


def test_images_of_results_follow_all_results_of_the_turn() -> None:
    """Images go into one user message after the turn's last result, where the vendor takes them and the pairing stays whole."""
    image = {"type": "image", "base64": PIXEL, "mime_type": "image/png"}
    calls = [CALL, {"name": "add", "args": {}, "id": "call_2"}]
    wire = sent(
        AIMessage("", tool_calls=calls),
        ToolMessage([image], tool_call_id="call_1"),
        ToolMessage([{"type": "text", "text": "two"}, image], tool_call_id="call_2"),
        AIMessage("Nice."),
    )
    assert [message["role"] for message in wire] == ["assistant", "tool", "tool", "user", "assistant"]
    assert [message["content"] for message in wire[1:3]] == ["(the output follows in the next message)", "two"]
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    assert wire[3]["content"] == [
        {"type": "text", "text": "Output of tool call call_1:"},
        part,
        {"type": "text", "text": "Output of tool call call_2:"},
        part,
    ]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "reasoning", "reasoning": "hm"},
        {"type": "tool_use", "id": "call_1", "name": "add", "input": {"a": 1}},
        {"type": "tool_call", "id": "call_1", "name": "add", "args": {"a": 1}},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "server_tool_call", "id": "s", "name": "web_search", "args": {}},
        {"type": "server_tool_result", "tool_call_id": "s", "status": "success"},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "web_search_call", "id": "s"},
        {"type": "tool_search_output", "id": "s", "tools": []},
        {"type": "compaction", "id": "s", "encrypted_content": "x"},
        {"type": "executable_code", "code": "1"},
        {"type": "non_standard", "value": {"type": "grounding", "x": 1}},
        {"type": "image_generation_call", "id": "s"},
    ],
    ids=lambda block: block["type"],
)
def test_inner_state_of_another_vendor_stays_behind(block: dict[str, Any]) -> None:
    """Calls are sent once; thoughts and server tools of another vendor are not sent at all."""
    history = [AIMessage(["So: ", block], tool_calls=[CALL]), ToolMessage("2", tool_call_id="call_1")]
    wire = sent(*history)
    assert wire[0]["content"] == "So: "
    assert len(wire[0]["tool_calls"]) == 1


def test_an_unknown_block_is_named() -> None:
    """A block that nobody knows is an error that names its type, where a user gave it; of results and replies it is sent as its JSON."""
    with pytest.raises(UnsupportedFeatureError, match="hologram"):
        sent(HumanMessage([{"type": "hologram"}]))
    for message in (AIMessage([{"type": "hologram"}]), ToolMessage([{"type": "hologram"}], tool_call_id="1")):
        assert b'"{\\"type\\": \\"hologram\\"}"' in ChatCompletionsMapper().encode_request([message], {})


def test_a_system_message_takes_text_only() -> None:
    """An image in a system message is refused here, by name, not by the vendor."""
    with pytest.raises(UnsupportedFeatureError, match=r"image_url.*system"):
        sent(SystemMessage([{"type": "image", "base64": PIXEL, "mime_type": "image/png"}]))


def test_media_that_an_assistant_made_follow_as_the_users() -> None:
    """An image in an assistant's message goes into a user message after the turn's results."""
    image = {"type": "image", "base64": PIXEL, "mime_type": "image/png"}
    wire = sent(AIMessage([image, "Here."], tool_calls=[CALL]), ToolMessage("2", tool_call_id="call_1"), HumanMessage("ok"))
    assert [message["role"] for message in wire] == ["assistant", "tool", "user", "user"]
    assert wire[2]["content"][0]["text"] == "Output of the assistant:"
    wrapped = sent(AIMessage([{"type": "non_standard", "value": image}, "Here."]), HumanMessage("ok"))
    assert [message["role"] for message in wrapped] == ["assistant", "user", "user"]
    drawn = sent(AIMessage([{"type": "image_generation_call", "id": "i", "result": PIXEL}]))
    assert drawn[1]["content"][1]["image_url"]["url"].startswith("data:image/png")
    kept = sent(AIMessage([{"type": "image", "url": "https://example.org/a.png", "extras": {"detail": "low"}}]))
    assert kept[1]["content"][1]["image_url"] == {"url": "https://example.org/a.png", "detail": "low"}


def test_speech_goes_back_by_its_id_to_its_vendor_only() -> None:
    """What the vendor said aloud is named by id; another vendor gets the words."""
    extra = {"audio": {"id": "audio_1", "data": "x", "transcript": "Hello."}}
    own = AIMessage("", additional_kwargs=extra, response_metadata={"model_provider": "openai"})
    assert sent(own) == [{"role": "assistant", "content": None, "audio": {"id": "audio_1"}}]
    assert sent(AIMessage("", additional_kwargs=extra)) == [{"role": "assistant", "content": "Hello."}]
    block = AIMessage([{"type": "audio", "id": "audio_1"}], response_metadata={"model_provider": "openai"})
    assert sent(block)[0]["audio"] == {"id": "audio_1"}


def test_the_body_is_compact_utf8_with_the_parameters() -> None:
    """Parameters and messages are in one compact JSON object; text is UTF-8, half a surrogate pair becomes U+FFFD."""
    mapper = ChatCompletionsMapper()
    body = mapper.encode_request([HumanMessage("21 °C \ud83d")], {"model": "any", "stream": True, "messages": "not these"})
    assert body == '{"model":"any","stream":true,"messages":[{"role":"user","content":"21 °C \ufffd"}]}'.encode()
    assert mapper.encode_request([HumanMessage("\ud83d\ude00")], {}) == '{"messages":[{"role":"user","content":"😀"}]}'.encode()


@pytest.mark.parametrize("value", [object(), float("nan"), {"a": {1, 2}}])
def test_a_parameter_that_is_no_json_is_named(value: Any) -> None:
    """A parameter that cannot be sent is an error that names it."""
    with pytest.raises(ConfigurationError, match="'odd'"):
        ChatCompletionsMapper().encode_request([], {"model": "any", "odd": value})
