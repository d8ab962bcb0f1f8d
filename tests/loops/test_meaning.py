"""What the comparison of two requests sees, and what it forgives."""

import json
from collections import Counter
from typing import Any

import pytest

from tests.loops import read_anthropic, read_chat
from tests.loops.allowed import Said
from tests.loops.check import different
from tests.loops.meaning import Atom, paired
from tests.loops.records import Turn

REPLY = {"content": [{"type": "thinking", "thinking": "Hm.", "signature": "sealed"}]}
SAID = Said([Turn({}, 200, "application/json", json.dumps(REPLY).encode(), False, {}, frozenset())])


def asked(*content: dict[str, Any], results: tuple[str, ...] = ("one", "two")) -> list[Atom]:
    """A request whose assistant called two tools and got these results."""
    calls = [{"type": "tool_use", "id": f"id_{number}", "name": "f", "input": {"n": number}} for number in range(2)]
    answers = [{"type": "tool_result", "tool_use_id": f"id_{number}", "content": text} for number, text in enumerate(results)]
    turns = [("user", "Go on."), ("assistant", [*content, *calls]), ("user", answers)]
    return read_anthropic.read({"messages": [{"role": role, "content": said} for role, said in turns]})


def thinking(text: str, signature: str) -> dict[str, Any]:
    """A thought."""
    return {"type": "thinking", "thinking": text, "signature": signature}


def wrong(ours: list[Atom], theirs: list[Atom]) -> list[str]:
    """What differs."""
    return list(different(ours, theirs, SAID, Counter()))


@pytest.mark.parametrize(
    "ours",
    [
        asked(results=("two", "one")),
        asked({"type": "text", "text": "More."}),
        asked(thinking("Hm.", "invented")),
        asked(thinking("Invented.", "sealed")),
        asked(results=("one",)),
        asked()[:-1],
    ],
    ids=["results of another call", "more text", "another signature", "another thought", "a result less", "a message less"],
)
def test_what_is_seen(ours: list[Atom]) -> None:
    """Results at the wrong call, words that nobody said, state that the server did not send, and what is missing."""
    assert wrong(ours, asked())


def test_state_that_a_client_sent_back_must_go_back() -> None:
    """What the recorded client sent back, ours must send too; what it left out, ours may send."""
    assert wrong(asked(), asked(thinking("Hm.", "sealed")))
    assert wrong(asked(thinking("Hm.", "sealed")), asked()) == []


def test_results_are_paired_by_their_ids() -> None:
    """A result in another place answers the same call; ids that a client made say nothing else."""
    one, other = asked(), asked()
    renamed = [{"role": "assistant", "tool_calls": [{"id": name, "function": {"name": "f", "arguments": "{}"}} for name in "ab"]}]
    results = [{"role": "tool", "tool_call_id": name, "content": name} for name in "ba"]
    numbers = [atom.value.number for atom in read_chat.read({"messages": [*renamed, *results]}) if atom.kind == "result"]
    assert numbers == [1, 0]
    assert wrong(one, other) == []


def test_results_without_ids_answer_calls_of_their_name_in_order() -> None:
    """On a wire without ids the first open call of the name is answered."""
    calls = [{"role": "assistant", "tool_calls": [{"function": {"name": name, "arguments": {}}} for name in "fgf"]}]
    results = [{"role": "tool", "tool_name": name, "content": "r"} for name in "gff"]
    atoms = read_chat.read({"messages": [*calls, *results]})
    assert [atom.value.number for atom in atoms if atom.kind == "result"] == [1, 0, 2]
    assert paired(atoms) == atoms
