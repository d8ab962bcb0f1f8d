"""`ChatOllama`: a tool-running chat model for Ollama's own chat protocol and compatible servers."""

import logging
import os
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableBinding
from pydantic import model_validator

from .._base.errors import ErrorMapping
from .._base.parameters import log_parallel
from .._encode.origin import origin_of
from .._transport.decoders import NDJSONDecoder
from .._transport.exchange import Exchange
from .._transport.secrets import portable, portable_arguments, secret_values
from .client import ClientSettings
from .decode import OllamaDecoder
from .endpoint import address_of
from .errors import ERRORS
from .format_last import aformat_last, format_last
from .mapper import OllamaMapper
from .parameters import OllamaParameters, lowered_headers
from .profiles import profile_of
from .request import OllamaRequests
from .schemas import output_format
from .sdk import plain, read_messages, sdk_arguments
from .tools import format_tool, format_tool_choice, is_forced
from .validation import check_model
from .vendor_events import OllamaEvents

if TYPE_CHECKING:
    import ollama

_OF_A_REQUEST = ("headers", "timeout")

_logger = logging.getLogger("langchain_autotools")


class ChatOllama(OllamaRequests, OllamaParameters):
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

    @model_validator(mode="after")
    def _validate_model(self) -> Self:
        if self.validate_model_on_init:
            http = self._client_settings().clients(self._cache).synchronous()
            check_model(http, self.address.url, self.model, self._request_options({}, stream=True))
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

    # ------------------------------------------------------------------------------------------ the SDK

    def sdk_client(self) -> "ollama.Client":
        """A client of Ollama's SDK with this model's address, key, headers, timeout and client arguments: it lists, shows and pulls models.

        ```python
        model.sdk_client().pull(model.model)
        ```

        Each call makes one; whoever asks for it closes it.
        """
        from ollama import Client

        return Client(**sdk_arguments(self, self._authorization(), asynchronous=False))

    def async_sdk_client(self) -> "ollama.AsyncClient":
        """Like `sdk_client`, asynchronously."""
        from ollama import AsyncClient

        return AsyncClient(**sdk_arguments(self, self._authorization(), asynchronous=True))

    def _convert_input(self, model_input: Any) -> PromptValue:
        return super()._convert_input(read_messages(model_input))

    # ------------------------------------------------------------------------------------------ tools and a format at once

    def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """Make one request and yield its reply as it arrives; tools with a format are described at `format_last`."""
        return format_last(partial(super().raw_stream, messages, stop), self, kwargs)

    def araw_stream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any
    ) -> AsyncGenerator[AIMessageChunk, None]:
        """Like `raw_stream`, asynchronously."""
        return aformat_last(partial(super().araw_stream, messages, stop), self, kwargs)

    def raw_invoke(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AIMessage:
        """Make one request without streaming and return its reply; tools with a format are described at `format_last`."""
        ask = partial(super().raw_invoke, messages, stop)
        turns: Iterator[AIMessage] = format_last(lambda **asked: [ask(**asked)], self, kwargs)
        return next(turns)

    async def araw_invoke(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AIMessage:
        """Like `raw_invoke`, asynchronously."""
        ask = partial(super().araw_invoke, messages, stop)

        async def reply(**asked: Any) -> AsyncGenerator[AIMessage, None]:
            yield await ask(**asked)

        [turn] = [turn async for turn in aformat_last(reply, self, kwargs)]
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
        if isinstance(bound, RunnableBinding) and is_forced(bound.kwargs.get("tool_choice")):
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
            *(secret for one in self.all_client_kwargs for secret in secret_values(lowered_headers(one), _proxy_of(one))),
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


def _proxy_of(arguments: Mapping[str, Any]) -> str | None:
    proxy = arguments.get("proxy")
    return proxy if isinstance(proxy, str) else None
