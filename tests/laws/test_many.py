"""All laws on many more random conversations: `pytest -m exhaustive tests/laws`."""

from typing import Any

import pytest

from tests.laws import (
    test_law_1_drop_in,
    test_law_2_one_message,
    test_law_3_answered_once,
    test_law_4_no_guess,
    test_law_5_no_state,
    test_law_6_data_not_names,
    test_law_7_same_bytes,
    test_law_8_nothing_lost,
    test_law_9_at_once,
)

_MODULES = (
    test_law_1_drop_in,
    test_law_2_one_message,
    test_law_3_answered_once,
    test_law_4_no_guess,
    test_law_5_no_state,
    test_law_6_data_not_names,
    test_law_7_same_bytes,
    test_law_8_nothing_lost,
    test_law_9_at_once,
)
_LAWS = [(name, value.many) for module in _MODULES for name, value in vars(module).items() if hasattr(value, "many")]


@pytest.mark.exhaustive
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("check", [check for _, check in _LAWS], ids=[name for name, _ in _LAWS])
def test_laws_on_many_conversations(check: Any) -> None:
    """Hundreds of random conversations for each law."""
    check()
