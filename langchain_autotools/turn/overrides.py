"""A subclass that overrides one of core's own methods (`_stream`, `_astream`, `_generate`, `_agenerate`): what it gives is heard.

It may change what the inherited method gives, or give everything itself. What it yields is then read as a model's raw chunks are:
its calls are decided at the end of the turn, and of what an inherited method has decided already nothing changes. And it holds for
its twins too, where the subclass leaves those as they were: as in core an asynchronous method follows its synchronous one, and a
reply that is not streamed is made of a stream that somebody has changed.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, suppress
from functools import wraps
from inspect import isfunction
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables.config import run_in_executor

from ..messages.metadata import own_metadata
from .turn import Turn, generation, result_of

__all__ = ["in_thread", "install_overrides"]

_T = TypeVar("_T")
_Method = Callable[..., Any]
_Stream = Callable[..., Iterator[ChatGenerationChunk]]
_AStream = Callable[..., AsyncIterator[ChatGenerationChunk]]
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
    made = {name: _READERS[name](own[name]) for name in new}
    if "_generate" in new and not streams and not {"_stream", "_astream"} & new:
        made |= {"_stream": BaseChatModel._stream, "_astream": BaseChatModel._astream}  # by which core knows that it does not stream
    if "_stream" in new:
        made.setdefault("_astream", _marked(_astream_of(made["_stream"])))
        made.setdefault("_generate", _marked(_generate_of(made["_stream"])))
    if "_generate" in new:
        made.setdefault("_agenerate", _marked(_agenerate_in_thread(made["_generate"])))
    elif "_astream" in made:
        made.setdefault("_agenerate", _marked(_agenerate_of(made["_astream"])))
    for name, method in made.items():
        setattr(cls, name, method)


async def in_thread(items: Iterator[_T]) -> AsyncGenerator[_T, None]:
    """The items, each fetched in a thread."""
    end: Any = object()
    try:
        while (item := await run_in_executor(None, next, items, end)) is not end:
            yield item
    finally:
        with suppress(ValueError):  # its thread still reads: it closes when that read returns
            getattr(items, "close", lambda: None)()


def _is_read(method: Any, name: str, ours: Any) -> bool:
    return hasattr(method, _READ) or method in (getattr(ours, name), getattr(BaseChatModel, name))


def _marked(method: _Method) -> _Method:
    method.__dict__[_READ] = True
    return method


# ---------------------------------------------------------------------------------------------- reading


def _turn(model: Any, messages: Any, keywords: dict[str, Any]) -> Turn:
    turn: Turn = model._turn(messages, keywords)
    return turn.without_blocks()


def _is_decided(message: BaseMessage) -> bool:
    return "blocked" in own_metadata(message)


class _Reading:
    """The reading of one stream: what leaves, and whether an inherited method has ended the turn already."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._decided = False

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


def _read_stream(method: _Method) -> _Method:
    @wraps(method)
    def _stream(self: Any, messages: Any, stop: Any = None, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        turn = _turn(self, messages, kwargs)
        reading = _Reading(turn)
        for chunk in method(self, turn.messages, stop, *args, **kwargs):
            yield from reading.chunk(chunk)
        yield from reading.end()

    return _marked(_stream)


def _read_astream(method: _Method) -> _Method:
    @wraps(method)
    async def _astream(self: Any, messages: Any, stop: Any = None, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        turn = _turn(self, messages, kwargs)
        reading = _Reading(turn)
        async with aclosing(method(self, turn.messages, stop, *args, **kwargs)) as chunks:
            async for chunk in chunks:
                for read in reading.chunk(chunk):
                    yield read
        for read in reading.end():
            yield read

    return _marked(_astream)


def _read_generate(method: _Method) -> _Method:
    @wraps(method)
    def _generate(self: Any, messages: Any, stop: Any = None, *args: Any, **kwargs: Any) -> ChatResult:
        turn = _turn(self, messages, kwargs)
        return _read_result(turn, method(self, turn.messages, stop, *args, **kwargs))

    return _marked(_generate)


def _read_agenerate(method: _Method) -> _Method:
    @wraps(method)
    async def _agenerate(self: Any, messages: Any, stop: Any = None, *args: Any, **kwargs: Any) -> ChatResult:
        turn = _turn(self, messages, kwargs)
        return _read_result(turn, await method(self, turn.messages, stop, *args, **kwargs))

    return _marked(_agenerate)


def _read_result(turn: Turn, result: ChatResult) -> ChatResult:
    for made in result.generations[:1]:  # a run reads the first
        if not _is_decided(made.message):
            made.message = turn.result([made.message]).generations[0].message  # type: ignore[list-item]
    return result


_READERS = {"_stream": _read_stream, "_astream": _read_astream, "_generate": _read_generate, "_agenerate": _read_agenerate}


# ---------------------------------------------------------------------------------------------- twins


def _astream_of(stream: _Stream) -> _Method:
    async def _astream(
        self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        async with aclosing(in_thread(iter(stream(self, messages, stop, **_telling(run_manager), **kwargs)))) as chunks:
            async for chunk in chunks:
                yield chunk

    return _astream


def _telling(run_manager: Any) -> dict[str, Any]:
    return {"run_manager": run_manager.get_sync()} if run_manager else {}


def _generate_of(stream: _Stream) -> _Method:
    def _generate(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return result_of(chunk.message for chunk in stream(self, messages, stop, **kwargs))

    return _generate


def _agenerate_of(astream: _AStream) -> _Method:
    async def _agenerate(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return result_of([chunk.message async for chunk in astream(self, messages, stop, **kwargs)])

    return _agenerate


def _agenerate_in_thread(generate: Callable[..., ChatResult]) -> _Method:
    async def _agenerate(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return await run_in_executor(None, lambda: generate(self, messages, stop, **_telling(run_manager), **kwargs))

    return _agenerate
