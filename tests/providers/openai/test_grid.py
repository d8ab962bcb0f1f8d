"""The generated grid of fragment styles through the model class over HTTP: nothing runs that was not meant."""

from collections import Counter
from collections.abc import Iterable

import pytest

from tests.providers.openai.fragments import Verdict, fragment_reader, verdict
from tests.support.grid import TOOLS, Case, streams


def judge(cases: Iterable[Case]) -> tuple[Counter[Verdict], Counter[Verdict], list[str]]:
    """Verdicts on the streams that say enough, on the others, and what was wrong."""
    clear: Counter[Verdict] = Counter()
    unclear: Counter[Verdict] = Counter()
    wrong: list[str] = []
    with fragment_reader() as reader:
        for case in cases:
            found = verdict(reader.read(case.chunks, TOOLS), case.calls)
            (clear if case.reason is None else unclear)[found] += 1
            if found == "wrong":
                wrong.append(case.label)
    return clear, unclear, wrong


def check(cases: Iterable[Case]) -> None:
    """No call runs that was not meant; of the streams that say enough at least 99 % are exact."""
    clear, unclear, wrong = judge(cases)
    print(f"\nstreams that say enough: {dict(clear)}; the others: {dict(unclear)}")
    assert wrong == []
    assert clear["exact"] >= 0.99 * clear.total() > 0


@pytest.mark.parametrize("every", [47, pytest.param(23, marks=pytest.mark.exhaustive)])
def test_a_sample_of_the_grid(every: int) -> None:
    """A part of all cells; a prime meets every column."""
    check(streams(seed=1, every=every))


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_the_whole_grid() -> None:
    """Several random streams of every cell."""
    check(streams(seed=2, per_cell=3))
