"""The base class of every vendor's chat model: what all of them take, estimate, copy, pickle.

A pickle that would leave anything else out in silence is refused: keys apart, a copy that is made here must be as the model is.
"""

import csv
import json
import os
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from copy import deepcopy
from functools import cache, lru_cache
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar, cast

from langchain_core.language_models import ModelProfile
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import (
    ConfigDict,
    SecretStr,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from ..._version import DISTRIBUTION, __version__
from ...addresses import public_url, query_of
from ...errors import ConfigurationError
from ...history.expansion import expand
from ...messages.calls import calls_of
from ...messages.run_messages import carried_messages
from ...pickling import differing, findable, left_out, refuse
from ...run.failover import FALLBACK_FORMATS
from ...run.settings import RUN_KEYWORDS
from ...turn.model import argument_names, names_of
from .._encode.sources import ODD, block_text, document_text, extra, is_media, search_result_text, source_of, unwrapped
from .._transport import secrets
from .._transport.timeouts import check_timeout, is_duration
from . import parameters
from .structured_output import StructuredChatModel


class PortableChatModel(StructuredChatModel, defer_build=True):
    """A vendor's chat model that can be copied and pickled without secrets."""

    _environment: ClassVar[parameters.Environment] = parameters.Environment()
    """The environment variables of missing constructor arguments."""
    _key_field: ClassVar[str] = "api_key"
    _url_field: ClassVar[str] = "base_url"
    _proxy_field: ClassVar[str] = ""
    _headers_field: ClassVar[str] = "default_headers"
    """The names of the class's fields for the key, the base URL, the proxy and the headers; "": the class has no such field."""
    _end_of_url: ClassVar[re.Pattern[str]] = re.compile(r"[?#].*\Z", re.DOTALL)
    """The end of a base URL that is not part of the address of requests."""

    _uncopied: ClassVar[tuple[str, ...]] = ("http_client", "http_async_client")
    """Fields whose objects a copy shares because they hold locks and connections."""

    def _variable(self, what: str) -> str | None:
        """Return the environment's key, base URL, organization, proxy or headers: the first that is not empty; None if there is none."""
        names: tuple[str, ...] = getattr(self._environment, what)
        return next((value for name in names if (value := os.environ.get(name))), None)

    @property
    def _proxy(self) -> str | None:
        """Return the URL of the proxy."""
        return cast("str | None", getattr(self, self._proxy_field) if self._proxy_field else None)

    @property
    def _headers(self) -> Mapping[str, str]:
        """Return the headers of every request."""
        return getattr(self, self._headers_field) or {}

    @property
    def _address_query(self) -> dict[str, Any]:
        """The query parameters of the base URL, which go with every request."""
        url: str | None = getattr(self, self._url_field)
        return query_of(url) if url and "?" in url else {}

    def _secrets(self) -> list[str]:
        key = getattr(self, self._key_field)
        text = key.get_secret_value() if isinstance(key, SecretStr) else key
        url: str | None = getattr(self, self._url_field)
        read_by_sdk = secrets.header_secrets(secrets.headers_in_lines(self._variable("sdk_headers")))
        return [*([text] if text and isinstance(text, str) else []), *read_by_sdk, *secrets.secret_values(self._headers, self._proxy, url)]

    @property
    def _keys(self) -> tuple[str, ...]:
        """The fields that every process reads from its own environment."""
        return (self._key_field,)

    def _portable_fields(self) -> dict[str, Any]:
        """Return replacements for the fields that hold secrets, clients and connections, for a pickle."""
        hidden = {**dict.fromkeys(self._uncopied), self._key_field: findable(getattr(self, self._key_field))}
        return {**hidden, self._proxy_field: None if secrets.has_password(self._proxy) else self._proxy} if self._proxy_field else hidden

    def __getstate__(self) -> dict[Any, Any]:
        """Return the state without secrets, clients and connections: an unpickled model takes its keys from the environment.

        Raises:
            PicklingError: Something else is secret, or cannot be pickled, and the environment does not say it.
        """
        state = self._without_secrets(super().__getstate__())
        problem = self._what_is_lost(state)
        if problem is not None:
            state = {}  # it may hold secrets of declared tools: a traceback that shows local variables shows none
            refuse(problem)
        return state

    def _without_secrets(self, state: dict[Any, Any]) -> dict[Any, Any]:
        fields = {name: secrets.portable(name, value) for name, value in state["__dict__"].items()}
        return {**state, "__dict__": {**fields, **self._portable_fields()}}

    def _what_is_lost(self, state: dict[Any, Any]) -> str | None:
        """Describe the settings, apart from keys, that a copy made here would lack, and the remedy; None if none is lost."""
        fields = state["__dict__"]
        other = type(self).__new__(type(self))
        other.__setstate__({**state, "__dict__": {**fields}, "__pydantic_fields_set__": set(state["__pydantic_fields_set__"])})
        own = {name: value for name, value in self.__dict__.items() if name in fields and name not in ("tools", "approval_key")}
        changed = {name: value for name, value in own.items() if fields[name] != value and (name not in self._keys or callable(value))}
        lost = [one for name, value in changed.items() for one in differing(name, value, getattr(other, name))]
        declared = [tool for tool in self.tools if isinstance(tool, Mapping)] if isinstance(self.tools, Sequence) else []
        remote = secrets.secret_names({"tools": declared, "mcp_servers": getattr(self, "mcp_servers", None)})
        return left_out(type(self).__name__, [*lost, *remote], self._advice(lost))

    def _advice(self, lost: Sequence[str]) -> str | None:
        """Return where a copy finds the settings that a pickle does not hold."""
        places = {self._url_field: self._environment.base_url, self._proxy_field: self._environment.proxy}
        if not lost or not all(places.get(name) for name in lost):
            return None
        found = " and ".join(f"{name} from {' or '.join(places[name])}" for name in lost)
        return f"no pickle holds a secret, and a copy takes {found}: set that in both processes"

    def _secret_names(self, kwargs: Mapping[str, Any]) -> list[str]:
        return secrets.secret_names(kwargs)

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        key = self._variable("key")
        if getattr(self, self._key_field) is None:
            setattr(self, self._key_field, SecretStr(key) if key else None)
        setattr(self, self._url_field, _with_user(getattr(self, self._url_field), self._variable("base_url")))
        if self._proxy_field:
            setattr(self, self._proxy_field, self._proxy or self._variable("proxy"))

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return a deep copy that shares the HTTP clients."""
        held = [getattr(self, name, None) for name in self._uncopied]
        return super().__deepcopy__({**(memo or {}), **{id(value): value for value in held if value is not None}})


def _with_user(url: str | None, known: str | None) -> str | None:
    """Restore an address without its user, password or key from the environment's value for the same address.

    Args:
        url: The address.
        known: The address that the environment says.
    """
    is_secret = secrets.has_password(known) or secrets.portable("url", known) != known
    return known if url and known and is_secret and public_url(known) == public_url(url) else url


# ---------------------------------------------------------------------------------------------- signature
# The signature of a chat model's constructor: complete for programs, short and ordered by importance for people.


Profiles = Mapping[str, Mapping[str, Any]]
"""Profiles by the names of models."""

_FIRST: Final = ("model", "tools")
_SHOWN: Final = 48  # characters of names that `help` shows


class ConstructorSignature(Signature):
    """A signature with all parameters whose text, the heading of `help`, shows only the first ones."""

    def __str__(self) -> str:
        shown = ""
        for name in self.parameters:
            if len(shown) + len(name) > _SHOWN:
                break
            shown += f"{name}, "
        return f"(*, {shown}...)"

    def format(self, **options: Any) -> str:
        """Return the short text; `help` of newer Python versions calls this method."""
        return str(self)


class LazySignature:
    """A class's signature, derived from pydantic's on first access.

    Args:
        made: Pydantic's signature attribute of the class, a descriptor.
    """

    def __init__(self, made: Any) -> None:
        self._made = made

    def __get__(self, instance: object, owner: type[Any]) -> Signature:
        whole: Signature = self._made.__get__(instance, owner)
        return _ordered(owner, whole)


def _ordered(model: type[Any], signature: Signature) -> Signature:
    """Return the parameters under their public names: model and tools, then the class's own, then the inherited ones."""
    known = {name: field for field in model.model_fields for name in names_of(model, field)}
    own = [one for one in signature.parameters.values() if one.kind is Parameter.KEYWORD_ONLY and one.name in known]
    named = [(known[one.name], one.replace(name=names_of(model, known[one.name])[0])) for one in own]
    bases = [getattr(base, "model_fields", {}) for base in model.__mro__]

    def place(pair: tuple[str, Parameter]) -> tuple[int, int]:
        field, parameter = pair
        first = _FIRST.index(parameter.name) if parameter.name in _FIRST else len(_FIRST)
        return first, sum(field in base for base in bases)

    return ConstructorSignature([parameter for _, parameter in sorted(named, key=place)])


# ---------------------------------------------------------------------------------------------- tokens
# Estimates of token counts, without a tokenizer and without the network.
#
# A token is taken for four bytes of UTF-8: close for English text, and usable for scripts whose characters take three bytes and about one
# token each. A picture counts as one of ordinary size. A caller who needs the exact number of a text gives `custom_get_token_ids`.


_BYTES_PER_TOKEN = 4
_PER_MESSAGE = 3
_PER_REPLY = 3
_PER_CALL = 3
_PICTURE = 765  # four tiles of 170 and a base of 85: OpenAI's count for 1024 x 1024 pixels
_SMALL_PICTURE = 85
_DOCUMENT = 1_000
_TEXTS = ("text", "reasoning", "thinking", "refusal")


def _messages_tokens(messages: Iterable[BaseMessage], tools: Sequence[Mapping[str, Any]], count: Callable[[str], int]) -> int:
    """Return the estimated number of tokens of a request.

    Args:
        messages: The messages; of a run message those that it carries are counted.
        tools: The declared tools, in the wire's form.
        count: Counts the tokens of a text.
    """
    plain = [part for message in messages for part in carried_messages(message) or [message]]
    declared = sum(count(json.dumps(tool, ensure_ascii=False, default=str)) for tool in tools)
    return declared + sum(_message_tokens(message, count) for message in plain) + _PER_REPLY


def _message_tokens(message: BaseMessage, count: Callable[[str], int]) -> int:
    tokens = _PER_MESSAGE + (count(message.name) if message.name else 0)
    blocks = [message.content] if isinstance(message.content, str) else message.content
    tokens += sum(_block_tokens(block, count) for block in blocks)
    if isinstance(message, AIMessage):
        tokens += sum(_PER_CALL + count(call.name) + count(call.arguments) for call in calls_of(message))
    return tokens + (_PER_CALL if isinstance(message, ToolMessage) else 0)


def _block_tokens(block: Any, count: Callable[[str], int]) -> int:
    if isinstance(block, str):
        return count(block)
    block = unwrapped(block)
    kind = str(block.get("type", ""))
    if kind == "tool_result":
        content = block.get("content") or ""
        return sum(_block_tokens(one, count) for one in ([content] if isinstance(content, str) else content))
    if is_media(block):
        return _media_tokens(block, count)
    if kind == "search_result":
        return count(search_result_text(block))
    if any(isinstance(block.get(key), str) for key in _TEXTS):
        return sum(count(block[key]) for key in _TEXTS if isinstance(block.get(key), str))
    if (text := block_text(block)) is not None:
        return count(text)
    return 0 if "tool" in kind or "call" in kind else _DOCUMENT


def _media_tokens(block: Any, count: Callable[[str], int]) -> int:
    """Return the estimated tokens of a picture or a file: of a text file those of its text, also of one inside a document of blocks."""
    nested = block.get("source")
    inner = nested.get("content") if isinstance(nested, Mapping) else None
    if isinstance(inner, list):
        return sum(_block_tokens(one, count) for one in inner)
    try:
        source = source_of(block)
        if source.kind == "text" and (source.text is not None or source.data is not None):
            return count(document_text(block, source))
    except ODD:
        return _DOCUMENT
    if source.kind != "image":
        return _DOCUMENT
    image = block.get("image_url")
    detail = extra(block, "detail") or (image.get("detail") if isinstance(image, Mapping) else None)
    return _SMALL_PICTURE if detail == "low" else _PICTURE


# ---------------------------------------------------------------------------------------------- chat model
# The base class of every vendor's chat model: constructor arguments, secrets, trace metadata, copies.
#
# What differs between vendors is in class attributes (the names of fields, the environment, checks) and in a few methods.


_DICTS: Mapping[str, str] = dict.fromkeys(("extra_headers", "extra_query", "extra_body"), "")
"""Parameters that are dicts, each with the likely intended name for an error message."""


# Checks of parameter values that no vendor accepts, in the constructor and at a call.
# What a vendor alone can judge (a temperature of 3, a limit above the model's) goes to the vendor.
_NUMBERS: Mapping[str, parameters.Check] = dict.fromkeys(
    ("temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "max_output_tokens", "max_tokens_to_sample", "top_logprobs"),
    parameters.check_count,
)
"""Parameters that must not be negative."""


_PACKAGE = __name__.partition(".")[0]
_REQUEST_METHODS = ("raw_stream", "araw_stream", "raw_invoke", "araw_invoke", "_stream", "_astream", "_generate", "_agenerate")


class ProviderChatModel(PortableChatModel, defer_build=True):
    """A chat model of one vendor."""

    model_config = ConfigDict(populate_by_name=True, arbitrary_types_allowed=True, hide_input_in_errors=True)

    streaming: bool | None = None
    """Whether `invoke` streams its request. None: only if a callback handler listens to chunks; False: never stream."""

    _ls_provider: ClassVar[str]
    _profiles: ClassVar[Path | Profiles] = {}
    """The vendor's name in traces."""
    _variable_prefix: ClassVar[str] = ""
    """The prefix of the vendor's environment variables; "": the vendor's name in traces."""

    _model_field: ClassVar[str] = "model"
    _wire_names: ClassVar[Mapping[str, str]] = {}
    """The fields that are sent, each with its parameter on the wire. None and an empty list are not sent."""
    _synonyms: ClassVar[Mapping[str, str]] = {}
    """Alternative names of parameters that a call or `model_kwargs` may use, each with the wire's name."""
    _of_calls_alone: ClassVar[frozenset[str]] = frozenset(
        {
            *(FALLBACK_FORMATS, "ls_structured_output_format", "stop", "stream", "strict", "structured_output_format"),
            *("tool_choice", "tools"),
        }
    )
    """Keywords of a call that no constructor takes, or not under that name."""
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

    _refused: ClassVar[Mapping[str, str]] = parameters.REFUSED
    """Constructor arguments of other packages that this class rejects, with the reason. None and False are accepted."""
    _checks: ClassVar[Mapping[str, parameters.Check | None]] = {}
    """Field checks in addition to those of every vendor's class; None removes one of these."""
    _connection: ClassVar[frozenset[str]] = frozenset()
    """The fields for the connection, in addition to those of every class. A call cannot change them."""
    _numbers: ClassVar[Mapping[str, parameters.Check]] = _NUMBERS
    """Checks of numeric request parameters, for the constructor and for a call."""
    _dicts: ClassVar[Mapping[str, str]] = _DICTS
    """Parameters of a call that are dicts, each with the likely intended name for an error message."""

    _not_per_call: ClassVar[frozenset[str]] = PortableChatModel._not_per_call | {
        *("max_retries", "retry", "include_response_headers", "model_kwargs", "stream_chunk_timeout"),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        known = self._argument_names()
        unasked = {name for name in self._refused.keys() - known if kwargs.get(name) in (None, False)}
        given = {name: value for name, value in kwargs.items() if name not in unasked}
        if of_calls := (self._call_names & given.keys()) - known - self._refused.keys():
            given = parameters.with_call_keywords(type(self).__name__, given, of_calls)
        if isinstance(held := given.get("model_kwargs"), Mapping):
            parameters.check_values(held, self._numbers, self._dicts)
        try:
            super().__init__(*args, **given)
        except ValidationError as error:
            raise ConfigurationError(
                f"{type(self).__name__}: {parameters.describe_validation_error(error, type(self), given)}"
            ) from None  # it holds all arguments
        for field, check in _field_checks(type(self)).items():
            if (value := getattr(self, field)) is not None:
                names = names_of(type(self), field)
                check(next((spelt for spelt in names if spelt in given), f"{names[0]} from the environment"), value)
        if options := getattr(self, "options", None):
            parameters.check_values({"options": options}, self._numbers, {})
        if self.model_kwargs:
            self._check_standing(self._standing_keywords)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if (made := cls.__dict__.get("__signature__")) is not None:  # which a class that is only a base has not
            type.__setattr__(cls, "__signature__", LazySignature(made))

    @model_validator(mode="after")
    def _complete_and_check(self) -> Self:
        self._add_version(DISTRIBUTION, __version__)
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
        return ((name, secrets.shown(name or "", value)) for name, value in super().__repr_args__())

    def _public(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        return secrets.public_params({name: secrets.shown(name, value) for name, value in kwargs.items()})

    @model_serializer(mode="wrap")
    def _to_public(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        """Serialize without secrets; in Python mode headers and query parameters keep their values, as `SecretStr` does."""
        keeps = not info.mode_is_json()
        return {
            name: value if keeps and secrets.is_sent_beside(name, value) else secrets.shown(name, value)
            for name, value in handler(self).items()
        }

    def _get_invocation_params(self, stop: list[str] | None = None, **kwargs: Any) -> dict[str, Any]:
        """Return the request parameters for traces, without the secrets in headers, query parameters and server entries of a call.

        Core asks this before anything else of every request.
        """
        self._check_call({"stop": stop, **kwargs})
        return secrets.public_params(
            super()._get_invocation_params(stop, **{name: secrets.shown(name, value) for name, value in kwargs.items()})
        )

    def _get_llm_string(self, stop: list[str] | None = None, **kwargs: Any) -> str:
        """Return the key of the LLM cache. It covers secret headers and parameters too, as a digest."""
        told = {**self._standing_keywords, **kwargs}
        plain = {name: convert_to_openai_tool(value) if isinstance(value, type) else value for name, value in told.items()}
        return super()._get_llm_string(stop, **{name: secrets.shown(name, value, secrets.digest) for name, value in plain.items()})

    @classmethod
    def _keyword_names(cls) -> frozenset[str]:
        """Return the names of keywords of a call: the class's arguments, the vendor's parameters under all their names, and ours."""
        named = (cls._wire_names, cls._wire_names.values(), cls._synonyms, cls._synonyms.values())
        return cls._argument_names().union(cls._call_names, cls._client_keywords, cls._of_calls_alone, RUN_KEYWORDS, *named)

    def _check_keywords(self, names: Set[str]) -> None:
        """Raise if a call has a keyword that neither this class, its `model_kwargs` nor the vendor's request type has.

        Raises:
            ConfigurationError: It has one.
        """
        known = _known_keywords(type(self))
        unknown = () if known is None else names - known - self.model_kwargs.keys()
        if unknown := {name for name in unknown if not name.endswith("_api_key")}:  # `_check_call` refuses these
            raise ConfigurationError(parameters.unknown_keyword(type(self), min(unknown), known or (), self._refused))

    @classmethod
    def _unknown(cls, name: str) -> str:
        if name in cls._refused:
            return f"{cls.__name__} has no argument {name!r}: {cls._refused[name]}"
        return parameters.unknown_name(cls, name, cls._argument_names() | cls._call_names)

    def _check_standing(self, keywords: dict[str, Any]) -> None:
        """Raise if keywords of every call cannot work."""
        self._check_call(keywords)
        try:
            self._request_params(None, keywords, stream=False)
        except ODD as error:
            about = str(error).partition("\n")[0]
            raise ConfigurationError(f"{type(self).__name__}: {', '.join(keywords)} cannot be sent ({about})") from error

    def _check_call(self, kwargs: Mapping[str, Any]) -> None:
        """Raise if keywords of a call cannot work: one that sets the connection would leak a key to the server and to traces.

        Raises:
            ConfigurationError: One of them does, or has a value that cannot work.
        """
        given = [name for name in parameters.connection_names(type(self), self._connection) & kwargs.keys() if kwargs[name] is not None]
        given += [name for name in kwargs if name.endswith("_api_key") and kwargs[name] is not None]
        if given:
            where = f", {type(self).__name__}({given[0]}=...)" if given[0] in argument_names(type(self)) else ""
            raise ConfigurationError(
                f"{given[0]} is for the constructor{where}: a call cannot change how the server is reached. "
                "Make a model for it, which costs no connection of its own; headers of one call go in extra_headers={...}"
            )
        parameters.check_values(kwargs, self._numbers, self._dicts)

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
        return sorted(read_profiles(self._profiles))

    def served_models(self) -> list[str]:
        """Return the names of the models that the server lists. Makes one request, without retries.

        Raises:
            ConfigurationError: There is no key.
            ProviderError: The server refuses, has no list, or cannot be reached.
        """
        try:
            return self._served_models()
        except Exception as error:
            self._raise_translated(error)

    @abstractmethod
    def _served_models(self) -> list[str]:
        """Return the names of the models that the server lists."""

    # ------------------------------------------------------------------------------------------ parameters of requests

    def _request_defaults(self) -> dict[str, Any]:
        """Return the parameters that the constructor sets, by their wire names."""
        return {"model": self._wire_model, **self._field_params(), **(self._renamed(self._further_params) if self.model_kwargs else {})}

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
        return self._address

    @property
    def _address(self) -> str | None:
        """The base URL of requests without its end; None: the vendor's own."""
        url: str | None = getattr(self, self._url_field)
        return url and self._end_of_url.sub("", url, count=1)

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
        standing = self._renamed(self._standing_keywords) if self.model_kwargs else {}
        return self._public({**self._request_defaults(), **standing, **{name: value for name, value in about.items() if value}})

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
        secret = [name for name in self._headers if secrets.is_secret_header(name)]
        headers = {f"{self._headers_field}.{name}": re.sub(r"\W", "_", f"{prefix}_HEADER_{name}").upper() for name in secret}
        proxy = (
            {self._proxy_field: [*environment.proxy, f"{prefix}_PROXY"][0]}
            if self._proxy_field and secrets.has_password(self._proxy)
            else {}
        )
        return {self._key_field: [*environment.key, f"{prefix}_API_KEY"][0], **headers, **proxy}

    # ------------------------------------------------------------------------------------------ tokens

    def get_num_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, by `custom_get_token_ids` if given, else estimated. Makes no request."""
        if self.custom_get_token_ids:
            return len(self.custom_get_token_ids(text))
        return -(-len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN)

    def get_num_tokens_from_messages(self, messages: Sequence[BaseMessage], tools: Sequence[Any] | None = None, **kwargs: Any) -> int:
        """Return the estimated number of tokens of a request with these messages and tools, offline (see `get_num_tokens`).

        Args:
            messages: The messages of the request. A run message counts as those that it carries.
            tools: The tools that it declares, in any form that `bind_tools` takes.
            **kwargs: Accepted for LangChain's sake; they count for nothing.
        """
        return _messages_tokens(expand(messages), [self.format_tool(tool) for tool in tools or ()], self.get_num_tokens)

    def _estimated_tokens(self, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]]) -> int:
        return _messages_tokens(messages, tools, self.get_num_tokens)


@lru_cache(maxsize=256)
def _field_checks(model: type[ProviderChatModel]) -> dict[str, parameters.Check]:
    """Return the checks of a class's fields, each for a value that is not None."""
    shared = {
        **model._numbers,
        "max_retries": parameters.check_count,
        model._model_field: _check_model,
        model._key_field: parameters.check_key,
        model._url_field: parameters.check_address,
        model._proxy_field: parameters.check_proxy,
        model._timeout_field: check_timeout,
        "stream_chunk_timeout": _check_seconds,
        model._headers_field: parameters.check_headers,
        "http_client": parameters.check_client,
        "http_async_client": parameters.check_async_client,
    }
    checks = {**{name: check for name, check in shared.items() if name in model.model_fields}, **model._checks}
    return {name: check for name, check in checks.items() if check is not None}


@lru_cache(maxsize=256)
def _known_keywords(model: type[ProviderChatModel]) -> frozenset[str] | None:
    """Return the keywords of a class's calls, with those that `_check_call` refuses.

    None of a user's class that makes its requests itself, and so takes what it likes.
    """
    makers = (getattr(model, name) for name in _REQUEST_METHODS)
    own = any(getattr(maker, "__module__", "").partition(".")[0] != _PACKAGE for maker in makers)
    if own:
        return None
    return model._keyword_names().union(parameters.connection_names(model, model._connection)) - parameters.OF_CONFIG


def _check_seconds(name: str, value: Any) -> None:
    """Raise if a duration is not a positive number of seconds."""
    if not is_duration(value):
        raise ConfigurationError(f"{name} must be a number of seconds above 0, or None, not {value!r}")


def _check_model(name: str, value: Any) -> None:
    """Raise if the name of the model is empty."""
    if not value.strip():
        raise ConfigurationError(f"{name} is empty: say which model")


# ---------------------------------------------------------------------------------------------- tables


_T = TypeVar("_T")


def by_name(table: Mapping[str, _T]) -> dict[str, _T]:
    """Return a table with one name per key, from a table whose keys hold several names separated by spaces."""
    return {name: row for names, row in table.items() for name in names.split()}


# ---------------------------------------------------------------------------------------------- profiles
#
# What is known of vendors' models, for `model.profile`: a table beside each vendor's modules, read when a model is first made.
#
# The numbers are those that models.dev (MIT) published in November 2026. Of any other model nothing is claimed, and `profile={...}` says
# what the user knows. A table is a CSV file with a row a model. Its `traits` are what the profile says with True, or behind a hyphen with
# False: names of the profile's own, or of the groups below.

_GROUPS = {
    "images": ("image_inputs", "image_url_inputs", "attachment", "image_tool_message"),
    "pdfs": ("pdf_inputs", "pdf_tool_message"),
    "sound_and_video": ("audio_inputs", "video_inputs"),
}
_SILENT = (*(name for names in _GROUPS.values() for name in names), "image_outputs", "audio_outputs", "video_outputs", "reasoning_output")
_OF_ALL = {
    **dict.fromkeys(_SILENT, False),
    **dict.fromkeys(("text_inputs", "text_outputs", "tool_calling", "tool_choice", "structured_output", "temperature"), True),
}
_ABOUT = ("name", "release_date", "last_updated", "status")


def read_profiles(given: Path | Profiles) -> Profiles:
    """Return the profiles of a table, or those that are given. Those who hand one on copy it."""
    return _read(given) if isinstance(given, Path) else given


@cache
def _read(table: Path) -> Profiles:
    with table.open(encoding="utf-8", newline="") as file:
        return {row["model"]: _profile(row) for row in csv.DictReader(file)}


def _profile(row: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {name: int(row[name]) for name in ("max_input_tokens", "max_output_tokens")}
    found |= _OF_ALL | {name: row[name] for name in _ABOUT if row[name]} | ({"open_weights": False} if row["name"] else {})
    for trait in row["traits"].split():
        name = trait.removeprefix("-")
        found |= dict.fromkeys(_GROUPS.get(name, (name,)), name == trait)
    if efforts := row["reasoning_effort_levels"].split():
        found["reasoning_effort_levels"] = efforts
    if row["reasoning_effort_default"]:
        found["reasoning_effort_default"] = row["reasoning_effort_default"]
    return found


def profile_in(table: Path, model: str, version: re.Pattern[str]) -> dict[str, Any]:
    """Return the profile of a model; empty if there is none.

    Args:
        table: The vendor's table, which has lower-case names.
        model: The model's name.
        version: The end of a name that says a version: such a name is taken for that without it where it is not in the table.
    """
    profiles, name = _read(table), model.lower()
    return deepcopy(dict(profiles.get(name) or profiles.get(version.sub("", name)) or {}))
