"""Chat models by name, for `init_chat_model` or the command line.

Names and inferred prefixes are those of LangChain's `init_chat_model`.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from difflib import get_close_matches
from functools import partial
from typing import Any, Literal, overload

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import CONFIG_KEYS, ensure_config

from ..errors import ConfigurationError, DecisionProblem
from ..executor.tools import dump_tools, restore_tools
from ..mixin import ToolRunningModel
from ..pickling import check_portable, left_out, refuse
from ..run.binding import Batched
from ._base.structured_output import Model
from ._transport.secrets import is_key, secret_names
from .known import LANGCHAIN_CLASSES, PROVIDERS, LangChainClass, Provider

_ALL: Mapping[str, Provider | LangChainClass] = {**PROVIDERS, **LANGCHAIN_CLASSES}
_NAMES = {name: name for name in _ALL} | {other: name for name, provider in PROVIDERS.items() for other in provider.also}
_EXAMPLE = "anthropic:claude-sonnet-5"


@overload
def init_chat_model(
    model: str, *, model_provider: str | None = None, configurable_fields: None = None, config_prefix: str | None = None, **kwargs: Any
) -> ToolRunningModel: ...


@overload
def init_chat_model(
    model: None = None,
    *,
    model_provider: str | None = None,
    configurable_fields: "Fields | None" = None,
    config_prefix: str | None = None,
    **kwargs: Any,
) -> "ConfigurableChatModel": ...


@overload
def init_chat_model(
    model: str, *, model_provider: str | None = None, configurable_fields: "Fields", config_prefix: str | None = None, **kwargs: Any
) -> "ConfigurableChatModel": ...


def init_chat_model(
    model: str | None = None,
    *,
    model_provider: str | None = None,
    configurable_fields: "Fields | None" = None,
    config_prefix: str | None = None,
    **kwargs: Any,
) -> "ToolRunningModel | ConfigurableChatModel":
    """Return a chat model by name, like LangChain's `init_chat_model`; `tools=[...]` makes it run its tools.

    Args:
        model: `provider:model`, or the model alone where its name tells the provider (`claude...`, `gpt-...`, `grok...`).
            For the local model `local`, or `local:` and a GGUF file. None: each call's configuration names it. The names are those of
            LangChain's function; where this package has no class of its own, the one of LangChain's package is behind `with_tools`.
        model_provider: The provider, in place of the part before the colon.
        configurable_fields: Arguments that a call may set in `config={"configurable": {...}}`: their names, or "any" (also addresses
            and keys: only where configurations can be trusted). None: `model` and `model_provider` where no model is named here.
        config_prefix: The prefix of their names there: `{config_prefix}_temperature`.
        **kwargs: The class's constructor arguments, and settings of runs.

    Returns:
        The model; with configurable arguments a runnable that makes it for each call.

    Raises:
        ConfigurationError: The provider is unknown or cannot be told; the text names the nearest. Or its package is not installed; the
            text names it. Or an argument cannot work.
    """
    if not model and not configurable_fields:
        configurable_fields = ("model", "model_provider")
    if not configurable_fields:
        if config_prefix:
            raise ConfigurationError(f"config_prefix={config_prefix!r} has no effect: say which arguments with configurable_fields")
        return _make_model(model, model_provider=model_provider, **kwargs)
    if isinstance(configurable_fields, str) and configurable_fields != "any":
        raise ConfigurationError(f"configurable_fields must be a list of arguments' names or 'any', not {configurable_fields!r}")

    given = {"model": model, "model_provider": model_provider}
    defaults = {**{name: value for name, value in given.items() if value}, **kwargs}
    return ConfigurableChatModel(_make_model, defaults, configurable_fields, config_prefix or "")


def _make_model(model: Any, *, model_provider: str | None = None, **kwargs: Any) -> ToolRunningModel:
    """Return the model with this name."""
    if not isinstance(model, str):
        raise ConfigurationError(f"model must be a name such as {_EXAMPLE!r}, not {type(model).__name__}")
    _, provider, rest = model_named(model, model_provider)
    if not rest and provider.model_needed:
        raise ConfigurationError(f"model={model!r} names no model: say which, as in {_EXAMPLE!r}")
    chat_model: ToolRunningModel = provider.make(rest, kwargs)
    return chat_model


def _provider_named(name: str) -> tuple[str, Provider | LangChainClass]:
    """Return the provider with this name, and its main name; case and hyphens make no difference.

    Raises:
        ConfigurationError: There is none; the text names the nearest.
    """
    main = _NAMES.get(name.lower().replace("-", "_"))
    if main is None:
        near = get_close_matches(name.lower(), _NAMES, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        others = f"and with packages of LangChain's {', '.join(LANGCHAIN_CLASSES)}"
        raise ConfigurationError(f"no such provider: {name!r}; {hint}known are {', '.join(PROVIDERS)}, {others} (as in {_EXAMPLE})")
    return main, _ALL[main]


def model_named(model: str, model_provider: str | None = None) -> tuple[str, Provider | LangChainClass, str]:
    """Resolve a model's name: its provider's main name, the provider, and the model's own name ("" if only the provider is named).

    Args:
        model: `provider:model`, or the model alone where its name tells the provider.
        model_provider: The provider, in place of the part before the colon.

    Raises:
        ConfigurationError: The provider is unknown or cannot be told.
    """
    if model_provider:
        return *_provider_named(model_provider), model
    before, colon, after = model.partition(":")
    if before.lower().replace("-", "_") in _NAMES:
        return *_provider_named(before), after
    inferred = next((one for one in _ALL.items() if model.lower().startswith(one[1].prefixes or ("\0",))), None)
    if inferred is not None:
        return *inferred, model
    if colon:
        return *_provider_named(before), after
    raise ConfigurationError(f"the provider of {model!r} cannot be told: write provider:model, as in {_EXAMPLE!r}")


# ---------------------------------------------------------------------------------------------- configurable
#
# Chat models configured per call through `configurable`: `init_chat_model(configurable_fields=...)`.
#
# Names and meanings are those of LangChain's `init_chat_model`. What is declared on it (`bind_tools`, `with_structured_output`,
# `with_config`) is kept and done again on each model that a call makes.

Fields = Literal["any"] | Sequence[str]
"""The arguments that a call may set."""

_Step = tuple[str, tuple[Any, ...], Mapping[str, Any]]
# What graphs keep in `configurable` for themselves, beside names that begin with two underscores.
_OF_GRAPHS = frozenset({"thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map"})


def _is_of_graphs(name: str) -> bool:
    return name.startswith("__") or name in _OF_GRAPHS


class ConfigurableChatModel(Batched, Runnable[LanguageModelInput, Any]):
    """A chat model that is created for each call, from its defaults and the call's configuration.

    Other attributes are those of the model that the defaults make.

    Args:
        make: Makes the model, of a constructor's arguments, `model` and `model_provider` among them.
        defaults: Arguments that hold where a call says nothing.
        fields: The arguments that a call may set: names, or "any" of them. Where configurations come from strangers, "any" lets them
            set addresses and keys too.
        prefix: The prefix of the names in `configurable` (`{prefix}_temperature`).
        steps: The changes to apply to each created model, in order.
    """

    def __init__(
        self, make: Callable[..., Any], defaults: Mapping[str, Any], fields: Fields, prefix: str = "", steps: Sequence[_Step] = ()
    ) -> None:
        self._make = make
        self._defaults = dict(defaults)
        self._fields = fields if fields == "any" else tuple(fields)
        self._prefix = f"{prefix}_" if prefix and not prefix.endswith("_") else prefix
        self._steps = tuple(steps)

    def __repr__(self) -> str:
        return f"ConfigurableChatModel(fields={self._fields!r}, prefix={self._prefix!r})"

    def __copy__(self) -> "ConfigurableChatModel":
        return ConfigurableChatModel(self._make, self._defaults, self._fields, self._prefix, self._steps)

    def __deepcopy__(self, memo: dict[int, Any]) -> "ConfigurableChatModel":
        return ConfigurableChatModel(self._make, deepcopy(self._defaults, memo), self._fields, self._prefix, deepcopy(self._steps, memo))

    def __getstate__(self) -> dict[str, Any]:
        owner = type(self).__name__
        refuse(left_out(owner, self._secret_names()))
        defaults = {name: value for name, value in self._defaults.items() if not is_key(name, value)}
        check_portable(owner, {name: value for name, value in defaults.items() if name != "tools"})
        if "tools" in defaults:
            defaults["tools"] = dump_tools(owner, defaults["tools"])
        steps = _with_tools(partial(dump_tools, owner), self._steps)
        check_portable(owner, {"what is declared on it": steps})
        return {**self.__dict__, "_defaults": defaults, "_steps": steps}

    def _secret_names(self) -> list[str]:
        given = [{name: value for name, value in self._defaults.items() if not is_key(name, value)}, *(one[2] for one in self._steps)]
        return [name for one in given for name in secret_names(one)]

    def __setstate__(self, state: dict[str, Any]) -> None:
        defaults, steps = state["_defaults"], state["_steps"]
        tools = {"tools": restore_tools(defaults["tools"])} if "tools" in defaults else {}
        self.__dict__.update(state, _defaults={**defaults, **tools}, _steps=_with_tools(restore_tools, steps))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "model" not in self._defaults:
            raise AttributeError(f"{name} is known once a call's configuration has named the model")
        return getattr(self._made(self._defaults), name)

    # ------------------------------------------------------------------------------------------ the model of one call

    def _argument_names(self, configurable: Mapping[str, Any]) -> dict[str, str]:
        """Return the names in a `configurable` that set an argument, each with the argument's name."""
        named = {name: name.removeprefix(self._prefix) for name in configurable if name.startswith(self._prefix)}
        if self._fields == "any":
            return {name: argument for name, argument in named.items() if not _is_of_graphs(argument)}
        return {name: argument for name, argument in named.items() if argument in self._fields}

    def _flat_keys(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is beside `configurable` in a configuration that was given, and which LangChain moves into it.

        Raises:
            ConfigurationError: A key sets no argument.
        """
        flat = {name: value for name, value in config.items() if name not in CONFIG_KEYS and value is not None}
        unknown = sorted(name for name in flat.keys() - self._argument_names(flat).keys() if not _is_of_graphs(name))
        if unknown:
            raise ConfigurationError(self._unknown_key(unknown[0]))
        return flat

    def _unknown_key(self, name: str) -> str:
        if self._fields == "any":
            return f"the configuration has an unknown key {name!r}: arguments of the model begin with {self._prefix!r}"
        known = [f"{self._prefix}{argument}" for argument in self._fields]
        near = get_close_matches(name, known, n=1) or [one for one in known if one == f"{self._prefix}{name}"]
        hint = f"did you mean {near[0]!r}? " if near else ""
        return f"the configuration has an unknown key {name!r}: {hint}configurable_fields allows {', '.join(known)}"

    def _model(self, config: RunnableConfig | None) -> ToolRunningModel:
        """Return the model for a call, with the declared tools and options.

        Raises:
            ConfigurationError: Nothing says which model, or an argument cannot work.
        """
        self._flat_keys(config or {})
        configurable = ensure_config(config).get("configurable") or {}
        chosen = {argument: configurable[name] for name, argument in self._argument_names(configurable).items()}
        return self._made({**self._defaults, **chosen})

    def _made(self, arguments: Mapping[str, Any]) -> ToolRunningModel:
        if not arguments.get("model"):
            raise ConfigurationError(f"which model? Say it in config={{'configurable': {{{self._prefix + 'model'!r}: ...}}}}")
        model: ToolRunningModel = self._make(**arguments)
        for name, args, kwargs in self._steps:
            model = getattr(model, name)(*args, **kwargs)
        return model

    def _with(self, step: _Step, defaults: Mapping[str, Any] | None = None) -> "ConfigurableChatModel":
        return ConfigurableChatModel(self._make, defaults or self._defaults, self._fields, self._prefix, (*self._steps, step))

    # ------------------------------------------------------------------------------------------ declaring

    def bind(self, **kwargs: Any) -> "ConfigurableChatModel":
        """Return the runnable with these keywords, run settings included, for every request of the created models."""
        return self._with(("bind", (), kwargs))

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """Declare tools, without executing them, on the model that a call creates."""
        return self._with(("bind_tools", (tools,), kwargs))

    @overload
    def with_structured_output(
        self, schema: type[Model], *, include_raw: Literal[False] = False, **kwargs: Any
    ) -> Runnable[LanguageModelInput, Model]: ...
    @overload
    def with_structured_output(
        self, schema: Mapping[str, Any] | type[Mapping[str, Any]] | None = None, *, include_raw: Literal[False] = False, **kwargs: Any
    ) -> Runnable[LanguageModelInput, dict[str, Any]]: ...
    @overload
    def with_structured_output(
        self, schema: Any = None, *, include_raw: Literal[True], **kwargs: Any
    ) -> Runnable[LanguageModelInput, dict[str, Any]]: ...
    @overload
    def with_structured_output(
        self, schema: Any = None, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[LanguageModelInput, Any]: ...
    def with_structured_output(self, schema: Any = None, **kwargs: Any) -> Runnable[LanguageModelInput, Any]:
        """Return a runnable with structured output from the model that a call creates."""
        return self._with(("with_structured_output", (schema,), kwargs))

    def with_config(self, config: RunnableConfig | None = None, **kwargs: Any) -> "ConfigurableChatModel":
        """Return the runnable with this configuration; arguments that it sets become defaults.

        Args:
            config: LangChain's configuration. Arguments of the model are in its `configurable` or, as in LangChain, beside it:
                `{"model": "openai:gpt-5"}`.
            **kwargs: More of it, under the same names: `model="openai:gpt-5"`, `tags=[...]`.

        Raises:
            ConfigurationError: A key is none of LangChain's and none that a call may set.
        """
        whole: dict[str, Any] = {**(config or {}), **kwargs}  # and nothing of a run inside which this happens, as `ensure_config` adds
        configurable = {**(whole.get("configurable") or {}), **self._flat_keys(whole)}
        named = self._argument_names(configurable)
        chosen = {argument: configurable[name] for name, argument in named.items()}
        others = {name: value for name, value in configurable.items() if name not in named}
        rest = {name: value for name, value in whole.items() if name in CONFIG_KEYS and name != "configurable"}
        rest |= {"configurable": others} if others else {}  # an empty one would hide that of the run in which a call is made
        return self._with(("with_config", (), {"config": rest}), {**self._defaults, **chosen})

    def with_tools(self, tools: Any) -> "ConfigurableChatModel":
        """Return the runnable whose created models run these tools in place of their own."""
        return ConfigurableChatModel(self._make, {**self._defaults, "tools": tools}, self._fields, self._prefix, self._steps)

    # ------------------------------------------------------------------------------------------ calls

    def invoke(self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Invoke the model that the configuration selects.

        Args:
            input: Messages, a prompt or a text.
            config: LangChain's configuration; its `configurable`, or that of the run inside which the call is made, says the arguments
                of the model. They may be beside it, too (`{"model": "openai:gpt-5"}`).
            **kwargs: Keywords of the model's own `invoke`.

        Raises:
            ConfigurationError: Nothing says which model, or an argument cannot work.
        """
        return self._model(config).invoke(input, config, **kwargs)

    async def ainvoke(self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Like `invoke`, asynchronously."""
        return await self._model(config).ainvoke(input, config, **kwargs)

    def stream(self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """Stream from the model that the configuration selects.

        Args:
            input: Messages, a prompt or a text.
            config: LangChain's configuration; its `configurable` says the arguments of the model.
            **kwargs: Keywords of the model's own `stream`.

        Raises:
            ConfigurationError: Nothing says which model, or an argument cannot work.
        """
        yield from self._model(config).stream(input, config, **kwargs)

    async def astream(self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        """Like `stream`, asynchronously."""
        async for chunk in self._model(config).astream(input, config, **kwargs):
            yield chunk

    def stream_events(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Stream the events of the model that the configuration selects.

        Args:
            input: Messages, a prompt or a text.
            config: LangChain's configuration; its `configurable` says the arguments of the model.
            **kwargs: Keywords of the model's own `stream_events`, including `version`.

        Raises:
            ConfigurationError: Nothing says which model, or an argument cannot work.
        """
        return self._model(config).stream_events(input, config, **kwargs)

    def astream_events(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Like `stream_events`, asynchronously."""
        return self._model(config).astream_events(input, config, **kwargs)

    def resume(self, history: LanguageModelInput, decisions: Any = True, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        """Resume with the model that the configuration selects.

        Args:
            history: The messages, which end in unanswered calls.
            decisions: The decisions about the calls, in the form of the model's own `resume`.
            config: LangChain's configuration; its `configurable` says the arguments of the model.
            **kwargs: Keywords of the model's own `resume`.

        Raises:
            ConfigurationError: Nothing says which model, or an argument cannot work.
        """
        return self._model(config).resume(history, decisions, config, **kwargs)

    async def aresume(
        self, history: LanguageModelInput, decisions: Any = True, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AIMessage:
        """Like `resume`, asynchronously."""
        return await self._model(config).aresume(history, decisions, config, **kwargs)

    def check(
        self, history: LanguageModelInput, decisions: Any = True, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[DecisionProblem]:
        """Check decisions with the model that the configuration selects.

        Args:
            history: The messages, which end in unanswered calls.
            decisions: The decisions about the calls, in the form of the model's own `resume`.
            config: LangChain's configuration; its `configurable` says the arguments of the model.
            **kwargs: Keywords of the model's own `resume`.

        Raises:
            ConfigurationError: Nothing says which model, or an argument cannot work.
        """
        return self._model(config).check(history, decisions, **kwargs)


def _with_tools(change: Callable[[Any], Any], steps: Sequence[_Step]) -> tuple[_Step, ...]:
    """Return the steps with their declared tools replaced."""
    return tuple((name, tuple(map(change, args)) if name == "bind_tools" else args, kwargs) for name, args, kwargs in steps)
