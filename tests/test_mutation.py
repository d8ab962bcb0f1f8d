"""The reasons why mutants may live are about code that there is."""

from tests.mutation.mutants import places
from tests.mutation.reasons import REASONS


def test_every_reason_is_about_a_statement_that_there_is() -> None:
    """A reason whose function has moved, or reads otherwise now, excuses nothing: it moves along, or goes."""
    there = set[str]().union(*map(places, {key.split(" ")[0] for key in REASONS}))
    assert [key for key in REASONS if key.partition(" -> ")[0] not in there] == []
