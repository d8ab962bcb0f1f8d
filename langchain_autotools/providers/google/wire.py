"""Types of generateContent: requests as they are written, replies as they are read.

Of a reply any key may be absent, and any value null. (The SDK's own types have other names than the wire.)
"""

from typing import Any, Required, TypedDict


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
