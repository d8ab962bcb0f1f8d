"""What one request says besides its messages: parameters in the wire's names, and what only the HTTP client needs."""

from collections.abc import Mapping
from typing import Any

from .._base.checks import extra_headers
from .._transport.secrets import SecretDict
from .._transport.timeouts import timeout_parts
from .client import DEFAULT_TIMEOUT
from .parameters import OPTIONS, OllamaParameters, lowered_headers
from .schemas import output_format

__all__ = ["default_params", "request_options", "request_params"]

_CLIENT_KEYWORDS = frozenset({"extra_headers", "timeout"})
# Other vendors' parameters that callers of any model give; here they mean nothing.
_MEANINGLESS = frozenset({"strict", "parallel_tool_calls", "stream_usage"})
# What LangChain users call it, and what the wire calls it.
_SYNONYMS = {"reasoning": "think", "reasoning_effort": "think", "max_tokens": "num_predict", "model_name": "model"}
_JSON = {"content-type": "application/json", "accept": "application/json"}
_OF_THE_CALL = _CLIENT_KEYWORDS | _MEANINGLESS | {"options", "response_format", "tool_choice"}


def default_params(model: OllamaParameters) -> dict[str, Any]:
    """The parameters that the constructor sets, in the wire's names."""
    own = {name: getattr(model, name) for name in OPTIONS}
    options = {name: value for name, value in own.items() if value is not None and value != []} | model.options
    probabilities = True if model.top_logprobs is not None else model.logprobs
    said = {
        "model": model.model,
        "think": model.reasoning,
        "format": model.format,
        "logprobs": probabilities,
        "top_logprobs": model.top_logprobs,
        "keep_alive": model.keep_alive,
        "options": options or None,
    }
    return {name: value for name, value in said.items() if value is not None} | model.model_kwargs


def request_params(model: OllamaParameters, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
    """Every parameter of one request. Keywords of the call go before the constructor's; None means: do not send.

    Args:
        model: The model, for what its constructor set.
        stop: The call's stop sequences.
        kwargs: The call's keywords, `tools` and `tool_choice` among them; names that are not known go to the wire as they are.
        stream: Whether a stream is asked for.
    """
    called = {_SYNONYMS.get(name, name): value for name, value in kwargs.items() if name not in _OF_THE_CALL}
    if kwargs.get("response_format") is not None and called.get("format") is None:
        called["format"] = kwargs["response_format"]
    params = {**default_params(model), **called}
    options = {**(params.pop("options", None) or {}), **(kwargs.get("options") or {})}
    options |= {name: params.pop(name) for name in OPTIONS if name in params}
    options |= {} if stop is None else {"stop": stop}
    if params.get("format") is not None:
        params["format"] = output_format(params["format"]) or None
    if not params.get("tools") or kwargs.get("tool_choice") == "none":  # who must not call is told of no tools
        params.pop("tools", None)
    params |= {"options": {name: value for name, value in options.items() if value is not None} or None, "stream": stream}
    return {name: value for name, value in params.items() if value is not None}


# ---------------------------------------------------------------------------------------------- for the HTTP client


def request_options(model: OllamaParameters, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Headers of one request, and its timeout where anybody set one."""
    headers = {**_JSON, **_authorization(model), **lowered_headers(model.client_kwargs)}
    headers |= {name.lower(): value for name, value in extra_headers(kwargs).items()}
    timeout = model._timeout(kwargs)
    if timeout is None and model.stream_chunk_timeout is None:
        return {"headers": SecretDict(headers)}
    parts = timeout_parts(DEFAULT_TIMEOUT if timeout is None else timeout, model.stream_chunk_timeout)
    return {"headers": SecretDict(headers), "timeout": parts}


def _authorization(model: OllamaParameters) -> dict[str, str]:
    """A header of the user's own goes before the URL's user, and that before a key."""
    if any("authorization" in lowered_headers(arguments) for arguments in model.all_client_kwargs):
        return {}
    if model.address.authorization:
        return {"authorization": model.address.authorization}
    return {"authorization": f"Bearer {model.api_key.get_secret_value()}"} if model.api_key else {}
