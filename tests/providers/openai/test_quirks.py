"""The hand-made streams of odd servers, through the model class over HTTP: every call as it was meant."""

from collections.abc import Iterator

import pytest

from tests.providers.openai.fragments import FragmentReader, fragment_reader, told
from tests.support.quirks import Quirk, needs_quirks, quirks


@pytest.fixture(scope="module")
def reader() -> Iterator[FragmentReader]:
    """One model and server for all of them."""
    with fragment_reader() as reading:
        yield reading


@needs_quirks
def test_there_are_fifty() -> None:
    """The file is the one that is meant."""
    assert len(quirks()) == 50


@pytest.mark.parametrize("quirk", quirks(), ids=lambda quirk: quirk.label)
def test_calls_are_as_they_were_meant(reader: FragmentReader, quirk: Quirk) -> None:
    """Names, arguments, order and ids are exact; what must not run is marked so; ids are there and unique."""
    message = reader.read(quirk.chunks, quirk.declared)
    assert told(message) == quirk.expect
    ids = [call["id"] for call in [*message.tool_calls, *message.invalid_tool_calls]]
    assert all(ids) and len(set(ids)) == len(ids)
    if quirk.ids is not None:
        assert ids == quirk.ids
