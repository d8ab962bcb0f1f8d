"""The AI SDK's UI message stream: which chunks each event makes. `tests/parsers` has the package's own client read them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_autotools import Decision, PendingCall, ToolCallRecord
from langchain_autotools.encoders import AI_SDK_HEADERS, ai_sdk
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
    ReasoningDelta,
    RunEnded,
    RunEvent,
    RunFailed,
    RunStarted,
    TextDelta,
    TurnUsage,
)

RUN = {"run_id": "run"}
NESTED = {"run_id": "inner", "parent_run_id": "run", "parent_call_id": "call_1"}
CALL = ToolCallRecord("call_1", "get_weather", '{"city":"Paris"}', {"city": "Paris"})
STARTED = RunStarted(**RUN, name="ChatOpenAI")
ENDED = RunEnded(**RUN, stop_reason="complete", turns=1)
SAID = {"toolCallId": "call_1", "toolName": "get_weather"}


def chunks_of(events: Any, **keywords: Any) -> list[Any]:
    """The chunks of a stream, without its end marker."""
    frames = b"".join(ai_sdk(iter(events), **keywords)).decode().split("\n\n")
    assert frames[-2:] == ["data: [DONE]", ""]
    return [json.loads(frame.removeprefix("data: ")) for frame in frames[:-2]]


def inside(*events: RunEvent) -> list[Any]:
    """The chunks of events between the start and the end of a run."""
    chunks = chunks_of([STARTED, *events, ENDED])
    assert chunks[0] == {"type": "start"} and chunks[-1]["type"] == "finish"
    return chunks[1:-1]


def text(message_id: str, piece: str) -> TextDelta:
    """A piece of text."""
    return TextDelta(**RUN, message_id=message_id, text=piece)


def done(message_id: str) -> MessageDone:
    """An AI message is complete."""
    return MessageDone(**RUN, message=AIMessage("", id=message_id))


def started(call: ToolCallRecord = CALL, provisional: bool = True) -> CallStarted:
    """A call is begun in the first message."""
    return CallStarted(**RUN, message_id="msg_1", call_id=call.id, name=call.name, index=0, provisional=provisional)


def ready(call: ToolCallRecord = CALL) -> CallReady:
    """A call of the first message is whole."""
    return CallReady(**RUN, message_id="msg_1", call=call, index=0)


def result(content: Any, call: ToolCallRecord = CALL, **fields: Any) -> CallResult:
    """A call has its result."""
    return CallResult(**RUN, call=call, index=0, message=ToolMessage(content, tool_call_id=call.id, **fields))


def pending(kind: Any, call_id: str = "call_1") -> CallsPending:
    """A call waits."""
    return CallsPending(**RUN, calls=[PendingCall(call_id, "get_weather", {"city": "Paris"}, kind, "uuid", "digest")])


def test_text_and_reasoning_are_parts_of_the_step_of_their_message() -> None:
    """Each stretch of one kind is a part that begins and ends; each message is a step."""
    reasoning = ReasoningDelta(**RUN, message_id="msg_1", text="Hm.")
    assert inside(reasoning, text("msg_1", "Let"), text("msg_1", " me"), done("msg_1"), text("msg_2", "21 °C"), done("msg_2")) == [
        {"type": "start-step"},
        {"type": "reasoning-start", "id": "msg_1-0"},
        {"type": "reasoning-delta", "id": "msg_1-0", "delta": "Hm."},
        {"type": "reasoning-end", "id": "msg_1-0"},
        {"type": "text-start", "id": "msg_1-1"},
        {"type": "text-delta", "id": "msg_1-1", "delta": "Let"},
        {"type": "text-delta", "id": "msg_1-1", "delta": " me"},
        {"type": "text-end", "id": "msg_1-1"},
        {"type": "finish-step"},
        {"type": "start-step"},
        {"type": "text-start", "id": "msg_2-2"},
        {"type": "text-delta", "id": "msg_2-2", "delta": "21 °C"},
        {"type": "text-end", "id": "msg_2-2"},
        {"type": "finish-step"},
    ]


def test_a_call_is_shown_while_it_is_written_and_while_it_runs() -> None:
    """Its arguments as they come, then whole; what it reports as preliminary outputs; its result."""
    piece = CallArgumentsDelta(**RUN, message_id="msg_1", call_id="call_1", text='{"city":')
    progress = CallProgress(**RUN, call_id="call_1", value={"done": 0.5})
    assert inside(text("msg_1", "Look:"), started(), piece, ready(), done("msg_1"), progress, result("21 °C"))[2:] == [
        {"type": "text-delta", "id": "msg_1-0", "delta": "Look:"},
        {"type": "text-end", "id": "msg_1-0"},
        {"type": "tool-input-start", **SAID},
        {"type": "tool-input-delta", "toolCallId": "call_1", "inputTextDelta": '{"city":'},
        {"type": "tool-input-available", **SAID, "input": {"city": "Paris"}},
        {"type": "tool-output-available", "toolCallId": "call_1", "output": {"done": 0.5}, "preliminary": True},
        {"type": "tool-output-available", "toolCallId": "call_1", "output": "21 °C"},
        {"type": "finish-step"},
    ]


def test_a_call_that_is_known_only_at_the_end_of_its_turn_is_shown_then() -> None:
    """The step of its message begins with it."""
    assert inside(started(provisional=False), ready(), done("msg_1"))[:2] == [
        {"type": "start-step"},
        {"type": "tool-input-available", **SAID, "input": {"city": "Paris"}},
    ]


def test_a_call_that_cannot_run_is_an_error_with_what_was_written() -> None:
    """Why is said at once, and the model's own text of it is the input."""
    call = replace(CALL, arguments='{"city"', args=None, why="no JSON")
    assert inside(started(), ready(call), done("msg_1"), result('{"error": "no JSON"}', call, status="error"))[2:-1] == [
        {"type": "tool-input-error", **SAID, "input": '{"city"', "errorText": "no JSON"},
        {"type": "tool-output-error", "toolCallId": "call_1", "errorText": "no JSON"},
    ]


def test_a_call_that_comes_to_nothing_ends_as_one() -> None:
    """It is marked, so that a page can hide it."""
    discarded = CallDiscarded(**RUN, message_id="msg_1", call_id="call_1", reason="the reply broke off")
    piece = CallArgumentsDelta(**RUN, message_id="msg_1", call_id="call_1", text='{"ci')
    said = {"input": '{"ci', "errorText": "the reply broke off", "toolMetadata": {"discarded": True}}
    assert inside(started(), piece, discarded)[3] == {"type": "tool-input-error", **SAID, **said}


def test_the_page_is_told_of_a_reply_that_is_void() -> None:
    """The protocol takes no text back: its part ends, and a part of data says what it was worth."""
    void = MessageDiscarded(**RUN, message_id="msg_1", attempt=2)
    chunks = inside(started(), text("msg_1", "Paris 2"), void)
    kinds = [chunk["type"] for chunk in chunks]
    assert kinds[kinds.index("text-delta") :][:3] == ["text-delta", "text-end", "data-message-discarded"]
    assert chunks[kinds.index("data-message-discarded")] == {"type": "data-message-discarded", "data": {"messageId": "msg_1", "attempt": 2}}


def test_a_call_that_the_end_of_its_run_leaves_without_an_answer_is_an_error() -> None:
    """Whether it was announced in this stream or in an earlier one."""
    discarded = CallDiscarded(**RUN, message_id="msg_1", call_id="call_1", reason="the run ended")
    chunk = {"type": "tool-output-error", "toolCallId": "call_1", "errorText": "the run ended"}
    assert inside(started(), ready(), done("msg_1"), discarded)[3] == chunk
    assert [chunk["type"] for chunk in inside(*OLD, discarded)] == ["tool-input-start", "tool-input-delta", "tool-output-error"]


def test_an_error_whose_content_is_no_plain_sentence_is_shown_as_it_is() -> None:
    """Blocks, and objects that say more than an error."""
    blocks = [{"type": "text", "text": "no"}]
    events = [result(content, status="error") for content in ('{"error": "no", "code": 1}', blocks, "no")]
    assert [chunk["errorText"] for chunk in inside(*events)] == ['{"error": "no", "code": 1}', '[{"type":"text","text":"no"}]', "no"]


def test_a_call_that_waits_for_approval_is_asked_for_with_its_signature() -> None:
    """What is signed is the call as it is shown."""
    said = {"approvalId": "uuid", "toolCallId": "call_1", "signature": "uuid.digest"}
    assert inside(started(), ready(), done("msg_1"), pending("approval"))[3] == {"type": "tool-approval-request", **said}


def test_a_call_behind_one_that_waits_is_approved_by_itself() -> None:
    """A page that sends its answers once all are given does not wait for one about this call."""
    assert inside(started(), ready(), done("msg_1"), pending("queued"))[3:5] == [
        {"type": "tool-approval-request", "approvalId": "uuid", "toolCallId": "call_1", "isAutomatic": True},
        {"type": "tool-approval-response", "approvalId": "uuid", "approved": True},
    ]


def test_a_call_that_is_left_to_the_page_is_announced_once() -> None:
    """`tool-input-available` has the page run it; an item of a vendor's own is announced with those that wait."""
    announced = {"type": "tool-input-available", **SAID, "input": {"city": "Paris"}}
    assert inside(started(), ready(), done("msg_1"), pending("caller"))[2:-1] == [announced]
    assert inside(done("msg_1"), pending("client_tool", "item"))[1:-1] == [{**announced, "toolCallId": "item"}]


OLD = (started(provisional=False), ready())


@pytest.mark.parametrize(
    ("news", "chunks"),
    [
        (result("21 °C"), [{"type": "tool-output-available", "toolCallId": "call_1", "output": "21 °C"}]),
        (
            pending("approval"),
            [{"type": "tool-approval-request", "approvalId": "uuid", "toolCallId": "call_1", "signature": "uuid.digest"}],
        ),
    ],
)
def test_a_resumed_call_does_not_run_again_on_the_page(news: RunEvent, chunks: list[Any]) -> None:
    """It is shown once there is news of it, outside any step, without the chunk that makes a page run its own tools."""
    reminder = {"type": "tool-input-delta", "toolCallId": "call_1", "inputTextDelta": '{"city":"Paris"}'}
    assert inside(*OLD, news) == [{"type": "tool-input-start", **SAID}, reminder, *chunks]


def test_a_resumed_call_that_the_page_still_has_to_run_is_not_told_again() -> None:
    """The message that goes on has it."""
    assert inside(*OLD, pending("caller")) == []


def test_a_rejected_call_is_denied_with_the_reason() -> None:
    """Request, answer and denial, so that a page that was not asked can show it too."""
    for reason, said in (("too far", {"reason": "too far"}), (None, {})):
        denied = replace(CALL, decision=Decision("call_1", "reject", reason, "uuid", "digest"))
        assert inside(*OLD, result("no", denied, status="error"))[2:] == [
            {"type": "tool-approval-request", "approvalId": "uuid", "toolCallId": "call_1"},
            {"type": "tool-approval-response", "approvalId": "uuid", "approved": False, **said},
            {"type": "tool-output-denied", "toolCallId": "call_1"},
        ]


def test_edited_arguments_are_a_data_part_of_the_call() -> None:
    """The protocol's approval cannot carry them, and the input stays what the model wrote."""
    edited = replace(CALL, decision=Decision("call_1", "edit", {"city": "Rome"}, "uuid", "digest"))
    data = {"toolCallId": "call_1", "input": {"city": "Rome"}}
    chunks = inside(*OLD, result("25 °C", edited))
    assert chunks[2] == {"type": "data-edited-arguments", "id": "call_1", "data": data}
    assert chunks[4] == {"type": "tool-approval-response", "approvalId": "uuid", "approved": True}
    assert chunks[5]["type"] == "tool-output-available"


def test_a_run_inside_a_tool_is_a_data_part() -> None:
    """It opens no part of the message; its text comes between as transient parts."""
    inner = replace(CALL, id="call_2")
    failed = ToolMessage('{"error": "no"}', tool_call_id="call_2", status="error")
    chunks = inside(
        RunStarted(**NESTED, name="Inner"),
        TextDelta(**NESTED, message_id="msg_i", text="Well"),
        CallReady(**NESTED, message_id="msg_i", call=inner, index=0),
        CallResult(**NESTED, call=inner, index=0, message=failed),
        MessageDone(**NESTED, message=AIMessage("Well", id="msg_i")),
        RunEnded(**NESTED, stop_reason="complete", turns=1),
    )
    assert chunks[1] == {
        "type": "data-run-text",
        "data": {"runId": "inner", "toolCallId": "call_1", "messageId": "msg_i", "text": "Well"},
        "transient": True,
    }
    assert {chunk["type"] for chunk in chunks} == {"data-run", "data-run-text"}
    call = {"toolCallId": "call_2", "toolName": "get_weather", "input": {"city": "Paris"}, "errorText": "no"}
    said = {"runId": "inner", "parentRunId": "run", "toolCallId": "call_1", "name": "Inner"}
    shown = {**said, "state": "ended", "text": "Well", "calls": [call], "stop_reason": "complete"}
    assert chunks[-1] == {"type": "data-run", "id": "inner", "data": shown}


@pytest.mark.parametrize("whole_turns", [False, True])
def test_a_stream_whose_process_shuts_down_ends_without_a_last_chunk(whole_turns: bool) -> None:
    """Neither `error` nor `finish`: the run goes on, and the page resumes its message at another process."""

    def interrupted() -> Iterator[RunEvent]:
        yield from (STARTED, ENDED)
        raise EventsInterruptedError("this process has shut down")

    assert b"".join(ai_sdk(interrupted(), whole_turns=whole_turns)) == b'data: {"type":"start"}\n\n'


def test_a_failed_run_inside_a_tool_says_no_more_than_the_class_of_its_error() -> None:
    """The text of an exception may hold what no reader should see."""
    chunks = inside(RunStarted(**NESTED, name="Inner"), RunFailed(**NESTED, error=ValueError("secret")))
    assert chunks[-1]["data"] | {"state": "failed", "errorText": "ValueError"} == chunks[-1]["data"]


def test_usage_and_the_stop_reason_are_metadata_of_the_message() -> None:
    """The tokens of the run so far after each turn, and at its end how it ended."""
    used = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    twice = {"input_tokens": 2, "output_tokens": 4, "total_tokens": 6}
    turns: list[RunEvent] = [TurnUsage(**RUN, message_id="m", turn=turn, usage=used) for turn in (1, 2)]
    chunks = chunks_of([STARTED, *turns, replace(ENDED, stop_reason="max_turns", turns=2, usage=twice)])
    assert [chunk["messageMetadata"] for chunk in chunks[1:]] == [
        {"turns": 1, "usage": used},
        {"turns": 2, "usage": twice},
        {"stop_reason": "max_turns", "max_turns_reached": True, "turns": 2, "usage": twice},
    ]
    assert chunks[-1]["finishReason"] == "other"


def test_two_runs_in_one_stream_are_one_message() -> None:
    """A chain with two models: how the first ended is metadata, and the message finishes once."""
    other = {"run_id": "other"}
    chunks = chunks_of([STARTED, ENDED, RunStarted(**other, name="Second"), RunEnded(**other, stop_reason="length", turns=1)])
    assert [chunk["type"] for chunk in chunks] == ["start", "message-metadata", "finish"]
    assert chunks[-1]["finishReason"] == "length"


def test_a_cancelled_run_is_an_abort() -> None:
    """As if the page had stopped it, with what is known of it."""
    chunks = chunks_of([STARTED, text("msg_1", "Let"), replace(ENDED, stop_reason="cancelled")])
    assert [chunk["type"] for chunk in chunks[-4:]] == ["text-end", "finish-step", "message-metadata", "abort"]


def failing(error: Exception) -> Iterator[RunEvent]:
    """The events of a run that fails while it writes."""
    yield STARTED
    yield text("msg_1", "Let")
    yield RunFailed(**RUN, error=error)
    raise error


def test_a_failed_run_says_its_class_and_a_sentence() -> None:
    """What is open is closed before; the text of the exception only where that is asked for."""
    chunks = chunks_of(failing(ValueError("secret")))
    assert [chunk["type"] for chunk in chunks[-4:]] == ["text-end", "finish-step", "error", "finish"]
    assert chunks[-2]["errorText"] == "ValueError: The run failed."
    assert chunks_of(failing(ValueError("secret")), details=True)[-2]["errorText"] == "ValueError: The run failed. secret"


def test_a_stream_in_which_no_run_was_made_is_an_empty_message() -> None:
    """It has its start and its end."""
    assert chunks_of([]) == [{"type": "start"}, {"type": "finish", "finishReason": "other"}]


def test_the_message_has_the_id_that_the_server_gives_it() -> None:
    """Without one the page makes it."""
    assert chunks_of([STARTED, ENDED], message_id="ui_1")[0] == {"type": "start", "messageId": "ui_1"}


@pytest.mark.parametrize("poison", [{"__proto__": {"a": 1}}, [{"constructor": {"prototype": {}}}], {"deep": [{"__proto__": 1}]}])
def test_what_the_package_refuses_to_parse_is_shown_as_text(poison: Any) -> None:
    """It gives up the whole stream for an object with such a key; a human who approves still sees all of it."""
    call = replace(CALL, args={"city": poison})
    chunks = inside(started(), ready(call), done("msg_1"), result([{"type": "text", "text": "x", "poison": poison}]))
    assert json.loads(chunks[2]["input"]) == {"city": poison}
    assert json.loads(chunks[3]["output"])[0]["poison"] == poison


def test_the_headers_say_which_protocol_it_is() -> None:
    """A page's transport and the proxies before it look at them."""
    assert AI_SDK_HEADERS["x-vercel-ai-ui-message-stream"] == "v1" and AI_SDK_HEADERS["content-type"] == "text/event-stream"


def test_a_message_that_the_run_took_is_a_part_between_two_steps() -> None:
    """Its data are the user's UI message; one of a run inside a tool is not the user's."""
    image = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    said = HumanMessage([{"type": "text", "text": "Like this."}, image], id="said")
    chunks = inside(text("m", "Well."), done("m"), MessageDone(**RUN, message=said), text("n", "So."), done("n"))
    assert [chunk["type"] for chunk in chunks[4:7]] == ["finish-step", "data-user-message", "start-step"]
    parts = [{"type": "text", "text": "Like this."}, {"type": "file", "url": "data:image/png;base64,aGk=", "mediaType": "image/png"}]
    assert chunks[5] == {"type": "data-user-message", "id": "said", "data": {"id": "said", "role": "user", "parts": parts}}
    nested = [RunStarted(**NESTED, name="Inner"), MessageDone(**NESTED, message=said)]
    assert "data-user-message" not in {chunk["type"] for chunk in inside(*nested)}
