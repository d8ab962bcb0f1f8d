"""Names that users import from below the root stay where they were, wherever the code behind them lies."""

from importlib import import_module

import pytest

from langchain_autotools.providers.registry import PROVIDERS

IMPORTABLE = {
    "history": "Problem ProblemKind answer_dangling as_sent drop_orphans expand explain merge_runs order_results repair validate",
    "testing": "Piece Reply Request ScriptError ScriptedChatModel",
    "providers.openai": "AzureChatOpenAI ChatCompletionsMapper ChatOpenAI Dialect Environment IdShape Preset PresetChatModel",
    "providers.anthropic": "ChatAnthropic MessagesMapper",
    "providers.google": "ChatGoogleGenerativeAI GenerateContentMapper",
    "providers.ollama": "ChatOllama OllamaMapper",
    "providers.local": "ChatLocal",
    "providers.openai.errors": "ModelRefusalError OpenAIRateLimitError error_from_body error_table is_known_error is_secret_header",
    "providers.anthropic.errors": "AnthropicOverloadedError ModelRefusalError error_from_body error_table is_secret_header",
    "providers.google.errors": "GoogleDeadlineExceededError ModelRefusalError error_from_body error_table is_secret_header status_error",
    "providers.ollama.errors": "OllamaOverloadedError error_from_body error_of_response error_table message_of",
}


@pytest.mark.parametrize("module", IMPORTABLE)
def test_names_stay_importable_from_their_modules(module: str) -> None:
    """Each of the names is there."""
    found = import_module(f"langchain_autotools.{module}")
    assert [name for name in IMPORTABLE[module].split() if not hasattr(found, name)] == []


@pytest.mark.parametrize("vendor", [provider.module.rpartition(".")[2] for provider in PROVIDERS.values() if "presets." in provider.module])
def test_presets_stay_importable_as_vendors(vendor: str) -> None:
    """The class of a preset is importable from `providers.<vendor>`, and is the same one."""
    (provider,) = [one for one in PROVIDERS.values() if one.module == f"presets.{vendor}"]
    module = import_module(f"langchain_autotools.providers.{vendor}")
    assert getattr(module, provider.class_name) is provider.load()
    with pytest.raises(AttributeError):
        module.no_such_name  # noqa: B018
