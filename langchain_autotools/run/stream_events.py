"""LangChain's v3 event streams of a whole run.

Core makes these events of a chat model's chunks. A run is shown to it as a model whose chunks are the run's, so that the
events, their order and their closing are core's own; the run itself reports to the caller's callbacks, the stand-in to nobody.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from contextvars import Context
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langsmith import tracing_context

from ..messages.metadata import KEY, attach_messages
from ..messages.run_messages import new_messages, serialize_messages


class _RunAsModel(BaseChatModel):
    """A run in the form of a model that streams one message."""

    model: Any
    run_config: Any
    run_keywords: dict[str, Any]

    @property
    def _llm_type(self) -> str:
        return str(self.model._llm_type)

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        raise NotImplementedError("this stand-in only streams")

    def _stream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        brought: list[BaseMessage] = []
        with _undelivered(brought):
            for chunk in self.model.stream(messages, self.run_config, **self.run_keywords):
                yield _collected(chunk, brought)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        brought: list[BaseMessage] = []
        with _undelivered(brought):
            async with aclosing(self.model.astream(messages, self.run_config, **self.run_keywords)) as chunks:
                async for chunk in chunks:
                    yield _collected(chunk, brought)


def _collected(chunk: AIMessageChunk, brought: list[BaseMessage]) -> ChatGenerationChunk:
    """Return the chunk, and collect its messages for the last one, since events keep only the last metadata."""
    own = chunk.response_metadata.get(KEY) or {}
    brought += new_messages(chunk)
    metadata = {key: value for key, value in chunk.response_metadata.items() if key != KEY}
    if chunk.chunk_position == "last":
        metadata[KEY] = {**own, "messages": serialize_messages(brought)} if "messages" in own else own
    return ChatGenerationChunk(message=chunk.model_copy(update={"response_metadata": metadata}))


@contextmanager
def _undelivered(brought: list[BaseMessage]) -> Iterator[None]:
    """Attach all completed messages to the exception: no event before the last one delivers a message."""
    try:
        yield
    except GeneratorExit:
        raise
    except BaseException as error:
        attach_messages(error, [*brought, *new_messages(error)])
        raise


def _stand_in(model: BaseChatModel, config: RunnableConfig | None, keywords: dict[str, Any]) -> _RunAsModel:
    return _RunAsModel(model=model, run_config=config, run_keywords=keywords, verbose=False)


def _opened(stand_in: _RunAsModel, input: LanguageModelInput) -> Any:
    with tracing_context(enabled=False):
        return stand_in.stream_events(input, {"callbacks": []}, version="v3")


async def _aopened(stand_in: _RunAsModel, input: LanguageModelInput) -> Any:
    with tracing_context(enabled=False):
        return await stand_in.astream_events(input, {"callbacks": []}, version="v3")


# The empty contexts hide from the stand-in what listens in the caller's context: the run itself reports there.


def run_events(model: BaseChatModel, input: LanguageModelInput, config: RunnableConfig | None, keywords: dict[str, Any]) -> Any:
    """Return the `ChatModelStream` of a run."""
    return Context().run(_opened, _stand_in(model, config, keywords), input)


async def arun_events(model: BaseChatModel, input: LanguageModelInput, config: RunnableConfig | None, keywords: dict[str, Any]) -> Any:
    """Return the `AsyncChatModelStream` of a run."""
    return await asyncio.create_task(_aopened(_stand_in(model, config, keywords), input), context=Context())
