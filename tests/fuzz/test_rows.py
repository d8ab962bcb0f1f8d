"""Rows of durable runs that are not as they were written: readers skip what they cannot read, and go on."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

import pytest
from hypothesis import strategies as st

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_autotools.durable.journal import UnknownEvent, event_of, row_of
from langchain_autotools.durable.run_reader import Story
from langchain_autotools.event_types import RunEvent
from tests.fuzz.spoiling import VALUES, changed
from tests.laws.ways import law
from tests.unit.durable.test_story import rows_of, run_told

SEEDS = st.integers(0, 2**32)


@cache
def told(number: int) -> list[RunEvent]:
    """The events of one of a few random runs."""
    return run_told(number)


@law(20, 3_000)
def test_a_changed_row_is_an_event_or_skipped(data: st.DataObject) -> None:
    """Whatever is in it."""
    chance = random.Random(data.draw(SEEDS))
    events = told(data.draw(st.integers(0, 7)))
    for event in events[:20]:
        row: Any = json.loads(json.dumps(row_of(event)))
        for _ in range(chance.choice([1, 2, 5])):
            row = changed(chance, row)
        assert isinstance(event_of(row), RunEvent | UnknownEvent)
    assert isinstance(event_of(chance.choice(VALUES)), UnknownEvent)


@law(20, 3_000)
def test_a_story_with_changed_rows_goes_on(data: st.DataObject) -> None:
    """Its events have positions that count, and it has an end."""
    chance = random.Random(data.draw(SEEDS))
    events = told(data.draw(st.integers(0, 7)))
    story = Story("the run")
    seen: list[RunEvent] = []
    for row in rows_of(events, 0, chance):
        spoilt = changed(chance, row) if chance.random() < 0.3 else row
        seen += story.events_of(spoilt)
    seen += story.end()
    positions = [int(event.position or 0) for event in seen]
    assert positions == sorted(set(positions))
    assert all(isinstance(event, RunEvent) for event in seen)
