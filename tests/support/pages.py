"""Runs the examples of a page as a reader would: one block after another, each compared with the output that the page shows."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
OPTIONAL = ("langchain_openai", "langchain_classic", "ag_ui")
"""Packages that programs used before they came here, and one of an extra. Where one is not installed, blocks that import it do not run."""

OF_EXTRAS = {"langchain_autotools.durable": "dbos", "encoders import ag_ui": "ag_ui", "import ChatOpenAI, claims": "sqlalchemy"}
"""What needs a library of an extra, which the extra `test` has not."""

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def fences(page: Path) -> list[tuple[str, str]]:
    """The code blocks of a page: language and text."""
    return _FENCE.findall(page.read_text(encoding="utf-8"))


def skip_without_extra(text: str) -> None:
    """Skip a test about a program, or a name, that needs an extra which is not installed."""
    for module, library in OF_EXTRAS.items():
        if module in text:
            pytest.importorskip(library, reason=f"{module} needs its extra")


def has_extras(text: str) -> bool:
    """Whether the libraries of the extras that a program needs are installed."""
    return all(importlib.util.find_spec(library) for module, library in OF_EXTRAS.items() if module in text)


def end_durable(text: str) -> None:
    """End what a program about durable runs has launched, and its logging, which holds on to a test's captured output."""
    if "langchain_autotools.durable" in text:
        importlib.import_module("langchain_autotools.durable").shutdown()
        logging.getLogger("dbos").handlers.clear()


def can_run(code: str) -> bool:
    """Whether every package that a block is about is installed."""
    needed = [name for name in OPTIONAL if re.search(f"^from {name}", code, re.MULTILINE)]
    needed += ["sqlalchemy"] if "claims(" in code else []
    return all(importlib.util.find_spec(name) for name in needed)


def run_page(page: Path, capsys: pytest.CaptureFixture[str], edit: Callable[[str], str] = str) -> dict[str, Any]:
    """Run the Python of a page, and compare what a block prints with the block of text behind it.

    Args:
        page: The Markdown file.
        capsys: Pytest's fixture.
        edit: Changes the code of a block before it runs, to name a server.

    Returns:
        The names that the page has defined.
    """
    whole = page.read_text(encoding="utf-8")
    skip_without_extra(whole)
    names: dict[str, Any] = {"__name__": "page"}
    printed: str | None = None
    for language, text in fences(page):
        if language == "python":
            printed = None
            if can_run(text):
                exec(compile(edit(text), page.name, "exec"), names)
                printed = capsys.readouterr().out
        elif language == "text" and printed is not None:
            assert printed == text
    end_durable(whole)
    return names
