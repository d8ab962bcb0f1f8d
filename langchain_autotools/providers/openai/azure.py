"""`AzureChatOpenAI`: a tool-running chat model for OpenAI's models on Azure.

Wire facts (learn.microsoft.com/azure/ai-foundry/openai/reference): a chat completion goes to its deployment's path, a response to
one path for all, with the deployment as its model. Every request says `api-version`. A key goes as `api-key`, a token as `Authorization`.
Streams begin with a chunk of filter results alone (wire quirks E-01, E-02).
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from langchain_core.language_models import ModelProfile
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.utils import from_env
from pydantic import Field, SecretStr, model_validator

from ...addresses import query_of, without_query
from ...errors import ConfigurationError
from ...pickling import findable
from ...turn.model import Secret
from .._base.parameters import Check, Environment, akey_of, check_address, check_in_path, check_key, key_of
from .._transport.exchange import Exchange, Response
from .._transport.secrets import SecretDict, secret_values
from .chat_model import ChatOpenAI, profile_of
from .errors import ERRORS, sdk
from .parameters import ApiKey, ClientSettings, given_key

if TYPE_CHECKING:
    import openai

_TOKEN_VARIABLE = "AZURE_OPENAI_AD_TOKEN"
_VERSION = "api-version"
_NEWER = "/openai/v1"
_CHAT_PATH = "/chat/completions"


@dataclass(frozen=True)
class AzureSettings(ClientSettings):
    """The settings of the SDK's Azure client.

    Attributes:
        azure_endpoint: The resource's address; None where `base_url` says all.
        azure_deployment: The deployment that chat completions go to.
        api_version: The version of Azure's API.
        token: A token of Microsoft Entra.
        get_token: A function that returns one before each request.
        aget_token: The same for asynchronous requests.
    """

    azure_endpoint: str | None = field(default=None, repr=False)
    azure_deployment: str | None = None
    api_version: str | None = None
    token: SecretStr | None = None
    get_token: Callable[[], str] | None = None
    aget_token: Callable[[], Awaitable[str]] | None = None

    def synchronous(self) -> "openai.OpenAI":
        """Return a synchronous client.

        Raises:
            ConfigurationError: The token comes from an asynchronous function only, and there is no key.
            openai.OpenAIError: There is neither key nor token.
        """
        has_token = bool(self.get_token or self.token)
        if self.aget_token and not (has_token or self.api_key):
            raise ConfigurationError("azure_ad_async_token_provider serves ainvoke and astream only: give azure_ad_token_provider too")
        get_token = key_of(self.get_token, "azure_ad_token_provider", ERRORS.unreachable) if self.get_token else None
        client: openai.OpenAI = self._azure_client("AzureOpenAI", has_token, azure_ad_token_provider=get_token, http_client=self._http())
        return client

    def asynchronous(self, loop: asyncio.AbstractEventLoop) -> "openai.AsyncOpenAI":
        """Return a client for this event loop.

        Raises:
            openai.OpenAIError: There is neither key nor token.
        """
        has_token, get_token = bool(self.aget_token or self.get_token or self.token), None
        if self.aget_token:
            get_token = akey_of(self.aget_token, "azure_ad_async_token_provider", ERRORS.unreachable)
        elif self.get_token:
            get_token = given_key(self.get_token, "azure_ad_token_provider")
        client: openai.AsyncOpenAI = self._azure_client(
            "AsyncAzureOpenAI", has_token, azure_ad_token_provider=get_token, http_client=self._ahttp(loop)
        )
        return client

    def _request(self, exchange: Exchange) -> dict[str, Any]:
        """The request; a key that was given is said in it where old releases of the SDK would send the environment's token instead."""
        request = super()._request(exchange)
        if isinstance(self.api_key, SecretStr) and not (self.token or self.get_token or self.aget_token) and _TOKEN_VARIABLE in os.environ:
            key = {"Authorization": sdk().Omit(), "api-key": self.api_key.get_secret_value()}
            request["options"]["headers"] = SecretDict({**key, **(exchange.options.get("headers") or {})})
        return request

    def _azure_client(self, kind: str, has_token: bool, **arguments: Any) -> Any:
        """Return a client of the SDK; a token takes precedence over a key, as in the SDK."""
        arguments |= {"api_version": self.api_version, "azure_ad_token": self.token.get_secret_value() if self.token else None}
        key = None if has_token else self.api_key
        if not self.azure_endpoint:
            return self._client(kind, self.base_url, key, **arguments)
        return self._client(kind, self.azure_endpoint, key, place="azure_endpoint", azure_deployment=self.azure_deployment, **arguments)


class AzureChatOpenAI(ChatOpenAI):
    """OpenAI's chat models on Azure, with tools that run. Constructor names are those of langchain-openai's `AzureChatOpenAI`.

    ```python
    model = AzureChatOpenAI(azure_endpoint="https://me.openai.azure.com", azure_deployment="gpt-5", api_version="2025-04-01-preview")
    ```

    The arguments that matter first, all optional but `azure_deployment`:

    - `azure_deployment`: the deployment's name.
    - `tools`: functions or tools that the model runs itself. Without them it is
      a plain LangChain chat model.
    - `api_key`: the key, as text; else `AZURE_OPENAI_API_KEY` of the environment.
    - `azure_endpoint`, `api_version`: the resource's address, the API's version.
    - `temperature`, `max_tokens`, `stop`, `reasoning_effort`: of each reply.
    - `timeout`, `max_retries`: seconds without a byte; further attempts.
    - `max_turns`, `max_tool_calls`, `deadline`, `on_limit`: what a run may use.
    - `requires_approval`, `approve`: which calls a human decides about.

    Ask it with `invoke`, `stream`, `batch`, `ainvoke`, `astream`; see also
    `with_structured_output`, `bind_tools`, `resume` and `new_messages`.

    For Azure's newer address that ends in `/openai/v1` no version is needed: use `ChatOpenAI(base_url=...)`.

    Raises:
        ConfigurationError: An argument is unknown, missing or cannot work.
    """

    model_name: str = Field(default="", alias="model")
    """The deployed model's name, for profile and traces. Default: the deployment's name."""
    azure_endpoint: str | None = Field(default_factory=from_env("AZURE_OPENAI_ENDPOINT", default=None))
    """The resource's address, `https://me.openai.azure.com`. Environment: `AZURE_OPENAI_ENDPOINT`."""
    deployment_name: str | None = Field(default=None, alias="azure_deployment")
    """The deployment. Default: the one that is named like the model."""
    openai_api_version: str | None = Field(default_factory=from_env("OPENAI_API_VERSION", default=None), alias="api_version")
    """The version of Azure's API. Environment: `OPENAI_API_VERSION`."""
    azure_ad_token: Secret = Field(default=None, repr=False)  # type: ignore[arg-type]
    """Microsoft Entra token; takes precedence over a key. Environment: `AZURE_OPENAI_AD_TOKEN`."""
    azure_ad_token_provider: Callable[[], str] | None = Field(default=None, exclude=True, repr=False)
    """A function that returns a token before each request; for asynchronous requests in a thread, unless the next field is set."""
    azure_ad_async_token_provider: Callable[[], Awaitable[str]] | None = Field(default=None, exclude=True, repr=False)
    """An asynchronous function that returns a token before each asynchronous request."""
    model_version: str = ""
    """The deployed model's version, which Azure does not report; appended to the model's name in replies and traces."""
    validate_base_url: bool = True
    """Whether a `base_url` must be Azure's, with `/openai` in it."""
    openai_api_type: str | None = "azure"
    """Ignored; accepted for older programs."""

    _ls_provider: ClassVar[str] = "azure"
    _environment: ClassVar[Environment] = Environment(
        key=("AZURE_OPENAI_API_KEY",), organization=("OPENAI_ORG_ID", "OPENAI_ORGANIZATION"), proxy=("OPENAI_PROXY",)
    )
    _refused: ClassVar[Mapping[str, str]] = {
        **ChatOpenAI._refused,
        "azure_ad_token_credential": "give azure_ad_token_provider=get_bearer_token_provider(credential, scope)",
    }

    _checks: ClassVar[Mapping[str, Check | None]] = {
        **ChatOpenAI._checks,
        "model_name": None,  # the deployment says it
        "azure_endpoint": check_address,
        **dict.fromkeys(("openai_api_version", "deployment_name"), check_in_path),
        "azure_ad_token": check_key,
    }

    _connection: ClassVar[frozenset[str]] = ChatOpenAI._connection | {
        *("azure_endpoint", "deployment_name", "openai_api_version"),
        *("azure_ad_token", "azure_ad_token_provider", "azure_ad_async_token_provider"),
    }

    def _complete_from_environment(self) -> None:
        """Read missing settings from the environment. An explicit credential takes precedence over the environment, a token over a key."""
        token = None if self.openai_api_key or self._has_token else os.environ.get(_TOKEN_VARIABLE)
        if token:
            self.azure_ad_token = SecretStr(token)
        if self.stream_usage is None:
            self.stream_usage = True
        super()._complete_from_environment()
        if self.disabled_params is None and self.model_name.lower() != "gpt-4o":
            self.disabled_params = {"parallel_tool_calls": None}

    @model_validator(mode="after")
    def _check_place(self) -> Self:
        in_address = query_of(self.openai_api_base or self.azure_endpoint or "").get(_VERSION)
        self.openai_api_version = self.openai_api_version or (in_address if isinstance(in_address, str) else None)
        if self.openai_api_base:
            self.azure_endpoint = None
            if (self._address or "").rstrip("/").endswith(_NEWER):
                raise ConfigurationError(
                    f"base_url ends in {_NEWER}, which knows no deployments: use ChatOpenAI(base_url=..., api_key=...)"
                )
            if self.validate_base_url and "/openai" not in self.openai_api_base:
                raise ConfigurationError("base_url has no /openai in it: give the resource's address as azure_endpoint")
            if self.validate_base_url and self.deployment_name:
                raise ConfigurationError("base_url says the deployment itself: give azure_endpoint beside azure_deployment")
        elif "/openai/deployments/" in (self.azure_endpoint or ""):
            raise ConfigurationError("azure_endpoint says a deployment: give that address as base_url, without azure_deployment")
        elif not self.azure_endpoint:
            raise ConfigurationError("where to? Give azure_endpoint, or set AZURE_OPENAI_ENDPOINT")
        if not self.openai_api_version:
            raise ConfigurationError("which version of the API? Give api_version, or set OPENAI_API_VERSION")
        if not (self.model_name or self.deployment_name or "/deployments/" in (self.openai_api_base or "")):
            raise ConfigurationError("which deployment? Give azure_deployment, or model where the deployment is named like it")
        return self

    @property
    def _has_token(self) -> bool:
        return bool(self.azure_ad_token or self.azure_ad_token_provider or self.azure_ad_async_token_provider)

    def _variable(self, what: str) -> str | None:
        return None if what == "key" and self._has_token else super()._variable(what)

    # ------------------------------------------------------------------------------------------ requests

    @property
    def _wire_model(self) -> str:
        return self.model_name or self._deployment

    @property
    def _responses_model(self) -> str:
        return self._deployment or self.model_name

    @property
    def _known_name(self) -> str:
        return self.model_name or self.deployment_name or ""

    @property
    def _deployment(self) -> str:
        in_url = (self._address or "").rpartition("/deployments/")
        return self.deployment_name or (in_url[2].strip("/") if in_url[1] else "")

    @property
    def _is_vendors(self) -> bool:
        return True

    @property
    def _endpoint(self) -> str | None:
        if self.openai_api_base:
            return self._address
        return f"{self._resource}/openai/deployments/{self.deployment_name or ''}"

    @property
    def _resource(self) -> str | None:
        """The resource's address without what the SDK adds to it; None where `base_url` says all."""
        return self.azure_endpoint and without_query(self.azure_endpoint).rstrip("/").removesuffix(_NEWER)

    @property
    def _address_query(self) -> dict[str, Any]:
        found = query_of(self.openai_api_base or self.azure_endpoint or "")
        return {name: value for name, value in found.items() if name != _VERSION}

    def _exchange(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        exchange = super()._exchange(messages, stop, kwargs, stream=stream)
        if exchange.path == _CHAT_PATH and not (self.deployment_name or "/deployments/" in (self.openai_api_base or "")):
            exchange = replace(exchange, path=f"/deployments/{kwargs.get('model') or self.model_name}{_CHAT_PATH}")
        return exchange

    def _annotate(self, last: AIMessageChunk, response: Response) -> None:
        super()._annotate(last, response)
        if name := last.response_metadata.get("model_name"):
            last.response_metadata["model_name"] = _with_version(name, self.model_version)

    def _known_key(self) -> ApiKey:
        if self.openai_api_key is None and not self._has_token:
            given = f"give api_key, azure_ad_token or azure_ad_token_provider, or set AZURE_OPENAI_API_KEY or {_TOKEN_VARIABLE}"
            raise ConfigurationError(f"{type(self).__name__} has neither a key nor a token: {given}")
        return self.openai_api_key

    def _client_settings(self) -> ClientSettings:
        plain = super()._client_settings()
        return AzureSettings(
            **{**vars(plain), "foreign": True},
            azure_endpoint=self._resource,
            azure_deployment=self.deployment_name,
            api_version=self.openai_api_version,
            token=self.azure_ad_token,
            get_token=self.azure_ad_token_provider,
            aget_token=self.azure_ad_async_token_provider,
        )

    # ------------------------------------------------------------------------------------------ what LangChain asks

    @property
    def _llm_type(self) -> str:
        return "azure-openai-chat"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"azure_deployment": self.deployment_name, **super()._identifying_params}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop, **kwargs)
        if "model" not in kwargs:
            name = self.model_name or self.deployment_name or ""
            params["ls_model_name"] = _with_version(name, self.model_version) if self.model_name else name
        return params

    def _resolve_model_profile(self) -> ModelProfile | None:
        profile = profile_of(self.model_name) or profile_of(self.deployment_name or "")
        profile.pop("mid_conversation_tools", None)  # Azure's documentation does not say whether it takes them
        return cast("ModelProfile", profile) or None

    @property
    def lc_secrets(self) -> dict[str, str]:
        """The secret fields, each with its environment variable."""
        return {**super().lc_secrets, "azure_ad_token": _TOKEN_VARIABLE}

    def _secrets(self) -> list[str]:
        return [
            *super()._secrets(),
            *secret_values({}, self.azure_endpoint),
            *([self.azure_ad_token.get_secret_value()] if self.azure_ad_token else []),
        ]

    @property
    def _keys(self) -> tuple[str, ...]:
        return (*super()._keys, "azure_ad_token")

    def _portable_fields(self) -> dict[str, Any]:
        functions = {name: findable(getattr(self, name)) for name in ("azure_ad_token_provider", "azure_ad_async_token_provider")}
        return {**super()._portable_fields(), **functions, "azure_ad_token": None}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        token = None if self._has_token else os.environ.get(_TOKEN_VARIABLE)
        if token:
            self.openai_api_key, self.azure_ad_token = None, SecretStr(token)


def _with_version(name: str, version: str) -> str:
    return f"{name}-{version.lstrip('-')}" if version and version not in name else name
