"""A real browser: `pytest -m browser tests/browser`, with the extra `browser` and a Chromium on this machine."""

import re
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from tests.browser.chat_program import Chat, Program
from tests.support.openai_server import OpenAIServer

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


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """The example, running; nothing that it does leaves this machine."""
    with OpenAIServer() as vendor:
        program = Program(tmp_path_factory.mktemp("chats"), vendor)
        program.start()
        yield program
        program.kill()
        assert not (program.folder / "left.txt").exists(), (program.folder / "left.txt").read_text()
        assert (vendor.rejections, vendor.left) == ([], 0)


@pytest.fixture(params=["light"])
def chat(request: pytest.FixtureRequest, browser: Any, program: Program) -> Iterator[Chat]:
    """The page in the browser. All that it loads comes from the program, and its scripts make no errors."""
    context = browser.new_context(viewport={"width": 1000, "height": 720}, color_scheme=request.param)
    page = context.new_page()
    loaded, errors = [], []
    context.on("response", lambda one: loaded.append(one.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    chat = Chat(page, program)
    chat.open(re.sub(r"\W+", " ", request.node.name.removeprefix("test_").replace("_", " ")).strip())
    yield chat
    context.close()
    assert errors == []
    assert {url.startswith((program.address, "data:", "blob:")) for url in loaded} == {True}
