"""The shapes of replies of generateContent, as far as they are read. Any key may be absent, and any value null."""

from typing import Any, TypedDict

__all__ = ["Candidate", "FunctionCall", "ReplyPart"]


class FunctionCall(TypedDict, total=False):
    """A call, or a piece of one."""

    id: str | None
    name: str | None
    args: Any
    partialArgs: list[Any] | None
    willContinue: bool | None


class ReplyPart(TypedDict, total=False):
    """One part of a candidate's content: one of its first seven keys, and what stands beside it."""

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
    """The reply of one event."""

    content: _Content | None
    finishReason: str | int | None
    continuationToken: str | None
