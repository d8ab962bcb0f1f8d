"""What readers are told of a run that several executions have told of, on random runs."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import AIMessage

from langchain_autotools.durable.journal import append_joined, event_of, row_of
from langchain_autotools.durable.run_reader import Story
from langchain_autotools.durable.stored import message_of, plain_messages
from langchain_autotools.event_types import (
    CallArgumentsDelta,
    CallDiscarded,
    CallReady,
    CallResult,
    CallStarted,
    MessageDiscarded,
    MessageDone,
    ReasoningDelta,
    RunEvent,
    RunFailed,
    TextDelta,
)
from tests.laws.told import check_messages, check_runs, of
from tests.laws.ways import law
from tests.support.random_runs import random_run, told_of

PIECES = (TextDelta, ReasoningDelta, CallArgumentsDelta, CallStarted)
SEEDS = st.integers(0, 2**32)


def run_told(seed: int) -> list[RunEvent]:
    """The events of a random run of a model, read to its end."""
    run = replace(random_run(seed, "stream"), cancel_after=None)
    return told_of(run).events


def rows_of(events: Sequence[RunEvent], execution: int, draw: random.Random) -> Iterator[dict[str, Any]]:
    """Rows as an execution writes them: some events at a time."""
    place = 0
    while place < len(events):
        batch: list[RunEvent] = []
        for event in events[place : (place := place + draw.randint(1, 8))]:
            append_joined(batch, event)
        yield {"execution": str(execution), "events": json.loads(json.dumps([row_of(event) for event in batch]))}


def recorded_by(told: Sequence[RunEvent], whole: Sequence[RunEvent], draw: random.Random) -> set[str]:
    """The messages whose turns are recorded: those of which the end was told, and perhaps the one that was being written."""
    recorded = {event.message_id for event in told if isinstance(event, CallReady | MessageDone)}
    writing = [event.message_id for event in told if isinstance(event, PIECES) and event.parent_run_id is None]
    done = {event.message_id for event in of(MessageDone, whole)}
    return recorded | ({writing[-1]} & done if writing and draw.random() < 0.5 else set())


def emitted_again(whole: Sequence[RunEvent], execution: int, recorded: set[str], answered: set[str]) -> list[RunEvent]:
    """What another execution tells: new ids for its runs, nothing of the inside of calls that were answered, recorded replies whole."""
    made: list[RunEvent] = []
    inside: set[str] = set()
    for event in whole:
        if event.parent_run_id in inside or (event.parent_run_id == whole[0].run_id and event.parent_call_id in answered):
            inside.add(event.run_id)
    for event in whole:
        if event.run_id not in inside and not (getattr(event, "message_id", None) in recorded and isinstance(event, CallArgumentsDelta)):
            around = None if event.parent_run_id is None else f"{event.parent_run_id} of {execution}"
            append_joined(made, replace(event, run_id=f"{event.run_id} of {execution}", parent_run_id=around))
    return made


def renamed(whole: Sequence[RunEvent], execution: int, recorded: set[str]) -> list[RunEvent]:
    """The run as it goes on: messages that were not recorded are other messages now."""
    made = []
    for event in whole:
        given = getattr(event, "message_id", None)
        is_result = isinstance(event, MessageDone) and not isinstance(event.message, AIMessage)
        if given is None or given in recorded or event.parent_run_id is not None or is_result:
            made.append(event)
        elif isinstance(event, MessageDone):
            made.append(replace(event, message=event.message.model_copy(update={"id": f"{given} {execution}"})))
        else:
            made.append(replace(event, message_id=f"{given} {execution}"))
    return made


@law(40, 2000)
def test_several_executions_are_told_of_as_one_run(data: st.DataObject) -> None:
    """However often its process died: every start has its end, messages come once and say what their pieces say, positions count."""
    draw = random.Random(data.draw(SEEDS))
    whole = run_told(data.draw(SEEDS))
    if not whole or isinstance(whole[-1], RunFailed) or any(event.parent_run_id is None for event in of(CallDiscarded, whole)):
        return  # of a reply that broke off the same call may begin again
    rows: list[dict[str, Any]] = []
    recorded: set[str] = set()
    answered: set[str] = set()
    lives = draw.randint(0, 3)
    for execution in range(lives):
        telling = emitted_again(whole, execution, recorded, answered)
        told = telling[: draw.randint(0, len(telling))]
        rows += rows_of(told, execution, draw)
        recorded |= recorded_by(told, whole, draw)
        answered |= {event.call_id for event in of(CallResult, told) if event.parent_run_id is None}
        whole = renamed(whole, execution, recorded)
    rows += rows_of(emitted_again(whole, lives, recorded, answered), lives, draw)
    story = Story("the run")
    seen = [event for row in rows for event in story.events_of(row)] + list(story.end())
    check_runs(with_beginnings(seen))
    assert [event.position for event in seen] == [str(number) for number in range(len(seen))]
    own = [event for event in seen if event.run_id == "the run"]
    check_messages(not_void(own))
    done = [event.message for event in of(MessageDone, whole) if event.parent_run_id is None]
    assert [event.message for event in of(MessageDone, own)] == [message_of(plain_messages([message])[0]) for message in done]


def with_beginnings(told: Sequence[RunEvent]) -> list[RunEvent]:
    """The events; calls that were known whole, and whose process died before it said so, as calls that were being written."""
    ready = {(event.run_id, event.call_id) for event in of(CallReady, told)}
    begun = {place for place, event in enumerate(told) if isinstance(event, CallStarted) and (event.run_id, event.call_id) not in ready}
    return [replace(event, provisional=True) if place in begun else event for place, event in enumerate(told)]  # type: ignore[call-arg]


def not_void(told: Sequence[RunEvent]) -> list[RunEvent]:
    """The events without the pieces of messages that were said to be void after them."""
    kept: list[RunEvent] = []
    for event in told:
        if isinstance(event, MessageDiscarded):
            void = event.message_id
            kept = [one for one in kept if not (isinstance(one, TextDelta | ReasoningDelta) and one.message_id == void)]
        else:
            kept.append(event)
    return kept


@law(40, 2000)
def test_events_come_back_from_the_database_as_they_were(data: st.DataObject) -> None:
    """But for exceptions, of which the class and the text are kept, and for objects that JSON has no form for."""
    for event in run_told(data.draw(SEEDS)):
        back = event_of(json.loads(json.dumps(row_of(event))))
        assert type(back) is type(event) and (back.run_id, back.parent_run_id) == (event.run_id, event.parent_run_id)
        if isinstance(event, RunFailed):
            assert str(event.error) in str(back.error)  # type: ignore[attr-defined]
        elif not (isinstance(event, MessageDone | CallResult) and not isinstance(event.message, AIMessage)):
            assert back == event or hasattr(event, "value")
