"""The reasons why mutants may live are about code that there is."""

import pytest

from tests.mutation.mutants import places
from tests.mutation.reasons import REASONS

pytestmark = pytest.mark.house


def test_every_reason_is_about_a_statement_that_there_is() -> None:
    """A reason whose function is gone, or reads otherwise now, excuses nothing; which module the function is in is all one."""
    words = {word_of(*key.split(": ")[:2]) for key in REASONS}
    there = places(words)
    assert [key for key in REASONS if key.partition(" -> ")[0] not in there] == []


def word_of(function: str, statement: str) -> str:
    """What is in the module of a function, or of a statement that is in none."""
    outermost, _, method = function.partition(".")
    return statement.split(" ")[0] if function == "-" else f"class {outermost}" if method else f"def {function}"
