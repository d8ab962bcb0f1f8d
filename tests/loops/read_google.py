"""Requests of Google's generateContent, of the Gemini API and of Vertex AI."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.loops.meaning import Atom, Call, Kind, Media, Result, Role, in_messages, kind_of, plain

Said = tuple[Role, list[tuple[Kind, Any]]]
_FREE = ("args", "response")  # the model's and the tools' own keys, which keep their spelling


def read(body: Mapping[str, Any]) -> list[Atom]:
    """What a request says. The vendor takes `functionCall` and `function_call` alike."""
    request = _camel(body)
    system = request.get("systemInstruction")
    start: list[Said] = [("system", list(_parts(system)))] if system else []
    return in_messages(start + [said for content in request["contents"] for said in _content(content)])


def _camel(value: Any) -> Any:
    if isinstance(value, list):
        return [_camel(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    names = {key: re.sub(r"_(\w)", lambda match: match[1].upper(), key) for key in value}
    return {names[key]: item if names[key] in _FREE else _camel(item) for key, item in value.items() if key != "tools"}


def _content(content: Mapping[str, Any]) -> Iterator[Said]:
    """A user's content holds the responses of functions beside the user's own words."""
    parts = list(_parts(content))
    results = [part for part in parts if part[0] == "result"]
    others = [part for part in parts if part[0] != "result"]
    if results:
        yield "tool", results
    if others or not results:
        yield "assistant" if content.get("role") == "model" else "user", others


def _parts(content: Mapping[str, Any]) -> Iterator[tuple[Kind, Any]]:
    for part in content.get("parts") or []:
        yield from _part(part)
        if part.get("thoughtSignature"):
            yield "signature", _standard(part["thoughtSignature"])


def _standard(base64: str) -> str:
    """The same bytes in the standard alphabet of base64: the vendor sends one and takes both."""
    return base64.replace("-", "+").replace("_", "/").rstrip("=")


def _part(part: Mapping[str, Any]) -> Iterator[tuple[Kind, Any]]:
    if "functionCall" in part:
        call = part["functionCall"]
        yield "call", Call(call.get("id"), call["name"], call.get("args") or {})
    elif "functionResponse" in part:
        response = part["functionResponse"]
        said: list[tuple[Kind, Any]] = [("data", plain(response["response"]))]
        media: list[tuple[Kind, Any]] = [("media", _media(inner)) for inner in response.get("parts") or []]
        yield "result", Result(response.get("id"), response["name"], (*said, *media))
    elif "text" in part:
        yield "reasoning" if part.get("thought") else "text", part["text"]
    elif "inlineData" in part or "fileData" in part:
        yield "media", _media(part)
    elif part.keys() - {"thoughtSignature", "thought"}:
        yield "item", plain(part)


def _media(part: Mapping[str, Any]) -> Media:
    if "inlineData" in part:
        mime = part["inlineData"]["mimeType"]
        data = part["inlineData"]["data"].replace("-", "+").replace("_", "/")  # the wire takes both alphabets
        return Media(kind_of(mime), mime, "base64", data)
    mime = part["fileData"].get("mimeType", "")
    return Media(kind_of(mime), mime, "url", part["fileData"]["fileUri"])
