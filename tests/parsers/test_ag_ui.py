"""The official client of AG-UI reads what `ag_ui` writes, and what it posts is what `from_ag_ui` reads."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from langchain_autotools import pending_calls
from langchain_autotools.encoders import ag_ui, from_ag_ui
from langchain_autotools.encoders.posted import signature_of
from langchain_autotools.event_types import CallResult, CallsPending, MessageDone, MessagesAdded, RunEnded, RunFailed, RunStarted
from langchain_autotools.messages.calls import calls_of
from langchain_autotools.messages.metadata import text_of
from tests.support.random_runs import Told, conversation

from .official import Parsers, pieces_of

pytestmark = pytest.mark.parsers

RUNS, BLOCK = 10_000, 500
BREAKS_OFF = ("cancelled", "deadline")
_ROLES = {"human": "user", "ai": "assistant"}


def page_of(history: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """The messages of a page that has this history."""
    return [
        {"id": message.id or f"old{place}", "role": _ROLES[message.type], "content": text_of(message), **_calls(message)}
        for place, message in enumerate(history)
    ]


def _calls(message: BaseMessage) -> dict[str, Any]:
    calls = calls_of(message) if isinstance(message, AIMessage) else []
    return {"toolCalls": [shown(call.id, call.name, call.arguments) for call in calls]} if calls else {}


def shown(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """A call as the client has it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def expected(told: Told) -> Iterator[tuple[str, Any]]:
    """What a client must arrive at: by id, the text and the calls of a message, or the content of a result."""
    runs: dict[str, bool] = {}
    for event in told.events:
        if isinstance(event, RunStarted):
            runs[event.run_id] = event.parent_run_id in runs
        if isinstance(event, MessagesAdded):  # a question comes before the run that answers it
            continue
        before = f"{event.run_id}:" if runs[event.run_id] else ""
        if isinstance(event, MessageDone) and isinstance(event.message, AIMessage):
            calls = [shown(before + call.id, call.name, call.arguments) for call in calls_of(event.message)]
            yield before + event.message_id, (text_of(event.message), calls)
        elif isinstance(event, CallResult):
            yield before + str(event.message.id), (before + event.call_id, text_of(event.message))


def arrived(message: dict[str, Any]) -> Any:
    """The same of what the client has."""
    if message["role"] == "tool":
        content = message["content"]
        text = content if isinstance(content, str) else "".join(part["text"] for part in content if part["type"] == "text")
        return message["toolCallId"], text
    return message.get("content") or "", message.get("toolCalls", [])


def check(told: Told, reply: dict[str, Any], known: set[str]) -> None:
    """The client has no complaint, and the messages, the calls that wait and the end are those of the run."""
    assert reply["complaints"] == []
    has = {message["id"]: arrived(message) for message in reply["messages"] if message["role"] in ("assistant", "tool")}
    wanted = dict(expected(told))
    assert {one: has.get(one) for one in wanted} == wanted
    broken = any(isinstance(event, RunFailed) or getattr(event, "stop_reason", None) in BREAKS_OFF for event in told.events)
    assert broken or set(has) <= {*wanted, *known}, "a client has more only of a turn that broke off"
    assert (reply["failed"] is None) is (told.error is None)
    pending = [call for event in told.own if isinstance(event, CallsPending) for call in event.calls]
    approvals = [call for call in pending if call.kind == "approval"]
    if told.error is not None:
        return
    outcome = reply["finished"]["outcome"]["type"]
    cancelled = isinstance(told.own[-1], RunEnded) and told.own[-1].stop_reason == "cancelled"
    assert outcome == ("cancelled" if cancelled else "interrupt" if approvals else "success")
    assert [one["id"] for one in reply["interrupts"]] == ([] if cancelled else [signature_of(call) for call in approvals])
    if outcome == "success" and pending:
        assert reply["pending"] == [call.id for call in pending if call.kind != "queued"]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(0, RUNS, BLOCK))
def test_the_client_reads_random_runs(parsers: Parsers, first: int) -> None:
    """Failing, limited, approved, cancelled, nested, and cut into random pieces: it arrives at the run's own messages."""
    for seed in range(first, first + BLOCK):
        known: set[str] = set()
        draw = random.Random(f"pieces/{seed}")
        for told in conversation(seed):
            data = b"".join(ag_ui(_raising(told), thread_id="thread", run_id="run"))
            first_time = {} if known else {"messages": page_of(told.run.history[:-1])}
            said = {"text": "How warm is it?", "id": f"u{seed}"} if not known else {}
            parsers.ask("ag_ui", page=str(seed), post=said, **first_time)
            reply = parsers.ask("ag_ui", page=str(seed), reply=pieces_of(data, draw))
            try:
                check(told, reply, known | {message.id or "" for message in told.run.history})
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, a run in the way of {told.run.way}") from error
            known |= {message["id"] for message in reply["messages"]}
        parsers.ask("ag_ui", page=str(seed), close=True)


def _raising(told: Told) -> Iterator[Any]:
    yield from told.events
    if told.error is not None:
        raise told.error


def test_what_the_client_posts_is_what_is_read(parsers: Parsers) -> None:
    """It answers the interrupts of real runs, and runs tools of its own: the decisions are about exactly these calls."""
    seen = 0
    for seed in range(300):
        told = next(conversation(seed))
        history = [*told.run.history, *told.messages]
        pending = [call for call in pending_calls(history) if call.kind != "queued" and call.digest]
        if told.error is not None or not pending:
            continue
        page = f"posts {seed}"
        parsers.ask("ag_ui", page=page, messages=page_of(told.run.history[:-1]), post={"text": "How warm is it?", "id": "u"})
        parsers.ask("ag_ui", page=page, reply=pieces_of(b"".join(ag_ui(told.events, thread_id="thread")), random.Random(seed)))
        answers = {call.id: {"status": "resolved", "payload": {"approved": True}} for call in pending if call.kind == "approval"}
        results = [{"id": f"t{call.id}", "toolCallId": call.id, "content": "done"} for call in pending if call.kind != "approval"]
        body = parsers.ask("ag_ui", page=page, post={"answers": answers, "results": results})["body"]
        posted = from_ag_ui(body, history)
        assert posted.messages == []
        assert {one.id: one.value for one in posted.decisions} == {call.id: "done" for call in pending if call.kind != "approval"}
        parsers.ask("ag_ui", page=page, reply=pieces_of(b"".join(ag_ui([], thread_id="thread")), random.Random(seed)))
        seen += 1
    assert seen > 10
