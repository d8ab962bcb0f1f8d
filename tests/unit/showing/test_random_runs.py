"""Random runs, shown in each way: failing, limited, waiting, nested, left."""

import io
import json

import pytest
from langchain_core.messages import AIMessage

from langchain_autotools.cli.display import EventDisplay
from langchain_autotools.showing.page import part_html, part_text
from langchain_autotools.showing.view_model import CallView, JoinedText, Lines, TextView, ViewModel
from tests.support.random_runs import Told, random_run, told_of
from tests.support.seen_runs import PAGE_TAG, Read


def calls_in(parts: object) -> list[CallView]:
    """All calls, those of runs inside tools too."""
    found = [part for part in parts if isinstance(part, CallView)]  # type: ignore[attr-defined]
    return found + [call for outer in found for run in outer.runs for call in calls_in(run.parts)]


def check_page(told: Told) -> None:
    """No call stays open, each message's text is there, and nothing breaks out of the page."""
    seen = ViewModel()
    for event in told.events:
        seen.apply(event)
    if told.run.leave_after is None:
        assert {call.state for call in calls_in(seen.parts)} <= {"done", "failed", "waiting", "discarded", "interrupted"}
        written = {part.message_id: "" for part in seen.parts if isinstance(part, TextView) and not part.is_reasoning}
        for part in seen.parts:
            if isinstance(part, TextView) and not part.is_reasoning:
                written[part.message_id] += part.text
        assert all(written.get(str(one.id), "") == one.text for one in told.messages if isinstance(one, AIMessage))
    read = Read("".join(map(part_html, seen.parts)))
    assert read.balanced and all(map(PAGE_TAG.fullmatch, read.tags))
    "".join(map(part_text, seen.parts)).encode()


def check_lines(told: Told) -> None:
    """What a program reads as the answer is the text of the run, and nothing else."""
    answers, remarks, joined = io.StringIO(), io.StringIO(), JoinedText()
    lines = Lines(answers, remarks)
    for event in told.events:
        lines.show(event)
    text = "".join(map(joined.piece, told.own))
    if told.message is not None:
        assert text == told.message.text
    remarks.getvalue().encode()


def check_json(told: Told) -> None:
    """Each line is JSON, and all pieces of text together are the text of the run."""
    output = io.StringIO()
    display = EventDisplay(output)
    for event in told.events:
        display.show(event)
    kinds = [json.loads(line) for line in output.getvalue().splitlines()]
    if told.message is not None:
        assert "".join(one["text"] for one in kinds if one["type"] == "text") == told.message.text


@pytest.mark.parametrize("seed", range(8))
def test_random_runs_are_shown_to_their_end(seed: int) -> None:
    """On a page, as lines of text and as JSON."""
    told = told_of(random_run(seed))
    check_page(told)
    check_lines(told)
    check_json(told)


@pytest.mark.exhaustive
@pytest.mark.parametrize("hundred", range(20))
def test_many_random_runs_are_shown_to_their_end(hundred: int) -> None:
    """The same of two thousand."""
    for seed in range(100 * hundred, 100 * (hundred + 1)):
        test_random_runs_are_shown_to_their_end(seed)
