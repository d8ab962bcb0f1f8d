"""The trace of a call in LangChain's callbacks: a parent run whose children are turns and tool calls, or none."""

import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForChainRun,
    CallbackManager,
    CallbackManagerForChainRun,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, patch_config

from ..chunks import ChunkSum

_Manager = TypeVar("_Manager", CallbackManagerForChainRun, AsyncCallbackManagerForChainRun)


class Trace:
    """The trace of one call. This base class makes no parent run: the LLM run is the caller's.

    Args:
        model: The model.
        config: LangChain's configuration.

    Attributes:
        child: The configuration of turns and tool calls.
        records: Whether the chunks of the call are recorded.
    """

    records = False

    def __init__(self, model: BaseChatModel, config: RunnableConfig | None) -> None:
        self._model = model
        self.child = config

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None: ...

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None: ...

    def identity(self) -> tuple[str, str]:
        """Return the id and the name by which listeners know the call."""
        known = ensure_config(self.child)
        return str(known.get("run_id") or uuid.uuid4()), known.get("run_name") or self._model.get_name()

    def record(self, chunks: Iterable[AIMessageChunk]) -> None:
        """Record chunks for the output of the parent run."""

    def end(self, message: AIMessage | None = None) -> None:
        """Report the end of the parent run, with the message or the sum of the recorded chunks."""

    async def aend(self, message: AIMessage | None = None) -> None:
        """Like `end`, asynchronously."""


class RunTrace(Trace, Generic[_Manager]):
    """The trace of a call with a parent run. As a context manager it reports the error that ends the run."""

    def __init__(self, model: BaseChatModel, manager: _Manager, config: RunnableConfig, name: str) -> None:
        super().__init__(model, patch_config(config, callbacks=manager.get_child()))
        self._manager: _Manager = manager
        self._name = name
        self._sum = ChunkSum()
        self.records = bool(manager.handlers)

    def __exit__(self: "RunTrace[CallbackManagerForChainRun]", kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._manager.on_chain_error(error)

    async def __aexit__(
        self: "RunTrace[AsyncCallbackManagerForChainRun]", kind: object, error: BaseException | None, trace: object
    ) -> None:
        if error is not None:
            await self._manager.on_chain_error(error)

    def identity(self) -> tuple[str, str]:
        """Return the id and the name of the parent run."""
        return str(self._manager.run_id), self._name

    def record(self, chunks: Iterable[AIMessageChunk]) -> None:
        """Record chunks for the output of the parent run."""
        for chunk in chunks:
            self._sum.add(chunk)

    def _output(self, message: AIMessage | None) -> AIMessage | None:
        return message or (self._sum.message() if self._sum else None)

    def end(self: "RunTrace[CallbackManagerForChainRun]", message: AIMessage | None = None) -> None:
        """Report the end of the parent run, with the message or the sum of the recorded chunks."""
        self._manager.on_chain_end(self._output(message))

    async def aend(self: "RunTrace[AsyncCallbackManagerForChainRun]", message: AIMessage | None = None) -> None:
        """Like `end`, asynchronously."""
        await self._manager.on_chain_end(self._output(message))


def _arguments(model: BaseChatModel, config: RunnableConfig) -> tuple[Any, ...]:
    tags, metadata = config.get("tags"), config.get("metadata")
    return config.get("callbacks"), model.callbacks, model.verbose, tags, model.tags, metadata, model.metadata


def _start(model: BaseChatModel, config: RunnableConfig, messages: Sequence[BaseMessage]) -> dict[str, Any]:
    name = config.get("run_name") or model.get_name()
    return {"serialized": None, "inputs": {"messages": list(messages)}, "name": name, "run_id": config.pop("run_id", None)}


def start_trace(
    model: BaseChatModel, config: RunnableConfig | None, messages: Sequence[BaseMessage]
) -> RunTrace[CallbackManagerForChainRun]:
    """Begin the parent run of a synchronous run."""
    config = ensure_config(config)
    manager = CallbackManager.configure(*_arguments(model, config))
    start = _start(model, config, messages)
    started: CallbackManagerForChainRun = manager.on_chain_start(**start)
    return RunTrace(model, started, config, start["name"])


async def astart_trace(
    model: BaseChatModel, config: RunnableConfig | None, messages: Sequence[BaseMessage]
) -> RunTrace[AsyncCallbackManagerForChainRun]:
    """Begin the parent run of an asynchronous run."""
    config = ensure_config(config)
    manager = AsyncCallbackManager.configure(*_arguments(model, config))
    start = _start(model, config, messages)
    started: AsyncCallbackManagerForChainRun = await manager.on_chain_start(**start)
    return RunTrace(model, started, config, start["name"])
