"""The page on MCP servers, with a server of the SDK's own, of whichever version there is."""

from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from tests.support.openai_server import OpenAIServer
from tests.support.pages import REPOSITORY, fences, run_page
from tests.test_readme import decide

PAGE = REPOSITORY / "docs" / "howto" / "mcp.md"


def for_this_version(code: str) -> str:
    """The program as the page says it is written for version 1."""
    if find_spec("mcp.server.mcpserver") is not None:
        return code
    return code.replace("mcp.server.mcpserver import MCPServer", "mcp.server.fastmcp import FastMCP as MCPServer")


# version 1.24 of the SDK, with newer releases of pydantic-settings
@pytest.mark.further
@pytest.mark.filterwarnings("ignore:Field 'lifespan' has an incomplete definition")
def test_the_page_runs(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Its server is saved as a file, as it says, and prints what the page shows."""
    (tmp_path / "weather_server.py").write_text(for_this_version(fences(PAGE)[0][1]), encoding="utf-8")
    with OpenAIServer(lambda exchange: decide(exchange.json)) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.chdir(tmp_path)
        names = run_page(PAGE, capfd, for_this_version)
        names["model"].tools[0].close()
        assert server.rejections == []
