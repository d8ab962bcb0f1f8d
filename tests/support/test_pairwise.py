"""The choice of cases that replaces a product."""

from itertools import product

import pytest

from tests.support.pairwise import pairwise

ROWS, WAYS, VALUES = "abcde", "wxyz", "12345"
PRODUCT = [{"row": row, "way": way, "value": value} for row, way, value in product(ROWS, WAYS, VALUES)]


def test_every_two_values_meet() -> None:
    """Of 100 cases no more than a third is left, and each row, way and value has met each of the other axes."""
    chosen = [PRODUCT[place] for place in pairwise(PRODUCT)]
    assert len(chosen) <= 33
    for first, second in (("row", "way"), ("row", "value"), ("way", "value")):
        assert {(case[first], case[second]) for case in chosen} == {(case[first], case[second]) for case in PRODUCT}


def test_a_product_of_two_axes_stays_whole() -> None:
    """Each of its cases is a pair of its own."""
    cases = [{"row": row, "way": way} for row, way in product(ROWS, WAYS)]
    assert pairwise(cases) == set(range(len(cases)))


@pytest.mark.parametrize("cases", [[{"row": "a"}, {"row": "b"}], [{}], []], ids=["one axis", "no axis", "nothing"])
def test_cases_without_pairs_stay(cases: list[dict[str, str]]) -> None:
    """What has fewer than two axes is left as it is."""
    assert pairwise(cases) == set(range(len(cases)))
