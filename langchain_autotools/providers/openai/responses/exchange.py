"""Construction of a request to the Responses API from a model's settings and the mapper."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from ..._encode.origin import message_origin, origin_of
from ..._transport.exchange import Exchange
from ..parameters import OpenAIParameters
from .client_calls import answers_in_blocks
from .decode import ResponsesDecoder
from .mapper import ResponsesMapper
from .parameters import responses_params
from .vendor_events import ResponsesEvents

_PATH = "/responses"
_ABOUT_ITEMS = re.compile(r"reasoning|encrypted|item with id|input\[\d+\]\.\w", re.IGNORECASE)


def responses_exchange(
    model: OpenAIParameters,
    messages: list[BaseMessage],
    stop: list[str] | None,
    kwargs: Mapping[str, Any],
    *,
    stream: bool,
    why: str = "",
) -> Exchange:
    """Return a request to the Responses API.

    Where the server refuses reasoning or other items that it sent before (they have expired, or another organization asks), the
    same request is made once more with the texts and calls alone.

    Args:
        model: The model, for what its constructor set.
        messages: The history.
        stop: Stop sequences, which this API does not have.
        kwargs: The call's keywords.
        stream: Whether a stream is asked for.
        why: The reason for using this API.

    Raises:
        ConfigurationError: A parameter has no meaning in this API.
    """
    params = responses_params(model, stop, kwargs, stream=stream, why=why)
    origin = origin_of(f"{model._endpoint or ''}{_PATH}", str(params["model"]))
    mapper = _mapper(model, origin)
    known, previous = _known_to_server(messages, origin) if model.use_previous_response_id else (0, None)
    if previous is not None and "previous_response_id" not in params:
        params["previous_response_id"] = previous
    else:
        known = 0

    decoder = partial(
        ResponsesDecoder,
        origin=origin,
        request=params,
        stored=params.get("store") is not False,
        blocks=model.output_version == "v1",
        listed=answers_in_blocks(params.get("tools") or ()),
    )

    exchange = Exchange(
        body=mapper.encode_request(messages, params, after=known),
        decoder=decoder,
        watch=ResponsesEvents,
        options=model._request_options(kwargs, stream=stream, query=model.default_query or {}),
        path=_PATH,
        idle_timeout=model._idle_timeout(kwargs),
    )

    def alternative_for(error: Any) -> Exchange | None:
        if getattr(error, "status_code", None) not in (400, 404) or not _ABOUT_ITEMS.search(f"{error} {error.body}"):
            return None
        plain = _mapper(model, origin, opaque=False).encode_request(messages, params, after=known)
        return None if plain == exchange.body else replace(exchange, body=plain)

    return replace(exchange, alternative_for=alternative_for)


def _mapper(model: OpenAIParameters, origin: str, *, opaque: bool = True) -> ResponsesMapper:
    """Return the mapper for an origin, cached because it keeps the messages that it has encoded."""
    keys = tuple(model.part_keys)
    return model._cache.get((origin, keys, opaque), lambda: ResponsesMapper(origin=origin, part_keys=keys, opaque=opaque))


def _known_to_server(messages: Sequence[BaseMessage], origin: str) -> tuple[int, str | None]:
    """Return the number of messages that the server has stored up to its last reply, and that reply's id."""
    replies = ((number, one) for number, one in enumerate(reversed(messages)) if isinstance(one, AIMessage))
    following, last = next(replies, (0, None))
    identifier = last.response_metadata.get("id") if last and message_origin(last) == origin else None
    return (len(messages) - following, identifier) if following and identifier and isinstance(identifier, str) else (0, None)
