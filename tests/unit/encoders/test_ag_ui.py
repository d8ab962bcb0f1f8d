"""Events as AG-UI: what a strict client arrives at, whatever the run does."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata

from langchain_autotools import ConfigurationError
from langchain_autotools.encoders import ag_ui
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
from langchain_autotools.executor import PendingCall
from langchain_autotools.messages.calls import ToolCallRecord, calls_of
from tests.support.ag_ui_client import AgUiClient

USAGE = UsageMetadata(input_tokens=3, output_tokens=4, total_tokens=7)
OUTER = {"run_id": "r1"}
INNER = {"run_id": "r2", "parent_run_id": "r1", "parent_call_id": "c1"}
CALL = {"id": "c1", "name": "look", "args": {"city": "Rome"}}


def asking(message_id: str = "m1", text: str = "Let me look.", **run: str) -> list[RunEvent]:
    """A turn that calls a tool."""
    run = run or OUTER
    message = AIMessage(text, id=message_id, tool_calls=[CALL], response_metadata={"model_name": "model", "model_provider": "vendor"})
    (call,) = calls_of(message)
    return [
        *([TextDelta(message_id=message_id, text=text, **run)] if text else []),
        CallStarted(message_id=message_id, call_id="c1", name="look", index=0, provisional=True, **run),
        CallArgumentsDelta(message_id=message_id, call_id="c1", text='{"wrong": ', **run),
        CallReady(message_id=message_id, call=call, index=0, **run),
        MessageDone(message=message, **run),
        TurnUsage(message_id=message_id, turn=1, usage=USAGE, **run),
    ]


def result(content: Any = "21 °C", **run: str) -> list[RunEvent]:
    """The result of that call."""
    message = ToolMessage(content, tool_call_id="c1", id="t1", name="look")
    call = ToolCallRecord("c1", "look", '{"city":"Rome"}', {"city": "Rome"})
    return [
        CallResult(call=call, index=0, message=message, executed=True, duration=0.5, **(run or OUTER)),
        MessageDone(message=message, **(run or OUTER)),
    ]


def saying(text: str = "Rome has 21 °C.", message_id: str = "m2", **run: str) -> list[RunEvent]:
    """A turn of text, and the end of the run."""
    run = run or OUTER
    return [
        *(TextDelta(message_id=message_id, text=word, **run) for word in text.split(" ")),
        MessageDone(message=AIMessage(text.replace(" ", ""), id=message_id), **run),
        RunEnded(stop_reason="complete", turns=2, usage=USAGE, **run),
    ]


def started(**run: str) -> RunEvent:
    """The beginning of a run."""
    return RunStarted(name="ChatModel", **(run or OUTER))


def read(events: list[RunEvent], **options: Any) -> tuple[AgUiClient, dict[str, Any]]:
    """A client that has read these events, and the last event that it read."""
    client = AgUiClient()
    return client, client.read(ag_ui(events, thread_id="thread", **options))


def of_type(client: AgUiClient, kind: str) -> list[dict[str, Any]]:
    """The events of a type."""
    return [event for event in client.events if event["type"] == kind]


def test_a_run_with_a_call() -> None:
    """The client arrives at the run's messages: texts, the call as it was made, its result."""
    client, last = read([started(), *asking(), *result(), *saying()], run_id="run")
    assert client.own("assistant") == [
        ("m1", {"role": "assistant", "content": "Let me look.", "calls": {"c1": ["look", '{"city":"Rome"}']}, "tag": None}),
        ("m2", {"role": "assistant", "content": "Romehas21°C.", "calls": {}, "tag": None}),
    ]
    assert client.own("tool") == [
        ("t1", {"role": "tool", "content": "21 °C", "calls": {}, "tag": None, "toolCallId": "c1", "status": "success"})
    ]
    assert client.events[0] == {"type": "RUN_STARTED", "threadId": "thread", "runId": "run", "protocolVersion": "1.0"}
    assert (last["threadId"], last["runId"], last["outcome"]) == ("thread", "run", {"type": "success"})
    assert last["result"] == {"stopReason": "complete", "turns": 2}
    assert last["usage"] == [{"provider": "vendor", "model": "model", "inputTokens": 3, "outputTokens": 4, "totalTokens": 7}]
    assert [event["stepName"] for event in of_type(client, "STEP_STARTED")] == ["turn 1", "turn 2"]


def test_the_run_has_the_id_of_the_first_run_where_the_page_gave_none() -> None:
    """`RUN_STARTED` and `RUN_FINISHED` agree about it."""
    client, last = read([started(), *saying()])
    assert (client.events[0]["runId"], last["runId"]) == ("r1", "r1")


def test_a_call_that_is_being_written_is_told_of_apart() -> None:
    """What is provisional comes as custom events, which change no message."""
    client, _ = read([started(), *asking(), *result(), *saying()])
    told = [(event["name"], event["value"]) for event in of_type(client, "CUSTOM")]
    assert told == [
        ("tool_call_started", {"toolCallId": "c1", "toolCallName": "look", "index": 0}),
        ("tool_call_delta", {"toolCallId": "c1", "delta": '{"wrong": '}),
    ]


def test_a_call_that_comes_to_nothing_is_in_no_message() -> None:
    """A discarded call is one of the custom events, and nothing else."""
    begun = [event for event in asking() if isinstance(event, TextDelta | CallStarted | CallArgumentsDelta)]
    message = AIMessage("Let me look.", id="m1")
    gone = CallDiscarded(message_id="m1", call_id="c1", reason="it broke off", **OUTER)
    client, _ = read([started(), *begun, gone, MessageDone(message=message, **OUTER), *saying()[-1:]])
    assert client.own("assistant") == [("m1", {"role": "assistant", "content": "Let me look.", "calls": {}, "tag": None})]
    assert of_type(client, "CUSTOM")[-1]["value"] == {"toolCallId": "c1", "reason": "it broke off"}


def test_a_reply_that_is_void_ends_and_the_next_one_is_another_message() -> None:
    """Its message ends where it is, a custom event says that it is void, and the reply that is asked for again has an id of its own."""
    void = MessageDiscarded(message_id="m1", attempt=1, **OUTER)
    message = AIMessage("Again.", id="m1")
    piece = TextDelta(message_id="m1", text="Again.", **OUTER)
    client, _ = read([started(), replace(piece, text="Half"), void, piece, MessageDone(message=message, **OUTER), *saying()[-1:]])
    assert [(one, said["content"]) for one, said in client.own("assistant")] == [("m1", "Half"), ("m1:2", "Again.")]
    assert of_type(client, "CUSTOM")[-1]["value"] == {"messageId": "m1", "attempt": 1}


def test_calls_of_an_earlier_message_are_not_sent_again() -> None:
    """A resumed run begins with the result of a call that the client has: only that is sent."""
    call = ToolCallRecord("c1", "look", "{}", {})
    again = [
        CallStarted(message_id="m1", call_id="c1", name="look", index=0, provisional=False, **OUTER),
        CallReady(message_id="m1", call=call, index=0, **OUTER),
    ]
    client, _ = read([started(), *again, *result(), *saying()])
    assert of_type(client, "TOOL_CALL_START") == of_type(client, "CUSTOM") == []
    assert [one for one, _ in client.own("tool")] == ["t1"]


def test_reasoning_stands_before_what_follows_it() -> None:
    """Each piece of reasoning is a message of its own, which ends when text, a call or more begins."""
    events = [
        ReasoningDelta(message_id="m1", text="Rome, ", **OUTER),
        ReasoningDelta(message_id="m1", text="then.", **OUTER),
        TextDelta(message_id="m1", text="Let me ", **OUTER),
        ReasoningDelta(message_id="m1", text="Hm.", **OUTER),
        *asking(text="look."),
    ]
    client, _ = read([started(), *events, *result(), *saying()])
    assert [(one, message["content"]) for one, message in client.own("reasoning")] == [
        ("m1:reasoning:1", "Rome, then."),
        ("m1:reasoning:2", "Hm."),
    ]
    assert client.messages["m1"]["content"] == "Let me look."


def test_progress_is_an_activity() -> None:
    """What a tool reports is shown beside the messages, any value as plain JSON."""
    reported = [CallProgress(call_id="c1", value=value, **OUTER) for value in (0.5, {"at": {1}}, object)]
    client, _ = read([started(), *asking(), *reported, *result(), *saying()])
    snapshots = of_type(client, "ACTIVITY_SNAPSHOT")
    assert {(event["messageId"], event["activityType"]) for event in snapshots} == {("c1:progress", "tool_progress")}
    assert [event["content"] for event in snapshots[:2]] == [
        {"toolCallId": "c1", "value": 0.5},
        {"toolCallId": "c1", "value": {"at": [1]}},
    ]


def test_a_run_inside_a_tool_is_a_subagent() -> None:
    """Its messages name it, and the same ids inside and outside do not meet."""
    inside = [started(**INNER), *asking(**INNER), *result(**INNER), *saying(message_id="m1", **INNER)]
    client, last = read([started(), *asking(), *inside, *result(), *saying()])
    (begun,) = of_type(client, "SUBAGENT_STARTED")
    assert begun == {"type": "SUBAGENT_STARTED", "subagentRunId": "r2", "name": "ChatModel", "parentToolCallId": "c1"}
    assert of_type(client, "SUBAGENT_FINISHED")[0]["result"] == {"stopReason": "complete", "turns": 2}
    assert [one for one, _ in client.own("assistant")] == ["m1", "m2"]
    assert client.messages["r2:m1"]["calls"] == {"r2:c1": ["look", '{"city":"Rome"}']}
    assert last["usage"][0]["totalTokens"] == 14


def test_a_run_inside_a_run_inside_a_tool_names_both() -> None:
    """A subagent of a subagent says whose it is."""
    deepest = {"run_id": "r3", "parent_run_id": "r2", "parent_call_id": "c1"}
    inside = [started(**INNER), *asking(**INNER), started(**deepest), *saying(**deepest), *result(**INNER), *saying(**INNER)]
    client, _ = read([started(), *asking(), *inside, *result(), *saying()])
    begun = of_type(client, "SUBAGENT_STARTED")[1]
    assert (begun["parentSubagentRunId"], begun["parentToolCallId"]) == ("r2", "r2:c1")


def test_runs_inside_tools_can_be_left_out() -> None:
    """With `nested=False` nothing is told of them, however deep they are; their tokens count."""
    deepest = {"run_id": "r3", "parent_run_id": "r2", "parent_call_id": "c1"}
    inside = [started(**INNER), *asking(**INNER), started(**deepest), *saying(**deepest), *result(**INNER), *saying(**INNER)]
    client, last = read([started(), *asking(), *inside, *result(), *saying()], nested=False)
    assert [one for one, _ in client.own("assistant")] == ["m1", "m2"]
    assert sum(one["totalTokens"] for one in last["usage"]) == 14
    assert not any("subagentRunId" in event for event in client.events)


def test_a_run_inside_a_tool_fails_alone() -> None:
    """Its failure is the subagent's; the run goes on."""
    broken = [started(**INNER), TextDelta(message_id="m1", text="I", **INNER), RunFailed(error=KeyError("secret"), **INNER)]
    client, last = read([started(), *asking(), *broken, *result(), *saying()])
    assert of_type(client, "SUBAGENT_ERROR") == [
        {"type": "SUBAGENT_ERROR", "subagentRunId": "r2", "message": "The run failed.", "code": "KeyError"}
    ]
    assert last["outcome"] == {"type": "success"}


def test_several_runs_of_one_stream_are_one_run() -> None:
    """A chain of two models, whose ids meet: the client has both."""
    second = {"run_id": "r9"}
    client, last = read([started(), *asking(), *result(), *saying(), started(**second), *asking(**second), *saying(**second)])
    assert len(of_type(client, "RUN_STARTED")) == len(of_type(client, "RUN_FINISHED")) == 1
    assert [one for one, _ in client.own("assistant")] == ["m1", "m2", "r9:m1", "r9:m2"]
    assert last["result"] == {"stopReason": "complete", "turns": 4}


def test_calls_that_need_approval_are_interrupts() -> None:
    """The run ends with what it waits for, and what an answer must look like. What waits behind it is no interrupt."""
    waiting = PendingCall("c1", "look", {}, "approval", "uuid", "digest")
    behind = PendingCall("c2", "look", {}, "queued", "other", "digest")
    _, last = read(
        [started(), *asking(), CallsPending(calls=[waiting, behind], **OUTER), RunEnded(stop_reason="calls_pending", turns=1, **OUTER)]
    )
    (interrupt,) = last["outcome"]["interrupts"]
    assert (interrupt["id"], interrupt["reason"], interrupt["toolCallId"]) == ("uuid.digest", "tool_call", "c1")
    assert set(interrupt["responseSchema"]["properties"]) == {"approved", "editedArgs", "reason"}
    assert "result" not in last


def test_calls_of_the_page_s_own_tools_are_pending() -> None:
    """A run that ends with them has succeeded, and names them."""
    left = PendingCall("c1", "look", {}, "caller", "", "digest")
    behind = PendingCall("c2", "look", {}, "queued", "other", "digest")
    waiting = CallsPending(calls=[left, behind], **OUTER)
    _, last = read([started(), *asking(), waiting, RunEnded(stop_reason="calls_pending", turns=1, **OUTER)])
    assert last["outcome"] == {"type": "success", "pendingToolCallIds": ["c1"]}
    assert last["result"] == {"stopReason": "calls_pending", "turns": 1}


def test_calls_that_wait_inside_a_tool_are_nobody_s() -> None:
    """Nobody can answer them: they end no run with interrupts."""
    waiting = CallsPending(calls=[PendingCall("c1", "look", {}, "approval", "uuid", "digest")], **INNER)
    inside = [started(**INNER), *asking(**INNER), waiting, RunEnded(stop_reason="calls_pending", turns=1, **INNER)]
    _, last = read([started(), *asking(), *inside, *result(), *saying()])
    assert last["outcome"] == {"type": "success"}


def test_a_run_that_was_cancelled_says_so() -> None:
    """The protocol has an outcome for it, which asks for nothing and has no result."""
    waiting = CallsPending(calls=[PendingCall("c1", "look", {}, "approval", "uuid", "digest")], **OUTER)
    _, last = read([started(), *asking(), waiting, RunEnded(stop_reason="cancelled", turns=1, **OUTER)])
    assert last["outcome"] == {"type": "cancelled"}
    assert "result" not in last


@pytest.mark.parametrize("details", [False, True])
def test_a_run_that_fails(details: bool) -> None:
    """What was open ends, then comes the error: its class and a plain sentence, its text only if that was asked for."""

    def failing() -> Iterator[RunEvent]:
        yield from [started(), *asking()[:-1], *asking()[-1:], TextDelta(message_id="m2", text="And", **OUTER)]
        yield RunFailed(error=KeyError("secret"), **OUTER)
        raise KeyError("secret")

    client = AgUiClient()
    last = client.read(ag_ui(failing(), thread_id="thread", details=details))
    assert (last["type"], last["code"], last["message"]) == ("RUN_ERROR", "KeyError", "'secret'" if details else "The run failed.")
    assert last["usage"][0]["totalTokens"] == 7
    assert client.messages["m2"]["content"] == "And"


def test_a_stream_that_fails_before_anything_began() -> None:
    """A page is told nevertheless."""

    def failing() -> Iterator[RunEvent]:
        raise ValueError("secret")
        yield

    client = AgUiClient()
    assert client.read(ag_ui(failing(), thread_id="thread", run_id="run"))["code"] == "ValueError"
    assert client.events[0]["runId"] == "run"


def test_a_stream_without_runs_is_an_empty_run() -> None:
    """It begins and ends, which is all that a client waits for."""
    client, last = read([])
    assert [event["type"] for event in client.events] == ["RUN_STARTED", "RUN_FINISHED"]
    assert last["outcome"] == {"type": "success"}


def test_a_run_that_is_left_inside_a_tool_is_ended_for_the_client() -> None:
    """Events that break off leave nothing open."""
    deepest = {"run_id": "r3", "parent_run_id": "r2", "parent_call_id": "c1"}
    inside = [started(**INNER), TextDelta(message_id="m1", text="I", **INNER), started(**deepest)]
    client, _ = read([started(), *asking(), *inside, *result(), *saying()])
    assert [event["subagentRunId"] for event in of_type(client, "SUBAGENT_ERROR")] == ["r3", "r2"]


def test_an_empty_message_is_a_message() -> None:
    """A reply without anything is there, without text; one that came without pieces has its text."""
    for text in ("", "Whole."):
        client, _ = read([started(), MessageDone(message=AIMessage(text, id="m1"), **OUTER), saying()[-1]])
        assert client.messages["m1"]["content"] == text
    client, _ = read([started(), *asking()[1:], *result(), *saying()])
    assert client.messages["m1"]["content"] == "Let me look."
    client, _ = read([started(), *asking(text=""), *result(), *saying()])
    assert (client.messages["m1"]["content"], len(of_type(client, "TEXT_MESSAGE_START"))) == ("", 1)


def test_a_result_with_an_image_has_parts() -> None:
    """Texts and files are the protocol's parts, whatever else there is their JSON."""
    content = [
        {"type": "text", "text": "Look:"},
        {"type": "image", "base64": "QUJD", "mime_type": "image/png"},
        {"type": "file", "url": "https://example.org/a.pdf"},
        {"type": "audio", "base64": "QUJD"},
        {"stdout": "a.txt"},
    ]
    client, _ = read([started(), *asking(), *result(content), *saying()])
    assert client.messages["t1"]["content"] == [
        {"type": "text", "text": "Look:"},
        {"type": "image", "source": {"type": "data", "value": "QUJD", "mimeType": "image/png"}},
        {"type": "document", "source": {"type": "url", "value": "https://example.org/a.pdf"}},
        {"type": "audio", "source": {"type": "data", "value": "QUJD", "mimeType": "application/octet-stream"}},
        {"type": "text", "text": '{"stdout":"a.txt"}'},
    ]


def test_halves_of_characters_break_nothing() -> None:
    """Lone surrogates, which have no UTF-8, are sent as U+FFFD."""
    events = [started(), *asking(text="a\ud800"), *result("b\udc00"), *saying("c\ud83d")]
    client, _ = read(events)
    assert (client.messages["m1"]["content"], client.messages["t1"]["content"]) == ("a�", "b�")
    broken = AIMessage("", id="m9", invalid_tool_calls=[{"name": "l\ud800", "args": '{"\ud800', "id": "c9", "error": "no"}])
    client, _ = read([started(), MessageDone(message=broken, **OUTER), *saying()])
    assert client.messages["m9"]["calls"] == {"c9": ["l�", '{"�']}


def test_arguments_that_cannot_be() -> None:
    """The ids are texts, and an encoder takes events."""
    with pytest.raises(ConfigurationError, match="thread_id"):
        ag_ui([], thread_id=1)  # type: ignore[call-overload]
    with pytest.raises(ConfigurationError, match="heartbeat"):
        ag_ui([], thread_id="thread", heartbeat=0)


def test_without_the_extra_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package itself works without `ag-ui-protocol`; the encoder names the extra."""
    monkeypatch.delitem(sys.modules, "langchain_autotools.encoders.ag_ui_events", raising=False)
    monkeypatch.setitem(sys.modules, "ag_ui.core", None)
    with pytest.raises(ConfigurationError, match="the extra `ag-ui`"):
        ag_ui([], thread_id="thread")


def test_a_message_that_the_run_took_changes_none_of_the_client_s() -> None:
    """A client that has said it has it already: a custom event tells where it was read."""
    client = AgUiClient()
    client.messages["said"] = {"role": "user", "content": "I meant Rome.", "calls": {}, "tag": None}
    said = MessageDone(message=HumanMessage("I meant Rome.", id="said"), **OUTER)
    client.read(ag_ui([started(), *asking(), *result(), said, *saying()], thread_id="thread"))
    assert client.messages["said"]["content"] == "I meant Rome."
    kinds = [event.get("name") or event["type"] for event in client.events]
    assert kinds.index("TOOL_CALL_RESULT") < kinds.index("user_message") < len(kinds) - kinds[::-1].index("TEXT_MESSAGE_START")
    (told,) = [event["value"] for event in of_type(client, "CUSTOM") if event["name"] == "user_message"]
    assert told == {"id": "said", "role": "user", "content": "I meant Rome."}
