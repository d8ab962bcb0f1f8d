"""HTTP requests of a chat model: retried when they fail, in time, closed with their reader.

Nothing of a reply that has only begun to write calls reaches the caller: where it breaks off it is asked for again, whoever listens. A
listener is shown the pieces as they come, and is told where they count no more; one that hands them to the caller (`Listener.delivered`)
keeps the reply from being asked for again.
"""

import asyncio
import logging
from abc import abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NoReturn, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from pydantic import Field, PrivateAttr, WrapValidator

from ...chunks import as_chunk, merge_chunks
from ...deadline import current_deadline, reply_begins
from ...errors import AutoToolsError, ConfigurationError, UnsupportedFeatureError, translated
from ...event_bus import current_scope
from ...messages.metadata import KEY, UNFORCED
from ...mixin import ToolsAndMessagesMixin
from ...retry import Attempts, RetryPolicy, RetryStrategies, checked_retry, pause
from ...turn.accumulator import restart_chunk, with_events
from .._transport.clients import PerLoopCache, Shared, adrain, drain
from .._transport.exchange import ClientSettings, Exchange, Response
from .._transport.reader import MISREAD, EndedEarly, ReplyReader, is_unasked_stream, misshapen, read_body, read_stream
from .._transport.secrets import SecretDict, secret_query, spelled
from .._transport.timeouts import held, opened_in_time, own_timeout, read_timeout, timeout_parts, whole_in_time
from .errors import ErrorMapping, is_streaming_unsupported, read_refusal
from .parameters import check_headers

Opened = tuple[list[AIMessageChunk], Generator[AIMessageChunk, None, None]]
"""The first chunks of a reply, and an iterator of the rest."""
AsyncOpened = tuple[list[AIMessageChunk], AsyncGenerator[AIMessageChunk, None]]


def _retrying_stream(attempts: Attempts, opened: Callable[[], Opened]) -> Generator[AIMessageChunk, None, None]:
    """Yield the chunks of a reply whose calls are shown while they are written, with a restart chunk between two attempts.

    Args:
        attempts: The attempts at its request.
        opened: Makes one, up to the first chunk.
    """
    wait: float | None = 0.0
    while wait is not None:
        left, wait = False, None
        begun, rest = opened()
        try:
            with closing(rest):
                for chunk in chain(begun, rest):
                    left = left or _leaves_at_once(chunk)
                    yield chunk
        except Exception as error:
            wait = None if left or _is_delivered() else attempts.wait_after(error)
            if wait is None:
                yield from _last_chunks(error)
        if wait is not None:
            yield restart_chunk()
            pause(wait)


async def _aretrying_stream(attempts: Attempts, opened: Callable[[], Awaitable[AsyncOpened]]) -> AsyncGenerator[AIMessageChunk, None]:
    """Like `_retrying_stream`, asynchronously."""
    wait: float | None = 0.0
    while wait is not None:
        left, wait = False, None
        begun, rest = await opened()
        try:
            async with aclosing(rest):
                for chunk in begun:
                    left = left or _leaves_at_once(chunk)
                    yield chunk
                async for chunk in rest:
                    left = left or _leaves_at_once(chunk)
                    yield chunk
        except Exception as error:
            wait = None if left or _is_delivered() else await attempts.await_after(error)
            for chunk in _last_chunks(error) if wait is None else ():
                yield chunk
        if wait is not None:
            yield restart_chunk()
            await asyncio.sleep(wait)


def _last_chunks(error: Exception) -> Sequence[AIMessageChunk]:
    """Return the remaining chunks of a reply that has merely ended; raise any other error."""
    if isinstance(error, EndedEarly):
        return error.chunks
    raise error


def _is_delivered() -> bool:
    """Whether the caller has received any shown fragment."""
    place = current_scope.get()
    return place is not None and place.listener.delivered


# ---------------------------------------------------------------------------------------------- http model
# HTTP requests of a chat model: retries, streams that close with their reader, typed errors.
#
# A vendor gives an `Exchange` for each request (`_exchange`) and what sends it (`_client_settings`), and says how errors are translated
# (`_error_mapping`). The synchronous and asynchronous halves differ by their `await`s only.


def _read_retry(value: Any, handler: Callable[[Any], Any]) -> Any:
    """Validate a model's field `retry`, which also accepts a dict."""
    return handler(value) if isinstance(value, Mapping) else checked_retry("retry", value)


if TYPE_CHECKING:
    from tenacity import BaseRetrying

    from ...turn.model import Converted

    Retry = RetryPolicy | RetryStrategies | BaseRetrying
else:
    Retry = Annotated[RetryPolicy, WrapValidator(_read_retry)]

_logger = logging.getLogger("langchain_autotools")

_MOST_CHANGES = 4
_PACKAGE = f"{__name__.partition('.')[0]}."
_OF_CHOICES = ("tool_choice", "tool choice", "tool_config", "toolConfig", "function_calling_config", "functionCallingConfig")


class Unforced(Shared, set[Any]):
    """The servers, accounts and models that refuse to be forced to call a tool."""


class HttpChatModel(ToolsAndMessagesMixin, defer_build=True):
    """A chat model that makes one HTTP request per turn."""

    model_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Keywords of every call: request parameters that this class does not name. A call's own take precedence."""
    max_retries: int | None = None
    """Maximum number of retries of a failed request. None: as set by `retry` (2 by default)."""
    retry: Retry = Field(default_factory=RetryPolicy, exclude=True)
    """Retry policy for failed requests, or tenacity's `Retrying` or `AsyncRetrying`, whose strategies are kept. Nothing is retried once a
    chunk has reached the caller."""
    include_response_headers: bool = False
    """Whether messages include the response's HTTP headers, in `response_metadata["headers"]`."""
    stream_chunk_timeout: float | None = None
    """Timeout in seconds between two events of a stream. None: `timeout` applies between two bytes."""

    _call_names: ClassVar[frozenset[str]] = frozenset(
        {"tool_choice", "parallel_tool_calls", "response_format", "extra_headers", "extra_query"}
    )
    """Keywords of a call that the constructor takes too, for every call: they are put into `model_kwargs`."""

    if TYPE_CHECKING:  # those that type checkers know, too; as fields they would be read where nothing is
        tool_choice: Converted[None, Any] = None  # type: ignore[assignment]
        parallel_tool_calls: Converted[None, bool | None] = None  # type: ignore[assignment]
        response_format: Converted[None, Any] = None  # type: ignore[assignment]

    _error_mapping: ClassVar[ErrorMapping]
    """The translation table for errors of the SDK and its HTTP library."""
    _timeout_field: ClassVar[str] = "timeout"
    """The name of the timeout field, which differs between vendors' classes."""
    _cache: PerLoopCache = PrivateAttr(default_factory=PerLoopCache)
    _unforced: Unforced = PrivateAttr(default_factory=Unforced)

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

    @property
    @abstractmethod
    def _address_query(self) -> Mapping[str, Any]:
        """Return the query parameters of the base URL."""

    @abstractmethod
    def _secrets(self) -> list[str]:
        """Return the texts that must not appear in an error."""

    def _open(self, exchange: Exchange) -> Response:
        """Send the request and return the response as soon as its head has arrived."""
        return self._client_settings().post(exchange, self._cache)

    async def _aopen(self, exchange: Exchange) -> Response:
        """Like `_open`, asynchronously."""
        return await self._client_settings().apost(exchange, self._cache)

    # ------------------------------------------------------------------------------------------ keywords of every call

    @property
    def _standing_keywords(self) -> dict[str, Any]:
        """The keywords of every call: what `model_kwargs` holds besides names of arguments."""
        arguments = self._argument_names()
        standing = {name: value for name, value in self.model_kwargs.items() if name not in arguments}
        choice = self.take_tool_choice(standing)
        return standing if choice is None else {**standing, "tool_choice": choice}

    @property
    def _further_params(self) -> dict[str, Any]:
        """The request parameters in `model_kwargs` that have the names of arguments."""
        arguments = self._argument_names()
        return {name: value for name, value in self.model_kwargs.items() if name in arguments}

    def _add_standing(self, keywords: dict[str, Any]) -> None:
        standing = {name: value for name, value in self._standing_keywords.items() if name not in keywords}
        choice = standing.pop("tool_choice", None)
        declares = keywords.get("tools") or (self.tools and "tools" not in keywords)
        given = {**standing, **keywords, **({"tool_choice": choice} if choice is not None and declares else {})}
        keywords.clear()
        keywords.update(given)

    # ------------------------------------------------------------------------------------------ what the HTTP client is told

    def _request_options(
        self, kwargs: Mapping[str, Any], *, stream: bool, headers: Mapping[str, Any] = {}, query: Mapping[str, Any] = {}
    ) -> dict[str, Any]:
        """Return the HTTP client's options for one request: `headers`, `params` and `timeout`, each only if set.

        Args:
            kwargs: The call's keywords; its `_extra_headers` and `extra_query` win.
            stream: Whether a stream is asked for.
            headers: Headers of this request, besides those of every request, which the client has.
            query: Query parameters of this request.
        """
        options: dict[str, Any] = {}
        if own := SecretDict(kwargs.get("extra_headers") or {}):
            check_headers("extra_headers", own)
            headers = SecretDict({**headers, **spelled(own)})
        if headers:
            options["headers"] = SecretDict(headers)
        if params := SecretDict({**self._address_query, **query, **(kwargs.get("extra_query") or {})}):
            options["params"] = secret_query(params)
        timeout = self._client_timeout(kwargs, self.stream_chunk_timeout if stream else None)
        return options if timeout is None else {**options, "timeout": timeout}

    def _client_timeout(self, kwargs: Mapping[str, Any], idle_timeout: float | None) -> Any:
        """Return the timeout of a request in the client's form; None uses the client's default."""
        timeout = self._timeout(kwargs)
        if timeout is None and idle_timeout is not None:  # else the client's own holds
            timeout = own_timeout(getattr(self, "http_client", None), getattr(self, "http_async_client", None))
        if idle_timeout is None and (timeout is None or isinstance(timeout, int | float)):
            return timeout
        load: Any = self._error_mapping.sdk
        sdk = load()
        if idle_timeout is None and isinstance(timeout, sdk.Timeout):  # another HTTP library's object is converted
            return timeout
        return sdk.Timeout(timeout_parts(sdk.DEFAULT_TIMEOUT if timeout is None else timeout, idle_timeout))

    def _timeout(self, kwargs: Mapping[str, Any]) -> Any:
        """Return the timeout set by the call, else by the constructor."""
        return kwargs.get("timeout") or getattr(self, self._timeout_field)

    def _idle_timeout(self, kwargs: Mapping[str, Any]) -> float | None:
        """Return the maximum number of seconds between two events of a reply; None: no limit."""
        return self.stream_chunk_timeout or read_timeout(self._timeout(kwargs))

    # ------------------------------------------------------------------------------------------ requests

    def _encoded(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        """Return the encoded request for these messages.

        Raises:
            ConfigurationError: There is no message; or a keyword is for the constructor, or has a value that cannot work.
            UnsupportedFeatureError: They hold content that the wire cannot carry, or that has none of the forms that are known.
        """
        self._check_call(kwargs)
        if not messages and not self.continues_conversation(kwargs):
            params = {**self.model_kwargs, **(getattr(self, "extra_body", None) or {}), **kwargs}
            if not params.get("prompt"):  # else the server holds it
                raise ConfigurationError("there is no message to answer: the list is empty")
        cls = type(self)
        for method in (cls.raw_stream, cls.araw_stream, cls.raw_invoke, cls.araw_invoke):
            if not method.__module__.startswith(_PACKAGE):
                messages = [*messages]  # a subclass's own method may change a message in place, after it was compared
                break
        try:
            exchange = self._exchange(messages, stop, kwargs, stream=stream)
            forces = kwargs.get("tool_choice") is not None and kwargs.get("tools")
            return self._forcing(exchange, messages, stop, kwargs, stream=stream) if forces else exchange
        except AutoToolsError:
            raise
        except MISREAD as error:
            why = f"{type(error).__name__}: {error}"
            raise UnsupportedFeatureError(
                f"the request cannot be written: a content block or parameter has no known form ({why})"
            ) from error

    def _forcing(
        self, exchange: Exchange, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool
    ) -> Exchange:
        """Return a request that goes once more, asking for a call without force, where the server refuses to be forced (wire quirk T-08).

        Its reply is marked: who needs the call looks whether it came."""
        choice = self.read_tool_choice(kwargs["tool_choice"])
        if not choice.forced:
            return exchange
        free = {**kwargs, "tool_choice": choice.lasting or self.format_tool_choice("auto", kwargs["tools"])}
        key = (self._client_settings(), kwargs.get("model")) if self._unforced else None

        def unforced() -> Exchange:
            return replace(self._exchange(messages, stop, free, stream=stream), unforced=True)

        def change(error: Exception, _: Exchange) -> Exchange | None:
            refusal = read_refusal(error, _OF_CHOICES, exchange.body)
            if refusal is None or refusal.missed:
                return None
            _logger.warning("the server refuses to be forced to call a tool: it is asked without force, and may call none")
            return replace(unforced(), taken=partial(self._unforced.add, (self._client_settings(), kwargs.get("model"))))

        return unforced() if key in self._unforced else replace(exchange, alternatives=(change, *exchange.alternatives))

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

    def _raise_translated(self, error: Exception) -> NoReturn:
        """Raise the vendor's own error for an error of the SDK or the HTTP library, which is kept as its cause; else the error itself."""
        new = translated(error, self._error_mapping.table(self._secrets))
        if new is error:
            raise error
        raise new from error

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
        attempts = Attempts(self._retry_settings, type(self).__name__)
        opened = partial(self._opened, exchange, attempts, partial(self.raw_invoke, messages, stop, **kwargs))
        if current_scope.get() is not None:
            yield from _retrying_stream(attempts, partial(opened, at_once=True))
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
        attempts = Attempts(self._retry_settings, type(self).__name__, awaits=True)
        opened = partial(self._aopened, exchange, attempts, partial(self.araw_invoke, messages, stop, **kwargs))
        if current_scope.get() is not None:
            async with aclosing(_aretrying_stream(attempts, partial(opened, at_once=True))) as chunks:
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
            begin = partial(attempts.call, partial(self._begin, exchange, at_once=at_once))
            return begin() if (deadline := current_deadline()) is None else opened_in_time(begin, deadline)
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
                if at_once or _leaves_at_once(chunk):
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
                if at_once or _leaves_at_once(chunk):
                    break
        except EndedEarly as early:
            early.chunks[:0] = begun
            raise
        return begun, chunks

    def _chunks(self, exchange: Exchange) -> Generator[AIMessageChunk, None, None]:
        try:
            answered, response = self._sent(exchange)
            with closing(response), held(response), closing(response.iter_bytes()) as pieces, self._reader(answered, response) as reader:
                for piece in pieces:
                    yield from reader.feed(piece)
                    if reader.done:
                        drain(response)
                        break
                yield from reader.finish()
        except Exception as error:
            yield self._turn_of(error, exchange)

    async def _achunks(self, exchange: Exchange) -> AsyncGenerator[AIMessageChunk, None]:
        try:
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
            yield self._turn_of(error, exchange)

    def _turn_of(self, error: Exception, exchange: Exchange) -> AIMessageChunk:
        """Return the turn that an error of a request stands for; raise the vendor's own error, or this one, if it is none."""
        try:
            self._raise_translated(error)
        except Exception as new:
            if (turn := exchange.error_to_turn(new)) is None:
                raise
            return turn

    def _sent(self, exchange: Exchange) -> tuple[Exchange, Response]:
        """Send a request, and after a refusal another form of it, a few times at most, whatever `max_retries` is."""
        for left in range(_MOST_CHANGES, -1, -1):
            try:
                response = self._open(exchange)
                break
            except Exception as error:
                exchange = _changed(exchange, error, left)
        if exchange.taken is not None:
            exchange.taken()
        return exchange, response

    async def _asent(self, exchange: Exchange) -> tuple[Exchange, Response]:
        for left in range(_MOST_CHANGES, -1, -1):
            try:
                response = await self._aopen(exchange)
                break
            except Exception as error:
                exchange = _changed(exchange, error, left)
        if exchange.taken is not None:
            exchange.taken()
        return exchange, response

    def _reader(self, exchange: Exchange, response: Response) -> ReplyReader:
        decoder, events, annotate = exchange.decoder(), exchange.events(), partial(self._annotate, response=response)
        if exchange.unforced:
            annotate = partial(_marked_unforced, annotate)
        watch = None if current_scope.get() is None else exchange.watch()
        return ReplyReader(decoder, response.headers, events, annotate, exchange.idle_timeout, watch)

    def _annotate(self, last: AIMessageChunk, response: Response) -> None:
        """Add metadata of the response to the last chunk of a reply."""
        if self.include_response_headers:
            last.response_metadata["headers"] = dict(response.headers)

    # ------------------------------------------------------------------------------------------ whole replies

    def raw_invoke(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AIMessage:
        """Make one request without streaming and return its reply; a server that streams it all the same is read to the end.

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
        try:
            attempts = Attempts(self._retry_settings, type(self).__name__)
            return whole_in_time(partial(attempts.call, partial(self._read_whole, exchange)))()
        except EndedEarly as early:
            return merge_chunks(early.chunks)

    async def araw_invoke(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AIMessage:
        """Like `raw_invoke`, asynchronously."""
        exchange = self._encoded(messages, stop, kwargs, stream=False)
        try:
            attempts = Attempts(self._retry_settings, type(self).__name__, awaits=True)
            return await attempts.acall(partial(self._aread_whole, exchange))
        except EndedEarly as early:
            return merge_chunks(early.chunks)

    def _read_whole(self, exchange: Exchange) -> AIMessageChunk:
        try:
            answered, response = self._sent(exchange)
            with closing(response), held(response):
                return self._decoded(answered, response, response.read())
        except Exception as error:
            return self._turn_of(error, exchange)

    async def _aread_whole(self, exchange: Exchange) -> AIMessageChunk:
        try:
            answered, response = await self._asent(exchange)
            async with aclosing(response):
                return self._decoded(answered, response, await response.aread())
        except Exception as error:
            return self._turn_of(error, exchange)

    def _decoded(self, exchange: Exchange, response: Response, body: bytes) -> AIMessageChunk:
        if is_unasked_stream(body, response.headers):
            return read_stream(self._reader(exchange, response), body)
        value = read_body(body, response.headers)
        try:
            chunk = exchange.decoder().decode_body(value)
        except MISREAD as error:
            raise misshapen("the reply", body, error) from error
        if exchange.unforced:
            _marked_unforced(lambda _: None, chunk)
        self._annotate(chunk, response)
        if current_scope.get() is None:
            return chunk
        watch = exchange.watch()
        return with_events(chunk, [*watch.feed(value), *watch.finish()])


_KEPT_BACK = frozenset({"tool_calls", "function_call"})


def _leaves_at_once(chunk: AIMessageChunk) -> bool:
    """Whether any part of a raw chunk reaches the caller before the turn ends: all but fragments of calls do. These too end a wait for the
    beginning of the reply."""
    if chunk.content or chunk.additional_kwargs.keys() - _KEPT_BACK or chunk.response_metadata:
        return True
    if (begins := reply_begins.get()) is not None and (chunk.tool_call_chunks or chunk.additional_kwargs):
        begins()
    return False


def _marked_unforced(annotate: Callable[[AIMessageChunk], None], last: AIMessageChunk) -> None:
    annotate(last)
    last.response_metadata[KEY] = {**(last.response_metadata.get(KEY) or {}), UNFORCED: True}


def _changed(exchange: Exchange, error: Exception, left: int) -> Exchange:
    """Return another form of a refused request; raise its error if none is known, too many were tried, or the run has ended."""
    other = exchange.alternative_for(error) if left else None
    if other is None:
        raise error
    if (end := current_deadline()) is not None:
        end.check()
    return other


def _no_chunks() -> Generator[AIMessageChunk, None, None]:
    yield from ()


async def _no_achunks() -> AsyncGenerator[AIMessageChunk, None]:
    for chunk in _no_chunks():
        yield chunk
