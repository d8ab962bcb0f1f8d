"""What the README and the pages show passes a type checker, as a user's own program would."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_readme import PAGES, REPOSITORY

pytestmark = [
    pytest.mark.types,
    pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is of the extra `dev`"),
]


def as_module(page: str) -> str:
    """The Python of a page as one module, each line at its number on the page."""
    lines: list[str] = []
    inside = False
    for line in page.splitlines():
        inside = line == "```python" or (inside and line != "```")
        lines.append(line if inside and line != "```python" else "")
    return "\n".join(lines) + "\n"


def test_the_examples_of_the_pages_pass_mypy(tmp_path: Path) -> None:
    """The blocks of each page, one after another, are a program that mypy takes."""
    for page in PAGES:
        name = "_".join(page.relative_to(REPOSITORY).with_suffix("").parts).lower()
        (tmp_path / f"{name}_page.py").write_text(as_module(page.read_text(encoding="utf-8")), encoding="utf-8")
    files = sorted(path.name for path in tmp_path.glob("*_page.py"))
    # Two pages show a server for either major version of mcp, of which one is installed: neither version's modules are read.
    (tmp_path / "mypy.ini").write_text("[mypy]\n[mypy-mcp.*]\nfollow_imports = skip\nfollow_imports_for_stubs = True\n", encoding="utf-8")
    settings = [
        "--config-file",
        "mypy.ini",
        "--python-version",
        "3.11",
        "--ignore-missing-imports",
        "--cache-dir",
        str(REPOSITORY / ".mypy_cache" / "pages"),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *settings, *files],
        cwd=tmp_path,
        env={"PATH": "", "MYPYPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
