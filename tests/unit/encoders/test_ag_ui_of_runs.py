"""What a strict client of AG-UI makes of random runs: it arrives at their messages, and at the calls that wait."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from langchain_autotools import pending_calls
from langchain_autotools.encoders import ag_ui
from langchain_autotools.encoders.posted import signature_of
from langchain_autotools.event_types import CallResult, CallsPending, MessageDone, RunEvent, RunFailed
from langchain_autotools.messages.calls import calls_of
from langchain_autotools.messages.metadata import text_of
from tests.support.ag_ui_client import AgUiClient
from tests.support.random_runs import Told, conversation

SEEDS = 12


def raising(told: Told) -> Iterator[RunEvent]:
    """The events, and then what they raised."""
    yield from told.events
    if told.error is not None:
        raise told.error


def check(told: Told, client: AgUiClient, last: dict[str, Any]) -> None:
    """The client has all messages of the run, its results, and what waits."""
    inside = {event.run_id for event in told.events if event.parent_run_id is not None}
    for event in told.events:
        before = f"{event.run_id}:" if event.run_id in inside else ""
        if isinstance(event, MessageDone) and isinstance(event.message, AIMessage):
            message = client.messages[before + event.message_id]
            assert message["content"] == text_of(event.message)
            assert message["calls"] == {before + call.id: [call.name, call.arguments] for call in calls_of(event.message)}
        elif isinstance(event, CallResult):
            message = client.messages[before + str(event.message.id)]
            assert (message["toolCallId"], message["status"]) == (before + event.call_id, event.message.status)
    assert last["type"] == ("RUN_FINISHED" if told.error is None else "RUN_ERROR")
    pending = [call for event in told.own if isinstance(event, CallsPending) for call in event.calls]
    approvals = [signature_of(call) for call in pending if call.kind == "approval"]
    outcome = last.get("outcome", {"type": "none"})
    assert [one["id"] for one in outcome.get("interrupts", [])] == ([] if outcome["type"] in ("none", "cancelled") else approvals)
    if not any(isinstance(event, RunFailed) for event in told.events):
        messages = [event.message_id for event in told.own if isinstance(event, MessageDone) and isinstance(event.message, AIMessage)]
        has = [one for one, _ in client.own("assistant")]
        assert has[len(has) - len(messages) :] == messages


def check_again(told: Told, client: AgUiClient) -> None:
    """A page that is loaded again, and given the history, has of it what the one that was there has."""
    again = AgUiClient()
    last = again.read(ag_ui([], thread_id="thread", history=[*told.run.history, *told.messages]))
    known = {event.message_id for event in told.own if isinstance(event, MessageDone)}
    assert {one: again.messages[one] for one in known} == {one: client.messages[one] for one in known}
    assert len(last["outcome"].get("interrupts", [])) == sum(call.kind == "approval" for call in pending_calls(told.messages))


def check_seeds(seeds: range) -> None:
    """The runs of these seeds, and those that go on with their pending calls: one client reads them."""
    for seed in seeds:
        client = AgUiClient()
        for told in conversation(seed):
            try:
                check(told, client, client.read(ag_ui(raising(told), thread_id="thread")))
                check_again(told, client)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, a run in the way of {told.run.way}") from error


def test_a_client_arrives_at_the_run_s_messages() -> None:
    """Failing, limited, approved, cancelled, nested, and the runs that go on with what waited."""
    check_seeds(range(SEEDS))


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_a_client_arrives_at_the_messages_of_many_runs() -> None:
    """The same, of thousands."""
    check_seeds(range(SEEDS, 3000))
