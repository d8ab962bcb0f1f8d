"""A subclass that overrides one of core's own methods (`_stream`, `_astream`, `_generate`, `_agenerate`): what it gives is heard.

It may change what the inherited method gives, or give everything itself. What it yields is then read as a model's raw chunks are:
its calls are decided at the end of the turn, and of what an inherited method has decided already nothing changes. And it holds for
its twins too, where the subclass leaves those as they were: as in core an asynchronous method follows its synchronous one, and a
reply that is not streamed is made of a stream that somebody has changed.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from functools import wraps
from inspect import isfunction
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from ..messages.metadata import own_metadata
from .turn import Turn, generation, result_of

_Method = Callable[..., Any]
_READ = "_autotools_read"


def install_overrides(cls: Any, ours: Any, *, streams: bool) -> None:
    """Let a new class's own methods be heard.

    Args:
        cls: The new subclass.
        ours: The class whose methods read what they give.
        streams: Whether the subclass has a stream of its own wire, for a `_generate` that stands alone.
    """
    own = {name: getattr(cls, name) for name in _READERS}
    new = {name for name, method in own.items() if isfunction(method) and not _is_read(method, name, ours)}
    made = {name: _mark_read(wraps(own[name])(_READERS[name](own[name]))) for name in new}
    if "_generate" in new and not streams and not {"_stream", "_astream"} & new:
        made |= {"_stream": BaseChatModel._stream, "_astream": BaseChatModel._astream}  # by which core knows that it does not stream
    if "_stream" in new:
        made = {"_astream": BaseChatModel._astream, "_generate": _generate_of_stream, **made}
    if "_generate" in new:
        made.setdefault("_agenerate", BaseChatModel._agenerate)
    elif "_astream" in made:
        made.setdefault("_agenerate", _agenerate_of_astream)
    for name, method in made.items():
        setattr(cls, name, method)


def _is_read(method: Any, name: str, ours: Any) -> bool:
    return hasattr(method, _READ) or method in (getattr(ours, name), getattr(BaseChatModel, name))


def _mark_read(method: _Method) -> _Method:
    method.__dict__[_READ] = True
    return method


# ---------------------------------------------------------------------------------------------- reading


class _Reading:
    """The reading of one turn: what leaves, and whether an inherited method has ended it already.

    Attributes:
        messages: The messages to send.
    """

    def __init__(self, model: Any, messages: list[BaseMessage], keywords: dict[str, Any]) -> None:
        self._turn: Turn = model._turn(messages, keywords).of_langchain()
        self._decided = False
        self.messages = self._turn.messages

    def chunk(self, chunk: ChatGenerationChunk) -> list[ChatGenerationChunk]:
        """What leaves of a chunk."""
        if _is_decided(chunk.message):
            self._decided = True
            return [chunk]
        part = self._turn.feed(chunk.message)  # type: ignore[arg-type]
        return [] if part is None else [chunk] if part is chunk.message else [generation(part)]

    def end(self) -> list[ChatGenerationChunk]:
        """What leaves at the end."""
        return [] if self._decided else [generation(self._turn.finish())]

    def result(self, result: ChatResult) -> ChatResult:
        """A whole reply, its calls decided."""
        for made in result.generations[:1]:  # a run reads the first
            if not _is_decided(made.message):
                made.message = self._turn.result([made.message]).generations[0].message  # type: ignore[list-item]
        return result


def _is_decided(message: BaseMessage) -> bool:
    return "blocked" in own_metadata(message)


def _read_stream(method: _Method) -> _Method:
    def _stream(self: Any, messages: Any, stop: Any = None, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        reading = _Reading(self, messages, kwargs)
        for chunk in method(self, reading.messages, stop, *args, **kwargs):
            yield from reading.chunk(chunk)
        yield from reading.end()

    return _stream


def _read_astream(method: _Method) -> _Method:
    async def _astream(self: Any, messages: Any, stop: Any = None, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        reading = _Reading(self, messages, kwargs)
        async with aclosing(method(self, reading.messages, stop, *args, **kwargs)) as chunks:
            async for chunk in chunks:
                for read in reading.chunk(chunk):
                    yield read
        for read in reading.end():
            yield read

    return _astream


def _read_generate(method: _Method) -> _Method:
    def _generate(self: Any, messages: Any, stop: Any = None, *args: Any, **kwargs: Any) -> ChatResult:
        reading = _Reading(self, messages, kwargs)
        return reading.result(method(self, reading.messages, stop, *args, **kwargs))

    return _generate


def _read_agenerate(method: _Method) -> _Method:
    async def _agenerate(self: Any, messages: Any, stop: Any = None, *args: Any, **kwargs: Any) -> ChatResult:
        reading = _Reading(self, messages, kwargs)
        return reading.result(await method(self, reading.messages, stop, *args, **kwargs))

    return _agenerate


_READERS = {"_stream": _read_stream, "_astream": _read_astream, "_generate": _read_generate, "_agenerate": _read_agenerate}


# ---------------------------------------------------------------------------------------------- twins


@_mark_read
def _generate_of_stream(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
    return result_of(chunk.message for chunk in self._stream(messages, stop, **kwargs))


@_mark_read
async def _agenerate_of_astream(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
    return result_of([chunk.message async for chunk in self._astream(messages, stop, **kwargs)])
