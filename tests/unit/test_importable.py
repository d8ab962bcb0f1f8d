"""Names that users import from below the root stay where they were, wherever the code behind them lies."""

from importlib import import_module

import pytest

import langchain_autotools
from langchain_autotools.providers.known import PROVIDERS
from tests.stub import STUB, stub

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
    """The stub of the root is the one that its tables of names make, and no name is in them twice."""
    assert STUB.read_text(encoding="utf-8") == stub()
    names = [name for table in (langchain_autotools._HOMES, langchain_autotools._MOVED) for row in table.values() for name in row.split()]
    assert len(names) == len(set(names))


def test_names_that_left_the_root_are_deprecated_there() -> None:
    """Each is what its module has under this name, is warned of with the place to import it from, and is told nowhere else."""
    for name, home in langchain_autotools._FORMER.items():
        with pytest.warns(DeprecationWarning, match=f"import {name} from langchain_autotools.{home}:"):
            found = getattr(langchain_autotools, name)
        assert found is getattr(import_module(f"langchain_autotools.{home}"), name)
        assert name not in langchain_autotools.__all__ and name not in dir(langchain_autotools)
