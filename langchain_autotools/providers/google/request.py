"""Request parameters by their wire names, and options of the HTTP client."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel

from .._base.chat_model import ProviderChatModel
from .._transport.timeouts import DEFAULT_READ_TIMEOUT, timeout_parts
from .metadata import camel
from .parameters import check_sdk_names
from .profiles import is_older
from .structured import reply_schema, response_format_config
from .tools import format_tool_choice, wire_choice, wire_tools

if TYPE_CHECKING:
    from .parameters import GoogleParameters
else:
    GoogleParameters = object  # a class of pydantic's between the fields and the chat model would cost more than most imports

_TIMEOUT = (5.0, DEFAULT_READ_TIMEOUT)
# Parameters that stand in `generationConfig`; every other one stands at the top of the request.
_GENERATION = frozenset(
    {
        *("temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "candidateCount", "frequencyPenalty", "presencePenalty"),
        *("seed", "responseModalities", "mediaResolution", "imageConfig", "responseMimeType", "responseSchema", "responseJsonSchema"),
        *("thinkingConfig", "speechConfig", "responseLogprobs", "logprobs", "audioTimestamp", "enableAffectiveDialog", "routingConfig"),
        *("modelSelectionConfig", "enableEnhancedCivicAnswers", "translationConfig", "responseFormat"),
    }
)
_FIELDS = (
    *("temperature", "top_p", "top_k", "max_output_tokens", "stop", "frequency_penalty", "presence_penalty", "seed"),
    *("include_thoughts", "thinking_budget", "reasoning_effort", "thinking_config", "response_modalities", "media_resolution"),
    *("image_config", "response_mime_type", "response_schema", "safety_settings", "cached_content", "labels"),
)
# What LangChain users call it, and what the wire calls it.
_SYNONYMS = {
    "max_tokens": "maxOutputTokens",
    "stop": "stopSequences",
    "model_name": "model",
    "response_schema": "responseJsonSchema",
    "reasoning_effort": "thinking_level",
}
_THINKING = {"include_thoughts": "includeThoughts", "thinking_budget": "thinkingBudget", "thinking_level": "thinkingLevel"}
_RESOLUTION = "MEDIA_RESOLUTION_"
_OF_TOOLS = ("tools", "toolChoice", "toolConfig")
_OTHER_OUTPUTS = ("IMAGE", "AUDIO", "VIDEO")


class GoogleRequests(GoogleParameters):
    """Request parameters of a chat model for generateContent."""

    _client_keywords: ClassVar[frozenset[str]] = ProviderChatModel._client_keywords | {"parallel_tool_calls", "strict", "max_retries"}

    def _request_defaults(self) -> dict[str, Any]:
        """Return the constructor's parameters by their wire names, before `generationConfig` is formed."""
        given = {name: value for name in _FIELDS if (value := getattr(self, name)) is not None}
        return {"model": self.model, **self._renamed({**given, **self.model_kwargs})}

    def _renamed(self, params: Mapping[str, Any]) -> dict[str, Any]:
        wire = {_SYNONYMS.get(name, name): value for name, value in params.items()}
        return {name if name in _THINKING else camel(name): value for name, value in wire.items()}

    def _request_params(self, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
        """Return all parameters of one request by their wire names; `model` is the model's name, which becomes part of the address."""
        check_sdk_names(kwargs)
        called, defaults = self._call_keywords(kwargs), self._request_defaults()
        if self._profile_for(str(called.get("model") or self.model)).get("temperature") is False:
            defaults.pop("temperature", None)
        params = {**defaults, **response_format_config(called.pop("responseFormat", None)), **called}
        if stop is not None:
            params["stopSequences"] = stop
        params = {name: _json_value(name, value) for name, value in _with_thinking(params).items() if value is not None}
        given = params.pop("generationConfig", None) or {}
        top = {name: value for name, value in params.items() if name not in _GENERATION and name not in _OF_TOOLS}
        generation = {**{name: value for name, value in params.items() if name in _GENERATION}, **_camel_keys(given)}
        if "responseJsonSchema" in generation:
            generation = {"responseMimeType": "application/json", **generation}
        tools = wire_tools([*(kwargs.get("tools") or ()), *([{"code_execution": {}}] if top.pop("codeExecution", None) else [])])
        config = _tool_config(params.get("toolConfig"), params.get("toolChoice"), kwargs.get("tools") or ())
        if _mixes(tools) and not self.vertexai and not is_older(str(top["model"])):
            config = {"includeServerSideToolInvocations": True, **config}
        return {
            **({"tools": tools} if tools else {}),
            **({"toolConfig": config} if config else {}),
            **top,
            **({"generationConfig": generation} if generation else {}),
            **self._extra_body(kwargs),
        }

    def _client_timeout(self, kwargs: Mapping[str, Any], idle_timeout: float | None) -> Any:
        return timeout_parts(self._timeout(kwargs) or _TIMEOUT, idle_timeout)


# ---------------------------------------------------------------------------------------------- names and values


def _camel_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    return {camel(key): item for key, item in value.items()}


def _with_thinking(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with all thinking settings in one place."""
    fields = {wire: params.pop(name) for name, wire in _THINKING.items() if name in params}
    config = _as_mapping(params.get("thinkingConfig"))
    config = {**_camel_keys(config), **{wire: value for wire, value in fields.items() if value is not None}}
    level = config.get("thinkingLevel")
    if level is not None:
        config["thinkingLevel"] = _word(level).upper()
    return {**params, "thinkingConfig": config or None}


def _as_mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    return value or {}


def _word(value: Any) -> str:
    return str(value.value if isinstance(value, Enum) else value)


def _json_value(name: str, value: Any) -> Any:
    """Return a parameter's value as JSON; google-genai's objects and enums are accepted."""
    if name == "safetySettings" and isinstance(value, Mapping):
        return [{"category": _word(category), "threshold": _word(threshold)} for category, threshold in value.items()]
    if name == "safetySettings":
        return [_camel_keys(_as_mapping(setting)) for setting in value]
    if name == "mediaResolution":
        word = _word(value).upper()
        return word if word.startswith(_RESOLUTION) else f"{_RESOLUTION}{word}"
    if name == "responseModalities":
        return [_word(modality).upper() for modality in value]
    if name == "responseJsonSchema":
        return reply_schema(value)
    if isinstance(value, BaseModel):
        return _camel_keys(_as_mapping(value))
    return _word(value) if isinstance(value, Enum) else value


def _tool_config(given: Any, choice: Any, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the request's `toolConfig`, from the caller's and the tool choice."""
    config = _camel_keys(_as_mapping(given))
    chosen = format_tool_choice(choice, tools)
    if chosen is not None:
        config["functionCallingConfig"] = {**_as_mapping(config.get("functionCallingConfig")), **wire_choice(chosen)}
    return config


def taken_choice(keywords: dict[str, Any]) -> dict[str, Any] | None:
    """Remove the choice from a call's `tool_config` and return it; the rest stays in the keywords."""
    name = next((name for name in ("tool_config", "toolConfig") if keywords.get(name)), None)
    config = _camel_keys(_as_mapping(keywords[name])) if name else {}
    calling = _camel_keys(_as_mapping(config.pop("functionCallingConfig", None)))
    if name is None or not calling.get("mode"):
        return None
    choice = {"mode": _word(calling.pop("mode")), "allowedFunctionNames": calling.pop("allowedFunctionNames", None)}
    keywords[name] = {**config, "functionCallingConfig": calling} if calling else config
    return choice


def _mixes(tools: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the tools include both functions and the vendor's own tools.

    The Gemini API then wants to be told that its tools' calls will be sent back to it; models before Gemini 3 and Vertex AI have no
    such switch (ai.google.dev, "Combine built-in tools and function calling").
    """
    return len(tools) > 1 and "functionDeclarations" in tools[0]


def may_hold_blocks(params: Mapping[str, Any]) -> bool:
    """Whether the reply may hold anything besides text, so that its content is a list of blocks from the start."""
    generation = params.get("generationConfig") or {}
    thinking = generation.get("thinkingConfig") or {}
    other = any(modality in _OTHER_OUTPUTS for modality in generation.get("responseModalities") or ())
    return bool(params.get("tools")) or other or bool(thinking.get("includeThoughts"))
