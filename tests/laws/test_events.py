"""What events are, on random runs: every start has its end, they say what the messages say, and nobody notices who listens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from langchain_autotools import ConfigurationError, RetryPolicy, aevents, events, new_messages
from langchain_autotools.event_types import CallDiscarded, CallReady, CallStarted, RunFailed
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.talk import whole
from tests.contract.wires import WIRES, Wire
from tests.laws.checks import data_of, differences
from tests.laws.stories import Script, stories
from tests.laws.told import by_run, check_end, check_messages, check_runs, of
from tests.laws.ways import QUESTION, chat, law, serving, waited
from tests.laws.workshop import Workshop
from tests.support.random_runs import Told, conversation, random_run, summed, told_of
from tests.support.script import Call, Cut, Turn

SEEDS = st.integers(0, 2**32)
SCRIPTED = ScriptedChatModel()
"""A model whose whole messages have the form in which law 2 compares the contents of random runs."""
ASIDE = frozenset({"id", "generation_id", "index", "output_version", "uuid", "digest"})
"""What is made anew for each run, and what is derived from that."""


def conversation_of(data: st.DataObject) -> list[Told]:
    """A random run, and those that go on with its pending calls."""
    return list(conversation(data.draw(SEEDS)))


@law(6, 3000)
def test_every_start_has_its_end(data: st.DataObject) -> None:
    """Runs and calls begin once and end once: at answers, limits, errors, cut replies, when they wait and when they are cancelled."""
    for told in conversation_of(data):
        assert told.events or isinstance(told.error, ConfigurationError)  # of decisions that do not hold: no run has begun
        check_runs(told.events)


@law(6, 3000)
def test_events_say_what_the_messages_say(data: st.DataObject) -> None:
    """Pieces of text are the text of the stored message, under its id from the first on; so calls, results, usage and pending calls."""
    for told in conversation_of(data):
        for run in by_run(told.events).values():
            check_messages(run)
        if told.message is not None:
            check_end(told.own, told.message, told.run.history)


@law(5, 1000)
def test_a_run_that_fails_tells_of_it_last(data: st.DataObject) -> None:
    """The event has the exception that is raised; what the exception brings has been told of."""
    told = told_of(random_run(data.draw(SEEDS)))
    failed = of(RunFailed, told.own)
    assert bool(failed) == (told.error is not None)
    if failed:
        assert told.own[-1] is failed[0] is told.events[-1]
        assert failed[0].error is told.error
        brought = new_messages(told.error)
        assert not brought or [one.id for one in told.messages[-len(brought) :]] == [one.id for one in brought]


@law(4, 500)
def test_a_listener_changes_nothing(data: st.DataObject) -> None:
    """The same run without anybody who listens: the same messages, the same sum of chunks, the same requests."""
    run = random_run(data.draw(SEEDS))
    heard, unheard = told_of(run), told_of(run, heard=False)
    if not repeatable(heard):
        return
    assert type(heard.error) is type(unheard.error)
    assert [data_of_all(request.messages) for request in heard.requests] == [data_of_all(request.messages) for request in unheard.requests]
    if heard.message is not None and unheard.message is not None:
        pair = [data_of(whole(SCRIPTED, told.message), aside=ASIDE) for told in (heard, unheard) if told.message is not None]
        assert differences(*pair) == []
        assert differences(data_of_all(new_messages(heard.message)), data_of_all(new_messages(unheard.message))) == []


def repeatable(told: Told) -> bool:
    """Whether a second run of the same seed must say the same: nothing of it depended on time."""
    settings = told.run.model.settings
    stopped = any(one.call.name == "stop" for one in of(CallReady, told.events))
    return not stopped and told.run.cancel_after is None and "deadline" not in settings


def data_of_all(messages: Any) -> list[Any]:
    """Messages as data, without what two runs may differ in."""
    return [data_of(message, aside=ASIDE) for message in messages]


@law(4, 500)
def test_a_listener_changes_no_result_of_an_agent(data: st.DataObject) -> None:
    """What the agent's own stream came to is the same, whoever read it."""
    run = random_run(data.draw(SEEDS), data.draw(st.sampled_from(["agent", "aagent"])))
    heard, unheard = told_of(run), told_of(run, heard=False)
    if repeatable(heard) and heard.result is not None and unheard.result is not None:
        assert heard.message is not None
        one, *others = [data_of(whole(SCRIPTED, message), aside=ASIDE) for message in (heard.result, unheard.result, heard.message)]
        assert [differences(one, other) for other in others] == [[], []]


@law(4, 300)
def test_a_listener_changes_no_byte_of_a_request(data: st.DataObject) -> None:
    """Over real HTTP, whatever the wire style: the same requests, byte for byte, and events that say what the messages say."""
    story = data.draw(stories())
    way = data.draw(st.sampled_from(["stream", "astream"]))
    fields = {"output_version": data.draw(st.sampled_from([None, "v1"])), "tools": Workshop().tools()}
    with serving(Script(story)) as server:
        for _ in chat(server, **fields).stream([QUESTION]):
            pass
        bodies = [exchange.body for exchange in server.exchanges]
    with serving(Script(story)) as server:
        model = chat(server, **fields)
        told, message = (heard if way == "stream" else aheard)(model)
        assert [exchange.body for exchange in server.exchanges] == bodies
    check_runs(told)
    check_messages(told)
    check_end(told, message, [QUESTION])


def heard(model: Any) -> tuple[list[Any], Any]:
    """All events of a run, and its message."""
    stream = events(model.stream([QUESTION]))
    return list(stream), stream.message


def aheard(model: Any) -> tuple[list[Any], Any]:
    """The same, asynchronously."""

    async def read() -> tuple[list[Any], Any]:
        stream = aevents(model.astream([QUESTION]))
        return [event async for event in stream], stream.message

    return waited(read())


@pytest.mark.parametrize("way", ["stream", "astream"])
@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire.name in ("openai-chat", "anthropic")], ids=lambda wire: wire.name)
def test_a_reply_that_breaks_off_in_a_call_is_asked_for_again_whoever_listens(wire: Wire, way: str) -> None:
    """The pieces that were shown of it are discarded; requests and messages are those of a run without a listener."""
    whole = Turn("", [Call("look", {"city": "Paris and Rome"})])

    def look(city: str) -> str:
        """Look."""
        return city

    found = []
    for listens in (False, True):
        with wire.serve([Cut(whole, 900), whole, Turn("Warm.")]) as server:
            model = wire.model(server, tools=[look], max_retries=1, retry=RetryPolicy(wait_scale=0))
            told, message = (heard if way == "stream" else aheard)(model) if listens else ([], summed(list(model.stream([QUESTION]))))
            found.append(([exchange.body for exchange in server.exchanges], [one.text for one in new_messages(message)]))
    assert found[0] == found[1] and len(found[0][0]) == 3
    check_runs(told)
    check_messages(told)
    check_end(told, message, [QUESTION])
    assert [type(event) for event in told if isinstance(event, CallStarted | CallDiscarded | CallReady)] == [
        *(CallStarted, CallDiscarded, CallStarted, CallReady)
    ]
