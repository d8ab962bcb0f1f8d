"""Law 11, what it says is true: a stop reason names how the run really ended, on every wire, streamed or whole."""

import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage

from langchain_autotools import StreamError, ToolsAndMessagesMixin
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.wires import PRESETS, WIRES, Wire
from tests.laws.ways import QUESTION, WAYS, Ran, run
from tests.support.http_server import Exchange, Gate
from tests.support.script import Call, Early, Raw, Reply, Turn
from tests.support.weather import get_temperature

FIVE = [wire for wire in WIRES if not wire.name.startswith("azure")]
BY_NAME = {wire.name: wire for wire in (*WIRES, *PRESETS)}
CALL = Call("get_temperature", {"city": "Paris"})
STREAMED = ("stream", "astream")
AT_ONCE = {"wait_scale": 0.0}

each_wire = pytest.mark.parametrize("wire", FIVE, ids=lambda wire: wire.name)


def asked(wire: Wire, script: Any, way: str, **fields: Any) -> tuple[Ran, int]:
    """A run over these replies, without an error, and how many requests it made."""
    with wire.serve(script) as server:
        ran = run(way, wire.model(server, **{"tools": [get_temperature], **fields}), [QUESTION])
        assert ran.error is None, ran.error
        assert server.rejections == []
        return ran, len(server.exchanges)


def reason(ran: Ran) -> Any:
    """The stop reason of a run."""
    assert ran.message is not None
    return ran.message.response_metadata["autotools"]["stop_reason"]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the package's logger warned of."""
    records = [record for record in caplog.records if record.name == "langchain_autotools" and record.levelno == logging.WARNING]
    return [text for record in records if "should cache" not in (text := record.getMessage())]  # a loopback server is a gateway


# ---------------------------------------------------------------------------------------------- the token limit


@each_wire
@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_law_11_a_reply_cut_at_its_token_limit_is_length(wire: Wire, way: str) -> None:
    """The answer is kept as far as it goes, and the run says that its limit cut it; in the first turn and after tools."""
    for before in ([], [Turn("Look.", [CALL])]):
        ran, requests = asked(wire, [*before, Turn("Paris has 21", finish="length")], way)
        assert (reason(ran), ran.new[-1].text, requests) == ("length", "Paris has 21", len(before) + 1)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("openai-chat", "max_tokens"),
        ("mistralai", "model_length"),
        ("cohere", "MAX_TOKENS"),
        ("anthropic", "model_context_window_exceeded"),
        ("google", "MAX_TOKENS"),
    ],
)
def test_law_11_every_vendors_word_for_the_limit_is_length(name: str, word: str) -> None:
    """Whatever a vendor or a gateway calls the limit."""
    ran, _ = asked(BY_NAME[name], [Turn("Paris has 21", finish=word)], "stream")
    assert reason(ran) == "length"


@each_wire
def test_law_11_the_last_reply_says_how_the_run_ended(wire: Wire) -> None:
    """A call that the limit cut is told to the model, which answers: that run is complete."""
    ran, _ = asked(wire, [Turn("Look.", [CALL], finish="length"), Turn("I cannot.")], "stream")
    assert reason(ran) == "complete"
    [result] = [message for message in ran.new if isinstance(message, ToolMessage)]
    assert result.status == "error"


@pytest.mark.parametrize("word", ["insufficient_system_resource", "abort", "malformed_response"])
def test_law_11_a_reply_that_something_else_cut_is_incomplete(word: str) -> None:
    """A finish reason by which a server gave up is no complete answer."""
    ran, _ = asked(BY_NAME["openai-chat"], [Turn("Paris has 21", finish=word)], "stream")
    assert reason(ran) == "incomplete"


# ---------------------------------------------------------------------------------------------- the caller


@each_wire
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("on_limit", ["answer", "raise"])
def test_law_11_what_the_caller_ended_is_cancelled(wire: Wire, way: str, on_limit: str) -> None:
    """Not the limit that it meets at the same moment, and not `complete`: no answer follows, and nothing is raised."""
    flag = threading.Event()

    def get_temperature(city: str) -> str:
        """Cancel the run."""
        flag.set()
        return "21"

    script = [Turn("Look.", [CALL]), Turn("Never.")]
    keywords = {"tools": [get_temperature], "max_turns": 1, "on_limit": on_limit}
    with wire.serve(script) as server:
        ran = run(way, wire.model(server, **keywords), [QUESTION], cancel=flag)
        assert (ran.error, reason(ran), len(server.exchanges)) == (None, "cancelled", 1)
    assert [message.type for message in ran.new] == ["ai", "tool"]


@each_wire
@pytest.mark.parametrize("way", STREAMED)
def test_law_11_a_reply_that_the_caller_cut_is_cancelled(wire: Wire, way: str) -> None:
    """What had come of it is kept, and the history goes on. The server is in the midst of the reply, whose rest it holds back."""
    gate = Gate()
    with wire.serve([Turn("Hello, world, once more, and again, and again.", holds={6: gate}), Turn("Yes.")]) as server:
        model = wire.model(server, tools=[get_temperature])
        ran = run(way, model, [QUESTION], cancel=gate.reached.is_set)
        text = ran.new[-1].text if ran.new else ""
        assert "Hello, world, once more, and again, and ".startswith(text)
        assert (ran.error, reason(ran), len(server.exchanges)) == (None, "cancelled", 1)
        again = run(way, model, [QUESTION, *ran.new, HumanMessage("Are you there?")])
        assert (again.error, server.rejections, again.new[-1].text) == (None, [], "Yes.")


# ---------------------------------------------------------------------------------------------- streams that end too early


@each_wire
@pytest.mark.parametrize("way", STREAMED)
def test_law_11_a_stream_that_ends_too_early_is_incomplete(wire: Wire, way: str, caplog: pytest.LogCaptureFixture) -> None:
    """After text has left, the reply is not asked for again: it is kept, the run is no error and says `incomplete`, and a log warns."""
    ran, requests = asked(wire, [Early(Turn("Hello, world, once more."), text="Hello")], way, max_retries=2)
    assert (reason(ran), requests) == ("incomplete", 1)
    assert ran.message is not None and ran.message.text == ran.new[-1].text and "Hello" in ran.message.text
    assert any("broke off" in text for text in warnings(caplog))


@each_wire
@pytest.mark.parametrize("way", STREAMED)
def test_law_11_an_opening_that_brings_nothing_is_tried_again(wire: Wire, way: str, caplog: pytest.LogCaptureFixture) -> None:
    """An end before the first text (also after an event that only says the role) is a failed request, as long as there are retries."""
    hello = Turn("Hello.")
    ran, requests = asked(wire, [begun(wire, hello), begun(wire, hello), hello], way, max_retries=2, retry=AT_ONCE)
    assert (reason(ran), ran.new[-1].text, requests) == ("complete", "Hello.", 3)
    assert warnings(caplog) == []


@each_wire
def test_law_11_an_opening_is_never_an_error(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    """Where it comes to nothing each time, the run ends with an empty reply that says so."""
    ran, requests = asked(wire, [begun(wire, Turn("Hello."))] * 2, "stream", max_retries=1, retry=AT_ONCE)
    assert (reason(ran), ran.new[-1].text, requests) == ("incomplete", "", 2)
    assert any("broke off" in text for text in warnings(caplog))


NOTHING = {
    "no byte": b"",
    "comments": b": keep-alive\n\n: keep-alive\n\n",
    "an event without data": b"event: message_start\n",
    "[DONE]": b"data: [DONE]\n\n",
}


def nothing(wire: Wire, body: bytes) -> Raw:
    """A stream in which a server says nothing, as this wire would have it."""
    if wire.name != "ollama":
        return Raw([body])
    return Raw([b"" if body.startswith(b"event") else body.removeprefix(b"data: ")], content_type="application/x-ndjson")


@each_wire
@pytest.mark.parametrize("body", NOTHING.values(), ids=list(NOTHING))
def test_law_11_a_stream_without_a_word_is_incomplete(wire: Wire, body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """A stream that was begun and says nothing is asked for again; at last the run ends, without an error, and a log warns."""
    empty = nothing(wire, body)
    for way in STREAMED:
        caplog.clear()
        ran, requests = asked(wire, [empty, empty, Turn("Hello.")], way, max_retries=2, retry=AT_ONCE)
        assert (reason(ran), ran.new[-1].text, requests, warnings(caplog)) == ("complete", "Hello.", 3, [])
        ran, requests = asked(wire, [Turn("Look.", [CALL]), empty, empty], way, max_retries=1, retry=AT_ONCE)
        assert (reason(ran), requests) == ("incomplete", 3)
        assert [(message.type, message.text) for message in ran.new][::2] == [("ai", "Look."), ("ai", "")]
        assert ran.new[-1].response_metadata["finish_reason"] == "incomplete"
        assert any("broke off" in text for text in warnings(caplog))


@each_wire
@pytest.mark.parametrize("other", FIVE, ids=lambda wire: wire.name)
def test_law_11_a_history_with_an_empty_reply_goes_on(wire: Wire, other: Wire) -> None:
    """What such a run leaves behind is accepted by every vendor, the next question after it or not."""
    ran, _ = asked(wire, [nothing(wire, b"")], "stream", max_retries=0)
    assert [message.type for message in ran.new] == ["ai"]
    for after in ([], [HumanMessage("Are you there?")]):
        with other.serve([Turn("Yes.")]) as server:
            again = run("stream", other.model(server, tools=[get_temperature]), [QUESTION, *ran.new, *after])
            assert (again.error, server.rejections, again.new[-1].text) == (None, [], "Yes.")


@each_wire
def test_law_11_what_is_no_stream_is_an_error(wire: Wire) -> None:
    """A body of another kind, and an empty one that is not said to be a stream, are no reply that broke off."""
    for body, kind in ((b"", "text/html"), (b"", "application/json"), (b"<html>Sign in</html>", "text/event-stream")):
        with wire.serve([Raw([body], kind)] * 2) as server:
            ran = run("stream", wire.model(server, tools=[get_temperature], max_retries=1, retry=AT_ONCE), [QUESTION])
            assert (type(ran.error), len(server.exchanges)) == (StreamError, 2)


def begun(wire: Wire, turn: Turn) -> Reply:
    """The reply up to its first text; of a wire that says text in its first event, an event that says the role alone."""
    if wire.name == "ollama":
        event = {"model": "any", "created_at": "2026-11-22T00:00:00Z", "message": {"role": "assistant", "content": ""}, "done": False}
        return Raw([json.dumps(event).encode() + b"\n"], content_type="application/x-ndjson")
    return Early(turn, text=turn.text, before=True)


@pytest.mark.parametrize("way", STREAMED)
@pytest.mark.parametrize("name", ["openai-chat", "anthropic"])
def test_law_11_half_a_call_is_tried_again(name: str, way: str) -> None:
    """Of a call nothing leaves before the end of its turn, so a stream that ends inside one has delivered nothing."""
    calling = Turn("", [CALL])
    ran, requests = asked(
        BY_NAME[name], [Early(calling, text="get_temperature"), calling, Turn("Fine.")], way, max_retries=1, retry=AT_ONCE
    )
    assert (reason(ran), requests) == ("complete", 3)
    assert [message.type for message in ran.new] == ["ai", "tool", "ai"]


@pytest.mark.parametrize("name", ["openai-chat", "deepseek", "openrouter", "openai-responses", "google"])
def test_law_11_done_is_an_end(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """A stream that closes with [DONE] is complete without a finish reason, from vendors and gateways alike."""

    def reply(exchange: Exchange) -> Raw:
        said = {"type": "output_text", "text": "Hello.", "annotations": []}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [said]}
        events: dict[str, Any] = {
            "openai-responses": {"type": "response.output_item.done", "output_index": 0, "item": item},
            "google": {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]}}]},
        }
        chat = {"id": "c1", "object": "chat.completion.chunk", "model": "any", "choices": [{"index": 0, "delta": {"content": "Hello."}}]}
        event = json.dumps(events.get(name, chat)).encode()
        return Raw([b"data: " + event + b"\n\n", b"data: [DONE]\n\n"])

    ran, requests = asked(BY_NAME[name], reply, "stream")
    assert (reason(ran), ran.new[-1].text, requests, warnings(caplog)) == ("complete", "Hello.", 1, [])


def test_law_11_without_tools_the_message_says_it(caplog: pytest.LogCaptureFixture) -> None:
    """A model that runs nothing has no stop reason: its message has the finish reason, and the log warns as well."""
    for way in STREAMED:
        caplog.clear()
        with BY_NAME["openai-chat"].serve([Early(Turn("Hello, world."), text="Hello")]) as server:
            ran = run(way, BY_NAME["openai-chat"].model(server), [QUESTION])
        assert ran.message is not None and ran.message.response_metadata["finish_reason"] == "incomplete"
        assert len(warnings(caplog)) == 1


class ChatHalf(ToolsAndMessagesMixin, BaseChatModel):
    """A model of a user's own whose stream breaks off."""

    @property
    def _llm_type(self) -> str:
        return "half"

    def raw_stream(self, messages: Any, stop: Any = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """Half a reply."""
        yield AIMessageChunk("Hel")
        yield AIMessageChunk("", response_metadata={"finish_reason": "incomplete"})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("limits", [{"token_budget": 10}, {"context_window": 10}, {}], ids=str)
def test_law_11_a_limit_that_cannot_bind_is_told(limits: dict[str, int], way: str, caplog: pytest.LogCaptureFixture) -> None:
    """A server that reports no usage makes a limit of tokens none: a log says so once in a run, where one is set."""
    call = {"name": "get_temperature", "args": {"city": "Paris"}, "id": "a", "type": "tool_call"}
    replies = [AIMessage("", tool_calls=[{**call, "id": name}]) for name in "ab"]
    ran = run(way, ScriptedChatModel(replies=[*replies, "Warm."], tools=[get_temperature], **limits), [QUESTION])
    assert reason(ran) == "complete"
    assert [next(iter(limits)) in text for text in warnings(caplog)] == [True] * len(limits)


@pytest.mark.parametrize("way", WAYS)
def test_law_11_of_a_model_of_ones_own_too(way: str, caplog: pytest.LogCaptureFixture) -> None:
    """What `raw_stream` says of its end is the stop reason."""
    ran = run(way, ChatHalf(tools=[get_temperature]), [QUESTION])
    assert (reason(ran), ran.new[-1].text, len(warnings(caplog))) == ("incomplete", "Hel", 1)
