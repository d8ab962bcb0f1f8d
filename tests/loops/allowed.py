"""What may differ between a recorded request and ours. Everything else must be the same.

Each difference is settled in both requests before they are compared. A difference that no loop needs fails the tests, as does a loop that
differs in any other way. The table in docs/recorded_loops.md is made from this list.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tests.loops.meaning import FAILURE, WRAPPERS, Atom, Call, Result, plain
from tests.loops.records import Turn

Atoms = list[Atom]
Compared = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Said:
    """What the server has said before a request, the request before it and, of a request that refers to that reply, its id."""

    turns: Sequence[Turn]
    asked: Sequence[Atom] = ()
    refers: bool = False

    @cached_property
    def _texts(self) -> list[str]:
        """Every string of the replies; those of one key joined, since streams send them in pieces."""
        found: list[str] = []
        for turn in self.turns:
            pieces: dict[str, list[str]] = defaultdict(list)
            for event in _events(turn):
                for key, text in _strings(event):
                    pieces[key].append(text)
            found += ["".join(texts) for texts in pieces.values()]
        return found

    def holds(self, atom: Atom) -> bool:
        """Whether every text of an atom came from the server."""
        value = atom.value
        if atom.kind in ("signature", "item") and value.startswith("{"):
            value = json.loads(value)
        return all(any(form in said for said in self._texts for form in _forms(text)) for _, text in _strings(value))


def _events(turn: Turn) -> Iterator[Any]:
    text = turn.body.decode()
    try:
        yield json.loads(text)
    except ValueError:  # a stream of events or lines
        lines = (line.removeprefix("data:").strip() for line in text.split("\n"))
        yield from (json.loads(line) for line in lines if line.startswith("{"))


def _forms(text: str) -> tuple[str, ...]:
    """A text, and how it is inside a JSON text that a stream sent in pieces."""
    return text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]


def _strings(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _strings(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, key)


def compared(atom: Atom) -> tuple[Any, ...]:
    """An atom without what only its wire or its client calls it: ids, and the numbers of messages."""
    value = atom.value
    if isinstance(value, Call):
        value = (value.number, value.name, plain(value.arguments))
    elif isinstance(value, Result):
        value = (value.number, value.parts, value.error)
    return atom.role, atom.kind, value


@dataclass(frozen=True)
class Allowed:
    """A difference that is allowed: what it is, why, and how both requests (ours first) are made alike in it."""

    what: str
    why: str
    settle: Callable[[Atoms, Atoms, Said], tuple[Atoms, Atoms]]


def each(change: Callable[[Atoms], Atoms]) -> Callable[[Atoms, Atoms, Said], tuple[Atoms, Atoms]]:
    """A difference that each request is rid of by itself."""
    return lambda ours, theirs, said: (change(ours), change(theirs))


# ---------------------------------------------------------------------------------------------- what the client left out or wrote anew


def _rewritten(ours: Atoms, theirs: Atoms, said: Said) -> tuple[Atoms, Atoms]:
    """State that is a JSON object, and the client's own version of it, if every word of ours is the server's."""
    alike = Counter(map(compared, filter(_is_object, ours))) & Counter(map(compared, filter(_is_object, theirs)))
    own = [atom for atom in ours if _is_object(atom) and not alike[compared(atom)]]
    others = [atom for atom in theirs if _is_object(atom) and not alike[compared(atom)]]
    if not (others and any(map(_is_object, ours)) and all(map(said.holds, own))):
        return ours, theirs
    return [atom for atom in ours if atom not in own], [atom for atom in theirs if atom not in others]


def _is_object(atom: Atom) -> bool:
    return atom.role == "assistant" and atom.kind in ("signature", "item") and atom.value.startswith("{")


def _unsent(ours: Atoms, theirs: Atoms, said: Said) -> tuple[Atoms, Atoms]:
    sent = Counter(compared(atom) for atom in theirs)
    kept: Atoms = []
    for atom in ours:
        opaque = atom.role == "assistant" and atom.kind in ("reasoning", "signature", "item")
        if opaque and not sent[compared(atom)] and said.holds(atom):
            continue
        sent[compared(atom)] -= 1
        kept.append(atom)
    return kept, theirs


def _repeated(ours: Atoms, theirs: Atoms, said: Said) -> tuple[Atoms, Atoms]:
    kept: Atoms = []
    for atom in theirs:
        if atom.kind != "signature" or not any(atom.value == earlier.value for earlier in kept):
            kept.append(atom)
    return ours, kept


def _tagged(ours: Atoms, theirs: Atoms, said: Said) -> tuple[Atoms, Atoms]:
    """Thoughts between `<think>` and `</think>`: those that the client cut out of a text, and those that it made a text of."""
    cut = {atom.value.strip() for atom in theirs if atom.kind == "reasoning"}
    kept: Atoms = []
    for atom in ours:
        thought, tag, text = atom.value.partition("</think>") if _is_spoken(atom) else ("", "", "")
        if tag and thought.strip() in cut:
            kept += [replace(atom, kind="reasoning", value=thought.strip())]
            kept += [replace(atom, value=text.strip())] if text.strip() else []
        else:
            kept.append(atom)
    ours, theirs = ([atom for atom in atoms if not (_is_spoken(atom) and _is_thought(atom, said))] for atoms in (kept, theirs))
    return ours, theirs


def _is_spoken(atom: Atom) -> bool:
    return atom.role == "assistant" and atom.kind == "text"


def _is_thought(atom: Atom, said: Said) -> bool:
    inner = atom.value.strip().removeprefix("<think>").removesuffix("</think>")
    return len(inner) == len(atom.value.strip()) - len("<think></think>") and said.holds(replace(atom, value=inner.strip()))


# ---------------------------------------------------------------------------------------------- spelling


def _joined(atoms: Atoms) -> Atoms:
    found: Atoms = []
    for atom in atoms:
        last = found[-1] if found else None
        if last and atom.kind == last.kind == "text" and (atom.role, atom.message) == (last.role, last.message):
            found[-1] = replace(last, value=last.value + atom.value)
        else:
            found.append(atom)
    return found


def _asked_again(ours: Atoms, theirs: Atoms, said: Said) -> tuple[Atoms, Atoms]:
    again = {compared(atom) for atom in said.asked} if said.refers else set()
    return ours, [atom for atom in theirs if compared(atom) not in again]


def _media_below(ours: Atoms, theirs: Atoms, said: Said) -> tuple[Atoms, Atoms]:
    """Media of results, and the user's message below the results that holds them."""
    inside = [part[1] for atom in theirs if atom.kind == "result" for part in atom.value.parts if part[0] == "media"]
    below = {atom.message for atom in ours if atom.role == "user" and atom.kind == "media" and atom.value in inside}
    if not below:
        return ours, theirs
    return [atom for atom in ours if atom.message not in below], [_without_media(atom) for atom in theirs]


def _plain_results(atoms: Atoms) -> Atoms:
    return [
        replace(atom, value=replace(atom.value, parts=tuple(map(_value, atom.value.parts)))) if atom.kind == "result" else atom
        for atom in atoms
    ]


def _value(part: tuple[str, Any]) -> tuple[str, Any]:
    """What a result's JSON says, without the key around it; a text by itself is its own JSON."""
    if part[0] != "data":
        return ("data", plain(part[1])) if part[0] == "text" else part
    said = json.loads(part[1])
    key, value = next(iter(said.items())) if len(said) == 1 else ("", said)
    if key in WRAPPERS:
        said = value
    return "failure" if key == FAILURE else "data", plain(_from_text(said))


def _from_text(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _placeholder(ours: Atoms, theirs: Atoms, said: Said) -> tuple[Atoms, Atoms]:
    dummy = "skip_thought_signature_validator".replace("_", "/")
    return [atom for atom in ours if atom.value != dummy], [atom for atom in theirs if atom.value != dummy]


def _without_media(atom: Atom) -> Atom:
    if atom.kind != "result":
        return atom
    return replace(atom, value=replace(atom.value, parts=tuple(part for part in atom.value.parts if part[0] != "media")))


ALLOWED = (
    Allowed(
        "reasoning details and items of the vendor's own tools that the recorded client wrote anew or in part",
        "ours go back as the server wrote them",
        _rewritten,
    ),
    Allowed(
        "reasoning, signatures and items of the vendor's own tools that the recorded client did not send back",
        "ours go back as the server wrote them",
        _unsent,
    ),
    Allowed("a signature that the recorded client repeated on further calls", "ours goes back once, as it came", _repeated),
    Allowed(
        "thoughts between `<think>` tags, which the recorded client cut out of a text or made a text of",
        "ours go back as the server wrote them",
        _tagged,
    ),
    Allowed("one text in one part or in several", "the vendors join them", each(_joined)),
    Allowed(
        "media that a tool returned: in its result, or in a message of the user's below the results",
        "chat completions takes text in results; some compatible servers take more",
        _media_below,
    ),
    Allowed(
        "a result's JSON as a value or as its text, and the name of the key around it",
        "a tool message of LangChain's holds text; the vendor leaves the key to the client",
        each(_plain_results),
    ),
    Allowed(
        "the vendor's placeholder for a signature that is not known",
        "without one its newest models refuse calls that they did not write",
        _placeholder,
    ),
    Allowed(
        "messages before the reply that `previous_response_id` names, which the recorded client sent once more",
        "the server has them",
        _asked_again,
    ),
)


def settled(ours: Atoms, theirs: Atoms, said: Said, rules: Sequence[Allowed] = ALLOWED) -> tuple[Compared, Compared]:
    """Both requests, made alike in what may differ."""
    for rule in rules:
        ours, theirs = rule.settle(ours, theirs, said)
    return [compared(atom) for atom in ours], [compared(atom) for atom in theirs]
