"""The base of every vendor's chat model: constructor arguments, secrets, what traces tell, copies.

What differs between vendors stands in class attributes (the names of fields, the environment, checks) and in a few methods.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from langchain_core.language_models import ModelProfile
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import BaseMessage
from pydantic import (
    ConfigDict,
    Field,
    SecretStr,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from ..._version import DISTRIBUTION, __version__
from ...errors import ConfigurationError, map_errors
from ...turn.constructor import names_of, unknown_argument
from .._encode.origin import public_url
from .._encode.tokens import estimate, messages_tokens
from .._transport.secrets import digest, has_password, header_variables, is_sent_beside, public_params, shown
from .._transport.timeouts import check_timeout
from .checks import (
    Check,
    check_address,
    check_async_client,
    check_call,
    check_client,
    check_count,
    check_headers,
    check_key,
    check_model,
    check_proxy,
    check_seconds,
    describe_validation_error,
)
from .parameters import OWN_CLIENTS
from .portable import PortableChatModel
from .signature import LazySignature
from .values import DICTS, NUMBERS, check_values


class ProviderChatModel(PortableChatModel):
    """A chat model of a vendor."""

    model_config = ConfigDict(populate_by_name=True, arbitrary_types_allowed=True, hide_input_in_errors=True)

    streaming: bool | None = None
    """Whether `invoke` requests a stream too. None: where a callback listens to its chunks; False: nothing ever streams."""
    model_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Request parameters that this class does not name."""

    _ls_provider: ClassVar[str]
    """The vendor's name in traces."""
    _variable_prefix: ClassVar[str] = ""
    """What the names of environment variables begin with; "": the vendor's name in traces."""

    _model_field: ClassVar[str] = "model"
    _wire_names: ClassVar[Mapping[str, str]] = {}
    """The fields that are sent, by the parameter that each becomes. None and an empty list are not sent."""
    _synonyms: ClassVar[Mapping[str, str]] = {}
    """The wire's names of parameters, by other names that a call or `model_kwargs` may use for them."""
    _client_keywords: ClassVar[frozenset[str]] = frozenset({"extra_headers", "extra_query", "extra_body", "timeout", "stream_usage"})
    """Keywords of a call that are no parameters of its request."""
    _identifying_fields: ClassVar[tuple[str, ...]] = ("output_version",)
    """The fields that a reply depends on, besides the parameters of the request."""
    _limit_params: ClassVar[tuple[str, ...]] = ("max_tokens",)
    """The wire's names of the limit of tokens; the first that is set counts."""
    _stop_param: ClassVar[str] = "stop"
    """The wire's name of the stop sequences."""
    _sampling_object: ClassVar[str] = ""
    """The object of a request that holds both; "": its top."""
    _v0_content: ClassVar[str] = "text"
    """What the content of messages is under `output_version="v0"`."""

    _refused: ClassVar[Mapping[str, str]] = {"client": OWN_CLIENTS, "async_client": OWN_CLIENTS}
    """Constructor arguments that other packages know and this class refuses, with the reason. None and False ask for nothing."""
    _checks: ClassVar[Mapping[str, Check | None]] = {}
    """Checks of fields, besides those that every vendor's class has; None in place of one of these: not here."""
    _connection: ClassVar[frozenset[str]] = frozenset()
    """The fields that say how to reach the server, besides those that every class has. A call cannot change them."""
    _numbers: ClassVar[Mapping[str, Check]] = NUMBERS
    """Checks of numbers that a request sends, given to the constructor or to a call."""
    _dicts: ClassVar[Mapping[str, str]] = DICTS
    """Parameters of a call that are dicts, each with what may have been meant instead."""

    _not_per_call: ClassVar[frozenset[str]] = PortableChatModel._not_per_call | {
        *("max_retries", "retry", "include_response_headers", "model_kwargs", "stream_chunk_timeout"),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        known = self._argument_names()
        unasked = {name for name in self._refused.keys() - known if kwargs.get(name) in (None, False)}
        given = {name: value for name, value in kwargs.items() if name not in unasked}
        try:
            super().__init__(*args, **given)
        except ValidationError as error:
            raise ConfigurationError(
                f"{type(self).__name__}: {describe_validation_error(error, type(self))}"
            ) from None  # it holds all arguments
        own = {name: check for name, check in self._numbers.items() if name in type(self).model_fields}
        for name, check in {**own, **self._field_checks(), **self._checks}.items():
            if check is None:
                continue
            names = names_of(type(self), name)
            check(next((spelt for spelt in names if spelt in given), f"{names[0]} from the environment"), getattr(self, name))
        check_values({name: getattr(self, name, None) for name in ("model_kwargs", "options")}, self._numbers, {})

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        type.__setattr__(cls, "__signature__", LazySignature(cls.__dict__["__signature__"]))

    @classmethod
    def _field_checks(cls) -> dict[str, Check]:
        """Checks of the fields that say the same in every vendor's class."""
        checks = {
            "max_retries": check_count,
            cls._model_field: check_model,
            cls._key_field: check_key,
            cls._url_field: check_address,
            cls._proxy_field: check_proxy,
            cls._timeout_field: check_timeout,
            "stream_chunk_timeout": check_seconds,
            cls._headers_field: check_headers,
            "http_client": check_client,
            "http_async_client": check_async_client,
        }
        return {name: check for name, check in checks.items() if name in cls.model_fields}

    @model_validator(mode="after")
    def _set_autotools_version(self) -> Self:
        self._add_version(DISTRIBUTION, __version__)
        return self

    @model_validator(mode="after")
    def _complete_and_check(self) -> Self:
        self._complete_from_environment()
        self._check_parameters()
        return self

    def _complete_from_environment(self) -> None:
        key = self._variable("key")
        if key and getattr(self, self._key_field) is None:
            setattr(self, self._key_field, SecretStr(key))
        setattr(self, self._url_field, getattr(self, self._url_field) or self._variable("base_url"))

    def _check_parameters(self) -> None:
        if self._proxy and self._proxy_field and (getattr(self, "http_client", None) or getattr(self, "http_async_client", None)):
            name = self._proxy_field
            raise ValueError(f"{name} cannot reach a client that you made: give that client the proxy, and no {name}")
        if self.output_version not in (None, "v0", "v1"):
            raise ValueError(f"output_version={self.output_version!r}: there are 'v0' ({self._v0_content}) and 'v1' (standard blocks)")

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        return ((name, shown(name or "", value)) for name, value in super().__repr_args__())

    def _public(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        return public_params({name: shown(name, value) for name, value in kwargs.items()})

    @model_serializer(mode="wrap")
    def _to_public(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        """Without secrets; in Python's form headers and query parameters have their values, as `SecretStr` has."""
        keeps = not info.mode_is_json()
        return {name: value if keeps and is_sent_beside(name, value) else shown(name, value) for name, value in handler(self).items()}

    def _get_invocation_params(self, stop: list[str] | None = None, **kwargs: Any) -> dict[str, Any]:
        """What traces tell of a request: no secret of a call's own headers and query, nor of the servers that it names.

        Core asks this before anything else of every request.
        """
        self._check_call({"stop": stop, **kwargs})
        return public_params(super()._get_invocation_params(stop, **{name: shown(name, value) for name, value in kwargs.items()}))

    def _get_llm_string(self, stop: list[str] | None = None, **kwargs: Any) -> str:
        """What the LLM cache keeps replies apart by: by such a secret too, which it holds as a digest."""
        return super()._get_llm_string(stop, **{name: shown(name, value, digest) for name, value in kwargs.items()})

    @classmethod
    def _unknown(cls, name: str) -> str:
        if name in cls._refused:
            return f"{cls.__name__} has no argument {name!r}: {cls._refused[name]}"
        return unknown_argument(cls, name, cls._argument_names(), "others that the vendor knows go into model_kwargs={...}")

    def _check_call(self, kwargs: Mapping[str, Any]) -> None:
        """Refuse keywords of a call that cannot work."""
        check_call(type(self), self._connection, kwargs)
        check_values(kwargs, self._numbers, self._dicts)

    if not TYPE_CHECKING:  # the type that core gives it is private to core

        def bind(self, **kwargs: Any) -> Any:
            """The model with these keywords in every request.

            Raises:
                ConfigurationError: One of them is for the constructor or cannot work, or two different `tools` have one name.
            """
            self._check_call(kwargs)
            return super().bind(**kwargs)

    # ------------------------------------------------------------------------------------------ what a vendor gives

    @abstractmethod
    def _request_params(self, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
        """All parameters of one request, in the wire's names. Keywords of the call go before the constructor's; None means: do not send.

        Args:
            stop: The call's stop sequences.
            kwargs: The call's keywords, `tools` and `tool_choice` among them; names that are not known go to the wire as they are.
            stream: Whether a stream is asked for.
        """

    def _known_profile(self, model: str) -> Mapping[str, Any]:
        """What is known of a model; empty if nothing is."""
        return {}

    # ------------------------------------------------------------------------------------------ models by name

    def known_models(self) -> list[str]:
        """The names of the vendor's models that have a profile here; empty where none has."""
        return []

    def served_models(self) -> list[str]:
        """The names of the models that the server lists; one request, which is not retried.

        Raises:
            ConfigurationError: There is no key.
            ProviderError: The server refuses, has no list, or cannot be reached.
        """
        with map_errors(self._error_table()):
            return self._served_models()

    @abstractmethod
    def _served_models(self) -> list[str]:
        """The names of the models that the server lists."""

    # ------------------------------------------------------------------------------------------ parameters of requests

    def _request_defaults(self) -> dict[str, Any]:
        """The parameters that the constructor sets, in the wire's names."""
        return {"model": self._wire_model, **self._field_params(), **self._renamed(self.model_kwargs)}

    def _field_params(self) -> dict[str, Any]:
        """The parameters that fields set, in the wire's names."""
        fields = {wire: getattr(self, name) for name, wire in self._wire_names.items()}
        return {name: value for name, value in fields.items() if value is not None and value != []}

    def _call_keywords(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that the keywords of a call set, in the wire's names."""
        return self._renamed({name: value for name, value in kwargs.items() if name not in self._client_keywords})

    def _renamed(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters under the wire's names."""
        return {self._synonyms.get(name, name): value for name, value in params.items()}

    def _extra_body(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The keys of a request's JSON that win over everything else: the constructor's and the call's."""
        return {**(getattr(self, "extra_body", None) or {}), **(kwargs.get("extra_body") or {})}

    # ------------------------------------------------------------------------------------------ settings, by what they mean

    @property
    def _wire_model(self) -> str:
        """What requests call the model."""
        return str(getattr(self, self._model_field))

    @property
    def _endpoint(self) -> str | None:
        """Where requests go, as far as it decides whose state a history holds; None: the vendor itself."""
        url: str | None = getattr(self, self._url_field)
        return url

    def _client_arguments(self) -> dict[str, Any]:
        """What every SDK's client is made from."""
        return {
            "api_key": getattr(self, self._key_field),
            "base_url": getattr(self, self._url_field),
            "headers": tuple(self._headers.items()),
            "proxy": self._proxy,
            "http_client": getattr(self, "http_client", None),
            "http_async_client": getattr(self, "http_async_client", None),
        }

    def _profile_for(self, model: str) -> Mapping[str, Any]:
        """The profile of the model that is requested, which a call may name."""
        return (self.profile or {}) if model == self._wire_model else self._known_profile(model)

    # ------------------------------------------------------------------------------------------ what LangChain asks

    @classmethod
    def get_lc_namespace(cls) -> list[str]:
        """Where the class is to be found, as traces name it."""
        return ["langchain_autotools"]

    @property
    def _identifying_params(self) -> dict[str, Any]:
        """What a reply depends on: traces show it, and the LLM cache keeps replies apart by it."""
        about = {"base_url": public_url(self._endpoint), **{name: getattr(self, name) for name in self._identifying_fields}}
        return self._public({**self._request_defaults(), **{name: value for name, value in about.items() if value}})

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = self._request_params(stop, kwargs, stream=False)
        model = self._traced_name(str(params["model"]))
        if self._sampling_object:
            params = params.get(self._sampling_object) or {}
        temperature, stops = params.get("temperature"), params.get(self._stop_param)
        limit = next((params[name] for name in self._limit_params if params.get(name)), None)
        traced = LangSmithParams(ls_provider=self._ls_provider, ls_model_name=model, ls_model_type="chat")
        traced["ls_temperature"] = temperature if isinstance(temperature, int | float) else None
        if isinstance(limit, int):
            traced["ls_max_tokens"] = limit
        if stops:
            traced["ls_stop"] = [stops] if isinstance(stops, str) else list(stops)
        return traced

    def _traced_name(self, model: str) -> str:
        """How traces name a model."""
        return model

    def _resolve_model_profile(self) -> ModelProfile | None:
        return cast("ModelProfile", self._known_profile(self._wire_model)) or None

    @property
    def lc_secrets(self) -> dict[str, str]:
        """The fields that are secrets, by the environment variable to find each in."""
        prefix, environment = self._variable_prefix or self._ls_provider.upper(), self._environment
        headers = header_variables(prefix, self._headers_field, self._headers)
        proxy = {self._proxy_field: [*environment.proxy, f"{prefix}_PROXY"][0]} if self._proxy_field and has_password(self._proxy) else {}
        return {self._key_field: [*environment.key, f"{prefix}_API_KEY"][0], **headers, **proxy}

    # ------------------------------------------------------------------------------------------ tokens

    def get_num_tokens(self, text: str) -> int:
        """The tokens of a text: by `custom_get_token_ids` if it was given, else estimated. Never asks the network."""
        return len(self.custom_get_token_ids(text)) if self.custom_get_token_ids else estimate(text)

    def get_num_tokens_from_messages(self, messages: Sequence[BaseMessage], tools: Sequence[Any] | None = None, **kwargs: Any) -> int:
        """The tokens of a request with these messages and tools, estimated offline (see `get_num_tokens`).

        Args:
            messages: The messages of the request.
            tools: The tools that it declares, in any form that `bind_tools` takes.
            **kwargs: Accepted for LangChain's sake; they count for nothing.
        """
        return messages_tokens(messages, [self.format_tool(tool) for tool in tools or ()], self.get_num_tokens)
