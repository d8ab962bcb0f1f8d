"""Fragments of calls of any form: the assembler gives calls, each with arguments that are an object or with the reason why not."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

from langchain_autotools.errors import StreamError
from langchain_autotools.providers._transport.reader import MISREAD, NDJSONDecoder, SSEDecoder, parse_json
from langchain_autotools.tool_calls import ToolCallAssembler
from tests.fuzz.spoiling import VALUES, changed
from tests.laws.ways import law
from tests.unit.tool_calls.test_tool_calls import fragment

SEEDS = st.integers(0, 2**32)
IDS = ("a", "b", "", "null", None)
TEXTS = (
    "",
    "{",
    "}",
    '{"q":',
    "1}",
    '{"q":1}',
    '{"q":1}{"q":2}',
    "null",
    "[]",
    '"x"',
    "\ud83d",
    '{"a":' * 300,
    "x" * 50,
    None,
    {"q": 1},
    {},
)


def fragments(chance: random.Random) -> list[Any]:
    """A stream of fragments: of the right form, or changed."""
    made: list[Any] = []
    for _ in range(chance.randrange(1, 9)):
        index = chance.choice([0, 0, 1, 2, -1, None, 10**12])
        one: Any = fragment(index, chance.choice(IDS), chance.choice(["f", "g", "", None, "functions.f"]), chance.choice(TEXTS))
        made.append(changed(chance, one) if chance.random() < 0.3 else one)
    return [chance.choice([one, [one], made[: chance.randrange(3)]]) if isinstance(one, dict) else [one] for one in made]


@law(40, 20_000)
def test_any_fragments_are_calls_or_none(data: st.DataObject) -> None:
    """A decoder's caller turns what a field of another type raises into a `StreamError`; nothing else is raised."""
    assembler = ToolCallAssembler(("f", "g"))
    try:
        for one in fragments(random.Random(data.draw(SEEDS))):
            assembler.feed(one)
        calls = assembler.finish()
    except MISREAD:
        return
    assert all((call.args is None) == (call.why is not None) for call in calls)
    assert all(call.args is None or isinstance(call.args, dict) for call in calls)


@law(40, 20_000)
def test_any_bytes_are_events(data: st.DataObject) -> None:
    """In pieces of any size; their data is JSON, or an error that says that it is none."""
    chance = random.Random(data.draw(SEEDS))
    for decoder in (SSEDecoder(), NDJSONDecoder()):
        pieces = [chance.randbytes(chance.randrange(40)) for _ in range(chance.randrange(6))]
        pieces += [str(chance.choice(VALUES)).encode("utf-8", "surrogatepass") + chance.choice([b"\n", b"\r\n\r\n", b""])]
        events = [event for piece in pieces for event in decoder.feed(piece)] + decoder.flush()
        for name, found in events:
            assert name is None or isinstance(name, str)
            try:
                parse_json(found)
            except StreamError as error:
                assert "not JSON" in str(error)
