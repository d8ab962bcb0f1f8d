"""Laws 2, 7 and 8 of random runs whose old results are left out of requests (`compact=`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage, messages_from_dict, messages_to_dict

from langchain_autotools.event_types import ContextCompacted
from langchain_autotools.history import validate
from langchain_autotools.testing import Request, ScriptedChatModel
from tests.contract.talk import whole
from tests.laws.checks import data_of, differences
from tests.laws.test_events import ASIDE, SCRIPTED, SEEDS, data_of_all
from tests.laws.told import by_run, check_end, check_messages, check_runs
from tests.laws.ways import WAYS, Ran, law, run, summed
from tests.support.random_runs import RandomRun, random_run, told_of, with_compaction
from tests.support.random_tools import Around


def compacted(planned: RandomRun, way: str) -> tuple[Ran, list[Request]]:
    """The run in one of the ways of a model, and what the model was asked."""
    around = Around()
    model = planned.model.made(around)
    try:
        ran = run(way, model, planned.history, cancel=around.cancel)
    finally:
        around.release.set()
    return ran, list(getattr(model, "bound", model).requests)


@law(12, 10_000, shrinks=False)
def test_laws_2_7_and_8_of_runs_that_leave_results_out(data: st.DataObject) -> None:
    """The messages are those of the same run without it; requests differ from the history by lines alone, and from one another at cuts."""
    check_compacted(data.draw(SEEDS))


def check_compacted(seed: int) -> None:
    """Check the run of a seed in a streamed way, and in the one that is not streamed."""
    planned = with_compaction(random_run(seed))
    if not planned.model.has_tools:
        return
    streamed, invoked = (compacted(planned, way) for way in (WAYS[1 + 2 * (seed % 2)], WAYS[2 - 2 * (seed % 2)]))
    for ran, requests in (streamed, invoked):
        assert validate([*planned.history, *ran.new], open_end=True) == []
        assert not any("[Left out: " in one.text for one in ran.new if one.type == "tool")  # the history stays whole
        check_requests(requests)
        check_one_history(planned, ran)
    if is_repeatable(planned, streamed[0], invoked[0]):
        pair = [data_of(whole(SCRIPTED, ran.message), aside=ASIDE) for ran, _ in (streamed, invoked) if ran.message is not None]
        assert differences(*pair) == []
        assert differences(data_of_all(streamed[0].new), data_of_all(invoked[0].new)) == []


def check_requests(requests: Sequence[Request]) -> None:
    """Law 7: each is valid, and begins with the one before but for results that became lines, which stay so."""
    before: Sequence[BaseMessage] = ()
    for request in requests:
        assert validate(request.messages) == []
        for one, other in zip(before, request.messages, strict=False):
            assert one == other or (isinstance(other, ToolMessage) and "[Left out: " in other.text and "[Left out: " not in one.text)
        before = request.messages


def check_one_history(planned: RandomRun, ran: Ran) -> None:
    """Law 7: however the run is stored, the next request is the same."""
    if ran.message is None:
        return
    kept: list[list[BaseMessage]] = [ran.new, [ran.message], [*ran.new, ran.message]]
    kept += [messages_from_dict(messages_to_dict(each)) for each in kept[:2]] + ([[summed(ran.chunks)]] if ran.chunks else [])
    requests = []
    for each in kept:
        later = ScriptedChatModel(replies=["Fine."], tools=[look], **planned.model.settings_of_compaction)
        later.invoke([*planned.history, *each, HumanMessage("Go on.", id="go on")])
        requests.append(messages_to_dict(later.requests[0].messages))
    assert all(differences(request, requests[0]) == [] for request in requests[1:])


def look() -> str:
    """Look."""
    return "21"


def is_repeatable(planned: RandomRun, *runs: Ran) -> bool:
    """Whether nothing depended on time."""
    stops = any(call["name"] == "stop" for one in runs for message in one.new for call in getattr(message, "tool_calls", ()))
    return not stops and "deadline" not in planned.model.settings and all(one.message is not None for one in runs)


@law(6, 3000, shrinks=False)
def test_events_of_runs_that_leave_results_out(data: st.DataObject) -> None:
    """They tell of each cut; what they say is the run message."""
    told: Any = told_of(with_compaction(random_run(data.draw(SEEDS))))
    check_runs(told.events)
    for own in by_run(told.events).values():
        check_messages(own)
    assert all(one.to_tokens <= one.from_tokens and one.results for one in told.events if isinstance(one, ContextCompacted))
    if told.message is not None:
        check_end(told.own, told.message, told.run.history)
