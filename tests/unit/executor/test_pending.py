"""What is shown of a call that waits, and what can be decided about it: plain data."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_autotools import ConfigurationError, Decision, PendingCall, ToolCallRecord, pending_calls
from langchain_autotools.executor.pending import digest_of
from tests.unit.executor.test_approvals import ANSWER, KEY


def shown(kind: Any = "approval", **fields: Any) -> PendingCall:
    """A pending call."""
    return PendingCall(**{"id": "1", "name": "send", "args": {"to": "Anna"}, "kind": kind, "uuid": "u", "digest": "d", **fields})


def test_every_decision_repeats_what_binds_it_to_its_call() -> None:
    """With the value that goes with it."""
    pending = shown()
    assert pending.approve() == Decision("1", "approve", None, "u", "d")
    assert pending.reject("no") == Decision("1", "reject", "no", "u", "d")
    assert pending.reject().value is None
    assert pending.edit({"to": "Eve"}) == Decision("1", "edit", {"to": "Eve"}, "u", "d")
    assert pending.respond([{"type": "text", "text": "by hand"}]).value == [{"type": "text", "text": "by hand"}]


@pytest.mark.parametrize(
    ("kind", "offered"),
    [
        ("approval", {"approve", "reject", "edit", "respond"}),
        ("caller", {"reject", "respond"}),
        ("client_tool", {"reject", "respond"}),
        ("queued", {"reject"}),
    ],
)
def test_each_kind_offers_what_can_be_done_with_it(kind: str, offered: set[str]) -> None:
    """Anything else is an error that says what to do instead."""
    pending = shown(kind)
    made = {"approve": pending.approve, "reject": pending.reject, "edit": lambda: pending.edit({}), "respond": lambda: pending.respond("x")}
    for action, make in made.items():
        if action in offered:
            assert make().action == action
        else:
            with pytest.raises(ConfigurationError, match=rf"call '1' takes no {action}\(\): it"):
                make()


@given(
    st.sampled_from(["approve", "reject", "edit", "respond"]),
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)),
)
def test_what_was_decided_travels_as_json(action: str, value: Any) -> None:
    """Calls and decisions come back equal from their JSON."""
    pending = shown(args={"x": value})
    values = {"approve": None, "reject": "no", "edit": {"x": value}, "respond": value or "nothing"}
    decision = Decision("1", action, values[action], "u", "d")  # type: ignore[arg-type]
    assert Decision.from_dict(json.loads(json.dumps(decision.to_dict()))) == decision
    assert PendingCall.from_dict(json.loads(json.dumps(pending.to_dict()))) == pending


@pytest.mark.parametrize(
    "make",
    [
        lambda: Decision("1", "allow"),  # type: ignore[arg-type]
        lambda: Decision(1, "approve"),  # type: ignore[arg-type]
        lambda: Decision("1", "approve", True),
        lambda: Decision("1", "reject", 1),
        lambda: Decision("1", "edit", ["to"]),
        lambda: Decision("1", "edit", {1: "to"}),
        lambda: shown().edit([1]),  # type: ignore[arg-type]
        lambda: shown().edit({"x": object()}),
        lambda: shown().edit({"x": float("nan")}),
        lambda: shown().respond(None),
        lambda: Decision.from_dict({"id": "1"}),
        lambda: Decision.from_dict({**shown().approve().to_dict(), "more": 1}),
        lambda: Decision.from_dict("approve"),  # type: ignore[arg-type]
        lambda: PendingCall.from_dict({}),
        lambda: shown("approved"),
        lambda: shown(args=["Anna"]),
        lambda: shown(uuid=1),
    ],
)
def test_what_decides_nothing_is_refused(make: Any) -> None:
    """Where it is made, not days later where it is used."""
    with pytest.raises(ConfigurationError):
        make()


def test_the_data_of_a_decision_is_its_own() -> None:
    """What the caller goes on to change, or what he does with the call that he was shown, changes no decision."""
    args = {"to": ["Anna"]}
    decision = shown().edit(args)
    args["to"].append("Eve")
    assert decision.value == {"to": ["Anna"]}
    message = copy.deepcopy(ANSWER)
    pending_calls(message)[1].args["to"] = "Eve"
    assert message == ANSWER


def test_the_digest_covers_the_id_the_name_and_the_arguments() -> None:
    """Whatever the order of keys; a key makes it another one."""
    record = ToolCallRecord("1", "send", "", {"to": "Anna", "amount": 1})
    digest = digest_of(record, "approval", "u")
    assert digest == digest_of(ToolCallRecord("1", "send", "", {"amount": 1, "to": "Anna"}), "approval", "u")
    others = [
        digest_of(ToolCallRecord("2", "send", "", record.args), "approval", "u"),
        digest_of(ToolCallRecord("1", "look", "", record.args), "approval", "u"),
        digest_of(ToolCallRecord("1", "send", "", {"to": "Anna", "amount": 1.5}), "approval", "u"),
        digest_of(ToolCallRecord("1", "send", "", {"to": "Anna", "amount": True}), "approval", "u"),
        digest_of(record, "queued", "u"),
        digest_of(record, "approval", "v"),
        digest_of(record, "approval", "u", KEY),
    ]
    assert len({digest, *others}) == len(others) + 1
    with pytest.raises(ConfigurationError, match="not plain JSON"):
        digest_of(ToolCallRecord("1", "send", "", {"to": float("inf")}), "approval", "u")


@pytest.mark.parametrize(
    ("one", "other"),
    [(10.0, 10), (-0.0, 0), (2.0**53 - 1, 2**53 - 1), ([{"deep": -3.0}], [{"deep": -3}])],
)
def test_the_digest_is_that_of_a_call_that_went_through_a_browser(one: Any, other: Any) -> None:
    """JavaScript writes 10.0 as 10, and -0.0 as 0."""
    assert digest_of(ToolCallRecord("1", "send", "", {"amount": one}), "approval") == digest_of(
        ToolCallRecord("1", "send", "", {"amount": other}), "approval"
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [(2**53, 2**53 + 1), (2.0**53, 2**53 + 1), (2.0**53, 2**53), (10**30, 10**30 + 1), (1, True), (0, False), (1, "1"), (0.1, 0.2)],
)
def test_the_digest_counts_large_integers_digit_by_digit(one: Any, other: Any) -> None:
    """A double could not tell them apart."""
    assert digest_of(ToolCallRecord("1", "send", "", {"amount": one}), "approval") != digest_of(
        ToolCallRecord("1", "send", "", {"amount": other}), "approval"
    )


def test_pending_calls_of_a_history_are_those_of_its_last_message() -> None:
    """Without the calls that have results; a message without calls, a user's message and an empty history have none."""
    history = [HumanMessage("Go on."), ANSWER, ToolMessage("21", tool_call_id="1")]
    assert [(one.id, one.kind) for one in pending_calls(history)] == [("2", "caller"), ("3", "caller")]
    assert pending_calls([]) == pending_calls([HumanMessage("Go on.")]) == pending_calls(AIMessage("Done.")) == []
    with pytest.raises(ValueError, match="not a str"):
        pending_calls("history")  # type: ignore[arg-type]
