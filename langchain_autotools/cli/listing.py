"""The command `models`: lists the models of a provider by their names for `-m`."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_autotools.errors import ConfigurationError
from langchain_autotools.providers.registry import PROVIDERS, Provider

from .display import Display
from .models import key_set, named_provider, open_model, provider_with_key


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
    default = None if name else provider_with_key()
    if not name and default is None:
        display.note("No provider's key is set. Each provider's default model; `models PROVIDER` lists more:")
        for provider_name, provider in PROVIDERS.items():
            display.offered(_full_name(provider_name, provider.default_model or ""))
        return
    provider_name, provider = named_provider(default[0] if default else str(name))
    if provider_name == "azure_openai":
        raise ConfigurationError("Azure lists no deployments: name yours, as in -m azure_openai:DEPLOYMENT")
    if default:
        display.note(f"provider: {provider_name} ({default[1]})")
    for model in _listed(provider_name, provider, settings, display):
        display.offered(_full_name(provider_name, model))


def _full_name(provider_name: str, model: str) -> str:
    return f"{provider_name}:{model}" if model else provider_name


def _listed(provider_name: str, provider: Provider, settings: Mapping[str, Any], display: Display) -> Sequence[str]:
    model = open_model(provider_name, [], settings)
    chat_model: Any = model.model
    if provider_name == "local":
        display.note(f"The default is {model.name}. Any GGUF file: -m local:FILE.gguf, or LANGCHAIN_AUTOTOOLS_MODEL_PATH.")
        return [""]
    if not provider.key_variables or key_set(provider) or {"api_key", "base_url"} & settings.keys():
        return [str(name) for name in chat_model.served_models()]
    known: Sequence[str] = chat_model.known_models()
    display.note(f"{' or '.join(provider.key_variables)} is not set: these are the models that are known here.")
    return known or [provider.default_model or ""]
