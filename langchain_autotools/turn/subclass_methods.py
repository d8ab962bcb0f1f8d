"""The request methods that a subclass writes: how they are checked when its class is created, how their replies are read.

A mistake in a raw method (`raw_stream` and the like) would show later only, in the middle of a run and as an error of Python's own. What
cannot be seen for certain, such as what a decorator makes of a method, is not judged. A subclass may also override core's own methods
(`_stream`, `_astream`, `_generate`, `_agenerate`).
"""

import ast
import inspect
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import aclosing, suppress
from functools import wraps
from inspect import isfunction
from textwrap import dedent
from typing import Any, get_type_hints

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult, Generation

from ..errors import ConfigurationError
from ..messages.calls import calls_of
from ..messages.metadata import attach_cut_reply, cut_reply, own_metadata, with_own_metadata
from .accumulator import ai_message, without_call_pieces
from .stored_messages import canonical_message
from .turn import Turn, generation, result_of

_SIGNATURE = "(self, messages, stop=None, **kwargs)"
_STREAMS = ("raw_stream", "araw_stream")
_NAMES = (*_STREAMS, "raw_invoke", "araw_invoke")

_WHOLE = (BaseMessage, ChatResult, Generation, str)
"""Types that a stream must never yield."""


def check_raw_methods(cls: Any, ours: type) -> None:
    """Raise if `raw_stream`, or a related method, of a new class cannot work.

    Args:
        cls: The class.
        ours: The class that calls these methods.

    Raises:
        ConfigurationError: One of them is asynchronous where it must not be, or the other way round, cannot be called with what it is
            given, or returns a message where it must yield.
    """
    for name in _NAMES:
        owner = next(base for base in cls.__mro__ if name in base.__dict__)
        method = owner.__dict__[name]
        if (owner is cls or not issubclass(owner, ours)) and inspect.isfunction(method) and not hasattr(method, "__wrapped__"):
            problem = _kind_problem(name, method) or _signature_problem(method) or _return_problem(name, method)
            if problem:
                raise ConfigurationError(f"{cls.__name__}.{name} {problem}")


def _kind_problem(name: str, method: Callable[..., Any]) -> str | None:
    """Return the problem with the kind of function that a method is; None if there is none."""
    yields = inspect.isgeneratorfunction(method)
    is_async = inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)
    if name == "araw_stream":
        if inspect.iscoroutinefunction(method):
            return "has no `yield`: `yield` each chunk, an asynchronous stream returns nothing"
        return "is not asynchronous: write `async def`, or leave it out, and raw_stream runs in a thread" if yields else None
    if is_async and not name.startswith("a"):
        return f"is asynchronous: write `def`, and call what is `async def` a{name}"
    if name not in _STREAMS and (yields or inspect.isasyncgenfunction(method)):
        return f"yields: it must return one message; what yields is called {'araw_stream' if is_async else 'raw_stream'}"
    return None


def _signature_problem(method: Callable[..., Any]) -> str | None:
    """Return the problem with a method's parameters; None if there is none."""
    signature = inspect.signature(method)
    try:
        signature.bind(None, [], None, tools=[], tool_choice=None)
    except TypeError as error:
        return f"takes {signature}, and is called as {_SIGNATURE}: {error}"
    return None


def _return_problem(name: str, method: Callable[..., Any]) -> str | None:
    """Return the problem with a stream that is not a generator: it may only return an iterator from elsewhere."""
    if name not in _STREAMS or inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
        return None
    hint = None
    with suppress(Exception):  # a name of a hint need not exist at all
        hint = get_type_hints(method).get("return")
    body = _body(method)
    returned = [node.value for node in _nodes(body) if isinstance(node, ast.Return) and node.value is not None]
    if (isinstance(hint, type) and issubclass(hint, _WHOLE)) or any(_is_whole(value, body, method) for value in returned):
        return "returns a message: `yield` it, as each chunk of the reply"
    return "neither yields nor returns anything: `yield` each chunk of the reply" if body and not returned else None


def _body(method: Callable[..., Any]) -> list[ast.stmt]:
    """Return the statements of a method; empty if its source is unknown, or if it is a stub or only raises."""
    try:
        (function,) = ast.parse(dedent(inspect.getsource(method))).body
    except (OSError, SyntaxError, TypeError, ValueError):
        return []
    statements: list[ast.stmt] = getattr(function, "body", [])
    does = [
        one
        for one in statements
        if not isinstance(one, ast.Pass) and not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
    ]
    return [] if not does or isinstance(does[-1], ast.Raise) else does


def _nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes of a body, without those of nested functions and classes."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield node
            waiting.extend(ast.iter_child_nodes(node))


def _is_whole(value: ast.expr, body: list[ast.stmt], method: Callable[..., Any]) -> bool:
    """Whether an expression is certainly a message or a text: a literal, a constructor call, or a name bound to one."""
    if isinstance(value, ast.Name):
        given = [
            node for node in _nodes(body) if isinstance(node, ast.Assign) and value.id in {getattr(one, "id", "") for one in node.targets}
        ]
        stored = [node for node in _nodes(body) if isinstance(node, ast.Name) and node.id == value.id and isinstance(node.ctx, ast.Store)]
        return bool(given) and len(given) == len(stored) and all(_is_whole_value(node.value, method) for node in given)
    return _is_whole_value(value, method)


def _is_whole_value(value: ast.expr, method: Callable[..., Any]) -> bool:
    if isinstance(value, ast.Call):
        called = _resolved(value.func, method)
        return isinstance(called, type) and issubclass(called, _WHOLE)
    return isinstance(value, ast.JoinedStr) or (isinstance(value, ast.Constant) and isinstance(value.value, str))


def _resolved(function: ast.expr, method: Callable[..., Any]) -> Any:
    """Return the object that a name or dotted name in a method refers to; None if it is unknown."""
    if isinstance(function, ast.Attribute):
        return getattr(_resolved(function.value, method), function.attr, None)
    if not isinstance(function, ast.Name):
        return None
    names = inspect.getclosurevars(method)
    return {**names.builtins, **names.globals, **names.nonlocals}.get(function.id)


# ---------------------------------------------------------------------------------------------- overrides of core's own methods
#
# An override may change what the inherited method gives, or give everything itself. What it yields is then read as raw chunks are: its
# calls are decided at the end of the turn, and of what an inherited method has decided already nothing changes. It holds for its twins
# too, where the subclass leaves those as they were: as in core an asynchronous method follows its synchronous one, and a reply that is not
# streamed is made of a stream that somebody has changed.


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
    known = {name: (getattr(ours, name), getattr(BaseChatModel, name)) for name in own}
    new = {name for name, method in own.items() if isfunction(method) and not hasattr(method, _READ) and method not in known[name]}
    made = {name: mark_read(wraps(own[name])(_READERS[name](own[name]))) for name in new}
    for name, method in {**derived(made.keys()), **made}.items():
        setattr(cls, name, method)


def derived_methods(new: Collection[str], *, streams: bool) -> dict[str, Any]:
    """Return the twins of a class's own methods that follow from them, by name.

    Args:
        new: The names of its own methods.
        streams: Whether it has a stream of its own wire, for a `_generate` by itself.
    """
    twins: dict[str, Any] = {}
    if "_generate" in new and not streams and not {"_stream", "_astream"} & {*new}:
        twins |= {"_stream": BaseChatModel._stream, "_astream": BaseChatModel._astream}  # by which core knows that it does not stream
    if "_stream" in new:
        twins |= {"_astream": BaseChatModel._astream, "_generate": generate_of_stream}
    if "_generate" in new:
        twins["_agenerate"] = BaseChatModel._agenerate
    elif "_astream" in {*new, *twins}:
        twins["_agenerate"] = _agenerate_of_astream
    return twins


def mark_read(method: _Method) -> _Method:
    """Mark a method whose output is processed already, so that `install_overrides` ignores it."""
    method.__dict__[_READ] = True
    return method


@mark_read
def generate_of_stream(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
    """Return the whole reply of the model's `_stream`."""
    return _result_of([ai_message(chunk.message) for chunk in self._stream(messages, stop, **kwargs)])


@mark_read
async def _agenerate_of_astream(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
    """Return the whole reply of the model's `_astream`."""
    return _result_of([ai_message(chunk.message) async for chunk in self._astream(messages, stop, **kwargs)])


def _result_of(chunks: list[Any]) -> ChatResult:
    """Return the chunks of a stream as one reply.

    Raises:
        ValueError: There are none, in core's words.
    """
    if not chunks:
        raise ValueError("No generation chunks were returned")
    return result_of(chunks)


# ---------------------------------------------------------------------------------------------- the reading of what they give


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
        if not isinstance(chunk.message, AIMessageChunk):  # of another kind, which LangChain hands out as it is
            part = self._turn.feed(chunk) if self._turn.runs else None
            return [chunk] if not self._turn.runs else [] if part is None else [generation(part)]
        if not self._turn.runs:
            return self._without_calls(chunk, chunk.message)
        part = self._turn.feed(chunk if chunk.generation_info else chunk.message)  # how a turn ended may be in either
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
            if self._turn.runs:
                made.message = ai_message(made.message)
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
    if not runs and not own_metadata(given):  # a verdict may say more of the calls than the message does, be it in its content
        own = own_metadata(canonical_message(decided, stored=True, brief=True))
        known = [{"id": call.id, **({"extra": call.extra} if call.extra else {})} for call in calls_of(given)] if own else []
        if not own or own == {"calls": known}:
            return given
    metadata = with_own_metadata(given.response_metadata, own_metadata(decided))
    return given.model_copy(update={"id": decided.id, "response_metadata": metadata})
