"""Replies of a partner's chat model class: its methods run apart from ours, and how a turn ended is read in every partner's words."""

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
    """Whether a method of the partner's runs for this model: what it calls of the model's own is then the partner's too."""
    return _model.get() is model


@contextmanager
def inside(model: Any) -> Iterator[None]:
    """Run a method of the partner's."""
    token = _model.set(model)
    try:
        yield
    finally:
        _model.reset(token)


def chunks_of(model: Any, chunks: Iterator[ChatGenerationChunk]) -> Iterator[ChatGenerationChunk]:
    """A stream of the partner's. Its reader is not inside."""
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
    """A whole reply of the partner's."""
    made = [_with_ending(one, result.llm_output or {}) for one in result.generations]
    return ChatResult(generations=made, llm_output=result.llm_output)


def _with_ending(reply: _Reply, output: Mapping[str, Any]) -> _Reply:
    """The reply with a `finish_reason` where it was cut off or refused and says so in other words."""
    message = reply.message
    metadata = {**output, **(reply.generation_info or {}), **message.response_metadata}
    reason = _cut(metadata) if metadata else None
    if reason is None or metadata.get("finish_reason") == reason:
        return reply
    changed = message.model_copy(update={"response_metadata": {**message.response_metadata, "finish_reason": reason}})
    return reply.model_copy(update={"message": changed})


def _cut(metadata: Mapping[str, Any]) -> str | None:
    """Why a reply ended before its time; None where it did not."""
    details = metadata.get("incomplete_details")
    given = [metadata.get(name) for name in _ENDINGS]
    if metadata.get("status") in ("incomplete", "failed", "cancelled"):
        given += [details.get("reason") if isinstance(details, Mapping) else None, metadata["status"]]
    return next((reason for reason in given if isinstance(reason, str) and reason.lower() in BLOCKING), None)
