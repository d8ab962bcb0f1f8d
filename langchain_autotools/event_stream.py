"""LangChain's v3 event streams of a whole run.

Core makes these events of a chat model's chunks. A run is shown to it as a model whose chunks are the run's, so that the
events, their order and their closing are core's own; the run itself reports to the caller's callbacks, the stand-in to nobody.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig

from .messages import KEY, new_messages, remember

__all__ = ["arun_events", "run_events"]


class _RunAsModel(BaseChatModel):
    """A run, seen as a model that streams one message."""

    model: Any
    run_config: Any
    run_keywords: dict[str, Any]

    @property
    def _llm_type(self) -> str:
        return str(self.model._llm_type)

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        raise NotImplementedError("this stand-in only streams")

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        brought: list[Any] = []
        with _failing() as new:
            for chunk in self.model.stream(messages, self.run_config, **self.run_keywords):
                new += new_messages(chunk)
                yield _collected(chunk, brought)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        brought: list[Any] = []
        with _failing() as new:
            async with aclosing(self.model.astream(messages, self.run_config, **self.run_keywords)) as chunks:
                async for chunk in chunks:
                    new += new_messages(chunk)
                    yield _collected(chunk, brought)


@contextmanager
def _failing() -> Iterator[list[BaseMessage]]:
    """A list of the messages that chunks bring. An error that ends the run brings them all: events tell of messages only at the end."""
    new: list[BaseMessage] = []
    try:
        yield new
    except GeneratorExit:
        raise
    except BaseException as error:
        remember(error, [*new, *new_messages(error)])
        raise


def _collected(chunk: AIMessageChunk, brought: list[Any]) -> ChatGenerationChunk:
    """The chunk, the messages that chunks carry kept for the last one: of metadata, events know only the last."""
    own = chunk.response_metadata.get(KEY) or {}
    brought += own.get("messages", ())
    metadata = {key: value for key, value in chunk.response_metadata.items() if key != KEY}
    if chunk.chunk_position == "last":
        metadata[KEY] = {**own, "messages": brought} if "messages" in own else own
    return ChatGenerationChunk(message=chunk.model_copy(update={"response_metadata": metadata}))


def _stand_in(model: BaseChatModel, config: RunnableConfig | None, keywords: dict[str, Any]) -> _RunAsModel:
    return _RunAsModel(model=model, run_config=config, run_keywords=keywords)


def run_events(model: BaseChatModel, input: LanguageModelInput, config: RunnableConfig | None, keywords: dict[str, Any]) -> Any:
    """The `ChatModelStream` of a run."""
    return _stand_in(model, config, keywords).stream_events(input, {"callbacks": []}, version="v3")


def arun_events(model: BaseChatModel, input: LanguageModelInput, config: RunnableConfig | None, keywords: dict[str, Any]) -> Any:
    """The awaitable `AsyncChatModelStream` of a run."""
    return _stand_in(model, config, keywords).astream_events(input, {"callbacks": []}, version="v3")
