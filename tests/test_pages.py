"""The pages do what they say: their Python runs against strict servers on loopback and prints what they show.

Other pages that run: presets and their vendors (tests/providers/presets), tools, messages and testing (their tests), MCP (tests/compat),
what vendors do by themselves (tests/providers/test_vendor_events.py), handlers (tests/providers/openai/test_handlers_elsewhere.py),
a model's file tools (tests/providers/test_file_handlers.py), logs and traces (tests/compositions/test_tracing_page.py).
"""

import ast
import shutil
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel

from tests.support.anthropic_server import AnthropicServer
from tests.support.google_server import GoogleServer
from tests.support.ollama_server import OllamaServer
from tests.support.openai_server import OpenAIServer
from tests.support.pages import REPOSITORY, can_run, fences, run_page
from tests.support.script import Call, Turn
from tests.test_readme import decide, page_name

DOCS = REPOSITORY / "docs"
OTHERS = ("files.md", "mcp.md", "vendor_events.md", "handlers.md", "tracing.md")
LESSONS = [page for folder in ("tutorial", "howto") for page in sorted((DOCS / folder).glob("*.md")) if page.name not in OTHERS]
BEHIND = ("approvals", "conversations", "events", "web", "ai_sdk", "ag_ui", "policies", "cost")
"""Pages behind a how-to, with more than most users look for."""

PAGES = [*LESSONS, *(DOCS / f"{name}.md" for name in (*BEHIND, "index", "chat_openai", "azure_chat_openai", "errors", "own_model"))]
VENDORS = {
    "chat_anthropic": (AnthropicServer, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    "chat_google_generative_ai": (GoogleServer, "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
    "chat_ollama": (OllamaServer, "OLLAMA_API_KEY", "OLLAMA_HOST"),
}


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_the_python_of_the_page_runs(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Its blocks are one program that prints what the page shows, and every request is one that the vendor takes."""
    # What a new process has. The servers of two pages give their replies the same ids, which vendors never do.
    monkeypatch.setattr("langchain_autotools.run.event_emitter._prefixes", {})
    with OpenAIServer(lambda exchange: decide(exchange.json)) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.chdir(tmp_path)
        for picture in page.parent.glob("*.png"):  # that the page asks its reader to save
            shutil.copy(picture, tmp_path)
        run_page(page, capsys)
        assert server.rejections == []


@pytest.mark.parametrize("name", VENDORS)
def test_the_page_of_a_vendor_runs(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The same against this vendor's own strict server."""
    kind, key, address = VENDORS[name]
    with kind([Turn("Let me look.", [Call("get_temperature", {"city": "Paris"})]), Turn("Paris 21 °C.")]) as server:
        monkeypatch.setenv(key, "key")
        monkeypatch.setenv(address, server.url)
        run_page(DOCS / f"{name}.md", capsys)
        assert (server.rejections, server.left) == ([], 0)


def classes_of(page: Path) -> dict[str, Any]:
    """The classes that a page defines, of its definitions and imports alone."""
    program = "\n".join(text for language, text in fences(page) if language == "python" and can_run(text))
    kept = [node for node in ast.parse(program).body if isinstance(node, ast.Import | ast.ImportFrom | ast.ClassDef)]
    names: dict[str, Any] = {"__name__": "page"}
    if any(isinstance(node, ast.ClassDef) for node in kept):
        exec(compile(ast.Module(kept, []), page.name, "exec"), names)
    return {node.name: names[node.name] for node in kept if isinstance(node, ast.ClassDef)}


def test_every_class_that_a_page_defines_can_be_made() -> None:
    """A chat model with no more than the name of a model, a schema with the values that it has."""
    made = [kind for page in [*DOCS.rglob("*.md"), REPOSITORY / "README.md"] for kind in classes_of(page).values()]
    assert len(made) >= 6
    for kind in made:
        is_model = issubclass(kind, BaseChatModel)
        if issubclass(kind, BaseModel) and not is_model:
            kind.model_construct()
        else:
            kind(**({"model": "any"} if is_model and any(field.is_required() for field in kind.model_fields.values()) else {}))
