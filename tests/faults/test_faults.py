"""Faults between client and server: a run ends in time, with the right answer or a clear error; no tool runs twice, nothing stays open."""

from __future__ import annotations

import itertools

import pytest
from langchain_core.exceptions import ModelRateLimitError

from tests.faults.cases import WIRES, Case, Spoilt
from tests.faults.kinds import FAULTS
from tests.laws.ways import WAYS

QUICK = [name for name, fault in FAULTS.items() if not (fault.hangs or fault.seconds or fault.rare)]
PRODUCT = list(itertools.product(QUICK, WIRES, (False, True), (0, 1)))


def _case(number: int) -> Case:
    """A case of the product, in one of the four ways and lasting or not by turns."""
    fault, wire, fallback, request = PRODUCT[number]
    return Case(wire, fault, request, number % 3 == 0, WAYS[(number + number // 4) % 4], fallback)


@pytest.mark.parametrize("place", range(len(QUICK)), ids=QUICK)
def test_a_fault(place: int) -> None:
    """Each fault once, with wire, way, request and fallback by turns."""
    each = len(PRODUCT) // len(QUICK)
    Spoilt(_case(place * each + place * 7 % each)).play()


@pytest.mark.parametrize("fault", [name for name, one in FAULTS.items() if one.hangs])
def test_a_fault_that_never_ends(fault: str) -> None:
    """The deadline ends the run, whatever the server does."""
    number = [*FAULTS].index(fault)
    ran = Spoilt(Case([*WIRES][number % 5], fault, 0, True, WAYS[number % 4], False)).play()
    assert ran.error is None and ran.message is not None
    assert ran.message.response_metadata["autotools"]["stop_reason"] == "deadline"


@pytest.mark.exhaustive
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_of_every_wire(fault: str, wire: str) -> None:
    """With and without a fallback, at the first and at the second request, in every way by turns."""
    start = [*FAULTS].index(fault)
    for number, (fallback, request) in enumerate(itertools.product((False, True), (0, 1))):
        if not (FAULTS[fault].seconds or FAULTS[fault].rare) or number == start % 4:
            Spoilt(Case(wire, fault, request, number % 3 == 0, WAYS[(start + number) % 4], fallback)).play()


@pytest.mark.parametrize("fault", ["refused", "status 503", "reset at 50%", "an error at 30%", "an empty body", "a page"])
@pytest.mark.parametrize("way", ["stream", "ainvoke"])
def test_a_fallback_answers(fault: str, way: str) -> None:
    """A fault that lasts is not noticed, or goes on with the text that has left."""
    ran = Spoilt(Case("openai", fault, 0, True, way, True)).play()
    assert ran.error is None and ran.message is not None and ran.message.text.endswith("It is 21 °C in Zürich.")


@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_a_header_that_is_not_ascii_hides_no_error(way: str) -> None:
    """The refusal is the vendor's typed error, whatever else a proxy writes."""
    ran = Spoilt(Case("openai", "retry-after digits", 0, True, way, False)).play()
    assert isinstance(ran.error, ModelRateLimitError)
