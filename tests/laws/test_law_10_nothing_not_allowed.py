"""Law 10, nothing runs that was not allowed: on no turn, under no spelling, in no bundle, after no resume, whatever the server does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage

from langchain_autotools import ToolExecutor, new_messages
from langchain_autotools.history import repair
from langchain_autotools.messages.metadata import KEY
from tests.laws.checks import check_answered
from tests.laws.guarded import NAMES, SPELLINGS, Guarded, Wanted, allowing, wanted
from tests.laws.stories import Script
from tests.laws.ways import LISTENERS, QUESTION, WAYS, Ran, chat, law, run, serving
from tests.support.script import Turn

turns = st.lists(st.lists(wanted(), min_size=1, max_size=3), min_size=1, max_size=3)
ways = st.sampled_from(WAYS)
listeners = st.sampled_from(sorted(LISTENERS))
some_names = st.sets(st.sampled_from(NAMES))


def script(story: list[list[Wanted]]) -> Script:
    """The replies of a server that calls what it likes, then answers."""
    return Script([Turn(calls=[one.call() for one in calls]) for calls in story])


def open_ids(ran: Ran) -> list[str]:
    """The ids of the calls left to the caller."""
    assert ran.message is not None
    return [str(call["id"]) for call in ran.message.tool_calls]


@law(8)
def test_law_10_a_restriction_and_a_limit_hold_on_every_turn(data: st.DataObject) -> None:
    """What runs is allowed, is none of the caller's and within the limit, was announced under its own name, and every call is answered."""
    story = data.draw(turns)
    bound = data.draw(st.sets(st.sampled_from(NAMES), max_size=2))
    allowed = data.draw(st.one_of(st.none(), some_names))
    limit = data.draw(st.one_of(st.none(), st.integers(0, 5)))
    guarded = Guarded()
    choice: Any = None
    if allowed is not None:
        choice = allowing(allowed, data.draw(st.sampled_from(["auto", "required"]))) if allowed else "none"
    with serving(script(story)) as server:
        model = chat(server, tools=guarded.tools())
        asked: Any = model.bind_tools([{"title": name, "type": "object", "properties": {}} for name in bound]) if bound else model
        keywords = {} if choice is None else {"tool_choice": choice}
        how = data.draw(ways), asked, [QUESTION]
        ran = run(*how, listeners=data.draw(listeners), max_tool_calls=limit, **guarded.listeners(), **keywords)
        assert ran.error is None
        for request in server.requests:
            said = request.get("tool_choice")
            assert choice is None or said == "none" or said["allowed_tools"]["tools"] == choice["allowed_tools"]["tools"]
    guarded.check()
    meant = {name for name, _ in guarded.ran}
    assert meant <= (set(NAMES) if allowed is None else allowed) - bound
    assert limit is None or len(guarded.ran) <= limit
    left = open_ids(ran)
    assert {call["name"] for call in ran.message.tool_calls} <= {  # type: ignore[union-attr]
        SPELLINGS[one.spelling](name)
        for calls in story
        for one in calls
        for name in one.names
        if not one.bundled and name in bound and (allowed is None or name in allowed)
    }
    check_answered(repair(ran.new) if left else ran.new)


@law(6)
def test_law_10_what_was_approved_runs_and_nothing_else(data: st.DataObject) -> None:
    """Of the calls that a history ends in those run that were approved and are allowed; undecided ones wait, and nobody is asked."""
    calls = data.draw(st.lists(wanted(), min_size=1, max_size=3))
    story = data.draw(st.lists(st.lists(wanted(), min_size=1, max_size=2), max_size=1))
    decisions = [data.draw(st.sampled_from([True, False, "No.", None])) for _ in calls]
    allowed = data.draw(st.one_of(st.none(), some_names.filter(bool)))
    guarded = Guarded()
    made = [one.call(f"call_{number}") for number, one in enumerate(calls)]
    asked = AIMessage("", tool_calls=[{"name": call.name, "args": call.args, "id": call.id} for call in made])
    history: list[BaseMessage] = [QUESTION, asked]
    chosen = {call.id: decision for call, decision in zip(made, decisions, strict=True) if decision is not None}
    with serving(script(story)) as server:
        declared = [{"title": name, "type": "object", "properties": {}} for name in NAMES]
        model = chat(server, tools=guarded.tools()).bind_tools(declared)
        keywords = {} if allowed is None else {"tool_choice": allowing(allowed, "auto")}
        ran = run(data.draw(ways), model, history, resume=chosen, **guarded.listeners(), **keywords)
        assert ran.error is None
        waiting = [str(call.id) for call, decision in zip(made, decisions, strict=True) if decision is None]
        if waiting:
            assert (open_ids(ran), server.requests) == (waiting, [])
    guarded.check()
    approved = [part for one, decision in zip(calls, decisions, strict=True) if decision is True for part in one.meant()]
    assert sorted(guarded.ran) == sorted(part for part in approved if allowed is None or part[0] in allowed)


# ---------------------------------------------------------------------------------------------- by name


@pytest.mark.parametrize("way", WAYS)
def test_law_10_each_call_in_a_bundle_counts(way: str) -> None:
    """Of fifty calls in one the first runs where one may; the others are answered as not run, and the run says which limit it met."""
    guarded = Guarded()
    bundle = Wanted(("look",) * 50, tuple(range(50)), "prefix", True)
    with serving(script([[bundle]])) as server:
        ran = run(way, chat(server, tools=guarded.tools()), [QUESTION], max_tool_calls=1, **guarded.listeners())
    assert guarded.ran == [("look", 0)]
    guarded.check()
    parts = json.loads(ran.new[1].text)
    assert [part["status"] for part in parts] == ["success", *["error"] * 49]
    assert "the limit of tool calls" in parts[1]["result"]
    assert ran.message is not None
    assert ran.message.response_metadata[KEY]["stop_reason"] == "max_tool_calls"


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("bundled", [False, True])
def test_law_10_a_gate_sees_the_tools_own_name(spelling: str, bundled: bool) -> None:
    """Whatever the model wrote: a listener that refuses `danger` by its name refuses it, and can see how it was written."""
    guarded = Guarded()
    written: list[str | None] = []

    def gate(call: Any) -> None:
        written.append(call.written_name)
        if call.name == "danger":
            raise PermissionError("not this one")

    with serving(script([[Wanted(("danger",), (1,), spelling, bundled)]])) as server:
        ran = run("invoke", chat(server, tools=guarded.tools()), [QUESTION], on_executing=gate)
    assert isinstance(ran.error, PermissionError)
    assert (guarded.ran, written) == ([], [SPELLINGS[spelling]("danger")])


def test_law_10_a_bound_tool_is_the_callers_under_every_spelling() -> None:
    """Where a tool of the same name could run, it does not: the call is left open, as the model wrote it; in a bundle it is refused."""
    for spelling in SPELLINGS:
        guarded = Guarded()
        story = [[Wanted(("danger",), (1,), spelling, True)], [Wanted(("danger",), (2,), spelling, False)]]
        with serving(script(story)) as server:
            model = chat(server, tools=guarded.tools()).bind_tools([{"title": "danger", "type": "object", "properties": {}}])
            ran = run("stream", model, [QUESTION])
        assert guarded.ran == []
        assert ran.message is not None
        assert [call["name"] for call in ran.message.tool_calls] == [SPELLINGS[spelling]("danger")]
        assert "answered by the user" in ran.new[1].text


def test_law_10_polling_and_standing_still_look_at_the_tools_own_name() -> None:
    """The same call under another spelling is the same call; a polling tool is one under every spelling, also in a bundle."""
    spelled = [Wanted(("look",), (1,), spelling, False) for spelling in ("exact", "prefix", "capitals")]
    bundles = [Wanted(("look", "look"), (1, 2), spelling, True) for spelling in ("exact", "prefix", "capitals")]
    for story in (spelled, bundles):
        reasons = []
        for polling in ([], ["look"]):
            with serving(script([[one] for one in story])) as server:
                model = chat(server, tools=Guarded().tools(), no_progress=3, polling_tools=polling)
                reasons.append(model.invoke([QUESTION]).response_metadata[KEY]["stop_reason"])
        assert reasons == ["no_progress", "complete"]


def test_law_10_an_executor_alone_holds_to_what_it_is_told() -> None:
    """`allowed` holds without a model too, for each call of a bundle; so do names written some other way."""
    guarded = Guarded()
    executor = ToolExecutor(guarded.tools())
    calls = [Wanted(("danger", "look"), (1, 2), "prefix", True), Wanted(("danger",), (3,), "camel", False)]
    message = AIMessage("", tool_calls=[{"name": one.call().name, "args": one.call().args, "id": str(one.numbers)} for one in calls])
    results = list(executor.stream(message, only=["look"]))
    assert guarded.ran == [("look", 2)]
    assert [[part.executed for part in result.inner] for result in results] == [[False, True], []]
    assert "The tools that may be called are: look." in results[1].message.text
    assert new_messages(results[1].message)[0].name == "Danger"  # type: ignore[attr-defined]
