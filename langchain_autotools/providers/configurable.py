"""Chat models configured per call through `configurable`: `init_chat_model(configurable_fields=...)`.

Names and meanings are those of LangChain's `init_chat_model`. What is declared on it (`bind_tools`, `with_structured_output`,
`with_config`) is kept and done again on each model that a call makes.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, Literal, overload

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config

from ..errors import ConfigurationError
from ..executor.tools import dump_tools, restore_tools
from ..pickling import check_portable, left_out, refuse
from ..run.binding import Batched
from ._base.structured_output import Model
from ._transport.secrets import is_key, secret_names

Fields = Literal["any"] | Sequence[str]
"""The arguments that a call may set."""

_Step = tuple[str, tuple[Any, ...], Mapping[str, Any]]
# What graphs keep in `configurable` for themselves, beside names that begin with two underscores.
_OF_GRAPHS = frozenset({"thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map"})


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
        self, make: Callable[..., BaseChatModel], defaults: Mapping[str, Any], fields: Fields, prefix: str = "", steps: Sequence[_Step] = ()
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
        return getattr(self._model(None), name)

    # ------------------------------------------------------------------------------------------ the model of one call

    def _asked(self, config: RunnableConfig | None) -> dict[str, Any]:
        """Return the arguments that a configuration sets."""
        configurable = (config or {}).get("configurable") or {}
        named = {name.removeprefix(self._prefix): value for name, value in configurable.items() if name.startswith(self._prefix)}
        if self._fields == "any":
            return {name: value for name, value in named.items() if not (name.startswith("__") or name in _OF_GRAPHS)}
        return {name: value for name, value in named.items() if name in self._fields}

    def _model(self, config: RunnableConfig | None) -> Any:
        """Return the model for a call, with the declared tools and options.

        Raises:
            ConfigurationError: Nothing says which model, or an argument cannot work.
        """
        arguments = {**self._defaults, **self._asked(ensure_config(config))}
        if not arguments.get("model"):
            raise ConfigurationError(f"which model? Say it in config={{'configurable': {{{self._prefix + 'model'!r}: ...}}}}")
        model: Any = self._make(**arguments)
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
        """Return the runnable with this configuration; arguments that it sets become defaults."""
        whole: Any = {**(config or {}), **kwargs}
        chosen = self._asked(whole)
        others = {name: value for name, value in (whole.get("configurable") or {}).items() if name.removeprefix(self._prefix) not in chosen}
        rest = {**whole, "configurable": others}
        return self._with(("with_config", (), {"config": rest}), {**self._defaults, **chosen})

    # ------------------------------------------------------------------------------------------ calls

    def invoke(self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Invoke the model that the configuration selects.

        Args:
            input: Messages, a prompt or a text.
            config: LangChain's configuration; its `configurable` says the arguments of the model.
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
        message: AIMessage = self._model(config).resume(history, decisions, config, **kwargs)
        return message

    async def aresume(
        self, history: LanguageModelInput, decisions: Any = True, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AIMessage:
        """Like `resume`, asynchronously."""
        message: AIMessage = await self._model(config).aresume(history, decisions, config, **kwargs)
        return message


def _with_tools(change: Callable[[Any], Any], steps: Sequence[_Step]) -> tuple[_Step, ...]:
    """Return the steps with their declared tools replaced."""
    return tuple((name, tuple(map(change, args)) if name == "bind_tools" else args, kwargs) for name, args, kwargs in steps)
