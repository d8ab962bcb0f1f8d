"""`ChatAnthropic`: a tool-running chat model for Anthropic's Messages API or a compatible server."""

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast
from urllib.parse import urlsplit

from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.utils import from_env
from pydantic import Field

from ...errors import ConfigurationError
from ...messages.blocks import unnumbered, whole_content
from ...messages.incremental import fold_over
from ...turn.model import Secret
from ...turn.tools import ToolChoice
from .._base.chat_model import Profiles, ProviderChatModel, profile_in
from .._base.errors import ErrorMapping
from .._base.parameters import Check, Environment, check_async_client, check_client
from .._encode.encoder import origin_of
from .._transport.clients import PerLoopCache, http_library
from .._transport.exchange import Exchange, Response, SdkClientSettings
from .._transport.secrets import headers_in_lines
from .decode import MessagesDecoder, MessagesEvents
from .errors import ERRORS, sdk
from .mapper import SUMMARY, MessagesMapper
from .tools import check_taken, client_tool_names, format_tool, format_tool_choice, has_format, is_builtin, output_format

if TYPE_CHECKING:
    import anthropic

    from ...turn.model import Converted

_logger = logging.getLogger("langchain_autotools")

_SAMPLING = ("temperature", "top_k", "top_p")
_HEADERS = {"user_profile_id": "anthropic-user-profile-id", "workspace_id": "anthropic-workspace-id"}
"""Parameters that are sent as headers, not in the body."""
_MODELS_OF_A_PAGE = 1000
_MARK = b'"cache_control":'
_BETA_HEADER = "anthropic-beta"
_THOUGHTS = (b'{"type":"thinking"', b'{"type":"redacted_thinking"')
_SENT_FIELDS = (
    *("max_tokens", "temperature", "top_k", "top_p", "stop_sequences", "thinking", "output_config", "mcp_servers"),
    *("context_management", "container", "inference_geo", "user_profile_id"),
)
"""Fields that are request parameters of the same name. None is not sent."""
_FALLBACK_MAX_TOKENS = 4096
_PROFILES = Path(__file__).with_name("profiles.csv")
_DATE = re.compile(r"-\d{8}\Z|-latest\Z")
_END = re.compile(r"(?:/v1(?:/messages)?/*)?(?:[?#].*)?\Z", re.DOTALL)  # the path of a request begins with /v1

Caching = Literal["auto", "5m", "1h"] | bool


# ---------------------------------------------------------------------------------------------- client


@dataclass(frozen=True)
class ClientSettings(SdkClientSettings):
    """The settings of an anthropic client. Without an `api_key` the SDK uses its environment variables and profiles."""

    sdk: ClassVar["staticmethod[[], Any]"] = staticmethod(sdk)

    def synchronous(self) -> "anthropic.Anthropic":
        """Return a synchronous client."""
        client: anthropic.Anthropic = sdk().Anthropic(**self._common(), http_client=self._http())
        return client

    def asynchronous(self, loop: asyncio.AbstractEventLoop) -> "anthropic.AsyncAnthropic":
        """Return a client for this event loop."""
        client: anthropic.AsyncAnthropic = sdk().AsyncAnthropic(**self._common(), http_client=self._ahttp(loop))
        return client

    def _common(self) -> dict[str, Any]:
        key = self.api_key.get_secret_value() if self.api_key is not None else None
        url, headers = self._sent(self.base_url)
        return {"api_key": key, "base_url": url, "default_headers": headers, "max_retries": 0}

    def post(self, exchange: Exchange, cache: PerLoopCache) -> Response:
        """Send a request.

        Raises:
            ConfigurationError: There is no key.
            anthropic.APIError: No reply, or one with an error status.
        """
        with _authorized():
            return super().post(exchange, cache)

    async def apost(self, exchange: Exchange, cache: PerLoopCache) -> Response:
        """Like `post`, asynchronously."""
        with _authorized():
            return await super().apost(exchange, cache)


@contextmanager
def _authorized() -> Iterator[None]:
    """Replace the SDK's bare `TypeError` for missing credentials by an error that names the remedies."""
    try:
        yield
    except TypeError as error:
        if "authentication method" not in str(error):
            raise
        raise ConfigurationError("ChatAnthropic has no key: give api_key, or set ANTHROPIC_API_KEY") from None


def _check_own_client(check: Check, kind: str, name: str, value: Any) -> None:
    """Raise if a value is no client of this kind, or not of the HTTP library that the installed SDK uses.

    Raises:
        ConfigurationError: It is none.
    """
    check(name, value)
    if value is None:
        return
    library = http_library(sdk())
    if not isinstance(value, getattr(library, kind)):
        own = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
        raise ConfigurationError(f"{name} is an {own}, but the installed anthropic SDK takes an {library.__name__}.{kind} only")


# ---------------------------------------------------------------------------------------------- the model


class ChatAnthropic(ProviderChatModel):
    """Anthropic's chat models, and every server that speaks the Messages API (`base_url`), with tools that run.

    ```python
    model = ChatAnthropic(model="claude-sonnet-5", tools=[get_temperature])
    for chunk in model.stream("How warm is it in Paris?"):
        print(chunk.text, end="")
    ```

    The arguments that matter first, all optional but `model`:

    - `model`: the model's name.
    - `tools`: functions or tools that the model runs itself. Without them it is
      a plain LangChain chat model.
    - `api_key`: the key, as text; else `ANTHROPIC_API_KEY` of the environment.
    - `base_url`: address of another server.
    - `temperature`, `max_tokens`, `stop`, `reasoning_effort`: of each reply.
    - `timeout`, `max_retries`: seconds without a byte; further attempts.
    - `max_turns`, `max_tool_calls`, `deadline`, `on_limit`: what a run may use.
    - `requires_approval`, `approve`: which calls a human decides about.

    Ask it with `invoke`, `stream`, `batch`, `ainvoke`, `astream`; see also
    `with_structured_output`, `bind_tools`, `resume` and `new_messages`.

    The constructor's names are those of langchain-anthropic's `ChatAnthropic`; an unknown one is an error. The SDK is imported, and
    its client made, at the first request.

    Raises:
        ConfigurationError: An argument is unknown or cannot work.
    """

    model: str = Field(validation_alias="model_name")
    """Model name."""

    anthropic_api_key: Secret = Field(default=None, alias="api_key")  # type: ignore[arg-type]
    """API key. Environment: `ANTHROPIC_API_KEY`; without it the SDK looks for its other credentials."""
    anthropic_api_url: str | None = Field(default=None, alias="base_url")
    """Base URL of the API, with or without `/v1`. Environment: `ANTHROPIC_API_URL`, then `ANTHROPIC_BASE_URL`. None: Anthropic itself."""
    anthropic_proxy: str | None = Field(default_factory=from_env("ANTHROPIC_PROXY", default=None), repr=False)
    """Proxy URL. Environment: `ANTHROPIC_PROXY`; the usual proxy variables work too."""

    max_tokens: int | None = Field(default=None, validation_alias="max_tokens_to_sample")
    """Maximum number of tokens of one reply, thinking included. None: what the model's profile allows, else 4096."""
    temperature: float | None = None
    """Sampling temperature, 0 to 1. Not sent to models that are known to take none."""
    top_k: int | None = None
    """Top-k sampling: sample from this many most likely tokens."""
    top_p: float | None = None
    """Nucleus sampling: sample from the most likely tokens of this probability mass, 0 to 1."""
    stop_sequences: list[str] | None = Field(default=None, alias="stop")
    """Stop sequences: the reply ends before any of these texts."""

    thinking: dict[str, Any] | None = None
    """Extended thinking: `{"type": "enabled", "budget_tokens": 2000}`, `{"type": "adaptive"}`, ..."""
    output_config: dict[str, Any] | None = None
    """Output configuration: `effort`, `format` and `task_budget` of the reply."""
    reasoning_effort: str | None = Field(default=None, validation_alias="effort")
    """Effort of the reply: `low`, `medium`, `high`, `xhigh`, `max`; models differ (`output_config.effort`)."""
    mcp_servers: list[dict[str, Any]] | None = Field(default=None, repr=False)
    """Remote MCP servers that the vendor calls (beta)."""
    context_management: dict[str, Any] | None = None
    """Edits that the vendor makes to long contexts (beta)."""
    container: dict[str, Any] | str | None = None
    """Container of the vendor's code execution: its id, or its parameters."""
    reuse_last_container: bool | None = None
    """Whether to reuse the code execution container of the last reply that names one. None: of the replies since the user's last message,
    in which calls may wait for it; True: of all replies; False: never."""
    inference_geo: str | None = None
    """Geographic region of the inference."""
    user_profile_id: str | None = None
    """Id of the user profile that the request is for (beta)."""
    betas: list[str] | None = None
    """Beta features (the header `anthropic-beta`). Those that a declared tool or parameter needs are added."""

    prompt_caching: Caching = "auto"
    """Whether to mark the parts of a request to cache: the tools, the system prompt, and (by the request's own `cache_control`)
    the messages up to the last. `auto`: requests to Anthropic itself that declare tools, because a conversation with tools
    sends its beginning again at once. True, "5m" and "1h": every request. Marks of your own switch these off."""

    extra_body: Mapping[str, Any] | None = None
    """Additional keys of the request's JSON, for parameters of compatible servers. They override everything else."""

    stream_usage: bool = True
    """Whether streams carry token counts."""
    default_request_timeout: Any = Field(default=None, alias="timeout")
    """Timeout in seconds for the connection and between two bytes: a number, (connect, read), or the HTTP library's `Timeout`.
    None: the SDK's default (600, to connect 5)."""

    default_headers: Mapping[str, str] | None = Field(default=None, repr=False)
    """Additional HTTP headers of every request."""
    http_client: Any = Field(default=None, exclude=True, repr=False)
    """HTTP client for synchronous requests, of the HTTP library that the SDK uses, in place of the package's own."""
    http_async_client: Any = Field(default=None, exclude=True, repr=False)
    """HTTP client for asynchronous requests in place of the package's own."""

    _ls_provider: ClassVar[str] = "anthropic"
    _profiles: ClassVar[Path | Profiles] = _PROFILES
    _environment: ClassVar[Environment] = Environment(
        key=("ANTHROPIC_API_KEY",),
        base_url=("ANTHROPIC_API_URL", "ANTHROPIC_BASE_URL"),
        proxy=("ANTHROPIC_PROXY",),
        sdk_headers=("ANTHROPIC_CUSTOM_HEADERS",),
    )
    _key_field: ClassVar[str] = "anthropic_api_key"
    _url_field: ClassVar[str] = "anthropic_api_url"
    _end_of_url: ClassVar[re.Pattern[str]] = _END
    _proxy_field: ClassVar[str] = "anthropic_proxy"
    _timeout_field: ClassVar[str] = "default_request_timeout"
    _identifying_fields: ClassVar[tuple[str, ...]] = ("output_version", "extra_body", "betas")
    _stop_param: ClassVar[str] = "stop_sequences"
    _v0_content: ClassVar[str] = "the wire's own blocks"

    _dicts: ClassVar[Mapping[str, str]] = {
        **ProviderChatModel._dicts,
        "thinking": "as in {'type': 'adaptive'}",
        "output_config": "effort='high' says the effort alone",
    }

    _checks: ClassVar[Mapping[str, Check | None]] = {
        "http_client": partial(_check_own_client, check_client, "Client"),
        "http_async_client": partial(_check_own_client, check_async_client, "AsyncClient"),
    }

    if TYPE_CHECKING:
        service_tier: Converted[None, str | None] = None  # type: ignore[assignment]

    _call_names: ClassVar[frozenset[str]] = ProviderChatModel._call_names | {
        *("billing_policy", "cache_control", "compaction", "diagnostics", "fallback_credit_token", "output_format"),
        *("service_tier", "speed", "system", "thread", "workspace_id"),
    }
    _not_per_call: ClassVar[frozenset[str]] = ProviderChatModel._not_per_call | {"reuse_last_container"}
    _connection: ClassVar[frozenset[str]] = frozenset({"anthropic_api_key", "anthropic_api_url", "anthropic_proxy"})

    lists_content: ClassVar[bool] = True

    _error_mapping: ClassVar[ErrorMapping] = ERRORS
    _schemaless_methods: ClassVar[tuple[str, ...]] = ()
    _methods_beside_tools: ClassVar[tuple[str, ...]] = ("json_schema", "json_mode")
    _wire_names: ClassVar[Mapping[str, str]] = {name: name for name in _SENT_FIELDS}
    _synonyms: ClassVar[Mapping[str, str]] = {"max_tokens_to_sample": "max_tokens", "model_name": "model", "stop": "stop_sequences"}
    _first_request_only: ClassVar[frozenset[str]] = frozenset({"compaction"})
    _client_keywords: ClassVar[frozenset[str]] = ProviderChatModel._client_keywords | {
        *("parallel_tool_calls", "response_format", "reasoning_effort", "effort", "betas", "prompt_caching"),
    }

    def _complete_from_environment(self) -> None:
        super()._complete_from_environment()
        if self.max_tokens is None:
            profile = {**self._known_profile(self.model), **(self.__dict__.get("profile") or {})}
            self.max_tokens = profile.get("max_output_tokens") or _FALLBACK_MAX_TOKENS

    @property
    def model_name(self) -> str:
        """The model's name."""
        return self.model

    # ------------------------------------------------------------------------------------------ requests

    def _known_profile(self, model: str) -> Mapping[str, Any]:
        return profile_in(_PROFILES, model, _DATE)  # a dated version counts as its undated name

    def _served_models(self) -> list[str]:
        settings, names, further = self._client_settings(), list[str](), dict[str, Any]()
        while True:
            page = settings.get("/v1/models", {**self._address_query, "limit": _MODELS_OF_A_PAGE, **further})
            names += [str(entry["id"]) for entry in page["data"]]
            if not page.get("has_more") or not page.get("last_id"):
                return names
            further = {"after_id": page["last_id"]}

    def _exchange(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        params = self._request_params(stop, kwargs, stream=stream)
        mapper = self._mapper(str(params["model"]))
        if self.reuse_last_container is not False and kwargs.get("container", "") is not None:
            container = _reused_container(mapper, messages, params.get("container"), ever=bool(self.reuse_last_container))
            params |= {} if container is None else {"container": container}
        if _goes_on_without_thinking(mapper, messages, params.get("thinking")):
            params = {name: value for name, value in params.items() if name != "thinking"}
        in_body = {name: value for name, value in params.items() if name not in _HEADERS}
        body = mapper.encode_request(messages, in_body)
        mark = _cache_mark(self, params, kwargs)
        if mark and _MARK not in body:
            body = mapper.encode_request(messages, _with_cache_marks(in_body, mark), cache=mark)
        blocks = _may_hold_blocks(params, body)
        usage = not stream or bool(kwargs.get("stream_usage", self.stream_usage))
        return Exchange(
            body=body,
            decoder=partial(MessagesDecoder, origin=mapper.origin, blocks=blocks, usage=usage),
            watch=MessagesEvents,
            options=self._request_options(kwargs, stream=stream, headers=self._headers_for(params, kwargs, body, stream=stream)),
            path="/v1/messages",
            idle_timeout=self._idle_timeout(kwargs),
        )

    def _mapper(self, model: str) -> MessagesMapper:
        """Return the mapper for a model, cached because it keeps the messages that it has encoded."""
        anywhere = bool(self._profile_for(model).get("mid_conversation_system_messages"))
        origin, unsigned = origin_of(self.anthropic_api_url, model), not _is_vendors(self.anthropic_api_url)
        return self._cache.get(
            (origin, anywhere), lambda: MessagesMapper(origin=origin, model=model, system_anywhere=anywhere, unsigned=unsigned)
        )

    def _client_settings(self) -> ClientSettings:
        return ClientSettings(
            api_key=self.anthropic_api_key,
            base_url=self._address,
            headers=tuple((self.default_headers or {}).items()),
            proxy=self.anthropic_proxy,
            http_client=self.http_client,
            http_async_client=self.http_async_client,
        )

    # ------------------------------------------------------------------------------------------ a request's parameters

    def _field_params(self) -> dict[str, Any]:
        params = super()._field_params()
        if self.reasoning_effort:
            params["output_config"] = {**(params.get("output_config") or {}), "effort": self.reasoning_effort}
        return params

    def _request_params(self, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
        called, default = self._call_keywords(kwargs), self._request_defaults()
        params = {**default, **called, **({} if stop is None else {"stop_sequences": stop})}
        for name in _SAMPLING:
            if name not in called and self._profile_for(str(params["model"])).get("temperature") is False:
                params.pop(name, None)
        params["output_config"] = _output_config(default, called, kwargs)
        if params.get("tools"):
            params["tool_choice"] = _tool_choice(params, kwargs.get("parallel_tool_calls"))
        else:
            params = {name: value for name, value in params.items() if name not in ("tools", "tool_choice")}
        if "thinking" not in params and (self.reasoning_effort or _effort(kwargs)):
            params["thinking"] = _implied_thinking(self._profile_for(str(params["model"])), params)
        params = {**params, "stream": True if stream else None}
        return {name: value for name, value in params.items() if value is not None} | self._extra_body(kwargs)

    def _headers_for(self, params: Mapping[str, Any], kwargs: Mapping[str, Any], body: bytes, *, stream: bool) -> dict[str, Any]:
        """Return the headers of one request in addition to those of every request.

        Args:
            params: The request's parameters.
            kwargs: The call's keywords.
            body: The request's JSON.
            stream: Whether a stream is asked for.
        """
        of_tools = [_BETA_OF_TOOL.get(str(tool.get("type"))) for tool in params.get("tools") or ()]
        of_parameters = [beta for beta, is_needed in _BETAS_OF_PARAMETERS.items() if is_needed(params)]
        layers = (headers_in_lines(self._variable("sdk_headers")), self._headers, kwargs.get("extra_headers") or {})
        texts = [str(value) for layer in layers for name, value in layer.items() if name.lower() == _BETA_HEADER]
        in_headers = [beta.strip() for text in texts for beta in text.split(",") if beta.strip()]
        said = [*(self.betas or ()), *(kwargs.get("betas") or ()), *in_headers]
        betas = dict.fromkeys([*said, *_betas_of_messages(body), *filter(None, of_tools), *of_parameters])
        headers = {_BETA_HEADER: ",".join(betas), **{header: params.get(name) for name, header in _HEADERS.items()}}
        accept = "text/event-stream" if stream else "application/json"
        return {"Accept": accept, **{name: value for name, value in headers.items() if value}}

    def _request_options(
        self, kwargs: Mapping[str, Any], *, stream: bool, headers: Mapping[str, Any] = {}, query: Mapping[str, Any] = {}
    ) -> dict[str, Any]:
        if own := kwargs.get("extra_headers"):  # its betas are among those of the request
            kwargs = {**kwargs, "extra_headers": {name: value for name, value in own.items() if name.lower() != _BETA_HEADER}}
        return super()._request_options(kwargs, stream=stream, headers=headers, query=query)

    # ------------------------------------------------------------------------------------------ tools and output

    def _whole_content(self, message: AIMessage) -> str | list[Any]:
        """Return the content as langchain-anthropic gives that of whole replies: one text alone as a string, else a list of blocks."""
        content = message.content
        blocks = [content] if isinstance(content, str) else content
        if len(blocks) == 1 and isinstance(blocks[0], str) and blocks[0]:
            return blocks[0]
        listed = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks if block]
        return unnumbered(listed) if message.invalid_tool_calls else whole_content(listed)

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """A tool as a request declares it; a tool of the vendor's own (a dict of another type) as it is.

        Raises:
            ConfigurationError: It cannot be declared.
        """
        declared = format_tool(tool, strict=strict)
        if _is_vendors(self.anthropic_api_url):
            check_taken(declared)
        return declared

    def client_tool_names(self, tools: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
        """Return the names of the vendor's tools that run on the caller's machine, each with the kind of its handlers."""
        return client_tool_names(tools)

    def format_tool_choice(self, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
        """Return a tool choice in the form of a request: `auto`, `none`, `any`, True, a tool's name, or the vendor's own form.

        Raises:
            ConfigurationError: The choice names no declared tool, or is of no known form.
        """
        return format_tool_choice(choice, tools)

    def read_tool_choice(self, choice: Any) -> ToolChoice:
        """Return the effect of a wire choice on a run: a ban on parallel calls stays for every turn."""
        return _read_choice(choice)

    def _default_method(self) -> str:
        return "function_calling"

    def _supported_method(self, method: str, schema: Any, strict: bool | None, kwargs: Mapping[str, Any]) -> str:
        """Return the method: `json_schema` for models that cannot be forced to call a tool, and in place of `json_mode`, wherever the
        vendor's form can express the schema."""
        if method == "function_calling" and self._can_force(kwargs):
            return method
        return "json_schema" if method == "json_schema" or has_format(schema) else "function_calling"

    def _can_force(self, kwargs: Mapping[str, Any]) -> bool:
        """Whether a request can demand a call."""
        return not _is_thinking(kwargs.get("thinking", self.thinking)) and (self.profile or {}).get("tool_choice") is not False

    def _format_params(self, schema: Any, method: str, strict: bool | None) -> dict[str, Any]:
        return {"output_config": {**(self.output_config or {}), "format": output_format(schema)}}

    def _call_params(self, name: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        single = {} if self.tools else {"parallel_tool_calls": False}  # the model's own tools may be called side by side
        return {"tool_choice": name if self._can_force(kwargs) else "auto", **single}

    # ------------------------------------------------------------------------------------------ what LangChain asks

    @property
    def effort(self) -> str | None:
        """The value of `reasoning_effort`, by the vendor's name."""
        return self.reasoning_effort

    @property
    def _llm_type(self) -> str:
        return "anthropic-chat"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        untold = ("tools", "tool_choice")  # what is not sent of them is to be logged once, by the request
        return super()._get_ls_params(stop, **{name: value for name, value in kwargs.items() if name not in untold})


# ---------------------------------------------------------------------------------------------- what a request says besides its messages


_OTHER_BLOCKS = ("mcp_servers", "container", "context_management")
_IMPLIED = {"type": "adaptive", "display": "summarized"}


def _is_thinking(thinking: Any) -> bool:
    """Whether a thinking parameter lets the model think."""
    return isinstance(thinking, Mapping) and thinking.get("type") not in (None, "disabled")


def _may_hold_blocks(params: Mapping[str, Any], body: bytes) -> bool:
    """Whether the reply may hold more than one text block, so that its content is a list of blocks from the start.

    Args:
        params: The request's parameters.
        body: The request's JSON.
    """
    if params.get("tools") or any(params.get(name) for name in _OTHER_BLOCKS) or _is_thinking(params.get("thinking")):
        return True
    return b'"citations"' in body or b'"search_result"' in body


def _tool_choice(params: Mapping[str, Any], parallel: bool | None) -> dict[str, Any] | None:
    """Return the tool choice. A forced one is not sent to a thinking model, because the vendor rejects it (wire quirk C-18).

    Args:
        params: The request's parameters.
        parallel: Whether calls may be parallel; None leaves that to the vendor.
    """
    read = _read_choice(format_tool_choice(params.get("tool_choice"), params["tools"]))
    choice: dict[str, Any] | None = read.asked
    if read.forced and _is_thinking(params.get("thinking")):
        _logger.warning("a model that thinks cannot be forced to call a tool: the forced tool_choice is not sent")
        choice = read.lasting
    if parallel is None or (parallel and choice is None) or (choice or {}).get("type") == "none":
        return choice
    return {**(choice or {"type": "auto"}), "disable_parallel_tool_use": not parallel}


def _effort(kwargs: Mapping[str, Any]) -> Any:
    return kwargs.get("effort") or kwargs.get("reasoning_effort")


def _output_config(default: Mapping[str, Any], called: Mapping[str, Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    """Merge the output settings of the call over the constructor's; None in the call unsets all."""
    unset = "output_config" in called and called["output_config"] is None
    config = {} if unset else {**(default.get("output_config") or {}), **(called.get("output_config") or {})}
    if _effort(kwargs):
        config["effort"] = _effort(kwargs)
    if kwargs.get("response_format") is not None:
        config["format"] = output_format(kwargs["response_format"])
    return config or None


def _implied_thinking(profile: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the thinking setting for a request with an effort and no `thinking`, as langchain-anthropic does.

    Models with every effort level think adaptively, with summaries. None with a forced tool call, which the vendor rejects
    together with thinking.
    """
    forced = _read_choice(params.get("tool_choice")).forced
    return None if forced or "xhigh" not in (profile.get("reasoning_effort_levels") or ()) else _IMPLIED


_DEMANDS = ("any", "tool")


def _read_choice(choice: Mapping[str, Any] | None) -> ToolChoice:
    """Return the effect of a wire choice on a run. A ban on parallel calls is not a demand: it stays for every turn."""
    kind, single = (choice or {}).get("type"), (choice or {}).get("disable_parallel_tool_use")
    if kind == "none":
        return ToolChoice(choice, choice, ())
    if kind not in _DEMANDS:
        return ToolChoice(choice, choice, single=bool(single))
    lasting = None if single is None else {"type": "auto", "disable_parallel_tool_use": single}
    return ToolChoice(choice, lasting, forced=True, single=bool(single))


# ---------------------------------------------------------------------------------------------- caching


_OWN_HOST = "api.anthropic.com"


def _cache_mark(model: ChatAnthropic, params: Mapping[str, Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the `cache_control` of this request's cache breakpoints; None for no breakpoints.

    Args:
        model: The model, for what its constructor says.
        params: The request's parameters.
        kwargs: The call's keywords.
    """
    wanted = kwargs.get("prompt_caching", model.prompt_caching)
    if wanted == "auto":
        wanted = bool(params.get("tools")) and _is_vendors(model.anthropic_api_url)
        if params.get("tools") and not wanted:
            _warn_unmarked(urlsplit(model.anthropic_api_url or "").netloc.rpartition("@")[2])
    if not wanted:
        return None
    return {"type": "ephemeral", "ttl": "1h"} if wanted == "1h" else {"type": "ephemeral"}


def _with_cache_marks(params: Mapping[str, Any], mark: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with a cache breakpoint after the last tool, and one that the vendor moves along the messages.

    A mark within the messages would have to move from request to request, and with it bytes that were sent before.
    """
    marked = {**params, "cache_control": params.get("cache_control") or mark}
    tools: Sequence[Mapping[str, Any]] = params.get("tools") or ()
    if tools and not is_builtin(tools[-1]) and not tools[-1].get("defer_loading"):
        marked["tools"] = [*tools[:-1], {**tools[-1], "cache_control": mark}]
    return marked


def _is_vendors(address: str | None) -> bool:
    """Whether an address is the vendor's own."""
    return address is None or urlsplit(address).hostname == _OWN_HOST


@lru_cache(1_000)
def _warn_unmarked(server: str) -> None:
    """Log, once per server, that its requests carry no cache marks: other libraries' middleware sets none on this class."""
    _logger.warning("requests to %s do not mark what Anthropic should cache: prompt_caching=True marks it, False is silent", server)


# ---------------------------------------------------------------------------------------------- betas


_BETA_OF_TOOL = {
    "web_fetch_20250910": "web-fetch-2025-09-10",
    "code_execution_20250522": "code-execution-2025-05-22",
    "mcp_toolset": "mcp-client-2025-11-20",
    "memory_20250818": "context-management-2025-06-27",
    "computer_20250124": "computer-use-2025-01-24",
    "computer_20251124": "computer-use-2025-11-24",
    "tool_search_tool_regex_20251119": "advanced-tool-use-2025-11-20",
    "tool_search_tool_bm25_20251119": "advanced-tool-use-2025-11-20",
    "advisor_20260301": "advisor-tool-2026-03-01",
}
_BETA_OF_SUMMARIES = "compact-2026-09-04"
# And whether the parameters of a request need it. (Compaction of a long context has one of its own.)
_BETAS_OF_PARAMETERS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "mcp-client-2025-11-20": lambda params: params.get("mcp_servers"),
    "user-profiles-2026-03-24": lambda params: params.get("user_profile_id"),
    "context-management-2025-06-27": lambda params: False in _compacting(params.get("context_management")),
    "compact-2026-01-12": lambda params: True in _compacting(params.get("context_management")),
    "advanced-tool-use-2025-11-20": lambda params: any(tool.get("input_examples") for tool in params.get("tools") or ()),
    _BETA_OF_SUMMARIES: lambda params: params.get("compaction"),
    "task-budgets-2026-03-13": lambda params: (params.get("output_config") or {}).get("task_budget"),
    "thinking-display-updates-2026-08-18": lambda params: (params.get("thinking") or {}).get("display") == "updates",
}
_BETA_OF_TOOL_CHANGES = "mid-conversation-tool-changes-2026-07-01"
_BETA_OF_INLINE_TOOLS = "inline-tools-2026-09-15"


def _compacting(management: Any) -> set[bool]:
    """Return whether each of the context edits is a compaction."""
    edits: Sequence[Mapping[str, Any]] = (management.get("edits") or ({},)) if isinstance(management, Mapping) and management else ()
    return {str(edit.get("type")).startswith("compact_") for edit in edits}


def _betas_of_messages(body: bytes) -> list[str]:
    """Return the beta features that messages need: for a summary, and for messages that change the tools.

    A message with a tool's whole definition needs another feature than one with the tool's name.
    """
    needed = [_BETA_OF_SUMMARIES] if SUMMARY in body and b'"signature"' in body else []
    if any(b'"type":"%s"' % change in body for change in (b"tool_addition", b"tool_removal")):
        needed.append(_BETA_OF_INLINE_TOOLS if b'"type":"tool_definition"' in body else _BETA_OF_TOOL_CHANGES)
    return needed


def _reused_container(mapper: MessagesMapper, messages: Sequence[BaseMessage], given: Any, *, ever: bool) -> Any:
    """Return a request's `container`, with the id of that in which the vendor's code last ran, by the messages since the user's last one.

    Calls that such code made are answered in it only: without its id the vendor refuses them.

    Args:
        mapper: The mapper of the request.
        messages: The history.
        given: The parameter. An id of its own stays, and so does what else it says (skills, say).
        ever: Whether to look at all messages.
    """
    if isinstance(given, str) or (isinstance(given, Mapping) and given.get("id")):
        return given
    identifier = fold_over(messages, (_Container, mapper, ever), partial(_Container, mapper, ever)).identifier
    if not identifier:
        return given
    return {**given, "id": identifier} if isinstance(given, Mapping) else identifier


@dataclass(slots=True, eq=False, repr=False)
class _Container:
    """A fold that finds the container in which the vendor's code last ran; see `_reused_container`."""

    mapper: MessagesMapper
    ever: bool
    identifier: str = ""

    def copy(self) -> "_Container":
        """Return an independent copy."""
        return _Container(self.mapper, self.ever, self.identifier)

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""
        for message in messages:
            if isinstance(message, HumanMessage) and not self.ever:
                self.identifier = ""
            container = message.response_metadata.get("container") if isinstance(message, AIMessage) else None
            if isinstance(container, Mapping) and container.get("id") and self.mapper.is_same_origin(cast("AIMessage", message)):
                self.identifier = str(container["id"])


def _goes_on_without_thinking(mapper: MessagesMapper, messages: Sequence[BaseMessage], thinking: Any) -> bool:
    """Whether messages end in the results of a tool loop whose first reply has no thinking to send, because another model wrote it.

    The API then refuses `thinking` of type `enabled` until the loop is closed (docs, "Preserving thinking blocks"); adaptive thinking
    it takes.
    """
    if not isinstance(thinking, Mapping) or thinking.get("type") != "enabled" or not messages or not isinstance(messages[-1], ToolMessage):
        return False
    place = fold_over(messages, _ToolLoop, _ToolLoop).first
    if place is None or any(block.startswith(_THOUGHTS) for block in mapper.encode(messages[place]).blocks[:1]):
        return False
    _logger.warning("thinking is off until the tool calls of another model are answered: the API takes no others while it is on")
    return True


@dataclass(slots=True, eq=False, repr=False)
class _ToolLoop:
    """A fold that finds the place of the first reply of the tool loop in which messages end."""

    first: int | None = None
    _count: int = 0

    def copy(self) -> "_ToolLoop":
        """Return an independent copy."""
        return _ToolLoop(self.first, self._count)

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""
        for place, message in enumerate(messages, self._count):
            if isinstance(message, AIMessage):
                self.first = place if self.first is None else self.first
            elif not isinstance(message, ToolMessage):
                self.first = None
        self._count += len(messages)
