"""Law 10, of many that resume at once: effects are those of one resumer, whoever dies at whatever step."""

import pytest

from tests.laws.resumers import conversation_of

SEEDS = [range(3), *(pytest.param(range(n, n + 20), marks=pytest.mark.exhaustive) for n in range(3, 203, 20))]


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_of_resumers_that_die_at_random_steps_the_effects_are_those_of_one(seeds: range) -> None:
    """1 to 4 at once, with partial decisions and runs inside others: no call begins twice, and all that ends ends alike."""
    for seed in seeds:
        conversation_of(seed)
