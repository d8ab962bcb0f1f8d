"""Construction of a request to the Responses API from a model's settings.

Wire facts: `max_output_tokens`, `reasoning.effort`, `text.format` and `text.verbosity`; functions are flat, and are held to their
schema unless they say `strict: false`, which chat completions takes for granted; there are no stop sequences, seeds, penalties,
log-likelihood biases and no audio replies (platform.openai.com/docs/api-reference/responses/create). Stop sequences are left out
with a warning, since agents that read text bind them whatever the API; the others are refused.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from ...errors import ConfigurationError
from .._encode.encoder import message_origin, origin_of
from .._transport.exchange import Exchange
from .parameters import OpenAIParameters
from .responses_decode import ResponsesDecoder
from .responses_items import ResponsesEvents, answers_in_blocks
from .responses_mapper import ResponsesMapper

_logger = logging.getLogger("langchain_autotools")
_HERE = "the Responses API has no such parameter"
_TEXT = "the Responses API replies in text"
_REFUSED = {
    "seed": _HERE,
    "logit_bias": _HERE,
    "presence_penalty": _HERE,
    "frequency_penalty": _HERE,
    "modalities": _TEXT,
    "audio": _TEXT,
}
_ENCRYPTED = "reasoning.encrypted_content"
_LOG_PROBABILITIES = "message.output_text.logprobs"
_STREAM_OPTIONS = frozenset({"include_obfuscation"})


def responses_params(
    model: OpenAIParameters, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool, why: str = ""
) -> dict[str, Any]:
    """Return all parameters of one request; see `ProviderChatModel._request_params` for the arguments.

    Args:
        model: The model, for what its constructor set.
        stop: The call's stop sequences.
        kwargs: The call's keywords.
        stream: Whether a stream is asked for.
        why: The reason for using this API.

    Raises:
        ConfigurationError: A parameter has no meaning in this API.
    """
    params = model._request_params(stop, kwargs, stream=stream)
    if params.pop("n", 1) != 1:
        raise ConfigurationError("n must be 1: a run has one reply")
    if params.pop("stop", None):
        _logger.warning("stop is not sent, and no text is cut: the Responses API has no stop sequences%s", _advice(why))
    check_sendable({name: params.pop(name, None) for name in _REFUSED}, why)
    if params.get("background") and not stream:
        raise ConfigurationError("background=True gives no reply to a request that is not streamed: stream, or leave it out")
    limit = params.pop("max_completion_tokens", None)
    if limit is not None:
        params.setdefault("max_output_tokens", limit)
    effort = params.pop("reasoning_effort", None)
    if effort is not None and ("reasoning_effort" in kwargs or "effort" not in (params.get("reasoning") or {})):
        params["reasoning"] = {**(params.get("reasoning") or {}), "effort": effort}
    _put(params, "text", _text_param(params))
    _put(params, "include", _included(model, params))
    if not {"model", "model_name"} & kwargs.keys():
        params["model"] = model._responses_model
    _put(params, "stream_options", {key: value for key, value in (params.get("stream_options") or {}).items() if key in _STREAM_OPTIONS})
    if "tools" in params:
        params["tools"] = [wire_tool(tool) for tool in params["tools"]]
    if "tool_choice" in params:
        params["tool_choice"] = wire_choice(params["tool_choice"])
    return params


def check_sendable(asked: Mapping[str, Any], why: str) -> None:
    """Raise if a parameter does not exist in this API.

    Args:
        asked: Parameters of chat completions.
        why: The reason for using this API.

    Raises:
        ConfigurationError: One of them asks for something.
    """
    for name, lack in _REFUSED.items():
        value = asked.get(name)
        if value is not None if name == "seed" else value:  # a penalty of 0 asks for nothing; a seed of 0 does
            raise ConfigurationError(f"{name} cannot be sent: {lack}{_advice(why)}")


def _advice(why: str) -> str:
    """Return why a request goes to this API, and what sends it to the other one where that serves it, too.

    Args:
        why: The reason for using this API; "" where it is not known.
    """
    if not why or why.startswith("use_responses_api"):  # chat completions refuses what any other reason sends here
        return "; use_responses_api=False has it"
    return f"; the request goes there because of {why}"


def _put(params: dict[str, Any], name: str, value: Any) -> None:
    """Set a parameter; remove it if the value is empty."""
    params.pop(name, None)
    if value:
        params[name] = value


def _text_param(params: dict[str, Any]) -> dict[str, Any]:
    """Return format and verbosity of the reply's text."""
    text = dict(params.get("text") or {})
    form, verbosity = params.pop("response_format", None), params.pop("verbosity", None)
    if form is not None:
        text["format"] = {"type": form["type"], **(form.get("json_schema") or {})}
    return text if verbosity is None else {**text, "verbosity": verbosity}


def _included(model: OpenAIParameters, params: dict[str, Any]) -> list[str]:
    """Return the `include` list. Unless stored, reasoning is requested in encrypted form, because only then can it be sent back."""
    include = list(params.get("include") or ())
    if params.pop("logprobs", None):
        include.append(_LOG_PROBABILITIES)
    if params.get("store") is False and model._profile_for(str(params["model"])).get("reasoning_output"):
        include.append(_ENCRYPTED)
    return list(dict.fromkeys(include))


# ---------------------------------------------------------------------------------------------- tools


def wire_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a declared tool in this wire's flat form; a builtin tool unchanged."""
    function, custom = tool.get("function"), tool.get("custom")
    around = {key: value for key, value in tool.items() if key not in ("type", "function", "custom")}
    if tool.get("type") == "function":
        body = {"parameters": {"type": "object", "properties": {}}, **(function if isinstance(function, Mapping) else {}), **around}
        return {"type": "function", **body, "strict": body.get("strict") or False}
    if tool.get("type") == "custom" and isinstance(custom, Mapping):
        form = custom.get("format")
        inner = form.get("grammar") if isinstance(form, Mapping) else None
        grammar = {"format": {"type": "grammar", **inner}} if isinstance(inner, Mapping) else {}
        return {"type": "custom", **custom, **around, **grammar}
    return dict(tool)


def wire_choice(choice: Any) -> Any:
    """Return a tool choice in this wire's flat form."""
    if not isinstance(choice, Mapping):
        return choice
    kind = choice.get("type")
    inner = choice.get(str(kind))
    if not isinstance(inner, Mapping):
        return dict(choice)
    if kind == "allowed_tools":
        tools: Sequence[Any] = inner.get("tools") or ()
        return {"type": kind, "mode": inner.get("mode") or "auto", "tools": [wire_choice(tool) for tool in tools]}
    return {"type": kind, **inner}


# ---------------------------------------------------------------------------------------------- exchange
# Construction of a request to the Responses API from a model's settings and the mapper.


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
    mapper = _responses_mapper(model, origin)
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

    def plain(error: Any, refused: Exchange) -> Exchange | None:
        if getattr(error, "status_code", None) not in (400, 404) or not _ABOUT_ITEMS.search(f"{error} {error.body}"):
            return None
        body = _responses_mapper(model, origin, opaque=False).encode_request(messages, params, after=known)
        return None if body == refused.body else replace(refused, body=body, taken=None, alternatives=())

    return Exchange(
        body=mapper.encode_request(messages, params, after=known),
        decoder=decoder,
        watch=ResponsesEvents,
        options=model._request_options(kwargs, stream=stream, query=model.default_query or {}),
        path=_PATH,
        idle_timeout=model._idle_timeout(kwargs),
        alternatives=(plain,),
    )


def _responses_mapper(model: OpenAIParameters, origin: str, *, opaque: bool = True) -> ResponsesMapper:
    """Return the mapper for an origin, cached because it keeps the messages that it has encoded."""
    keys = tuple(model.part_keys)
    return model._cache.get((origin, keys, opaque), lambda: ResponsesMapper(origin=origin, part_keys=keys, opaque=opaque))


def _known_to_server(messages: Sequence[BaseMessage], origin: str) -> tuple[int, str | None]:
    """Return the number of messages that the server has stored up to its last reply, and that reply's id."""
    replies = ((number, one) for number, one in enumerate(reversed(messages)) if isinstance(one, AIMessage))
    following, last = next(replies, (0, None))
    identifier = last.response_metadata.get("id") if last and message_origin(last) == origin else None
    return (len(messages) - following, identifier) if following and identifier and isinstance(identifier, str) else (0, None)
