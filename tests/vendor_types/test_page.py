"""docs/vendor_types.md says truly what becomes of each leaf that the vendors' types name."""

from __future__ import annotations

import asyncio
import re
from itertools import chain

import pytest

from tests.vendor_types.__main__ import verdicts
from tests.vendor_types.asking import Asked, asked, worst
from tests.vendor_types.installed import ASKED, FURTHER, ROWS
from tests.vendor_types.page import PAGE, REASONS, origin, page, read, read_events
from tests.vendor_types.reading import ECHO, IN_MESSAGE, KEPT, LOST, REFUSED, SOME, bodies, judged
from tests.vendor_types.rows import Row
from tests.vendor_types.samples import leaves
from tests.vendor_types.stream_events import BROKEN, WIRES, Wire, event_verdicts

_SAMPLED = 71
"""Of so many samples one is sent by default."""
_EVENTS_SAMPLED = 60
"""Of so many types of stream events one is sent by default."""
_IN_SOME = {"tool_choice", "toolConfig", "format", "compaction"}
"""Parameters that are not in every request of a run."""
_OF_THE_SDK = {"httpOptions", "shouldReturnHttpResponse", "automaticFunctionCalling", "automaticContinuation"}
_OF_GROQ = {"logit_bias", "logprobs", "top_logprobs", "store", "response_format"}
"""What Groq documents that it refuses; JSON output only beside tools."""
_LOST = [("Chat completions, chunks", "obfuscation")]
"""The leaves that are lost: the row, and the path."""
_RESULTS = ("function_call_output", "custom_tool_call_output", "program_output")
wires = pytest.mark.parametrize("wire", WIRES, ids=[wire.name for wire in WIRES])
rows = pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
every_row = pytest.mark.parametrize("row", [*ROWS, *ASKED], ids=[row.name for row in (*ROWS, *ASKED)])


def is_pinned(row: Row | Asked) -> bool:
    """Whether the installed package is the one that the page was written with."""
    return f"| {origin(row)} |" in PAGE.read_text(encoding="utf-8")


def has_reason(name: str, path: str) -> bool:
    """Whether the page says why a leaf is left out or lost."""
    return any(name == row and re.fullmatch(pattern, path) for row, pattern, _ in REASONS)


@every_row
def test_the_page_names_every_leaf(row: Row | Asked) -> None:
    """A leaf that a type has and the page has not, or the reverse, shows at the releases that the page names."""
    if is_pinned(row):
        samples = [sample for _, sample in row.samples()] if isinstance(row, Asked) else bodies(row)
        found = {leaf.path for leaf in chain.from_iterable(map(leaves, samples))}
        assert found == read(PAGE.read_text(encoding="utf-8"))[row.name].leaves.keys()


@pytest.mark.parametrize("name", FURTHER)
def test_a_further_sdk_is_read(name: str) -> None:
    """The rows of an SDK that the package does not need are tried where it is installed."""
    pytest.importorskip(name, reason="needs the extra `vendor-types`")
    assert {row.distribution for row in ROWS} & {row.distribution for row in ASKED} >= {name}


def test_what_is_not_tried_stays() -> None:
    """Where nothing is tried the page is written as it was, also the rows whose SDK is not installed."""
    text = PAGE.read_text(encoding="utf-8")
    assert page(text, {}, {}, {}) == text


def test_nothing_is_lost() -> None:
    """Of everything that the vendors' types name one leaf is lost, of a reply; what stays in the message has a reason, and no reason is
    given for what is sent."""
    known = read(PAGE.read_text(encoding="utf-8"))
    verdict_of = {(name, path): verdict for name, row in known.items() for path, verdict in row.leaves.items()}
    assert [one for one, verdict in verdict_of.items() if verdict == LOST] == _LOST
    left_out = {one for one, verdict in verdict_of.items() if verdict in (LOST, IN_MESSAGE, REFUSED)}
    assert [one for one in left_out if verdict_of[one] != REFUSED and not has_reason(*one)] == []
    assert all(any(name == row and re.fullmatch(pattern, path) for name, path in left_out) for row, pattern, _ in REASONS)


def test_little_is_refused() -> None:
    """No parameter, tool or part that a vendor's type knows is refused as unknown: what is refused is what an SDK does
    itself, results in another's place, and the name of an author where the vendor refuses it."""
    known = read(PAGE.read_text(encoding="utf-8"))
    refused = {re.split(r"[.<{\[]", path)[0] for row in known.values() for path, one in row.leaves.items() if one == REFUSED}
    assert refused == _OF_THE_SDK | _OF_GROQ | {"item", "message"}
    items = {path.split(".")[0].partition("[")[0] for path, one in known["Responses: input"].leaves.items() if one == REFUSED}
    assert items == {f"item<{kind}>" for kind in _RESULTS}


def test_little_is_in_some_requests_only() -> None:
    """A parameter is in every request of a run but for a demand to call a tool, what the vendor takes once, and a format."""
    known = read(PAGE.read_text(encoding="utf-8"))
    found = {re.split(r"[.<{\[]", path)[0] for row in known.values() for path, one in row.leaves.items() if one == SOME}
    assert found <= _IN_SOME


@pytest.mark.further
@rows
def test_the_page_is_true_of_a_sample(row: Row) -> None:
    """Some samples of every type, streamed and whole: each value is read where the page says so; at any release nothing else is lost."""
    known = read(PAGE.read_text(encoding="utf-8"))[row.name].leaves
    ways = tuple(way for way in row.ways if not way.startswith("a"))
    found = asyncio.run(judged(row, ways, every=_SAMPLED)).found
    assert found
    assert {path: worst(ways).replace(ECHO, KEPT) for path, ways in found.items()} == {path: known.get(path, KEPT) for path in found}


@pytest.mark.further
@pytest.mark.parametrize("row", ASKED, ids=[row.name for row in ASKED])
def test_the_page_is_true_of_a_request(row: Asked) -> None:
    """Some samples of every kind of request: each value is sent or refused where the page says so; at any release nothing else is lost."""
    known = read(PAGE.read_text(encoding="utf-8"))[row.name].leaves
    found = {path: worst(ways) for path, ways in asyncio.run(asked(row, ("stream" if row.streamed else "invoke",), every=_SAMPLED)).items()}
    assert found
    assert {path: one == LOST for path, one in found.items()} == {path: known.get(path, KEPT) == LOST for path in found}


@wires
def test_the_page_names_every_stream_event(wire: Wire) -> None:
    """Each type of event is on the page at the release that it names, and none is lost."""
    known = read_events(PAGE.read_text(encoding="utf-8"), wire)
    if is_pinned(wire.row):
        assert wire.trials().keys() == known.keys()
    assert LOST not in known.values()


@wires
def test_the_page_is_true_of_a_stream_event(wire: Wire) -> None:
    """Some types of events: readers find of them what the page says."""
    known = read_events(PAGE.read_text(encoding="utf-8"), wire)
    found = asyncio.run(event_verdicts(wire, every=_EVENTS_SAMPLED))
    assert found
    assert found == {kind: known.get(kind, found[kind]) for kind in found}


@pytest.mark.exhaustive
@wires
def test_the_page_is_true_of_stream_events(wire: Wire) -> None:
    """Every type of event: the page says of it what readers find; at other releases nothing else is lost, and no stream breaks."""
    found = asyncio.run(event_verdicts(wire))
    assert [kind for kind, one in found.items() if one in (BROKEN, LOST)] == []
    if is_pinned(wire.row):
        assert found == read_events(PAGE.read_text(encoding="utf-8"), wire)


@pytest.mark.exhaustive
@every_row
def test_the_page_is_true(row: Row | Asked) -> None:
    """Every sample, in every way: the page says the same of it; at other releases than the page names nothing else is lost."""
    found = {path: worst(ways).replace(ECHO, KEPT) for path, ways in verdicts(row).items()}
    assert [path for path, one in found.items() if one == LOST and (row.name, path) not in _LOST] == []
    if is_pinned(row):
        assert found == read(PAGE.read_text(encoding="utf-8"))[row.name].leaves
