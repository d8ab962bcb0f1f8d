"""What one request says besides its messages: parameters in the wire's names, and what only the HTTP client needs."""

from collections.abc import Mapping
from typing import Any

from .._base import parameters
from .._transport.timeouts import request_timeout
from .errors import sdk
from .parameters import OpenAIParameters
from .profiles import profile_of
from .structured import response_format

__all__ = ["default_params", "request_options", "request_params"]

_CLIENT_KEYWORDS = frozenset({"extra_headers", "extra_query", "timeout", "stream_usage", "extra_body"})
# What LangChain users call it, and what the wire calls it now.
_SYNONYMS = {"max_tokens": "max_completion_tokens", "model_name": "model", "stop_sequences": "stop"}


def default_params(model: OpenAIParameters) -> dict[str, Any]:
    """The parameters that the constructor sets, in the wire's names."""
    fields = {wire: getattr(model, name) for name, wire in model._wire_names.items()}
    said = {name: value for name, value in fields.items() if value is not None and value != []}
    return {"model": model._wire_model, **said, **_renamed(model.model_kwargs)}


def request_params(model: OpenAIParameters, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
    """Every parameter of one request. Keywords of the call go before the constructor's; None means: do not send.

    Args:
        model: The model, for what its constructor set.
        stop: The call's stop sequences.
        kwargs: The call's keywords, `tools` and `tool_choice` among them; names that are not known go to the wire as they are.
        stream: Whether a stream is asked for.
    """
    called = _renamed({name: value for name, value in kwargs.items() if name not in _CLIENT_KEYWORDS})
    params = {**default_params(model), **called, **({} if stop is None else {"stop": stop})}
    if "temperature" not in called and not _takes_temperature(model, params):
        params.pop("temperature", None)
    if params.get("response_format") is not None:
        params["response_format"] = response_format(params["response_format"])
    if not params.get("tools"):
        params = {name: value for name, value in params.items() if name not in ("tools", "tool_choice", "parallel_tool_calls")}
    params |= _stream_params(model, params, kwargs) if stream else {"stream": None, "stream_options": None}
    body = {**(model.extra_body or {}), **(kwargs.get("extra_body") or {})}
    return {name: value for name, value in params.items() if value is not None} | body


def _renamed(params: Mapping[str, Any]) -> dict[str, Any]:
    return {_SYNONYMS.get(name, name): value for name, value in params.items()}


def _stream_params(model: OpenAIParameters, params: Mapping[str, Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """`stream`, and `stream_options` where token counts are wanted or somebody set other options."""
    options = dict(params.get("stream_options") or {})
    asked = [kwargs.get("stream_usage"), options.get("include_usage"), model.stream_usage]
    wanted = next((value for value in asked if isinstance(value, bool)), False)
    if wanted or "include_usage" in options:
        options["include_usage"] = wanted
    disabled = "stream_options" in (model.disabled_params or {})
    return {"stream": True, "stream_options": None if disabled or not options else options}


def _takes_temperature(model: OpenAIParameters, params: Mapping[str, Any]) -> bool:
    """Whether to send the constructor's temperature: some models refuse any but 1, unless their reasoning is off."""
    name = str(params["model"])
    known = profile_of(model.model_name if name == model._wire_model else name)
    profile = model._profile_for(name)
    effort = params.get("reasoning_effort") or (params.get("reasoning") or {}).get("effort")
    if effort == "none" or params.get("temperature") == 1:
        return True
    reasons = bool(effort and known and profile.get("reasoning_output"))
    return profile.get("temperature") is not False and not reasons


# ---------------------------------------------------------------------------------------------- for the HTTP client


def request_options(model: OpenAIParameters, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
    """Headers, query and timeout of one request, as the SDK's request options. The constructor's headers are the client's."""
    timeout = request_timeout(sdk, model._timeout(kwargs), model.stream_chunk_timeout if stream else None)
    return parameters.request_options(kwargs, timeout, {}, model.default_query or {})
