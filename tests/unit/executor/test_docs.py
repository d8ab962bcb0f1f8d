"""docs/tools.md: its Python does what it says."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "tools.md"


def test_the_python_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The blocks of the page, one after another, are one program."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 3
    exec(compile("\n".join(blocks), str(PAGE), "exec"), {"__name__": "page"})
    printed = capsys.readouterr().out
    assert "running get_wind {'city': 'Rome'}" in printed
    assert "get_rain error 0.0 s None" in printed
