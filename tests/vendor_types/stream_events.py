"""Sends each type of stream event in a reply on loopback and judges whether its readers notice it.

An event is put into a stream whose end says the whole reply, and the stream is read with it and without it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from anthropic.types.beta import BetaContentBlock
from anthropic.types.beta.beta_raw_message_stream_event import BetaRawMessageStreamEvent
from langchain_core.messages import BaseMessage
from openai.types.responses import ResponseOutputItem, ResponseStreamEvent

from langchain_autotools import events
from tests.support.script import Events
from tests.vendor_types.reading import ECHO, LOST, MADE, as_data, scalars
from tests.vendor_types.replies import beta_message_saying, response_saying
from tests.vendor_types.rows import ROWS, Body, Row
from tests.vendor_types.samples import Rules, Sampler, plain

BROKEN = "BREAKS the stream"
_PIECE, _MESSAGE, _ERROR = "a chunk", "the message", "an error"
_AT_A_BREAK = (_ERROR, _MESSAGE, _PIECE, "`CallReady`", "`RunFailed`", "`MessageDone`", "`CallDiscarded`", "`VendorCallDone`")
"""What readers find only because a stream breaks off."""
_ROWS = {row.name: row for row in ROWS}
_FAILED = {
    "failed": {"error": {"code": "server_error", "message": "v0z"}},
    "incomplete": {"incomplete_details": {"reason": "max_output_tokens"}},
}
"""What a reply says besides that ended otherwise."""
_STATES = ("in_progress", "done", "completed", "queued")
"""What every item goes through."""
_PLACES = ("item_id", "index", "sequence_number", "type")
_ONLY = {"<content_block_delta>.delta<input_json_delta>.partial_json": '{"key": "there"}'}
_OF_RUNS = ("run_id", "message_id", "duration", "position")
_BLOCKS_OF_DELTAS = {"input_json": "tool_use", "citations": "text", "signature": "thinking"}


@dataclass(frozen=True)
class Trial:
    """An event in its place.

    Attributes:
        event: The event.
        told: The stream with it.
        untold: The stream without it.
        whole: What the end of the stream says: the whole reply.
    """

    event: Body
    told: list[Body]
    untold: list[Body]
    whole: Body

    @property
    def is_echo(self) -> bool:
        """Whether the end says each value of the event too. A state is also said by the name of another event."""
        words = {one["type"].rpartition(".")[2] for one in self.untold} | set(self.event["type"].split("."))
        beside = {key: value for key, value in self.event.items() if not key.endswith(_PLACES)}
        values = [value for value in _values(beside) if value not in words]
        is_piece = self.event["type"].endswith(".delta")
        *_, word = self.event["type"].split(".")
        state = [] if values or "." not in self.event["type"] else [word]
        said = [*_values(self.whole), *_STATES, *(one["type"].rpartition(".")[2] for one in self.told if one is not self.event)]
        said += ["failed"] * any(one.get("error") for one in _objects(self.whole))
        return all(value in said or (is_piece and any(str(one).startswith(value) for one in said)) for value in (*values, *state))


@dataclass(frozen=True)
class Wire:
    """The stream events of one wire.

    Attributes:
        name: The name of its row of whole replies.
        defined: The name of the type of all events.
        union: The type of all events.
        part: The type of what a reply consists of.
        trial: Puts a sample of an event into its place, given samples of the parts.
    """

    name: str
    defined: str
    union: Any
    part: Any
    trial: Callable[[Row, Body, list[Body]], Trial]

    @property
    def row(self) -> Row:
        """The row of whole replies."""
        return _ROWS[self.name]

    def trials(self) -> dict[str, Trial]:
        """Each type of event in its place; one that brings an item or a block, for each type of these."""
        sampler = Sampler(Rules(only=_ONLY))  # one, so that no value stands for two
        parts = [plain(sample) for sample in sampler.samples(self.part)]
        found: dict[str, Trial] = {}
        for sample in map(plain, sampler.samples(self.union)):
            inside = "".join(f"<{kind}>" for kind in _kinds_in(sample))
            if f"{sample['type']}{inside}" not in found:
                found[f"{sample['type']}{inside}"] = self.trial(self.row, sample, parts)
        return found


def _kinds_in(sample: Body) -> Iterator[str]:
    return (value["type"] for key, value in sample.items() if isinstance(value, dict) and "type" in value and key != "message")


# ---------------------------------------------------------------------------------------------- Responses


def _response_trial(row: Row, sample: Body, items: list[Body]) -> Trial:
    kind = sample["type"]
    word = kind.rpartition(".")[2]
    item = sample.get("item") or _item_of(sample, items)
    if word in _FAILED and "status" in item:
        item = {**item, "status": word}
    whole = {**response_saying([item]), "status": "completed"}
    base = [event for event in row.events(whole) if "item" in event or "response" in event]
    if "response" in sample or "item" in sample:
        event = next((one for one in base if one["type"] == kind), None)
        if event is not None:
            return Trial(event, base, [one for one in base if one is not event], whole)
        event = {**sample, "response": {**whole, "status": word, **_FAILED.get(word, {})}}
        return Trial(event, [*base[:-1], event], base, whole) if word in _FAILED else Trial(event, [base[0], event, *base[1:]], base, whole)
    begun = next(place for place, one in enumerate(base) if "item" in one) + 1
    event = {key: _said_by(item, key, value, kind) for key, value in sample.items()}
    return Trial(event, [*base[:begun], event, *([] if kind == "error" else base[begun:])], base, whole)


def _item_of(sample: Body, items: list[Body]) -> Body:
    """The item that an event tells of: one with such a part, else one by whose type or whose part's type the event is called."""
    stem = sample["type"].split(".")[1] if "." in sample["type"] else ""
    inside = set(_kinds_in(sample))
    with_part = [item for item in items if inside and inside <= set(scalars(item))]
    named = sorted((item for item in reversed(items) if stem.startswith(item["type"])), key=lambda item: len(item["type"]), reverse=True)
    of_text = [
        item for item in items if item["type"] in ("message", "reasoning") and any(stem.endswith(kind) for kind in _part_kinds(item))
    ]
    return (with_part or named or of_text or items)[0]


def _part_kinds(item: Body) -> list[str]:
    return [part["type"] for key in ("summary", "content") for part in item.get(key) or ()]


def _said_by(item: Body, key: str, value: Any, kind: str) -> Any:
    """What an item says under the name of a field, at its number; a delta has the name before it, and most of the text."""
    if key == "type":
        return value
    if key.endswith("_index") or key == "sequence_number":
        return 0
    name = {"item_id": "id", "delta": kind.split(".")[-2].rpartition("_")[2] if "." in kind else ""}.get(key, key)
    if isinstance(value, dict) and "type" in value:
        return next((one for one in _objects(item) if one.get("type") == value["type"]), value)
    if isinstance(value, dict):
        return {inner: _said_by(item, inner, one, kind) for inner, one in value.items()}
    found = [one[near] for one in _objects(item) for near in (name, f"{name}s") if near in one]
    found = [one[0] if isinstance(one, list) and not isinstance(value, list) and one else one for one in found]
    said = next((one for one in found if one.__class__ is value.__class__), value)
    return said[:-1] if key == "delta" and said != value else said


def _values(data: Any) -> list[Any]:
    """The values in data, without the names and what is empty."""
    return [value for one in _objects([data]) for value in _plain_in(list(one.values())) if value not in (None, "")]


def _plain_in(data: list[Any]) -> Iterator[Any]:
    for value in data:
        if isinstance(value, list):
            yield from _plain_in(value)
        elif not isinstance(value, dict):
            yield value


def _objects(data: Any) -> Iterator[Body]:
    if isinstance(data, dict):
        yield data
    for value in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _objects(value)


# ---------------------------------------------------------------------------------------------- Messages


def _message_trial(row: Row, sample: Body, blocks: list[Body]) -> Trial:
    kind = sample["type"]
    wanted = next(iter(_kinds_in(sample)), "text").removesuffix("_delta")
    wanted = _BLOCKS_OF_DELTAS.get(wanted, wanted)
    block = sample.get("content_block") or next(one for one in blocks if one["type"] in (wanted, "text"))
    block = next((one for one in blocks if one["type"] == wanted), block)
    whole = beta_message_saying([block])
    base = row.events(whole)
    if kind == "content_block_delta":
        base = [event for event in base if event["type"] != kind]
        event = {**sample, "index": 0}
        return Trial(event, [*base[:2], event, *base[2:]], base, whole)
    place = next(number for number, event in enumerate(base) if event["type"] == kind)
    event = {**sample, "delta": {**sample["delta"], "stop_reason": "end_turn"}} if "delta" in sample else base[place]
    return Trial(event, [*base[:place], event, *base[place + 1 :]], [*base[:place], *base[place + 1 :]], whole)


WIRES = (
    Wire("Responses", "ResponseStreamEvent", ResponseStreamEvent, ResponseOutputItem, _response_trial),
    Wire("Messages", "BetaRawMessageStreamEvent", BetaRawMessageStreamEvent, BetaContentBlock, _message_trial),
)


# ---------------------------------------------------------------------------------------------- reading


async def _read(model: Any, *, listens: bool) -> dict[str, list[str]]:
    """What readers of a stream find: chunks, messages and errors, and events where the model makes any."""
    found: dict[str, list[str]] = {_PIECE: [], _MESSAGE: [], _ERROR: []}
    for way in ("stream", "astream"):
        chunks: list[Any] = []
        try:
            if way == "stream":
                chunks.extend(model.stream("Hello"))
            else:
                chunks += [chunk async for chunk in model.astream("Hello")]
            found[_MESSAGE].append(_text(as_data(sum(chunks[1:], chunks[0]))))
        except Exception as error:  # what the vendor says of a failure is in it
            found[_ERROR].append(_text([str(error), getattr(error, "body", "")]))
        found[_PIECE] += [_text(as_data(chunk)) for chunk in chunks]
    if listens:
        _listen(model, found)
    return found


def _listen(model: Any, found: dict[str, list[str]]) -> None:
    """Add what a listener to a stream's events finds."""
    try:
        for event in events(model.stream("Hello")):
            said = {one.name: getattr(event, one.name) for one in fields(event) if one.name not in _OF_RUNS}
            found.setdefault(f"`{type(event).__name__}`", []).append(_text(said))
    except Exception as error:
        found[_ERROR].append(_text([str(error), getattr(error, "body", "")]))


def _text(data: Any) -> str:
    return MADE.sub(
        "", json.dumps(data, default=lambda value: as_data(value) if isinstance(value, BaseMessage) else str(value), sort_keys=True)
    )


async def verdict(model: Any, server: Any, trial: Trial, *, listens: bool = True) -> str:
    """What becomes of an event: by what readers find of the whole stream, and of one that breaks off behind it."""
    place = next(number for number, one in enumerate(trial.told) if one is trial.event)
    found = []
    for stream in (trial.told, trial.untold, trial.told[: place + 1], trial.told[:place]):
        server._replies[:] = [Events(stream, trial.whole)] * 3
        found.append(await _read(model, listens=listens))
    told, untold, now, before = found
    shown = {kind for kind, said in told.items() if Counter(said) - Counter(untold.get(kind, ()))}
    if _ERROR in shown:
        words = [value for value in _values(trial.event) if isinstance(value, str) and value not in trial.event["type"]]
        is_told = len(told[_ERROR]) == 2 + listens and all(any(word in said for word in words) for said in told[_ERROR])
        return _ERROR if is_told else BROKEN
    shown |= {kind for kind, said in now.items() if kind not in _AT_A_BREAK and Counter(said) - Counter(before.get(kind, ()))}
    if not shown:
        return ECHO if trial.is_echo else LOST
    return ", ".join(sorted(shown - {_PIECE, "`MessageDone`", "`RunEnded`"}) or [_PIECE])


async def event_verdicts(wire: Wire, *, partner: Callable[[Row, str], Any] | None = None, every: int = 1) -> Mapping[str, str]:
    """What becomes of each type of event of a wire, or of every n-th; of another's package where `partner` makes its model."""
    row = wire.row
    make = partner or (lambda row, url: row.model(url, **row.arguments))
    with row.serve() as server:
        trials = list(wire.trials().items())[::every]
        return {name: await verdict(make(row, server.url), server, trial, listens=partner is None) for name, trial in trials}
