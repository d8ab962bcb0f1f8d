"""The choice of cases that replaces a product, and how many cases a function and all of them have by default."""

from collections import Counter
from itertools import product

import pytest

from tests.support.pairwise import OWN_WIRES, further, pairwise
from tests.support.pairwise import WAYS as WAYS_OF_A_MODEL

ROWS, WAYS, VALUES = "abcde", "wxyz", "12345"
MOST_OF_A_FUNCTION = 200
MOST_OF_ALL = 10_200
"""What four minutes on two cores leave room for; the number only goes down."""
OF_AN_EXTRA = "tests/unit/durable/"
"""What is collected where the extra `durable` is installed, which the command of the README does not do."""
TABLE = "tests/laws/test_entrances.py::test_a_feature_at_an_entrance"
"""It has a case for each feature at each entrance, which is what it is for; of that case's ways it has one."""
MOST_OF_THE_TABLE = 303
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


def test_a_wire_that_shares_another_and_a_way_are_taken_by_turns() -> None:
    """Of five wires that share one, one stays; each case meets a way, and all ways are met; what has few cases has two opposite ways."""
    wires = [*OWN_WIRES, "azure-chat", "groq", "xai"]
    cases = [([wire, way], wire) for wire in wires for way in WAYS_OF_A_MODEL]
    kept = [cases[place] for place in {*range(len(cases))} - further(cases, 1)]
    assert [wire for _, wire in kept] == [*OWN_WIRES, "groq"]
    assert {ids[1] for ids, _ in kept} == {*WAYS_OF_A_MODEL}
    assert {*range(4)} - further([([way], None) for way in WAYS_OF_A_MODEL], 0) == {1, 2}
    assert {*range(4)} - further([([way], None) for way in WAYS_OF_A_MODEL], 1) == {0, 3}


def test_further_cases_repeat_what_others_show() -> None:
    """A test of shared wires alone keeps them all; of a large product each value stays; a small one, and a list of cases, stay whole."""
    assert further([([wire], wire) for wire in ("groq", "xai")], 0) == set()
    assert further([([str(number)], None) for number in range(50)], 0) == set()
    assert further([([row, value], None) for row, value in product("ab", "1234")], 0) == set()
    large = [([row, value], None) for row, value in product(ROWS, VALUES)]
    kept = [large[place][0] for place in {*range(25)} - further(large, 0)]
    assert len(kept) == 13 and {row for row, _ in kept} == {*ROWS} and {value for _, value in kept} == {*VALUES}


def test_no_product_and_no_sum_of_cases_outgrows_the_default_suite(request: pytest.FixtureRequest) -> None:
    """Of what is collected here: a matrix has a case for every two values, and whatever is added sends something to `exhaustive`."""
    if request.config.option.markexpr != request.config.getini("addopts")[-1]:
        pytest.skip("another choice of markers than the default one")
    cases = Counter(item.nodeid.partition("[")[0] for item in request.session.items)
    most = {TABLE: MOST_OF_THE_TABLE}
    assert {function: number for function, number in cases.items() if number > most.get(function, MOST_OF_A_FUNCTION)} == {}
    own = {function: number for function, number in cases.items() if not function.startswith(OF_AN_EXTRA)}
    assert sum(own.values()) <= MOST_OF_ALL
