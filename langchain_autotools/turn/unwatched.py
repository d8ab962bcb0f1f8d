"""Streams that nobody watches: their chunks go to the caller past core's work for callback handlers.

Core does for every chunk of a stream what handlers need: it wraps the chunk, sets its fields through pydantic, tells the handlers,
keeps it, and adds all of them up at the end. Where there is no handler, `stream` lets core open the run as ever (its configuration,
its rate limiter, its run id) and is handed one chunk, the opening, that holds the stream itself.
"""

from collections.abc import AsyncGenerator, Generator
from typing import Any

from langchain_core.callbacks import CallbackManager
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config

__all__ = ["PAST_CORE", "Parts", "is_watched", "opened", "opening"]

PAST_CORE = "_past_core"
"""The keyword that asks `_stream` for an opening. It goes no further."""

_PARTS = "_autotools_parts"

Parts = Generator[AIMessageChunk, None, None] | AsyncGenerator[AIMessageChunk, None]


def is_watched(model: BaseChatModel, config: RunnableConfig | None) -> bool:
    """Whether core would tell anybody of a stream's chunks: handlers of the configuration, the model, the context, the environment."""
    callbacks = ensure_config(config).get("callbacks")
    return bool(CallbackManager.configure(callbacks, model.callbacks, model.verbose).handlers)


def opening(parts: Parts) -> ChatGenerationChunk:
    """The chunk that hands a stream's parts through core; core gives it the run's id."""
    message = AIMessageChunk(content="", chunk_position="last")
    message.__dict__[_PARTS] = parts
    return ChatGenerationChunk(message=message)


def opened(chunk: AIMessageChunk) -> Any:
    """The parts that an opening holds; None of any other chunk."""
    return chunk.__dict__.pop(_PARTS, None)
