"""Requests of the chat completions wire, and of Ollama's own chat wire, which has the same shape without ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.loops.meaning import Atom, Call, Kind, Media, Result, Role, data_url, in_messages, parsed, plain

_REASONING = ("reasoning_content", "reasoning", "thinking")


def read(body: Mapping[str, Any]) -> list[Atom]:
    """What a request says."""
    return in_messages((_role(message), _parts(message)) for message in body["messages"])


def _role(message: Mapping[str, Any]) -> Role:
    roles: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
    return roles[message["role"]]


def _parts(message: Mapping[str, Any]) -> Iterator[tuple[Kind, Any]]:
    if message["role"] == "tool":
        parts = tuple(_content(message.get("content")))
        yield "result", Result(message.get("tool_call_id"), message.get("name") or message.get("tool_name"), parts)
        return
    texts = {message[key] for key in _REASONING if message.get(key)}
    yield from (("reasoning", text) for text in sorted(texts))
    yield from (("signature", plain(detail)) for detail in message.get("reasoning_details") or [])
    yield from _content(message.get("content"))
    yield from (("media", Media("image", "", "base64", data)) for data in message.get("images") or [])
    for call in message.get("tool_calls") or []:
        function = call["function"]
        arguments = function["arguments"]
        yield "call", Call(call.get("id"), function["name"], parsed(arguments) if isinstance(arguments, str) else arguments)
        if call.get("extra_content"):
            yield "signature", plain(call["extra_content"])


def _content(content: Any) -> Iterator[tuple[Kind, Any]]:
    if isinstance(content, str):
        yield "text", content
        return
    for part in content or []:
        yield from _part(part)


def _part(part: Mapping[str, Any]) -> Iterator[tuple[Kind, Any]]:
    kind = part["type"]
    if kind in ("text", "refusal"):
        yield "text", part[kind]
    elif kind == "image_url":
        yield "media", data_url(part["image_url"]["url"], "image")
    elif kind == "file":
        file = part["file"]
        yield "media", Media("file", "", "id", file["file_id"]) if "file_id" in file else data_url(file["file_data"], "file")
    elif kind == "input_audio":
        audio = part["input_audio"]
        yield "media", Media("audio", f"audio/{audio['format']}", "base64", audio["data"])
    elif kind == "thinking":
        yield from (("reasoning", piece["text"]) for piece in part["thinking"])
    else:
        yield "item", plain(part)
