"""The real local model on its real server, where both are installed."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from langchain_autotools import ChatLocal
from langchain_autotools.cli.tools import get_temperature
from langchain_autotools.errors import ConfigurationError
from langchain_autotools.providers.local import find_weights


@pytest.fixture(scope="module")
def model() -> Iterator[ChatLocal]:
    """The default model with one tool; its server runs for the file that asks for it."""
    if find_spec("xllamacpp") is None:
        pytest.skip("the model server (xllamacpp) is not installed")
    try:
        find_weights()
    except ConfigurationError as error:
        pytest.skip(f"no weights: {error}")
    model = ChatLocal(tools=[get_temperature])
    model.start()
    yield model
    model.close()
