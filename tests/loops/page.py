"""The page of the docs about the recorded loops, made from what their replay found."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from tests.loops.allowed import ALLOWED
from tests.loops.check import Outcome
from tests.loops.left_out import LEFT_OUT
from tests.loops.rows import ROWS

_HEAD = """# Recorded loops

`tests/loops` replays every complete tool loop of the recorded traffic. A loopback server answers with the recorded bytes, tools return the
recorded results, and each of our requests is compared with the one that the recorded client sent. Compared are the sequence of roles,
texts, media, calls (name and arguments), results, reasoning and signatures, and which result answers which call. So are the names of the
declared tools. Every id that the server gave goes back to it, and each request of a run begins with the one before it. Each loop must end
with the recorded final text, and each turn on the way with its own. This page is made from the outcome (`python -m tests.loops`); a test
compares.

| wire | loops | requests | one run | several runs | turn by turn | left out |
|---|---|---|---|---|---|---|
"""
_DRIVEN = ("one run", "several runs", "turn by turn", "left out")
_HOW = """
*One run*: one `invoke` or `stream` of a model with tools. *Several runs*: the recorded client's user spoke again. *Turn by turn*: between
two turns the recorded client did what no tool loop does. (It put messages of its own among the results, changed the tools or the system
prompt, executed a tool that was not declared or is the vendor's.) Each turn then starts from the recorded history, in which the assistant's
messages are those that we stored. A loop whose requests were not recorded is held to what its replies call for.

Each recorded request is also made from plain LangChain messages alone; reasoning, signatures and items of the vendor's own tools are then
left out on both sides.

## What may differ

Never compared: the order of keys, how JSON is spelled, ids that a client made, and settings (temperature, limits, tool choice, cache
marks). Besides:

| difference | why it may be | requests |
|---|---|---|
"""
_OUT = """
## Left out
"""


def page(replayed: Sequence[Outcome], histories: Sequence[Outcome]) -> str:
    """The page, made from the outcomes of the replayed loops and of the histories, both in the order of the table of wires."""
    lines = [_row(row.wire, outcome) for row, outcome in zip(ROWS, replayed, strict=True)]
    every = [*replayed, *histories]
    differences = [f"| {rule.what} | {rule.why} | {sum(outcome.needed[rule.what] for outcome in every)} |\n" for rule in ALLOWED]
    return "".join([_HEAD, *lines, _HOW, *differences, _OUT, *_left_out()])


def _row(wire: str, outcome: Outcome) -> str:
    driven = " | ".join(str(outcome.driven[how]) for how in _DRIVEN)
    return f"| {wire} | {outcome.loops} | {outcome.requests} | {driven} |\n"


def _left_out() -> list[str]:
    if not LEFT_OUT:
        return ["\nNone.\n"]
    return [
        f"\n{why[0].upper()}{why[1:]}:\n\n" + "".join(f"- `{name}`\n" for name, _ in group)
        for why, group in groupby(LEFT_OUT.items(), key=lambda item: item[1])
    ]
