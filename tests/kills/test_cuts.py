"""Few kills around cuts of requests (`compact=`); `python -m tests.kills.cuts` does 100 in each setup."""

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from .test_kills import figures_of


@pytest.mark.kills
@pytest.mark.parametrize(
    ("setup", "cuts"),
    [
        ("openai-chat stream parts summaries varying", 5),
        ("anthropic astream runs summaries", 5),
        ("anthropic stream parts results", 3),
        ("openai-chat durable summaries", 5),
        ("anthropic conversations summaries", 5),
    ],
)
def test_processes_that_are_killed_around_cuts_go_on_with_the_same_bytes(setup: str, cuts: int) -> None:
    """What is recorded decides, whatever is stored: each goes on from the first reply that was not."""
    figures = figures_of("tests.kills.cuts", "--kills", "4", "--setup", setup)
    assert sum(figures["kills"].values()) == 4 and figures["wrong"] == []
    assert figures["cuts"] >= cuts and (figures["summaries"] > 0) is ("summaries" in setup)
