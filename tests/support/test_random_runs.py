"""Random runs are what their seeds say, whoever makes them."""

import random

import pytest

from langchain_autotools import new_messages
from tests.support.random_replies import RandomCall, random_reply
from tests.support.random_runs import WAYS, conversation, random_run


@pytest.mark.further
def test_a_seed_says_the_run() -> None:
    """Two runs of a seed are equal, also where the way to read them is given."""
    assert all(repr(random_run(seed)) == repr(random_run(seed)) for seed in range(50))
    assert repr(random_run(7, "astream").model) == repr(random_run(7).model)
    assert {random_run(seed).way for seed in range(100)} == set(WAYS)


def test_replies_make_the_calls_that_they_are_to_make() -> None:
    """The names of the calls are in the pieces, whatever the style."""
    calls = [RandomCall("fast", {"gate": "1"}, "call_1"), RandomCall("slow", {"gate": "1"}, "call_2")]
    for seed in range(50):
        said = repr(random_reply(random.Random(seed), calls, "msg_1"))
        assert "fast" in said and "slow" in said


def test_a_conversation_goes_on_with_what_was_decided() -> None:
    """The second stream has decisions about calls that the first one left pending, and brings further messages."""
    told = next(both for seed in range(200) if len(both := list(conversation(seed))) > 1)
    assert told[0].run.decisions is None and told[1].run.decisions
    assert told[1].error is not None or new_messages(told[1].message)
