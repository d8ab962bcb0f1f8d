"""What the standard suites need besides a model: a server, media without the internet, and no recorder."""

import base64
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_tests.integration_tests import chat_models

from tests.standard.suites import RAN, Integration, Listening

_MEDIA = {
    "png": base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="),
    "pdf": b"%PDF-1.4\n%%EOF\n",
    "wav": base64.b64decode("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="),
}


_BY_TURNS = ("Plain", "ToolNeverCalled")
"""The suites in which no tool of the model's own is called: a test meets a wire's own class in one of the two."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """By default one class of each wire meets the suites, and a class that is data for the code of another wire (Azure, the presets) those
    without requests; the contract tests have each of them. The rest is `exhaustive`, which `.ci/run` runs too.

    A tool of the model's own changes nothing in the suite without requests, and thinking meets every second test.
    """
    for item in items:
        name = getattr(suite := getattr(item, "cls", None), "__name__", "")
        test = getattr(item, "originalname", "")
        is_data = getattr(suite, "vendor", None) is not None or "Azure" in name
        out_of_turn = (_BY_TURNS[len(test) % 2], "UnitWithATool", *(["Thinking"] if len(test) % 2 else []))
        if name.endswith(out_of_turn) or (is_data and not name.endswith("Unit")):
            item.add_marker(pytest.mark.exhaustive)


@pytest.fixture(autouse=True)
def media_without_internet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suites download pictures and documents; here they get tiny ones."""

    def get(url: str, **_: Any) -> SimpleNamespace:
        return SimpleNamespace(content=_MEDIA[url.rsplit(".", 1)[1]])

    monkeypatch.setattr(chat_models, "httpx", SimpleNamespace(get=get))
    monkeypatch.setenv("LANGCHAIN_TESTS_USER_AGENT", "langchain-autotools tests")


@pytest.fixture
def vcr() -> SimpleNamespace:
    """A recorder that has recorded nothing: the streaming benchmark asks for one, and a loopback server needs none."""
    return SimpleNamespace(responses=[])


@pytest.fixture(scope="class")
def server(request: pytest.FixtureRequest) -> Iterator[None]:
    """One server for a suite. Afterwards: no request was refused, and the model's own tool ran as often as it was called."""
    suite: type[Integration] = request.cls
    RAN.clear()
    listening = Listening(suite.mind())
    with suite.serve(listening) as serving:
        suite.url = serving.url
        yield
        assert [rejection.message for rejection in serving.rejections] == []
    for own in suite.own_tools:
        assert RAN[own.name] == listening.called[own.name]
