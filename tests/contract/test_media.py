"""Pictures, files and sound: what users give, tools return and models make, over every wire."""

from __future__ import annotations

import base64
import time
from functools import partial
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage, trim_messages

from langchain_autotools import ChatOpenAI, UnsupportedFeatureError, events, new_messages
from langchain_autotools.encoders import ag_ui, ai_sdk, ai_sdk_messages, sse
from langchain_autotools.testing import ScriptedChatModel
from tests.contract import media
from tests.contract.stories import PIXEL, get_temperature
from tests.contract.talk import Start, run_in
from tests.contract.test_histories import sent
from tests.contract.wires import ROWS
from tests.support import vendor_replies as replies
from tests.support.google_server import GoogleServer
from tests.support.script import Call, Events, Turn


class Prompts(BaseCallbackHandler):
    """A tracer that keeps what it is told of requests."""

    raise_error = True

    def __init__(self) -> None:
        self.told: list[BaseMessage] = []

    def on_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **kwargs: Any) -> None:
        """Keep the messages."""
        self.told += messages[0]


@pytest.mark.parametrize("place", media.PLACES)
@pytest.mark.parametrize("name", media.OWN)
def test_every_block_in_every_place_goes_where_the_table_says(name: str, place: str) -> None:
    """Carried, said in words, or refused before anything is sent, which only a user's block is; never dropped, never base64 as text."""
    cells = media.cells(media.ROWS[name], place)
    assert cells == {block: cell[name] for (where, block), cell in media.stored().items() if where == place}
    assert all(cells.values()) and (place == "user" or media.REFUSED not in cells.values())


def test_the_page_is_made_from_the_table() -> None:
    """docs/media.md says what the table says."""
    assert media.PAGE.read_text(encoding="utf-8") == media.page(media.stored())


async def test_a_picture_whose_media_type_nobody_says(start: Start, way: str) -> None:
    """A picture whose media type nobody says, or whose data is bytes, goes out whole, and tracers get it with its type."""
    untyped: list[dict[str, Any]] = [
        {"type": "image", "base64": PIXEL},
        {"type": "image", "source_type": "base64", "data": PIXEL},
        {"type": "image", "base64": base64.b64decode(PIXEL)},
    ]

    def look() -> list[dict[str, Any]]:
        """Look."""
        return [{"type": "text", "text": "Seen."}, *untyped[:2]]

    talk = start([Turn("", [Call("look")]), Turn("Fine."), Turn("Again.")], tools=[look])
    tracer = Prompts()
    history: list[BaseMessage] = [HumanMessage([{"type": "text", "text": "Look."}, *untyped])]
    ran = await run_in(way, talk.model, history, config={"callbacks": [tracer]})
    await run_in(way, talk.model, [*history, *ran.new, HumanMessage("And?")])
    assert [sent(talk, request).count(PIXEL) for request in range(3)] == [3, 5, 5]
    urls = [block["image_url"]["url"] for message in tracer.told for block in message.content if block["type"] == "image_url"]  # type: ignore[index]
    assert {*urls} == {f"data:image/png;base64,{PIXEL}"} and len(urls) == 8


async def test_what_cannot_be_carried_is_said_once(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """A result with data that the wire does not read, or of no known form, ends no run, now or later; a warning says so once."""
    odd: list[Any] = [
        {"type": "file", "base64": "AAEC", "mime_type": "application/x-odd", "filename": "odd.bin"},
        {"type": "image", "base64": "", "mime_type": "image/png"},
        {"type": "image", "base64": "?", "mime_type": "image/png"},
        {"type": "audio", "source_type": "base64", "data": "", "id": "a"},
        {"type": "image", "source_type": "base64", "data": "AAEC", "id": "a"},
        {"type": "image", "url": 5},
        {"type": "image", "base64": {}, "mime_type": []},
        {"type": "file", "file": {"file_data": 5}},
        {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
        {"type": "unheard_of", "x": {"y": [1]}},
        {"type": "file", "base64": "TfxsbGVy", "mime_type": "text/csv", "filename": "old.csv"},
    ]

    def look(number: int) -> ToolMessage:
        """Look."""
        return ToolMessage([{"type": "text", "text": "Seen."}, odd[number]], tool_call_id="")

    calls = [Call("look", {"number": number}) for number in range(len(odd))]
    talk = start([Turn("", calls), Turn("Fine."), Turn("Again.")], tools=[look])
    history: list[BaseMessage] = [HumanMessage("Look.")]
    ran = await run_in("ainvoke", talk.model, history)
    await run_in("invoke", talk.model, [*history, *ran.new, HumanMessage("And?")])
    said = [record.getMessage() for record in caplog.records if "odd.bin" in record.getMessage()]
    assert len(said) == 1 and "odd.bin, 3 bytes: this model cannot read it" in sent(talk)
    assert "unheard_of" in sent(talk) and "old.csv, 6 bytes" in sent(talk) and "\ufffd" not in sent(talk)


async def test_text_files_are_read_by_their_charset(start: Start) -> None:
    """Text files are read by the charset of their media type, else by what is beyond doubt: a mark of Unicode, XML's declaration, UTF-8."""
    files = {
        "text/csv; charset=windows-1252": "M\u00fcller 1".encode("windows-1252"),
        "text/plain;charset=UTF-16LE": "M\u00fcller 2".encode("utf-16-le"),
        "text/markdown": "M\u00fcller 3".encode("utf-16"),
        "application/json": "M\u00fcller 4".encode("utf-8-sig"),
        "text/xml": '<?xml version="1.0" encoding="ISO-8859-1"?>M\u00fcller 5'.encode("latin-1"),
    }
    blocks = [
        {"type": kind, "base64": base64.b64encode(data).decode(), "mime_type": mime_type}
        for mime_type, data in files.items()
        for kind in ("file", "text-plain")
    ]
    blocks.append({"type": "file", "url": "data:text/plain,M%C3%BCller%206"})
    talk = start([Turn("Fine.")])
    await run_in("invoke", talk.model, [HumanMessage(blocks)])
    assert [sent(talk).count(f"M\u00fcller {number}") for number in range(1, 7)] == [2] * 5 + [1] and "\ufeff" not in sent(talk)
    old = {"type": "file", "base64": base64.b64encode(files["text/csv; charset=windows-1252"]).decode(), "mime_type": "text/csv"}
    with pytest.raises(UnsupportedFeatureError, match="say its charset"):
        await run_in("invoke", talk.model, [HumanMessage([old])])


DRAWN = {
    "openai-chat": replies.chat,
    "openrouter": replies.chat,
    "openai-responses": replies.responses,
    "google": replies.google,
    "ollama": replies.ollama,
}


@pytest.mark.parametrize("origin", DRAWN)
@pytest.mark.parametrize("way", ["invoke", "astream"])
async def test_what_a_model_drew_is_content_that_goes_everywhere(origin: str, way: str) -> None:
    """A picture is in `content_blocks`, goes back to its server, and to every other wire: "make it red" has what to edit."""
    row = next(row for row in ROWS if row.name == origin)
    with row.serve([DRAWN[origin](), Turn("It is cold.")]) as server:
        more = {"modalities": ["image", "text"]} if origin == "openrouter" else {}
        ran = await run_in(way, row.model(server, tools=[get_temperature], **more), "Draw Oslo.")
        assert [rejection.message for rejection in server.rejections] == []
        assert PIXEL in str(server.exchanges[1].json)
    drawn = ran.new[0]
    kinds = [block["type"] for block in drawn.content_blocks]
    assert "image" in kinds and ("text" in kinds) == (origin != "ollama"), kinds
    assert "image" in [block["type"] for block in ran.message.content_blocks] and PIXEL not in str(drawn.additional_kwargs)
    for other in media.ROWS.values():
        with other.serve([Turn("Red.")]) as server:
            await run_in("invoke", other.model(server), [HumanMessage("Draw Oslo."), *ran.new, HumanMessage("Make it red.")])
            assert [rejection.message for rejection in server.rejections] == [] and PIXEL in str(server.exchanges[0].json)


def test_the_text_of_documents_counts() -> None:
    """Limits of context rest on the estimate: text in a document, a find or a file is text, and a picture may be asked for in small."""
    model = ChatOpenAI(model="any", api_key="key")
    text = "word " * 40_000
    data = base64.b64encode(text.encode()).decode()
    texts: list[dict[str, Any]] = [
        {"type": "text", "text": text},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text}},
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": text}]}},
        {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": text}]},
        {"type": "file", "base64": data, "mime_type": "text/csv"},
        {"type": "text-plain", "text": text, "mime_type": "text/plain"},
        {"type": "json", "json": text},
        {"type": "custom_tool_call_output", "output": text},
        {"type": "resource", "resource": {"uri": "file:///a.txt", "text": text}},
    ]
    for block in texts:
        counted = model.get_num_tokens_from_messages([ToolMessage([block], tool_call_id="a")])
        assert 50_000 <= counted <= 50_020, (block["type"], counted)
        history = [HumanMessage("First."), AIMessage("Yes."), HumanMessage([block]), AIMessage("So."), HumanMessage("And?")]
        kept = trim_messages(history, max_tokens=8_000, token_counter=model, strategy="last")
        assert history[2] not in kept and history[-1] in kept
    small: list[dict[str, Any]] = [
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}},
        {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "low"},
        {"type": "image", "url": "https://example.com/a.png", "extras": {"detail": "low"}},
    ]
    assert [model.get_num_tokens_from_messages([HumanMessage([block])]) for block in small] == [91] * 3


def test_speech_goes_back_by_its_id_while_its_server_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then its transcript goes, of the very message that went by its id before, also where a block of the content says the id."""
    spoken = {"id": "audio_1", "data": "AAAA", "transcript": "It is cold.", "expires_at": int(time.time()) + 3600}
    told: dict[str, Any] = {"model_provider": "openai"}
    for reply in (
        AIMessage("", additional_kwargs={"audio": spoken}, response_metadata=told),
        AIMessage([{"type": "audio", **{key: value for key, value in spoken.items() if key != "data"}}], response_metadata=told),
    ):
        with media.ROWS["openai-chat"].serve([Turn("a"), Turn("b"), Turn("c")]) as server:
            model = media.ROWS["openai-chat"].model(server)
            history = [HumanMessage("Warm?"), reply, HumanMessage("Sure?")]
            model.invoke(history)
            monkeypatch.setattr(time, "time", lambda: spoken["expires_at"] + 1)
            model.invoke(history)
            model.invoke(history)
            monkeypatch.undo()
            assert [rejection.message for rejection in server.rejections] == []
            sent_as = [exchange.json["messages"][1] for exchange in server.exchanges]
        by_id, *by_text = sent_as
        assert by_id == {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}
        assert by_text == [{"role": "assistant", "content": "It is cold."}] * 2


@pytest.mark.parametrize("way", ["invoke", "astream"])
async def test_speech_and_thoughts_of_pictures_come_back_as_they_were(way: str) -> None:
    """Speech of Gemini's is a block of core's, and goes back whole; a thought picture goes back as a thought."""
    speech = {"inlineData": {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": "AAEAAQ=="}}
    drawn = {"inlineData": {"mimeType": "image/png", "data": PIXEL}, "thought": True, "thoughtSignature": "c2lnbmVk"}
    head = {"responseId": "reply_1", "modelVersion": "gemini-3"}
    for part, kind in ((speech, "audio"), (drawn, "image")):
        said = {**head, "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}
        with GoogleServer([Events([said], said), Turn("Fine.")]) as server:
            model = media.ROWS["google"].model(server)
            ran = await run_in(way, model, "Go.")
            assert [block["type"] for block in ran.message.content_blocks] == [kind]
            await run_in("invoke", model, [HumanMessage("Go."), ran.message, HumanMessage("And?")])
            assert server.exchanges[1].json["contents"][1]["parts"] == [part]
    made = AIMessage([{"type": "image_generation_call", "id": "ig", "result": PIXEL, "output_format": "jpeg"}])
    with media.ROWS["openai-chat"].serve([Turn("a")]) as server:
        media.ROWS["openai-chat"].model(server).invoke([HumanMessage("Draw."), made, HumanMessage("And?")])
        assert "data:image/jpeg;base64," in str(server.exchanges[0].json)


def test_pages_show_results_that_core_cannot_convert() -> None:
    """A block at which LangChain's own conversion fails ends no stream of a page, and no history."""
    pytest.importorskip("ag_ui", reason="needs the extra `ag-ui`")
    odd: list[Any] = [
        {"type": "image", "source_type": "base64", "data": "AAEC", "mime_type": "image/png", "id": "a"},
        {"type": "image", "source_type": "url"},
        {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
    ]
    call = {"name": "look", "args": {}, "id": "c1"}

    def look() -> ToolMessage:
        """Look."""
        return ToolMessage(odd, tool_call_id="")

    def model() -> ScriptedChatModel:
        return ScriptedChatModel(replies=[AIMessage("", tool_calls=[call]), "Fine."], tools=[look])

    for encoder in (sse, ai_sdk, partial(ag_ui, thread_id="t")):
        body = b"".join(encoder(events(model().stream("Go."))))
        assert b"Fine." in body and b"error" not in body.lower()
    message = model().invoke("Go.")
    assert ai_sdk_messages([HumanMessage(odd), *new_messages(message)])[0]["role"] == "user"
