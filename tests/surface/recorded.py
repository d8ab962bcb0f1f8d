"""Recorded replies of real servers before both classes: what differs, by path and kind, and what no rule of `RECORDED` covers.

There is no stored list: what was recorded is read where it lies, and nothing of its content is kept or printed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from tests.partner.suites import REPOSITORY, Result
from tests.partner.verdicts import judge
from tests.support.recorded import Recording, recordings
from tests.support.script import Raw
from tests.surface.differences import THERE, Difference, unequal
from tests.surface.listed import alone
from tests.surface.observed import ABSENT, LONG, Seen, of_message, plain
from tests.surface.pairs import OURS, PAIRS, THEIRS, Pair, Stage
from tests.surface.replied import WAYS, outcome
from tests.surface.rules import RECORDED

FOLDER = REPOSITORY.parent / "shared" / "wire"
_WIRES = {"chat": "openai-chat", "responses": "openai-responses"}
_SERVERS = {"mistralai": "mistral"}
"""Names of servers in the recordings, where they are not the pair's."""
_OWN_WIRES = ("anthropic", "google", "ollama")


def recordings_of(pair: Pair, folder: Path) -> list[Recording]:
    """A pair's: those of its vendor; of OpenAI's wires, ChatOpenAI's are those that no other pair has."""
    wire = pair.wire.removeprefix("azure-")
    found = recordings(folder, _WIRES.get(wire, wire))
    if wire in _OWN_WIRES:
        return list(found)
    name = _server(pair)
    others = {_server(one) for one in PAIRS if one.wire.removeprefix("azure-") == wire} - {"openai"}
    return [one for one in found if (one.server not in others if name == "openai" else one.server == name)]


def _server(pair: Pair) -> str:
    return _SERVERS.get(pair.name, pair.name.removesuffix("-responses"))


def compared(folder: Path, pairs: Iterable[Pair] = PAIRS) -> Counter[Difference]:
    """How often each difference was found among all recordings."""
    with alone():
        return Counter(one for pair in pairs if pair.wire for one in _of_pair(pair, recordings_of(pair, folder)))


def _of_pair(pair: Pair, records: Iterable[Recording]) -> Iterator[Difference]:
    with Stage(pair, THEIRS) as theirs, Stage(pair, OURS) as ours:
        for record, version in ((record, version) for record in records for version in ("", " v1")):
            way = "stream" if record.streamed else "invoke"
            seen = [_seen(stage, record, way, version) for stage in (theirs, ours)]
            for path, one, other in unequal(*(_with_parents(*seen, side) for side in seen)):
                where = _shortened(path)
                yield Difference("recorded", where, *_kinds(where, one, other), pair.name, _case(record), f"{way}{version}")


def _seen(stage: Stage, record: Recording, way: str, version: str) -> Seen:
    """What one side makes of a recording, asked for as many choices as it was asked for then."""
    stage.reply = Raw(record.pieces("arrived"), record.content_type or "application/json", record.status)
    attempts = 1 if stage.pair.wire == "google" and stage.side == THEIRS else 0  # Google's class counts attempts
    choices = {"n": record.request["n"]} if record.request.get("n", 1) > 1 else {}
    model = stage.model(max_retries=attempts, **({"output_version": "v1"} if version else {}))
    return outcome(lambda: WAYS[way](model.bind(**choices) if choices else model), lambda message: of_message(message, exact))


def _with_parents(theirs: Seen, ours: Seen, side: Seen) -> Seen:
    """A side, with the mappings and blocks that either side has: one that is missing is told by what is missing in it."""
    if "raises" in theirs or "raises" in ours:
        return side
    parents = {".".join(parts[:depth]) for parts in (path.split(".") for path in (*theirs, *ours)) for depth in (1, 2)[: len(parts) - 1]}
    return {**dict.fromkeys(parents, "a mapping"), **side}


def exact(value: object) -> str:
    """A leaf as text: a long one by its digest, of equal numbers one."""
    if isinstance(value, str) and len(value) > LONG:
        return f'"{sha256(value.encode()).hexdigest()}"'
    return plain(int(value) if isinstance(value, float) and value.is_integer() else value)


_UNDONE = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL")
"""Ends of a turn whose calls may not run, of one vendor."""


def _case(record: Recording) -> str:
    """What a recording is a case of."""
    expected = record.expected
    calls = expected["tool_calls"]
    words = {
        "error": record.failed,
        "cut": not record.ended_well or expected["finish_reason"] in _UNDONE,
        "refusal": expected["refusal"],
        "vendor's tools": expected.get("server_tools"),
        "thinking": expected["reasoning"] or expected["signatures"],
        "call": calls,
        "unreadable": any(not call["args_ok"] for call in calls),
        "custom": any(call["kind"] == "custom" for call in calls),
        "text": expected["text"],
    }
    return " ".join(word for word, there in words.items() if there) or "empty"


# ---------------------------------------------------------------------------------------------- kinds in place of contents

_DEEP = {"additional_kwargs": 2, "response_metadata": 2}
"""How many names of a path are kept, where it is not three."""
_BLOCKS = ("content", "content_blocks", "tool_calls", "invalid_tool_calls")
_WORDS = ("finish_reason", "model_provider", "service_tier", "type")
"""Keys whose values are the vendor's words, nobody's content."""
_RUNS = ("lc_run", "run", "none")
"""Beginnings of ids that no vendor gave."""


def _shortened(path: str) -> str:
    """A path without what a tool's arguments or a result hold."""
    names = path.split(".")
    return ".".join(names[: _DEEP.get(names[0], 3)])


def _kinds(path: str, theirs: str, ours: str) -> tuple[str, str]:
    """Of what kind both values are, and how the second differs; of lists the types that the other one lacks."""
    if path in _BLOCKS and ABSENT not in (theirs, ours) and not (theirs.startswith('"') and ours.startswith('"')):
        one, other = (Counter(_types(value)) for value in (theirs, ours))
        return _words(one - other), _words(other - one) if one != other else "in another order"
    first, second = _kind(path, theirs), _kind(path, ours)
    if first != second:
        return first, second
    if first == "number":
        return first, "more" if float(ours) > float(theirs) else "less"
    return first, f"other {first}"


def _types(value: str) -> list[str]:
    return ["string"] if value.startswith('"') else value.removeprefix("list:").replace("none", "").replace("nothing", "").split()


def _words(types: Counter[str]) -> str:
    return " ".join(f"{word}+" if count > 1 else word for word, count in sorted(types.items())) or ABSENT


def _kind(path: str, value: str) -> str:
    if value in (ABSENT, THERE, "True", "False") or path in ("class", "raises") or path.rpartition(".")[2] in _WORDS:
        return value
    if path == "id":
        return value if value in _RUNS else "the vendor's"
    if re.fullmatch(r'"[^"]*"', value):
        return "text"
    return "number" if re.fullmatch(r"-?[\d.]+(e-?\d+)?", value) else "several"


# ---------------------------------------------------------------------------------------------- verdicts


def told(found: Counter[Difference], *, whole: bool = True) -> list[str]:
    """What no rule covers, the same of all places on one line; rules whose page lacks them, and those without use, where `whole`."""
    verdicts = judge([Result(one.pair, one.where, "failed", one.where) for one in sorted(found)], RECORDED, whole=whole)
    covered = {result.id for result, _ in verdicts.explained}
    lines: dict[str, dict[str, int]] = {}
    for one, count in sorted(found.items()):
        if one.where not in covered:
            lines.setdefault(f"{one.path}: theirs {one.theirs}, ours {one.ours}", {})[f"{one.pair}: {one.case} ({one.way})"] = count
    faults = [fault for fault in verdicts.faults if not fault.startswith("no reason: ")]
    return [f"{line}, {sum(places.values())} times at {' // '.join(places)}" for line, places in lines.items()] + faults


def counts(found: Counter[Difference], lines: Sequence[str]) -> str:
    """What was found, in one line."""
    kinds = {(one.path, one.theirs, one.ours) for one in found}
    return f"{sum(found.values())} differences of {len(kinds)} kinds among recorded replies, {len(lines)} kinds without a rule"
