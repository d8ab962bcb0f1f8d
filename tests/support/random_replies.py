"""Random replies of a model, as the pieces that a `ScriptedChatModel` plays: text, reasoning, calls in the wire styles of many servers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk

from langchain_autotools import StreamError
from langchain_autotools.event_types import FileMade, RunEvent, SourceFound, VendorCallDone, VendorCallProgress, VendorCallStarted
from langchain_autotools.turn.accumulator import with_events
from tests.support.grid import cells, cut
from tests.support.wire_styles import STYLES

WORDS = (
    "Let me look. ",
    "a",
    "é",
    "漢字",
    "😀",
    "\n",
    "\u2028",
    "\r\n",
    "data: ",
    "[DONE]",
    "{",
    '"',
    "\\",
    "\t",
    "e\u0301",
    "</p> ",
    "So: ",
)
BROKEN = ('{"text": "a', '{"text": ', "[1]", '"x"', '{"text": NaN}', "{'text': 'a'}", '{"text": "a"} and more', "nul")
CUTS = ("length", "content_filter", "incomplete")
"""Finish reasons after which no call of a turn may run."""
_CELLS = [cell for cell in cells() if cell.reason is None]


@dataclass(frozen=True)
class RandomCall:
    """A call that the model makes.

    Attributes:
        name: The tool's name.
        args: The arguments; text where they are no JSON object.
        id: The id that the server gives it; None for none.
    """

    name: str
    args: Mapping[str, Any] | str
    id: str | None = None

    @property
    def raw(self) -> str:
        """The arguments as the model writes them."""
        return self.args if isinstance(self.args, str) else json.dumps(self.args, ensure_ascii=False)


def random_text(draw: random.Random, most: int = 5) -> str:
    """A text that may be empty."""
    return "".join(draw.choice(WORDS) for _ in range(draw.randint(0, most)))


def random_reply(draw: random.Random, calls: Sequence[RandomCall], identity: str) -> list[Any]:
    """The pieces of one reply.

    Args:
        draw: What is drawn from.
        calls: The calls that it makes.
        identity: Its id, which comes first, late, or not at all.

    Returns:
        What `ScriptedChatModel` takes as a reply.
    """
    if draw.random() < 0.1:
        return [_whole(draw, calls, identity)]
    listed = draw.random() < 0.3
    text, thought = _text(draw, listed=listed), _reasoning(draw, listed=listed)
    fragments = _fragments(draw, calls)
    pieces = [*thought, *text, *fragments] if draw.random() < 0.8 else _mixed(draw, [[*thought, *text], fragments])
    _identify(draw, pieces, identity)
    pieces += _ending(draw)
    if draw.random() < 0.05:
        pieces.insert(draw.randint(0, len(pieces)), draw.choice([StreamError("the stream broke"), OSError("no more")]))
    return pieces


def with_vendor_items(draw: random.Random, reply: Sequence[Any]) -> list[Any]:
    """A reply in which the vendor may do something by itself, between the pieces that it has. (Notes on chunks live as long as they.)"""
    pieces = list(reply)
    if draw.random() < 0.6 or (pieces and type(pieces[0]) is AIMessage):
        return pieces
    for _ in range(draw.randint(1, 3)):
        place = 0
        for event in _vendor_events(draw):
            place = draw.randint(place, len(pieces))
            pieces.insert(place, with_events(AIMessageChunk(content=""), [event]))
            place += 1
    return pieces


def _vendor_events(draw: random.Random) -> list[RunEvent]:
    """What a vendor does: a call, which may lack its start or its end, a source, or a file."""
    nowhere = {"run_id": "", "message_id": ""}
    word = draw.choice(WORDS)
    if draw.random() < 0.3:
        return [SourceFound(**nowhere, **draw.choice([{"url": f"https://example.org/{word}"}, {"document": word}]), title=word)]
    if draw.random() < 0.3:
        return [FileMade(**nowhere, mime_type="image/png", data="QUJD", size=3)]
    call, name = {**nowhere, "call_id": f"vendor_{draw.randrange(10**9)}"}, draw.choice(["web_search", "mcp.roll"])
    events: list[RunEvent] = [
        VendorCallStarted(**call, name=name),
        VendorCallProgress(**call, status="searching"),
        VendorCallProgress(**call, text=word),
        VendorCallDone(**call, name=name, args={"query": word}, output=draw.choice([None, [word]]), failed=draw.random() < 0.2),
    ]
    return [*events[: draw.randint(1, 4)]] if draw.random() < 0.3 else events[draw.choice([0, 3]) :]


def _whole(draw: random.Random, calls: Sequence[RandomCall], identity: str) -> AIMessage:
    made = [{"name": call.name, "args": dict(call.args), "id": call.id} for call in calls if not isinstance(call.args, str)]
    return AIMessage(random_text(draw), tool_calls=made, id=draw.choice([None, identity]))


def _text(draw: random.Random, *, listed: bool) -> list[Any]:
    pieces: list[str] = [draw.choice(WORDS) for _ in range(draw.choice([0, 1, 3, 6]))]
    if not listed:
        return list(pieces)
    return [AIMessageChunk(content=[{"type": "text", "text": piece, "index": 0}]) for piece in pieces]


def _reasoning(draw: random.Random, *, listed: bool) -> list[Any]:
    """What the model thinks, in one of the forms in which servers send it, beside text as text or as blocks."""
    thoughts = [draw.choice(WORDS) for _ in range(draw.choice([0, 0, 2]))]
    form = draw.choice(["thinking", "reasoning"])
    if not listed:
        return [AIMessageChunk(content="", additional_kwargs={"reasoning_content": thought}) for thought in thoughts]
    return [AIMessageChunk(content=[{"type": form, form: thought, "index": 9}]) for thought in thoughts]


def _identify(draw: random.Random, pieces: list[Any], identity: str) -> None:
    place = draw.choice([0, draw.randint(0, len(pieces)), None])
    if place is not None:
        pieces.insert(place, AIMessageChunk(content="", id=identity))


def _ending(draw: random.Random) -> list[Any]:
    """Usage and finish reason, where the reply says them."""
    ending: list[Any] = []
    if draw.random() < 0.6:
        used, made = draw.randint(1, 50), draw.randint(1, 50)
        usage = {"input_tokens": used, "output_tokens": made, "total_tokens": used + made}
        ending.append(AIMessageChunk(content="", usage_metadata=usage))
    if draw.random() < 0.08:
        ending.append(AIMessageChunk(content="", response_metadata={"finish_reason": draw.choice(CUTS)}))
    return ending


def _mixed(draw: random.Random, rows: Sequence[Sequence[Any]]) -> list[Any]:
    """The rows mixed, each in its own order."""
    waiting = [list(row) for row in rows if row]
    mixed = []
    while waiting:
        row = draw.choice(waiting)
        mixed.append(row.pop(0))
        waiting = [row for row in waiting if row]
    return mixed


# ---------------------------------------------------------------------------------------------- calls in fragments


def _fragments(draw: random.Random, calls: Sequence[RandomCall]) -> list[Any]:
    """The pieces in which these calls come."""
    if not calls:
        return []
    objects = not any(isinstance(call.args, str) for call in calls)
    ways: list[Callable[[random.Random, Sequence[RandomCall]], list[Any]]] = [_in_style, _in_style, _as_langchain, _late_ids]
    return draw.choice([*ways, _in_cell] if objects else ways)(draw, calls)


def _in_style(draw: random.Random, calls: Sequence[RandomCall]) -> list[Any]:
    return list(STYLES[draw.choice(sorted(STYLES))]([_on_the_wire(call) for call in calls]))


def _on_the_wire(call: RandomCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.raw}}


def _in_cell(draw: random.Random, calls: Sequence[RandomCall]) -> list[Any]:
    return list(cut(draw.choice(_CELLS), [(call.name, dict(call.args)) for call in calls if not isinstance(call.args, str)], draw))


def _as_langchain(draw: random.Random, calls: Sequence[RandomCall]) -> list[Any]:
    """Chunks with LangChain's own fragments, as a `_stream` that was written elsewhere gives them."""
    rows = []
    for index, call in enumerate(calls):
        size = draw.randint(1, 9)
        parts = [call.raw[start : start + size] for start in range(0, len(call.raw), size)]
        first = {"name": call.name, "args": "", "id": call.id, "index": index}
        rows.append([first, *({"name": None, "args": part, "id": None, "index": index} for part in parts)])
    fragments = [fragment for row in rows for fragment in row] if draw.random() < 0.5 else _mixed(draw, rows)
    return [AIMessageChunk(content="", tool_call_chunks=[fragment]) for fragment in fragments]


def _late_ids(draw: random.Random, calls: Sequence[RandomCall]) -> list[Any]:
    """Fragments by index, the id only on the last one of each call."""
    pieces: list[Any] = []
    for index, call in enumerate(calls):
        half = len(call.raw) // 2
        pieces += [
            {"index": index, "type": "function", "function": {"name": call.name, "arguments": ""}},
            {"index": index, "function": {"arguments": call.raw[:half]}},
            {"index": index, **({} if call.id is None else {"id": call.id}), "function": {"arguments": call.raw[half:]}},
        ]
    return pieces
