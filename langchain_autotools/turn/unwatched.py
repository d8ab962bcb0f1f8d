"""Streams without listeners, whose chunks bypass core's work for callback handlers.

Core does for every chunk of a stream what handlers need: it wraps the chunk, sets its fields through pydantic, tells the handlers,
keeps it, and adds all of them up at the end. Where there is no handler, `stream` lets core open the run as ever (its configuration,
its rate limiter, its run id), and `_stream` gives core one empty chunk and hands the stream itself over past it.
"""

from contextlib import AbstractContextManager, closing, nullcontext
from typing import Any

from langchain_core.callbacks import CallbackManager
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config

from .turn import Turn

UNWATCHED = "_unwatched"
"""The keyword that gives `_stream` a `Handover`. It goes no further."""


class Handover:
    """Passes one turn and its raw stream from `_stream` to `stream`, around core."""

    def __init__(self) -> None:
        self._given: tuple[Turn, Any] | None = None

    def put(self, turn: Turn, raw: Any) -> ChatGenerationChunk:
        """Hand a turn and its raw stream over; return what core gets in their place, an empty chunk that it gives the run's id."""
        self._given = turn, raw
        return ChatGenerationChunk(message=AIMessageChunk(content="", chunk_position="last"))

    def take(self) -> tuple[Turn, Any] | None:
        """Return the turn and its raw stream, on the first call only; None if none were handed over."""
        given, self._given = self._given, None
        return given


def closed_after(raw: Any) -> AbstractContextManager[Any]:
    """Return a context manager that closes a raw stream at its end, where it can be closed: any iterable may be one."""
    return closing(raw) if hasattr(raw, "close") else nullcontext(raw)


def is_watched(model: BaseChatModel, config: RunnableConfig | None) -> bool:
    """Whether core has callback handlers for a stream: of the configuration, the model, the context or the environment."""
    callbacks = ensure_config(config).get("callbacks")
    return bool(CallbackManager.configure(callbacks, model.callbacks, model.verbose).handlers)
