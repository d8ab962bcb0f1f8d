"""Streams without listeners, whose chunks bypass core's work for callback handlers.

Core does for every chunk of a stream what handlers need: it wraps the chunk, sets its fields through pydantic, tells the handlers,
keeps it, and adds all of them up at the end. Where there is no handler, `stream` lets core open the run as ever (its configuration,
its rate limiter, its run id), and `_stream` gives core one empty chunk and hands the stream itself over past it.
"""

from collections.abc import AsyncGenerator, Generator
from typing import Any

from langchain_core.callbacks import CallbackManager
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config

UNWATCHED = "_unwatched"
"""The keyword that gives `_stream` a `Handover`. It goes no further."""

Parts = Generator[AIMessageChunk, None, None] | AsyncGenerator[AIMessageChunk, None]


class Handover:
    """Passes the parts of one stream from `_stream` to `stream`, around core."""

    def __init__(self) -> None:
        self._parts: Parts | None = None

    def put(self, parts: Parts) -> ChatGenerationChunk:
        """Hand the parts over; returns what goes to core in their place, an empty chunk that core gives the run's id."""
        self._parts = parts
        return ChatGenerationChunk(message=AIMessageChunk(content="", chunk_position="last"))

    def take(self) -> Any:
        """Return the parts of the stream, on the first call only; None if none were handed over."""
        parts, self._parts = self._parts, None
        return parts


def is_watched(model: BaseChatModel, config: RunnableConfig | None) -> bool:
    """Whether core has callback handlers for a stream: of the configuration, the model, the context or the environment."""
    callbacks = ensure_config(config).get("callbacks")
    return bool(CallbackManager.configure(callbacks, model.callbacks, model.verbose).handlers)
