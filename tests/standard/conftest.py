"""What the standard suites need besides a model: a server, media without the internet, and no recorder."""

import base64
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_tests.integration_tests import chat_models

from tests.standard.suites import RAN, Integration, Listening
from tests.support.vendors import VENDORS

_MEDIA = {
    "png": base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="),
    "pdf": b"%PDF-1.4\n%%EOF\n",
    "wav": base64.b64decode("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="),
}


_DIALECT = ("structured", "json", "choice", "usage", "inputs", "tool_message", "histories", "stop", "params", "bind", "from_env", "serdes")
"""What the names of tests have that find the data of a preset: its schemas, choices, parts of content, parameters, variables."""


_NO_CALL = ("Plain", "ToolNeverCalled")
"""The suites in which no tool of the model's own is called."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Azure and a preset are data for the code of another wire: their suites without a tool that is called are `exhaustive`.

    Tests in which that data makes no difference meet two presets each, by turns; the others under `exhaustive`. A test meets a wire's own
    class in one of the two suites without such a call.
    """
    for item in items:
        name = getattr(suite := getattr(item, "cls", None), "__name__", "")
        vendor, test = getattr(suite, "vendor", None), getattr(item, "originalname", "")
        differs = vendor is None or any(word in test for word in _DIALECT) or VENDORS.index(vendor) % 4 == len(test) % 4
        out_of_turn = _NO_CALL if vendor is not None or "Azure" in name else _NO_CALL[len(test) % len(_NO_CALL)]
        if not differs or name.endswith(out_of_turn):
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
