"""What an import costs, counted in modules: no LangChain for a help text, no SDK for a model, little more than core for a class."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import pytest

SDKS = ("openai", "anthropic", "google.genai", "ollama", "httpx", "mcp", "langgraph", "langchain", "dbos")
CLASSES = ("ChatOpenAI", "ChatAnthropic", "ChatGoogleGenerativeAI", "ChatOllama", "ChatGroq")
CORE = "from langchain_core.language_models import BaseChatModel"
OTHERS = {"jiter"}
"""Packages that a model brings besides core's own."""
MOST_OF_CORE = 14
"""The most modules of LangChain's that a model brings besides those of core's `BaseChatModel`."""
MOST = 110
"""The most modules of this package."""
HELP = (["--help"], ["--version"], ["chat", "--help"], ["models", "--help"], ["chat", "--tmperature", "1", "hi"], ["modles"], [])
SHOW = "\nimport sys; print('\\n'.join(['#', *sys.modules]))"


@cache
def loaded(code: str) -> frozenset[str]:
    """The modules that a new interpreter has loaded after this code."""
    environment = {**os.environ, "OPENAI_API_KEY": ""}
    done = subprocess.run([sys.executable, "-c", code + SHOW], capture_output=True, text=True, check=True, env=environment, timeout=120)
    return frozenset(done.stdout.rpartition("#\n")[2].split())


def of(modules: frozenset[str], *packages: str) -> set[str]:
    """Those of these packages."""
    return {name for name in modules if any(name == one or name.startswith(f"{one}.") for one in packages)}


@pytest.mark.parametrize("words", HELP, ids=" ".join)
@pytest.mark.further
def test_help_and_wrong_options_import_no_langchain(words: list[str]) -> None:
    """Nor pydantic, nor an SDK: an interpreter, argparse and the tables of names are all."""
    code = f"from langchain_autotools.cli import main\ntry:\n    main({words!r})\nexcept SystemExit:\n    pass"
    found = loaded(code)
    assert of(found, "langchain_core", "langsmith", "pydantic", "asyncio", *SDKS) == set()
    assert len(of(found, "langchain_autotools")) <= 16


def test_the_package_alone_imports_no_langchain() -> None:
    """Its names are loaded when they are first used."""
    assert of(loaded("import langchain_autotools"), "langchain_core", "pydantic", *SDKS) == set()


@pytest.mark.further
@pytest.mark.parametrize("name", CLASSES)
def test_a_constructor_imports_little_beyond_core(name: str) -> None:
    """No SDK and no HTTP library, a bounded number of modules of core's, and of ours."""
    code = f"import langchain_autotools; langchain_autotools.{name}(model='any', api_key='key')"
    more = loaded(code) - loaded(CORE)
    assert of(more, *SDKS) == set()
    own = {one for one in more if one.partition(".")[0] not in sys.stdlib_module_names}
    assert {one.partition(".")[0] for one in own} <= {"langchain_autotools", "langchain_core", "pydantic", *OTHERS}
    assert len(of(more, "langchain_core")) <= MOST_OF_CORE
    assert len(of(more, "langchain_autotools")) <= MOST
