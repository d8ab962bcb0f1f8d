"""Recorded tool loops of the presets' vendors, replayed through their classes: our requests say what the recorded client's said."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.loops.check import outcome_of, outcome_of_histories
from tests.loops.records import Loop, loops
from tests.loops.replay import Player
from tests.loops.rows import ROWS
from tests.support.recorded import one_of_each
from tests.support.vendors import VENDORS, Vendor

WIRE = "openai-chat"
SERVERS = {"mistralai": "mistral"}
RECORDED = [vendor for vendor in VENDORS if vendor.name in ("mistralai", "groq", "openrouter", "deepseek", "xai")]
"""The vendors of which there are recorded loops."""


def styles(loop: Loop) -> set[str]:
    """What a loop is an example of: each tag of its turns."""
    return {tag for turn in loop.turns for tag in turn.tags}


@pytest.mark.parametrize("amount", ["some", pytest.param("all", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("vendor", RECORDED, ids=[vendor.name for vendor in RECORDED])
def test_loops_run_as_recorded(wire_folder: Path, vendor: Vendor, amount: str) -> None:
    """Each loop ends with the recorded text, and its requests and plain histories differ only in what tests/loops allows."""

    def model(address: str, loop: Loop, **more: Any) -> Any:
        return vendor.chat_model(**{"model": loop.model, "base_url": f"{address}/v1", "api_key": "key", "max_retries": 0, **more})

    server = SERVERS.get(vendor.name, vendor.name)
    own = [loop for loop in loops(wire_folder) if loop.wire == WIRE and loop.server == server]
    row = replace(next(row for row in ROWS if row.wire == WIRE), model=model)
    assert len(own) > 5
    chosen = own if amount == "all" else one_of_each(own, styles)
    with Player() as player:
        assert outcome_of(row, chosen, player).wrong == {}
        assert outcome_of_histories(row, chosen, player).wrong == {}
