"""Messages of any vendor as input items of the Responses API, as tables; the strict server takes what comes out."""

from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langchain_autotools.errors import UnsupportedFeatureError
from langchain_autotools.providers.openai.responses_mapper import ResponsesMapper
from tests.support.strict import Rules
from tests.support.strict_responses import Memory, check_responses_request

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PDF = "JVBERi0="
MAPPER = ResponsesMapper(origin="home")


def sent(messages: list[BaseMessage], mapper: ResponsesMapper = MAPPER) -> list[dict[str, Any]]:
    """The input of a request, which the strict server takes."""
    return check_responses_request(mapper.encode_request(messages, {"model": "any"}), Rules(longest_id=64), Memory())["input"]  # type: ignore[no-any-return]


def said(text: str) -> dict[str, Any]:
    """Words of a model as an item."""
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}


def refused(refusal: str, text: str = "") -> dict[str, Any]:
    """A refusal of a model as an item, with what it said before."""
    parts = said(text)["content"] if text else []
    return {"type": "message", "role": "assistant", "content": [*parts, {"type": "refusal", "refusal": refusal}]}


def call(identifier: str, name: str = "f", **args: Any) -> dict[str, Any]:
    """A tool call."""
    return {"name": name, "args": args, "id": identifier}


# ---------------------------------------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("message", "item"),
    [
        (HumanMessage("Hi"), {"role": "user", "content": "Hi"}),
        (HumanMessage([{"type": "text", "text": "Hi"}]), {"role": "user", "content": "Hi"}),
        (HumanMessage("Hi", name="ada"), {"role": "user", "content": "Hi"}),
        (SystemMessage("Be kind."), {"role": "system", "content": "Be kind."}),
        (SystemMessage("Be kind.", additional_kwargs={"__openai_role__": "developer"}), {"role": "developer", "content": "Be kind."}),
        (ChatMessage("Be kind.", role="developer"), {"role": "developer", "content": "Be kind."}),
        (ChatMessage("Hi.", role="assistant"), said("Hi.")),
        (AIMessage("Hello."), said("Hello.")),
        (AIMessage("", additional_kwargs={"refusal": "No."}), refused("No.")),
        (AIMessage("", additional_kwargs={"audio": {"id": "audio_1", "data": "x", "transcript": "Hello."}}), said("Hello.")),
        (
            AIMessage([{"type": "thinking", "thinking": "Hm", "signature": "s"}, {"type": "text", "text": "Hi"}]),
            said("Hi"),
        ),
        (
            AIMessage([{"type": "reasoning", "id": "rs_1", "summary": []}, {"type": "text", "text": "Hi", "id": "msg_1"}]),
            said("Hi"),
        ),
        (AIMessage([{"type": "web_search_call", "id": "ws_1"}, "Hi"]), said("Hi")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_messages_become_items(message: BaseMessage, item: dict[str, Any]) -> None:
    """Each kind of message, of any vendor, is one item of its role; names and other vendors' inner state are left out."""
    assert sent([message]) == [item]


@pytest.mark.further
def test_a_refusal_goes_back_as_one() -> None:
    """Beside the content or among its blocks, in LangChain's or the vendor's form, alone or behind a text; the same one once."""
    block = {"type": "refusal", "refusal": "No."}
    for content, beside, text in [
        ([block], {}, ""),
        ([block], {"refusal": "No."}, ""),
        ([{"type": "non_standard", "value": block}], {}, ""),
        ("Hm.", {"refusal": "No."}, "Hm."),
        ([{"type": "text", "text": "Hm."}, block], {}, "Hm."),
    ]:
        assert sent([AIMessage(content, additional_kwargs=beside)]) == [refused("No.", text)]


def test_an_empty_reply_is_no_item() -> None:
    """A reply without text and calls says nothing, so nothing is sent for it."""
    assert sent([HumanMessage("a"), AIMessage(""), HumanMessage("b")]) == [{"role": "user", "content": text} for text in "ab"]


def test_an_unknown_role_is_refused() -> None:
    """A role that the API does not have cannot be sent."""
    with pytest.raises(UnsupportedFeatureError, match="'critic'"):
        sent([ChatMessage("x", role="critic")])


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (
            {"type": "image", "base64": PIXEL, "mime_type": "image/png"},
            {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PIXEL}"},
        ),
        (
            {"type": "image_url", "image_url": {"url": "https://e.org/a.png", "detail": "low"}},
            {"type": "input_image", "detail": "low", "image_url": "https://e.org/a.png"},
        ),
        ({"type": "image", "file_id": "file-1"}, {"type": "input_image", "detail": "auto", "file_id": "file-1"}),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
            {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PIXEL}"},
        ),
        (
            {"type": "file", "base64": PDF, "mime_type": "application/pdf"},
            {"type": "input_file", "filename": "file.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
        ),
        ({"type": "file", "url": "https://e.org/a.pdf"}, {"type": "input_file", "file_url": "https://e.org/a.pdf"}),
        ({"type": "file", "file": {"file_id": "file-1"}}, {"type": "input_file", "file_id": "file-1"}),
        ({"type": "input_file", "file_url": "https://e.org/a.pdf", "index": 3}, {"type": "input_file", "file_url": "https://e.org/a.pdf"}),
        (
            {"type": "audio", "base64": "UklGRg==", "mime_type": "audio/wav"},
            {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        ),
        (
            {"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}},
            {"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}},
        ),
    ],
    ids=lambda block: str(block.get("type")),
)
def test_content_becomes_input_parts(block: dict[str, Any], part: dict[str, Any]) -> None:
    """Pictures, files and sound of any vendor's form are parts of this wire."""
    assert sent([HumanMessage([{"type": "text", "text": "See."}, block])])[0]["content"][1] == part


def test_content_that_the_api_cannot_carry_is_refused() -> None:
    """A video is an error with its type, not dropped."""
    with pytest.raises(UnsupportedFeatureError, match="video_url"):
        sent([HumanMessage([{"type": "video_url", "video_url": {"url": "https://e.org/a.mp4"}}])])


def test_items_of_the_caller_stand_where_they_stood() -> None:
    """Blocks that answer the vendor's tools are items of their own, between the words."""
    approval = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    items = sent(
        [HumanMessage([{"type": "text", "text": "Yes."}, {"type": "non_standard", "value": approval}, {"type": "text", "text": "Go."}])]
    )
    assert items == [{"role": "user", "content": "Yes."}, approval, {"role": "user", "content": "Go."}]


# ---------------------------------------------------------------------------------------------- calls and results


def test_calls_and_results() -> None:
    """Calls follow the text; results go as text, as parts where they hold pictures, and never empty (wire quirk P-10)."""
    picture = {"type": "image", "base64": PIXEL, "mime_type": "image/png"}
    history = [
        HumanMessage("q"),
        AIMessage("Look.", tool_calls=[call("a", x="é"), call("b"), call("c"), call("d")]),
        ToolMessage("one", tool_call_id="a"),
        ToolMessage([{"type": "text", "text": "see"}, picture], tool_call_id="b"),
        ToolMessage("", tool_call_id="c", status="error"),
        ToolMessage([{"type": "text", "text": "x"}, {"type": "text", "text": "y"}], tool_call_id="d"),
    ]
    items = sent(history)
    assert items[1:3] == [
        said("Look."),
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x":"é"}'},
    ]
    outputs = [item["output"] for item in items if item.get("type") == "function_call_output"]
    parts = [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PIXEL}"},
    ]
    assert outputs == ["one", parts, "(failed without output)", "x\ny"]


def test_sound_in_a_result_follows_in_a_user_message() -> None:
    """What an output cannot hold comes after all outputs of the turn."""
    sound = {"type": "audio", "base64": "UklGRg==", "mime_type": "audio/wav"}
    history = [AIMessage("", tool_calls=[call("a"), call("b")]), ToolMessage([sound], tool_call_id="a"), ToolMessage("x", tool_call_id="b")]
    items = sent([HumanMessage("q"), *history, AIMessage("ok")])
    assert [item.get("role") or item["type"] for item in items] == [
        "user", "function_call", "function_call", "function_call_output", "function_call_output", "user", "assistant",
    ]  # fmt: skip
    assert [part["type"] for part in items[5]["content"]] == ["input_text", "input_audio"]


def test_ids_are_legal_and_unique_in_the_whole_input() -> None:
    """Long ids, empty ones and ids of an earlier turn are replaced on call and result alike, always by the same."""
    turn = [
        AIMessage("", tool_calls=[call("call_0"), call("x" * 80)]),
        *(ToolMessage("r", tool_call_id=name) for name in ("call_0", "x" * 80)),
    ]
    again = [message.model_copy() for message in turn]
    items = sent([HumanMessage("q"), *turn, *again])
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    results = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert calls == results and len(set(calls)) == 4 and calls[0] == "call_0"
    mapper = ResponsesMapper()
    shorter, longer = mapper.encode_request([HumanMessage("q"), *turn], {}), mapper.encode_request([HumanMessage("q"), *turn, *again], {})
    assert longer.startswith(shorter[:-2])


def test_unreadable_arguments_are_sent_empty() -> None:
    """A call that was no JSON object goes back without arguments; names that no server takes are mended."""
    broken = AIMessage("", invalid_tool_calls=[{"name": "get it", "args": '{"a', "id": "a", "error": "cut", "type": "invalid_tool_call"}])
    assert sent([HumanMessage("q"), broken, ToolMessage("r", tool_call_id="a")])[1] == {
        "type": "function_call", "call_id": "a", "name": "get_it", "arguments": "{}",
    }  # fmt: skip
