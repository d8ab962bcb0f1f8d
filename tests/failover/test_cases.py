"""Conversations whose first vendor breaks off at any byte of any reply: tools run once, no character is lost or comes twice."""

import pytest

from tests.failover.cases import PAIRS, Broken, Case


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize(("turn", "byte"), [(0, 0), (1, 900)])
def test_each_pair_of_vendors_goes_on(pair: tuple[str, str], turn: int, byte: int) -> None:
    """Before any byte of the first reply, and in the middle of the second, with reasoning."""
    Broken(Case(*pair, turn, byte, drop=True, thinks=bool(turn), way="stream", approvals=False)).play()


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(4, 300))])
def test_a_case_of_a_number(seed: int) -> None:
    """One that fails is played alone by `python -m tests.failover --seed <number>`."""
    Broken(Case.of(seed)).play()
