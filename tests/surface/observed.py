"""What a value shows, as flat text: each path in it, with indices as `n` and what differs from run to run by its kind."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, SecretStr

Seen = dict[str, str]
"""What is seen at each place."""
ABSENT = "-"
LONG = 60
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_RANDOM = re.compile(r"\b(call_|lc_|chatcmpl-tool-|gen-)?[0-9a-f]{16,32}\b")
_ADDRESS = re.compile(r"127\.0\.0\.1:\d+|0x[0-9a-f]{6,}")
_NUMBERED = re.compile(r"(?<=[a-z_-])\d{3,}(-\d+)?\b")
EMPTY = ("None", "{}", "[]", '""')
_OF_STREAMS = ("index",)
"""Keys of blocks that have a meaning while a stream is added up."""
_OF_MESSAGES = (
    "type",
    "content",
    "text",
    "content_blocks",
    "tool_calls",
    "invalid_tool_calls",
    "usage_metadata",
    "response_metadata",
    "additional_kwargs",
    "name",
)


def plain(value: Any) -> str:
    """A leaf as text that is the same in every run."""
    if inspect.isroutine(value) or isinstance(value, type):
        return f"a {type(value).__name__}" if inspect.isroutine(value) else value.__name__
    text = value if isinstance(value, str) else "SecretStr" if isinstance(value, SecretStr) else repr(value)
    if not isinstance(value, str | int | float | bool | None | SecretStr | bytes):
        text = "dict" if isinstance(value, dict) else type(value).__name__
    for pattern, instead in ((_UUID, "*"), (_ADDRESS, "*"), (_RANDOM, r"\1*"), (_NUMBERED, "*")):
        text = pattern.sub(instead, text)
    text = "a time" if isinstance(value, int | float) and value > 10**9 else text
    text = text.replace("\n", "\\n")
    shown = text if len(text) <= LONG else f"{text[:40]}... ({len(text)})"
    return f'"{shown}"' if isinstance(value, str) else shown


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each leaf of nested mappings and lists with its path. Elements of a list with a type have it in the path, not their place."""
    if isinstance(value, BaseModel) and not isinstance(value, BaseMessage):
        yield path, type(value).__name__
    elif isinstance(value, Mapping):
        if not value:
            yield path, "{}"
        for key, inner in value.items():
            if key in _OF_STREAMS and "type" in value:
                continue
            yield from leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        if not value:
            yield path, "[]"
        for inner in value:
            kind = inner.get("type") if isinstance(inner, Mapping) else None
            yield from leaves(inner, f"{path}.{kind if isinstance(kind, str) else 'n'}")
    else:
        yield path, value


def flat(value: Any, path: str = "", show: Callable[[Any], str] = plain) -> Seen:
    """The leaves as text; what a path holds several times is joined."""
    seen: dict[str, list[str]] = {}
    for where, leaf in leaves(value, path):
        seen.setdefault(where, []).append("{}" if leaf == "{}" else "[]" if leaf == "[]" else show(leaf))
    said = {where: [text for text in texts if text not in EMPTY] for where, texts in seen.items()}
    return {where: texts[0] if len(set(texts)) == 1 else " ".join(texts) for where, texts in said.items() if texts}


def of_message(message: BaseMessage, show: Callable[[Any], str] = plain) -> Seen:
    """What a message shows. What is empty says nothing; content that is a list is shown by its blocks."""
    seen: Seen = {"class": type(message).__name__, "id": re.split(r"[-_]*\d", message.id or "none")[0].partition("--")[0]}
    if isinstance(message.content, list):
        seen["content"] = "list: " + (
            " ".join(one.get("type", "?") if isinstance(one, dict) else "str" for one in message.content) or "nothing"
        )
    for name in _OF_MESSAGES:
        value = getattr(message, name, None)
        if name in ("content_blocks", "tool_calls", "invalid_tool_calls"):
            seen[name] = " ".join(str(one.get("type")) for one in value or ()) or "none"
        if name != "content" or isinstance(value, str):
            shown = flat(value, name, show)
            seen.update({where: text for where, text in shown.items() if where not in seen})
    return seen


def of_failure(error: BaseException) -> Seen:
    """The public classes under which an error can be caught, but the partner package's own and ours."""
    kinds = [cls for cls in type(error).__mro__ if cls.__module__.partition(".")[0] in _CAUGHT]
    return {"raises": " ".join(sorted(cls.__name__ for cls in kinds)) or _builtin(error)}


_CAUGHT = (
    "anthropic",
    "cohere",
    "fireworks",
    "google",
    "groq",
    "httpx",
    "langchain_core",
    "ollama",
    "openai",
    "openrouter",
    "pydantic_core",
)


def _builtin(error: BaseException) -> str:
    return next(cls.__name__ for cls in type(error).__mro__ if cls.__module__ == "builtins")
