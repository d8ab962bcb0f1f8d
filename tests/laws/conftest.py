"""Ends what the laws share."""

from collections.abc import Iterator

import pytest

from tests.laws.ways import stop_loops


@pytest.fixture(autouse=True, scope="package")
def shared_loop() -> Iterator[None]:
    """The event loop that asynchronous ways run on lives as long as the tests of this folder."""
    yield
    stop_loops()
