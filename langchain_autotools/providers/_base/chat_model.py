"""Joins a vendor's client with its mapper: requests, retries, streams that end when their reader does, typed errors, once.

A vendor's chat model gives an `Exchange` for each request (`_exchange`), opens it with its SDK (`_open`, `_aopen`), and says
how errors are translated (`_error_table`). The synchronous and asynchronous halves differ by their `await`s only.
"""

from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, ValidationError, model_serializer, model_validator

from ..._version import DISTRIBUTION, __version__
from ...chunks import as_chunk
from ...compat import CACHE_KEY
from ...errors import AutoToolsError, ConfigurationError, UnsupportedFeatureError, map_errors
from ...mixin import ToolsAndMessagesMixin
from ...retry import RetryPolicy
from ...turn.constructor import names_of, unknown_argument
from .._encode.tokens import estimate, messages_tokens
from .._transport.bounded import holding, opened_in_time, whole_in_time
from .._transport.drain import adrain, drain
from .._transport.exchange import ErrorTable, Exchange, Response
from .._transport.no_stream import refuses_streams
from .._transport.reader import MISREAD, EndedEarly, ReplyReader, leaves_at_once, misshapen, read_body
from .._transport.secrets import digest, portable, public_params, shown
from .checks import Check, check_call, check_count, explained
from .error_to_turn import arescued, rescued
from .values import DICTS, NUMBERS, check_values

__all__ = ["ErrorTable", "Exchange", "ProviderChatModel", "Response"]


class ProviderChatModel(ToolsAndMessagesMixin):
    """A chat model over a vendor's SDK."""

    model_config = ConfigDict(populate_by_name=True, arbitrary_types_allowed=True, hide_input_in_errors=True)

    max_retries: int | None = None
    """How often a failed request is made again; None leaves it to `retry` (2 retries unless changed)."""
    retry: RetryPolicy = Field(default_factory=RetryPolicy, exclude=True)
    """How often and after which waits a failed request is made again. Never after its first chunk has reached the caller."""
    include_response_headers: bool = False
    """Whether messages say the reply's HTTP headers in `response_metadata["headers"]`."""

    _refused: ClassVar[Mapping[str, str]] = {}
    """Constructor arguments that other packages know and this class refuses, with the reason. None and False ask for nothing."""
    _checks: ClassVar[Mapping[str, Check]] = {"max_retries": check_count}
    """What is asked of fields when they are complete: no request could be made with what these refuse."""
    _connection: ClassVar[frozenset[str]] = frozenset()
    """The fields that say how to reach the server, besides those that every class has. A call cannot change them."""
    _numbers: ClassVar[Mapping[str, Check]] = NUMBERS
    """The same of numbers that a request sends, given to the constructor or to a call."""
    _dicts: ClassVar[Mapping[str, str]] = DICTS
    """Parameters of a call that are dicts, each with what may have been meant instead."""

    _not_per_call: ClassVar[frozenset[str]] = ToolsAndMessagesMixin._not_per_call | {
        *("max_retries", "retry", "include_response_headers", "model_kwargs", "stream_chunk_timeout"),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        known = self._argument_names()
        unasked = {name for name in self._refused.keys() - known if kwargs.get(name) in (None, False)}
        given = {name: value for name, value in kwargs.items() if name not in unasked}
        try:
            super().__init__(*args, **given)
        except ValidationError as error:
            raise ConfigurationError(f"{type(self).__name__}: {explained(error, type(self))}") from None  # it holds all arguments
        own = {name: check for name, check in self._numbers.items() if name in type(self).model_fields}
        for name, check in {**own, **self._checks}.items():
            names = names_of(type(self), name)
            said = next((spelt for spelt in names if spelt in given), f"{names[0]} from the environment")
            check(said, getattr(self, name))
        check_values({name: getattr(self, name, None) for name in ("model_kwargs", "options")}, self._numbers, {})

    @model_validator(mode="after")
    def _set_autotools_version(self) -> Self:
        self._add_version(DISTRIBUTION, __version__)
        return self

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        return ((name, shown(name or "", value)) for name, value in super().__repr_args__())

    def _public(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        return public_params({name: shown(name, value) for name, value in kwargs.items()})

    @model_serializer(mode="wrap", when_used="json")
    def _to_json(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: shown(name, value) for name, value in handler(self).items()}

    def _get_invocation_params(self, stop: list[str] | None = None, **kwargs: Any) -> dict[str, Any]:
        """What traces tell of a request: no secret of a call's own headers and query, nor of the servers that it names.

        Core asks this before anything else of every request.
        """
        self._check_call({"stop": stop, **kwargs})
        return public_params(super()._get_invocation_params(stop, **{name: shown(name, value) for name, value in kwargs.items()}))

    def _get_llm_string(self, stop: list[str] | None = None, **kwargs: Any) -> str:
        """What the LLM cache keeps replies apart by: by such a secret too, which it holds as a digest."""
        return super()._get_llm_string(stop, **{name: shown(name, value, digest) for name, value in kwargs.items()})

    @classmethod
    def _unknown(cls, name: str) -> str:
        if name in cls._refused:
            return f"{cls.__name__} has no argument {name!r}: {cls._refused[name]}"
        return unknown_argument(cls, name, cls._argument_names(), "others that the vendor knows go into model_kwargs={...}")

    def _check_call(self, kwargs: Mapping[str, Any]) -> None:
        """Refuse keywords of a call that cannot work."""
        check_call(type(self), self._connection, kwargs)
        check_values(kwargs, self._numbers, self._dicts)

    if not TYPE_CHECKING:  # the type that core gives it is private to core

        def bind(self, **kwargs: Any) -> Any:
            """The model with these keywords in every request.

            Raises:
                ConfigurationError: One of them is for the constructor or cannot work, or two different `tools` have one name.
            """
            self._check_call(kwargs)
            return super().bind(**kwargs)

    # ------------------------------------------------------------------------------------------ what a vendor gives

    def _encoded(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        """The request for these messages.

        Raises:
            ConfigurationError: A keyword is for the constructor, or has a value that cannot work.
            UnsupportedFeatureError: They hold content that the wire cannot carry, or that has none of the forms that are known.
        """
        self._check_call(kwargs)
        try:
            return self._exchange(messages, stop, kwargs, stream=stream)
        except AutoToolsError:
            raise
        except MISREAD as error:
            why = f"{type(error).__name__}: {error}"
            raise UnsupportedFeatureError(
                f"the request cannot be written: a content block or parameter has no known form ({why})"
            ) from error

    @abstractmethod
    def _exchange(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        """The request for these messages, encoded."""

    @abstractmethod
    def _open(self, exchange: Exchange) -> Response:
        """Send the request; returns as soon as the reply's head is there."""

    @abstractmethod
    async def _aopen(self, exchange: Exchange) -> Response:
        """Like `_open`, asynchronously."""

    @abstractmethod
    def _error_table(self, exchange: Exchange) -> ErrorTable:
        """How the errors of the SDK and its HTTP library are translated, see `errors.map_errors`."""

    def _retry_policy(self) -> RetryPolicy:
        return self.retry if self.max_retries is None else self.retry.with_retries(self.max_retries)

    # ------------------------------------------------------------------------------------------ streams

    def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """Make one request and yield its reply as it comes. Closing the generator ends the connection.

        Where the server says that it does not stream, the reply is asked for whole and is one chunk.
        """
        exchange = self._encoded(messages, stop, kwargs, stream=True)
        try:
            begun, rest = opened_in_time(partial(self._retry_policy().call, partial(self._begin, exchange)))()
        except EndedEarly as early:
            yield from early.chunks
            return
        except Exception as error:
            if not refuses_streams(error):
                raise
            yield as_chunk(self.raw_invoke(messages, stop, **kwargs))
            return
        with closing(rest):
            yield from begun
            try:
                yield from rest
            except EndedEarly as early:
                yield from early.chunks

    async def araw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AsyncIterator[AIMessageChunk]:
        """Like `raw_stream`, asynchronously. Cancelling the task ends the connection."""
        exchange = self._encoded(messages, stop, kwargs, stream=True)
        try:
            begun, rest = await self._retry_policy().acall(partial(self._abegin, exchange))
        except EndedEarly as early:
            for chunk in early.chunks:
                yield chunk
            return
        except Exception as error:
            if not refuses_streams(error):
                raise
            yield as_chunk(await self.araw_invoke(messages, stop, **kwargs))
            return
        async with aclosing(rest):
            for chunk in begun:
                yield chunk
            try:
                async for chunk in rest:
                    yield chunk
            except EndedEarly as early:
                for chunk in early.chunks:
                    yield chunk

    def _begin(self, exchange: Exchange) -> tuple[list[AIMessageChunk], Generator[AIMessageChunk, None, None]]:
        """One attempt: up to the first chunk of which the caller sees anything. What fails, or just ends, before may be tried again."""
        chunks = self._chunks(exchange)
        if exchange.instead is not None:
            chunks = rescued(chunks, exchange.instead)
        begun: list[AIMessageChunk] = []
        try:
            for chunk in chunks:
                begun.append(chunk)
                if leaves_at_once(chunk):
                    break
        except EndedEarly as early:
            early.chunks[:0] = begun
            raise
        return begun, chunks

    async def _abegin(self, exchange: Exchange) -> tuple[list[AIMessageChunk], AsyncGenerator[AIMessageChunk, None]]:
        chunks = self._achunks(exchange)
        if exchange.instead is not None:
            chunks = arescued(chunks, exchange.instead)
        begun: list[AIMessageChunk] = []
        try:
            async for chunk in chunks:
                begun.append(chunk)
                if leaves_at_once(chunk):
                    break
        except EndedEarly as early:
            early.chunks[:0] = begun
            raise
        return begun, chunks

    def _chunks(self, exchange: Exchange) -> Generator[AIMessageChunk, None, None]:
        with map_errors(self._error_table(exchange)):
            answered, response = self._sent(exchange)
            with closing(response), holding(response), closing(response.iter_bytes()) as pieces:
                reader = self._reader(answered, response)
                for piece in pieces:
                    yield from reader.feed(piece)
                    if reader.done:
                        drain(response)
                        break
                yield from reader.finish()

    async def _achunks(self, exchange: Exchange) -> AsyncGenerator[AIMessageChunk, None]:
        with map_errors(self._error_table(exchange)):
            answered, response = await self._asent(exchange)
            async with aclosing(response), aclosing(response.aiter_bytes()) as pieces:
                reader = self._reader(answered, response)
                async for piece in pieces:
                    for chunk in reader.feed(piece):
                        yield chunk
                    if reader.done:
                        await adrain(pieces)
                        break
                for chunk in reader.finish():
                    yield chunk

    def _sent(self, exchange: Exchange) -> tuple[Exchange, Response]:
        try:
            return exchange, self._open(exchange)
        except Exception as error:
            other = exchange.again(error)
            if other is None:
                raise
        return self._sent(other)

    async def _asent(self, exchange: Exchange) -> tuple[Exchange, Response]:
        try:
            return exchange, await self._aopen(exchange)
        except Exception as error:
            other = exchange.again(error)
            if other is None:
                raise
        return await self._asent(other)

    def _reader(self, exchange: Exchange, response: Response) -> ReplyReader:
        decoder, events = exchange.decoder(), exchange.events()
        return ReplyReader(decoder, response.headers, events=events, silence=exchange.silence, keep_headers=self.include_response_headers)

    # ------------------------------------------------------------------------------------------ whole replies

    def raw_invoke(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AIMessage:
        """Make one request that is not streamed and return its reply."""
        exchange = self._encoded(messages, stop, kwargs, stream=False)
        return whole_in_time(partial(self._retry_policy().call, partial(self._whole, exchange)))()

    async def araw_invoke(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AIMessage:
        """Like `raw_invoke`, asynchronously."""
        exchange = self._encoded(messages, stop, kwargs, stream=False)
        return await self._retry_policy().acall(partial(self._awhole, exchange))

    def _whole(self, exchange: Exchange) -> AIMessageChunk:
        try:
            with map_errors(self._error_table(exchange)):
                answered, response = self._sent(exchange)
                with closing(response), holding(response):
                    return self._decoded(answered, response, response.read())
        except Exception as error:
            turn = exchange.instead(error) if exchange.instead else None
            if turn is None:
                raise
            return turn

    async def _awhole(self, exchange: Exchange) -> AIMessageChunk:
        try:
            with map_errors(self._error_table(exchange)):
                answered, response = await self._asent(exchange)
                async with aclosing(response):
                    return self._decoded(answered, response, await response.aread())
        except Exception as error:
            turn = exchange.instead(error) if exchange.instead else None
            if turn is None:
                raise
            return turn

    def _decoded(self, exchange: Exchange, response: Response, body: bytes) -> AIMessageChunk:
        value = read_body(body, response.headers)
        try:
            chunk = exchange.decode_body(value)
        except MISREAD as error:
            raise misshapen("the reply", body, error) from error
        if self.include_response_headers:
            chunk.response_metadata["headers"] = dict(response.headers)
        return chunk

    # ------------------------------------------------------------------------------------------ what LangChain asks

    @classmethod
    def get_lc_namespace(cls) -> list[str]:
        """Where the class is to be found, as traces name it."""
        return ["langchain_autotools"]

    # ------------------------------------------------------------------------------------------ tokens

    def get_num_tokens(self, text: str) -> int:
        """The tokens of a text: by `custom_get_token_ids` if it was given, else estimated. Never asks the network."""
        return len(self.custom_get_token_ids(text)) if self.custom_get_token_ids else estimate(text)

    def get_num_tokens_from_messages(self, messages: Sequence[BaseMessage], tools: Sequence[Any] | None = None, **kwargs: Any) -> int:
        """The tokens of a request with these messages and tools, estimated offline (see `get_num_tokens`)."""
        return messages_tokens(messages, [self.format_tool(tool) for tool in tools or ()], self.get_num_tokens)

    # ------------------------------------------------------------------------------------------ copies

    _uncopied: ClassVar[tuple[str, ...]] = ("http_client", "http_async_client")
    """Fields whose objects a copy shares: they hold locks and connections, which cannot be copied."""

    def _portable_fields(self) -> dict[str, Any]:
        """What a pickle holds in place of the fields that are, or hold, secrets, clients and connections."""
        return {}

    def __getstate__(self) -> dict[Any, Any]:
        """The model without secrets, clients and connections: what is unpickled takes its key from the environment."""
        state = super().__getstate__()
        fields = {**{name: portable(name, value) for name, value in state["__dict__"].items()}, **self._portable_fields()}
        return {**state, "__dict__": {name: value for name, value in fields.items() if name != CACHE_KEY}}

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """A copy that uses the same HTTP clients."""
        held = [getattr(self, name, None) for name in self._uncopied]
        return super().__deepcopy__({**(memo or {}), **{id(value): value for value in held if value is not None}})
