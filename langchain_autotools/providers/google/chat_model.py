"""`ChatGoogleGenerativeAI`: a tool-running chat model for Google's Gemini API or Vertex AI."""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from enum import Enum
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Required, TypedDict

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable
from pydantic import BaseModel

from ...errors import ConfigurationError
from ...messages.blocks import unnumbered, whole_content
from ...turn.tools import ToolChoice, listed
from .._base.chat_model import Profiles, ProviderChatModel, profile_in
from .._base.errors import ErrorMapping
from .._base.parameters import log_parallel
from .._encode.encoder import origin_of
from .._encode.tools import json_schema_of
from .._transport.exchange import Exchange
from .._transport.secrets import portable_arguments
from .._transport.timeouts import DEFAULT_READ_TIMEOUT, own_timeout, read_timeout, timeout_parts
from .decode import GenerateContentDecoder, GenerateContentEvents, camel
from .errors import ERRORS
from .mapper import GenerateContentMapper
from .parameters import AccessTokens, ClientSettings, Endpoint, GoogleParameters, check_sdk_names
from .tools import Choice, dialect, flat_tools, format_tool, format_tool_choice, wire_tools

if TYPE_CHECKING:
    from google import genai


_EMPTY_REPLIES = 2  # so often a reply without a word is tried again (wire quirk G-08); then it is the reply
_TIMEOUT = (5.0, DEFAULT_READ_TIMEOUT)
_FIELDS = (
    *("temperature", "top_p", "top_k", "max_output_tokens", "stop", "frequency_penalty", "presence_penalty", "seed"),
    *("include_thoughts", "thinking_budget", "reasoning_effort", "thinking_config", "response_modalities", "media_resolution"),
    *("image_config", "response_mime_type", "response_schema", "safety_settings", "cached_content", "labels"),
)
# Parameters that stand in `generationConfig`; every other one stands at the top of the request.
_GENERATION = frozenset(
    {
        *("temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "candidateCount", "frequencyPenalty", "presencePenalty"),
        *("seed", "responseModalities", "mediaResolution", "imageConfig", "responseMimeType", "responseSchema", "responseJsonSchema"),
        *("thinkingConfig", "speechConfig", "responseLogprobs", "logprobs", "audioTimestamp", "enableAffectiveDialog", "routingConfig"),
        *("modelSelectionConfig", "enableEnhancedCivicAnswers", "translationConfig", "responseFormat"),
    }
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
_OF_TOOLS = ("tools", "toolChoice", "toolConfig")

_PROFILES = Path(__file__).with_name("profiles.csv")


class ChatGoogleGenerativeAI(GoogleParameters):
    """Google's chat models, on the Gemini API or Vertex AI, with tools that run.

    ```python
    model = ChatGoogleGenerativeAI(model="gemini-3.5-flash", tools=[get_temperature])
    for chunk in model.stream("How warm is it in Paris?"):
        print(chunk.text, end="")
    ```

    The arguments that matter first, all optional but `model`:

    - `model`: the model's name.
    - `tools`: functions or tools that the model runs itself. Without them it is
      a plain LangChain chat model.
    - `api_key`: the key, as text; else `GOOGLE_API_KEY` of the environment.
    - `vertexai`, `project`, `location`: for Vertex AI.
    - `temperature`, `max_output_tokens`, `stop`, `thinking_level`: of each reply.
    - `timeout`, `max_retries`: seconds without a byte; further attempts.
    - `max_turns`, `max_tool_calls`, `deadline`, `on_limit`: what a run may use.
    - `requires_approval`, `approve`: which calls a human decides about.

    Ask it with `invoke`, `stream`, `batch`, `ainvoke`, `astream`; see also
    `with_structured_output`, `bind_tools`, `resume` and `new_messages`.

    The constructor's names are those of langchain-google-genai's `ChatGoogleGenerativeAI`; an unknown one is an error. The HTTP client
    is made at the first request; google-genai is imported for its errors, when there is one, and for its client (`sdk_client`).

    Raises:
        ConfigurationError: An argument is unknown or cannot work.
    """

    lists_content: ClassVar[bool] = True
    _uncopied: ClassVar[tuple[str, ...]] = ("http_client", "http_async_client", "credentials", "client_args")

    _error_mapping: ClassVar[ErrorMapping] = ERRORS
    _profiles: ClassVar[Path | Profiles] = _PROFILES
    _methods_beside_tools: ClassVar[tuple[str, ...]] = ("json_schema", "json_mode")
    _client_keywords: ClassVar[frozenset[str]] = ProviderChatModel._client_keywords | {"parallel_tool_calls", "strict", "max_retries"}

    # ------------------------------------------------------------------------------------------ requests

    def _known_profile(self, model: str) -> Mapping[str, Any]:
        return profile_of(model)

    def _served_models(self) -> list[str]:
        client = self.sdk_client()
        with nullcontext() if self.http_client else closing(client):  # a client of the caller's stays open
            listed = list(client.models.list())
        conversing = (entry for entry in listed if "generateContent" in (entry.supported_actions or ["generateContent"]))
        return [str(entry.name).rpartition("models/")[2] for entry in conversing]

    def _exchange(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        params = self._request_params(stop, kwargs, stream=stream)
        log_parallel(kwargs, "Google")
        name = str(params.pop("model"))
        mapper = self._mapper(name)
        blocks = _may_hold_blocks(params) or _answers_in_blocks(name)
        accept, query = ("text/event-stream", {"alt": "sse"}) if stream else ("application/json", {})
        place = name if self.vertexai or "/" in name else _plain_name(name)
        refused = iter((False,) * min(_EMPTY_REPLIES, self._retry_settings.certain_retries))
        return Exchange(
            body=mapper.encode_request(messages, params),
            decoder=lambda: GenerateContentDecoder(
                origin=mapper.origin, blocks=blocks, may_be_empty=next(refused, True), signs=not _is_older(name)
            ),
            watch=GenerateContentEvents,
            options=self._request_options(kwargs, stream=stream, headers={"accept": accept}, query=query),
            path=f"{place}:{'streamGenerateContent' if stream else 'generateContent'}",
            idle_timeout=self._idle_timeout(kwargs),
        )

    def _whole_content(self, message: AIMessage) -> str | list[Any]:
        """Return the content as langchain-google-genai gives that of whole replies, which differs by the model that wrote it."""
        if _lists_texts(str(message.response_metadata.get("model_name") or self.model)):
            return unnumbered(message.content) or []
        return whole_content(message.content)

    def _traced_name(self, model: str) -> str:
        return _plain_name(model)

    def _mapper(self, model: str) -> GenerateContentMapper:
        """Return the mapper for a model, cached because it keeps the messages that it has encoded."""
        name, older = _plain_name(model), _is_older(model)
        origin = origin_of(f"{self._api.root}/{self._api.model_path(model)}", name)
        return self._cache.get((origin, older), lambda: GenerateContentMapper(origin=origin, model=name, older=older))

    @property
    def _api(self) -> Endpoint:
        return Endpoint(bool(self.vertexai), self._address, self.api_version, self.project, self.location)

    def _client_settings(self) -> ClientSettings:
        with_tokens = self.vertexai and self.google_api_key is None
        return ClientSettings(
            endpoint=self._api,
            api_key=self.google_api_key,
            tokens=self._cache.get(("tokens", self.credentials), lambda: AccessTokens(self.credentials)) if with_tokens else None,
            headers=tuple((name.lower(), value) for name, value in (self.additional_headers or {}).items()),
            arguments=self.client_args,
            http_client=self.http_client,
            http_async_client=self.http_async_client,
        )

    # ------------------------------------------------------------------------------------------ a request's parameters

    def _request_defaults(self) -> dict[str, Any]:
        """Return the constructor's parameters by their wire names, before `generationConfig` is formed."""
        given = {name: value for name in _FIELDS if (value := getattr(self, name)) is not None}
        return {"model": self.model, **self._renamed({**given, **(self._further_params if self.model_kwargs else {})})}

    def _renamed(self, params: Mapping[str, Any]) -> dict[str, Any]:
        wire = {_SYNONYMS.get(name, name): value for name, value in params.items()}
        return {name if name in _THINKING else camel(name): value for name, value in wire.items()}

    def _request_params(self, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
        """Return all parameters of one request by their wire names; `model` is the model's name, which becomes part of the address."""
        check_sdk_names(kwargs)
        called, defaults = self._call_keywords(kwargs), self._request_defaults()
        if self._profile_for(str(called.get("model") or self.model)).get("temperature") is False:
            defaults.pop("temperature", None)
        params = {**defaults, **_response_format_config(called.pop("responseFormat", None)), **called}
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
        if _mixes(tools) and not self.vertexai and not _is_older(str(top["model"])):
            config = {"includeServerSideToolInvocations": True, **config}
        return {
            **({"tools": tools} if tools else {}),
            **({"toolConfig": config} if config else {}),
            **top,
            **({"generationConfig": generation} if generation else {}),
            **self._extra_body(kwargs),
        }

    def _timeout(self, kwargs: Mapping[str, Any]) -> Any:
        arguments = self.client_args or {}
        if (said := super()._timeout(kwargs)) is not None or "timeout" not in arguments:
            return said or own_timeout(self.http_client, self.http_async_client)
        return (None,) * 4 if arguments["timeout"] is None else arguments["timeout"]

    def _client_timeout(self, kwargs: Mapping[str, Any], idle_timeout: float | None) -> Any:
        return timeout_parts(self._timeout(kwargs) or _TIMEOUT, idle_timeout)

    # ------------------------------------------------------------------------------------------ the SDK

    def sdk_client(self) -> "genai.Client":
        """Return a google-genai client with this model's settings, to count tokens, list models and upload files.

        It has the model's address, key or credentials, headers, timeout and HTTP clients.

        ```python
        model.sdk_client().models.count_tokens(model=model.model, contents="Hello")
        ```

        Each call makes one; whoever asks for it closes it.

        Raises:
            ValueError: The SDK finds no key or credentials.
        """
        from google.genai import Client

        query = {"params": self._address_query} if self._address_query else {}
        own: dict[str, Any] = {**query, **(self.client_args or {})}
        sync = {"client_args": {"follow_redirects": False, **own}, "httpx_client": self.http_client}
        asynchronous = {"async_client_args": own or None, "httpx_async_client": self.http_async_client}
        options: Any = http_options(self._api, self.additional_headers, self._timeout({}), **sync, **asynchronous)
        if self.google_api_key is not None:
            key = self.google_api_key.get_secret_value()
            return Client(vertexai=bool(self.vertexai), api_key=key, http_options=options)
        place = {"project": self.project, "location": self.location, "credentials": self.credentials} if self.vertexai else {}
        return Client(vertexai=bool(self.vertexai), http_options=options, **place)

    def _convert_input(self, model_input: Any) -> PromptValue:
        return super()._convert_input(read_contents(model_input))

    if not TYPE_CHECKING:  # the types are those of every model

        def with_structured_output(self, schema: Any = None, *args: Any, **kwargs: Any) -> Runnable[LanguageModelInput, Any]:
            """Return a runnable with structured output, as for every model; the SDK's `types.Schema` is accepted too.

            Args:
                schema: A pydantic class, a TypedDict, a JSON schema with a title, or a `types.Schema`.
                *args: As of every model.
                **kwargs: As of every model.
            """
            return super().with_structured_output(plain_schema(schema), *args, **kwargs)

    # ------------------------------------------------------------------------------------------ tools and output

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """Return a tool in the form of a request; one of the vendor's own (`{"google_search": {}}`) under its name as type.

        Raises:
            ConfigurationError: It cannot be declared.
        """
        return format_tool(tool, strict=strict)

    def format_tool_choice(self, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
        """Return a tool choice in plain form, from `auto`, `none`, `any`, True, names of tools, or the vendor's own form.

        Raises:
            ConfigurationError: The choice names no declared tool, or is of no known form.
        """
        return format_tool_choice(choice, tools)

    def read_tool_choice(self, choice: Any) -> ToolChoice:
        """Return the effect of a plain choice on a run: a restriction to names stays for every turn, without the demand."""
        return _read_choice(choice)

    def take_tool_choice(self, keywords: dict[str, Any]) -> Any:
        """Remove the tool choice from the keywords of a call and return it; it may also be in `tool_config`.

        Raises:
            ConfigurationError: It stands in both.
        """
        choice, held = super().take_tool_choice(keywords), _pop_choice(keywords)
        if choice is not None and held is not None:
            raise ConfigurationError("tool_choice and tool_config both say which tools may be called: say it in one place")
        return held if choice is None else choice

    def bind_tools(
        self,
        tools: Sequence[Any],
        tool_config: Any = None,
        *,
        tool_choice: Any = None,
        parallel_tool_calls: bool | None = None,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Declare tools without executing them: their calls are left to the caller.

        Args:
            tools: Functions, pydantic classes, TypedDicts, `BaseTool`s, dicts in the form of Google, OpenAI or Anthropic, or tools of
                the vendor's own (`{"google_search": {}}`, or google-genai's `Tool`).
            tool_config: The wire's `toolConfig`, for what the choice does not say.
            tool_choice: `auto`, `any`, `none`, a tool's name or several, True (some tool), or the wire's own form.
            parallel_tool_calls: The wire cannot say it; False is logged at each request.
            strict: Accepted for LangChain's sake; the vendor has no such switch for one tool.
            **kwargs: Bound to every request.

        Raises:
            ConfigurationError: A tool cannot be declared, or the choice names none.
        """
        keywords = {**({"tool_config": tool_config} if tool_config else {}), **kwargs}
        return super().bind_tools(
            flat_tools(listed(tools)), tool_choice=tool_choice, parallel_tool_calls=parallel_tool_calls, strict=strict, **keywords
        )

    def _supported_method(self, method: str, schema: Any, strict: bool | None, kwargs: Mapping[str, Any]) -> str:
        """Return the method: `function_calling` for models with tools before Gemini 3, which accept no schema beside tools."""
        return "function_calling" if schema is not None and self.tools and _is_older(self.model) else method

    def _format_params(self, schema: Any, method: str, strict: bool | None) -> dict[str, Any]:
        schemas = {} if schema is None else {"response_json_schema": _reply_schema(schema)}
        return {"response_mime_type": "application/json", **schemas}

    # ------------------------------------------------------------------------------------------ what LangChain asks

    @property
    def _llm_type(self) -> str:
        return "chat-google-generative-ai"

    # ------------------------------------------------------------------------------------------ tokens

    def get_num_tokens_from_messages(self, messages: Sequence[BaseMessage], tools: Sequence[Any] | None = None, **kwargs: Any) -> int:
        """Return the estimated number of tokens of a request with these messages and tools, offline (see `get_num_tokens`)."""
        return super().get_num_tokens_from_messages(messages, flat_tools(tools or ()), **kwargs)

    # ------------------------------------------------------------------------------------------ copies

    def _portable_fields(self) -> dict[str, Any]:
        return {**super()._portable_fields(), "client_args": self.client_args and portable_arguments(self.client_args)}


def _read_choice(choice: Choice | None) -> ToolChoice:
    """Return the effect of a plain choice on a run. A restriction to names stays; without a demand it is sent as VALIDATED."""
    if choice is None:
        return ToolChoice()
    names = choice.get("names")
    if choice["type"] == "none":
        return ToolChoice(choice, choice, ())
    if choice["type"] != "any":
        return ToolChoice(choice, choice, names)
    if not choice.get("only"):
        return ToolChoice(choice, forced=True)
    return ToolChoice(choice, {"type": "validated", "names": names}, names, forced=True)


# ---------------------------------------------------------------------------------------------- what a request says besides its messages


_RESOLUTION = "MEDIA_RESOLUTION_"
_OTHER_OUTPUTS = ("IMAGE", "AUDIO", "VIDEO")


def _pop_choice(keywords: dict[str, Any]) -> dict[str, Any] | None:
    """Remove the choice from a call's `tool_config` and return it; the rest stays in the keywords."""
    name = next((name for name in ("tool_config", "toolConfig") if keywords.get(name)), None)
    config = _camel_keys(_as_mapping(keywords[name])) if name else {}
    calling = _camel_keys(_as_mapping(config.pop("functionCallingConfig", None)))
    if name is None or not calling.get("mode"):
        return None
    choice = {"mode": _word(calling.pop("mode")), "allowedFunctionNames": calling.pop("allowedFunctionNames", None)}
    keywords[name] = {**config, "functionCallingConfig": calling} if calling else config
    return choice


def _may_hold_blocks(params: Mapping[str, Any]) -> bool:
    """Whether the reply may hold anything besides text, so that its content is a list of blocks from the start."""
    generation = params.get("generationConfig") or {}
    thinking = generation.get("thinkingConfig") or {}
    other = any(modality in _OTHER_OUTPUTS for modality in generation.get("responseModalities") or ())
    return bool(params.get("tools")) or other or bool(thinking.get("includeThoughts"))


def _mixes(tools: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the tools include both functions and the vendor's own tools.

    The Gemini API then wants to be told that its tools' calls will be sent back to it; models before Gemini 3 and Vertex AI have no
    such switch (ai.google.dev, "Combine built-in tools and function calling").
    """
    return len(tools) > 1 and "functionDeclarations" in tools[0]


def _tool_config(given: Any, choice: Any, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the request's `toolConfig`, from the caller's and the tool choice."""
    config = _camel_keys(_as_mapping(given))
    chosen = format_tool_choice(choice, tools)
    if chosen is not None:
        config["functionCallingConfig"] = {**_as_mapping(config.get("functionCallingConfig")), **wire_choice(chosen)}
    return config


class CallingConfig(TypedDict, total=False):
    """A tool choice in a request (`functionCallingConfig`)."""

    mode: Required[str]
    allowedFunctionNames: list[str]


def wire_choice(choice: Choice) -> CallingConfig:
    """Return a plain choice in the form of a request."""
    config: CallingConfig = {"mode": choice["type"].upper()}
    if names := choice.get("names"):
        config["allowedFunctionNames"] = list(names)
    return config


def _with_thinking(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with all thinking settings in one place."""
    fields = {wire: params.pop(name) for name, wire in _THINKING.items() if name in params}
    config = _as_mapping(params.get("thinkingConfig"))
    config = {**_camel_keys(config), **{wire: value for wire, value in fields.items() if value is not None}}
    level = config.get("thinkingLevel")
    if level is not None:
        config["thinkingLevel"] = _word(level).upper()
    return {**params, "thinkingConfig": config or None}


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
        return _reply_schema(value)
    if isinstance(value, BaseModel):
        return _camel_keys(_as_mapping(value))
    return _word(value) if isinstance(value, Enum) else value


def _camel_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    return {camel(key): item for key, item in value.items()}


def _as_mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    return value or {}


def _word(value: Any) -> str:
    return str(value.value if isinstance(value, Enum) else value)


# ---------------------------------------------------------------------------------------------- schemas of replies


_JSON = {"responseMimeType": "application/json"}


def _response_format_config(form: Any) -> dict[str, Any]:
    """Return the wire's parameters for a `response_format` in OpenAI's form, or for a schema; empty for None."""
    if form is None:
        return {}
    if isinstance(form, Mapping) and form.get("type") in ("json_object", "text", "json_schema"):
        if form["type"] == "text":
            return {}
        inner = form.get("json_schema") or form
        return {**_JSON, **({"responseJsonSchema": dialect(inner["schema"])} if inner.get("schema") else {})}
    return {**_JSON, "responseJsonSchema": _reply_schema(form)}


def _reply_schema(schema: Any) -> dict[str, Any]:
    """Return the JSON schema of replies.

    Args:
        schema: A pydantic class, a TypedDict, a JSON schema, also one without a title, or a `types.Schema` of the SDK.

    Raises:
        ConfigurationError: No JSON schema can be made of it.
    """
    schema = plain_schema(schema)
    is_bare = isinstance(schema, Mapping) and "title" not in schema and "name" not in schema
    return dialect(schema if is_bare else json_schema_of(schema))


# ---------------------------------------------------------------------------------------------- what is known of a model


_VERSION = re.compile(r"-\d{3}\Z")
_MAJOR = re.compile(r"gemini-(\d+)")


def _plain_name(model: str) -> str:
    """Return a model's name without its path."""
    return model.rpartition("/")[2]


def _is_older(model: str) -> bool:
    """Whether a model is older than Gemini 3: those need no signatures and accept no media in tool responses."""
    major = _MAJOR.search(model.lower())
    return (major is not None and int(major[1]) < 3) or _plain_name(model).lower().startswith("gemma")


def _answers_in_blocks(model: str) -> bool:
    """Whether any reply of a model may hold more than text: signatures from Gemini 3 on, or pictures of image models."""
    return _lists_texts(model) or "-image" in _plain_name(model).lower()


def _lists_texts(model: str) -> bool:
    """Whether whole replies of a model are lists of blocks in langchain-google-genai, those of one text too: from Gemini 3 on."""
    major = _MAJOR.search(model.lower())
    return major is not None and int(major[1]) >= 3


def profile_of(model: str) -> dict[str, Any]:
    """Return the profile of a model; empty if it is unknown. A numbered version counts as its name without the number."""
    return profile_in(_PROFILES, _plain_name(model), _VERSION)


# ---------------------------------------------------------------------------------------------- objects of google-genai


# Nothing here imports the SDK before it is asked for: whoever gives an object of it has imported it.

_TYPES = "google.genai.types"
_OF_RESPONSES = ("result", "output", "error")
_MILLISECONDS = 1000


def http_options(endpoint: Endpoint, headers: Mapping[str, str] | None, timeout: Any, **clients: Any) -> dict[str, Any]:
    """Return the HTTP options of the SDK's client.

    Args:
        endpoint: The endpoint of requests.
        headers: Sent with every request.
        timeout: The timeout, as the model takes it.
        **clients: The HTTP clients, or what they are made with. Those that are None are left out.
    """
    address, _, version = endpoint.root.rpartition("/")
    read = None if timeout is None else read_timeout(timeout)
    options = {
        **({"base_url": address} if endpoint.base_url else {}),
        "api_version": version,
        "headers": dict(headers or {}),
        **({} if read is None else {"timeout": int(read * _MILLISECONDS)}),
    }
    return options | {name: value for name, value in clients.items() if value is not None}


def plain_schema(schema: Any) -> Any:
    """Return the JSON schema of a `types.Schema`; other values unchanged."""
    known = _sdk_class("Schema")
    if known is None or not isinstance(schema, known):
        return schema
    return {"title": "Output", **schema.json_schema.model_dump(mode="json", by_alias=True, exclude_none=True)}


def read_contents(given: Any) -> Any:
    """Return a model's input with the SDK's contents converted to LangChain messages.

    Thoughts are left out, as for any history that does not name the model that wrote it.
    """
    content = _sdk_class("Content")
    if content is None or isinstance(given, str):
        return given
    if isinstance(given, content):
        return _messages(given)
    if not isinstance(given, Sequence) or not any(map(isinstance, given, repeat(content))):
        return given
    return [message for one in given for message in (_messages(one) if isinstance(one, content) else [one])]


def _sdk_class(name: str) -> Any:
    """Return a class of the SDK; None if nobody can have an object of it yet, also while another thread imports the SDK."""
    return getattr(sys.modules.get(_TYPES), name, None)


def _messages(content: Any) -> list[BaseMessage]:
    fields = content.model_dump(mode="json", by_alias=True, exclude_none=True)
    parts: list[dict[str, Any]] = fields.get("parts") or []
    blocks: list[Any] = list(_blocks(parts))
    if fields.get("role") == "model":
        calls: Any = [
            {"type": "tool_call", "name": call.get("name") or "", "args": call.get("args") or {}, "id": call.get("id")}
            for part in parts
            if (call := part.get("functionCall")) is not None
        ]
        return [AIMessage(blocks, tool_calls=calls)]
    results: list[BaseMessage] = [_result(part["functionResponse"]) for part in parts if "functionResponse" in part]
    return [*results, HumanMessage(blocks)] if blocks or not results else results


def _blocks(parts: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    for part in parts:
        if part.get("thought") or "functionCall" in part or "functionResponse" in part:
            continue
        if "text" in part:
            yield {"type": "text", "text": part["text"]}
        elif "inlineData" in part:
            data = part["inlineData"]["data"].replace("-", "+").replace("_", "/")  # the SDK writes the alphabet of URLs
            yield {**part, "type": "media", "inlineData": {**part["inlineData"], "data": data}}
        else:
            yield {**part, "type": "media"} if "fileData" in part else {"type": "part", "part": dict(part)}


def _result(response: Mapping[str, Any]) -> ToolMessage:
    given = response.get("response") or {}
    name = next(iter(given)) if len(given) == 1 else None
    value = given[name] if name in _OF_RESPONSES else given
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    known = {"tool_call_id": response.get("id") or "", "name": response.get("name")}
    return ToolMessage(text, status="error" if name == "error" else "success", **known)
