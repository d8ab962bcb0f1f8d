"""The parent run of a run in LangChain's callbacks, with turns and tool calls as its children."""

from collections.abc import Iterator, Sequence
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


class RunTrace(Generic[_Manager]):
    """One parent run; as a context manager it reports the error that ends it.

    Attributes:
        manager: Reports the run's end or error.
        name: The run's name.
        child: The configuration that makes turns and tool calls its children.
    """

    def __init__(self, manager: _Manager, config: RunnableConfig, name: str) -> None:
        self.manager: _Manager = manager
        self.name = name
        self.child = patch_config(config, callbacks=manager.get_child())
        self._seen: ChunkSum | None = ChunkSum() if manager.handlers else None

    def __enter__(self: "RunTrace[CallbackManagerForChainRun]") -> None: ...

    def __exit__(self: "RunTrace[CallbackManagerForChainRun]", kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.manager.on_chain_error(error)

    async def __aenter__(self: "RunTrace[AsyncCallbackManagerForChainRun]") -> None: ...

    async def __aexit__(
        self: "RunTrace[AsyncCallbackManagerForChainRun]", kind: object, error: BaseException | None, trace: object
    ) -> None:
        if error is not None:
            await self.manager.on_chain_error(error)

    def seen(self, chunks: Iterator[AIMessageChunk]) -> Iterator[AIMessageChunk]:
        """Yield the chunks, recording each."""
        return chunks if self._seen is None else self._noted(chunks)

    def _noted(self, chunks: Iterator[AIMessageChunk]) -> Iterator[AIMessageChunk]:
        for chunk in chunks:
            self.see(chunk)
            yield chunk

    def see(self, chunk: AIMessageChunk) -> None:
        """Record a chunk for the run's output; a no-op without listeners."""
        if self._seen is not None:
            self._seen.add(chunk)

    def output(self) -> AIMessage | None:
        """Return the value that the run returned, for its end event."""
        return self._seen.message() if self._seen else None


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
    return RunTrace(started, config, start["name"])


async def astart_trace(
    model: BaseChatModel, config: RunnableConfig | None, messages: Sequence[BaseMessage]
) -> RunTrace[AsyncCallbackManagerForChainRun]:
    """Begin the parent run of an asynchronous run."""
    config = ensure_config(config)
    manager = AsyncCallbackManager.configure(*_arguments(model, config))
    start = _start(model, config, messages)
    started: AsyncCallbackManagerForChainRun = await manager.on_chain_start(**start)
    return RunTrace(started, config, start["name"])
