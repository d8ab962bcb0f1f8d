"""Laws 2, 7 and 8 of random runs in which the user says something at random moments (`inbox=`)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, HumanMessage, messages_from_dict, messages_to_dict

from langchain_autotools import ConfigurationError
from langchain_autotools.history import validate
from langchain_autotools.testing import Request, ScriptedChatModel
from tests.contract.talk import whole
from tests.laws.checks import data_of, differences
from tests.laws.test_events import ASIDE, SCRIPTED, SEEDS, data_of_all
from tests.laws.told import by_run, check_end, check_messages, check_runs
from tests.laws.ways import WAYS, Ran, law, run, summed
from tests.support.inboxes import Readings
from tests.support.random_runs import RandomRun, random_run, told_of, with_inbox
from tests.support.random_tools import Around


@dataclass
class Steered:
    """A run in which the user said something.

    Attributes:
        ran: What it gave.
        inbox: What was said, and what of it was taken.
        requests: What the model was asked.
    """

    ran: Ran
    inbox: Readings
    requests: list[Request]


def steered(planned: RandomRun, way: str) -> Steered:
    """The run, in one of the ways of a model."""
    around, inbox = Around(), Readings(planned.said or ())
    model = planned.model.made(around)
    try:
        ran = run(way, model, planned.history, inbox=inbox, cancel=around.cancel)
    finally:
        around.release.set()
    return Steered(ran, inbox, list(getattr(model, "bound", model).requests))


@law(12, 10_000, shrinks=False)
def test_laws_2_7_and_8_of_runs_that_take_messages(data: st.DataObject) -> None:
    """Whatever ends a run: what was taken is in its messages, once, in order; requests grow; the run message is its parts."""
    check_steered(data.draw(SEEDS))


def check_steered(seed: int) -> None:
    """Check the run of a seed in a streamed way, and in the one that is not streamed."""
    planned = with_inbox(random_run(seed))
    streamed, whole = steered(planned, WAYS[1 + 2 * (seed % 2)]), steered(planned, WAYS[2 - 2 * (seed % 2)])
    for one in (streamed, whole):
        check_nothing_lost(planned, one)
        check_requests_grow(one)
        check_one_history(planned, one)
    if is_repeatable(planned, streamed, whole):
        check_one_message(streamed.ran, whole.ran)


def check_nothing_lost(planned: RandomRun, one: Steered) -> None:
    """Law 8."""
    assert [message.text for message in one.ran.new if isinstance(message, HumanMessage)] == accepted(one)
    assert all(message.id and type(message) is HumanMessage for message in one.ran.new if message.type == "human")
    assert validate([*planned.history, *one.ran.new], open_end=True) == []
    sent = [message.text for message in (one.requests[-1].messages if one.requests else ()) if message.type == "human"]
    ends_unsent = one.ran.new and one.ran.new[-1].type == "human"
    assert ends_unsent or sent[len(sent) - len(accepted(one)) :] == accepted(one) or isinstance(one.ran.error, ConfigurationError)


def accepted(one: Steered) -> list[str]:
    """The texts of what was taken, but for the thing that was refused."""
    return one.inbox.texts[:-1] if isinstance(one.ran.error, ConfigurationError) and has_known_id(one) else one.inbox.texts


def has_known_id(one: Steered) -> bool:
    """Whether the last thing that was taken was refused for its id."""
    return getattr(one.inbox.taken[-1], "type", None) == "human"


def check_requests_grow(one: Steered) -> None:
    """Law 7: request n+1 begins with request n."""
    for earlier, later in pairwise(one.requests):
        assert later.messages[: len(earlier.messages)] == earlier.messages


def check_one_history(planned: RandomRun, one: Steered) -> None:
    """Law 7: however the run is stored, the next request is the same."""
    if one.ran.message is None:
        return
    kept: list[list[BaseMessage]] = [one.ran.new, [one.ran.message], [*one.ran.new, one.ran.message], [*one.ran.new[:-1], one.ran.message]]
    kept += [messages_from_dict(messages_to_dict(each)) for each in kept[:2]] + ([[summed(one.ran.chunks)]] if one.ran.chunks else [])
    requests = []
    for each in kept:
        later = ScriptedChatModel(replies=["Fine."])
        later.invoke([*planned.history, *each, HumanMessage("Go on.", id="go on")])
        requests.append(messages_to_dict(later.requests[0].messages))
    assert all(differences(request, requests[0]) == [] for request in requests[1:])


def is_repeatable(planned: RandomRun, *runs: Steered) -> bool:
    """Whether nothing depended on time, and the replies can be the same: none broke off, which another way asks for again."""
    stops = any(call["name"] == "stop" for one in runs for message in one.ran.new for call in getattr(message, "tool_calls", ()))
    return not stops and "deadline" not in planned.model.settings and all(one.ran.message is not None for one in runs)


def check_one_message(streamed: Ran, invoked: Ran) -> None:
    """Law 2: the chunks sum to what `invoke` returns, and bring its messages."""
    pair = [data_of(whole(SCRIPTED, ran.message), aside=ASIDE) for ran in (streamed, invoked) if ran.message is not None]
    assert differences(*pair) == []
    assert differences(data_of_all(streamed.new), data_of_all(invoked.new)) == []


@law(6, 3000, shrinks=False)
def test_events_of_runs_that_take_messages(data: st.DataObject) -> None:
    """They tell of each message of the user's where it was read; what they say is the run message."""
    told: Any = told_of(with_inbox(random_run(data.draw(SEEDS))))
    check_runs(told.events)
    for own in by_run(told.events).values():
        check_messages(own)
    if told.message is not None:
        check_end(told.own, told.message, told.run.history)
