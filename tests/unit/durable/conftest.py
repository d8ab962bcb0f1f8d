"""A worker of durable runs for each test."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.durable import Life


@pytest.fixture
def life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Iterator[Life]":
    """A database of the test's own."""
    from langchain_autotools.durable import shutdown
    from tests.support.durable import Life

    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    yield Life(tmp_path)
    shutdown()
