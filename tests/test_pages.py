"""The tutorial and the how-tos do what they say: their Python runs against a strict server on loopback and prints what they show."""

import base64
from pathlib import Path

import pytest

from tests.support.openai_server import OpenAIServer
from tests.support.pages import REPOSITORY, run_page
from tests.test_readme import decide, page_name

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
DOCS = REPOSITORY / "docs"
NEEDS_MORE = {"mcp.md"}  # tests/compat
PAGES = [page for folder in ("tutorial", "howto") for page in sorted((DOCS / folder).glob("*.md")) if page.name not in NEEDS_MORE]


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_the_python_of_the_page_runs(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Its blocks are one program that prints what the page shows, and every request is one that the vendor takes."""
    with OpenAIServer(lambda exchange: decide(exchange.json)) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.chdir(tmp_path)
        (tmp_path / "photo.png").write_bytes(PIXEL)
        run_page(page, capsys)
        assert server.rejections == []
