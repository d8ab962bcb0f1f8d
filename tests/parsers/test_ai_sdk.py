"""The AI SDK's own client reads what `ai_sdk` writes, and posts what `from_ai_sdk` reads."""

import logging
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langchain_autotools import Decision, PendingCall, ToolCallRecord, events, new_messages
from langchain_autotools.encoders import ai_sdk, from_ai_sdk
from langchain_autotools.encoders.ai_sdk import error_text, safe_json
from langchain_autotools.encoders.streaming import Failure
from langchain_autotools.event_types import (
    CallArgumentsDelta,
    CallDiscarded,
    CallReady,
    CallResult,
    CallsPending,
    CallStarted,
    FileMade,
    MessageDiscarded,
    MessageDone,
    ReasoningDelta,
    RunEnded,
    RunEvent,
    RunStarted,
    SourceFound,
    TextDelta,
    VendorCallDone,
)
from langchain_autotools.messages.calls import calls_of
from langchain_autotools.testing import ScriptedChatModel
from tests.support.random_runs import Told, conversation

from .official import Parsers, pieces_of

pytestmark = pytest.mark.parsers

RUNS = int(os.environ.get("PARSER_RUNS", "10000"))
SLICE = min(RUNS, 500)

RUN = {"run_id": "run"}
CALL = ToolCallRecord("call_1", "send mail-1", '{"to":"Zoë 😀"}', {"to": "Zoë 😀"})
POISONED = ToolCallRecord("call_2", "look", '{"__proto__":1}', {"__proto__": 1})
ASKS: list[RunEvent] = [
    RunStarted(**RUN, name="Model"),
    TextDelta(**RUN, message_id="msg_1", text="Let me ask. 😀"),
    CallStarted(**RUN, message_id="msg_1", call_id="call_1", name=CALL.name, index=0, provisional=True),
    CallStarted(**RUN, message_id="msg_1", call_id="call_0", name="look", index=1, provisional=True),
    CallDiscarded(**RUN, message_id="msg_1", call_id="call_0", reason="it was none"),
    CallReady(**RUN, message_id="msg_1", call=CALL, index=0),
    CallStarted(**RUN, message_id="msg_1", call_id="call_2", name="look", index=1, provisional=False),
    CallReady(**RUN, message_id="msg_1", call=POISONED, index=1),
    MessageDone(**RUN, message=AIMessage("Let me ask. 😀", id="msg_1")),
    CallResult(**RUN, call=POISONED, index=1, message=ToolMessage("seen", tool_call_id="call_2")),
    CallsPending(**RUN, calls=[PendingCall("call_1", CALL.name, {"to": "Zoë 😀"}, "approval", "uuid", "digest")]),
    RunEnded(**RUN, stop_reason="calls_pending", turns=1),
]
DENIED = replace(CALL, args=None, decision=Decision("call_1", "reject", "no", "uuid", "digest"))
GOES_ON: list[RunEvent] = [
    RunStarted(**RUN, name="Model"),
    CallStarted(**RUN, message_id="msg_1", call_id="call_1", name=CALL.name, index=0, provisional=False),
    CallReady(**RUN, message_id="msg_1", call=CALL, index=0),
    CallResult(**RUN, call=DENIED, index=0, message=ToolMessage("no", tool_call_id="call_1", status="error")),
    TextDelta(**RUN, message_id="msg_2", text="Then not."),
    MessageDone(**RUN, message=AIMessage("Then not.", id="msg_2")),
    RunEnded(**RUN, stop_reason="complete", turns=1),
]


def test_a_page_asks_its_user_and_goes_on_with_the_same_message(parsers: Parsers) -> None:
    """What it posts has the signature; its own tools are not run again; other pages, which were not asked, can read the stream too."""
    draw = random.Random(1)
    parsers.ask("ai_sdk", page="asks", text="Send it.")
    asked = parsers.ask("ai_sdk", page="asks", reply=pieces_of(b"".join(ai_sdk(ASKS)), draw))
    assert (asked["errors"], asked["valid"], asked["message"]["metadata"]["stop_reason"]) == ([], None, "calls_pending")
    assert [call["toolCallId"] for call in asked["calls"]] == ["call_1", "call_2"]

    answer = {"id": "uuid", "approved": False, "reason": "no"}
    body = parsers.ask("ai_sdk", page="asks", decide={"approvals": [answer], "options": {"body": {"edits": {}}}})["body"]
    part = next(part for part in body["messages"][-1]["parts"] if part.get("toolCallId") == "call_1")
    assert (part["state"], part["approval"]) == ("approval-responded", {**answer, "signature": "uuid.digest"})

    went_on = parsers.ask("ai_sdk", page="asks", reply=pieces_of(b"".join(ai_sdk(GOES_ON)), draw))
    assert (went_on["errors"], went_on["calls"], went_on["valid"], went_on["count"]) == ([], [], None, 2)
    parts = went_on["message"]["parts"]
    assert [part["text"] for part in parts if part["type"] == "text"] == ["Let me ask. 😀", "Then not."]
    assert [part["state"] for part in parts if "toolCallId" in part] == ["output-denied", "output-error", "output-available"]

    parsers.ask("ai_sdk", page="other", text="Go on.")
    other = parsers.ask("ai_sdk", page="other", reply=pieces_of(b"".join(ai_sdk(GOES_ON)), draw))
    assert (other["errors"], other["valid"], other["message"]["parts"][0]["state"]) == ([], None, "output-denied")


def test_what_the_client_posts_goes_on_with_the_run(parsers: Parsers) -> None:
    """An approval with edited arguments, a refusal, and the output of a tool of the page's own, each as the client itself posts it."""
    key, sent = "the server's own", []

    def send(to: str) -> str:
        """Send."""
        sent.append(to)
        return "Sent."

    calls = [{"name": "send", "args": {"to": name}, "id": name} for name in ("Anna", "Ben")]
    calls.append({"name": "locate", "args": {}, "id": "locate"})
    replies = [AIMessage("Well.", tool_calls=calls, id="msg_1"), "Done."]
    function = {"name": "locate", "description": "Theirs.", "parameters": {"type": "object", "properties": {}}}
    model = ScriptedChatModel(replies=replies, tools=[send], requires_approval=True, approval_key=key)
    declares = model.bind_tools([{"type": "function", "function": function}])

    def replied(history: list[BaseMessage], resume: Any = None) -> Any:
        told = events(declares.stream(history, resume=resume))
        data = b": heartbeat\n\n" + b"".join(ai_sdk(told))
        history += new_messages(told.message)
        return parsers.ask("ai_sdk", page="posts", reply=pieces_of(data, random.Random(1)))

    posted = from_ai_sdk(parsers.ask("ai_sdk", page="posts", text="Send it.")["body"], [], approval_key=key)
    history = list(posted.messages)
    asked = replied(history)
    approvals = {part["toolCallId"]: part["approval"]["id"] for part in asked["message"]["parts"] if "approval" in part}
    answers = [{"id": approvals["Anna"], "approved": True}, {"id": approvals["Ben"], "approved": False, "reason": "not him"}]
    outputs = [{"tool": "locate", "toolCallId": "locate", "output": {"at": "home"}}]
    options = {"body": {"edits": {"Anna": {"to": "Zoë"}}}}
    body = parsers.ask("ai_sdk", page="posts", decide={"approvals": answers, "outputs": outputs, "options": options})["body"]
    posted = from_ai_sdk(body, history, approval_key=key)
    assert (posted.messages, [one.action for one in posted.decisions]) == ([], ["edit", "reject", "respond"])
    went_on = replied(history, posted.decisions)
    assert (sent, went_on["calls"], went_on["errors"], went_on["valid"]) == (["Zoë"], [], [], None)
    states = {part["toolCallId"]: part["state"] for part in went_on["message"]["parts"] if "toolCallId" in part}
    assert states == {"Anna": "output-available", "Ben": "output-denied", "locate": "output-available"}
    assert went_on["message"]["parts"][-1]["text"] == "Done."


DIED: list[RunEvent] = [
    RunStarted(**RUN, name="Model"),
    ReasoningDelta(**RUN, message_id="msg_1", text="Dead thoughts."),
    TextDelta(**RUN, message_id="msg_1", text="Dead text."),
    CallStarted(**RUN, message_id="msg_1", call_id="dead", name="look", index=0, provisional=True),
    CallArgumentsDelta(**RUN, message_id="msg_1", call_id="dead", text='{"at":'),
    CallDiscarded(**RUN, message_id="msg_1", call_id="dead", reason="the process that ran this has ended"),
    MessageDiscarded(**RUN, message_id="msg_1", attempt=1),
]


@pytest.mark.parametrize("whole_turns", [True, False])
def test_a_page_shows_nothing_of_an_attempt_that_died(whole_turns: bool, parsers: Parsers) -> None:
    """With `whole_turns` neither its text nor its reasoning nor its call are in the message; without it they are, for good."""
    parsers.ask("ai_sdk", page=f"died {whole_turns}", text="Go.")
    data = b"".join(ai_sdk([*DIED, *ASKS[1:]], whole_turns=whole_turns))
    answer = parsers.ask("ai_sdk", page=f"died {whole_turns}", reply=pieces_of(data, random.Random(1)))
    parts = answer["message"]["parts"]
    assert (answer["errors"], answer["valid"]) == ([], None)
    assert ("Dead" in str(parts), "dead" in str(parts)) == (not whole_turns, not whole_turns)
    calls = [part["toolCallId"] for part in parts if "toolCallId" in part]
    assert calls == (["call_1", "call_2"] if whole_turns else ["dead", "call_1", "call_0", "call_2"])
    assert "".join(part["text"] for part in parts if part["type"] == "text").endswith("Let me ask. 😀")


# ---------------------------------------------------------------------------------------------- random runs


def replayed(told: Told) -> Iterator[RunEvent]:
    """The events of a run once more, and what they raised."""
    yield from told.events
    if told.error is not None:
        raise told.error


def actions_of(decisions: Sequence[Decision]) -> dict[str, Any]:
    """What a page does that decides so. It cannot answer a call that waits for approval by itself; that is done elsewhere then."""
    answers = [one for one in decisions if one.uuid and one.action != "respond"]
    reasons = [{"reason": one.value} if one.action == "reject" and one.value else {} for one in answers]
    approvals = [{"id": one.uuid, "approved": one.action != "reject", **why} for one, why in zip(answers, reasons, strict=True)]
    outputs = [{"toolCallId": one.id, "tool": "any", "output": one.value} for one in decisions if one.action == "respond" and not one.uuid]
    return {"approvals": approvals, "outputs": outputs}


def calls_in(messages: Sequence[BaseMessage]) -> dict[str, tuple[str, Any]]:
    """The names and the arguments of all calls, by id."""
    calls = [call for message in messages if isinstance(message, AIMessage) for call in calls_of(message)]
    return {call.id: (f"tool-{call.name}", safe_json(call.arguments if call.args is None else call.args)) for call in calls}


def compare(message: Any, conversation: Sequence[Told], whole_turns: bool) -> None:
    """The text, the calls and the results of a UI message are those of the messages of its runs."""
    told = [event for one in conversation for event in one.own]
    text = "".join(part["text"] for part in message["parts"] if part["type"] == "text")
    done = {event.message_id for event in told if isinstance(event, MessageDone)}
    assert text == "".join(event.text for event in told if isinstance(event, TextDelta) and (not whole_turns or event.message_id in done))
    own = [part for part in message["parts"] if "toolCallId" in part and "toolMetadata" not in part and not part.get("providerExecuted")]
    parts = {part["toolCallId"]: part for part in own}
    assert len(parts) == len(own)
    check_vendor_parts(message["parts"], told)
    messages = [message for one in conversation for message in one.messages]
    expected = calls_in(messages)
    old = calls_in(conversation[0].run.history)
    if all(any(isinstance(event, RunEnded) and event.stop_reason != "cancelled" for event in one.own) for one in conversation):
        assert text == "".join(one.text for one in messages if isinstance(one, AIMessage))
        assert parts.keys() - old.keys() == expected.keys()
    for call_id, part in parts.items():
        if call_id in expected | old:
            assert (part["type"], part.get("input")) == (expected | old)[call_id]
    for event in told:
        if isinstance(event, CallResult):
            check_result(parts[event.call_id], event)


def check_vendor_parts(parts: Sequence[Any], told: Sequence[RunEvent]) -> None:
    """The calls of the vendor's own, the sources and the files of a UI message are those that were told of."""
    ends = {event.call_id: event for event in told if isinstance(event, VendorCallDone)}
    calls = [part for part in parts if part.get("providerExecuted")]
    assert len({part["toolCallId"] for part in calls}) == len(calls)
    for part in calls:
        end = ends[part["toolCallId"]]
        assert part["type"] == f"tool-{end.name}" and part["input"] == (end.args or {})
        assert part["state"] == ("output-error" if end.failed else "output-available") and (end.failed or part["output"] == end.output)
    files = [part["url"] for part in parts if part["type"] == "file"]
    assert files == [f"data:image/png;base64,{event.data}" for event in told if isinstance(event, FileMade)][: len(files)]
    sources = {event.url or event.document for event in told if isinstance(event, SourceFound)}
    assert {part.get("url") or part["title"] for part in parts if part["type"].startswith("source-")} <= sources


def check_result(part: Any, event: CallResult) -> None:
    """A part shows a result as the history has it."""
    if event.call.decision is not None and event.call.decision.action == "reject":
        assert part["state"] == "output-denied" and part["approval"]["approved"] is False
    elif event.message.status == "error":
        assert (part["state"], part["errorText"]) == ("output-error", error_text(event.message.content))
    else:
        assert (part["state"], part["output"], part.get("preliminary")) == ("output-available", safe_json(event.message.content), None)


@pytest.mark.parametrize("first", range(0, RUNS, SLICE))
def test_the_client_reads_random_runs(first: int, parsers: Parsers) -> None:
    """Failures, limits, approvals, cancellation, runs inside tools, cut anywhere: no complaint, and what it arrives at is the messages."""
    logging.getLogger("langchain_autotools").setLevel(logging.CRITICAL)
    for seed in range(first, first + SLICE):
        try:
            read_conversation(seed, parsers)
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise


def test_the_client_reads_random_runs_in_whole_turns(parsers: Parsers) -> None:
    """It arrives at the same messages, without the text of turns that no history has."""
    logging.getLogger("langchain_autotools").setLevel(logging.CRITICAL)
    for seed in range(min(RUNS, 200)):
        read_conversation(seed, parsers, whole_turns=True)


def read_conversation(seed: int, parsers: Parsers, whole_turns: bool = False) -> None:
    """Have a page read a run and those that go on with it."""
    draw, runs = random.Random(seed), list[Told]()
    for told in conversation(seed):
        runs.append(told)
        decisions = told.run.decisions
        parsers.ask("ai_sdk", page=seed, **({"text": "Go."} if decisions is None else {"decide": actions_of(decisions)}))
        answer = parsers.ask("ai_sdk", page=seed, reply=pieces_of(b"".join(ai_sdk(replayed(told), whole_turns=whole_turns)), draw))
        failed = told.error and f"{type(told.error).__name__}: {Failure.of(told.error, False).text}"
        assert [error["message"] for error in answer["errors"]] == ([failed] if failed else [])
        assert answer["valid"] is None
        if answer["count"] == 1:  # it failed before there was anything to show
            assert failed and not told.messages
        else:
            compare(answer["message"], runs, whole_turns)
    parsers.ask("ai_sdk", page=seed)
