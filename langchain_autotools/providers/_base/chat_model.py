"""The base class of every vendor's chat model: constructor arguments, secrets, trace metadata, copies.

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
from ...addresses import public_url
from ...errors import ConfigurationError, map_errors
from ...turn.constructor import names_of, unknown_argument
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


class ProviderChatModel(PortableChatModel, defer_build=True):
    """A chat model of one vendor."""

    model_config = ConfigDict(populate_by_name=True, arbitrary_types_allowed=True, hide_input_in_errors=True)

    streaming: bool | None = None
    """Whether `invoke` streams its request. None: only if a callback handler listens to chunks; False: never stream."""
    model_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Request parameters that this class does not name."""

    _ls_provider: ClassVar[str]
    """The vendor's name in traces."""
    _variable_prefix: ClassVar[str] = ""
    """The prefix of the vendor's environment variables; "": the vendor's name in traces."""

    _model_field: ClassVar[str] = "model"
    _wire_names: ClassVar[Mapping[str, str]] = {}
    """The fields that are sent, each with its parameter on the wire. None and an empty list are not sent."""
    _synonyms: ClassVar[Mapping[str, str]] = {}
    """Alternative names of parameters that a call or `model_kwargs` may use, each with the wire's name."""
    _client_keywords: ClassVar[frozenset[str]] = frozenset({"extra_headers", "extra_query", "extra_body", "timeout", "stream_usage"})
    """Keywords of a call that are not parameters of its request."""
    _identifying_fields: ClassVar[tuple[str, ...]] = ("output_version",)
    """The fields that a reply depends on, besides the parameters of the request."""
    _limit_params: ClassVar[tuple[str, ...]] = ("max_tokens",)
    """The wire's names of the token limit, in order of precedence."""
    _stop_param: ClassVar[str] = "stop"
    """The wire's name of the stop sequences."""
    _sampling_object: ClassVar[str] = ""
    """The key of the request object that holds the token limit and the stop sequences; "": the top level."""
    _v0_content: ClassVar[str] = "text"
    """The form of message content under `output_version="v0"`."""

    _refused: ClassVar[Mapping[str, str]] = {"client": OWN_CLIENTS, "async_client": OWN_CLIENTS}
    """Constructor arguments of other packages that this class rejects, with the reason. None and False are accepted."""
    _checks: ClassVar[Mapping[str, Check | None]] = {}
    """Field checks in addition to those of every vendor's class; None removes one of these."""
    _connection: ClassVar[frozenset[str]] = frozenset()
    """The fields for the connection, in addition to those of every class. A call cannot change them."""
    _numbers: ClassVar[Mapping[str, Check]] = NUMBERS
    """Checks of numeric request parameters, for the constructor and for a call."""
    _dicts: ClassVar[Mapping[str, str]] = DICTS
    """Parameters of a call that are dicts, each with the likely intended name for an error message."""

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
                f"{type(self).__name__}: {describe_validation_error(error, type(self), given)}"
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
        if (made := cls.__dict__.get("__signature__")) is not None:  # which a class that is only a base has not
            type.__setattr__(cls, "__signature__", LazySignature(made))

    @classmethod
    def _field_checks(cls) -> dict[str, Check]:
        """Return the field checks that all vendors' classes share."""
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
        """Serialize without secrets; in Python mode headers and query parameters keep their values, as `SecretStr` does."""
        keeps = not info.mode_is_json()
        return {name: value if keeps and is_sent_beside(name, value) else shown(name, value) for name, value in handler(self).items()}

    def _get_invocation_params(self, stop: list[str] | None = None, **kwargs: Any) -> dict[str, Any]:
        """Return the request parameters for traces, without the secrets in headers, query parameters and server entries of a call.

        Core asks this before anything else of every request.
        """
        self._check_call({"stop": stop, **kwargs})
        return public_params(super()._get_invocation_params(stop, **{name: shown(name, value) for name, value in kwargs.items()}))

    def _get_llm_string(self, stop: list[str] | None = None, **kwargs: Any) -> str:
        """Return the key of the LLM cache. It covers secret headers and parameters too, as a digest."""
        return super()._get_llm_string(stop, **{name: shown(name, value, digest) for name, value in kwargs.items()})

    @classmethod
    def _unknown(cls, name: str) -> str:
        if name in cls._refused:
            return f"{cls.__name__} has no argument {name!r}: {cls._refused[name]}"
        return unknown_argument(cls, name, cls._argument_names(), "others that the vendor knows go into model_kwargs={...}")

    def _check_call(self, kwargs: Mapping[str, Any]) -> None:
        """Raise if keywords of a call cannot work."""
        check_call(type(self), self._connection, kwargs)
        check_values(kwargs, self._numbers, self._dicts)

    if not TYPE_CHECKING:  # the type that core gives it is private to core

        def bind(self, **kwargs: Any) -> Any:
            """Return the model with these keywords bound to every request.

            Raises:
                ConfigurationError: One of them is for the constructor or cannot work, or two different `tools` have one name.
            """
            self._check_call(kwargs)
            return super().bind(**kwargs)

    # ------------------------------------------------------------------------------------------ what a vendor gives

    @abstractmethod
    def _request_params(self, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
        """Return all parameters of one request, by their wire names. Keywords of the call take precedence; None omits a parameter.

        Args:
            stop: The call's stop sequences.
            kwargs: The call's keywords, `tools` and `tool_choice` among them; names that are not known go to the wire as they are.
            stream: Whether a stream is asked for.
        """

    def _known_profile(self, model: str) -> Mapping[str, Any]:
        """Return the known profile of a model; empty if there is none."""
        return {}

    # ------------------------------------------------------------------------------------------ models by name

    def known_models(self) -> list[str]:
        """Return the names of the vendor's models that have a built-in profile; may be empty."""
        return []

    def served_models(self) -> list[str]:
        """Return the names of the models that the server lists. Makes one request, without retries.

        Raises:
            ConfigurationError: There is no key.
            ProviderError: The server refuses, has no list, or cannot be reached.
        """
        with map_errors(self._error_table()):
            return self._served_models()

    @abstractmethod
    def _served_models(self) -> list[str]:
        """Return the names of the models that the server lists."""

    # ------------------------------------------------------------------------------------------ parameters of requests

    def _request_defaults(self) -> dict[str, Any]:
        """Return the parameters that the constructor sets, by their wire names."""
        return {"model": self._wire_model, **self._field_params(), **self._renamed(self.model_kwargs)}

    def _field_params(self) -> dict[str, Any]:
        """Return the parameters that fields set, by their wire names."""
        fields = {wire: getattr(self, name) for name, wire in self._wire_names.items()}
        return {name: value for name, value in fields.items() if value is not None and value != []}

    def _call_keywords(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that the keywords of a call set, by their wire names."""
        return self._renamed({name: value for name, value in kwargs.items() if name not in self._client_keywords})

    def _renamed(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters by their wire names."""
        return {self._synonyms.get(name, name): value for name, value in params.items()}

    def _extra_body(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the extra keys of a request's JSON, from the constructor and the call. They override everything else."""
        return {**(getattr(self, "extra_body", None) or {}), **(kwargs.get("extra_body") or {})}

    # ------------------------------------------------------------------------------------------ settings, by what they mean

    @property
    def _wire_model(self) -> str:
        """The model's name in requests."""
        return str(getattr(self, self._model_field))

    @property
    def _endpoint(self) -> str | None:
        """The endpoint that the server's state in a history belongs to; None: the vendor's own."""
        url: str | None = getattr(self, self._url_field)
        return url

    def _client_arguments(self) -> dict[str, Any]:
        """Return the arguments that every SDK's client is made from."""
        return {
            "api_key": getattr(self, self._key_field),
            "base_url": getattr(self, self._url_field),
            "headers": tuple(self._headers.items()),
            "proxy": self._proxy,
            "http_client": getattr(self, "http_client", None),
            "http_async_client": getattr(self, "http_async_client", None),
        }

    def _profile_for(self, model: str) -> Mapping[str, Any]:
        """Return the profile of the requested model, which a call may name."""
        return (self.profile or {}) if model == self._wire_model else self._known_profile(model)

    # ------------------------------------------------------------------------------------------ what LangChain asks

    @classmethod
    def get_lc_namespace(cls) -> list[str]:
        """Return the namespace of the class for LangChain's traces and serialization."""
        return ["langchain_autotools"]

    @property
    def _identifying_params(self) -> dict[str, Any]:
        """The parameters that a reply depends on, for traces and for the key of the LLM cache."""
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
        """Return the name of a model in traces."""
        return model

    def _resolve_model_profile(self) -> ModelProfile | None:
        return cast("ModelProfile", self._known_profile(self._wire_model)) or None

    @property
    def lc_secrets(self) -> dict[str, str]:
        """The secret fields, each with its environment variable."""
        prefix, environment = self._variable_prefix or self._ls_provider.upper(), self._environment
        headers = header_variables(prefix, self._headers_field, self._headers)
        proxy = {self._proxy_field: [*environment.proxy, f"{prefix}_PROXY"][0]} if self._proxy_field and has_password(self._proxy) else {}
        return {self._key_field: [*environment.key, f"{prefix}_API_KEY"][0], **headers, **proxy}

    # ------------------------------------------------------------------------------------------ tokens

    def get_num_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, by `custom_get_token_ids` if given, else estimated. Makes no request."""
        return len(self.custom_get_token_ids(text)) if self.custom_get_token_ids else estimate(text)

    def get_num_tokens_from_messages(self, messages: Sequence[BaseMessage], tools: Sequence[Any] | None = None, **kwargs: Any) -> int:
        """Return the estimated number of tokens of a request with these messages and tools, offline (see `get_num_tokens`).

        Args:
            messages: The messages of the request.
            tools: The tools that it declares, in any form that `bind_tools` takes.
            **kwargs: Accepted for LangChain's sake; they count for nothing.
        """
        return messages_tokens(messages, [self.format_tool(tool) for tool in tools or ()], self.get_num_tokens)

    def _estimated_tokens(self, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]]) -> int:
        return messages_tokens(messages, tools, self.get_num_tokens)
