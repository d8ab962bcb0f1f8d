"""Law 2 where a stream was cut: of streams that are cut at the same byte, whoever reads them gets the same run message."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, message_to_dict

from langchain_autotools import new_messages
from langchain_autotools.messages.metadata import is_cut_reply
from tests.contract.talk import whole
from tests.failover.vendors import VENDORS, model_of
from tests.laws.ways import run
from tests.support.failing import collected
from tests.support.script import Cut, Turn

TEXT = "Let me look at the first of both places now, and then at the other one."
REST = "and that is all."
THINKS: Mapping[str, Any] = {"anthropic": {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2048}}
MADE_HERE = frozenset({"id", "index", "generation_id", "created", "created_at", "origin", "system_fingerprint"})
PROVIDERS = {"openai": "openai", "anthropic": "anthropic", "google": "google_genai", "ollama": "ollama"}
PAIRS = list(itertools.permutations(VENDORS, 2))


def look(city: str) -> str:
    """Look at a city."""
    return "21"


def plain(value: Any) -> Any:
    """Data without what is made anew for each run."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if key not in MADE_HERE}
    return [plain(one) for one in value] if isinstance(value, list) else value


def play(pair: tuple[str, str], byte: int, way: str, **fields: Any) -> tuple[list[Any], AIMessage]:
    """The new messages of a run whose first vendor is cut behind a byte of its only reply, and its run message, as a reader gets them."""
    first, second = pair
    reply, rest = Turn(TEXT, reasoning="I think about it for a while."), Turn(REST, reasoning="Hm.")
    with VENDORS[first][0](lambda _: Cut(reply, byte)) as down, VENDORS[second][0](lambda _: rest) as other:
        fallback = model_of(second, other, **THINKS.get(second, {}))
        model = model_of(first, down, fallbacks=[fallback], tools=[look], **THINKS.get(first, {}), **fields)
        if way == "events":
            _, message = collected(model.stream([HumanMessage("Go.")]))
            made = new_messages(message)
        else:
            ran = run(way, model, [HumanMessage("Go.")])
            assert ran.message is not None, ran.error
            made, message = ran.new, ran.message
        assert down.rejections == other.rejections == []
    return made, whole(model, message)


def check(pair: tuple[str, str], byte: int, **fields: Any) -> bool:
    """Compare the readers of a run; returns whether it was cut after text."""
    made, message = play(pair, byte, "stream", **fields)
    assert "".join(one.text for one in made) == message.text.replace("\n", "")
    assert message.response_metadata["model_provider"] in {PROVIDERS[name] for name in pair}
    assert [plain(message_to_dict(one)) for one in new_messages(message)] == [plain(message_to_dict(one)) for one in made]
    for way in ("astream", "events"):
        assert plain(message_to_dict(play(pair, byte, way, **fields)[1])) == plain(message_to_dict(message)), way
    assert play(pair, byte, "invoke", **fields)[1].text in (TEXT, REST)  # what has not left is no part of a run
    return any(is_cut_reply(one) for one in made)


@pytest.mark.parametrize("place", range(0, len(PAIRS), 2), ids=["-".join(pair) for pair in PAIRS[::2]])
def test_whoever_reads_a_cut_stream_gets_the_same(place: int) -> None:
    """In the middle of reasoning or of text, by turns, also as v1 blocks."""
    check(PAIRS[place], (700, 1300)[place // 2 % 2], **({"output_version": "v1"} if place % 3 == 0 else {}))


@pytest.mark.exhaustive
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_whoever_reads_it_anywhere(pair: tuple[str, str]) -> None:
    """Behind every seventh byte or so."""
    assert any([check(pair, byte, **fields) for byte in range(0, 2600, 67) for fields in ({}, {"output_version": "v1"})])
