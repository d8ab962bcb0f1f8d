"""`models`: what a provider's server lists, by the names that `-m` takes; without a key what is known here."""

import json
from collections.abc import Iterator

import pytest

from langchain_autotools.cli import main
from tests.support.http_server import Exchange, HttpReply, LoopbackServer

LISTS = {
    "/v1/models": {"object": "list", "data": [{"id": "gpt-9", "object": "model"}, {"id": "whisper-9", "object": "model"}]},
    "/bare/models": [{"id": "one"}, {"id": "two"}],
    "/anthropic/v1/models": {
        "data": [{"type": "model", "id": "claude-9", "display_name": "Nine", "created_at": "2026-01-01T00:00:00Z"}],
        "has_more": False,
        "first_id": "claude-9",
        "last_id": "claude-9",
    },
    "/v1beta/models": {
        "models": [
            {"name": "models/gemini-9", "supportedGenerationMethods": ["generateContent"]},
            {"name": "models/embedding-9", "supportedGenerationMethods": ["embedContent"]},
        ]
    },
    "/api/tags": {"models": [{"model": "qwen9:latest"}]},
}


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    """A server of every vendor's list."""

    def answer(exchange: Exchange) -> HttpReply:
        found = LISTS.get(exchange.path.partition("?")[0])
        body = {"error": {"message": f"Nothing for sk-secret at {exchange.path}"}} if found is None else found
        return HttpReply([json.dumps(body).encode()], 404 if found is None else 200, {"content-type": "application/json"})

    with LoopbackServer(answer) as running:
        yield running


@pytest.mark.parametrize(
    ("provider", "key", "path", "listed"),
    [
        ("openai", "OPENAI_API_KEY", "/v1", ["openai:gpt-9", "openai:whisper-9"]),
        ("together", "TOGETHER_API_KEY", "/bare", ["together:one", "together:two"]),
        ("anthropic:", "ANTHROPIC_API_KEY", "/anthropic", ["anthropic:claude-9"]),
        ("google", "GEMINI_API_KEY", "", ["google_genai:gemini-9"]),
        ("ollama", None, "", ["ollama:qwen9:latest"]),
    ],
)
def test_the_server_is_asked_where_there_is_a_key(monkeypatch, capsys, server, provider, key, path, listed):
    """Each vendor's own list; the key goes along, and nothing but names is output."""
    if key:
        monkeypatch.setenv(key, "sk-secret")
    assert main(["models", provider, "--base-url", f"{server.address}{path}"]) == 0
    assert capsys.readouterr().out.splitlines() == listed
    assert key is None or "sk-secret" in str(server.exchanges[0].headers)


def test_the_default_is_a_provider_whose_key_is_set(monkeypatch, capsys, server):
    """As of `chat`; with `--json` one object a line, and `-m` names the provider too."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.address}/v1")
    assert main(["models"]) == main(["models", "-m", "openai", "--json"]) == 0
    shown = capsys.readouterr()
    names = ["openai:gpt-9", "openai:whisper-9"]
    assert shown.out.splitlines() == [*names, *(json.dumps({"type": "model", "name": name}) for name in names)]
    assert "provider: openai (OPENAI_API_KEY is set)" in shown.err


def test_a_server_without_a_list_is_an_error_without_the_key(monkeypatch, capsys, server):
    """One line, exit code 1."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert main(["models", "openai", "--base-url", f"{server.address}/nowhere"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1 and "sk-secret" not in error


@pytest.mark.parametrize(
    ("provider", "known"),
    [("openai", "openai:gpt-5"), ("anthropic", "anthropic:claude-sonnet-5"), ("google", "google_genai:gemini-3.5-flash"),
     ("groq", "groq:openai/gpt-oss-120b"), ("openrouter", "openrouter:openrouter/auto"), ("local", "local")],
)  # fmt: skip
def test_without_a_key_the_known_models_are_listed(capsys, provider, known):
    """Those with a profile, else the provider's default; a remark says so, and no request is made."""
    assert main(["models", provider]) == 0
    shown = capsys.readouterr()
    assert known in shown.out.splitlines() and shown.err.count("\n") == 1


def test_without_any_key_each_provider_stands_with_its_default(capsys):
    """So that a first call shows what there is."""
    assert main(["models"]) == 0
    shown = capsys.readouterr()
    assert {"openai:gpt-5", "anthropic:claude-sonnet-5", "local"} <= set(shown.out.splitlines())
    assert "No provider's key is set" in shown.err


@pytest.mark.parametrize(("provider", "message"), [("gogle", "did you mean 'google'"), ("azure", "-m azure_openai:DEPLOYMENT")])
def test_a_provider_without_models_is_an_error(capsys, provider, message):
    """Unknown, or one that lists none."""
    assert main(["models", provider]) == 2
    assert message in capsys.readouterr().err
