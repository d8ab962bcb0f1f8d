"""What `compact=` is held to in the world of `python -m benchmarks.context`."""

import pytest

from benchmarks.context import FACTS, PAGES, QUESTIONS, WINDOW, facts, measured, ours, page

pytestmark = pytest.mark.further


def test_a_long_run_breaks_its_prefix_five_times_and_loses_nothing() -> None:
    """No request is above the part of the window at which it cuts, no further request is made, and each fact can be read again."""
    model = measured(ours(at=0.8))
    assert len(model.sent) == PAGES + QUESTIONS and model.summaries == 0 and model.whole == PAGES
    assert sum(one.breaks for one in model.sent) <= 5 and max(one.size for one in model.sent) <= 0.8 * WINDOW * 4
    assert model.shown + model.read == FACTS


def test_where_results_are_not_enough_summaries_are_made_and_nothing_is_lost() -> None:
    """With a quarter of the window: no request is above it, and each fact is in the request or read by one call."""
    model = measured(ours(at=0.25))
    assert model.whole == PAGES and 0 < model.summaries < 12 and len(model.sent) == PAGES + QUESTIONS + model.summaries
    assert max(one.size for one in model.sent) <= 0.25 * WINDOW * 4 and model.shown + model.read == FACTS


def test_without_it_every_request_has_everything() -> None:
    """The prefix lives, and the last request is the whole history."""
    model = measured(ours())
    assert not any(one.breaks for one in model.sent) and sum(one.size - one.cached for one in model.sent) == model.sent[-1].size
    assert model.sent[-1].size > sum(len(page(number)) for number in range(1, PAGES + 1)) and model.shown == FACTS


def test_the_pages_hold_the_facts() -> None:
    """Each in one page, of the same length as the others."""
    pages = [page(number) for number in range(1, PAGES + 1)]
    assert {len(one) for one in pages} == {7_800}
    assert all([number for number, one in enumerate(pages, 1) if fact.line in one] == [fact.page] for fact in facts())
