"""Parameters of a Responses API request, from those of chat completions.

Wire facts: `max_output_tokens`, `reasoning.effort`, `text.format` and `text.verbosity`; functions are flat, and are held to their
schema unless they say `strict: false`, which chat completions takes for granted; there are no stop sequences, seeds, penalties,
log-likelihood biases and no audio replies (platform.openai.com/docs/api-reference/responses/create). Stop sequences are left out
with a warning, since agents that read text bind them whatever the API; the others are refused.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from ....errors import ConfigurationError
from ..parameters import OpenAIParameters, asks_for

_logger = logging.getLogger("langchain_autotools")
_HERE = "the Responses API has no such parameter (use_responses_api=False has)"
_REFUSED = {
    "seed": _HERE,
    "logit_bias": _HERE,
    "presence_penalty": _HERE,
    "frequency_penalty": _HERE,
    "modalities": "the Responses API replies in text: use_responses_api=False speaks",
    "audio": "the Responses API replies in text: use_responses_api=False speaks",
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
        reason = f" (the request goes there because of {why})" if why else ""
        _logger.warning(
            "stop is not sent, and no text is cut: the Responses API has no stop sequences%s; use_responses_api=False has", reason
        )
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
    for name, advice in _REFUSED.items():
        if asks_for(name, asked.get(name)):
            raise ConfigurationError(f"{name} cannot be sent: {advice}{f'; the request goes there because of {why}' if why else ''}")


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
        return {"type": "custom", **custom, **around, **_grammar(custom.get("format"))}
    return dict(tool)


def _grammar(form: Any) -> dict[str, Any]:
    inner = form.get("grammar") if isinstance(form, Mapping) else None
    return {"format": {"type": "grammar", **inner}} if isinstance(inner, Mapping) else {}


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
