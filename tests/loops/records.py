"""The recorded loops: each is a list of turns, request and reply, in the order in which they were sent."""

from __future__ import annotations

import json
import lzma
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Turn:
    """One request (empty where the recording has none) and its reply, as bytes and as an independent decoder reads it."""

    request: Mapping[str, Any]
    status: int
    content_type: str
    body: bytes
    streamed: bool
    expected: Mapping[str, Any]
    tags: frozenset[str]


@dataclass(frozen=True, eq=False)
class Loop:
    """All turns of one recorded conversation."""

    id: str
    wire: str
    server: str
    turns: Sequence[Turn]

    model: str

    @property
    def requests(self) -> list[Mapping[str, Any]]:
        """The recorded requests, empty ones where there are none."""
        return [turn.request for turn in self.turns]


@cache
def loops(folder: Path) -> tuple[Loop, ...]:
    """Every complete loop of the recordings, in their order."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with lzma.open(folder / "dev.jsonl.xz", "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            if "complete-loop" in record["tags"]:
                found[record["conversation_id"]].append(record)
    return tuple(_loop(name, sorted(records, key=lambda record: record["turn"])) for name, records in found.items())


def _loop(name: str, records: Sequence[Mapping[str, Any]]) -> Loop:
    request = records[0]["request"]
    path = re.search(r"/models/([^:]+):", request["path"])
    model = (request["body"] or {}).get("model") or (path[1] if path else "any")
    return Loop(name, records[0]["provider"], records[0]["server"], [_turn(record) for record in records], model)


def _turn(record: Mapping[str, Any]) -> Turn:
    response = record["response"]
    return Turn(
        request=record["request"]["body"] or {},
        status=response["status"],
        content_type=response["content_type"],
        body=response["body"].encode(),
        streamed="streamed" in record["tags"],
        expected=record["expected"],
        tags=frozenset(record["tags"]),
    )
