"""Recorded traffic of real servers, read where it lies (beside the checkout, never in it), and how a message compares with a record."""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage

from langchain_autotools.messages.calls import calls_of


@dataclass(frozen=True)
class Recording:
    """One exchange: the vendor, the reply's bytes, and what an independent decoder reads from them."""

    id: str
    server: str
    tags: frozenset[str]
    status: int
    content_type: str
    body: bytes
    arrived: tuple[int, ...]
    request: Mapping[str, Any]
    expected: Mapping[str, Any]

    @property
    def streamed(self) -> bool:
        """Whether the reply is an event stream."""
        return "streamed" in self.tags

    @property
    def body_json(self) -> Any:
        """A whole body, parsed."""
        return json.loads(self.body)

    @property
    def failed(self) -> bool:
        """Whether the reply is an error, as a status or inside the stream."""
        return self.expected["error"] is not None

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools that were declared, as on the wire."""
        return [tool for tool in self.request.get("tools") or [] if tool.get("type") == "function"]

    @property
    def ended_well(self) -> bool:
        """Whether the turn ended in a way that lets its calls run."""
        return self.expected["finish_reason"] not in {"length", "content_filter"}

    def pieces(self, cut: str) -> list[bytes]:
        """The body as it arrived, or in pieces of one or seven bytes or of random length (always the same for one record)."""
        return list(_pieces(self, cut))


def _pieces(record: Recording, cut: str) -> Iterator[bytes]:
    chance = random.Random(record.id)
    sizes = iter(record.arrived if cut == "arrived" else ())
    start = 0
    while start < len(record.body):
        size = {"one": 1, "seven": 7, "random": 0, "arrived": next(sizes, 1 << 20)}[cut] or chance.choice((1, 2, 3, 17, 120, 1000))
        yield record.body[start : start + size]
        start += size


@cache
def recordings(folder: Path, wire: str) -> tuple[Recording, ...]:
    """All records of one wire; those that have no single right answer are left out."""
    with lzma.open(folder / "dev.jsonl.xz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return tuple(_read(record) for record in records if record["provider"] == wire and "ambiguous" not in record["tags"])


def one_of_each(found: Iterable[Any], styles: Callable[[Any], set[Any]]) -> tuple[Any, ...]:
    """Of what was recorded, in its order, each that has a style which none before it has."""
    seen: set[Any] = set()
    chosen = []
    for one in found:
        if not styles(one) <= seen:
            seen |= styles(one)
            chosen.append(one)
    return tuple(chosen)


def styles(record: Recording) -> set[Any]:
    """What a recording is an example of: each of its tags, of its server, streamed or whole."""
    return {(record.server, record.streamed, tag) for tag in record.tags}


def _read(record: dict[str, Any]) -> Recording:
    response = record["response"]
    return Recording(
        id=record["id"],
        server=record["server"],
        tags=frozenset(record["tags"]),
        status=response["status"],
        content_type=response["content_type"],
        body=response["body"].encode(),
        arrived=tuple(response.get("chunk_bytes") or ()),
        request=record["request"]["body"] if isinstance(record["request"]["body"], dict) else {},
        expected=record["expected"],
    )


def differences(record: Recording, message: AIMessage) -> list[str]:
    """What a message says otherwise than the record: text, calls in order, what may run, ids."""
    wanted = record.expected["tool_calls"]
    calls = calls_of(message)
    found = [
        _unequal("text", message.text, record.expected["text"]),
        _unequal("names", [call.name for call in calls], [call["name"] for call in wanted]),
        _unequal("executable", _found(record, message), _executable(record)),
        _unequal("unreadable", len(message.invalid_tool_calls), len(wanted) - len(_executable(record))),
    ]
    if len(calls) == len(wanted):
        for call, want in zip(calls, wanted, strict=True):
            found.append(None if want["args_ok"] else _unequal("raw arguments", call.arguments, want["args_raw"]))
            found.append(_unequal("id", call.id, want["id"]) if want["id"] else None)
    ids = [call.id for call in calls]
    found.append(None if all(ids) and len(set(ids)) == len(ids) else f"ids: {ids}")
    return [text for text in found if text is not None]


def _executable(record: Recording) -> list[tuple[str, Any]]:
    """Name and arguments of the calls that may run; of a custom tool its free text."""
    runs = [call for call in record.expected["tool_calls"] if record.ended_well and call["args_ok"]]
    return [(call["name"], call["args_raw"] if call["kind"] == "custom" else call["args"]) for call in runs]


def _found(record: Recording, message: AIMessage) -> list[tuple[str, Any]]:
    """The same of a message, where the free text of a custom tool is its only argument."""
    custom = {call["name"] for call in record.expected["tool_calls"] if call["kind"] == "custom"}
    return [(call["name"], next(iter(call["args"].values())) if call["name"] in custom else call["args"]) for call in message.tool_calls]


def _unequal(what: str, found: Any, wanted: Any) -> str | None:
    return None if found == wanted else f"{what}: {found!r} instead of {wanted!r}"
