"""generateContent as JSON: the types of requests, those of replies, the spelling of keys, reply metadata.

Of a reply any key may be absent, and any value null. (The SDK's own types have other names than the wire.)
"""

import re
from collections.abc import Mapping
from typing import Any, Required, TypedDict

from .._base.replies import reply_metadata


class Blob(TypedDict):
    """Inline data of a request."""

    mimeType: str
    data: str


class FileData(TypedDict, total=False):
    """Data referred to by its address."""

    mimeType: str
    fileUri: Required[str]


class ExecutableCode(TypedDict, total=False):
    """Code that the server ran."""

    id: str
    language: str | None
    code: str | None


class CodeResult(TypedDict, total=False):
    """The result of code that the server ran."""

    id: str
    outcome: str | int | None
    output: str | None


class FunctionResponse(TypedDict, total=False):
    """The result of a call."""

    id: str
    name: Required[str]
    response: Required[dict[str, Any]]
    parts: "list[Part]"


class Part(TypedDict, total=False):
    """One part of a request's content: one of its first six keys, and additional ones."""

    text: str
    inlineData: Blob
    fileData: FileData
    functionResponse: FunctionResponse
    executableCode: ExecutableCode
    codeExecutionResult: CodeResult
    thought: bool
    thoughtSignature: str
    partMetadata: Any
    videoMetadata: Any
    mediaResolution: Any


class Choice(TypedDict, total=False):
    """A tool choice in the form between binding and the request.

    Attributes:
        type: The mode, in small letters.
        names: The only tools that may be called.
        only: Whether it was said that no other tool may be called, also later; else a tool was named that is to be called now.
    """

    type: Required[str]
    names: list[str]
    only: bool


class CallingConfig(TypedDict, total=False):
    """A tool choice in a request (`functionCallingConfig`)."""

    mode: Required[str]
    allowedFunctionNames: list[str]


class FunctionCall(TypedDict, total=False):
    """A function call, or an increment of one."""

    id: str | None
    name: str | None
    args: Any
    partialArgs: list[Any] | None
    willContinue: bool | None


class ReplyPart(TypedDict, total=False):
    """One part of a candidate's content: one of its first seven keys, and additional ones."""

    text: str | None
    functionCall: FunctionCall | None
    executableCode: dict[str, Any] | None
    codeExecutionResult: dict[str, Any] | None
    inlineData: dict[str, Any] | None
    fileData: dict[str, Any] | None
    thought: bool | None
    thoughtSignature: str | None
    partMetadata: Any


class _Content(TypedDict, total=False):
    parts: list[ReplyPart] | None


class Candidate(TypedDict, total=False):
    """One candidate of an event."""

    content: _Content | None
    finishReason: str | int | None
    continuationToken: str | None


# ---------------------------------------------------------------------------------------------- metadata
# Metadata of replies: the finish reason, and the keys of `response_metadata` that LangChain users expect.


PROMPT_BLOCKED = "PROMPT_BLOCKED"
"""The finish reason of a reply without candidates, whose prompt was blocked."""

CALL_FAILURES = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"})
"""Finish reasons of a wrongly written tool call; the model receives an error as that call's result (wire quirk G-07)."""

_KNOWN = CALL_FAILURES | {
    *("STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"),
    *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_OTHER", "IMAGE_RECITATION", "NO_IMAGE", "MISSING_THOUGHT_SIGNATURE"),
    *("MALFORMED_RESPONSE", "ESCALATION", "PUP_LIMITED_DISABLED", "CONTINUATION"),
}
_GATEWAYS = frozenset({"END_TURN", "TOOL_CALLS", "TOOL_USE", "FUNCTION_CALL", "LENGTH", "CONTENT_FILTER"})  # words of other wires
# The words behind the numbers that are the same in both APIs; others differ and mean at any rate no normal end.
_REASONS = {0: None, 1: "STOP", 2: "MAX_TOKENS", 3: "SAFETY", 4: "RECITATION", 5: "OTHER"}
_UNSPECIFIED = "FINISH_REASON_UNSPECIFIED"
_OF_CANDIDATES = frozenset({"content", "continuationToken", "finishReason", "index"})
OF_REPLIES = frozenset({"candidates", "modelVersion", "responseId", "usageMetadata"})
"""The keys of a reply's events that are not metadata."""

_UNDERSCORE = re.compile(r"_([a-z0-9])")
_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")


def finish_reason(value: Any) -> str | None:
    """Return a finish reason as a word; None if there is none. An unknown one becomes `OTHER`, after which no calls run."""
    if isinstance(value, int):
        return _REASONS.get(value, "OTHER")
    if not value or value == _UNSPECIFIED:
        return None
    word = str(value)
    return word if word.upper() in _KNOWN or word.upper() in _GATEWAYS else "OTHER"


def of_candidate(candidate: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a candidate."""
    return _snake_named(reply_metadata(candidate, _OF_CANDIDATES))


def of_reply(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a reply, other than candidates and token counts."""
    return _snake_named(reply_metadata(reply, OF_REPLIES))


def _snake_named(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {snake(key): snake_keys(value) for key, value in metadata.items()}


def camel(name: str) -> str:
    """Return a name in camel case, the wire's form."""
    return _UNDERSCORE.sub(lambda match: match[1].upper(), name)


def snake(name: str) -> str:
    """Return a wire name in snake case, the form of LangChain's packages."""
    return _CAPITAL.sub(r"_\1", name).lower()


def snake_keys(value: Any) -> Any:
    """Return data with every key in snake case, in which LangChain's core looks for citations."""
    if isinstance(value, Mapping):
        return {snake(key): snake_keys(item) for key, item in value.items()}
    return [snake_keys(item) for item in value] if isinstance(value, list) else value
