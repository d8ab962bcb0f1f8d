"""The tutorial's page on MCP: tools of a real server in a process of its own, read by langchain-mcp-adapters."""

from pathlib import Path

import pytest

from tests.support.openai_server import OpenAIServer
from tests.support.pages import REPOSITORY, fences, run_page
from tests.test_readme import decide

pytestmark = pytest.mark.compat
PAGE = REPOSITORY / "docs" / "tutorial" / "mcp.md"


def test_the_page_runs(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Its server is saved as a file, as it says; asynchronous, in one session and synchronous the model uses the tools."""
    (tmp_path / "weather_server.py").write_text(fences(PAGE)[0][1], encoding="utf-8")
    with OpenAIServer(lambda exchange: decide(exchange.json)) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.chdir(tmp_path)
        run_page(PAGE, capfd)
        assert server.rejections == []
