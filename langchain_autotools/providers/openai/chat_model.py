"""`ChatOpenAI`: a tool-running chat model for OpenAI's chat completions, its Responses API, compatible servers."""

import logging
import re
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, Self

from langchain_core.language_models import ModelProfile
from langchain_core.messages import BaseMessage
from pydantic import PrivateAttr, SecretStr, model_validator

from ...errors import ConfigurationError
from ...executor.names import own_name
from .._base.chat_model import Profiles, profile_in
from .._base.errors import ErrorMapping, is_quoted, read_refusal, refused_status
from .._encode.encoder import origin_of
from .._encode.tools import is_pydantic
from .._transport.clients import Shared
from .._transport.exchange import Exchange
from .._transport.secrets import digest, secret_values
from .decode import ChatCompletionsDecoder, ChatCompletionsEvents
from .dialect import OPAQUE_KEYS, OPENAI, Dialect
from .errors import ERRORS, failed_turn
from .mapper import ChatCompletionsMapper
from .parameters import RESPONSES_NAMES, ApiKey, ClientSettings, OpenAIParameters
from .responses_items import answers_in_blocks
from .responses_mapper import ADDED_TOOLS, item_of
from .responses_request import check_sendable, responses_exchange
from .tools import check_taken, format_tool, format_tool_choice, response_format

_ASKING = (*RESPONSES_NAMES, "previous_response_id", "text")
_NAMED = {True: re.compile(r"\bv1/responses\b"), False: re.compile(r"\bv1/chat/completions\b")}
_ITSELF = replace(OPENAI, refusals=True)  # other servers that speak its dialect may know less
_REFUSALS = (400, 404, 405, 422)


class Route(NamedTuple):
    """The data that a request's route depends on.

    Attributes:
        why: The reason for using the Responses API, for an error's text; "" for chat completions.
        firm: Whether the caller chose, so that no server's word changes it.
        asked: What requests that a server rejects alike have in common besides the endpoint: model, tools or none, effort.
    """

    why: str
    firm: bool
    asked: tuple[str, bool, str]


def _route_of(model: OpenAIParameters, kwargs: Mapping[str, Any]) -> Route:
    """Return the route of a request with these keywords, before any rejection. It is the same for every turn of a run.

    Args:
        model: The model, for what its constructor set.
        kwargs: The call's keywords, `tools` among them.
    """
    params = {**{name: getattr(model, name) for name in (*RESPONSES_NAMES, "reasoning_effort")}, **model.model_kwargs, **kwargs}
    tools = params.get("tools") or ()
    name, effort = str(kwargs.get("model") or kwargs.get("model_name") or model._known_name), str(params.get("reasoning_effort") or "")
    asked, is_vendors = (name, bool(tools), effort), model._is_vendors
    arguments = [f"{argument}=..." for argument in _ASKING if params.get(argument) is not None]
    if model.use_previous_response_id:
        arguments.append("use_previous_response_id=True")
    if model.use_responses_api is not None:
        return Route((arguments or ["use_responses_api=True"])[0] if model.use_responses_api else "", True, asked)
    others = [tool for tool in tools if isinstance(tool, Mapping) and tool.get("type") != "function"]
    builtin = [f"the tool of type {tool['type']!r}" for tool in others if _is_responses_tool(tool, custom=is_vendors)]
    if arguments or builtin:
        return Route((arguments or builtin)[0], True, asked)
    return Route(_of_name(*asked) if is_vendors else "", False, asked)


def _is_responses_tool(tool: Mapping[str, Any], *, custom: bool) -> bool:
    """Whether a declared tool exists only in Responses; chat completions, at any server, nest a tool under its type."""
    kind = tool.get("type")
    if not isinstance(kind, str) or "function" in tool:
        return False
    return custom if kind == "custom" else not isinstance(tool.get(kind), Mapping)


def _of_name(model: str, tools: bool, effort: str) -> str:
    """Return the reason why a model's name selects Responses at the vendor's own address; "" if it does not.

    OpenAI serves some models only, or preferably, by the Responses API. Of others its chat completions reject function tools.

    Args:
        model: The model's name.
        tools: Whether there are tools.
        effort: The reasoning effort that is asked for; "" leaves it to the vendor, who does not take `none`.
    """
    base = model.lower().removeprefix("ft:").partition(":")[0]  # of a fine-tuned model
    if _RESPONSES_ONLY.match(base):
        return f"the model {model!r}"
    found = _VERSION.match(base)
    version = (int(found[1]), int(found[2] or 0)) if found else (0, 0)
    refuses = version >= (_FIRST_TO_REASON_ALWAYS if effort == "none" else _FIRST_TO_REFUSE_TOOLS)
    return f"the model {model!r} with tools" if tools and refuses else ""


class LearnedRoutes(Shared, dict[Any, str]):
    """Routes learned from servers' rejections: the reason for using the Responses API, by endpoint and request. Safe for threads."""

    def obeys(self, key: Any, used: str, error: Any, body: bytes) -> bool:
        """Whether to follow a rejection that names the other API, from now on. A server that redirects back is not followed.

        Args:
            key: The request's.
            used: The reason when the rejected request was made.
            error: The SDK's error.
            body: The JSON of the refused request.
        """
        to_responses = not used
        found = None if getattr(error, "status_code", None) not in _REFUSALS else _NAMED[to_responses].search(f"{error} {error.body}")
        if found is None or is_quoted(found[0], body):
            return False
        return bool(self.setdefault(key, "the server, which refused it on chat completions" if to_responses else "")) is to_responses


# ---------------------------------------------------------------------------------------------- compatibility
# Forms of requests per endpoint and model, adapted to a server's rejections.
#
# Servers that speak chat completions differ in two things that no request can get right for all of them (wire quirks H-03, R-03). These are
# the content of an assistant message that has only calls (null or the empty string), and opaque state sent back with a history (demanded by
# some, refused by others). A refusal that names one of them changes the form. The form is kept once a request in it was taken, for all
# models of the process that ask the same model at the same endpoint with the same key.


_PLACE_OF_CONTENT = re.compile(r"messages?\W{1,3}\d+\W{1,3}(?:\w+\W)?content\b", re.IGNORECASE)
_MOST = 1_000
_ABOUT_CONTENT = re.compile(r"\bcontent\b.{0,120}\b(null|none\w*|str|string|empty|required|missing)\b", re.IGNORECASE | re.DOTALL)


class CompatibilityKey(NamedTuple):
    """The values that determine the form of a request before any rejection."""

    origin: str
    null_content: bool
    part_keys: tuple[str, ...]
    dialect: Dialect = OPENAI
    account: str = ""
    """What distinguishes the API key: two accounts may be served by different servers."""


class LearnedCompatibility:
    """The mappers in use, each of which writes one form, of the last thousand keys. Safe for threads."""

    def __init__(self) -> None:
        self._learned: dict[CompatibilityKey, ChatCompletionsMapper] = {}
        self._turns: dict[tuple[CompatibilityKey, str], list[bool]] = {}
        self._lock = threading.Lock()

    def get(self, key: CompatibilityKey) -> ChatCompletionsMapper:
        """Return the mapper for a key."""
        mapper = self._learned.get(key)
        return mapper if mapper is not None else self._add(key)

    def _add(self, key: CompatibilityKey) -> ChatCompletionsMapper:
        with self._lock:
            if len(self._learned) >= _MOST:
                oldest = next(iter(self._learned))
                del self._learned[oldest]
                self._turns = {place: turns for place, turns in self._turns.items() if place[0] != oldest}
            made = ChatCompletionsMapper(origin=key.origin, null_content=key.null_content, part_keys=key.part_keys, dialect=key.dialect)
            return self._learned.setdefault(key, made)

    def keep(self, key: CompatibilityKey, mapper: ChatCompletionsMapper) -> None:
        """Use this mapper for requests from now on.

        Args:
            key: The request's key.
            mapper: The mapper that the server took a request of.
        """
        self._learned[key] = mapper

    def other(
        self, key: CompatibilityKey, tried: Collection[ChatCompletionsMapper], error: Any, body: bytes
    ) -> ChatCompletionsMapper | None:
        """Return the mapper to try after a rejection; None if the form is not the reason or all forms have been tried.

        Args:
            key: The request's key.
            tried: The mappers whose requests were refused, the last one last.
            error: The SDK's error.
            body: The JSON of the refused request.
        """
        *_, used = tried
        found = read_refusal(error, OPAQUE_KEYS, body)
        about_content = found is None and used.null_content == key.null_content and _is_about_content(error, body)
        if found is None and not about_content:
            return None
        current = self.get(key)
        if current not in tried:
            return current  # another request has learned meanwhile
        if found is None:
            return used.variant(null_content=not key.null_content)
        name = frozenset({found.key})
        if name <= (used.demand if found.missed else used.omit) or not self._may_turn(key, *found):
            return None
        omit, demand = (used.omit - name, used.demand | name) if found.missed else (used.omit | name, used.demand - name)
        return used.variant(omit=omit, demand=demand)

    def _may_turn(self, key: CompatibilityKey, name: str, missed: bool) -> bool:
        """Whether a rule may take a direction: it changes it once. One name may have servers behind it that want the opposite."""
        with self._lock:
            turns = self._turns.setdefault((key, name), [])
            if turns[-1:] != [missed]:
                turns.append(missed)
            if len(turns) > 2:
                turns.pop()
                return False
            return True


LEARNED: Final = LearnedCompatibility()
"""What this process has learnt."""


def _is_about_content(error: Any, body: bytes) -> bool:
    """Whether a refusal is about the content of a message, by its place, or by a word that the request itself does not hold."""
    if refused_status(error) not in (400, 422):
        return False
    text = f"{error} {error.body}"
    if not _ABOUT_CONTENT.search(text):
        return False
    return bool(_PLACE_OF_CONTENT.search(text)) or not is_quoted("content", body)


# ---------------------------------------------------------------------------------------------- profiles
#
# The table lists only models that converse in text. The efforts of the `-codex` and `-pro` models, and that they take no temperature, are
# as OpenAI's own pages of these models have it.

_PROFILES = Path(__file__).with_name("profiles.csv")
_CHANGED_MIDWAY = {"mid_conversation_system_messages": True, "mid_conversation_tools": True}
_CHANGES_MIDWAY = re.compile(r"gpt-4\.1|gpt-5|gpt-6(?!\.1-terra)|o3")
_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}\Z")
_RESPONSES_ONLY = re.compile(r"(gpt-\d(\.\d+)?|o\d)-pro\b|gpt-5\.6-sol\b|computer-use\b|.*(codex|-deep-research)\b")
_VERSION = re.compile(r"gpt-(\d)(?:\.(\d+))?(?![\d.])")  # gpt-35-turbo is Azure's name of a 3.5
_FIRST_TO_REFUSE_TOOLS = (5, 4)
_FIRST_TO_REASON_ALWAYS = (6, 0)


def profile_of(model: str) -> dict[str, Any]:
    """Return the profile of a model at OpenAI's Responses API; empty if it is unknown. A dated version counts as its undated name."""
    known = profile_in(_PROFILES, model, _DATE)
    return known | _CHANGED_MIDWAY if known and _CHANGES_MIDWAY.match(model.lower()) else known


_logger = logging.getLogger("langchain_autotools")
_DEFAULT_MODEL = "gpt-3.5-turbo"


_CHAT_ONLY = ("seed", "logit_bias", "presence_penalty", "frequency_penalty", "modalities", "audio")


class ChatOpenAI(OpenAIParameters):
    """OpenAI's chat models, and every server that speaks chat completions or the Responses API (`base_url`), with tools that run.

    ```python
    model = ChatOpenAI(model="gpt-5", tools=[get_temperature])
    for chunk in model.stream("How warm is it in Paris?"):
        print(chunk.text, end="")
    ```

    The arguments that matter first, all optional but `model`:

    - `model`: the model's name.
    - `tools`: functions or tools that the model runs itself. Without them it is
      a plain LangChain chat model.
    - `api_key`: the key, as text; else `OPENAI_API_KEY` of the environment.
    - `base_url`: address of another server.
    - `temperature`, `max_tokens`, `stop`, `reasoning_effort`: of each reply.
    - `timeout`, `max_retries`: seconds without a byte; further attempts.
    - `max_turns`, `max_tool_calls`, `deadline`, `on_limit`: what a run may use.
    - `requires_approval`, `approve`: which calls a human decides about.

    Ask it with `invoke`, `stream`, `batch`, `ainvoke`, `astream`; see also
    `with_structured_output`, `bind_tools`, `resume` and `new_messages`.

    The constructor's names are those of langchain-openai's `ChatOpenAI`; an unknown one is an error. The SDK is imported, and its
    client made, at the first request.

    Raises:
        ConfigurationError: An argument is unknown or cannot work.
    """

    _dialect: ClassVar[Dialect] = OPENAI
    _error_mapping: ClassVar[ErrorMapping] = ERRORS
    _profiles: ClassVar[Path | Profiles] = _PROFILES
    _object_at_top: ClassVar[bool] = True
    _strict_schemas: ClassVar[bool] = True
    _synonyms: ClassVar[Mapping[str, str]] = {"max_tokens": "max_completion_tokens", "model_name": "model", "stop_sequences": "stop"}

    _learned_routes: LearnedRoutes = PrivateAttr(default_factory=LearnedRoutes)

    @model_validator(mode="after")
    def _check_route(self) -> Self:
        if "model_name" not in self.model_fields_set and self.model_name == _DEFAULT_MODEL:
            _logger.warning("ChatOpenAI was given no model=: it asks %s, as langchain-openai does", _DEFAULT_MODEL)
        asked = {name: value for name in _CHAT_ONLY if (value := getattr(self, name)) is not None}
        if asked and (why := _route_of(self, {"tools": self._own_tools().declarations}).why):
            check_sendable(asked, why)
        return self

    def read_added_tools(self, messages: Sequence[BaseMessage]) -> set[str]:
        """The names of the tools that `additional_tools` items of the messages declare."""
        blocks = [block for message in messages if not isinstance(message.content, str) for block in message.content]
        items: list[Any] = [item for item in map(item_of, blocks) if item and item["type"] == ADDED_TOOLS]
        return {name for item in items for tool in item.get("tools", ()) if (name := own_name(tool))}

    def answers_in_blocks(self, tools: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the reply may need content blocks, for example for calls of the vendor's tools that the caller answers."""
        own = [tool for tool in tools if tool.get("type") != "function"]
        return bool(own and _route_of(self, {"tools": tools}).why) and answers_in_blocks(own)

    # ------------------------------------------------------------------------------------------ requests

    def continues_conversation(self, kwargs: Mapping[str, Any]) -> bool:
        """Whether the keywords or the constructor's arguments name an earlier response or a conversation."""
        params = {**self.model_kwargs, **self._extra_body(kwargs), **kwargs}
        return bool(params.get("previous_response_id") or params.get("conversation"))

    def _known_profile(self, model: str) -> Mapping[str, Any]:
        return profile_of(model)

    def _served_models(self) -> list[str]:
        reply: Any = self._client_settings().get("/models", {**self._address_query, **(self.default_query or {})})
        return [str(entry["id"]) for entry in (reply["data"] if isinstance(reply, dict) else reply)]  # Together's has no object around it

    def _resolve_model_profile(self) -> ModelProfile | None:
        profile = super()._resolve_model_profile()
        if profile and "mid_conversation_tools" in profile:  # tools are added by an item that only the Responses API has
            profile["mid_conversation_tools"] = bool(_route_of(self, {}).why)
        return profile

    def _exchange(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        route = _route_of(self, kwargs)
        key = None if route.firm else (origin_of(self._endpoint, ""), *route.asked)
        why = route.why if route.firm else self._learned_routes.get(key, route.why)
        make = partial(responses_exchange, self, why=why) if why else self._chat_exchange
        exchange = make(messages, stop, kwargs, stream=stream)

        def other_route(error: Exception, _: Exchange) -> Exchange | None:
            obeys = self._learned_routes.obeys(key, why, error, exchange.body)
            return self._exchange(messages, stop, kwargs, stream=stream) if obeys else None

        return exchange if route.firm else replace(exchange, alternatives=(other_route, *exchange.alternatives))

    def _chat_exchange(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        """Return a request to chat completions."""
        params = self._request_params(stop, kwargs, stream=stream)
        origin = origin_of(self._endpoint, str(params["model"]))
        dialect = _ITSELF if self._dialect is OPENAI and self._is_vendors else self._dialect
        secret = self.openai_api_key
        account = digest(secret.get_secret_value()) if isinstance(secret, SecretStr) else str(id(secret))
        key = CompatibilityKey(origin, self.null_content, tuple(self.part_keys), dialect, account)

        def in_form(error: Exception, exchange: Exchange, tried: tuple[ChatCompletionsMapper, ...]) -> Exchange | None:
            """Return the refused request in another form."""
            form = LEARNED.other(key, tried, error, exchange.body)
            body = exchange.body if form is None else form.encode_request(messages, params)
            if form is None or body == exchange.body:
                return None
            again = partial(in_form, tried=(*tried, form))
            return replace(exchange, body=body, taken=partial(LEARNED.keep, key, form), alternatives=(again,))

        used, model = LEARNED.get(key), str(params["model"])
        return Exchange(
            body=used.encode_request(messages, params),
            decoder=partial(ChatCompletionsDecoder, origin=origin, dialect=self._dialect, choices=params.get("n") or 1, request=params),
            watch=partial(ChatCompletionsEvents, sound=params.get("audio"), choices=params.get("n") or 1),
            options=self._request_options(kwargs, stream=stream, query=self.default_query or {}),
            path="/chat/completions",
            idle_timeout=self._idle_timeout(kwargs),
            alternatives=(partial(in_form, tried=(used,)),),
            error_to_turn=partial(failed_turn, model=model, provider=self._dialect.provider) if params.get("tools") else lambda error: None,
        )

    def _known_key(self) -> ApiKey:
        """Return the key, also one that was added to the environment after the model was created.

        Raises:
            ConfigurationError: There is none.
        """
        if self.openai_api_key is not None:
            return self.openai_api_key
        key, names = self._variable("key"), " or ".join(self._environment.key)
        if key is None:
            sources = f"give api_key{f', or set {names}' if names else ''}"
            raise ConfigurationError(f"{type(self).__name__} has no key: {sources}; for a server that wants none give any text")
        return SecretStr(key)

    def _client_settings(self) -> ClientSettings:
        return ClientSettings(
            api_key=self._known_key(),
            base_url=self._address,
            headers=tuple((self.default_headers or {}).items()),
            proxy=self.openai_proxy,
            http_client=self.http_client,
            http_async_client=self.http_async_client,
            organization=self.openai_organization,
        )

    # ------------------------------------------------------------------------------------------ a request's parameters

    def _request_params(self, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
        called = self._call_keywords(kwargs)
        params = {**self._request_defaults(), **called, **({} if stop is None else {"stop": stop})}
        if "temperature" not in called and params.get("temperature") is not None and not self._takes_temperature(params):
            del params["temperature"]
        if params.get("response_format") is not None:
            params["response_format"] = response_format(params["response_format"])
        if not params.get("tools"):
            params = {name: value for name, value in params.items() if name not in ("tools", "tool_choice", "parallel_tool_calls")}
        params |= self._stream_params(params, kwargs) if stream else {"stream": None, "stream_options": None}
        return {name: value for name, value in params.items() if value is not None} | self._extra_body(kwargs)

    def _stream_params(self, params: Mapping[str, Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return `stream`, and `stream_options` if token counts are wanted or other options are set."""
        options = dict(params.get("stream_options") or {})
        settings = [kwargs.get("stream_usage"), options.get("include_usage"), self.stream_usage]
        wanted = next((value for value in settings if isinstance(value, bool)), False)
        if wanted or "include_usage" in options:
            options["include_usage"] = wanted
        disabled = "stream_options" in (self.disabled_params or {})
        return {"stream": True, "stream_options": None if disabled or not options else options}

    def _takes_temperature(self, params: Mapping[str, Any]) -> bool:
        """Whether to send the constructor's temperature: some models reject any but 1, unless their reasoning is off."""
        name = str(params["model"])
        known = profile_of(self.model_name if name == self._wire_model else name)
        profile = self._profile_for(name)
        effort = params.get("reasoning_effort") or (params.get("reasoning") or {}).get("effort")
        if effort == "none" or params.get("temperature") == 1:
            return True
        reasons = bool(effort and known and profile.get("reasoning_output"))
        return profile.get("temperature") is not False and not reasons

    # ------------------------------------------------------------------------------------------ tools and output

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """Return a tool in the form of a request; one of the vendor's own (a dict of another type) unchanged.

        Args:
            tool: A function, a pydantic class, a TypedDict, a `BaseTool`, or a dict in the form of OpenAI, Anthropic or
                Bedrock.
            strict: Whether the server must hold the model to the schema. None: as the tool or the vendor has it.

        Raises:
            ConfigurationError: The tool cannot be declared, or OpenAI, where the model is OpenAI's, is known to refuse its schema.
        """
        declared = format_tool(tool, strict=strict)
        if self._is_vendors:
            check_taken(declared)
        return declared

    def format_tool_choice(self, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
        """Return a tool choice in the form of a request: `auto`, `none`, `any`, True, a tool's name, or the vendor's own form.

        Args:
            choice: The choice.
            tools: The declared tools, as `format_tool` made them.

        Returns:
            The value to send; None: send nothing.

        Raises:
            ConfigurationError: The choice names no declared tool, or is of no known form.
        """
        return format_tool_choice(choice, tools)

    def _supported_method(self, method: str, schema: Any, strict: bool | None, kwargs: Mapping[str, Any]) -> str:
        if strict is not None and method == "json_mode":
            raise ConfigurationError("strict has no meaning for method='json_mode': the server is not told the schema")
        return "function_calling" if method == "json_schema" and not self._holds_to_schemas(schema) else method

    def _holds_to_schemas(self, schema: Any) -> bool:
        """Whether `json_schema` can be requested: not with a pydantic 1 class, nor for models known to lack it."""
        if is_pydantic(schema) and not hasattr(schema, "model_json_schema"):
            return False
        return (self.profile or {}).get("structured_output") is not False

    def _format_params(self, schema: Any, method: str, strict: bool | None) -> dict[str, Any]:
        return {"response_format": response_format(schema, strict=strict) if method == "json_schema" else {"type": "json_object"}}

    def _call_params(self, name: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        params = {"tool_choice": name, "parallel_tool_calls": False}
        return {parameter: value for parameter, value in params.items() if not self._disabled(parameter, value)}

    def _disabled(self, name: str, value: Any) -> bool:
        """Whether a parameter that nobody set explicitly must not be sent with this value."""
        disabled = self.disabled_params or {}
        return name in disabled and (disabled[name] is None or value in disabled[name])

    # ------------------------------------------------------------------------------------------ what LangChain asks

    @property
    def _llm_type(self) -> str:
        return "openai-chat"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        stop = {"stop_sequences": self.stop} if self.stop else {}  # under this name: core writes the call's own over "stop"
        return {"model_name": self.model_name, **stop, **super()._identifying_params}

    def get_token_ids(self, text: str) -> list[int]:
        """Return the token ids of a text, by `custom_get_token_ids`.

        Raises:
            ConfigurationError: It was not given.
        """
        if self.custom_get_token_ids is None:
            raise ConfigurationError("give custom_get_token_ids=tiktoken.get_encoding('o200k_base').encode (or another tokenizer's)")
        return self.custom_get_token_ids(text)

    def _secrets(self) -> list[str]:
        return [*super()._secrets(), *secret_values(self.default_query)]
