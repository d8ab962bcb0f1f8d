"""Every recorded tool loop, replayed: our requests say what the recorded client's said, and each loop ends with the recorded text.

What may differ is in docs/recorded_loops.md, which is made from the same list (allowed.py), as are the loops that are left out.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.loops.allowed import ALLOWED
from tests.loops.check import histories, outcome_of, replayed
from tests.loops.left_out import LEFT_OUT
from tests.loops.page import page
from tests.loops.records import Loop, loops
from tests.loops.replay import Player
from tests.loops.rows import ROWS, Row
from tests.support.recorded import one_of_each

over_every_wire = pytest.mark.parametrize("row", ROWS, ids=[row.wire for row in ROWS])


@pytest.fixture(scope="module")
def recorded(wire_folder: Path) -> tuple[Loop, ...]:
    """All recorded loops."""
    return loops(wire_folder)


def styles(loop: Loop) -> set[Any]:
    """What a loop is an example of: each tag of its turns, of its server."""
    return {(loop.wire, loop.server, tag) for turn in loop.turns for tag in turn.tags}


some_or_all = pytest.mark.parametrize("amount", ["some", pytest.param("all", marks=pytest.mark.exhaustive)])


@some_or_all
@over_every_wire
def test_loops_run_as_recorded(recorded: tuple[Loop, ...], row: Row, amount: str) -> None:
    """Each request says what the recorded one said, each reply is read as it was meant, and the loop ends with the recorded text."""
    outcome = replayed(row, recorded if amount == "all" else one_of_each(recorded, styles))
    assert outcome.wrong == {}
    assert outcome.needlessly_left_out == []
    assert outcome.driven["one run"] > outcome.loops * 0.7


@pytest.mark.further
@some_or_all
@over_every_wire
def test_loops_run_asynchronously_whatever_the_pieces(recorded: tuple[Loop, ...], row: Row, amount: str) -> None:
    """So they do asynchronously, with replies that come in pieces of any length: one loop of each server and style, or all."""
    chosen = recorded if amount == "all" else one_of_each(recorded, styles)
    with asyncio.Runner() as runner, Player(cut=True, runner=runner) as player:
        assert outcome_of(row, chosen, player).wrong == {}


@some_or_all
@over_every_wire
def test_histories_of_plain_messages_are_sent_as_recorded(recorded: tuple[Loop, ...], row: Row, amount: str) -> None:
    """The history of each recorded request, made of plain LangChain messages, gives a request that says the same."""
    outcome = histories(row, recorded if amount == "all" else one_of_each(recorded, styles))
    assert outcome.wrong == {}
    assert outcome.requests >= outcome.loops


@pytest.mark.exhaustive
def test_the_page_tells_what_was_found(recorded: tuple[Loop, ...]) -> None:
    """docs/recorded_loops.md states what may differ, how often it did, and what is left out: `python -m tests.loops` writes it."""
    runs, sent = [replayed(row, recorded) for row in ROWS], [histories(row, recorded) for row in ROWS]
    assert (REPOSITORY / "docs" / "recorded_loops.md").read_text(encoding="utf-8") == page(runs, sent)
    wires = {row.wire for row in ROWS}
    assert {loop.id for loop in recorded if loop.wire in wires} >= LEFT_OUT.keys()
    idle = [rule.what for rule in ALLOWED if not any(outcome.needed[rule.what] for outcome in [*runs, *sent])]
    assert idle == [] or not wires >= {loop.wire for loop in recorded}, "nothing needs these allowed differences"
