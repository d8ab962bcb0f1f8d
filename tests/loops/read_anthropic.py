"""Requests of Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.loops.meaning import Atom, Call, Kind, Media, Result, Role, in_messages, kind_of, plain

Said = tuple[Role, list[tuple[Kind, Any]]]


def read(body: Mapping[str, Any]) -> list[Atom]:
    """What a request says."""
    start: list[Said] = [("system", list(_content(body["system"])))] if body.get("system") else []
    return in_messages(start + [said for message in body["messages"] for said in _message(message)])


def _message(message: Mapping[str, Any]) -> Iterator[Said]:
    """A user's message holds the results of tools before the user's own words."""
    parts = list(_content(message["content"]))
    results = [part for part in parts if part[0] == "result"]
    others = [part for part in parts if part[0] != "result"]
    if results:
        yield "tool", results
    if others or not results:
        yield message["role"], others


def _content(content: Any) -> Iterator[tuple[Kind, Any]]:
    if isinstance(content, str):
        yield "text", content
        return
    for block in content or []:
        yield from _block(block)


def _block(block: Mapping[str, Any]) -> Iterator[tuple[Kind, Any]]:
    kind = block["type"]
    if kind == "text":
        yield "text", block["text"]
    elif kind == "thinking":
        yield "reasoning", block["thinking"]
        yield "signature", block["signature"]
    elif kind == "redacted_thinking":
        yield "signature", block["data"]
    elif kind == "tool_use":
        yield "call", Call(block["id"], block["name"], block["input"])
    elif kind == "tool_result":
        parts = tuple(_content(block.get("content")))
        yield "result", Result(block["tool_use_id"], None, parts, bool(block.get("is_error")))
    elif kind in ("image", "document"):
        yield "media", _media(block["source"], "image" if kind == "image" else "file")
    else:
        yield "item", plain({key: value for key, value in block.items() if key not in ("cache_control", "caller")})


def _media(source: Mapping[str, Any], kind: str) -> Media:
    if source["type"] == "file":
        return Media(kind, "", "id", source["file_id"])
    if source["type"] == "url":
        return Media(kind, "", "url", source["url"])
    return Media(kind_of(source["media_type"]), source["media_type"], "base64", source["data"])
