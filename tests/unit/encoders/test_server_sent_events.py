"""Events as server-sent events: what is in each frame, numbers, nested runs, failures, and values that are no JSON."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.exceptions import ModelRateLimitError
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, messages_from_dict

from langchain_autotools import ConfigurationError, PendingCall, ToolCallRecord
from langchain_autotools.encoders import sse
from langchain_autotools.errors import EventsInterruptedError
from langchain_autotools.event_types import (
    CallArgumentsDelta,
    CallDiscarded,
    CallProgress,
    CallReady,
    CallResult,
    CallsPending,
    CallStarted,
    MessageDiscarded,
    MessageDone,
    MessagesAdded,
    ReasoningDelta,
    RunEnded,
    RunEvent,
    RunFailed,
    RunStarted,
    TextDelta,
    TurnUsage,
)
from tests.support.event_stream import EventStreamParser, Frame, frames_of
from tests.support.pages import REPOSITORY, fences

CALL = ToolCallRecord("c1", "look", '{"city": "Rome"}', {"city": "Rome"})
RESULT = ToolMessage("21 °C", tool_call_id="c1", id="m2", name="look", artifact={"raw": 21})
ASKED = AIMessage("Wait.", id="m1", tool_calls=[{"name": "look", "args": {"city": "Rome"}, "id": "c1"}])
USAGE: Any = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
PENDING = PendingCall("c1", "look", {"city": "Rome"}, "approval", "u", "d")
RUN: list[tuple[RunEvent, str, dict[str, Any]]] = [
    (RunStarted(run_id="r", name="ChatX"), "run_start", {"name": "ChatX"}),
    (ReasoningDelta(run_id="r", message_id="m1", text="Hm."), "reasoning", {"message_id": "m1", "text": "Hm."}),
    (TextDelta(run_id="r", message_id="m1", text="a\r\nb\u2028\0"), "text", {"message_id": "m1", "text": "a\r\nb\u2028\0"}),
    (
        CallStarted(run_id="r", message_id="m1", call_id="c1", name="look", index=0, provisional=True),
        "tool_call_start",
        {"message_id": "m1", "call_id": "c1", "name": "look", "index": 0, "provisional": True},
    ),
    (
        CallArgumentsDelta(run_id="r", message_id="m1", call_id="c1", text='{"ci'),
        "tool_call_delta",
        {"message_id": "m1", "call_id": "c1", "text": '{"ci'},
    ),
    (
        CallDiscarded(run_id="r", message_id="m1", call_id="c0", reason="It broke off."),
        "tool_call_discarded",
        {"message_id": "m1", "call_id": "c0", "reason": "It broke off."},
    ),
    (
        CallReady(run_id="r", message_id="m1", call=CALL, index=0),
        "tool_call",
        {"message_id": "m1", "call_id": "c1", "name": "look", "index": 0, "args": {"city": "Rome"}},
    ),
    (
        CallReady(run_id="r", message_id="m1", call=ToolCallRecord("c2", "look", "{", None, "cut"), index=1),
        "tool_call",
        {"message_id": "m1", "call_id": "c2", "name": "look", "index": 1, "args": None, "arguments": "{", "why": "cut"},
    ),
    (CallProgress(run_id="r", call_id="c1", value={"done": 0.5}), "tool_progress", {"call_id": "c1", "value": {"done": 0.5}}),
    (
        CallResult(run_id="r", call=CALL, index=0, message=RESULT, duration=0.25, executed=True),
        "tool_result",
        {
            "call_id": "c1",
            "name": "look",
            "index": 0,
            "message_id": "m2",
            "status": "success",
            "content": "21 °C",
            "duration": 0.25,
            "executed": True,
        },
    ),
    (
        TurnUsage(run_id="r", message_id="m1", turn=1, usage=USAGE),
        "usage",
        {"message_id": "m1", "turn": 1, "usage": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}},
    ),
    (
        CallsPending(run_id="r", calls=[PENDING]),
        "pending",
        {"calls": [PENDING.to_dict()]},
    ),
    (
        RunEnded(run_id="r", stop_reason="max_turns", turns=2, usage=USAGE),
        "run_end",
        {"stop_reason": "max_turns", "max_turns_reached": True, "turns": 2, "usage": dict(USAGE)},
    ),
]
NESTED = {"parent_run_id": "r", "parent_call_id": "c1"}
INSIDE: list[RunEvent] = [
    RunStarted(run_id="inner", name="ChatY", **NESTED),
    TextDelta(run_id="inner", message_id="n1", text="inside", **NESTED),
    RunEnded(run_id="inner", stop_reason="complete", turns=1, **NESTED),
]
START, END = RUN[0][0], RUN[-1][0]


def sent(events: Sequence[RunEvent], **options: Any) -> list[Frame]:
    """The frames of events."""
    return frames_of(sse(events, **options))


@pytest.mark.parametrize("event, name, data", RUN, ids=lambda value: value if isinstance(value, str) else "")
def test_each_event_is_a_frame_with_its_name_and_its_run(event: RunEvent, name: str, data: dict[str, Any]) -> None:
    """The name is one that a page can listen to, the data one JSON object."""
    frame = sent([event])[0]
    assert (frame.event, frame.json) == (name, {"run_id": "r", **data})


def test_a_message_is_sent_in_langchains_form() -> None:
    """A program on the other side reads it as a message that is equal to the stored one, but for the artifact."""
    frames = sent([MessageDone(run_id="r", message=ASKED), MessageDone(run_id="r", message=RESULT)])[:2]
    assert [frame.json["message_id"] for frame in frames] == ["m1", "m2"]
    read = messages_from_dict([frame.json["message"] for frame in frames])
    assert read == [ASKED, RESULT.model_copy(update={"artifact": None})]


def test_the_last_frame_is_done_and_says_how_the_last_run_ended() -> None:
    """Of several runs one after another; runs in tools do not count."""
    ended = RunEnded(run_id="r2", stop_reason="complete", turns=1)
    frames = sent([START, *INSIDE, END])
    assert frames[-1].event == "done"
    assert frames[-1].json == {"run_id": "r", "stop_reason": "max_turns", "max_turns_reached": True, "turns": 2, "usage": dict(USAGE)}
    assert sent([START, END, RunStarted(run_id="r2", name="ChatX"), ended])[-1].json["run_id"] == "r2"
    assert sent([])[-1].json == {"run_id": None, "stop_reason": None, "max_turns_reached": False, "turns": 0, "usage": None}


def test_frames_have_running_numbers() -> None:
    """From 1 on, or any other number: the last event id that a client says when it comes back."""
    events = [event for event, _, _ in RUN]
    assert [frame.id for frame in sent(events)] == [str(number) for number in range(1, len(RUN) + 2)]
    assert [frame.id for frame in sent(events[:2], first_id=40)] == ["40", "41", "42"]
    assert sent(events[:1], first_id=2**53 - 1)[0].id == str(2**53 - 1)  # the last number that JavaScript has


def test_a_last_frame_is_numbered_where_the_events_are() -> None:
    """A client is left where it was by the last frame of no events, of events with positions, and of a reading that failed at once."""
    placed = [replace(event, position=f"2-{number}") for number, (event, _, _) in enumerate(RUN[:2], 1)]

    def failing() -> Iterator[RunEvent]:
        raise ValueError("no")
        yield

    assert [frame.id for frame in sent([])] == [""]
    assert [frame.id for frame in sent(placed)] == ["2-1", "2-2", "2-2"]
    assert [(frame.event, frame.id) for frame in frames_of(sse(failing()))] == [("error", "")]


def test_frames_of_a_process_that_shuts_down_end_without_a_last_one(caplog: pytest.LogCaptureFixture) -> None:
    """Neither `done` nor `error` makes a page stop: its browser comes back by itself, to another process. The log says it is no failure."""
    caplog.set_level("INFO")

    def interrupted() -> Iterator[RunEvent]:
        yield START
        raise EventsInterruptedError("this process has shut down")

    assert [frame.event for frame in frames_of(sse(interrupted()))] == ["run_start"]
    assert [(one.levelname, one.exc_info) for one in caplog.records] == [("INFO", None)]


@pytest.mark.parametrize("last", [*range(len(RUN) + 2), "3", " 3 ", "", None, "-1", "x", "٣", "9" * 400])
def test_a_client_that_comes_back_is_sent_what_it_has_not_seen(last: Any) -> None:
    """The same events encoded again, after the frame that it has seen last; what is no number of a frame is all of them."""
    events = [event for event, _, _ in RUN]
    seen = int(last) if str(last).strip().isascii() and str(last).strip().isdigit() and len(str(last)) < 9 else 0
    assert sent(events, after=last) == sent(events)[seen:]


def test_frames_of_runs_in_tools_say_so() -> None:
    """They name their own run, the run and the call around it, and can be left out; numbers run on in either case."""
    frames = sent([START, *INSIDE, END])
    assert [frame.event for frame in frames] == ["run_start", "run_start", "text", "run_end", "run_end", "done"]
    assert all(frame.json["run_id"] == "inner" and NESTED.items() <= frame.json.items() for frame in frames[1:4])
    assert "parent_call_id" not in {**frames[0].json, **frames[4].json, **frames[5].json}
    deeper = replace(INSIDE[1], run_id="innermost", parent_run_id="inner", parent_call_id="c9")
    outer = sent([START, INSIDE[0], deeper, *INSIDE[1:], END], nested=False)
    assert [(frame.event, frame.id) for frame in outer] == [("run_start", "1"), ("run_end", "2"), ("done", "3")]


def test_a_run_whose_parent_is_not_in_the_stream_is_none_in_a_tool() -> None:
    """It is the outermost run for whoever listens inside a tool of another one."""
    assert [frame.event for frame in sent(INSIDE, nested=False)] == ["run_start", "text", "run_end", "done"]
    assert "parent_run_id" not in sent(INSIDE)[0].json


def test_artifacts_are_sent_where_that_is_asked_for() -> None:
    """In the result and in the message; else neither has them, as they may be anything that the server keeps."""
    events = [CallResult(run_id="r", call=CALL, index=0, message=RESULT), MessageDone(run_id="r", message=RESULT)]
    assert "raw" not in b"".join(sse(events)).decode()
    result, message, _ = sent(events, artifacts=True)
    assert result.json["artifact"] == message.json["message"]["data"]["artifact"] == {"raw": 21}
    assert RESULT.artifact == {"raw": 21}


def told_by(frame: Frame) -> Any:
    """What a frame tells; a message read, whose fields in JSON are those of the release of langchain-core."""
    said = frame.json.get("messages") or ([frame.json["message"]] if frame.event == "message" else None)
    message = messages_from_dict(said) if said else None
    return frame.event, frame.id, message or list(frame.json.items())


def test_the_page_shows_every_frame_as_it_is() -> None:
    """The frames of docs/web.md are those that these events make, and every kind of frame is among them."""
    answer = AIMessage("Let me look.", id="m1", tool_calls=[{"name": "get_temperature", "args": {"city": "Rome"}, "id": "c1"}])
    call = ToolCallRecord("c1", "get_temperature", '{"city": "Rome"}', {"city": "Rome"})
    broken = ToolCallRecord("c2", "get_temperature", '{"city": ', None, "the arguments are not one complete JSON object")
    result = ToolMessage("21 °C", tool_call_id="c1", id="m2")
    usage: Any = {"input_tokens": 40, "output_tokens": 12, "total_tokens": 52}
    waits = PendingCall("c4", "send_mail", {"to": "Anna"}, "approval", "4f5a0a4e", "9c1185a5")
    of_m1: Any = {"run_id": "r1", "message_id": "m1"}
    told: list[RunEvent] = [
        RunStarted(run_id="r1", name="ChatOpenAI"),
        ReasoningDelta(**of_m1, text="The user means"),
        TextDelta(**of_m1, text="Let me look."),
        CallStarted(**of_m1, call_id="c1", name="get_temperature", index=0, provisional=True),
        CallArgumentsDelta(**of_m1, call_id="c1", text='{"city": "Ro'),
        CallReady(**of_m1, call=call, index=0),
        CallReady(**of_m1, call=broken, index=1),
        CallDiscarded(**of_m1, call_id="c3", reason="the reply broke off"),
        MessageDone(run_id="r1", message=answer),
        TurnUsage(**of_m1, turn=1, usage=usage),
        CallProgress(run_id="r1", call_id="c1", value={"stations": 3}),
        CallResult(run_id="r1", call=call, index=0, message=result, duration=0.25, executed=True),
        CallsPending(run_id="r1", calls=[waits]),
        RunEnded(run_id="r1", stop_reason="calls_pending", turns=1, usage=usage),
    ]
    failed = RunFailed(run_id="r2", error=type("OpenAIRateLimitError", (ModelRateLimitError,), {})())
    inside = TextDelta(run_id="r3", parent_run_id="r1", parent_call_id="c1", message_id="m5", text="I am the tool's own model.")
    nested = list(sse([told[0], inside], first_id=17))[1]
    added = MessagesAdded(run_id="r4", position="2-0", messages=[HumanMessage("And in Rome?", id="h2")])
    void = MessageDiscarded(run_id="r4", position="2-4", message_id="m7", attempt=1)
    sent = b"".join([*sse(told), *sse([failed], first_id=16), nested, *sse([added, void])]).decode()
    shown = "".join(text for language, text in fences(REPOSITORY / "docs" / "web.md") if language == "sse")
    assert [told_by(frame) for frame in frames_of([shown.encode()])] == [told_by(frame) for frame in frames_of([sent.encode()])]
    kinds = {frame.event for frame in frames_of([shown.encode()])}
    assert kinds == {*(name for _, name, _ in RUN), "message", "messages", "message_discarded", "run_error", "done", "error"}


def test_events_that_are_kept_bear_their_positions() -> None:
    """A client that comes back says the position; frames without one do not change what it says."""
    kept = [replace(event, position=f"1-{number}") for number, event in enumerate([START, RUN[2][0]])]
    frames = frames_of(sse([*kept, RUN[1][0]], after="1-7"))
    assert [(frame.event, frame.id) for frame in frames] == [("run_start", "1-0"), ("text", "1-1"), ("reasoning", "1-1"), ("done", "1-1")]


def failing(*events: RunEvent) -> Any:
    """Events, and then an exception."""
    yield from events
    raise ConnectionError("token=secret")


def test_a_failure_ends_the_stream_with_an_error() -> None:
    """The run that failed says so, and the last frame too: the class and a sentence, the exception's text where that is asked for."""
    failed = RunFailed(run_id="r", error=ConnectionError("token=secret"))
    told = {"error": "ConnectionError", "message": "The run failed.", "retryable": False}
    frames = sent(failing(START, failed))
    assert [(frame.event, frame.json) for frame in frames[1:]] == [("run_error", {"run_id": "r", **told}), ("error", told)]
    frames = sent(failing(START, failed), details=True)
    assert [frame.json["details"] for frame in frames[1:]] == ["token=secret"] * 2


def test_events_of_a_failed_run_that_were_kept_end_in_the_same_error() -> None:
    """Nobody raises its exception again."""
    failed = RunFailed(run_id="r", error=ConnectionError("token=secret"))
    assert sent([START, failed]) == sent(failing(START, failed))


def test_a_run_in_a_tool_that_fails_is_not_the_end() -> None:
    """Its call has an error result, and the outer run goes on."""
    failed = RunFailed(run_id="inner", error=ConnectionError("token=secret"), **NESTED)
    assert [frame.event for frame in sent([START, INSIDE[0], failed, END])] == ["run_start", "run_start", "run_error", "run_end", "done"]


@pytest.mark.parametrize("options", [*({"first_id": one} for one in ("1", -1, True, 2**53)), {"after": 1.5}, {"after": True}])
def test_arguments_that_cannot_work_are_refused(options: dict[str, Any]) -> None:
    """Before anything is sent."""
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        sse([], **options)


class Stubborn:
    """An object that cannot even say what it is."""

    def __str__(self) -> str:
        """Fails."""
        raise RuntimeError


def looped() -> list[Any]:
    """A list that holds itself."""
    value: list[Any] = []
    value.append(value)
    return value


LINE_ENDS = "\r\n\x0b\x0c\x1c\x85\u2028\u2029"
ODD = [
    float("nan"),
    float("inf"),
    Stubborn(),
    object(),
    b"\xff" * 10_000,
    {1, 2},
    HumanMessage("hi"),
    looped(),
    {(1, 2): 3},
    "\x0b\x0c\x1c\x85\u2028\u2029",
]
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.sampled_from(range(len(ODD))).map(ODD.__getitem__),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.data())
def test_no_value_breaks_the_stream(value: Any, data: st.DataObject) -> None:
    """Whatever tools report, return beside their content, or write in a text: frames are whole, JSON is strict, cut anywhere."""
    text = value if isinstance(value, str) else "text"
    message = ToolMessage(text, tool_call_id="c1", id="m2", artifact=value)
    events = [
        TextDelta(run_id="r", message_id="m1", text=text),
        CallProgress(run_id="r", call_id="c1", value=value),
        CallResult(run_id="r", call=CALL, index=0, message=message),
        MessageDone(run_id="r", message=message),
        CallReady(run_id="r", message_id="m1", call=replace(CALL, args={"value": value}), index=0),
    ]
    whole = b"".join(sse(events, artifacts=True))
    frames = frames_of([whole])
    assert [frame.event for frame in frames] == ["text", "tool_progress", "tool_result", "message", "tool_call", "done"]
    assert all(isinstance(frame.json, dict) for frame in frames)
    lines = whole.decode().splitlines()  # which splits at more than the standard does, as some readers do
    assert all(line.startswith(("event: ", "id: ", "data: ")) or not line for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    assert frames_of(whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)) == frames


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(PLAIN)
def test_plain_values_arrive_as_they_are(value: Any) -> None:
    """What JSON can hold is not changed."""
    assert sent([CallProgress(run_id="r", call_id="c1", value=value)])[0].json["value"] == value


def test_what_is_no_json_is_a_text_of_bounded_length() -> None:
    """The form that `str` gives it; of what cannot say itself, its class."""

    def shown(value: Any) -> Any:
        return sent([CallProgress(run_id="r", call_id="c1", value=value)])[0].json["value"]

    assert shown([10**5000, "\ud83d"]) == ["<int>", "\ufffd"]
    assert shown({"a": Stubborn(), 2: float("nan")}) == {"a": "<Stubborn>", "2": "nan"}
    assert len(shown(b"x" * 100_000)) < 2100
    assert shown(HumanMessage("hi", id="h"))["content"] == "hi"
    assert json.dumps(shown(looped())).count("[") >= 100


async def test_heartbeats_are_comments() -> None:
    """They have no number, and no reader sees them."""
    come = asyncio.Event()

    async def events() -> Any:
        await come.wait()
        yield END

    stream, parser = sse(events(), heartbeat=0.001), EventStreamParser()
    assert list(parser.feed(await anext(stream))) == []
    come.set()
    frames = [frame async for data in stream for frame in parser.feed(data)]
    assert [(frame.event, frame.id) for frame in frames] == [("run_end", "1"), ("done", "2")]
    assert set(parser.comments) == {"heartbeat"}
