"""Tools with an output format in one turn, which the server cannot combine because its format's grammar rules out calls.

(ollama/ollama#8095, #11185: with `format` set, tools are never called.) So a turn that has both is asked without the format. Where the
model then calls a tool, or writes JSON by itself, that is the turn. Where it answers in any other words, the same messages
are sent once more, with the format and without the tools, and that reply is the turn; its token counts are those of both.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import add_usage

from ...messages.metadata import text_of
from .._encode.json_text import read_object
from .parameters import OllamaParameters

_Reply = TypeVar("_Reply", bound=AIMessage)
_Ask = Callable[..., Iterable[_Reply]]
_Asked = AsyncGenerator[_Reply, None]


def format_last(ask: _Ask[_Reply], model: OllamaParameters, kwargs: Mapping[str, Any]) -> Iterator[_Reply]:
    """Yield the reply of a turn, from one request or two.

    Args:
        ask: Makes a request of these keywords, and gives its reply.
        model: The model, for the format that its constructor set.
        kwargs: The keywords of the turn.
    """
    free, bound = _requests(model, kwargs)
    return iter(ask(**free)) if bound is None else _twice(ask, free, bound)


def aformat_last(ask: Callable[..., _Asked[_Reply]], model: OllamaParameters, kwargs: Mapping[str, Any]) -> _Asked[_Reply]:
    """Like `format_last`, asynchronously."""
    free, bound = _requests(model, kwargs)
    return ask(**free) if bound is None else _atwice(ask, free, bound)


def _requests(model: OllamaParameters, kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the keywords of a turn's first request, and those of its second; None if one is enough."""
    form = kwargs.get("format", model.format) or kwargs.get("response_format")
    if not form or not kwargs.get("tools") or kwargs.get("tool_choice") == "none":
        return dict(kwargs), None
    plain = {**kwargs, "format": None, "response_format": None}
    return plain, {**plain, "format": form, "tools": None, "tool_choice": None}


def _twice(ask: _Ask[_Reply], free: dict[str, Any], bound: dict[str, Any]) -> Iterator[_Reply]:
    first = list(ask(**free))
    yield from first if _is_settled(first) else (_with_usage_of(first, chunk) for chunk in ask(**bound))


async def _atwice(ask: Callable[..., _Asked[_Reply]], free: dict[str, Any], bound: dict[str, Any]) -> _Asked[_Reply]:
    first = [chunk async for chunk in ask(**free)]
    if _is_settled(first):
        for chunk in first:
            yield chunk
        return
    async with aclosing(ask(**bound)) as chunks:
        async for chunk in chunks:
            yield _with_usage_of(first, chunk)


def _is_settled(chunks: Sequence[AIMessage]) -> bool:
    """Whether a reply without a format needs none: it has calls, is JSON, or was cut off."""
    if any(chunk.additional_kwargs.get("tool_calls") for chunk in chunks):
        return True
    cut = any(chunk.response_metadata.get("finish_reason") in ("incomplete", "length") for chunk in chunks)
    return cut or read_object("".join(map(text_of, chunks)).strip()) is not None


def _with_usage_of(first: Sequence[AIMessage], reply: _Reply) -> _Reply:
    """Return a reply, or a chunk of it, with the token counts of the reply that it replaces added."""
    if reply.usage_metadata:
        for chunk in first:
            reply.usage_metadata = add_usage(chunk.usage_metadata, reply.usage_metadata)
    return reply
