"""`ChatOllama`: a tool-running chat model for Ollama's own chat protocol or a compatible server."""

import logging
import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from difflib import get_close_matches
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.ai import add_usage
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableBinding
from pydantic import model_validator

from ...errors import ConfigurationError
from ...messages.metadata import text_of
from .._base.errors import ErrorMapping
from .._base.parameters import log_parallel
from .._encode.encoder import origin_of, read_object
from .._encode.sources import image_type
from .._transport.exchange import Exchange
from .._transport.reader import NDJSONDecoder
from .._transport.secrets import SecretDict, portable, portable_arguments, secret_values
from .._transport.timeouts import timeout_parts
from .decode import OllamaDecoder, OllamaEvents
from .errors import ERRORS
from .mapper import OllamaMapper
from .parameters import DEFAULT_TIMEOUT, ClientSettings, OllamaParameters, address_of, plain_options
from .tools import Choice, format_tool, format_tool_choice, output_format

if TYPE_CHECKING:
    import httpx
    import ollama


_logger = logging.getLogger("langchain_autotools")

_JSON = {"content-type": "application/json", "accept": "application/json"}
_OF_A_REQUEST = ("headers", "timeout")


# The constructor of `ChatOllama`: its fields, their names on the wire, and their environment variables.
#
# Names and meanings are those of langchain-ollama's `ChatOllama`.
_OPTIONS = (
    *("mirostat", "mirostat_eta", "mirostat_tau", "num_ctx", "num_gpu", "num_thread", "num_predict", "repeat_last_n"),
    *("repeat_penalty", "temperature", "seed", "stop", "tfs_z", "top_k", "top_p"),
)
"""Fields that are sent in the request's `options`, under their own names. None is not sent."""


class ChatOllama(OllamaParameters):
    """Models of an Ollama server, with tools that run.

    ```python
    model = ChatOllama(model="qwen3", tools=[get_temperature])
    for chunk in model.stream("How warm is it in Paris?"):
        print(chunk.text, end="")
    ```

    The arguments that matter first, all optional but `model`:

    - `model`: the model's name.
    - `tools`: functions or tools that the model runs itself. Without them it is
      a plain LangChain chat model.
    - `base_url`: address of the server; None: this machine, port 11434.
    - `temperature`, `num_predict`, `num_ctx`, `reasoning`: of each reply.
    - `timeout`, `max_retries`: seconds without a byte; further attempts.
    - `max_turns`, `max_tool_calls`, `deadline`, `on_limit`: what a run may use.
    - `requires_approval`, `approve`: which calls a human decides about.

    Ask it with `invoke`, `stream`, `batch`, `ainvoke`, `astream`; see also
    `with_structured_output`, `bind_tools`, `resume` and `new_messages`.

    The constructor's names are those of langchain-ollama's `ChatOllama`; an unknown one is an error. The HTTP client is made at the
    first request. `tool_choice` is accepted, but the protocol has none: "none" declares no tools, and a model cannot be forced to
    call one, which is logged.

    Raises:
        ConfigurationError: An argument is unknown or cannot work.
    """

    _error_mapping: ClassVar[ErrorMapping] = ERRORS
    _synonyms: ClassVar[Mapping[str, str]] = {
        "reasoning": "think",
        "reasoning_effort": "think",
        "max_tokens": "num_predict",
        "model_name": "model",
    }
    _client_keywords: ClassVar[frozenset[str]] = frozenset(
        {
            *("extra_headers", "extra_query", "timeout", "options", "response_format", "tool_choice"),
            *("strict", "parallel_tool_calls", "stream_usage"),  # other vendors' parameters that callers of any model give
        }
    )

    @model_validator(mode="after")
    def _validate_model(self) -> Self:
        if self.validate_model_on_init:
            http = self._client_settings().clients(self._cache).synchronous()
            _check_model(http, self.address.url, self.model, self._request_options({}, stream=True))
        return self

    # ------------------------------------------------------------------------------------------ requests

    def _known_profile(self, model: str) -> Mapping[str, Any]:
        return profile_of(self.num_ctx)

    def _served_models(self) -> list[str]:
        client = self.sdk_client()
        with closing(client._client):  # the first releases of the SDK cannot close it otherwise
            return [str(entry.model) for entry in client.list().models]

    def _exchange(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        params = self._request_params(stop, kwargs, stream=stream)
        log_parallel(kwargs, "Ollama")
        mapper = self._mapper(str(params["model"]))
        return Exchange(
            body=mapper.encode_request(messages, params),
            decoder=partial(OllamaDecoder, origin=mapper.origin),
            watch=OllamaEvents,
            events=NDJSONDecoder,
            options=self._request_options(kwargs, stream=stream),
            path="/api/chat",
            idle_timeout=self._idle_timeout(kwargs),
        )

    def _mapper(self, model: str) -> OllamaMapper:
        """Return the mapper for a model, cached because it keeps the messages that it has encoded."""
        origin = origin_of(self.address.url, model)
        return self._cache.get(origin, lambda: OllamaMapper(origin=origin, model=model))

    def _client_settings(self) -> ClientSettings:
        """The client settings. Headers and timeout are sent per request, so models share clients."""
        both, sync, asynchronous = self.all_client_kwargs
        common = {name: value for name, value in both.items() if name not in _OF_A_REQUEST}
        return ClientSettings(self.address.url, {**common, **sync}, {**common, **asynchronous})

    # ------------------------------------------------------------------------------------------ a request's parameters

    def _request_defaults(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in _OPTIONS}
        options = {name: value for name, value in own.items() if value is not None and value != []} | self.options
        params = {
            "model": self.model,
            "think": self.reasoning,
            "format": self.format,
            "logprobs": True if self.top_logprobs is not None else self.logprobs,
            "top_logprobs": self.top_logprobs,
            "keep_alive": self.keep_alive,
            "options": options or None,
        }
        return {name: value for name, value in params.items() if value is not None} | (self._further_params if self.model_kwargs else {})

    def _request_params(self, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
        called = self._call_keywords(kwargs)
        if kwargs.get("response_format") is not None and called.get("format") is None:
            called["format"] = kwargs["response_format"]
        params = {**self._request_defaults(), **called}
        options = {**(params.pop("options", None) or {}), **(plain_options(kwargs.get("options")) or {})}
        options |= {name: params.pop(name) for name in _OPTIONS if name in params}
        options |= {} if stop is None else {"stop": stop}
        if params.get("format") is not None:
            params["format"] = output_format(params["format"]) or None
        if not params.get("tools") or kwargs.get("tool_choice") == "none":  # who must not call is told of no tools
            params.pop("tools", None)
        params |= {"options": {name: value for name, value in options.items() if value is not None} or None, "stream": stream}
        return {name: value for name, value in params.items() if value is not None}

    def _request_options(
        self, kwargs: Mapping[str, Any], *, stream: bool, headers: Mapping[str, Any] = {}, query: Mapping[str, Any] = {}
    ) -> dict[str, Any]:
        common = {**_JSON, **self._authorization(), **_lowered_headers(self.client_kwargs), **headers}
        given = {name: kwargs.get(name) for name in ("timeout", "extra_headers", "extra_query")}
        options = super()._request_options(given, stream=stream, headers=common, query=query)
        return {**options, "headers": SecretDict({name.lower(): value for name, value in options["headers"].items()})}

    def _client_timeout(self, kwargs: Mapping[str, Any], idle_timeout: float | None) -> Any:
        timeout = self._timeout(kwargs)
        if timeout is None and idle_timeout is None:
            return None
        return timeout_parts(DEFAULT_TIMEOUT if timeout is None else timeout, idle_timeout)

    def _authorization(self) -> dict[str, str]:
        """Return the authorization header: the user's own header, else the URL's user, else the key."""
        if any("authorization" in _lowered_headers(arguments) for arguments in self.all_client_kwargs):
            return {}
        if self.address.authorization:
            return {"authorization": self.address.authorization}
        return {"authorization": f"Bearer {self.api_key.get_secret_value()}"} if self.api_key else {}

    # ------------------------------------------------------------------------------------------ the SDK

    def sdk_client(self) -> "ollama.Client":
        """A client of Ollama's SDK with this model's address, key, headers, timeout and client arguments: it lists, shows and pulls models.

        ```python
        model.sdk_client().pull(model.model)
        ```

        Each call makes one; whoever asks for it closes it.
        """
        from ollama import Client

        return Client(**_sdk_arguments(self, self._authorization(), asynchronous=False))

    def async_sdk_client(self) -> "ollama.AsyncClient":
        """Like `sdk_client`, asynchronously."""
        from ollama import AsyncClient

        return AsyncClient(**_sdk_arguments(self, self._authorization(), asynchronous=True))

    def _convert_input(self, model_input: Any) -> PromptValue:
        return super()._convert_input(read_messages(model_input))

    # ------------------------------------------------------------------------------------------ tools and a format at once

    def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """Make one request and yield its reply as it arrives; tools with a format are described at `_format_last`."""
        return _format_last(partial(super().raw_stream, messages, stop), self, kwargs)

    def araw_stream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any
    ) -> AsyncGenerator[AIMessageChunk, None]:
        """Like `raw_stream`, asynchronously."""
        return _aformat_last(partial(super().araw_stream, messages, stop), self, kwargs)

    def raw_invoke(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AIMessage:
        """Make one request without streaming and return its reply; tools with a format are described at `_format_last`."""
        ask = partial(super().raw_invoke, messages, stop)
        turns: Iterator[AIMessage] = _format_last(lambda **asked: [ask(**asked)], self, kwargs)
        return next(turns)

    async def araw_invoke(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AIMessage:
        """Like `raw_invoke`, asynchronously."""
        ask = partial(super().araw_invoke, messages, stop)

        async def reply(**asked: Any) -> AsyncGenerator[AIMessage, None]:
            yield await ask(**asked)

        [turn] = [turn async for turn in _aformat_last(reply, self, kwargs)]
        return turn

    # ------------------------------------------------------------------------------------------ tools and output

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """Return a tool in the form of a request. `strict` is ignored.

        Raises:
            ConfigurationError: It cannot be declared.
        """
        return {**format_tool(plain(tool))}

    def format_tool_choice(self, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
        """Return a tool choice in one form: "auto", "none", "required", or a function. Only "none" changes a request.

        Raises:
            ConfigurationError: The choice names no declared tool, or is of no known form.
        """
        return format_tool_choice(choice, tools)

    def bind_tools(
        self,
        tools: Sequence[Any],
        *,
        tool_choice: Any = None,
        parallel_tool_calls: bool | None = None,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Declare tools without executing them: their calls are left to the caller.

        Args:
            tools: Functions, pydantic classes, TypedDicts, `BaseTool`s, or dicts in OpenAI's or Anthropic's form.
            tool_choice: `auto`, `none` (no tools are declared), or `any`, a tool's name, True: accepted, but the protocol cannot force
                a call, which is logged.
            parallel_tool_calls: The protocol cannot say it; False is logged at each request.
            strict: Means nothing here.
            **kwargs: Bound to every request.

        Raises:
            ConfigurationError: A tool cannot be declared, or the choice names none.
        """
        bound = super().bind_tools(tools, tool_choice=tool_choice, parallel_tool_calls=parallel_tool_calls, strict=strict, **kwargs)
        if isinstance(bound, RunnableBinding) and _is_forced(bound.kwargs.get("tool_choice")):
            _logger.warning("Ollama has no tool_choice: the model is told of the tools and decides itself whether to call one")
        return bound

    def _format_params(self, schema: Any, method: str, strict: bool | None) -> dict[str, Any]:
        return {"format": output_format("json" if method == "json_mode" else schema)}

    def _bind_schema(self, schema: Any, strict: bool | None, kwargs: dict[str, Any]) -> Runnable[LanguageModelInput, AIMessage]:
        return super().bind_tools([schema], **kwargs)  # without the warning

    # ------------------------------------------------------------------------------------------ what LangChain asks

    @property
    def _llm_type(self) -> str:
        return "chat-ollama"

    @property
    def lc_secrets(self) -> dict[str, str]:
        """The secret fields, each with its environment variable."""
        return {"api_key": "OLLAMA_API_KEY", **({"base_url": "OLLAMA_HOST"} if self.address.authorization else {})}

    # ------------------------------------------------------------------------------------------ secrets and copies

    def _secrets(self) -> list[str]:
        key = [self.api_key.get_secret_value()] if self.api_key else []
        address = [secret for secret in (self.address.authorization, self.address.password) if secret]
        return [
            *key,
            *address,
            *secret_values(self._address_query),
            *(secret for one in self.all_client_kwargs for secret in secret_values(_lowered_headers(one), _proxy_of(one))),
        ]

    def _portable_fields(self) -> dict[str, Any]:
        names = ("client_kwargs", "sync_client_kwargs", "async_client_kwargs")
        kwargs = dict(zip(names, map(portable_arguments, self.all_client_kwargs), strict=True))
        base_url = self.address.url if self.address.authorization else portable("base_url", self.base_url)
        return {"api_key": None, "base_url": base_url, **kwargs}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        host = os.environ.get("OLLAMA_HOST")
        if host and address_of(host).url == self.address.url:
            self.base_url = host  # which may say a user and password


def _is_forced(choice: Choice | None) -> bool:
    """Whether a choice from `format_tool_choice` demands a call."""
    return choice not in (None, "auto", "none")


def _proxy_of(arguments: Mapping[str, Any]) -> str | None:
    proxy = arguments.get("proxy")
    return proxy if isinstance(proxy, str) else None


# ---------------------------------------------------------------------------------------------- what is known of a model

# The rest depends on the model that the server runs; `profile={...}` says what the user knows of it.


_PROTOCOL: dict[str, Any] = {
    "text_inputs": True,
    "image_url_inputs": False,
    "pdf_inputs": False,
    "audio_inputs": False,
    "video_inputs": False,
    "pdf_tool_message": False,
    "text_outputs": True,
    "image_outputs": False,
    "audio_outputs": False,
    "video_outputs": False,
    "tool_choice": False,
}


def profile_of(num_ctx: int | None) -> dict[str, Any]:
    """Return the profile of a model with this context length in tokens; None: the server decides."""
    return dict(_PROTOCOL) if num_ctx is None else {**_PROTOCOL, "max_input_tokens": num_ctx}


def _check_model(http: "httpx.Client", url: str, model: str, options: Mapping[str, Any]) -> None:
    """Raise if the server does not have the model.

    Args:
        http: The HTTP client.
        url: The server's address.
        model: The model's name.
        options: Headers and timeout of the request.

    Raises:
        ValueError: The server has no such model, or cannot be asked; the text says what to do.
    """
    import httpx

    try:
        listed = http.get(f"{url}/api/tags", follow_redirects=False, **options).raise_for_status().json()
        names = [str(one.get("model") or one.get("name")) for one in listed["models"]]
    except httpx.TransportError as error:
        raise ValueError(f"no reply from {url} ({type(error).__name__}): is Ollama running there?") from error
    except (httpx.HTTPError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"{url} does not tell which models it has ({type(error).__name__}): is it an Ollama server?") from error
    if not any(name == model or name.startswith(f"{model}:") for name in names):
        near = get_close_matches(model, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(names) or 'none'}"
        raise ValueError(f"the server has no model {model!r}: {hint} (ollama pull {model} fetches it)")


# ---------------------------------------------------------------------------------------------- tools with an output format in one turn


# The server cannot combine them, because its format's grammar rules out calls (ollama/ollama#8095, #11185). So a turn that has both is
# asked without the format. Where the model then calls a tool, or writes JSON by itself, that is the turn. Where it answers in any other
# words, the same messages are sent once more, with the format and without the tools, and that reply is the turn; its token counts are
# those of both.

_Reply = TypeVar("_Reply", bound=AIMessage)
_Ask = Callable[..., Iterable[_Reply]]
_Asked = AsyncGenerator[_Reply, None]


def _format_last(ask: _Ask[_Reply], model: OllamaParameters, kwargs: Mapping[str, Any]) -> Iterator[_Reply]:
    """Yield the reply of a turn, from one request or two.

    Args:
        ask: Makes a request of these keywords, and gives its reply.
        model: The model, for the format that its constructor set.
        kwargs: The keywords of the turn.
    """
    free, bound = _requests(model, kwargs)
    return iter(ask(**free)) if bound is None else _twice(ask, free, bound)


def _aformat_last(ask: Callable[..., _Asked[_Reply]], model: OllamaParameters, kwargs: Mapping[str, Any]) -> _Asked[_Reply]:
    """Like `_format_last`, asynchronously."""
    free, bound = _requests(model, kwargs)
    return ask(**free) if bound is None else _atwice(ask, free, bound)


def _requests(model: OllamaParameters, kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the keywords of a turn's first request, and those of its second; None if one is enough."""
    form = kwargs.get("format", model.format) or kwargs.get("response_format")
    if not form or not kwargs.get("tools") or kwargs.get("tool_choice") == "none":
        return dict(kwargs), None
    plain = {**kwargs, "format": None, "response_format": None}
    return plain, {**plain, "format": form, "tools": None, "tool_choice": None}


def _twice(ask: _Ask[_Reply], free: dict[str, Any], bound: dict[str, Any]) -> Iterator[_Reply]:
    first = list(ask(**free))
    yield from first if _is_settled(first) else (_with_usage_of(first, chunk) for chunk in ask(**bound))


async def _atwice(ask: Callable[..., _Asked[_Reply]], free: dict[str, Any], bound: dict[str, Any]) -> _Asked[_Reply]:
    first = [chunk async for chunk in ask(**free)]
    if _is_settled(first):
        for chunk in first:
            yield chunk
        return
    async with aclosing(ask(**bound)) as chunks:
        async for chunk in chunks:
            yield _with_usage_of(first, chunk)


def _is_settled(chunks: Sequence[AIMessage]) -> bool:
    """Whether a reply without a format needs none: it has calls, is JSON, or was cut off."""
    if any(chunk.additional_kwargs.get("tool_calls") for chunk in chunks):
        return True
    cut = any(chunk.response_metadata.get("finish_reason") in ("incomplete", "length") for chunk in chunks)
    return cut or read_object("".join(map(text_of, chunks)).strip()) is not None


def _with_usage_of(first: Sequence[AIMessage], reply: _Reply) -> _Reply:
    """Return a reply, or a chunk of it, with the token counts of the reply that it replaces added."""
    if reply.usage_metadata:
        for chunk in first:
            reply.usage_metadata = add_usage(chunk.usage_metadata, reply.usage_metadata)
    return reply


# ---------------------------------------------------------------------------------------------- objects of Ollama's SDK


# Nothing here imports the SDK before it is asked for: whoever gives an object of it has imported it.


def _sdk_arguments(model: OllamaParameters, headers: Mapping[str, str], *, asynchronous: bool) -> dict[str, Any]:
    """Return the arguments of the SDK's client for the model's server.

    Args:
        model: The model.
        headers: The headers that authorise a request.
        asynchronous: Whether they are for the asynchronous client.
    """
    both, *own = model.all_client_kwargs
    side = own[int(asynchronous)]
    arguments = {name: value for name, value in {**both, **side}.items() if name not in _OF_A_REQUEST}
    own_headers = {**headers, **_lowered_headers(both), **_lowered_headers(side)}
    timeout = side.get("timeout", model._client_timeout({}, None))
    return {
        "follow_redirects": False,
        **({"params": model._address_query} if model._address_query else {}),
        **arguments,
        "host": model.address.url,
        "headers": own_headers,
        **({} if timeout is None else {"timeout": timeout}),
    }


def _lowered_headers(arguments: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the headers among an HTTP client's arguments, with names in lower case."""
    return {name.lower(): value for name, value in dict((arguments or {}).get("headers") or {}).items()}


def plain(value: Any) -> Any:
    """Return an SDK object as plain data without unset fields; other values unchanged."""
    if type(value).__module__.partition(".")[0] != "ollama" or not hasattr(value, "model_dump"):
        return value
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def read_messages(given: Any) -> Any:
    """Return a model's input with the SDK's messages converted to LangChain's.

    Raises:
        ConfigurationError: A message of the SDK has a role that no message has.
    """
    message = getattr(sys.modules.get("ollama"), "Message", None)  # None also while another thread imports the SDK
    if message is None or isinstance(given, str):
        return given
    if isinstance(given, message):
        return [_message(given)]
    if not isinstance(given, Sequence) or not any(map(isinstance, given, repeat(message))):
        return given
    return [_message(one) if isinstance(one, message) else one for one in given]


def _message(given: "ollama.Message") -> BaseMessage:
    fields = plain(given)
    content = _content(fields.get("content") or "", fields.get("images") or ())
    role = fields["role"]
    if role == "user":
        return HumanMessage(content)
    if role == "system":
        return SystemMessage(content)
    if role == "tool":  # the protocol pairs results with calls by their order; `repair` gives both an id
        return ToolMessage(content, tool_call_id=fields.get("tool_call_id") or "", name=fields.get("tool_name"))
    if role != "assistant":
        raise ConfigurationError(f"a message of role {role!r} cannot be sent: roles are user, assistant, system and tool")
    functions = [(call.get("id"), call["function"]) for call in fields.get("tool_calls") or ()]
    calls: Any = [{"name": one["name"], "args": one["arguments"], "id": call_id, "type": "tool_call"} for call_id, one in functions]
    extra = {"reasoning_content": fields["thinking"]} if fields.get("thinking") else {}
    return AIMessage(content, tool_calls=calls, additional_kwargs=extra)


def _content(text: str, images: Sequence[str]) -> Any:
    if not images:
        return text
    pictures = [{"type": "image", "base64": data, "mime_type": image_type(data) or "image/png"} for data in images]
    return [*([{"type": "text", "text": text}] if text else []), *pictures]
