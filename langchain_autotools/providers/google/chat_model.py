"""`ChatGoogleGenerativeAI`: a tool-running chat model for Google's Gemini API and Vertex AI."""

from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable

from ...errors import ConfigurationError
from ...turn.tool_choice import ToolChoice
from ...turn.tools import listed
from .._base.errors import ErrorMapping
from .._base.parameters import log_parallel
from .._encode.origin import origin_of
from .._transport.exchange import Exchange
from .._transport.secrets import portable_arguments
from .client import ClientSettings
from .credentials import AccessTokens
from .decode import GenerateContentDecoder
from .endpoint import Endpoint
from .errors import ERRORS
from .mapper import GenerateContentMapper
from .parameters import GoogleParameters
from .profiles import PROFILES, answers_in_blocks, is_older, plain_name, profile_of
from .request import GoogleRequests, may_hold_blocks, taken_choice
from .sdk import http_options, plain_schema, read_contents
from .structured import reply_schema
from .tools import flat_tools, format_tool, format_tool_choice, read_choice
from .vendor_events import GenerateContentEvents

if TYPE_CHECKING:
    from google import genai

_EMPTY_REPLIES = 2  # so often a reply without a word is tried again (wire quirk G-08); then it is the reply


class ChatGoogleGenerativeAI(GoogleRequests, GoogleParameters):
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
    _methods_beside_tools: ClassVar[tuple[str, ...]] = ("json_schema", "json_mode")

    # ------------------------------------------------------------------------------------------ requests

    def _known_profile(self, model: str) -> Mapping[str, Any]:
        return profile_of(model)

    def known_models(self) -> list[str]:
        """Return the names of the vendor's models that have a built-in profile."""
        return sorted(PROFILES)

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
        blocks = may_hold_blocks(params) or answers_in_blocks(name)
        accept, query = ("text/event-stream", {"alt": "sse"}) if stream else ("application/json", {})
        refused = iter((False,) * min(_EMPTY_REPLIES, self._retry_settings.certain_retries))
        return Exchange(
            body=mapper.encode_request(messages, params),
            decoder=lambda: GenerateContentDecoder(
                origin=mapper.origin, blocks=blocks, may_be_empty=next(refused, True), signs=not is_older(name)
            ),
            watch=GenerateContentEvents,
            options=self._request_options(kwargs, stream=stream, headers={"accept": accept}, query=query),
            path=f"{name if self.vertexai or '/' in name else plain_name(name)}:{'streamGenerateContent' if stream else 'generateContent'}",
            idle_timeout=self._idle_timeout(kwargs),
        )

    def _traced_name(self, model: str) -> str:
        return plain_name(model)

    def _mapper(self, model: str) -> GenerateContentMapper:
        """Return the mapper for a model, cached because it keeps the messages that it has encoded."""
        name, older = plain_name(model), is_older(model)
        origin = origin_of(f"{self._api.root}/{self._api.model_path(model)}", name)
        return self._cache.get((origin, older), lambda: GenerateContentMapper(origin=origin, model=name, older=older))

    @property
    def _api(self) -> Endpoint:
        return Endpoint(bool(self.vertexai), self.base_url, self.api_version, self.project, self.location)

    def _client_settings(self) -> ClientSettings:
        with_tokens = self.vertexai and self.google_api_key is None
        return ClientSettings(
            endpoint=self._api,
            api_key=self.google_api_key,
            tokens=self._cache.get(("tokens", self.credentials), lambda: AccessTokens(self.credentials)) if with_tokens else None,
            headers=tuple((self.additional_headers or {}).items()),
            arguments=self.client_args,
            http_client=self.http_client,
            http_async_client=self.http_async_client,
        )

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

        sync = {"client_args": self.client_args, "httpx_client": self.http_client}
        asynchronous = {"async_client_args": self.client_args, "httpx_async_client": self.http_async_client}
        options: Any = http_options(self._api, self.additional_headers, self._timeout({}), **sync, **asynchronous)
        if self.google_api_key is not None:
            key = self.google_api_key.get_secret_value()
            return Client(vertexai=bool(self.vertexai), api_key=key, http_options=options)
        own = {"project": self.project, "location": self.location, "credentials": self.credentials} if self.vertexai else {}
        return Client(vertexai=bool(self.vertexai), http_options=options, **own)

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
        return read_choice(choice)

    def take_tool_choice(self, keywords: dict[str, Any]) -> Any:
        """Remove the tool choice from the keywords of a call and return it; it may also be in `tool_config`.

        Raises:
            ConfigurationError: It stands in both.
        """
        choice, held = super().take_tool_choice(keywords), taken_choice(keywords)
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
        return "function_calling" if schema is not None and self.tools and is_older(self.model) else method

    def _format_params(self, schema: Any, method: str, strict: bool | None) -> dict[str, Any]:
        schemas = {} if schema is None else {"response_json_schema": reply_schema(schema)}
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
