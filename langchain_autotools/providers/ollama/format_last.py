"""Tools and a format in one turn, which the server cannot do: a format is a grammar, and under a grammar no call can be written.

(ollama/ollama#8095, #11185: with `format` set, tools are never called.) So a turn that has both is asked without the format. Where the
model then calls a tool, or writes JSON by itself, that is the turn. Where it answers in any other words, the same messages
are sent once more, with the format and without the tools, and that reply is the turn; its token counts are those of both.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import add_usage

from ...messages.metadata import text_of
from .._encode.json_text import read_object
from .parameters import OllamaParameters

__all__ = ["formatted", "is_settled", "with_usage_of"]

_Reply = TypeVar("_Reply", bound=AIMessage)


def formatted(model: OllamaParameters, kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The keywords of a turn's first request, and those of its second; None where one will do."""
    form = kwargs.get("format", model.format) or kwargs.get("response_format")
    if not form or not kwargs.get("tools") or kwargs.get("tool_choice") == "none":
        return dict(kwargs), None
    plain = {**kwargs, "format": None, "response_format": None}
    return plain, {**plain, "format": form, "tools": None, "tool_choice": None}


def is_settled(chunks: Sequence[AIMessage]) -> bool:
    """Whether a reply that came without a format needs none: it calls, it is JSON, or it was cut off."""
    if any(chunk.additional_kwargs.get("tool_calls") for chunk in chunks):
        return True
    cut = any(chunk.response_metadata.get("finish_reason") in ("incomplete", "length") for chunk in chunks)
    return cut or read_object("".join(map(text_of, chunks)).strip()) is not None


def with_usage_of(first: Sequence[AIMessage], reply: _Reply) -> _Reply:
    """A reply, or a chunk of it, that also counts the tokens of the reply that it takes the place of."""
    if reply.usage_metadata:
        for chunk in first:
            reply.usage_metadata = add_usage(chunk.usage_metadata, reply.usage_metadata)
    return reply
