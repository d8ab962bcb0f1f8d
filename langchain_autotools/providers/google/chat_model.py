"""`ChatGoogleGenerativeAI`: Google's Gemini API and Vertex AI, with tools that run."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, cast

from langchain_core.language_models import LanguageModelInput, ModelProfile
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr, SecretStr

from ...errors import ConfigurationError
from ...turn.tool_choice import ToolChoice
from ...turn.tools import listed
from .._base.chat_model import ErrorTable, Exchange, Response
from .._base.parameters import check_structured, langsmith_params, log_parallel
from .._base.structured import call_parser, json_parser, structured
from .._encode.origin import origin_of, public_url
from .._transport.clients import Clients
from .._transport.http import ClientArguments, HttpClients, library
from .._transport.secrets import header_variables, secret_values, with_user
from .._transport.timeouts import read_timeout
from .client import ClientSettings, apost, post
from .credentials import AccessTokens
from .encode import Origin
from .endpoint import Endpoint
from .errors import error_table
from .mapper import GenerateContentMapper
from .parameters import ADDRESS_VARIABLES, GoogleParameters
from .profiles import answers_in_blocks, is_older, plain_name, profile_of
from .request import default_params, may_hold_blocks, request_options, request_params, taken_choice
from .structured import reply_schema, told_schema
from .tools import flat_tools, format_tool, format_tool_choice, read_choice

__all__ = ["ChatGoogleGenerativeAI"]

_EMPTY_REPLIES = 2  # so often a reply without a word is tried again (wire quirk G-08); then it is the reply

Method = Literal["json_schema", "function_calling", "json_mode"]


class ChatGoogleGenerativeAI(GoogleParameters):
    """Google's chat models, on the Gemini API or Vertex AI, with tools that run.

    ```python
    model = ChatGoogleGenerativeAI(model="gemini-3.5-flash", tools=[get_temperature])
    for chunk in model.stream("How warm is it in Paris?"):
        print(chunk.text, end="")
    ```

    The constructor's names are those of langchain-google-genai's `ChatGoogleGenerativeAI`; an unknown one is an error. The HTTP client
    is made at the first request; google-genai is imported for its errors alone, when there is one.

    Raises:
        ConfigurationError: An argument is unknown or cannot work.
    """

    lists_content: ClassVar[bool] = True
    _uncopied: ClassVar[tuple[str, ...]] = ("http_client", "http_async_client", "credentials", "client_args")

    _made: Clients = PrivateAttr(default_factory=Clients)

    # ------------------------------------------------------------------------------------------ requests

    def _exchange(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        params = request_params(self, stop, kwargs)
        log_parallel(kwargs, "Google")
        name = str(params.pop("model"))
        mapper = self._mapper(name)
        blocks = may_hold_blocks(params) or answers_in_blocks(name)
        refused = iter((False,) * min(_EMPTY_REPLIES, self._retry_policy().attempts - 1))
        return Exchange(
            body=mapper.encode_request(messages, params),
            decoder=lambda: mapper.stream_decoder(blocks=blocks, may_be_empty=next(refused, True)),
            decode_body=lambda body: mapper.decode_body(body, blocks=blocks, may_be_empty=next(refused, True)),
            options=request_options(self, name, kwargs, stream=stream),
            silence=self.stream_chunk_timeout or read_timeout(kwargs.get("timeout") or self.timeout),
            secrets=tuple(self._secrets()),
        )

    def _mapper(self, model: str) -> GenerateContentMapper:
        """The mapper for a model, kept: it remembers the messages that it has encoded."""
        endpoint = self._endpoint()
        older = is_older(model)
        name = plain_name(model)
        digest = origin_of(f"{endpoint.root}/{endpoint.model_path(model)}", name)
        target = Origin(digest, name, signs=not older, media_in_responses=not older)
        mapper: GenerateContentMapper = self._made.get(target, lambda: GenerateContentMapper(target))
        return mapper

    def _endpoint(self) -> Endpoint:
        return Endpoint(bool(self.vertexai), self.base_url, self.api_version, self.project, self.location)

    def _client_settings(self) -> ClientSettings:
        with_tokens = self.vertexai and self.google_api_key is None
        arguments = ClientArguments(self.client_args)
        return ClientSettings(
            endpoint=self._endpoint(),
            api_key=self.google_api_key,
            tokens=self._made.get(("tokens", self.credentials), lambda: AccessTokens(self.credentials)) if with_tokens else None,
            headers=tuple((self.additional_headers or {}).items()),
            clients=HttpClients(library(), arguments, arguments, self._made),
            http_client=self.http_client,
            http_async_client=self.http_async_client,
        )

    def _open(self, exchange: Exchange) -> Response:
        response: Response = post(self._client_settings(), exchange.body, exchange.options)
        return response

    async def _aopen(self, exchange: Exchange) -> Response:
        response: Response = await apost(self._client_settings(), exchange.body, exchange.options)
        return response

    def _error_table(self, exchange: Exchange) -> ErrorTable:
        return error_table(exchange.secrets)

    # ------------------------------------------------------------------------------------------ tools and output

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """A tool as a request declares it; a tool of the vendor's own (`{"google_search": {}}`) under its name as type."""
        return format_tool(tool, strict=strict)

    def format_tool_choice(self, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
        """A tool choice, made plain: from `auto`, `none`, `any`, True, names of tools, or the vendor's own form."""
        return format_tool_choice(choice, tools)

    def read_tool_choice(self, choice: Any) -> ToolChoice:
        """What a plain choice means for a run: the names to which it is restricted stay, without the demand."""
        return read_choice(choice)

    def take_tool_choice(self, keywords: dict[str, Any]) -> Any:
        """The tool choice of one call, out of its keywords; it may also stand in `tool_config`.

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
        said = {**({"tool_config": tool_config} if tool_config else {}), **kwargs}
        return super().bind_tools(
            flat_tools(listed(tools)), tool_choice=tool_choice, parallel_tool_calls=parallel_tool_calls, strict=strict, **said
        )

    def with_structured_output(
        self,
        schema: Any = None,
        method: Method | None = "json_schema",
        *,
        include_raw: bool = False,
        strict: bool | None = None,
        tools: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, Any]:
        """A runnable that returns output of a schema: an object of a pydantic class, else a dict.

        With constructor tools the output is that of the last turn. An incomplete reply is an error, never half an object.

        Args:
            schema: A pydantic class, a TypedDict, or a JSON schema. May be left out with `json_mode`.
            method: `json_schema` (the vendor holds the model to the schema), `function_calling` (the schema is a tool that must be
                called), or `json_mode` (some JSON; with a schema the same as `json_schema`). Models before Gemini 3 that have tools are
                asked by `function_calling`: they take no schema beside tools.
            include_raw: Return `{"raw": message, "parsed": output or None, "parsing_error": error or None}`.
            strict: Accepted for LangChain's sake; the vendor always holds the model to the schema.
            tools: Tools to declare along with the schema (`json_schema` only); their calls are left to the caller.
            **kwargs: Bound to every request.

        Raises:
            ConfigurationError: The arguments cannot work together.
            ModelRefusalError: (when run) The model declined.
            OutputParserException: (when run) The reply is incomplete or does not fit the schema.
        """
        method = method or "json_schema"
        check_structured(schema, method, tools, schemaless=("json_mode",), beside_tools=("json_schema", "json_mode"))
        if method == "function_calling" or (schema is not None and self.tools and is_older(self.model)):
            return self._calling(schema, include_raw, kwargs)
        asked: dict[str, Any] = {"response_mime_type": "application/json"}
        if schema is not None:
            said = {"kwargs": {"method": method}, "schema": told_schema(schema)}
            asked |= {"response_json_schema": reply_schema(schema), "ls_structured_output_format": said}
        kwargs = {**asked, **kwargs}
        model = self.bind_tools(tools, **kwargs) if tools else self.bind(**kwargs)
        return structured(model, json_parser(schema), include_raw=include_raw)

    def _calling(self, schema: Any, include_raw: bool, kwargs: dict[str, Any]) -> Runnable[LanguageModelInput, Any]:
        """The schema as a tool that the model must call."""
        name = str(format_tool(schema)["name"])
        said = {"kwargs": {"method": "function_calling"}, "schema": told_schema(schema)}
        kwargs = {"tool_choice": name, "ls_structured_output_format": said, **kwargs}
        return structured(self.bind_tools([schema], **kwargs), call_parser(schema, name), include_raw=include_raw)

    # ------------------------------------------------------------------------------------------ what LangChain asks

    @property
    def _llm_type(self) -> str:
        return "chat-google-generative-ai"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        """What a reply depends on: traces show it, and the LLM cache keeps replies apart by it."""
        place = {name: getattr(self, name) for name in ("vertexai", "project", "location", "api_version", "output_version")}
        about = {"base_url": public_url(self.base_url), **place}
        return {**default_params(self), **{name: value for name, value in about.items() if value}}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = request_params(self, stop, kwargs)
        generation = params.get("generationConfig") or {}
        return langsmith_params(
            "google_genai",
            plain_name(str(params["model"])),
            generation.get("temperature"),
            generation.get("maxOutputTokens"),
            generation.get("stopSequences"),
        )

    def _resolve_model_profile(self) -> ModelProfile | None:
        return cast("ModelProfile", profile_of(self.model)) or None

    @property
    def lc_secrets(self) -> dict[str, str]:
        """The fields that are secrets, by the environment variable to find each in."""
        return {"google_api_key": "GOOGLE_API_KEY", **header_variables("GOOGLE", "additional_headers", self.additional_headers)}

    # ------------------------------------------------------------------------------------------ tokens

    def get_num_tokens_from_messages(self, messages: Sequence[BaseMessage], tools: Sequence[Any] | None = None, **kwargs: Any) -> int:
        """The tokens of a request with these messages and tools, estimated offline (see `get_num_tokens`)."""
        return super().get_num_tokens_from_messages(messages, flat_tools(tools or ()), **kwargs)

    # ------------------------------------------------------------------------------------------ secrets and copies

    def _secrets(self) -> list[str]:
        """Texts that must not stand in an error."""
        key = [self.google_api_key.get_secret_value()] if self.google_api_key else []
        proxy = (self.client_args or {}).get("proxy")
        return [*key, *secret_values(self.additional_headers, proxy if isinstance(proxy, str) else None, self.base_url)]

    def _portable_fields(self) -> dict[str, Any]:
        return dict.fromkeys(("google_api_key", *self._uncopied))

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        key = os.environ.get("GOOGLE_API_KEY") or os.environ.get("GEMINI_API_KEY")
        if key and not (self.vertexai and (self.project or self.location)):
            self.google_api_key = SecretStr(key)
        self.base_url = with_user(self.base_url, os.environ.get(ADDRESS_VARIABLES[bool(self.vertexai)]))
