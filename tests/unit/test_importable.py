"""Names that users import from below the root stay where they were, wherever the code behind them lies."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import langchain_autotools
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


def test_type_checkers_see_the_names_of_the_root_where_they_are_loaded_from() -> None:
    """The static block of the root has every name of `__all__`, exported as itself, from the module that `_HOMES` names."""
    tree = ast.parse(Path(str(langchain_autotools.__file__)).read_text(encoding="utf-8"))
    (block,) = [one for one in tree.body if isinstance(one, ast.If) and isinstance(one.test, ast.Name) and one.test.id == "TYPE_CHECKING"]
    imports = [one for one in block.body if isinstance(one, ast.ImportFrom)]
    seen = [(one.module, name.name) for one in imports for name in one.names]
    assert len(imports) == len(block.body) and all(name.asname == name.name for one in imports for name in one.names)
    assert sorted(seen) == sorted((home, name) for home, names in langchain_autotools._HOMES.items() for name in names)
    assert sorted([*(name for _, name in seen), "__version__"]) == sorted(langchain_autotools.__all__)
    assert langchain_autotools.__all__ == list(dict.fromkeys(langchain_autotools.__all__))
