"""Chat model classes of LangChain's packages behind this package's loop: `pytest -m named tests/named`, with the extra `named`.

Where langchain-aws is missing nothing of Bedrock is collected; of the other classes those are tried whose packages are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from fnmatch import fnmatch
from importlib.util import find_spec
from typing import Any

import pytest

from tests.contract.conftest import run, way  # noqa: F401 - fixtures
from tests.contract.talk import WAYS, Start, Talk
from tests.support.scripted_server import Script, ScriptedServer

NEEDED = ("boto3", "langchain_anthropic", "langchain_aws")

collect_ignore_glob = [] if all(find_spec(name) for name in NEEDED) else ["test_bedrock*.py"]


_OF_CLIENTS = ("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
"""Warnings of connections that vendors' clients leave to the garbage collector."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder bear the marker; of the contract a row meets each test in one way, and the next row in another one.

    The other ways are `exhaustive`.
    """
    for item in items:
        if "tests/named/" not in item.nodeid:
            continue
        item.add_marker(pytest.mark.named)
        for warning in _OF_CLIENTS:
            item.add_marker(pytest.mark.filterwarnings(warning))
        params = getattr(getattr(item, "callspec", None), "params", {})
        if {"row", "way"} <= params.keys():
            place = sum(map(ord, params["row"])) + len(getattr(item, "originalname", ""))
            if params["way"] != WAYS[place % len(WAYS)]:
                item.add_marker(pytest.mark.exhaustive)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Keys of nobody, and none of this machine's settings."""
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "nobodys")
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK", raising=False)
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@pytest.fixture
def wire(row: str) -> Any:
    """A row of the table."""
    from tests.named.bedrock import ROWS

    return ROWS[row]


@pytest.fixture(autouse=True)
def told(request: pytest.FixtureRequest) -> None:
    """What a row's class cannot do is skipped, with the reason."""
    if "wire" in request.fixturenames:
        cases = request.getfixturevalue("wire").cannot.items()
        name, case = request.function.__name__, request.node.callspec.id
        reason = next((why for (test, cases_of_it), why in cases if test == name and fnmatch(case, cases_of_it)), None)
        if reason:
            pytest.skip(reason)


@pytest.fixture
def start(wire: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """A function from a script and constructor arguments to a conversation. Afterwards: no request was refused."""
    with ExitStack() as stack:
        servers: list[ScriptedServer] = []

        def begin(script: Script, **model: Any) -> Talk:
            server = stack.enter_context(wire.serve(script))
            servers.append(server)
            monkeypatch.setenv("ANTHROPIC_BEDROCK_BASE_URL", server.url)
            return Talk(wire, server, wire.model(server, **model))

        yield begin
        assert [rejection.message for server in servers for rejection in server.rejections] == []
