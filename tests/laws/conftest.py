"""Ends what the laws share."""

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("tests.laws.checks", "tests.laws.ways")

from tests.laws.ways import stop_loops  # noqa: E402 - only modules imported from here on are rewritten


@pytest.fixture(autouse=True, scope="package")
def shared_loop() -> Iterator[None]:
    """The event loop that asynchronous ways run on lives as long as the tests of this folder."""
    yield
    stop_loops()
