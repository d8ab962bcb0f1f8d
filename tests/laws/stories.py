"""Random conversations: what the model says turn by turn, in which wire style, and what must come of it."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from tests.support.grid import Cell, cells, cut
from tests.support.http_server import Exchange, Gate
from tests.support.openai_wire import Asked, chunk_of, usage_of, whole_body, wire_calls
from tests.support.script import Call, Cut, Events, Reply, Turn
from tests.support.wire_styles import STYLES

ERROR = None
"""The expected answer of a call that must be answered with an error."""


@dataclass(frozen=True)
class Planned:
    """A call of the script.

    Attributes:
        call: What the model writes.
        args: The arguments that it means; None where they are no JSON object.
        runs: Whether a tool's own code must run with them.
        answer: The text of its result; `ERROR` for any error.
    """

    call: Call
    args: Mapping[str, Any] | None
    runs: bool
    answer: str | None


@dataclass(frozen=True)
class Said:
    """One reply of the model.

    Attributes:
        text: Its text.
        calls: Its calls.
        style: A name in `STYLES`, or a cell of the grid.
        reasoning: What it thinks first.
        characters: How much text one stream event brings.
        finish: The finish reason; by default what the calls say.
        identity: The id of the reply: "own", "same" for every reply, or "none".
        seed: What a cell of the grid draws from.
        holds: Gates before the n-th stream event.
    """

    text: str = ""
    calls: Sequence[Planned] = ()
    style: str | Cell = "standard"
    reasoning: str = ""
    characters: int = 6
    finish: str | None = None
    identity: str = "own"
    seed: int = 0
    holds: Mapping[int, Gate] = field(default_factory=dict)

    @property
    def stops(self) -> str | None:
        """The finish reason, where it forbids the calls."""
        return self.finish if self.finish in ("length", "content_filter") else None

    def reply(self, exchange: Exchange) -> Events:
        """The reply in the form that was asked for."""
        asked = Asked.by(exchange.number, exchange.json)
        events: list[Any] = [self._identified(event) for event in self._events(asked)]
        for position in sorted(self.holds, reverse=True):
            events.insert(position, self.holds[position])
        return Events(events, self._identified(whole_body(asked, self._turn())))

    def _turn(self) -> Turn:
        style = self.style if self.style in ("empty_ids", "objects") else "standard"
        calls = [planned.call for planned in self.calls]
        return Turn(self.text, calls, self.finish, reasoning=self.reasoning, style=str(style))

    def _identified(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """The event with the reply's id as this server gives it."""
        if self.identity == "own":
            return dict(event)
        return {**event, "id": "chatcmpl-always"} if self.identity == "same" else {key: event[key] for key in event if key != "id"}

    def _events(self, asked: Asked) -> list[dict[str, Any]]:
        turn, size = self._turn(), self.characters
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "" if self.text or not self.calls else None}]
        for key, text in (("reasoning_content", self.reasoning), ("content", self.text)):
            deltas += [{key: text[start : start + size]} for start in range(0, len(text), size)]
        deltas += [{"tool_calls": entries} for entries in self._fragments(asked)]
        finish = self.finish or ("tool_calls" if self.calls else "stop")
        events = [*(chunk_of(asked, delta) for delta in deltas), chunk_of(asked, {}, finish)]
        if asked.include_usage:
            events.append({**events[0], "choices": [], "usage": usage_of(turn)})
        return events

    def _fragments(self, asked: Asked) -> list[list[dict[str, Any]]]:
        if not self.calls:
            return []
        if isinstance(self.style, str):
            return STYLES[self.style](wire_calls(asked, [planned.call for planned in self.calls]))
        meant = [(planned.call.name, dict(planned.args or {})) for planned in self.calls]
        return cut(self.style, meant, random.Random(f"{self.seed}/{asked.number}"))


class Script:
    """Plays replies in order (what has a method `reply` makes its own), then answers "Fine." for ever."""

    def __init__(self, replies: Sequence[Any]) -> None:
        self.replies = list(replies)

    def __call__(self, exchange: Exchange) -> Reply:
        """The reply to the n-th request of the server."""
        entry = self.replies[exchange.number] if exchange.number < len(self.replies) else Said("Fine.")
        reply: Reply = entry.reply(exchange) if hasattr(entry, "reply") and not isinstance(entry, Cut) else entry
        return reply


# ---------------------------------------------------------------------------------------------- what follows from a script


def run_text(replies: Sequence[Said], separator: str = "\n") -> str:
    """The text of a run over these replies."""
    text, due = "", False
    for said in replies:
        if said.text:
            text += separator if due and text and not text[-1].isspace() else ""
            text, due = text + said.text, False
        due = True
    return text


def executed(replies: Sequence[Said]) -> list[tuple[str, str]]:
    """Which tools must have run, with which arguments; sorted, because calls run side by side."""
    runs = [planned for said in replies if not said.stops for planned in said.calls if planned.runs]
    return sorted((planned.call.name, canonical(planned.args)) for planned in runs)


def canonical(args: Any) -> str:
    """Arguments as one comparable text."""
    return json.dumps(args, sort_keys=True, ensure_ascii=False)


def told(replies: Sequence[Said]) -> list[tuple[str, str | None]]:
    """The new messages of a run: type and text; None stands for any error."""
    messages: list[tuple[str, str | None]] = []
    for said in replies:
        messages.append(("ai", said.text))
        messages += [("tool", ERROR if said.stops else planned.answer) for planned in said.calls]
    return messages


# ---------------------------------------------------------------------------------------------- random scripts

# Line ends that JSON leaves raw, characters of several bytes, and what looks like the wire's own words.
_PIECES = [
    "a",
    "b ",
    "é",
    "漢字",
    "😀",
    "\n",
    "\u2028",
    "\x85",
    "\x1c",
    "\r\n",
    "\x00",
    "data: ",
    "[DONE]",
    "{",
    '"',
    "\\",
    "\t",
    "e\u0301",
]
texts = st.lists(st.sampled_from(_PIECES), max_size=8).map("".join)
spoken = st.one_of(texts, st.sampled_from(["", "Let me look.", "So: ", "Done.\n", " \n "]))
_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**60), 2**60), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(texts, inner, max_size=2)),
    max_leaves=4,
)
objects = st.dictionaries(st.one_of(st.sampled_from(["q", "city", "{", '"', "naïve"]), texts), _json, max_size=3)

# Styles in which a fragment always says whose it is, so that broken and absent arguments can be told apart too.
TELLING = (
    "standard",
    "interleaved",
    "whole",
    "one_chunk",
    "one_based",
    "id_repeated",
    "id_and_name_repeated",
    "empty_after_first",
    "no_ids",
)
# A snapshot after a snapshot may also be a value cut off in the middle, and is then refused: right, but not what was meant.
EXACT_STYLES = sorted(set(STYLES) - {"cumulative"})
OPEN_CELLS = [cell for cell in cells() if cell.reason is None and cell.calls == "several"]
EXACT_CELLS = [
    cell
    for cell in OPEN_CELLS
    if cell.calls == "several" and cell.index in ("right", "1-based", "gapped") and cell.ids in ("first", "all", "empty after the first")
    if cell.arguments in ("fragments", "header then fragments", "whole", "object", "brace first")
]


BROKEN = (
    '{"text": "a',
    '{"text": ',
    "[1]",
    '"x"',
    "3",
    '{"text": NaN}',
    "{'text': 'a'}",
    '{"text": "a"} and more',
    "true",
    '{"text" "a"}',
    "nul",
)
"""Arguments that are not exactly one complete JSON object."""


@st.composite
def written(draw: st.DrawFn, name: str, args: Any, answer: str | None, *, runs: bool = True) -> Planned:
    """A call whose arguments are written in one of the ways in which JSON can be."""
    separators = draw(st.sampled_from([None, (",", ":"), (" ,  ", " :\n")]))
    raw = json.dumps(args, ensure_ascii=draw(st.booleans()), separators=separators)
    return Planned(Call(name, raw), args, runs, answer)


@st.composite
def good_calls(draw: st.DrawFn) -> Planned:
    """Calls that run and succeed."""
    kind = draw(st.sampled_from(["echo", "add", "tell_time", "say_nothing", "slow", "only_async", "anything"]))
    if kind == "echo":
        text = draw(texts)
        return draw(written("echo", {"text": text}, f"heard {text}"))
    if kind == "add":
        a, b = draw(st.integers(-(10**12), 10**12)), draw(st.integers(-9, 9))
        return draw(written("add", {"a": a, "b": b}, str(a + b)))
    if kind == "anything":
        args = draw(objects)
        return draw(written("anything", args, canonical(args)))
    if kind in ("slow", "only_async"):
        number = draw(st.integers(0, 3))
        return draw(written(kind, {"number": number}, f"{kind} {number}"))
    return draw(written(kind, {}, "12:00" if kind == "tell_time" else "(no output)"))


@st.composite
def failing_calls(draw: st.DrawFn) -> Planned:
    """Calls that are well formed and answered with an error."""
    kind = draw(st.sampled_from(["break_down", "nowhere", "misfit", "missing"]))
    if kind == "break_down":
        return draw(written("break_down", {"why": draw(texts)}, ERROR))
    if kind == "nowhere":
        return draw(written(draw(st.sampled_from(["nowhere", "no where!", "é" * 70])), {"x": 1}, ERROR, runs=False))
    args = draw(st.sampled_from([{"text": [1]}, {"text": None}])) if kind == "misfit" else {}
    return draw(written("echo", args, ERROR, runs=False))


broken_calls = st.sampled_from(BROKEN).map(lambda raw: Planned(Call("echo", raw), None, False, ERROR))
absent_calls = st.sampled_from(["", "null", "{ }"]).map(lambda raw: Planned(Call("tell_time", raw), {}, True, "12:00"))


def by_name(one: Planned) -> Any:
    """Without ids, an empty call before another of its tool looks like the placeholder of that one."""
    return one.call.name


def by_name_and_arguments(one: Planned) -> Any:
    """Two equal calls may be one that was sent twice."""
    return one.call.name, canonical(one.args)


@st.composite
def replies(draw: st.DrawFn, *, calls: int = 4, least: int = 1, styles: str = "exact") -> Said:
    """A reply with calls."""
    ways = [EXACT_STYLES, EXACT_CELLS] if styles == "exact" else [sorted(STYLES), OPEN_CELLS]
    style: Any = draw(st.one_of([st.sampled_from(way) for way in ways]))
    kinds = [good_calls(), good_calls(), failing_calls()]
    if style in TELLING:
        kinds += [broken_calls, absent_calls]
    made = draw(
        st.lists(st.one_of(kinds), min_size=least, max_size=calls, unique_by=by_name if style == "empty_ids" else by_name_and_arguments)
    )
    if style in ("standard", "whole", "one_chunk", "interleaved"):
        made = draw(with_ids(made))
    identity = draw(st.sampled_from(["own", "own", "own", "none"]))
    reasoning = draw(st.sampled_from(["", "", "Hm. ", "漢"]))
    return Said(draw(spoken), made, style, reasoning, draw(st.integers(1, 7)), identity=identity, seed=draw(st.integers(0, 9)))


@st.composite
def with_ids(draw: st.DrawFn, made: list[Planned]) -> list[Planned]:
    """The calls with ids of the server's, some missing, some there twice."""
    kinds = [None, None, None, "", "null", "x" * 40, "functions.f:0"]
    if len({planned.call.name for planned in made}) == len(made):  # of one id and one name, one call may be the other's beginning
        kinds += ["same"] * 3
    elif len(made) > 1:
        kinds = [None, "", "null"]
    ids = draw(st.lists(st.sampled_from(kinds), min_size=len(made), max_size=len(made)))
    return [replace(planned, call=replace(planned.call, id=one)) for planned, one in zip(made, ids, strict=True)]


@st.composite
def stories(draw: st.DrawFn, *, turns: int = 3, least: int = 0, **how: Any) -> list[Said]:
    """Some replies with calls, and an answer."""
    asked = draw(st.lists(replies(**how), min_size=least, max_size=turns))
    return [*asked, Said(draw(spoken), characters=draw(st.integers(1, 7)))]
