"""Histories as requests: roles and grouping, calls and responses, media, other vendors' histories, and the way back to others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_autotools import ChatGoogleGenerativeAI, UnsupportedFeatureError
from langchain_autotools.providers.google.mapper import GenerateContentMapper
from tests.contract.wires import WIRES, Wire
from tests.support.google_server import GoogleServer
from tests.support.script import Call, Turn
from tests.support.weather import get_temperature

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
STAND_IN = "skip_thought_signature_validator"
OLDER = {"older": True}


def request(*messages: Any, home: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    """The request of these messages."""
    mapper = GenerateContentMapper(**(home or {}))
    return json.loads(mapper.encode_request(messages, params))  # type: ignore[no-any-return]


def contents(*messages: Any, home: dict[str, Any] | None = None) -> list[Any]:
    """The Contents of these messages."""
    return request(*messages, home=home)["contents"]  # type: ignore[no-any-return]


def part(block: Any, home: dict[str, Any] | None = None) -> Any:
    """A content block as a part."""
    [content] = contents(HumanMessage([block]), home=home)
    [only] = content["parts"]
    return only


def asking(*calls: tuple[str, str], **more: Any) -> AIMessage:
    """A message that calls tools, by id and name."""
    return AIMessage("", tool_calls=[{"id": identifier, "name": name, "args": {"q": 1}} for identifier, name in calls], **more)


def test_roles_and_grouping() -> None:
    """System messages at the start are the instruction, later ones the user's words; neighbours are one Content."""
    sent = request(
        SystemMessage("Be brief."),
        SystemMessage([{"type": "text", "text": "Be kind."}]),
        HumanMessage("One."),
        HumanMessage(["Two.", {"type": "text", "text": ""}]),
        AIMessage("Yes."),
        SystemMessage("Now rhyme."),
        HumanMessage("Three."),
    )
    assert sent["systemInstruction"] == {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]}
    assert sent["contents"] == [
        {"role": "user", "parts": [{"text": "One."}, {"text": "Two."}]},
        {"role": "model", "parts": [{"text": "Yes."}]},
        {"role": "user", "parts": [{"text": "<system>\nNow rhyme.\n</system>"}, {"text": "Three."}]},
    ]


def test_a_history_that_begins_with_the_model() -> None:
    """The user comes first, as the wire wants it; a message that says nothing is left out."""
    sent = contents(AIMessage("Hello, I am a model."), HumanMessage("Hi."), AIMessage(""), HumanMessage("Still there?"))
    assert [content["role"] for content in sent] == ["user", "model", "user"]
    assert [item["text"] for item in sent[2]["parts"]] == ["Hi.", "Still there?"]


def test_responses_are_one_content_in_order() -> None:
    """All responses of a turn are together, alone, named as their calls; what follows is a Content of its own (wire quirk G-10)."""
    sent = contents(
        HumanMessage("q"),
        asking(("a", "f"), ("b", "g")),
        ToolMessage("1", tool_call_id="a"),
        ToolMessage("2", tool_call_id="b", status="error"),
        HumanMessage("And?"),
    )
    assert [list(item) for item in sent[1]["parts"]] == [["functionCall", "thoughtSignature"], ["functionCall"]]
    assert [item["functionResponse"] for item in sent[2]["parts"]] == [
        {"name": "f", "response": {"result": "1"}},
        {"name": "g", "response": {"error": "2"}},
    ]
    assert sent[3] == {"role": "user", "parts": [{"text": "And?"}]}


@pytest.mark.parametrize(
    ("content", "status", "response"),
    [
        ("21 °C", "success", {"result": "21 °C"}),
        ('{"degrees": 21}', "success", {"degrees": 21}),
        ('{"error": "no such city"}', "error", {"error": "no such city"}),
        ('{"code": 5}', "error", {"error": {"code": 5}}),
        ("[1, 2]", "success", {"result": "[1, 2]"}),
        ("{}", "success", {"result": "{}"}),
        ('{"a": {"$ref": "x"}}', "success", {"result": '{"a": {"$ref": "x"}}'}),
        ('{"a": NaN}', "success", {"result": '{"a": NaN}'}),
        ("", "success", {"result": "(no output)"}),
        (" ", "error", {"error": "(failed without output)"}),
        ([{"type": "text", "text": "one"}, "two"], "success", {"result": "one\ntwo"}),
    ],
)
def test_a_response_is_an_object(content: Any, status: Any, response: dict[str, Any]) -> None:
    """Whatever a tool returned goes as an object; an object stays one unless the server would read references in it (wire quirk G-10)."""
    sent = contents(HumanMessage("q"), asking(("a", "f")), ToolMessage(content, tool_call_id="a", status=status))
    assert sent[2]["parts"][0]["functionResponse"]["response"] == response


def test_calls_of_others_carry_the_word_for_a_signature() -> None:
    """Of a foreign history the first call of each turn says the vendor's word; older models are sent none. Ids are left out."""
    history = (HumanMessage("q"), asking(("a", "f"), ("b", "f")), ToolMessage("1", tool_call_id="a"), ToolMessage("2", tool_call_id="b"))
    assert [item.get("thoughtSignature") for item in contents(*history)[1]["parts"]] == [STAND_IN, None]
    assert [item.get("thoughtSignature") for item in contents(*history, home=OLDER)[1]["parts"]] == [None, None]
    assert all("id" not in item["functionCall"] for item in contents(*history)[1]["parts"])


def test_a_partners_history_keeps_its_signatures() -> None:
    """Signatures where langchain-google-genai keeps them go back to the model that it names, and to no other."""
    signatures = {"__gemini_function_call_thought_signatures__": {"a": "c2ln"}}
    metadata = {"model_provider": "google_genai", "model_name": "gemini-x"}
    message = asking(("a", "f"), additional_kwargs=signatures, response_metadata=metadata)
    message.content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "dGhp"},
        {"type": "text", "text": "x", "extras": {"signature": "dGV4"}},
    ]
    history = (HumanMessage("q"), message, ToolMessage("1", tool_call_id="a"))
    assert contents(*history, home={"model": "gemini-x"})[1]["parts"] == [
        {"text": "Hm.", "thought": True, "thoughtSignature": "dGhp"},
        {"text": "x", "thoughtSignature": "dGV4"},
        {"functionCall": {"name": "f", "args": {"q": 1}}, "thoughtSignature": "c2ln"},
    ]
    assert contents(*history, home={"model": "gemini-y"})[1]["parts"] == [
        {"text": "x"},
        {"functionCall": {"name": "f", "args": {"q": 1}}, "thoughtSignature": STAND_IN},
    ]


def test_a_partners_code_has_no_id() -> None:
    """langchain-google-genai gives code an id of its own making, which its result has not: neither is sent."""
    said: Any = [
        {"type": "executable_code", "executable_code": "1", "language": "PYTHON", "id": "made up"},
        {"type": "code_execution_result", "code_execution_result": "1", "outcome": 1, "tool_call_id": ""},
    ]
    metadata = {"model_provider": "google_genai", "model_name": "gemini-x"}
    history = [HumanMessage("q"), AIMessage(said, response_metadata=metadata), HumanMessage("r")]
    assert contents(*history, home={"model": "gemini-x"})[1]["parts"] == [
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
    ]


def test_what_another_vendor_keeps_is_left_out() -> None:
    """Of an assistant's blocks those without their data, and another vendor's inner state, are left out; pictures stay."""
    kept = [{"type": "text", "text": "Here."}, {"type": "image_generation_call", "id": "ig", "result": PIXEL}]
    inner = [
        {"type": "audio", "id": "a", "transcript": "x"},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "thinking", "thinking": "Hm."},
    ]
    [_, said] = contents(HumanMessage("q"), AIMessage([*inner, *kept]))
    assert said["parts"] == [{"text": "Here."}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}]


def test_names_become_legal_on_both_sides() -> None:
    """A name that the wire refuses is changed alike on the call and its response."""
    sent = contents(HumanMessage("q"), asking(("a", "3 café/größe")), ToolMessage("1", tool_call_id="a"))
    name = sent[1]["parts"][0]["functionCall"]["name"]
    assert name == sent[2]["parts"][0]["functionResponse"]["name"] == "_3_caf__gr__e"


def test_unreadable_arguments_are_told_as_such() -> None:
    """A call whose arguments are no object goes back with them under a key that says so (wire quirk H-08)."""
    message = AIMessage("", invalid_tool_calls=[{"id": "a", "name": "f", "args": '{"q": ', "error": "cut"}])
    sent = contents(HumanMessage("q"), message, ToolMessage("bad", tool_call_id="a", status="error"))
    assert sent[1]["parts"][0]["functionCall"]["args"] == {"INVALID_JSON": '{"q": '}


IMAGE = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"type": "image", "base64": PIXEL, "mime_type": "image/png"}, IMAGE),
        ({"type": "image", "source_type": "base64", "data": PIXEL, "mime_type": "image/png"}, IMAGE),
        ({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}, IMAGE),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}, IMAGE),
        ({"type": "image", "base64": PIXEL}, IMAGE),
        ({"type": "media", "mime_type": "image/png", "data": PIXEL}, IMAGE),
        (
            {"type": "image", "base64": PIXEL, "mime_type": "image/png", "media_resolution": "media_resolution_high"},
            {**IMAGE, "mediaResolution": {"level": "MEDIA_RESOLUTION_HIGH"}},
        ),
        (
            {"type": "media", "mime_type": "video/mp4", "file_uri": "gs://b/v.mp4"},
            {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/v.mp4"}},
        ),
        (
            {"type": "video", "url": "https://youtu.be/x", "mime_type": "video/mp4", "extras": {"video_metadata": {"fps": 1}}},
            {"fileData": {"mimeType": "video/mp4", "fileUri": "https://youtu.be/x"}, "videoMetadata": {"fps": 1}},
        ),
        (
            {"type": "image", "url": "https://a.example/p.png?w=1"},
            {"fileData": {"mimeType": "image/png", "fileUri": "https://a.example/p.png?w=1"}},
        ),
        (
            {"type": "image", "url": "https://a.example/picture"},
            {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://a.example/picture"}},
        ),
        ({"type": "audio", "base64": "UklGRg==", "mime_type": "audio/wav"}, {"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}}),
        (
            {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "mp3"}},
            {"inlineData": {"mimeType": "audio/mpeg", "data": "QQ=="}},
        ),
        (
            {"type": "file", "base64": "JVBE", "mime_type": "application/pdf"},
            {"inlineData": {"mimeType": "application/pdf", "data": "JVBE"}},
        ),
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE"}},
            {"inlineData": {"mimeType": "application/pdf", "data": "JVBE"}},
        ),
        ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Hi"}}, {"text": "Hi"}),
        ({"type": "text-plain", "text": "Hi", "mime_type": "text/plain"}, {"text": "Hi"}),
        ({"type": "file", "base64": "SGk=", "mime_type": "text/csv", "filename": "a.csv"}, {"text": "a.csv\nHi"}),
        ({"type": "file", "file_id": "files/abc"}, {"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/abc"}}),
        ({"inlineData": {"mimeType": "image/png", "data": PIXEL}}, IMAGE),
        ({"type": "search_result", "title": "T", "source": "s", "content": [{"type": "text", "text": "Found."}]}, {"text": "T s\nFound."}),
    ],
)
def test_media_of_every_vendor(block: dict[str, Any], expected: dict[str, Any]) -> None:
    """Pictures, sound, films, documents and uploaded files go in the wire's form, whoever's block they are."""
    assert part(block) == expected


@pytest.mark.parametrize("block", [{"type": "image"}, {"type": "file", "base64": "QQ=="}, {"type": "tool_reference", "tool_name": "x"}])
def test_what_the_wire_cannot_carry_is_an_error(block: dict[str, Any]) -> None:
    """A block without data, without a media type or of no kind that the wire has is refused by its type."""
    with pytest.raises(UnsupportedFeatureError, match=block["type"]):
        part(block)


def test_media_in_results() -> None:
    """A picture is in the response where the model takes it there; for older models, and sound for all, it follows the responses."""
    picture = {"type": "image", "base64": PIXEL, "mime_type": "image/png"}
    sound = {"type": "audio", "base64": "QQ==", "mime_type": "audio/wav"}
    results = [
        ToolMessage([{"type": "text", "text": "Here."}, picture, sound], tool_call_id="a"),
        ToolMessage([picture], tool_call_id="b"),
    ]
    history = (HumanMessage("q"), asking(("a", "f"), ("b", "g")), *results)
    newer = contents(*history)
    assert [item["functionResponse"] for item in newer[2]["parts"]] == [
        {"name": "f", "response": {"result": "Here."}, "parts": [IMAGE]},
        {"name": "g", "response": {}, "parts": [IMAGE]},
    ]
    assert newer[3]["parts"] == [{"inlineData": {"mimeType": "audio/wav", "data": "QQ=="}}]
    older = contents(*history, home=OLDER)
    assert [item["functionResponse"]["response"] for item in older[2]["parts"]] == [{"result": "Here."}, {"result": "(no output)"}]
    assert [next(iter(item)) for item in older[3]["parts"]] == ["inlineData"] * 3


TURNS = [
    Turn("Let me look.", [Call("get_temperature", {"city": "Paris"}), Call("get_temperature", {"city": "Rome"})], reasoning="Hm."),
    Turn("Both are warm.", reasoning="So."),
]


@pytest.mark.parametrize("wire", WIRES, ids=[wire.name for wire in WIRES])
@pytest.mark.parametrize("output_version", ["v0", "v1"])
def test_histories_go_to_and_come_from_every_other_vendor(wire: Wire, output_version: str) -> None:
    """A run on one wire goes on on Google's, and a run on Google's on any other; strict servers refuse nothing."""
    with wire.serve(TURNS) as theirs, GoogleServer([Turn("Yes.")]) as ours:
        there = wire.model(theirs, tools=[get_temperature], output_version=output_version)
        history = [HumanMessage("How warm is it?"), there.invoke("How warm is it?"), HumanMessage("Really?")]
        assert google(ours).invoke(history).text == "Yes."
        assert (theirs.rejections, ours.rejections) == ([], [])
    with GoogleServer(TURNS) as ours, wire.serve([Turn("Yes.")]) as theirs:
        history = [HumanMessage("How warm is it?"), google(ours, output_version).invoke("How warm is it?"), HumanMessage("Really?")]
        assert wire.model(theirs, tools=[get_temperature]).invoke(history).text == "Yes."
        assert (theirs.rejections, ours.rejections) == ([], [])
        assert "Hm." not in theirs.exchanges[0].body.decode()


def google(server: GoogleServer, output_version: str = "v0") -> ChatGoogleGenerativeAI:
    """A model with a tool."""
    return ChatGoogleGenerativeAI(model="any", base_url=server.url, api_key="k", tools=[get_temperature], output_version=output_version)
