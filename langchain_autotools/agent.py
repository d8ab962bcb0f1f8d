"""`Agent`: a chat model that runs its tools, a system prompt and a conversation, in one object.

It owns no loop: every question is one run of the model.
"""

import base64
import mimetypes
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.runnables import RunnableConfig

from .chunks import ChunkSum
from .errors import ConfigurationError
from .messages.carrier import new_messages, run_usage
from .messages.endings import HoldsRun, stop_reason
from .messages.metadata import text_of
from .messages.stop_reasons import StopReason
from .mixin import ToolsAndMessagesMixin
from .providers.registry import init_chat_model
from .turn.forming import only_shows

Attachment = bytes | str | PathLike[str] | tuple[bytes | str | PathLike[str], str]
"""What a question comes with: bytes, the path of a local file, or an address (`https://...`), which is passed on and not fetched here. In a
tuple with its MIME type where neither its name nor its first bytes tell it."""

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


@dataclass(frozen=True)
class AgentResult(HoldsRun):
    """What a question to an agent came to.

    Attributes:
        message: The run message, as the model's `invoke` returns it.
        messages: The new messages: the question (unless the run was resumed), replies and results, in order.
    """

    message: AIMessage = field(repr=False)
    messages: Sequence[BaseMessage] = field(repr=False)

    def __repr__(self) -> str:
        return f"AgentResult({self.text!r}, {self.stop_reason}, {len(self.messages)} messages)"

    @property
    def text(self) -> str:
        """The text of all turns."""
        return text_of(self.message)

    @property
    def usage(self) -> UsageMetadata | None:
        """The tokens of all turns together; None where no reply told of any."""
        return run_usage(self.message)

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the run ended."""
        return stop_reason(self.message)


class _Exchange:
    """One question and what comes of it: the messages to ask with, once it is asked, and those that are new.

    Args:
        agent: The agent that is asked.
        question: The question; None where a run is resumed.
        history: The conversation before it; None for the agent's own, which then gets the new messages.
    """

    def __init__(self, agent: "Agent", question: HumanMessage | None, history: Sequence[BaseMessage] | None) -> None:
        self._agent = agent
        self._given = None if history is None else list(history)
        self._keeps = history is None
        self._new: list[BaseMessage] = [] if question is None else [question]
        self._asked = len(self._new)
        self._parts = ChunkSum()

    @contextmanager
    def under_way(self) -> Iterator[list[BaseMessage]]:
        """The messages to ask with. Keeps what is completed in the agent's history, also of a run that fails or is left; only one such
        run at a time."""
        if self._keeps and not self._agent._lock.acquire(blocking=False):
            raise ConfigurationError("the agent is answering already: give history=[...] to ask several questions at once")
        prompt, before = self._agent.system_prompt, self._agent.history if self._given is None else self._given
        try:
            yield [*([] if prompt is None else [prompt]), *before, *self._new]
        except GeneratorExit:
            raise
        except BaseException as error:
            self._new += new_messages(error)
            raise
        finally:
            if self._keeps:
                if len(self._new) > self._asked:
                    self._agent.history += self._new
                self._agent._lock.release()

    def take(self, chunk: AIMessageChunk) -> AIMessageChunk:
        """Take the next chunk of the answer."""
        if chunk.__dict__["additional_kwargs"].__class__ is dict or not only_shows(chunk):
            self._parts.add(chunk)
        self._new += new_messages(chunk)
        return chunk

    def result(self, message: AIMessage | None = None) -> AgentResult:
        """What the question came to: the run message, or the sum of the chunks that were taken."""
        if message is None:
            return AgentResult(self._parts.message(), tuple(self._new))
        self._new += new_messages(message)
        return AgentResult(message, tuple(self._new))


class _Stream:
    """The chunks of an answer, and after the last one what it came to."""

    def __init__(self, exchange: _Exchange) -> None:
        self._exchange = exchange
        self._result: AgentResult | None = None

    @property
    def result(self) -> AgentResult:
        """What the answer came to.

        Raises:
            ConfigurationError: The stream has not been read to its end.
        """
        if self._result is None:
            raise ConfigurationError("the result is known when the stream has been read to its end")
        return self._result


class AgentStream(_Stream, Iterator[AIMessageChunk]):
    """The chunks of an answer, as they come. `close` ends the run."""

    def __init__(self, exchange: _Exchange, ask: Callable[[list[BaseMessage]], Iterator[AIMessageChunk]]) -> None:
        super().__init__(exchange)
        self._generator = self._read(ask)

    def __next__(self) -> AIMessageChunk:
        return next(self._generator)

    def close(self) -> None:
        """End the run. What it had completed stays in the agent's history."""
        self._generator.close()

    def _read(self, ask: Callable[[list[BaseMessage]], Any]) -> Generator[AIMessageChunk, None, None]:
        with self._exchange.under_way() as messages, closing(ask(messages)) as chunks:
            for chunk in chunks:
                yield self._exchange.take(chunk)
            self._result = self._exchange.result()


class AsyncAgentStream(_Stream, AsyncIterator[AIMessageChunk]):
    """Like `AgentStream`, asynchronously; `aclose` ends the run."""

    def __init__(self, exchange: _Exchange, ask: Callable[[list[BaseMessage]], AsyncIterator[AIMessageChunk]]) -> None:
        super().__init__(exchange)
        self._generator = self._read(ask)

    async def __anext__(self) -> AIMessageChunk:
        return await anext(self._generator)

    async def aclose(self) -> None:
        """End the run. What it had completed stays in the agent's history."""
        await self._generator.aclose()

    async def _read(self, ask: Callable[[list[BaseMessage]], Any]) -> AsyncGenerator[AIMessageChunk, None]:
        with self._exchange.under_way() as messages:
            async with aclosing(ask(messages)) as chunks:
                async for chunk in chunks:
                    yield self._exchange.take(chunk)
            self._result = self._exchange.result()


class Agent:
    """A model that runs its tools, a system prompt, and the conversation with it.

    Args:
        model: `"provider:model"` as `init_chat_model` takes it, or a chat model of this package.
        tools: The tools, as the model takes them. None leaves a given model its own.
        system_prompt: What stands before every conversation.
        history: The messages that the conversation begins with. They are copied.
        **kwargs: Arguments of the model, where it is named: `max_turns=5`, `requires_approval=[...]`, `temperature=0`.

    Attributes:
        model: The chat model.
        system_prompt: The system prompt as a message; None for none.
        history: The conversation so far, without the system prompt.

    Raises:
        ConfigurationError: The model is none of this package, or arguments are given for a model that is made already.
    """

    def __init__(
        self,
        model: str | ToolsAndMessagesMixin,
        *,
        tools: Any = None,
        system_prompt: str | SystemMessage | None = None,
        history: Iterable[BaseMessage] = (),
        **kwargs: Any,
    ) -> None:
        self.model = _model(model, tools, kwargs)
        self.system_prompt = SystemMessage(system_prompt) if isinstance(system_prompt, str) else system_prompt
        self.history: list[BaseMessage] = list(history)
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, history=list(state["history"]), _lock=threading.Lock())

    def __repr__(self) -> str:
        return f"Agent({self.model!r}, {len(self.history)} messages)"

    def run(
        self,
        question: str | HumanMessage | None = None,
        *,
        attachments: Iterable[Attachment] = (),
        history: Sequence[BaseMessage] | None = None,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AgentResult:
        """Ask a question.

        Args:
            question: The question. None with `resume=decisions`, which goes on with calls that wait for them.
            attachments: What the question comes with: bytes, paths of local files, addresses.
            history: The conversation before the question. Without it the agent's own, which then gets the new messages; with it the
                agent keeps nothing, and any number of questions may be asked at once.
            config: LangChain's configuration.
            **kwargs: As of the model's `invoke`: `max_turns=3`, `cancel=event`, `resume=decisions`.

        Raises:
            ConfigurationError: There is no question, an attachment's type cannot be told, or the agent is answering already.
            OSError: An attachment cannot be read.
        """
        exchange = self._exchange(question, attachments, history, kwargs)
        with exchange.under_way() as messages:
            return exchange.result(self.model.invoke(messages, config, **kwargs))

    async def arun(
        self,
        question: str | HumanMessage | None = None,
        *,
        attachments: Iterable[Attachment] = (),
        history: Sequence[BaseMessage] | None = None,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AgentResult:
        """Like `run`, asynchronously."""
        exchange = self._exchange(question, attachments, history, kwargs)
        with exchange.under_way() as messages:
            return exchange.result(await self.model.ainvoke(messages, config, **kwargs))

    def run_stream(
        self,
        question: str | HumanMessage | None = None,
        *,
        attachments: Iterable[Attachment] = (),
        history: Sequence[BaseMessage] | None = None,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AgentStream:
        """Like `run`, piece by piece: the chunks of the answer as they come, then its `result`."""
        exchange = self._exchange(question, attachments, history, kwargs)
        return AgentStream(exchange, partial(self.model.stream, config=config, **kwargs))

    def arun_stream(
        self,
        question: str | HumanMessage | None = None,
        *,
        attachments: Iterable[Attachment] = (),
        history: Sequence[BaseMessage] | None = None,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncAgentStream:
        """Like `run_stream`, asynchronously."""
        exchange = self._exchange(question, attachments, history, kwargs)
        return AsyncAgentStream(exchange, partial(self.model.astream, config=config, **kwargs))

    def _exchange(self, question: Any, attachments: Iterable[Attachment], history: Sequence[BaseMessage] | None, kwargs: Any) -> _Exchange:
        if question is None and kwargs.get("resume") is None:
            raise ConfigurationError("there is no question; resume=decisions goes on without one")
        return _Exchange(self, None if question is None else _asked(question, list(attachments)), history)


def _model(model: Any, tools: Any, kwargs: dict[str, Any]) -> ToolsAndMessagesMixin:
    if isinstance(model, str):
        named: Any = init_chat_model(model, **({} if tools is None else {"tools": tools}), **kwargs)
        return named  # type: ignore[no-any-return]
    if not isinstance(model, ToolsAndMessagesMixin):
        raise ConfigurationError(f"model is 'provider:model' or a chat model of this package, not {type(model).__name__}")
    if kwargs:
        raise ConfigurationError(f"the model is made already: give {', '.join(sorted(kwargs))} to it")
    return model if tools is None else model.with_tools(tools)


def _asked(question: str | HumanMessage, attachments: Sequence[Attachment]) -> HumanMessage:
    """The question as a message, with what it comes with after its text."""
    message = HumanMessage(question) if isinstance(question, str) else question
    if not attachments:
        return message
    before = [{"type": "text", "text": message.content}] if isinstance(message.content, str) else message.content
    return message.model_copy(update={"content": [*before, *map(_block, attachments)]})


def _block(attachment: Attachment) -> dict[str, Any]:
    """An attachment as one of LangChain's standard content blocks."""
    source, mime_type = attachment if isinstance(attachment, tuple) else (attachment, None)
    if isinstance(source, str) and source.startswith(("https://", "http://")):
        mime_type = mime_type or mimetypes.guess_type(source.partition("?")[0])[0]
        return {"type": _kind(mime_type, source), "url": source, "mime_type": mime_type}
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    name = None if isinstance(source, bytes) else Path(source).name
    mime_type = mime_type or (mimetypes.guess_type(name)[0] if name else None) or _sniffed(data)
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


def _sniffed(data: bytes) -> str | None:
    """The MIME type that the first bytes tell; None where they tell none."""
    if data[:4] == b"RIFF":
        return _RIFF.get(data[8:12])
    return next((mime_type for signature, mime_type in _SIGNATURES.items() if data.startswith(signature)), None)
