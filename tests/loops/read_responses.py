"""Requests of OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.loops.meaning import Atom, Call, Kind, Media, Result, Role, data_url, in_messages, parsed, plain

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
Said = tuple[Role, list[tuple[Kind, Any]]]


def read(body: Mapping[str, Any]) -> list[Atom]:
    """What a request says."""
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    start: list[Said] = [("system", [("text", body["instructions"])])] if body.get("instructions") else []
    return in_messages(start + [_item(item) for item in items])


def _item(item: Mapping[str, Any]) -> Said:
    kind = item.get("type", "message")
    if kind == "message":
        return _ROLES[item["role"]], list(_content(item["content"]))
    if kind == "function_call":
        return "assistant", [("call", Call(item["call_id"], item["name"], parsed(item["arguments"])))]
    if kind == "custom_tool_call":
        return "assistant", [("call", Call(item["call_id"], item["name"], item["input"]))]
    if kind in ("function_call_output", "custom_tool_call_output"):
        return "tool", [("result", Result(item["call_id"], None, tuple(_content(item["output"]))))]
    if kind == "reasoning":
        return "assistant", list(_reasoning(item))
    if kind == "additional_tools":
        return _ROLES[item["role"]], [("item", plain(item))]
    if kind == "mcp_approval_response" or (kind.endswith("_output") and item.get("execution") == "client"):
        return "user", [("item", plain(item))]
    return "assistant", [("item", plain({key: value for key, value in item.items() if key not in ("id", "status")}))]


def _reasoning(item: Mapping[str, Any]) -> Iterator[tuple[Kind, Any]]:
    texts = [part["text"] for part in [*item.get("summary", []), *(item.get("content") or [])]]
    yield from (("reasoning", text) for text in texts)
    sealed = item.get("encrypted_content")
    yield "signature", sealed or item.get("id") or ""


def _content(content: Any) -> Iterator[tuple[Kind, Any]]:
    if isinstance(content, str):
        yield "text", content
        return
    for part in content:
        kind = part["type"]
        if kind in ("input_text", "output_text", "text"):
            yield "text", part["text"]
        elif kind == "refusal":
            yield "text", part["refusal"]
        elif kind in ("input_image", "input_file"):
            yield "media", _media(part, kind.removeprefix("input_"))
        else:
            yield "item", plain(part)


def _media(part: Mapping[str, Any], kind: str) -> Media:
    if part.get("file_id"):
        return Media(kind, "", "id", part["file_id"])
    return data_url(part.get("image_url") or part.get("file_url") or part["file_data"], kind)
