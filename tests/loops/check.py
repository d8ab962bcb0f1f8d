"""What is wrong with a replayed loop, and which of the allowed differences it needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from tests.loops.allowed import ALLOWED, Said, compared, settled
from tests.loops.left_out import LEFT_OUT
from tests.loops.meaning import Atom
from tests.loops.records import Loop
from tests.loops.replay import Player, Replayed, plain_requests, replay
from tests.loops.rows import Row


@dataclass
class Outcome:
    """What came of the loops of one wire."""

    loops: int = 0
    requests: int = 0
    driven: Counter[str] = field(default_factory=Counter)
    needed: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, list[str]] = field(default_factory=dict)
    needlessly_left_out: list[str] = field(default_factory=list)


@cache
def replayed(row: Row, loops: tuple[Loop, ...]) -> Outcome:
    """What comes of the loops of a wire, replayed once."""
    with Player() as player:
        return outcome_of(row, loops, player)


@cache
def histories(row: Row, loops: tuple[Loop, ...]) -> Outcome:
    """What comes of the histories of a wire's requests, each sent once."""
    with Player() as player:
        return outcome_of_histories(row, loops, player)


def outcome_of(row: Row, loops: Sequence[Loop], player: Player) -> Outcome:
    """Replay all loops of a wire."""
    found = Outcome()
    for loop in loops:
        if loop.wire == row.wire:
            _note(found, loop, row, player)
    return found


def _note(found: Outcome, loop: Loop, row: Row, player: Player) -> None:
    found.loops += 1
    try:
        replayed = replay(loop, row, player)
        wrong = [*_wrong_texts(loop, replayed), *_wrong_requests(loop, row, replayed, found.needed), *_wrong_beginnings(loop, replayed)]
    except Exception as error:
        wrong = [repr(error)]
    if loop.id in LEFT_OUT:
        found.driven["left out"] += 1
        found.needlessly_left_out += [] if wrong else [loop.id]
        return
    found.requests += len(loop.turns)
    if not wrong:
        found.driven[replayed.driven] += 1
    else:
        found.wrong[loop.id] = wrong


def _wrong_texts(loop: Loop, replayed: Replayed) -> Iterator[str]:
    wanted = [turn.expected["text"] for turn in loop.turns]
    if replayed.texts != wanted:
        yield f"texts: {replayed.texts} instead of {wanted}"


def _wrong_requests(loop: Loop, row: Row, replayed: Replayed, needed: Counter[str]) -> Iterator[str]:
    if len(replayed.ours) != len(replayed.theirs):
        yield f"{len(replayed.ours)} requests instead of {len(replayed.theirs)}"
    for number, (ours, theirs) in enumerate(zip(replayed.ours, replayed.theirs, strict=False)):
        said = said_before(loop, replayed, number)
        yield from (f"request {number}: {text}" for text in different(ours, theirs, said, needed))
        yield from (f"request {number}: {text}" for text in _wrong_ids(loop, number, ours))
        request = loop.turns[number].request
        wanted = sorted(tool.name for tool in row.tools(request)) if request else []
        declared = sorted(tool.name for tool in row.tools(replayed.bodies[number]))
        if wanted and declared != wanted:
            yield f"request {number}: declares {declared} instead of {wanted}"


def _wrong_beginnings(loop: Loop, replayed: Replayed) -> Iterator[str]:
    """Each request of a run begins with the one before it, unless the server keeps that."""
    for run in replayed.runs:
        for number in run[1:]:
            before, after = replayed.ours[number - 1 : number + 1]
            if after[: len(before)] != before and not loop.turns[number].request.get("previous_response_id"):
                yield f"request {number} does not begin with the one before it"


def said_before(loop: Loop, replayed: Replayed, number: int) -> Said:
    """What the server has said before a request."""
    request = loop.turns[number].request
    before = replayed.theirs[number - 1] if number else ()
    return Said(loop.turns[:number], before, bool(request.get("previous_response_id")))


def different(ours: list[Atom], theirs: list[Atom], said: Said, needed: Counter[str]) -> Iterator[str]:
    """The first thing that two requests say differently; counts the allowed differences that they need."""
    if [compared(atom) for atom in ours] == [compared(atom) for atom in theirs]:
        return
    mine, recorded = settled(ours, theirs, said)
    if mine != recorded:
        place = next((place for place, (one, other) in enumerate(zip(mine, recorded, strict=False)) if one != other), None)
        place = min(len(mine), len(recorded)) if place is None else place
        yield f"{mine[place : place + 1]} instead of {recorded[place : place + 1]}"
        return
    for rule in ALLOWED:
        one, other = settled(ours, theirs, said, [kept for kept in ALLOWED if kept is not rule])
        needed[rule.what] += one != other


def _wrong_ids(loop: Loop, number: int, ours: list[Atom]) -> Iterator[str]:
    """Ids that the server gave go back to it, each once."""
    given = Counter(call["id"] for turn in loop.turns[:number] for call in turn.expected["tool_calls"] if call["id"])
    sent = Counter(atom.value.id for atom in ours if atom.kind == "call" and atom.value.id)
    if repeated := [name for name, count in sent.items() if count > 1]:
        yield f"ids sent twice: {repeated}"
    whole = not loop.turns[number].request.get("previous_response_id")
    if whole and (lost := [name for name, count in given.items() if count == 1 and not sent[name]]):
        yield f"ids not sent back: {lost}"


def outcome_of_histories(row: Row, loops: Sequence[Loop], player: Player) -> Outcome:
    """Encode the history of every recorded request from plain LangChain messages."""
    found = Outcome()
    for loop in loops:
        if loop.wire != row.wire or loop.id in LEFT_OUT:
            continue
        found.loops += 1
        for ours, theirs in plain_requests(loop, row, player):
            found.requests += 1
            for text in different(ours, without_state(theirs), Said(()), found.needed):
                found.wrong.setdefault(loop.id, []).append(f"request {found.requests}: {text}")
    return found


def without_state(atoms: list[Atom]) -> list[Atom]:
    """What can be said without having seen the replies: no reasoning, no signature, no item of the vendor's own tools.

    A custom tool's free text is the only argument of a function, as LangChain has it.
    """
    kept = [atom for atom in atoms if atom.role != "assistant" or atom.kind in ("text", "media", "call")]
    return [_as_function(atom) if atom.kind == "call" and isinstance(atom.value.arguments, str) else atom for atom in kept]


def _as_function(atom: Atom) -> Atom:
    return replace(atom, value=replace(atom.value, arguments={"__arg1": atom.value.arguments}))
