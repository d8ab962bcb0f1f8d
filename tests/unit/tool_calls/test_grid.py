"""The generated grid of stream styles, read by the assembler: nothing runs that was not meant."""

import json
from collections import Counter
from collections.abc import Iterable

import pytest

from langchain_autotools.messages.calls import ToolCallRecord
from langchain_autotools.tool_calls import ToolCallAssembler
from tests.support.grid import ARGUMENTS, IDS, INDEX, LAYOUT, NAMES, TOOLS, Call, Case, Cell, cells, streams


def spelled(calls: Iterable[tuple[str, object]]) -> list[str]:
    """Calls as text, to be compared and counted."""
    return [json.dumps(call, sort_keys=True) for call in calls]


def verdict(found: list[ToolCallRecord], meant: list[Call]) -> str:
    """What became of a stream.

    exact: all calls as meant, in order; wrong: a call may run that was not meant, or once too often; flagged: some call is
    refused; lost: a call is missing and none is refused.
    """
    may_run = spelled((call.name, call.args) for call in found if call.args is not None)
    expected = spelled(meant)
    if Counter(may_run) - Counter(expected):
        return "wrong"
    if may_run == expected and len(found) == len(meant):
        return "exact"
    return "lost" if len(may_run) == len(found) < len(meant) else "flagged"


def read(case: Case, declared: Iterable[str] = TOOLS) -> list[ToolCallRecord]:
    """The calls that the assembler makes of a stream."""
    assembler = ToolCallAssembler(list(declared))
    for chunk in case.chunks:
        assembler.feed(chunk)
    return assembler.finish()


def check(cases: Iterable[Case], declared: Iterable[str] = TOOLS) -> None:
    """Nothing wrong anywhere; of the streams that say enough 99 in 100 exact."""
    clear: Counter[str] = Counter()
    unclear: Counter[str] = Counter()
    wrong = []
    for case in cases:
        found = verdict(read(case, declared), case.calls)
        (unclear if case.reason else clear)[found] += 1
        if found == "wrong":
            wrong.append(case.label)
    print(f"\nstreams that say enough: {dict(clear)}; the others: {dict(unclear)}")
    assert wrong == []
    assert clear["exact"] >= 0.99 * clear.total()


def test_a_stream_of_one_cell_in_seven() -> None:
    """A random stream of each of these cells."""
    check(streams(seed=1, every=7))


def test_calls_that_are_much_alike() -> None:
    """Small calls of few tools, whose fragments often fit into one another: nothing wrong runs, however little is told."""
    assert [case.label for case in streams(seed=1, every=7, alike=True) if verdict(read(case), case.calls) == "wrong"] == []


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_streams_of_every_cell(seed: int) -> None:
    """Forty random streams of each cell; half of them read without knowing the tools."""
    check(streams(seed=seed, per_cell=20))
    check(streams(seed=-seed, per_cell=20), declared=())


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_calls_that_are_much_alike(seed: int) -> None:
    """Forty streams of each cell, of calls that are much alike."""
    assert [case.label for case in streams(seed=seed, per_cell=40, alike=True) if verdict(read(case), case.calls) == "wrong"] == []


def test_the_grid_is_whole() -> None:
    """Every combination is a cell; the cells that are left out say why, and none whose fragments all carry an id or a telling index."""
    grid = cells()
    assert len(grid) == len(set(grid)) == len(IDS) * len(INDEX) * len(NAMES) * len(ARGUMENTS) * len(LAYOUT) * 2 * 2
    left_out = Counter(cell.reason for cell in grid)
    print("\n".join(f"{count} cells: {reason}" for reason, count in left_out.items()))
    assert left_out[None] > 0.85 * len(grid)
    assert not any(cell.reason for cell in grid if cell.ids == "all")
    assert not any(cell.reason for cell in grid if cell.index == "right" and cell.calls == "several")


def test_some_streams_have_two_meanings() -> None:
    """Two cells send the same fragments for different calls: no reader can do better than to refuse what only one of them means."""
    first = [{"id": "", "function": {"name": "get", "arguments": "{}"}}, {"id": "", "function": {"name": "get", "arguments": '{"q":1}'}}]
    two_calls = Cell("empty", "missing", "all", "whole", "in sequence")
    one_call = Cell("empty", "missing", "all", "{} placeholder", "in sequence", calls="one")
    found = read(Case(two_calls, "", [[fragment] for fragment in first], [], None))
    assert [(call.name, call.args) for call in found] == [("get", None), ("get", {"q": 1})]
    assert two_calls.reason is None
    assert one_call.reason is not None
