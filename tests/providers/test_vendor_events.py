"""What a vendor does by itself is told to listeners, alike on every wire and in every way, and changes nothing of the conversation."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest
from langchain_core.messages import AIMessage

from langchain_autotools import ChatAnthropic, ChatGoogleGenerativeAI, ChatOllama, ChatOpenAI, aevents, events, new_messages
from langchain_autotools.encoders import ai_sdk
from langchain_autotools.event_types import FileMade, MessageDone, RunEnded, RunEvent, VendorCallDone, VendorCallStarted
from tests.providers.anthropic.test_paused_turns import reply
from tests.support import vendor_replies as replies
from tests.support.anthropic_server import AnthropicServer
from tests.support.google_server import GoogleServer
from tests.support.ollama_server import OllamaServer
from tests.support.openai_server import OpenAIServer
from tests.support.pages import REPOSITORY, run_page
from tests.support.responses_server import ResponsesServer
from tests.support.script import Events, Turn
from tests.support.vendor_replies import told
from tests.support.weather import get_temperature


class Row(NamedTuple):
    """A wire: its server, its model, a reply, and what is told of it."""

    server: Any
    model: Callable[..., Any]
    reply: Callable[[], Events]
    expected: list[Any]


def _keyed(kind: Any, **more: Any) -> Callable[..., Any]:
    def made(server: Any, **rest: Any) -> Any:
        key = {} if kind is ChatOllama else {"api_key": "key"}
        return kind(**{"model": "any", "base_url": server.url, "max_retries": 0, **key, **more, **rest})

    return made


SEARCH = {"type": "web_search_20250305", "name": "web_search"}
ROWS = {
    "Responses": Row(ResponsesServer, _keyed(ChatOpenAI, use_responses_api=True), replies.responses, replies.RESPONSES),
    "chat completions": Row(OpenAIServer, _keyed(ChatOpenAI), replies.chat, replies.CHAT),
    "Anthropic": Row(AnthropicServer, _keyed(ChatAnthropic, prompt_caching=False), replies.anthropic, replies.ANTHROPIC),
    "Google": Row(GoogleServer, _keyed(ChatGoogleGenerativeAI), replies.google, replies.GOOGLE),
    "Ollama": Row(
        OllamaServer, lambda server, **more: ChatOllama(model="any", base_url=server.url, **more), replies.ollama, replies.OLLAMA
    ),
}


def contents(message: Any) -> tuple[Any, ...]:
    """What a message says, without the ids that are made for each run."""
    return message.type, message.content, message.additional_kwargs, [call["args"] for call in getattr(message, "tool_calls", ())]


def stream(model: Any) -> list[RunEvent]:
    """The events of a stream."""
    return list(events(model.stream("Where?")))


def astream(model: Any) -> list[RunEvent]:
    """The events of an asynchronous stream."""

    async def read() -> list[RunEvent]:
        return [event async for event in aevents(model.astream("Where?"))]

    return asyncio.run(read())


WAYS: dict[str, tuple[Callable[[Any], list[RunEvent]], bool]] = {
    "stream": (stream, False),
    "astream": (astream, False),
    "invoke": (stream, True),
    "ainvoke": (astream, True),
}


@pytest.mark.parametrize("own", [True, False], ids=["two turns", "no tool of its own"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wire", ROWS)
def test_what_a_vendor_does_is_told(wire: str, way: str, own: bool) -> None:
    """Once each, in order, with the id of its message; the conversation and its requests are those without a listener."""
    row, (run, whole) = ROWS[wire], WAYS[way]
    script = [row.reply(), Turn("21.")] if own else [row.reply()]
    with row.server([*script, *script]) as server:
        model = row.model(server, disable_streaming=whole, **({"tools": [get_temperature]} if own else {}))
        model = model if own else model.bind_tools([get_temperature])
        found = run(model)
        expected = [one for one in row.expected if not (whole and one[0] == "goes on")]
        assert told(found) == expected
        ids = {event.message_id for event in found if isinstance(event, replies.TOLD)}
        assert ids == {str(next(event.message.id for event in found if isinstance(event, MessageDone)))}
        unheard = [message for chunk in model.stream("Where?") for message in new_messages(chunk)]
        heard = [event.message for event in found if isinstance(event, MessageDone)]
        assert [contents(one) for one in heard] == [contents(one) for one in unheard]
        sent = [exchange.json for exchange in server.exchanges]
        assert sent[: len(sent) // 2] == sent[len(sent) // 2 :] or wire == "Google"  # whose made ids differ
        assert server.rejections == []


@pytest.mark.parametrize("wire", ROWS)
def test_nothing_is_read_for_events_where_nobody_listens(wire: str) -> None:
    """No function that finds what a vendor does is entered; for a listener some are."""
    row, entered = ROWS[wire], list[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        owner = frame.f_code.co_qualname.partition(".")[0]
        if event == "call" and owner.endswith("Events") and "providers" in frame.f_code.co_filename:
            entered.append(frame.f_code.co_qualname)

    with row.server([row.reply(), row.reply()]) as server:
        model = row.model(server)
        sys.setprofile(note)
        try:
            chunks = list(model.stream("Where?"))
            unheard = list(entered)
            told(list(events(model.stream("Where?"))))
        finally:
            sys.setprofile(None)
    assert chunks and entered and unheard == []


@pytest.mark.parametrize(("wire", "until"), [("Responses", 3), ("Anthropic", 4)])
@pytest.mark.parametrize("run", [stream, astream])
def test_a_call_of_the_vendors_that_breaks_off_has_an_end(wire: str, until: int, run: Callable[[Any], list[RunEvent]]) -> None:
    """The reply ends in the middle of the search: the call has failed, as far as it is known, and the run ends."""
    row = ROWS[wire]
    with row.server([Events(row.reply().events[:until], done=False)]) as server:
        found = run(row.model(server))
    kinds = [type(event) for event in found if isinstance(event, VendorCallStarted | VendorCallDone | RunEnded)]
    assert kinds == [VendorCallStarted, VendorCallDone, RunEnded]
    assert [event.failed for event in found if isinstance(event, VendorCallDone)] == [True]


@pytest.mark.parametrize("way", WAYS)
def test_a_call_may_end_in_a_later_turn(way: str) -> None:
    """Where the vendor pauses its turn between a call and its result: one start and one end, with one name and the arguments."""
    ran = {"type": "code_execution_result", "stdout": "6", "stderr": "", "return_code": 0, "content": []}
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "run_python", "input": {}}
    result = {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": ran}
    written = {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"d":6}'}}
    first, second = reply(1, call), reply(2, result, {"type": "text", "text": "Six."}, reason="end_turn")
    assert first.whole is not None
    events_of_first, whole = [*first.events[:2], written, *first.events[2:]], {**first.whole, "content": [{**call, "input": {"d": 6}}]}
    run, at_once = WAYS[way]
    with AnthropicServer([Events(events_of_first, whole), second]) as server:
        found = run(ROWS["Anthropic"].model(server, tools=[get_temperature], disable_streaming=at_once))
        assert server.rejections == []
    end = ("done", "run_python", {"d": 6}, ran)
    assert told(found) == [("start", "run_python"), *([] if at_once else [("goes on", '{"d":6}')]), end]
    assert len({event.message_id for event in found if isinstance(event, VendorCallStarted | VendorCallDone)}) == 2
    frames = [json.loads(frame[6:]) for frame in b"".join(ai_sdk(found)).decode().split("\n\n")[:-2]]
    parts = [(one["type"], one.get("toolName")) for one in frames if one.get("toolCallId") == "srvtoolu_1" and "inputTextDelta" not in one]
    assert parts == [("tool-input-start", "run_python"), ("tool-input-available", "run_python"), ("tool-output-available", None)]


def test_what_events_cannot_read_is_left_out_of_them_alone() -> None:
    """Citations and images of no known form: the reply is what it is, and nothing is told of them."""
    message = {"role": "assistant", "content": "Oslo.", "annotations": [3], "images": [{"image_url": {"url": 3}}]}
    whole = {
        "id": "c1",
        "object": "chat.completion",
        "model": "any",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    chunk = {**whole, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": message, "finish_reason": "stop"}]}
    with OpenAIServer([Events([chunk], whole)] * 2) as server:
        for whole_reply in (False, True):
            found = stream(ROWS["chat completions"].model(server, disable_streaming=whole_reply))
            assert told(found) == [] and [event.message.text for event in found if isinstance(event, MessageDone)] == ["Oslo."]


def test_the_program_of_the_page_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """docs/howto/vendor_events.md, against a strict server; it is no longer than forty lines."""
    page = Path(REPOSITORY / "docs" / "howto" / "vendor_events.md")
    cited = {"type": "web_search_result_location", "url": "https://example.org/results", "title": "Results", "cited_text": "Kari Berg"}
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "marathon Oslo winner"}}
    blocks: list[dict[str, Any]] = [
        search,
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "text", "text": "Kari Berg won it.", "citations": [{**cited, "encrypted_index": "aW5k"}]},
    ]
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "any"}
    usage = {"input_tokens": 10, "output_tokens": 5}
    stream: list[Any] = [{"type": "message_start", "message": {**head, "content": [], "usage": usage}}]
    for index, block in enumerate(blocks):
        stream.append({"type": "content_block_start", "index": index, "content_block": block})
        stream.append({"type": "content_block_stop", "index": index})
    stream.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}})
    with AnthropicServer([Events([*stream, {"type": "message_stop"}])]) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        run_page(page, capsys)
        assert server.rejections == []
    assert page.read_text(encoding="utf-8").split("```")[1].count("\n") < 40


def test_large_files_are_found_in_their_message() -> None:
    """Above 256 kB a kept or sent event has no data: the message of its id has them, in the form of any vendor's."""
    large = "QUJD" * 100_000
    made = FileMade(run_id="r", message_id="m", mime_type="image/png", data=large, size=300_000)
    assert made.by_reference().data is None and made.by_reference().size == 300_000
    for content in ([{"type": "image", "base64": large}], [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{large}"}}]):
        assert made.by_reference().found_in(AIMessage(content)) == made
    small = FileMade(run_id="r", message_id="m", mime_type="image/png", data="QUJD", size=3)
    assert small.by_reference() is small


def test_large_files_of_one_size_are_told_apart() -> None:
    """Two files of a message that are equally large are each found by its data's SHA-256; an event kept without one finds the first."""
    datas = ["QUJD" * 100_000, "REVG" * 100_000]
    message = AIMessage([{"type": "image", "base64": data} for data in datas])
    made = [FileMade(run_id="r", message_id="m", mime_type="image/png", data=data, size=300_000) for data in datas]
    assert [one.by_reference().found_in(message) for one in made] == made
    assert replace(made[1].by_reference(), sha256=None).found_in(message) == made[0]
    assert made[1].by_reference().found_in(AIMessage([{"type": "image", "base64": datas[0]}])) is None
