"""The constructor of `ChatGoogleGenerativeAI`: its fields, and what the environment fills in.

Names and meanings are those of langchain-google-genai's `ChatGoogleGenerativeAI`; which key, project and location win where several
are given is as in google-genai's client.
"""

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field, SecretStr, field_validator

from ...errors import ConfigurationError
from ...field_types import Secret
from .._base.chat_model import ProviderChatModel
from .._base.checks import Check, check_client_arguments, check_count
from .._base.parameters import Environment, first_of
from .metadata import snake
from .tools import plain_tool

_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")
_ADDRESS_VARIABLES = {False: "GOOGLE_GEMINI_BASE_URL", True: "GOOGLE_VERTEX_BASE_URL"}

OF_THE_SDK = {
    "http_options": "it is google-genai's own; give base_url, timeout, max_retries, additional_headers, client_args",
    "should_return_http_response": "it is google-genai's own; include_response_headers=True tells the headers",
    "automatic_function_calling": "it is google-genai's own; tools=[...] of the constructor run, those of bind_tools never do",
    "automatic_continuation": "it is google-genai's own: its client asks for the rest of a reply",
}
"""Parameters of google-genai's configuration that only that package supports, with their replacements."""


class GoogleParameters(ProviderChatModel, defer_build=True):
    """The fields of a chat model that speaks to the Gemini API or Vertex AI."""

    model: str = Field(validation_alias="model_name")
    """Model name, also with its path (`models/...`, `publishers/...`, `projects/...`)."""

    google_api_key: Secret = Field(default=None, alias="api_key")  # type: ignore[arg-type]
    """API key. Environment: `GOOGLE_API_KEY`, then `GEMINI_API_KEY`."""
    credentials: Any = Field(default=None, exclude=True, repr=False)
    """Credentials for Vertex AI, a `google.auth.credentials.Credentials`. None: a key, else the machine's own credentials."""
    vertexai: bool | None = None
    """Whether to use Vertex AI. None: as set by `GOOGLE_GENAI_USE_VERTEXAI`; else if `credentials` or `project` are given."""
    project: str | None = None
    """Whether to use Vertex AI. None: as set by `GOOGLE_GENAI_USE_VERTEXAI`; else if `credentials` or `project` are given."""
    location: str | None = None
    """Google Cloud region, for Vertex AI. Environment: `GOOGLE_CLOUD_LOCATION`; else `global`."""
    base_url: str | None = Field(default=None, validation_alias="client_options")
    """Base URL of the API, with or without a version at its end. Environment: `GOOGLE_GEMINI_BASE_URL`, for Vertex AI
    `GOOGLE_VERTEX_BASE_URL`. None: Google's own."""
    api_version: str | None = None
    """Version of the API. Environment: `GOOGLE_GENAI_API_VERSION`. None: `v1beta`, on Vertex AI `v1beta1`."""
    additional_headers: dict[str, str] | None = Field(default=None, repr=False)
    """Additional HTTP headers of every request."""
    client_args: dict[str, Any] | None = Field(default=None, exclude=True, repr=False)
    """Arguments of the package's own HTTP clients: `proxy`, `verify`, ..."""
    http_client: Any = Field(default=None, exclude=True, repr=False)
    """HTTP client for synchronous requests, of httpx or httpx2, in place of the package's own."""
    http_async_client: Any = Field(default=None, exclude=True, repr=False)
    """HTTP client for asynchronous requests in place of the package's own."""

    temperature: float | None = None
    """Sampling temperature, 0 to 2. None: the vendor's default for the model."""
    top_p: float | None = None
    """Nucleus sampling: sample from the most likely tokens of this probability mass, 0 to 1."""
    top_k: int | float | None = None
    """Top-k sampling: sample from this many most likely tokens."""
    max_output_tokens: int | None = Field(default=None, validation_alias="max_tokens")
    """Maximum number of tokens of one reply, thinking included (`maxOutputTokens`)."""
    stop: list[str] | None = Field(default=None, validation_alias="stop_sequences")
    """Stop sequences: the reply ends before any of these texts (`stopSequences`)."""
    frequency_penalty: float | None = None
    """Frequency penalty: positive values make tokens less likely the more often they have occurred."""
    presence_penalty: float | None = None
    """Presence penalty: positive values make tokens that have occurred less likely."""
    seed: int | None = None
    """Sampling seed: the same seed and request give the same reply as far as the server can."""
    n: Literal[1] = Field(default=1, validation_alias="candidate_count")
    """Number of candidates: only 1, since a run has one reply."""

    include_thoughts: bool | None = None
    """Whether replies include summaries of the model's thoughts."""
    thinking_budget: int | None = None
    """Thinking budget in tokens; 0: none, -1: dynamic. For models before Gemini 3."""
    reasoning_effort: str | None = Field(default=None, alias="thinking_level")
    """Thinking level: `minimal`, `low`, `medium`, `high`; models differ. From Gemini 3 on."""
    thinking_config: Any = None
    """The wire's whole `thinkingConfig`, a dict or google-genai's object; the three fields above take precedence."""

    response_modalities: list[Any] | None = None
    """Output modalities: `TEXT`, `IMAGE`, `AUDIO`."""
    media_resolution: Any = None
    """Resolution at which media of the input are read: `low`, `medium`, `high`."""
    image_config: dict[str, Any] | None = None
    """Aspect ratio and size of generated images."""
    response_mime_type: str | None = None
    """MIME type of replies: `text/plain`, `application/json`."""
    response_schema: Any = None
    """JSON schema of replies, with `response_mime_type="application/json"`."""

    safety_settings: Mapping[Any, Any] | list[Any] | None = None
    """Block thresholds by harm category: `{"HARM_CATEGORY_...": "BLOCK_..."}`, as words or google-genai's enums; or the wire's own list."""
    cached_content: str | None = None
    """Name of the cached content that requests begin with."""
    labels: dict[str, str] | None = None
    """Labels of requests, for billing on Vertex AI."""
    timeout: Any = Field(default=None, validation_alias="request_timeout")
    """Timeout in seconds for the connection and between two bytes: a number, (connect, read), or the HTTP library's `Timeout`.
    None: 600, to connect 5."""
    max_retries: int | None = Field(default=None, validation_alias="retries")
    """Maximum number of retries of a failed request. None: as set by `retry` (2 by default)."""

    _ls_provider: ClassVar[str] = "google_genai"
    _variable_prefix: ClassVar[str] = "GOOGLE"
    _environment: ClassVar[Environment] = Environment(key=("GOOGLE_API_KEY", "GEMINI_API_KEY"))
    _key_field: ClassVar[str] = "google_api_key"
    _headers_field: ClassVar[str] = "additional_headers"
    _identifying_fields: ClassVar[tuple[str, ...]] = ("vertexai", "project", "location", "api_version", "output_version")
    _limit_params: ClassVar[tuple[str, ...]] = ("maxOutputTokens",)
    _stop_param: ClassVar[str] = "stopSequences"
    _sampling_object: ClassVar[str] = "generationConfig"
    _v0_content: ClassVar[str] = "the wire's own blocks"

    _numbers: ClassVar[Mapping[str, Check]] = {
        **ProviderChatModel._numbers,
        **dict.fromkeys(("topP", "topK", "maxOutputTokens"), check_count),
    }
    _dicts: ClassVar[Mapping[str, str]] = {
        **ProviderChatModel._dicts,
        **dict.fromkeys(("generation_config", "tool_config", "toolConfig"), ""),
        "thinking_config": "thinking_level='high' says the level alone",
    }

    _refused: ClassVar[Mapping[str, str]] = {
        **ProviderChatModel._refused,
        "default_metadata": "say it in additional_headers={...}",
        "default_metadata_input": "say it in additional_headers={...}",
        "convert_system_message_to_human": "system messages are sent as the request's systemInstruction, which every model takes now",
        "transport": "requests are made over HTTP",
        **OF_THE_SDK,
    }

    _checks: ClassVar[Mapping[str, Check | None]] = {"client_args": check_client_arguments}

    _connection: ClassVar[frozenset[str]] = frozenset(
        {"google_api_key", "credentials", "vertexai", "project", "location", "base_url", "api_version", "additional_headers", "client_args"}
    )

    @field_validator("base_url", mode="before")
    @classmethod
    def _endpoint_of_options(cls, value: Any) -> Any:
        """Accept langchain-google-genai's `{"api_endpoint": url}` too."""
        if not isinstance(value, Mapping):
            return value
        if unknown := value.keys() - {"api_endpoint"}:
            raise ValueError(f"client_options[{min(unknown)!r}] is not known: only api_endpoint is; see additional_headers and client_args")
        return value.get("api_endpoint")

    @field_validator("credentials")
    @classmethod
    def _check_credentials(cls, value: Any) -> Any:
        if value is not None and not hasattr(value, "before_request"):
            raise ValueError("give a google.auth.credentials.Credentials (a key goes into api_key)")
        return value

    @field_validator("thinking_config")
    @classmethod
    def _check_thinking_config(cls, value: Any) -> Any:
        if value is not None and not isinstance(value, Mapping | BaseModel):
            raise ValueError("give a dict such as {'includeThoughts': True}, or google-genai's ThinkingConfig")
        return value

    @field_validator("tools", mode="before")
    @classmethod
    def _tools_of_the_sdk(cls, value: Any) -> Any:
        """Accept google-genai's own objects as the equivalent dicts."""
        return [plain_tool(tool) for tool in value] if isinstance(value, list | tuple) else value

    def _complete_from_environment(self) -> None:
        self.api_version = self.api_version or _version(os.environ.get("GOOGLE_GENAI_API_VERSION"))
        self.vertexai = self._chooses_vertexai()
        self.base_url = self.base_url or self._variable("base_url")
        key = self._environment.read("key")
        if not self.vertexai:
            if self.project or self.location:
                raise ValueError("project and location are for Vertex AI: say vertexai=True, or leave them out")
            if self.google_api_key is None and key:
                self.google_api_key = SecretStr(key)
            return
        if self.credentials is not None and self.google_api_key is not None:
            raise ValueError("give credentials or api_key, not both")
        place = os.environ.get("GOOGLE_CLOUD_PROJECT"), os.environ.get("GOOGLE_CLOUD_LOCATION")
        if self.google_api_key is None and self.credentials is None and key and not (self.project or self.location or any(place)):
            self.google_api_key = SecretStr(key)
        if self.google_api_key is None or self.project or self.location:
            self.project, self.location = self.project or place[0], self.location or place[1]

    def _chooses_vertexai(self) -> bool:
        if self.vertexai is not None:
            return self.vertexai
        for name in ("GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI"):
            value = os.environ.get(name, "").lower()
            if value in (*_TRUE, *_FALSE):
                return value in _TRUE
        return self.credentials is not None or self.project is not None

    def _check_parameters(self) -> None:
        if self.client_args and (self.http_client or self.http_async_client):
            raise ValueError("client_args cannot reach a client that you made: give them to that client, and no client_args")
        check_sdk_names(self.model_kwargs)
        super()._check_parameters()

    def _variable(self, what: str) -> str | None:
        if what == "base_url":
            return first_of(_ADDRESS_VARIABLES[bool(self.vertexai)])
        return None if what == "key" and self.vertexai and (self.project or self.location) else super()._variable(what)

    @property
    def _proxy(self) -> str | None:
        proxy = (self.client_args or {}).get("proxy")
        return proxy if isinstance(proxy, str) else None

    @property
    def model_name(self) -> str:
        """The model's name."""
        return self.model

    @property
    def thinking_level(self) -> str | None:
        """The thinking level of the model."""
        return self.reasoning_effort


def check_sdk_names(keywords: Mapping[str, Any]) -> None:
    """Raise for parameters that google-genai handles itself and the server does not know.

    Raises:
        ConfigurationError: There is one.
    """
    for name, value in keywords.items():
        why = OF_THE_SDK.get(snake(name))
        if why and value is not None:
            raise ConfigurationError(f"{name} cannot be sent: {why}")


def _version(value: str | None) -> str | None:
    return None if value in (None, "", "beta") else value
