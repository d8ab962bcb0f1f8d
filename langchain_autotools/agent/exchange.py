"""One question to an agent: the conversation that it joins, its answer whole or as a stream."""

import asyncio
import base64
import mimetypes
import threading
import uuid
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.runnables import RunnableConfig

from ..chunks import ChunkSum, is_blank, new_chunk
from ..errors import ConfigurationError
from ..event_bus import current_scope
from ..event_types import MessagesAdded
from ..history import repair
from ..messages.calls import calls_of, open_end
from ..messages.display import markdown_of
from ..messages.metadata import attach_messages, attached_messages, own_metadata, text_of, with_own_metadata
from ..messages.run_messages import (
    HoldsRun,
    StopReason,
    new_messages,
    numbered_result,
    result_id,
    run_usage,
    serialize_messages,
    stop_reason,
)
from .model import StructuredOutput

if TYPE_CHECKING:
    from langchain_core.chat_history import BaseChatMessageHistory


class OwnMemory:
    """A conversation in a list of messages.

    Args:
        messages: The messages so far. They are copied.
        keeps: Whether messages are added to it.

    Raises:
        ConfigurationError: Something is no message.
    """

    is_local = True

    def __init__(self, messages: Iterable[BaseMessage], *, keeps: bool = True) -> None:
        self.messages = list(messages)
        wrong = next((type(one).__name__ for one in self.messages if not isinstance(one, BaseMessage)), None)
        if wrong is not None:
            raise ConfigurationError(
                f"the history holds a {wrong}, not only messages: convert_to_messages(history) of LangChain makes them"
            )
        self._keeps = keeps

    def read(self) -> list[BaseMessage]:
        """Return the messages so far."""
        return self.messages

    async def aread(self) -> list[BaseMessage]:
        """Return the messages so far."""
        return self.messages

    def add(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages."""
        if self._keeps:
            self.messages += messages

    async def aadd(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages."""
        self.add(messages)


class KeptMemory:
    """A conversation that is stored elsewhere.

    Args:
        conversation: LangChain's `BaseChatMessageHistory`.

    Raises:
        ConfigurationError: It is none.
    """

    is_local = False

    def __init__(self, conversation: "BaseChatMessageHistory") -> None:
        from langchain_core.chat_history import BaseChatMessageHistory  # here, because it costs every other program its import

        if not isinstance(conversation, BaseChatMessageHistory):
            kind = type(conversation).__name__
            raise ConfigurationError(f"conversation takes a BaseChatMessageHistory, as Conversations(...)['alice'] is one, not {kind}")
        self._conversation = conversation

    def read(self) -> list[BaseMessage]:
        """Return the messages so far."""
        return list(self._conversation.messages)

    async def aread(self) -> list[BaseMessage]:
        """Return the messages so far."""
        return list(await self._conversation.aget_messages())

    def add(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages."""
        self._conversation.add_messages(messages)

    async def aadd(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages."""
        await self._conversation.aadd_messages(messages)


Memory = OwnMemory | KeptMemory
"""The storage of a conversation's messages. `is_local` says whether they are in this process, so that access never blocks."""


def memory_of(history: Iterable[BaseMessage], conversation: Any) -> Memory:
    """Return the storage of an agent's conversation.

    Args:
        history: The messages that it begins with.
        conversation: The external storage; None for the agent's own.

    Raises:
        ConfigurationError: There are both, or `conversation` is none.
    """
    if conversation is None:
        return OwnMemory(history)
    if any(True for _ in history):
        raise ConfigurationError("the conversation has its own history: give history=[...] or conversation=, not both")
    return KeptMemory(conversation)


# ---------------------------------------------------------------------------------------------- attachments
# What a question comes with: files, read into content blocks.


Attachment = bytes | str | PathLike[str] | tuple[bytes | str | PathLike[str], str]
"""An attachment of a question: bytes, the path of a local file, or a URL (`https://...`), which is passed on and not fetched here.

In a tuple with its MIME type if neither its name nor its first bytes determine it."""


_SIGNATURES = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"%PDF": "application/pdf",
    b"ID3": "audio/mpeg",
    b"OggS": "audio/ogg",
    b"fLaC": "audio/flac",
}


_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


def question_message(question: str | HumanMessage, attachments: Sequence[Attachment]) -> HumanMessage:
    """Return the question as a message with an id, with its attachments after its text.

    Raises:
        ConfigurationError: The type of an attachment cannot be told.
        OSError: An attachment cannot be read.
    """
    message = HumanMessage(question) if isinstance(question, str) else question
    changed: dict[str, Any] = {} if message.id else {"id": str(uuid.uuid4())}
    if attachments:
        before = [{"type": "text", "text": message.content}] if isinstance(message.content, str) else message.content
        changed["content"] = [*before, *map(_block, attachments)]
    return message.model_copy(update=changed) if changed else message


def _block(attachment: Attachment) -> dict[str, Any]:
    """Return an attachment as one of LangChain's standard content blocks."""
    source, mime_type = attachment if isinstance(attachment, tuple) else (attachment, None)
    if isinstance(source, str) and source.startswith(("https://", "http://")):
        mime_type = mime_type or mimetypes.guess_type(source.partition("?")[0])[0]
        return {"type": _kind(mime_type, source), "url": source, "mime_type": mime_type}
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    name = None if isinstance(source, bytes) else Path(source).name
    mime_type = mime_type or (mimetypes.guess_type(name)[0] if name else None)
    if mime_type is None:  # what its first bytes say
        known = (found for signature, found in _SIGNATURES.items() if data.startswith(signature))
        mime_type = _RIFF.get(data[8:12]) if data.startswith(b"RIFF") else next(known, None)
    kind = _kind(mime_type, name or "bytes")
    if kind == "text-plain":
        return {"type": kind, "text": data.decode("utf-8", "replace"), "mime_type": "text/plain", **({"title": name} if name else {})}
    extra = {"filename": name} if name and kind == "file" else {}
    return {"type": kind, "base64": base64.b64encode(data).decode(), "mime_type": mime_type, **extra}


def _kind(mime_type: str | None, what: str) -> str:
    if mime_type is None:
        raise ConfigurationError(f"the type of the attachment {what!r} cannot be told: give a tuple ({what}, 'image/png')")
    kind = mime_type.partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "text-plain" if kind == "text" else "file"


# ---------------------------------------------------------------------------------------------- floor
# The lock of a conversation: one question at a time.


class ConversationLock:
    """Admits one question at a time to a conversation. An answer that is no longer read ends for the next question."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: Exchange | None = None

    def enter(self, question: "Exchange") -> None:
        """Admit a question.

        Raises:
            ConfigurationError: Another one is being answered.
        """
        while (holder := self._entered(question)) is not None:
            holder.give_way()

    async def aenter(self, question: "Exchange") -> None:
        """Like `enter`, asynchronously."""
        while (holder := self._entered(question)) is not None:
            await holder.agive_way()

    def _entered(self, question: "Exchange") -> "Exchange | None":
        """Admit a question if there is no other; else return the other one."""
        with self._lock:
            if self._holder is None:
                self._holder = question
                return None
            return self._holder

    def leave(self, question: "Exchange") -> None:
        """Remove a question that has been answered or has failed."""
        with self._lock:
            if self._holder is question:
                self._holder = None


def _busy_error() -> ConfigurationError:
    """Return the error for a question during the answer to another one."""
    return ConfigurationError("the agent is answering already: give history=[...] to ask several questions at once")


@dataclass(frozen=True)
class AgentResult(HoldsRun):
    """The result of a question to an agent.

    Attributes:
        message: The run message, as the model's `invoke` returns it.
        messages: The new messages: the question (unless the run was resumed), replies and results, in order.
        output: The output parsed from the answer, if the agent has a schema (`output=`). None without one, and while calls wait.
    """

    message: AIMessage = field(repr=False)
    messages: Sequence[BaseMessage] = field(repr=False)
    output: Any = None

    def __repr__(self) -> str:
        shown = self.text if self.output is None else self.output
        return f"AgentResult({shown!r}, {self.stop_reason}, {len(self.messages)} messages)"

    def _repr_markdown_(self) -> str:
        return markdown_of(self)

    @property
    def text(self) -> str:
        """The text of all turns."""
        return text_of(self.message)

    @property
    def usage(self) -> UsageMetadata | None:
        """The token usage of all turns; None if no reply reported any."""
        return run_usage(self.message)

    @property
    def stop_reason(self) -> StopReason | None:
        """The reason why the run ended."""
        return stop_reason(self.message)


# ---------------------------------------------------------------------------------------------- exchange
# One question to an agent and its answer.


@dataclass(eq=False, repr=False)
class Exchange:
    """One question and its answer: the input messages, and the new ones.

    A context manager around the run, synchronously and asynchronously: what is completed is kept in the conversation, also of a run that
    fails or is left. (No generator makes it: when an event loop ends it closes all that it knows at once, in any order.)

    Attributes:
        question: The question; None where a run is resumed.
        system_prompt: The system prompt before the conversation.
        memory: The conversation before the question, which gets the new messages.
        floor: Lets one question at a time into that conversation.
        output: Reads structured output out of the answer; None for none.
        stream: Gives the stream by which the answer is read, None where that is gone; itself None for an answer at a stroke.
        outcome: The result of the question, when known.
    """

    question: HumanMessage | None
    system_prompt: SystemMessage | None
    memory: Memory
    floor: ConversationLock
    output: StructuredOutput | None
    stream: "Callable[[], AgentStream | AsyncAgentStream | None] | None" = None
    outcome: AgentResult | None = None

    def __post_init__(self) -> None:
        self._prompt = [] if self.system_prompt is None else [self.system_prompt]
        self._results: list[ToolMessage] = []
        self._before: list[BaseMessage] = []
        self._answered: list[ToolMessage] = []
        self._new: list[BaseMessage] = [] if self.question is None else [self.question]
        self._asked = len(self._new)
        self._undelivered = list(self._new)  # what no chunk has brought yet
        self._parts = ChunkSum()
        self._ended = False
        self._saving: asyncio.Task[None] | None = None

    def __enter__(self) -> list[BaseMessage]:
        """Begin the question and return the input messages.

        Raises:
            ConfigurationError: Another question is being answered.
        """
        self.floor.enter(self)
        try:
            return self._messages(self.memory.read())
        except BaseException:
            self.end()
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._fail(error)
        self.end()

    async def __aenter__(self) -> list[BaseMessage]:
        """Like `__enter__`, asynchronously."""
        await self.floor.aenter(self)
        try:
            return self._messages(await self.memory.aread())
        except BaseException:
            self.end()
            raise

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._fail(error)
        await self.aend()

    def _messages(self, history: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return the input messages. Calls at the end of the history are answered before a question, permanently."""
        self._answered = [] if self.question is None else _answers_to_open_calls(history)
        self._before = [*self._prompt, *history, *self._answered]
        return [*self._before, *self._new]

    # ------------------------------------------------------------------------------------------ what comes of it

    def announced(self, config: RunnableConfig | None) -> RunnableConfig | None:
        """Emit the question as the run's first event if somebody listens; return the configuration that names the run."""
        place = current_scope.get()
        if place is None or place.call_id is not None or self.question is None:
            return config
        run_id = (config or {}).get("run_id") or uuid.uuid4()
        place.listener.tell(MessagesAdded(run_id=str(run_id), messages=(self.question,)))
        return cast("RunnableConfig", {**(config or {}), "run_id": run_id})

    def closing(self) -> Iterator[AIMessageChunk]:
        """Yield the chunk with the results of calls that were the output."""
        if self._results:
            chunk = new_chunk("", {}, None)
            attach_messages(chunk, self._results)
            yield chunk

    def add(self, chunk: AIMessageChunk) -> AIMessageChunk:
        """Record the next chunk of the answer and return it; the first one also carries the question."""
        self._parts.add(chunk)
        new = new_messages(chunk)
        self._new += new
        if not self._undelivered or (not new and is_blank(chunk)):
            return chunk
        bringing = chunk.model_copy()  # with the question, which no chunk has brought yet
        attach_messages(bringing, [*self._undelivered, *new])
        self._undelivered = []
        return bringing

    def finish(self, message: AIMessage | None = None) -> AgentResult:
        """Return the result, from the run message or from the sum of the recorded chunks."""
        if message is None:
            message = self._parts.message()
        else:
            self._new += new_messages(message)
        output = self._read(message)
        self.outcome = AgentResult(_with_results(message, self._results), tuple(self._new), output)
        return self.outcome

    def _read(self, message: AIMessage) -> Any:
        """Return the output of a run."""
        if self.output is None:
            return None
        try:
            output = self.output.read(message)
        except Exception as error:
            attach_messages(error, [] if self.stream is not None else self._new)
            raise
        if output is not None:
            self._results = self.output.results(message, [*self._before, *self._new])
            self._new += self._results
        return output

    def _fail(self, error: BaseException | None) -> None:
        """Record the messages that a failed run had completed. Unless streamed, the error carries the question with them."""
        if error is None or isinstance(error, GeneratorExit):
            return
        known = {message.id for message in (*self._before, *self._new)}  # an error before this one may have brought these
        self._new += [message for message in new_messages(error) if message.id not in known]
        if (self.stream is None or self._undelivered) and self._has_news:
            attach_messages(error, self._new)

    @property
    def _has_news(self) -> bool:
        return len(self._new) > self._asked

    # ------------------------------------------------------------------------------------------ the end

    def end(self) -> None:
        """Keep the completed messages, and allow the next question."""
        if self._ended:
            return
        self._ended = True
        try:
            if self._has_news:
                self.memory.add([*self._answered, *self._new])
        except BaseException as error:
            attach_messages(error, self._new)
            raise
        finally:
            self.floor.leave(self)

    async def aend(self) -> None:
        """Like `end`, asynchronously."""
        if self.memory.is_local or not self._has_news:
            self.end()
        elif not self._ended:
            self._ended = True
            self._saving = asyncio.ensure_future(self._save())
            await asyncio.shield(self._saving)

    async def _save(self) -> None:
        try:
            await self.memory.aadd([*self._answered, *self._new])
        except BaseException as error:
            attach_messages(error, self._new)
            raise
        finally:
            self.floor.leave(self)

    def give_way(self) -> None:
        """End the answer for the next question.

        Raises:
            ConfigurationError: It is being made.
        """
        stream = self._left_stream()
        if stream is None:  # it was asynchronous, and its event loop is about to close it
            self.end()
        else:
            stream.supersede()

    async def agive_way(self) -> None:
        """Like `give_way`, asynchronously."""
        if self._saving is not None and self._saving.get_loop() is asyncio.get_running_loop():
            await asyncio.wait([self._saving])
            return
        stream = self._left_stream()
        if stream is None:
            await self.aend()
        else:
            await stream.asupersede()

    def _left_stream(self) -> "AgentStream | AsyncAgentStream | None":
        """Return the stream that was left unread; None if it is gone."""
        if self.stream is None or self._ended:
            raise _busy_error()
        return self.stream()


def _with_results(message: AIMessage, results: Sequence[ToolMessage]) -> AIMessage:
    """Return the run message with these results for its last calls, so that nothing waits."""
    if not results:
        return message
    answered = {result.tool_call_id for result in results}
    own = dict(own_metadata(message))
    if "stop_reason" in own:
        own["stop_reason"] = "complete"
    if "messages" in own:
        own["messages"] = [*own["messages"], *serialize_messages(results)]
    changed = {
        "tool_calls": [call for call in message.tool_calls if call["id"] not in answered],
        "response_metadata": with_own_metadata(message.response_metadata, own),
    }
    whole = message.model_copy(update=changed)
    if (live := attached_messages(message)) is not None:
        attach_messages(whole, [*live, *results])
    return whole


def _answers_to_open_calls(history: Sequence[BaseMessage]) -> list[ToolMessage]:
    """Return results that tell the model that the open calls of a history did not run."""
    last, results = open_end(history)
    answered = {result.tool_call_id for result in results}
    calls = [] if last is None else calls_of(last)
    if last is None or all(call.id in answered for call in calls):
        return []
    repaired = {one.tool_call_id: one for one in repair(history) if isinstance(one, ToolMessage)}
    answers = []
    for place, call in enumerate(calls):
        if call.id not in answered and call.id in repaired:
            message_id = result_id(last, call.id) or str(uuid.uuid4())
            answers.append(numbered_result(repaired[call.id].model_copy(update={"id": message_id}), last, place))
    return answers


# ---------------------------------------------------------------------------------------------- streams
# Streams of an agent's answers.


Ask = Callable[[list[BaseMessage], RunnableConfig | None], Any]
"""A function that returns the stream of a run."""

_CLOSED = "the stream was closed: its agent was asked the next question"
_closing: set[asyncio.Task[None]] = set()  # streams that are closed on the loop on which they were read


class _Stream:
    """The common base of synchronous and asynchronous answer streams."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    @property
    def result(self) -> AgentResult:
        """The result of the answer.

        Raises:
            ConfigurationError: The stream has not been read to its end.
        """
        if self._exchange.outcome is None:
            raise ConfigurationError("the result is known when the stream has been read to its end")
        return self._exchange.outcome


class AgentStream(_Stream, Iterator[AIMessageChunk]):
    """An iterator over the chunks of an answer; the first one carries the question.

    `close` ends the run, and so does the end of a `with` block, the next question to the agent, or to drop the stream.
    """

    def __init__(self, exchange: Exchange, ask: Ask, config: RunnableConfig | None) -> None:
        super().__init__(exchange)
        exchange.stream = weakref.ref(self)
        self._chunks: Any = _read(exchange, ask, config)

    def __next__(self) -> AIMessageChunk:
        chunk: AIMessageChunk = next(self._chunks)
        return chunk

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the run. Its completed messages stay in the agent's history."""
        self._chunks.close()

    def supersede(self) -> None:
        """End the run for the next question; further reading raises an error.

        Raises:
            ConfigurationError: The next chunk is being made.
        """
        if self._chunks.gi_running:
            raise _busy_error()
        chunks, self._chunks = self._chunks, _refuse()
        chunks.close()

    async def asupersede(self) -> None:
        """Like `supersede`, asynchronously."""
        self.supersede()


class AsyncAgentStream(_Stream, AsyncIterator[AIMessageChunk]):
    """Like `AgentStream`, asynchronously, with `aclose` and `async with`."""

    def __init__(self, exchange: Exchange, ask: Ask, config: RunnableConfig | None) -> None:
        super().__init__(exchange)
        exchange.stream = weakref.ref(self)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed: asyncio.Future[None] | None = None  # is there once somebody closes the stream, done when it is closed
        self._chunks: Any = _aread(exchange, ask, config)

    async def __anext__(self) -> AIMessageChunk:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        chunk: AIMessageChunk = await anext(self._chunks)
        return chunk

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the run. Its completed messages stay in the agent's history."""
        closed = self._closed = asyncio.get_running_loop().create_future()
        try:
            await self._chunks.aclose()
        except BaseException:
            self._closed = None  # a stream that is being read is not closed
            raise
        finally:
            closed.set_result(None)

    def supersede(self) -> None:
        """End the run for the next question; further reading raises an error. Its event loop closes the request.

        Raises:
            ConfigurationError: The next chunk is being made.
        """
        if self._closed is None:
            chunks = self._superseded()
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(_close_soon, chunks)
        self._exchange.end()

    async def asupersede(self) -> None:
        """Like `supersede`, asynchronously."""
        if self._loop is not asyncio.get_running_loop():
            self.supersede()
        elif self._closed is None:
            await self._superseded().aclose()
        else:
            await asyncio.wait([self._closed])

    def _superseded(self) -> Any:
        if self._chunks.ag_running:
            raise _busy_error()
        chunks, self._chunks = self._chunks, _arefuse()
        return chunks


# The generators do not know their streams: one that did would live, with its request, until the garbage collector came.


def _read(exchange: Exchange, ask: Ask, config: RunnableConfig | None) -> Generator[AIMessageChunk, None, None]:
    with exchange as messages:
        config = exchange.announced(config)
        with closing(ask(messages, config)) as chunks:
            for chunk in chunks:
                yield exchange.add(chunk)
        exchange.finish()
        yield from exchange.closing()


async def _aread(exchange: Exchange, ask: Ask, config: RunnableConfig | None) -> AsyncGenerator[AIMessageChunk, None]:
    async with exchange as messages:
        config = exchange.announced(config)
        async with aclosing(ask(messages, config)) as chunks:
            async for chunk in chunks:
                yield exchange.add(chunk)
        exchange.finish()
        for chunk in exchange.closing():
            yield chunk


def _refuse() -> Generator[AIMessageChunk, None, None]:
    raise ConfigurationError(_CLOSED)
    yield


async def _arefuse() -> AsyncGenerator[AIMessageChunk, None]:
    raise ConfigurationError(_CLOSED)
    yield


def _close_soon(chunks: AsyncGenerator[AIMessageChunk, None]) -> None:
    task = asyncio.ensure_future(chunks.aclose())
    _closing.add(task)
    task.add_done_callback(_closing.discard)
