"""Messages of any vendor in a request of /api/chat."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_autotools import UnsupportedFeatureError
from langchain_autotools.providers.ollama import OllamaMapper
from tests.support.strict_ollama import check_request

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def sent(*messages: Any, mapper: OllamaMapper | None = None) -> list[dict[str, Any]]:
    """The messages of a request, which a strict server accepts."""
    body = (mapper or OllamaMapper(origin="home", model="m")).encode_request(list(messages), {"model": "m", "stream": False})
    return check_request(body)["messages"]  # type: ignore[no-any-return]


def called(*calls: tuple[str, str, dict[str, Any]], **more: Any) -> AIMessage:
    """An AI message with calls (id, name, arguments)."""
    return AIMessage("", tool_calls=[{"id": one, "name": name, "args": args, "type": "tool_call"} for one, name, args in calls], **more)


def test_roles() -> None:
    """System messages keep their place, other roles their names."""
    messages = [SystemMessage("s"), HumanMessage("u"), AIMessage("a"), SystemMessage("later"), ChatMessage("c", role="user")]
    assert [(one["role"], one["content"]) for one in sent(*messages)] == [
        ("system", "s"), ("user", "u"), ("assistant", "a"), ("system", "later"), ("user", "c"),
    ]  # fmt: skip


def test_results_name_their_tool_and_their_call() -> None:
    """A result carries the name of the tool that was called, whether or not the message has one, and the call's id."""
    asked = called(("1", "f", {"q": "é"}), ("2", "g", {}))
    messages = sent(HumanMessage("u"), asked, ToolMessage("x", tool_call_id="1"), ToolMessage("", tool_call_id="2", status="error"))
    assert messages[1]["tool_calls"] == [
        {"id": "1", "type": "function", "function": {"index": 0, "name": "f", "arguments": {"q": "é"}}},
        {"id": "2", "type": "function", "function": {"index": 1, "name": "g", "arguments": {}}},
    ]
    assert messages[2] == {"role": "tool", "content": "x", "tool_name": "f", "tool_call_id": "1"}
    assert messages[3] == {"role": "tool", "content": "(failed without output)", "tool_name": "g", "tool_call_id": "2"}


def test_arguments_go_back_as_they_were_written() -> None:
    """The text that the model wrote is sent again while it says what the call says; an edited call wins."""
    own = {"autotools": {"calls": [{"id": "1", "arguments": '{ "b":1,  "a": 2.50 }'}]}}
    body = OllamaMapper().encode_request([called(("1", "f", {"b": 1, "a": 2.5}), response_metadata=own)], {})
    assert b'"arguments":{ "b":1,  "a": 2.50 }' in body
    body = OllamaMapper().encode_request([called(("1", "f", {"b": 7}), response_metadata=own)], {})
    assert b'"arguments":{"b":7}' in body


def test_a_call_that_is_no_object_goes_back_without_arguments() -> None:
    """The server takes objects only; the result tells what was wrong."""
    broken = AIMessage("", invalid_tool_calls=[{"id": "1", "name": "f", "args": '{"q": ', "error": None, "type": "invalid_tool_call"}])
    assert sent(broken, ToolMessage("no", tool_call_id="1", status="error"))[0]["tool_calls"][0]["function"]["arguments"] == {}


def test_thinking_goes_home_with_its_calls_only() -> None:
    """Thinking is sent with calls to the endpoint and model that wrote it, from v1 blocks too; not without calls, and to nobody else."""
    home = {"autotools": {"origin": "home"}}
    thought = {"additional_kwargs": {"reasoning_content": "Hm."}}
    blocks = called(("1", "f", {}), response_metadata=home).model_copy(update={"content": [{"type": "reasoning", "reasoning": "Hm."}]})
    result = ToolMessage("x", tool_call_id="1")
    assert sent(called(("1", "f", {}), response_metadata=home, **thought), result)[0]["thinking"] == "Hm."
    assert sent(blocks, result)[0]["thinking"] == "Hm."
    assert "thinking" not in sent(AIMessage("a", response_metadata=home, **thought))[0]
    for metadata in ({"autotools": {"origin": "elsewhere"}}, {}, {"model_provider": "openai", "model_name": "m"}):
        assert "thinking" not in sent(called(("1", "f", {}), response_metadata=metadata, **thought), result)[0]
    stored = {"model_provider": "ollama", "model_name": "m"}  # as langchain-ollama stores it
    assert sent(called(("1", "f", {}), response_metadata=stored, **thought), result)[0]["thinking"] == "Hm."


def test_the_servers_own_ids_go_home() -> None:
    """Where an id had to be replaced, its server gets its own again, on call and result; others get ours."""
    own = {"autotools": {"origin": "home", "calls": [{"id": "call_x", "arguments": "{}", "wire_id": "call_0"}]}}
    messages = [called(("call_x", "f", {}), response_metadata=own), ToolMessage("x", tool_call_id="call_x")]
    home, abroad = sent(*messages), sent(*messages, mapper=OllamaMapper(origin="elsewhere"))
    assert (home[0]["tool_calls"][0]["id"], home[1]["tool_call_id"]) == ("call_0", "call_0")
    assert (abroad[0]["tool_calls"][0]["id"], abroad[1]["tool_call_id"]) == ("call_x", "call_x")


def test_calls_without_or_with_equal_ids_are_told_apart() -> None:
    """Every call is sent under an id of its own; results find theirs in order."""
    messages = sent(called(("", "f", {}), ("", "f", {"q": 1})), ToolMessage("x", tool_call_id=""), ToolMessage("y", tool_call_id=""))
    ids = [call["id"] for call in messages[0]["tool_calls"]]
    assert len({*ids}) == 2 and [one["tool_call_id"] for one in messages[1:]] == ids


IMAGES = [
    {"type": "image", "base64": PIXEL, "mime_type": "image/png"},
    {"type": "image", "source_type": "base64", "data": PIXEL, "mime_type": "image/png"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
    {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
    {"type": "image_url", "image_url": PIXEL},
    {"type": "media", "mime_type": "image/png", "data": PIXEL},
    {"type": "image_generation_call", "result": PIXEL},
    {"type": "non_standard", "value": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}},
]


@pytest.mark.parametrize("block", IMAGES, ids=[str(number) for number in range(len(IMAGES))])
def test_pictures_stand_beside_the_text(block: dict[str, Any]) -> None:
    """A picture of any vendor's form is data in `images`, of users, results and assistants alike."""
    content = [{"type": "text", "text": "one"}, block, "two"]
    assert sent(HumanMessage(content)) == [{"role": "user", "content": "one\ntwo", "images": [PIXEL]}]
    result = sent(called(("1", "f", {})), ToolMessage([block], tool_call_id="1"))[1]
    assert (result["content"], result["images"], result["tool_name"]) == ("", [PIXEL], "f")


FOREIGN = [
    AIMessage([{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "Hi"}]),
    AIMessage([{"type": "reasoning", "id": "rs_1", "summary": []}, {"type": "text", "text": "Hi", "id": "msg_1"}]),
    AIMessage([{"type": "text", "text": "Hi", "extras": {"signature": "s"}}, {"type": "executable_code", "executable_code": "1"}]),
    AIMessage([{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, {"type": "text", "text": "Hi"}]),
    AIMessage("", additional_kwargs={"refusal": "Hi"}),
    AIMessage("", additional_kwargs={"audio": {"id": "a", "transcript": "Hi"}}),
    AIMessage([{"type": "refusal", "refusal": "Hi"}]),
]  # fmt: skip


@pytest.mark.parametrize("message", FOREIGN, ids=[str(number) for number in range(len(FOREIGN))])
def test_other_vendors_messages_are_their_words(message: AIMessage) -> None:
    """Of another vendor's message its words are sent; its inner state is not."""
    assert sent(message) == [{"role": "assistant", "content": "Hi"}]


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"type": "image", "url": "https://example.com/cat.png"}, "base64"),
        ({"type": "audio", "base64": "UklGRg==", "mime_type": "audio/wav"}, "audio"),
        ({"type": "file", "base64": "JVBERg==", "mime_type": "application/pdf"}, "file"),
        ({"type": "image"}, "no base64 data"),
    ],
    ids=["picture by URL", "sound", "file", "empty"],
)
def test_what_the_wire_cannot_carry_is_told(block: dict[str, Any], said: str) -> None:
    """A block that cannot be sent is an error that names it and says what could."""
    with pytest.raises(UnsupportedFeatureError, match=said):
        OllamaMapper().encode_request([HumanMessage([block])], {})


def test_documents_that_are_text_are_text() -> None:
    """A plain text document is sent as its words, under its title."""
    block = {"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "words"}}
    assert sent(HumanMessage([block]))[0]["content"] == "T\nwords"


def test_a_longer_history_begins_with_the_shorter() -> None:
    """Each message keeps its bytes when others follow, also with another mapper."""
    history = [SystemMessage("s"), HumanMessage("u"), called(("1", "f", {"q": 1})), ToolMessage("x", tool_call_id="1"), AIMessage("a")]
    bodies = [OllamaMapper().encode_request(history[:count], {"model": "m"}) for count in (1, 2, 4, 5)]
    for shorter, longer in pairwise(bodies):
        assert longer.startswith(shorter[:-2])
