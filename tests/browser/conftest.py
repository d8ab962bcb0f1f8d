"""A real browser: `pytest -m browser tests/browser`, with the extra `browser` and a Chromium on this machine."""

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
collect_ignore_glob = [] if CHROMIUM and find_spec("playwright") else ["test_*.py"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The browser that all tests use."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=60_000)
        yield browser
        browser.close()
