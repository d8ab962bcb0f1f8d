"""`whole_turns=True`: nothing of a reply that is void is sent in a protocol that takes nothing back."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, ToolMessage

from langchain_autotools import ToolCallRecord
from langchain_autotools.encoders import ag_ui, ai_sdk
from langchain_autotools.event_types import (
    CallArgumentsDelta,
    CallDiscarded,
    CallReady,
    CallResult,
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
INNER = {"run_id": "inner", "parent_run_id": "run", "parent_call_id": "call_1"}
STARTED = RunStarted(**RUN, name="Model")
ENDED = RunEnded(**RUN, stop_reason="complete", turns=1)
PIECES = ["text", "reasoning", "call"]

protocol = pytest.mark.parametrize(
    "encode",
    [
        pytest.param(ai_sdk, id="ai_sdk"),
        pytest.param(
            lambda events, **keywords: ag_ui(events, thread_id="thread", **keywords),
            id="ag_ui",
            marks=pytest.mark.skipif(find_spec("ag_ui") is None, reason="needs the extra `ag-ui`"),
        ),
    ],
)


def written(about: dict[str, Any], message_id: str, pieces: list[str]) -> list[RunEvent]:
    """What is told while a message is written."""
    told: list[RunEvent] = []
    for number, kind in enumerate(pieces):
        of, call_id = {**about, "message_id": message_id}, f"{message_id}-{number}"
        if kind == "text":
            told.append(TextDelta(**of, text=f"text {number} "))
        elif kind == "reasoning":
            told.append(ReasoningDelta(**of, text=f"reasoning {number}"))
        else:
            told.append(CallStarted(**of, call_id=call_id, name="look", index=0, provisional=True))
            told.append(CallArgumentsDelta(**of, call_id=call_id, text='{"at": '))
    return told


def void(about: dict[str, Any], message_id: str, pieces: list[str]) -> list[RunEvent]:
    """An attempt whose process died, as it is told where another process goes on."""
    told = written(about, message_id, pieces)
    begun = [event for event in told if isinstance(event, CallStarted)]
    died = [CallDiscarded(**about, message_id=message_id, call_id=call.call_id, reason="it died") for call in begun]
    return [*told, *died, MessageDiscarded(**about, message_id=message_id, attempt=1)]


def whole(about: dict[str, Any], message_id: str, pieces: list[str]) -> list[RunEvent]:
    """A turn that is complete, with the results of its calls."""
    told = written(about, message_id, pieces)
    calls = [ToolCallRecord(event.call_id, "look", '{"at": 1}', {"at": 1}) for event in told if isinstance(event, CallStarted)]
    ready = [CallReady(**about, message_id=message_id, call=call, index=index) for index, call in enumerate(calls)]
    results = [ToolMessage("seen", tool_call_id=call.id, id=f"result of {call.id}") for call in calls]
    done: list[RunEvent] = [MessageDone(**about, message=AIMessage("", id=message_id))]
    for index, (call, result) in enumerate(zip(calls, results, strict=True)):
        done += [CallResult(**about, call=call, index=index, message=result), MessageDone(**about, message=result)]
    usage = TurnUsage(**about, message_id=message_id, turn=1, usage={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2})
    return [*told, *ready, *done, usage]


@protocol
@given(
    turns=st.lists(
        st.tuples(st.lists(st.lists(st.sampled_from(PIECES)), max_size=2), st.lists(st.sampled_from(PIECES)), st.booleans()), max_size=3
    )
)
def test_the_bytes_are_those_of_a_run_in_which_nothing_died(encode: Callable[..., Any], turns: list[Any]) -> None:
    """Void attempts, under the id of the message or another one, leave nothing behind, and change nothing of what is complete."""
    had, clean = [STARTED], [STARTED]
    for number, (attempts, pieces, same) in enumerate(turns):
        for attempt, dead in enumerate(attempts):
            had += void(RUN, f"m{number}" if same else f"m{number}-dead{attempt}", dead)
        had += whole(RUN, f"m{number}", pieces)
        clean += whole(RUN, f"m{number}", pieces)
    assert b"".join(encode([*had, ENDED], whole_turns=True)) == b"".join(encode([*clean, ENDED]))


@protocol
def test_without_it_text_leaves_at_once(encode: Callable[..., Any]) -> None:
    """It is off by default."""
    stream = encode([STARTED, *written(RUN, "m", ["text"])])
    assert any(b"text 0 " in data for data in (next(stream), next(stream)))


@protocol
@pytest.mark.parametrize("end", [RunEnded(**RUN, stop_reason="cancelled", turns=1), RunFailed(**RUN, error=ValueError("x"))])
def test_a_turn_that_its_run_ends_without_is_not_sent(encode: Callable[..., Any], end: RunEvent) -> None:
    """The history does not have it either; the turns before it are there."""
    data = b"".join(encode([STARTED, *whole(RUN, "m1", ["text", "call"]), *written(RUN, "m2", ["text", "text"]), end], whole_turns=True))
    assert b"text 0 " in data and b"text 1 " not in data


def test_a_call_that_turns_out_to_be_none_is_not_sent() -> None:
    """The text before it is, when the message is complete."""
    gone = CallDiscarded(**RUN, message_id="m", call_id="m-1", reason="the reply broke off")
    data = b"".join(ai_sdk([STARTED, *written(RUN, "m", ["text", "call"]), gone, *whole(RUN, "m", [])], whole_turns=True))
    assert b"text-delta" in data and b"m-1" not in data


def test_runs_inside_tools_are_held_back_each_for_itself() -> None:
    """What a tool's own model writes is held until its own message is complete, and holds nothing else back."""
    inner = [RunStarted(**INNER, name="Inner"), *written(INNER, "i1", ["text"])]
    died = [RunEnded(**INNER, stop_reason="cancelled", turns=0), MessageDiscarded(**RUN, message_id="m2", attempt=1)]
    again = [RunStarted(**{**INNER, "run_id": "again"}, name="Inner"), *whole({**INNER, "run_id": "again"}, "i2", ["text"])]
    events = [STARTED, *whole(RUN, "m1", ["text"]), *inner, *died, *again, *whole(RUN, "m2", ["text"]), ENDED]
    frames = b"".join(ai_sdk(events, whole_turns=True)).decode().split("\n\n")[:-2]
    chunks = [json.loads(frame.removeprefix("data: ")) for frame in frames]
    assert [chunk["data"]["messageId"] for chunk in chunks if chunk["type"] == "data-run-text"] == ["i2"]
    assert [chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta"] == ["text 0 ", "text 0 "]


async def test_the_connection_is_kept_open_while_a_turn_is_held_back() -> None:
    """Events that come and are not sent yet are no reason to leave out heartbeats."""
    kept_open = asyncio.Event()

    async def events() -> AsyncIterator[RunEvent]:
        yield STARTED
        for _ in range(200_000):
            if kept_open.is_set():
                break
            yield TextDelta(**RUN, message_id="m", text="and ")
            await asyncio.sleep(0)
        yield ENDED

    async for data in ai_sdk(events(), whole_turns=True, heartbeat=0.05):
        if data == b": heartbeat\n\n":
            kept_open.set()
    assert kept_open.is_set()
