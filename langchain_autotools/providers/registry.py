"""The package's chat models by name, for `init_chat_model` and the command line.

A new provider is a row here and a name in the root package. Names and inferred prefixes are those of LangChain's `init_chat_model`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

from ..errors import ConfigurationError

if TYPE_CHECKING:
    from ._base.chat_model import ProviderChatModel
    from .configurable import ConfigurableChatModel, Fields


@dataclass(frozen=True)
class Provider:
    """The definition of a provider's chat model.

    Attributes:
        module: The module of its class, below `providers`.
        class_name: Its class.
        key_variables: Environment variables, one of which holds the key.
        default_model: The model that the command line takes where only the provider is named.
        prefixes: Prefixes of model names that identify the provider.
        also: Other names of the provider.
        arguments: Constructor arguments that it always gets.
        settings: Constructor arguments that a conversation on the screen needs.
        model_argument: The constructor's argument for the model's name.
        model_needed: Whether a model must be named.
    """

    module: str
    class_name: str
    key_variables: Sequence[str] = ()
    default_model: str | None = None
    prefixes: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    model_argument: str = "model"
    model_needed: bool = True

    def load(self) -> type[Any]:
        """Return the chat model class."""
        chat_model: type[Any] = getattr(import_module(f".{self.module}", __package__), self.class_name)
        return chat_model


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        "openai",
        "ChatOpenAI",
        ("OPENAI_API_KEY",),
        "gpt-5",
        prefixes=("gpt-", "o1", "o3", "o4", "chatgpt", "text-davinci"),
        settings={"stream_usage": True},
    ),
    "anthropic": Provider("anthropic", "ChatAnthropic", ("ANTHROPIC_API_KEY",), "claude-sonnet-5", prefixes=("claude",)),
    "google_genai": Provider(
        "google",
        "ChatGoogleGenerativeAI",
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        "gemini-3.5-flash",
        prefixes=("gemini",),  # LangChain's init_chat_model still takes Vertex AI for these and says that it will not any more
        also=("google",),
    ),
    "google_vertexai": Provider("google", "ChatGoogleGenerativeAI", default_model="gemini-3.5-flash", arguments={"vertexai": True}),
    "azure_openai": Provider("openai", "AzureChatOpenAI", ("AZURE_OPENAI_API_KEY",), "gpt-5", also=("azure",)),
    "mistralai": Provider(
        "presets.mistralai", "ChatMistralAI", ("MISTRAL_API_KEY",), "mistral-small-latest", ("mistral", "mixtral"), also=("mistral",)
    ),
    "groq": Provider("presets.groq", "ChatGroq", ("GROQ_API_KEY",), "openai/gpt-oss-120b"),
    "deepseek": Provider("presets.deepseek", "ChatDeepSeek", ("DEEPSEEK_API_KEY",), "deepseek-v4-flash", ("deepseek",)),
    "xai": Provider("presets.xai", "ChatXAI", ("XAI_API_KEY",), "grok-4", ("grok",)),
    "cohere": Provider("presets.cohere", "ChatCohere", ("COHERE_API_KEY", "CO_API_KEY"), "command-a-03-2025", ("command",)),
    "fireworks": Provider(
        "presets.fireworks", "ChatFireworks", ("FIREWORKS_API_KEY",), "accounts/fireworks/models/gpt-oss-120b", ("accounts/fireworks",)
    ),
    "together": Provider("presets.together", "ChatTogether", ("TOGETHER_API_KEY",), "openai/gpt-oss-120b"),
    "openrouter": Provider("presets.openrouter", "ChatOpenRouter", ("OPENROUTER_API_KEY",), "openrouter/auto"),
    "ollama": Provider("ollama", "ChatOllama", default_model="qwen3"),
    "local": Provider("local", "ChatLocal", model_argument="model_path", model_needed=False),
}

_NAMES = {name: main for main, provider in PROVIDERS.items() for name in (main, *provider.also)}
_EXAMPLE = "anthropic:claude-sonnet-5"


@overload
def init_chat_model(
    model: str, *, model_provider: str | None = None, configurable_fields: None = None, config_prefix: str | None = None, **kwargs: Any
) -> "ProviderChatModel": ...


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
) -> "ProviderChatModel | ConfigurableChatModel":
    """Return a chat model by name, like LangChain's `init_chat_model`; `tools=[...]` makes it run its tools.

    Args:
        model: `provider:model`, or the model alone where its name tells the provider (`claude...`, `gpt-...`, `grok...`).
            For the local model `local`, or `local:` and a GGUF file. None: each call's configuration names it.
        model_provider: The provider, in place of the part before the colon.
        configurable_fields: Arguments that a call may set in `config={"configurable": {...}}`: their names, or "any" (also addresses
            and keys: only where configurations can be trusted). None: `model` and `model_provider` where no model is named here.
        config_prefix: The prefix of their names there: `{config_prefix}_temperature`.
        **kwargs: The class's constructor arguments.

    Returns:
        The model; with configurable arguments a runnable that makes it for each call.

    Raises:
        ConfigurationError: The provider is unknown or cannot be told; the text names the nearest. Or an argument cannot work.
    """
    if not model and not configurable_fields:
        configurable_fields = ("model", "model_provider")
    if not configurable_fields:
        if config_prefix:
            raise ConfigurationError(f"config_prefix={config_prefix!r} has no effect: say which arguments with configurable_fields")
        return _make_model(model, model_provider=model_provider, **kwargs)
    if isinstance(configurable_fields, str) and configurable_fields != "any":
        raise ConfigurationError(f"configurable_fields must be a list of arguments' names or 'any', not {configurable_fields!r}")
    from .configurable import ConfigurableChatModel  # here, because the command line has no use for it

    given = {"model": model, "model_provider": model_provider}
    defaults = {**{name: value for name, value in given.items() if value}, **kwargs}
    return ConfigurableChatModel(_make_model, defaults, configurable_fields, config_prefix or "")


def _make_model(model: Any, *, model_provider: str | None = None, **kwargs: Any) -> "ProviderChatModel":
    """Return the model with this name."""
    if not isinstance(model, str):
        raise ConfigurationError(f"model must be a name such as {_EXAMPLE!r}, not {type(model).__name__}")
    _, provider, rest = model_named(model, model_provider)
    if not rest and provider.model_needed:
        raise ConfigurationError(f"model={model!r} names no model: say which, as in {_EXAMPLE!r}")
    named = {provider.model_argument: rest} if rest else {}
    chat_model: ProviderChatModel = provider.load()(**{**provider.arguments, **named, **kwargs})
    return chat_model


def provider_named(name: str) -> tuple[str, Provider]:
    """Return the provider with this name, and its main name; case and hyphens make no difference.

    Raises:
        ConfigurationError: There is none; the text names the nearest.
    """
    main = _NAMES.get(name.lower().replace("-", "_"))
    if main is None:
        near = get_close_matches(name.lower(), _NAMES, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ConfigurationError(f"no such provider: {name!r}; {hint}known are {', '.join(PROVIDERS)} (as in {_EXAMPLE})")
    return main, PROVIDERS[main]


def model_named(model: str, model_provider: str | None = None) -> tuple[str, Provider, str]:
    """Resolve a model's name: its provider's main name, the provider, and the model's own name ("" if only the provider is named).

    Args:
        model: `provider:model`, or the model alone where its name tells the provider.
        model_provider: The provider, in place of the part before the colon.

    Raises:
        ConfigurationError: The provider is unknown or cannot be told.
    """
    if model_provider:
        return *provider_named(model_provider), model
    before, colon, after = model.partition(":")
    if before.lower().replace("-", "_") in _NAMES:
        return *provider_named(before), after
    inferred = next((one for one in PROVIDERS.items() if model.lower().startswith(one[1].prefixes or ("\0",))), None)
    if inferred is not None:
        return *inferred, model
    if colon:
        return *provider_named(before), after
    raise ConfigurationError(f"the provider of {model!r} cannot be told: write provider:model, as in {_EXAMPLE!r}")
