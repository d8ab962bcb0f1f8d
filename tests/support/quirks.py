"""The hand-made streams of `quirk_fixtures.json`: shapes that real servers send, with the calls that were meant."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FIXTURES = Path(__file__).resolve().parents[3] / "shared" / "wire" / "quirk_fixtures.json"

needs_quirks = pytest.mark.skipif(not FIXTURES.exists(), reason=f"the shared wire fixtures are not beside the repository ({FIXTURES.name})")


@dataclass(frozen=True)
class Quirk:
    """One stream.

    Attributes:
        label: Its place in the catalogue and its title.
        chunks: What each chunk carries: a list of fragments, or (one server's habit) a single fragment.
        expect: The calls that were meant, in order; arguments of None mean that the call must not run.
        ids: Their ids, where the fixture says them.
        declared: The names of the tools that the model was told of.
    """

    label: str
    chunks: list[Any]
    expect: list[tuple[str, dict[str, Any] | None]]
    ids: list[str] | None
    declared: list[str]


def quirks() -> list[Quirk]:
    """All streams; none where the file is absent."""
    if not FIXTURES.exists():
        return []
    return [_quirk(entry) for entry in json.loads(FIXTURES.read_text(encoding="utf-8"))]


def _quirk(entry: dict[str, Any]) -> Quirk:
    expect = [(name, args if isinstance(args, dict) else None) for name, args in entry["expect"]]
    declared = entry.get("tools") or sorted({name for name, _ in expect})
    return Quirk(f"{entry['q']}: {entry['title']}", entry["chunks"], expect, entry.get("ids"), declared)
