"""Replies of a partner's chat model class: isolation of its methods, and its finish reasons."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from ..messages.finish_reasons import BLOCKING

_Reply = TypeVar("_Reply", bound=ChatGeneration)

_model: ContextVar[Any] = ContextVar("langchain_autotools_partner", default=None)
_ENDINGS = ("finish_reason", "stop_reason", "stopReason", "done_reason", "finishReason")


def is_inside(model: Any) -> bool:
    """Whether a method of the partner's class is running for this model, so that nested calls belong to the partner."""
    return _model.get() is model


@contextmanager
def inside(model: Any) -> Iterator[None]:
    """Mark a method of the partner's class as running."""
    token = _model.set(model)
    try:
        yield
    finally:
        _model.reset(token)


def chunks_of(model: Any, chunks: Iterator[ChatGenerationChunk]) -> Iterator[ChatGenerationChunk]:
    """Yield a stream of the partner's. Its reader runs outside the mark."""
    try:
        while True:
            with inside(model):
                chunk = next(chunks, None)
            if chunk is None:
                return
            yield _with_ending(chunk, {})
    finally:
        getattr(chunks, "close", lambda: None)()


async def achunks_of(model: Any, chunks: AsyncIterator[ChatGenerationChunk]) -> AsyncIterator[ChatGenerationChunk]:
    """Like `chunks_of`, asynchronously."""
    try:
        while True:
            with inside(model):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield _with_ending(chunk, {})
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()


def result_of(result: ChatResult) -> ChatResult:
    """Return a whole reply of the partner's."""
    made = [_with_ending(one, result.llm_output or {}) for one in result.generations]
    return ChatResult(generations=made, llm_output=result.llm_output)


def _with_ending(reply: _Reply, output: Mapping[str, Any]) -> _Reply:
    """Return the reply with a `finish_reason` if it was cut off or refused under another key."""
    message = reply.message
    metadata = {**output, **(reply.generation_info or {}), **message.response_metadata}
    reason = _cut(metadata) if metadata else None
    if reason is None or metadata.get("finish_reason") == reason:
        return reply
    changed = message.model_copy(update={"response_metadata": {**message.response_metadata, "finish_reason": reason}})
    return reply.model_copy(update={"message": changed})


def _cut(metadata: Mapping[str, Any]) -> str | None:
    """Return why a reply ended early; None if it did not."""
    details = metadata.get("incomplete_details")
    given = [metadata.get(name) for name in _ENDINGS]
    if metadata.get("status") in ("incomplete", "failed", "cancelled"):
        given += [details.get("reason") if isinstance(details, Mapping) else None, metadata["status"]]
    return next((reason for reason in given if isinstance(reason, str) and reason.lower() in BLOCKING), None)
