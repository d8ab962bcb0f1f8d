"""A scripted chat model for tests of programs that use this package: no network, no key, every request recorded.

It is an ordinary model with `ToolsAndMessagesMixin`: its tools really run, its replies go through the same reading of a
reply's pieces as a vendor's. docs/testing.md shows how to use it.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import Field, PrivateAttr, field_validator

from .chunks import new_chunk
from .errors import AutoToolsError, ConfigurationError
from .executor.names import tool_name
from .messages.metadata import text_of
from .mixin import ToolsAndMessagesMixin

__all__ = ["Piece", "Reply", "Request", "ScriptError", "ScriptedChatModel"]

Piece: TypeAlias = str | AIMessage | Mapping[str, Any] | Sequence[Mapping[str, Any]] | BaseException | type[BaseException]
"""One chunk of a reply: text, a message or chunk, a raw fragment of a tool call, several fragments in one chunk, or an error
to raise at this point."""

Reply: TypeAlias = str | AIMessage | Iterable[Piece] | BaseException | type[BaseException] | Callable[..., Any]
"""The reply to one request: a text, a message, its pieces one by one, an error to raise, or a function that is
called with the request (`function(messages, stop=..., tools=..., ...)`) and returns any of these."""

_WORD = re.compile(r"\s*\S+\s*|\s+")


class ScriptError(AutoToolsError, AssertionError):
    """Raised when the program under test makes a request that the script does not provide for."""


@dataclass(frozen=True)
class Request:
    """One request to the model.

    Attributes:
        messages: The messages sent, expanded and repaired: what a vendor would get.
        tools: The declared tools, in the wire's form.
        tool_choice: The tool choice; None for none.
        stop: The stop sequences; None for none.
        kwargs: All other keyword arguments.
    """

    messages: tuple[BaseMessage, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    tool_choice: Any = None
    stop: tuple[str, ...] | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tool_names(self) -> list[str]:
        """The names of the declared tools, in order."""
        return [tool_name(tool) for tool in self.tools]


class ScriptedChatModel(ToolsAndMessagesMixin):
    """A chat model that answers by a script.

    ```python
    model = ScriptedChatModel(
        tools=[get_temperature],
        replies=[AIMessage("", tool_calls=[{"name": "get_temperature", "args": {"city": "Rome"}, "id": "1"}]), "Rome has 21 °C."],
    )
    assert model.invoke("How warm is Rome?").text == "Rome has 21 °C."
    assert model.requests[1].messages[-1].content == "21 °C"
    ```

    Each request takes the next reply. One model may serve any number of runs, threads and tasks at once; which of them gets
    which reply is then decided by who asks first, so give a function as `replies` where that matters.
    """

    replies: Any = Field(default=(), repr=False)
    """The replies, one for each request (see `Reply`), or one function that answers every request."""

    _requests: list[Request] = PrivateAttr(default_factory=list)  # one list for a model and its shallow copies: no run leaves a trace
    _script: tuple[tuple[Any, ...], str] = PrivateAttr(default=((), ""))  # a digest and what it was made of: core asks each turn

    @field_validator("replies")
    @classmethod
    def _check_replies(cls, replies: Any) -> Any:
        if callable(replies):
            return replies
        if isinstance(replies, str) or not isinstance(replies, Sequence):
            raise ConfigurationError(f"replies must be a list of replies or a function, not {type(replies).__name__}")
        for number, reply in enumerate(replies, 1):
            if not _is_reply(reply):
                raise ConfigurationError(f"reply {number} is of type {type(reply).__name__}; {_KINDS}")
        return replies

    @property
    def requests(self) -> list[Request]:
        """The requests so far, in order, including those of shallow copies and bound models."""
        return list(self._requests)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        replies = (self.replies,) if callable(self.replies) else tuple(self.replies)
        known, digest = self._script
        if len(known) != len(replies) or any(one is not other for one, other in zip(known, replies, strict=True)):
            digest = hashlib.sha256(repr(self.replies).encode(errors="replace")).hexdigest()
            self._script = replies, digest
        return {"script": digest}

    def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessage]:
        """Record the request and play the next reply."""
        return _reply_chunks(self._next_reply(messages, stop, kwargs))

    async def araw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AsyncIterator[AIMessage]:
        """Like `raw_stream`, asynchronously; other tasks run before each chunk."""
        for chunk in _reply_chunks(self._next_reply(messages, stop, kwargs)):
            await asyncio.sleep(0)
            yield chunk

    def _next_reply(self, messages: Sequence[BaseMessage], stop: Sequence[str] | None, kwargs: Mapping[str, Any]) -> Any:
        others = {key: value for key, value in kwargs.items() if key not in ("tools", "tool_choice")}
        request = Request(
            messages=tuple(messages),
            tools=tuple(kwargs.get("tools") or ()),
            tool_choice=kwargs.get("tool_choice"),
            stop=None if stop is None else tuple(stop),
            kwargs=others,
        )
        self._requests.append(request)
        number = next(place for place, known in enumerate(self._requests) if known is request)  # others may have come since
        if callable(self.replies):
            reply = self.replies
        elif number < len(self.replies):
            reply = self.replies[number]
        else:
            raise ScriptError(_over(number, request))
        while callable(reply) and not isinstance(reply, str) and not _is_error(reply):  # core's `text` can be called
            reply = reply(list(messages), stop=stop, **kwargs)
        return reply


_KINDS = "a reply is a text, an AI message, a list of pieces, an exception, or a function that returns one of these"


def _over(number: int, request: Request) -> str:
    last = request.messages[-1] if request.messages else None
    last_message = f", which ends in {type(last).__name__} {text_of(last)[:80]!r}" if last else ""
    return f"the script has {number} replies, but there was request {number + 1}{last_message}"


def _is_reply(reply: object) -> bool:
    return callable(reply) or (isinstance(reply, AIMessage | BaseException | Iterable) and not isinstance(reply, Mapping | bytes))


def _is_error(reply: object) -> bool:
    return isinstance(reply, BaseException) or (isinstance(reply, type) and issubclass(reply, BaseException))


def _reply_chunks(reply: Any) -> Iterator[AIMessage]:
    """Yield the chunks of a reply; a text is split into words."""
    if not _is_reply(reply):
        raise ScriptError(f"a function returned a reply of type {type(reply).__name__}; {_KINDS}")
    pieces = [reply] if isinstance(reply, AIMessage) or _is_error(reply) else reply
    if isinstance(reply, str):
        pieces = _WORD.findall(reply) or [""]
    for piece in pieces:
        if _is_error(piece):
            raise piece
        yield _piece_chunk(piece)


def _piece_chunk(piece: Any) -> AIMessage:
    if isinstance(piece, AIMessage):
        return piece
    if isinstance(piece, str):
        return new_chunk(piece, {}, None)
    fragments = [piece] if isinstance(piece, Mapping) else piece
    if not isinstance(fragments, Sequence) or not all(isinstance(fragment, Mapping) for fragment in fragments):
        raise ScriptError(f"a piece of a reply is of type {type(piece).__name__}, not a text, a message, a fragment of a call or an error")
    return new_chunk("", {"tool_calls": [dict(fragment) for fragment in fragments]}, None)
