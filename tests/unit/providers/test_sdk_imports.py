"""Models whose vendor's SDK another thread is importing in this moment: what is looked for in it is not there yet."""

import sys
from types import ModuleType

import pytest
from langchain_core.messages import HumanMessage

from langchain_autotools.providers.google.mapper import read_contents
from langchain_autotools.providers.google.tools import plain_schema
from langchain_autotools.providers.ollama.mapper import read_messages


def test_input_is_read_while_an_sdk_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can have an object of it: everything is as it is."""
    for name in ("google.genai.types", "ollama"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    given = [HumanMessage("Go.")]
    assert read_contents(given) is given and read_messages(given) is given
    assert plain_schema({"type": "object"}) == {"type": "object"}
