"""HTTP requests of a chat model: retries, streams that close with their reader, typed errors.

A vendor gives an `Exchange` for each request (`_exchange`) and what sends it (`_client_settings`), and says how errors are translated
(`_error_mapping`). The synchronous and asynchronous halves differ by their `await`s only.
"""

from abc import abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import aclosing, closing
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from pydantic import Field, PrivateAttr, WrapValidator

from ...chunks import as_chunk
from ...errors import AutoToolsError, ConfigurationError, UnsupportedFeatureError, map_errors
from ...event_bus import listening
from ...mixin import ToolsAndMessagesMixin
from ...retry.attempts import Attempts
from ...retry.policy import RetryPolicy
from ...retry.retrying import RetryStrategies, read_retry
from ...turn.raw_methods import compared
from .._transport.bounded import holding, opened_in_time, whole_in_time
from .._transport.clients import PerLoopCache
from .._transport.drain import adrain, drain
from .._transport.exchange import ClientSettings, Exchange, Response
from .._transport.no_stream import is_streaming_unsupported
from .._transport.reader import MISREAD, EndedEarly, ReplyReader, leaves_at_once, misshapen, read_body
from .._transport.secrets import SecretDict
from .._transport.timeouts import read_timeout, request_timeout
from .checks import extra_headers
from .errors import ErrorMapping, ErrorTable
from .stream_retry import AsyncOpened, Opened, aretrying_stream, retrying_stream

if TYPE_CHECKING:
    from tenacity import BaseRetrying

    Retry = RetryPolicy | RetryStrategies | BaseRetrying
else:
    Retry = Annotated[RetryPolicy, WrapValidator(read_retry)]


class HttpChatModel(ToolsAndMessagesMixin, defer_build=True):
    """A chat model that makes one HTTP request per turn."""

    max_retries: int | None = None
    """Maximum number of retries of a failed request. None: as set by `retry` (2 by default)."""
    retry: Retry = Field(default_factory=RetryPolicy, exclude=True)
    """Retry policy for failed requests, or tenacity's `Retrying` or `AsyncRetrying`, whose strategies are kept. Nothing is retried once a
    chunk has reached the caller."""
    include_response_headers: bool = False
    """Whether messages include the response's HTTP headers, in `response_metadata["headers"]`."""
    stream_chunk_timeout: float | None = None
    """Timeout in seconds between two events of a stream. None: `timeout` applies between two bytes."""

    _error_mapping: ClassVar[ErrorMapping]
    """The translation table for errors of the SDK and its HTTP library."""
    _timeout_field: ClassVar[str] = "timeout"
    """The name of the timeout field, which differs between vendors' classes."""
    _cache: PerLoopCache = PrivateAttr(default_factory=PerLoopCache)

    # ------------------------------------------------------------------------------------------ what a vendor gives

    @abstractmethod
    def _check_call(self, kwargs: Mapping[str, Any]) -> None:
        """Raise if keywords of a call cannot work."""

    @abstractmethod
    def _exchange(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        """Return the encoded request for these messages."""

    @abstractmethod
    def _client_settings(self) -> ClientSettings:
        """The settings of the HTTP client."""

    @abstractmethod
    def _secrets(self) -> list[str]:
        """Return the texts that must not appear in an error."""

    def _open(self, exchange: Exchange) -> Response:
        """Send the request and return the response as soon as its head has arrived."""
        return self._client_settings().post(exchange, self._cache)

    async def _aopen(self, exchange: Exchange) -> Response:
        """Like `_open`, asynchronously."""
        return await self._client_settings().apost(exchange, self._cache)

    # ------------------------------------------------------------------------------------------ what the HTTP client is told

    def _request_options(
        self, kwargs: Mapping[str, Any], *, stream: bool, headers: Mapping[str, Any] = {}, query: Mapping[str, Any] = {}
    ) -> dict[str, Any]:
        """Return the HTTP client's options for one request: `headers`, `params` and `timeout`, each only if set.

        Args:
            kwargs: The call's keywords; its `extra_headers` and `extra_query` win.
            stream: Whether a stream is asked for.
            headers: Headers of this request, besides those of every request, which the client has.
            query: Query parameters of this request.
        """
        options = {
            "headers": SecretDict({**headers, **extra_headers(kwargs)}),
            "params": SecretDict({**query, **(kwargs.get("extra_query") or {})}),
            "timeout": self._client_timeout(kwargs, self.stream_chunk_timeout if stream else None),
        }
        return {name: value for name, value in options.items() if value not in (None, {})}

    def _client_timeout(self, kwargs: Mapping[str, Any], idle_timeout: float | None) -> Any:
        """Return the timeout of a request in the client's form; None uses the client's default."""
        return request_timeout(self._error_mapping.sdk, self._timeout(kwargs), idle_timeout)

    def _timeout(self, kwargs: Mapping[str, Any]) -> Any:
        """Return the timeout set by the call, else by the constructor."""
        return kwargs.get("timeout") or getattr(self, self._timeout_field)

    def _idle_timeout(self, kwargs: Mapping[str, Any]) -> float | None:
        """Return the maximum number of seconds between two events of a reply; None: no limit."""
        return self.stream_chunk_timeout or read_timeout(self._timeout(kwargs))

    # ------------------------------------------------------------------------------------------ requests

    def _says_enough(self, kwargs: Mapping[str, Any]) -> bool:
        """Whether a request may have no messages because the server holds the conversation or a prompt."""
        params = {**(getattr(self, "model_kwargs", None) or {}), **(getattr(self, "extra_body", None) or {}), **kwargs}
        return self.continues_conversation(kwargs) or bool(params.get("prompt"))

    def _encoded(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        """Return the encoded request for these messages.

        Raises:
            ConfigurationError: There is no message; or a keyword is for the constructor, or has a value that cannot work.
            UnsupportedFeatureError: They hold content that the wire cannot carry, or that has none of the forms that are known.
        """
        self._check_call(kwargs)
        if not messages and not self._says_enough(kwargs):
            raise ConfigurationError("there is no message to answer: the list is empty")
        try:
            return self._exchange(compared(messages, type(self)), stop, kwargs, stream=stream)
        except AutoToolsError:
            raise
        except MISREAD as error:
            why = f"{type(error).__name__}: {error}"
            raise UnsupportedFeatureError(
                f"the request cannot be written: a content block or parameter has no known form ({why})"
            ) from error

    def _attempts(self, *, awaits: bool = False) -> Attempts:
        """Return the attempts at one request; raise for asynchronous strategies unless `awaits` is set."""
        return Attempts(self._retry_settings, type(self).__name__, awaits=awaits)

    @property
    def _retry_settings(self) -> RetryPolicy | RetryStrategies:
        """Return `retry` with the number of attempts that `max_retries` sets."""
        retry = cast("RetryPolicy | RetryStrategies", self.retry)
        return retry if self.max_retries is None else retry.with_retries(self.max_retries)

    @cached_property
    def _serialized(self) -> dict[str, Any]:
        """The model's serialized form for callbacks, with its plain settings in `kwargs`, where tracers look for them."""
        settings = {**self._identifying_params, "max_retries": self.max_retries}
        plain = {name: value for name, value in settings.items() if isinstance(value, str | int | float)}
        return {**super()._serialized, "kwargs": plain}

    def _error_table(self) -> ErrorTable:
        return self._error_mapping.table(self._secrets())

    # ------------------------------------------------------------------------------------------ streams

    def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """Make one request and yield its reply as it arrives. Closing the generator closes the connection.

        Where the server says that it does not stream, the reply is asked for whole and is one chunk.

        Args:
            messages: The messages to send, of a repaired history.
            stop: Stop sequences.
            **kwargs: Keywords of the call, `tools` and `tool_choice` among them.

        Raises:
            ConfigurationError: A keyword is for the constructor, or has a value that cannot work.
            UnsupportedFeatureError: The messages hold content that the wire cannot carry.
            ProviderError: The server refused or failed, or cannot be reached, also after the retries.
            StreamError: The reply is none of this wire.
        """
        exchange = self._encoded(messages, stop, kwargs, stream=True)
        attempts = self._attempts()
        opened = partial(self._opened, exchange, attempts, partial(self.raw_invoke, messages, stop, **kwargs))
        if listening.get() is not None:
            yield from retrying_stream(attempts, partial(opened, at_once=True))
            return
        begun, rest = opened()
        with closing(rest):
            yield from begun
            try:
                yield from rest
            except EndedEarly as early:
                yield from early.chunks

    async def araw_stream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any
    ) -> AsyncGenerator[AIMessageChunk, None]:
        """Like `raw_stream`, asynchronously. Cancelling the task closes the connection."""
        exchange = self._encoded(messages, stop, kwargs, stream=True)
        attempts = self._attempts(awaits=True)
        opened = partial(self._aopened, exchange, attempts, partial(self.araw_invoke, messages, stop, **kwargs))
        if listening.get() is not None:
            async with aclosing(aretrying_stream(attempts, partial(opened, at_once=True))) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        begun, rest = await opened()
        async with aclosing(rest):
            for chunk in begun:
                yield chunk
            try:
                async for chunk in rest:
                    yield chunk
            except EndedEarly as early:
                for chunk in early.chunks:
                    yield chunk

    def _opened(self, exchange: Exchange, attempts: Attempts, whole: Callable[[], AIMessage], *, at_once: bool = False) -> Opened:
        """Return the first chunks of a reply and an iterator of the rest. A reply that cannot be streamed is requested whole."""
        try:
            return opened_in_time(partial(attempts.call, partial(self._begin, exchange, at_once=at_once)))()
        except EndedEarly as early:
            return early.chunks, _no_chunks()
        except Exception as error:
            if not is_streaming_unsupported(error):
                raise
            return [as_chunk(whole())], _no_chunks()

    async def _aopened(
        self, exchange: Exchange, attempts: Attempts, whole: Callable[[], Awaitable[AIMessage]], *, at_once: bool = False
    ) -> AsyncOpened:
        try:
            return await attempts.acall(partial(self._abegin, exchange, at_once=at_once))
        except EndedEarly as early:
            return early.chunks, _no_achunks()
        except Exception as error:
            if not is_streaming_unsupported(error):
                raise
            return [as_chunk(await whole())], _no_achunks()

    def _begin(self, exchange: Exchange, *, at_once: bool) -> Opened:
        """Make one attempt and read up to the first chunk with visible output, or with `at_once` up to the first chunk.

        Until then a reply that fails or merely ends may be retried."""
        chunks = self._chunks(exchange)
        begun: list[AIMessageChunk] = []
        try:
            for chunk in chunks:
                begun.append(chunk)
                if at_once or leaves_at_once(chunk):
                    break
        except EndedEarly as early:
            early.chunks[:0] = begun
            raise
        return begun, chunks

    async def _abegin(self, exchange: Exchange, *, at_once: bool) -> AsyncOpened:
        chunks = self._achunks(exchange)
        begun: list[AIMessageChunk] = []
        try:
            async for chunk in chunks:
                begun.append(chunk)
                if at_once or leaves_at_once(chunk):
                    break
        except EndedEarly as early:
            early.chunks[:0] = begun
            raise
        return begun, chunks

    def _chunks(self, exchange: Exchange) -> Generator[AIMessageChunk, None, None]:
        try:
            with map_errors(self._error_table()):
                answered, response = self._sent(exchange)
                with closing(response), holding(response), closing(response.iter_bytes()) as pieces:
                    with self._reader(answered, response) as reader:
                        for piece in pieces:
                            yield from reader.feed(piece)
                            if reader.done:
                                drain(response)
                                break
                        yield from reader.finish()
        except Exception as error:
            if (turn := exchange.error_to_turn(error)) is None:
                raise
            yield turn

    async def _achunks(self, exchange: Exchange) -> AsyncGenerator[AIMessageChunk, None]:
        try:
            with map_errors(self._error_table()):
                answered, response = await self._asent(exchange)
                async with aclosing(response), aclosing(response.aiter_bytes()) as pieces:
                    with self._reader(answered, response) as reader:
                        async for piece in pieces:
                            for chunk in reader.feed(piece):
                                yield chunk
                            if reader.done:
                                await adrain(pieces)
                                break
                        for chunk in reader.finish():
                            yield chunk
        except Exception as error:
            if (turn := exchange.error_to_turn(error)) is None:
                raise
            yield turn

    def _sent(self, exchange: Exchange) -> tuple[Exchange, Response]:
        try:
            return exchange, self._open(exchange)
        except Exception as error:
            other = exchange.alternative_for(error)
            if other is None:
                raise
        return self._sent(other)

    async def _asent(self, exchange: Exchange) -> tuple[Exchange, Response]:
        try:
            return exchange, await self._aopen(exchange)
        except Exception as error:
            other = exchange.alternative_for(error)
            if other is None:
                raise
        return await self._asent(other)

    def _reader(self, exchange: Exchange, response: Response) -> ReplyReader:
        decoder, events, annotate = exchange.decoder(), exchange.events(), partial(self._annotate, response=response)
        return ReplyReader(decoder, response.headers, events, annotate, exchange.idle_timeout, exchange.watch_of_listeners())

    def _annotate(self, last: AIMessageChunk, response: Response) -> None:
        """Add metadata of the response to the last chunk of a reply."""
        if self.include_response_headers:
            last.response_metadata["headers"] = dict(response.headers)

    # ------------------------------------------------------------------------------------------ whole replies

    def raw_invoke(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AIMessage:
        """Make one request without streaming and return its reply.

        Args:
            messages: The messages to send, of a repaired history.
            stop: Stop sequences.
            **kwargs: Keywords of the call, `tools` and `tool_choice` among them.

        Raises:
            ConfigurationError: A keyword is for the constructor, or has a value that cannot work.
            UnsupportedFeatureError: The messages hold content that the wire cannot carry.
            ProviderError: The server refused or failed, or cannot be reached, also after the retries.
            StreamError: The reply is none of this wire.
        """
        exchange = self._encoded(messages, stop, kwargs, stream=False)
        return whole_in_time(partial(self._attempts().call, partial(self._read_whole, exchange)))()

    async def araw_invoke(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AIMessage:
        """Like `raw_invoke`, asynchronously."""
        exchange = self._encoded(messages, stop, kwargs, stream=False)
        return await self._attempts(awaits=True).acall(partial(self._aread_whole, exchange))

    def _read_whole(self, exchange: Exchange) -> AIMessageChunk:
        try:
            with map_errors(self._error_table()):
                answered, response = self._sent(exchange)
                with closing(response), holding(response):
                    return self._decoded(answered, response, response.read())
        except Exception as error:
            if (turn := exchange.error_to_turn(error)) is None:
                raise
            return turn

    async def _aread_whole(self, exchange: Exchange) -> AIMessageChunk:
        try:
            with map_errors(self._error_table()):
                answered, response = await self._asent(exchange)
                async with aclosing(response):
                    return self._decoded(answered, response, await response.aread())
        except Exception as error:
            if (turn := exchange.error_to_turn(error)) is None:
                raise
            return turn

    def _decoded(self, exchange: Exchange, response: Response, body: bytes) -> AIMessageChunk:
        value = read_body(body, response.headers)
        try:
            chunk = exchange.decoder().decode_body(value)
        except MISREAD as error:
            raise misshapen("the reply", body, error) from error
        self._annotate(chunk, response)
        return exchange.with_events_of(value, chunk)


def _no_chunks() -> Generator[AIMessageChunk, None, None]:
    yield from ()


async def _no_achunks() -> AsyncGenerator[AIMessageChunk, None]:
    for chunk in _no_chunks():
        yield chunk
