"""The page on presets does what it says: its Python runs against a server on loopback."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn
from tests.test_readme import python_blocks

PAGE = Path(__file__).parents[3] / "docs" / "presets.md"


def test_the_python_of_the_page_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A user's own presets are complete as they are there, and the names that it uses exist."""
    names: dict[str, Any] = {"__name__": "presets"}
    with OpenAIServer([Turn(calls=[Call("get_temperature", {"city": "Paris"})]), Turn("21 °C."), Turn("I cannot know.")]) as server:
        monkeypatch.setenv("ACME_API_KEY", "key")
        monkeypatch.setenv("ACME_API_BASE", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for block in python_blocks(PAGE.read_text(encoding="utf-8")):
            exec(compile(block, PAGE.name, "exec"), names)
        assert server.rejections == []
    assert capsys.readouterr().out == "21 °C.\n"
    strict = names["ChatStrict"](model="any", api_key="key", max_tokens=3, safe=True)
    assert strict._request_params(None, {}, stream=False) == {"model": "any", "max_tokens": 3, "safe_mode": True, "user": "anonymous"}
    assert [type(names[name]).__name__ for name in ("mistral", "grok")] == ["ChatMistralAI", "ChatXAI"]
