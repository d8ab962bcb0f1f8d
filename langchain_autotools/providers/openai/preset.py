"""Vendors that speak a dialect of chat completions, each a preset of data with at most three functions.

A chat model of a preset is `ChatOpenAI` with the vendor's address, environment, names and dialect. Nothing of OpenAI's
environment (key, organization, address, proxy) is read for it or sent to it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Self, cast
from urllib.parse import urlsplit

from langchain_core.language_models import ModelProfile
from langchain_core.messages import BaseMessage
from pydantic import Field, model_validator

from ...errors import ConfigurationError
from ...turn.model import names_of
from .._base.chat_model import Profiles, read_profiles
from .._base.parameters import Environment, log_parallel
from .._base.structured_output import METHODS
from .._transport.exchange import Exchange
from .chat_model import ChatOpenAI
from .dialect import Dialect
from .parameters import WIRE_NAMES, ClientSettings

_PARALLEL = "parallel_tool_calls"
_RESPONSES = "use_responses_api use_previous_response_id reasoning include truncation context_management"
_OPENAIS = {
    **dict.fromkeys(
        (*_RESPONSES.split(), *sorted(ChatOpenAI._responses_names)),
        "it belongs to OpenAI's Responses API; for a server that has it, use ChatOpenAI(base_url=...)",
    ),
    **dict.fromkeys(("openai_organization", "organization"), "it means something to OpenAI only"),
}


_HELP = """

    ```python
    model = {name}(model="{example}", tools=[get_temperature])
    for chunk in model.stream("How warm is it in Paris?"):
        print(chunk.text, end="")
    ```

    The arguments that matter first, all optional but `model`:

    - `model`: the model's name.
    - `tools`: functions or tools that the model runs itself. Without them it is
      a plain LangChain chat model.
    - `api_key`: the key, as text; else `{variable}` of the environment.
    - `base_url`: address of another server.
    - `temperature`, `max_tokens`, `stop`: of each reply.
    - `timeout`, `max_retries`: seconds without a byte; further attempts.
    - `max_turns`, `max_tool_calls`, `deadline`, `on_limit`: what a run may use.
    - `requires_approval`, `approve`: which calls a human decides about.

    Ask it with `invoke`, `stream`, `batch`, `ainvoke`, `astream`; see also
    `with_structured_output`, `bind_tools`, `resume` and `new_messages`.

    Constructor names are those of langchain-{provider}'s `{name}`.

    Raises:
        ConfigurationError: An argument is unknown or cannot work; or, at the first request, there is no key.
    """
"""The docstring of a vendor's class, behind its first line."""


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A vendor's dialect, parameters and profiles.

    Attributes:
        example: The model in the example that the class's `help` begins with; "": the class's docstring is all of it.
        dialect: Differences of its wire from OpenAI's; its `provider` is the vendor's name in replies.
        base_url: The default base URL. Its path is also that of a given address that has none.
        environment: The environment variables of its key, address and proxy.
        ls_provider: Its name in traces; default: that of the dialect.
        llm_type: The kind of model in traces; default: `<provider>-chat`.
        arguments: Constructor names of LangChain's partner package, by `ChatOpenAI`'s name for the same.
        fields: Fields that the class adds, by the request parameter that each becomes.
        parameters: Further request parameters of the vendor, which no field sets.
        renamed: The vendor's names of request parameters, by OpenAI's.
        dropped_params: Request parameters that the vendor does not know, and that may be left out without changing what was asked.
        unsupported: Arguments and request parameters that it cannot honour, with what to do instead.
        methods: The methods of structured output that it has; the first is the default.
        stream_usage: Whether a stream's token counts must be asked for (and may be).
        profiles: The profiles of its models, by name, or the path of their table, in the form of `openai/profiles.csv`.
        request: Changes the parameters of a request, already in the vendor's names.
        adapt_messages: Changes a history into one that the vendor takes; it must do the same every time.
    """

    dialect: Dialect
    base_url: str
    example: str = ""
    environment: Environment = field(default_factory=Environment)
    ls_provider: str = ""
    llm_type: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    parameters: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)
    dropped_params: frozenset[str] = frozenset()
    unsupported: Mapping[str, str] = field(default_factory=dict)
    methods: Sequence[str] = METHODS
    stream_usage: bool = True
    profiles: Path | Profiles = field(default_factory=dict)
    request: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    adapt_messages: Callable[[list[BaseMessage]], list[BaseMessage]] | None = None


class PresetChatModel(ChatOpenAI):
    """A chat model of a vendor that speaks chat completions (see `Preset`).

    ```python
    class ChatAcme(PresetChatModel):
        preset: ClassVar = Preset(
            dialect=Dialect(provider="acme"),
            base_url="https://api.acme.example/v1",
            environment=Environment(key=("ACME_API_KEY",)),
        )
    ```

    Raises:
        ConfigurationError: An argument is unknown or cannot work; or, at the first request, there is no key.
    """

    model_name: str = Field(alias="model")
    """The model's name."""

    preset: ClassVar[Preset]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Set the class attributes that the base classes read from the preset."""
        super().__init_subclass__(**kwargs)
        preset = cls.__dict__.get("preset")
        if not isinstance(preset, Preset):
            return
        if preset.example:
            known = {"name": cls.__name__, "example": preset.example, "provider": preset.dialect.provider}
            cls.__doc__ = f"{cls.__doc__}{_HELP.format(**known, variable=preset.environment.key[0])}"
        cls._dialect = preset.dialect
        cls._environment = preset.environment
        cls._profiles = preset.profiles
        cls._wire_names = {**WIRE_NAMES, **preset.fields}
        cls._ls_provider = preset.ls_provider or preset.dialect.provider
        foreign = {name: why for name, why in _OPENAIS.items() if name not in preset.fields}
        cls._call_names = (ChatOpenAI._call_names - ChatOpenAI._responses_names) | preset.parameters
        cls._refused = {**ChatOpenAI._refused, **foreign, **preset.unsupported}
        cls._connection = ChatOpenAI._connection | {name for name, own in preset.arguments.items() if own in ChatOpenAI._connection}
        for name, own in preset.arguments.items():
            setattr(cls, name, property(attrgetter(own), doc=f"The same as `{own}`."))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        own = {name: names_of(type(self), field)[0] for name, field in self.preset.arguments.items()}
        super().__init__(*args, **{own.get(name, name): value for name, value in kwargs.items()})

    @classmethod
    def _argument_names(cls) -> frozenset[str]:
        return (super()._argument_names() | cls.preset.arguments.keys()) - cls._refused.keys()

    @classmethod
    def _keyword_names(cls) -> frozenset[str]:
        preset = cls.preset  # what it cannot honour is refused with the reason, where it is not None
        return super()._keyword_names().union(ChatOpenAI._keyword_names(), preset.renamed.values(), preset.unsupported)

    @model_validator(mode="after")
    def _complete_from_preset(self) -> Self:
        address, mark, query = (self.openai_api_base or self.preset.base_url).partition("?")
        if not urlsplit(address).path.strip("/"):
            address = address.rstrip("/") + urlsplit(self.preset.base_url).path
        self.openai_api_base = f"{address}{mark}{query}"
        if self.stream_usage is None:
            self.stream_usage = self.preset.stream_usage
        return self

    @model_validator(mode="after")
    def _choose_api(self) -> Self:
        self.use_responses_api = False
        return self

    # ------------------------------------------------------------------------------------------ requests

    def _request_params(self, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
        preset, asked = self.preset, super()._request_params(stop, kwargs, stream=stream)
        insisted = self._extra_body(kwargs).keys()
        params: dict[str, Any] = {}
        for name, value in asked.items():
            if name in preset.unsupported and name not in insisted and value not in (None, False):
                raise ConfigurationError(f"{type(self).__name__} cannot send {name!r}: {preset.unsupported[name]}")
            if name in insisted or name not in preset.dropped_params:
                params[name if name in insisted else preset.renamed.get(name, name)] = value
        return preset.request(params) if preset.request else params

    def _exchange(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        preset = self.preset
        if _PARALLEL in preset.dropped_params:
            log_parallel(kwargs, type(self).__name__)
        return super()._exchange(preset.adapt_messages(messages) if preset.adapt_messages else messages, stop, kwargs, stream=stream)

    def _client_settings(self) -> ClientSettings:
        return replace(super()._client_settings(), foreign=True)

    # ------------------------------------------------------------------------------------------ tools and output

    def _default_method(self) -> str:
        return self.preset.methods[0]

    def _supported_method(self, method: str, schema: Any, strict: bool | None, kwargs: Mapping[str, Any]) -> str:
        if method == "json_mode" and method not in self.preset.methods:
            raise ConfigurationError(f"{type(self).__name__} has no method {method!r} of structured output, only {[*self.preset.methods]}")
        return super()._supported_method(method, schema, strict, kwargs)

    def _disabled(self, name: str, value: Any) -> bool:
        return name in self.preset.dropped_params or super()._disabled(name, value)

    def _holds_to_schemas(self, schema: Any) -> bool:
        return "json_schema" in self.preset.methods and super()._holds_to_schemas(schema)

    # ------------------------------------------------------------------------------------------ what LangChain asks

    @property
    def _llm_type(self) -> str:
        return self.preset.llm_type or f"{self._dialect.provider}-chat"

    def _resolve_model_profile(self) -> ModelProfile | None:
        profiles, name = read_profiles(self._profiles), self.model_name
        return cast("ModelProfile", dict(profiles.get(name) or profiles.get(name.lower(), {}))) or None
