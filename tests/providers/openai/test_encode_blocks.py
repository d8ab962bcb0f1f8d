"""What each content block of a user's message becomes: blocks of LangChain, of chat completions and of other vendors."""

import base64
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from langchain_autotools.errors import UnsupportedFeatureError
from langchain_autotools.providers.openai.mapper import ChatCompletionsMapper, part_of
from tests.support.strict import Rules
from tests.support.strict_openai import check_request

PIXEL = "iVBORw0KGgo="
PDF = "JVBERi0="
URL = "https://example.com/a.png"


def image(url: str = f"data:image/png;base64,{PIXEL}", **more: str) -> dict[str, Any]:
    """An image part."""
    return {"type": "image_url", "image_url": {"url": url, **more}}


def file(name: str = "file.pdf", data: str = f"data:application/pdf;base64,{PDF}") -> dict[str, Any]:
    """A file part with data."""
    return {"type": "file", "file": {"filename": name, "file_data": data}}


def text(words: str) -> dict[str, Any]:
    """A text part."""
    return {"type": "text", "text": words}


CASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("plain string", "hi", text("hi")),
    ("text", {"type": "text", "text": "hi", "id": "lc_1", "annotations": [], "extras": {"a": 1}, "index": 0}, text("hi")),
    ("text without a type", {"text": "hi"}, text("hi")),
    ("v0 text", {"type": "text", "source_type": "text", "text": "hi"}, text("hi")),
    ("Responses text", {"type": "input_text", "text": "hi"}, text("hi")),
    ("text with a cache breakpoint", {"type": "text", "text": "a", "extras": {"prompt_cache_breakpoint": {"x": 1}}},
     {**text("a"), "prompt_cache_breakpoint": {"x": 1}}),
    ("v1 plain text", {"type": "text-plain", "text": "x", "title": "T", "mime_type": "text/plain"}, text("T\nx")),
    ("v1 plain text as data", {"type": "text-plain", "base64": base64.b64encode(b"x").decode(), "mime_type": "text/plain"}, text("x")),
    ("v0 file of text", {"type": "file", "source_type": "text", "text": "x"}, text("x")),
    ("v1 image data", {"type": "image", "base64": PIXEL, "mime_type": "image/png", "id": "lc_1"}, image()),
    ("v1 image bytes", {"type": "image", "base64": base64.b64decode(PIXEL), "mime_type": "image/png"}, image()),
    ("v1 image without a media type", {"type": "image", "base64": PIXEL}, image()),
    ("v1 image URL with detail", {"type": "image", "url": URL, "extras": {"detail": "low"}}, image(URL, detail="low")),
    ("v1 image data URL", {"type": "image", "url": f"data:image/png;base64,{PIXEL}"}, image()),
    ("v0 image URL", {"type": "image", "source_type": "url", "url": URL}, image(URL)),
    ("v0 image data", {"type": "image", "source_type": "base64", "data": PIXEL, "mime_type": "image/png"}, image()),
    ("chat completions image", {"type": "image_url", "image_url": {"url": URL, "detail": "high"}}, image(URL, detail="high")),
    ("image URL as a string", {"type": "image_url", "image_url": URL}, image(URL)),
    ("Responses image", {"type": "input_image", "image_url": URL, "detail": "low"}, image(URL, detail="low")),
    ("Anthropic image data", {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}, image()),
    ("Anthropic image URL", {"type": "image", "source": {"type": "url", "url": URL}}, image(URL)),
    ("Google image", {"type": "media", "mime_type": "image/png", "data": PIXEL}, image()),
    ("v1 audio", {"type": "audio", "base64": "AAAA", "mime_type": "audio/x-wav"},
     {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}),
    ("v0 audio", {"type": "audio", "source_type": "base64", "data": "AAAA", "mime_type": "audio/mpeg"},
     {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}),
    ("chat completions audio", {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
     {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}),
    ("v1 file data", {"type": "file", "base64": PDF, "mime_type": "application/pdf"}, file()),
    ("v1 file with a name", {"type": "file", "base64": PDF, "mime_type": "application/pdf",
                             "extras": {"filename": "a.pdf"}}, file("a.pdf")),
    ("v0 file with a name", {"type": "file", "source_type": "base64", "data": PDF, "mime_type": "application/pdf",
                             "metadata": {"filename": "a.pdf"}}, file("a.pdf")),
    ("v1 file data URL", {"type": "file", "url": f"data:application/pdf;base64,{PDF}"}, file()),
    ("v1 file id", {"type": "file", "file_id": "file-1", "id": "lc_1"}, {"type": "file", "file": {"file_id": "file-1"}}),
    ("v0 file id", {"type": "file", "source_type": "id", "id": "file-1"}, {"type": "file", "file": {"file_id": "file-1"}}),
    ("chat completions file", {"type": "file", "file": {"file_id": "file-1"}}, {"type": "file", "file": {"file_id": "file-1"}}),
    ("Responses file", {"type": "input_file", "file_id": "file-1"}, {"type": "file", "file": {"file_id": "file-1"}}),
    ("Anthropic document", {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}}, file()),
    ("Anthropic text document", {"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
     text("T\nx")),
    ("Anthropic document of blocks", {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "x"}]}},
     text("x")),
    ("Anthropic document of a string", {"type": "document", "source": {"type": "content", "content": "x"}}, text("x")),
    ("output of a custom tool", {"type": "custom_tool_call_output", "output": "x"}, text("x")),
    ("Google document", {"type": "media", "mime_type": "application/pdf", "data": PDF}, file()),
    ("wrapped", {"type": "non_standard", "value": {"type": "image_url", "image_url": {"url": URL}}}, image(URL)),
]  # fmt: skip


@pytest.mark.parametrize(("block", "part"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_each_block_has_its_part(block: Any, part: dict[str, Any]) -> None:
    """Every known block becomes the part of chat completions that says the same."""
    assert part_of(block) == part


@pytest.mark.parametrize(
    "block", [case[1] for case in CASES if "breakpoint" not in case[0]], ids=[case[0] for case in CASES if "breakpoint" not in case[0]]
)
def test_the_strict_server_takes_each_part(block: Any) -> None:
    """What is sent for a block has no key that the vendor does not know."""
    content = [block, {"type": "text", "text": "?"}]
    check_request(ChatCompletionsMapper().encode_request([HumanMessage(content)], {"model": "any"}), Rules())


@pytest.mark.parametrize(
    ("block", "why"),
    [
        ({"type": "video", "url": "https://example.com/a.mp4"}, "'video'"),
        ({"type": "image", "file_id": "file-1"}, "'image'.*URL or base64"),
        ({"type": "image", "base64": "AAAA"}, "mime_type"),
        ({"type": "image_url"}, "'image_url'"),
        ({"type": "audio", "url": "https://example.com/a.mp3"}, "'audio'.*base64"),
        ({"type": "input_audio"}, "'input_audio'"),
        ({"type": "image_generation_call"}, "no result"),
        ({"type": "file", "url": "https://example.com/a.pdf"}, "'file'.*no file URL"),
        ({"type": "input_file", "file_url": "https://example.com/a.pdf"}, "no file URL"),
        ({"type": ["odd"]}, "odd"),
        ({}, "None"),
    ],
)
def test_what_cannot_be_carried_is_said(block: dict[str, Any], why: str) -> None:
    """A block that the wire has no form for is an error with its type and the reason."""
    with pytest.raises(UnsupportedFeatureError, match=why):
        part_of(block)


def test_keys_of_other_servers_are_sent_where_they_are_known() -> None:
    """`cache_control` is dropped for the vendor and kept for a server that takes it."""
    message = HumanMessage([{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}])
    assert b"cache_control" not in ChatCompletionsMapper().encode_request([message], {})
    body = ChatCompletionsMapper(part_keys=["cache_control"]).encode_request([message], {"model": "any"})
    part = check_request(body, Rules(part_keys=["cache_control"]))["messages"][0]["content"][0]
    assert part == {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
