"""docs/vendor_types.md says truly what becomes of each leaf that the vendors' types name."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from itertools import chain

import pytest

from tests.vendor_types.page import PAGE, is_lost, page, read
from tests.vendor_types.reading import bodies, judged
from tests.vendor_types.rows import ROWS, Row
from tests.vendor_types.samples import leaves

_SAMPLED = 71
"""Of so many samples one is sent by default."""
_PADDING = ("Chat completions, chunks", "obfuscation")
"""Random text in each event of a stream, which a whole reply has not: what is kept of a stream is kept of the whole reply too."""
rows = pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])


def is_pinned(row: Row) -> bool:
    """Whether the installed package is the one that the page was written with."""
    return f"| {row.distribution} {version(row.distribution)}, `{row.type.__name__}` |" in PAGE.read_text(encoding="utf-8")


@rows
def test_the_page_names_every_leaf(row: Row) -> None:
    """A leaf that a type has and the page has not, or the reverse, shows at the releases that the page names."""
    if is_pinned(row):
        found = {leaf.path for leaf in chain.from_iterable(map(leaves, bodies(row)))}
        assert found == read(PAGE.read_text(encoding="utf-8"))[row.name].leaves.keys()


def test_nothing_is_lost() -> None:
    """What the page calls lost is the padding of streams alone."""
    known = read(PAGE.read_text(encoding="utf-8"))
    assert [(name, path) for name, row in known.items() for path, lost in row.leaves.items() if lost] == [_PADDING]


@rows
def test_the_page_is_true_of_a_sample(row: Row) -> None:
    """Some samples of every type, streamed and whole: each value is read where the page says so; at any release nothing else is lost."""
    known = read(PAGE.read_text(encoding="utf-8"))[row.name].leaves
    ways = tuple(way for way in row.ways if not way.startswith("a"))
    found = asyncio.run(judged(row, ways, every=_SAMPLED)).found
    assert found
    assert {path: is_lost(ways) for path, ways in found.items()} == {path: known.get(path, False) for path in found}


@pytest.mark.exhaustive
def test_the_page_is_true() -> None:
    """Every sample, in every way: the page comes out again; at other releases than the page names nothing else is lost."""
    text = PAGE.read_text(encoding="utf-8")
    known = read(text)
    found = {row.name: asyncio.run(judged(row)).found for row in ROWS}
    lost = [(name, path) for name, verdicts in found.items() for path, ways in verdicts.items() if is_lost(ways)]
    assert lost == [_PADDING]
    if all(map(is_pinned, ROWS)):
        assert page(found, {name: row.partner for name, row in known.items()}) == text
