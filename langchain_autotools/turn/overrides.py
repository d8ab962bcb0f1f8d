"""Support for subclasses that override core's own methods (`_stream`, `_astream`, `_generate`, `_agenerate`).

It may change what the inherited method gives, or give everything itself. What it yields is then read as a model's raw chunks are:
its calls are decided at the end of the turn, and of what an inherited method has decided already nothing changes. And it holds for
its twins too, where the subclass leaves those as they were: as in core an asynchronous method follows its synchronous one, and a
reply that is not streamed is made of a stream that somebody has changed.
"""

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import aclosing
from functools import wraps
from inspect import isfunction
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from ..messages.calls import calls_of
from ..messages.live import attach_cut_reply, cut_reply
from ..messages.metadata import own_metadata, with_own_metadata
from .accumulator import canonical_message, without_call_pieces
from .turn import Turn, generation, result_of

_Method = Callable[..., Any]
_READ = "_autotools_read"


def install_overrides(cls: Any, ours: Any, derived: Callable[[Collection[str]], Mapping[str, Any]]) -> None:
    """Wrap a new class's own methods so that their output is processed.

    Args:
        cls: The new subclass.
        ours: The class whose methods read what they give.
        derived: Returns the methods that follow from those of these names.
    """
    own = {name: getattr(cls, name) for name in _READERS}
    new = {name for name, method in own.items() if isfunction(method) and not _is_read(method, name, ours)}
    made = {name: mark_read(wraps(own[name])(_READERS[name](own[name]))) for name in new}
    for name, method in {**derived(made.keys()), **made}.items():
        setattr(cls, name, method)


def derived_methods(new: Collection[str], *, streams: bool) -> dict[str, Any]:
    """Return the twins of a class's own methods that follow from them, by name.

    Args:
        new: The names of its own methods.
        streams: Whether it has a stream of its own wire, for a `_generate` that stands alone.
    """
    twins: dict[str, Any] = {}
    if "_generate" in new and not streams and not {"_stream", "_astream"} & {*new}:
        twins |= {"_stream": BaseChatModel._stream, "_astream": BaseChatModel._astream}  # by which core knows that it does not stream
    if "_stream" in new:
        twins |= {"_astream": BaseChatModel._astream, "_generate": generate_of_stream}
    if "_generate" in new:
        twins["_agenerate"] = BaseChatModel._agenerate
    elif "_astream" in {*new, *twins}:
        twins["_agenerate"] = agenerate_of_astream
    return twins


def _is_read(method: Any, name: str, ours: Any) -> bool:
    return hasattr(method, _READ) or method in (getattr(ours, name), getattr(BaseChatModel, name))


def mark_read(method: _Method) -> _Method:
    """Mark a method whose output is processed already, so that `install_overrides` ignores it."""
    method.__dict__[_READ] = True
    return method


# ---------------------------------------------------------------------------------------------- reading


class _Reading:
    """The processing of one turn: its outgoing chunks, and whether an inherited method has ended it already.

    Where no run goes on from the turn, all but its calls leaves as it came.

    Attributes:
        messages: The messages to send.
    """

    def __init__(self, model: Any, messages: list[BaseMessage], keywords: dict[str, Any]) -> None:
        self._turn: Turn = model._turn(messages, keywords).of_langchain()
        self._begun = False
        self._decided = False
        self._calls = False
        self.messages = self._turn.messages

    def chunk(self, chunk: ChatGenerationChunk) -> list[ChatGenerationChunk]:
        """Return the outgoing chunks for a chunk."""
        self._begun = True
        if _is_decided(chunk.message):
            self._decided = True
            return [chunk]
        if not self._turn.runs and isinstance(chunk.message, AIMessageChunk):
            return self._without_calls(chunk, chunk.message)
        part = self._turn.feed(chunk if chunk.generation_info else chunk.message)  # how a turn ended may stand in either
        return [] if part is None else [chunk] if part is chunk.message else [generation(part)]

    def _without_calls(self, chunk: ChatGenerationChunk, message: AIMessageChunk) -> list[ChatGenerationChunk]:
        """Return the chunk unchanged without calls, which are held until the end of the turn."""
        brings = bool(message.tool_call_chunks or message.additional_kwargs.get("tool_calls"))
        if brings or chunk.generation_info or message.response_metadata:
            self._turn.feed(chunk)
        self._calls = self._calls or brings
        last = self._calls and message.chunk_position == "last"
        if not (brings or last):
            return [chunk]
        rest = without_call_pieces(message)
        says = rest.content or rest.additional_kwargs or rest.response_metadata or rest.usage_metadata
        return [ChatGenerationChunk(message=rest, generation_info=chunk.generation_info)] if says or chunk.generation_info else []

    def end(self) -> list[ChatGenerationChunk]:
        """Return the outgoing chunks at the end: none for a stream without any chunk, which core reports as an error."""
        if self._decided or not (self._calls or (self._begun and self._turn.runs)):
            return []
        last = self._turn.finish()
        if not self._turn.runs:  # all else has left already
            metadata = with_own_metadata({}, own_metadata(last))
            position = None if last.invalid_tool_calls else "last"  # core's event bridge passes over invalid calls of the last chunk
            last = last.model_copy(update={"usage_metadata": None, "response_metadata": metadata, "chunk_position": position})
        return [generation(last)]

    def cut_off(self, error: Exception) -> None:
        """Attach to an error what was known of the reply that it cut off."""
        if cut_reply(error) is None:
            attach_cut_reply(error, self._turn.known())

    def result(self, result: ChatResult) -> ChatResult:
        """Return a whole reply with the verdict on its calls."""
        for made in result.generations[:1]:  # a run reads the first
            if isinstance(made.message, AIMessage) and not _is_decided(made.message):
                decided = self._turn.result([made]).generations[0].message
                made.message = _unchanged(made.message, decided, runs=self._turn.runs)  # type: ignore[arg-type]
        return result


def _is_decided(message: BaseMessage) -> bool:
    return "blocked" in own_metadata(message)


def _unchanged(given: AIMessage, decided: AIMessage, *, runs: bool) -> AIMessage:
    """Return the original message with the verdict if that changes none of its calls; else the rebuilt one.

    Where no run goes on from the turn, and nothing of the verdict would be stored, it is the very message that was given.
    """
    if isinstance(given, AIMessageChunk) or decided.invalid_tool_calls or decided.tool_calls != given.tool_calls:
        return decided
    if not runs and not own_metadata(given) and not _says_more(decided, given):
        return given
    metadata = with_own_metadata(given.response_metadata, own_metadata(decided))
    return given.model_copy(update={"id": decided.id, "response_metadata": metadata})


def _says_more(decided: AIMessage, given: AIMessage) -> bool:
    """Whether a stored verdict would say more of the calls than the message says itself, be it in its content."""
    own = own_metadata(canonical_message(decided, stored=True, brief=True))
    known = [{"id": call.id, **({"extra": call.extra} if call.extra else {})} for call in calls_of(given)] if own else []
    return bool(own) and own != {"calls": known}


def read_stream(method: _Method) -> _Method:
    """Return a `_stream` whose chunks are processed like raw chunks."""

    def _stream(self: Any, messages: Any, stop: Any = None, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        reading = _Reading(self, messages, kwargs)
        try:
            for chunk in method(self, reading.messages, stop, *args, **kwargs):
                yield from reading.chunk(chunk)
        except Exception as error:
            reading.cut_off(error)
            raise
        yield from reading.end()

    return _stream


def read_astream(method: _Method) -> _Method:
    """Return an `_astream` processed like `read_stream`."""

    async def _astream(self: Any, messages: Any, stop: Any = None, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        reading = _Reading(self, messages, kwargs)
        try:
            async with aclosing(method(self, reading.messages, stop, *args, **kwargs)) as chunks:
                async for chunk in chunks:
                    for read in reading.chunk(chunk):
                        yield read
        except Exception as error:
            reading.cut_off(error)
            raise
        for read in reading.end():
            yield read

    return _astream


def read_generate(method: _Method) -> _Method:
    """Return a `_generate` whose reply is processed like a whole raw message."""

    def _generate(self: Any, messages: Any, stop: Any = None, *args: Any, **kwargs: Any) -> ChatResult:
        reading = _Reading(self, messages, kwargs)
        return reading.result(method(self, reading.messages, stop, *args, **kwargs))

    return _generate


def read_agenerate(method: _Method) -> _Method:
    """Return an `_agenerate` processed like `read_generate`."""

    async def _agenerate(self: Any, messages: Any, stop: Any = None, *args: Any, **kwargs: Any) -> ChatResult:
        reading = _Reading(self, messages, kwargs)
        return reading.result(await method(self, reading.messages, stop, *args, **kwargs))

    return _agenerate


_READERS = {"_stream": read_stream, "_astream": read_astream, "_generate": read_generate, "_agenerate": read_agenerate}


# ---------------------------------------------------------------------------------------------- twins


@mark_read
def generate_of_stream(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
    """Return the whole reply of the model's `_stream`."""
    return _result_of([chunk.message for chunk in self._stream(messages, stop, **kwargs)])


@mark_read
async def agenerate_of_astream(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
    """Return the whole reply of the model's `_astream`."""
    return _result_of([chunk.message async for chunk in self._astream(messages, stop, **kwargs)])


def _result_of(chunks: list[Any]) -> ChatResult:
    """Return the chunks of a stream as one reply.

    Raises:
        ValueError: There are none, in core's words.
    """
    if not chunks:
        raise ValueError("No generation chunks were returned")
    return result_of(chunks)
