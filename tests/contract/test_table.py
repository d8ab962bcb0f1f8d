"""The table of the contract itself."""

from langchain_core.language_models import BaseChatModel

import langchain_autotools
from langchain_autotools import ChatLocal, ToolsAndMessagesMixin
from tests.contract.wires import ROWS

# What it speaks to is a process of its own that reads texts only, and these histories hold images: tests/providers/local, integration.
WITHOUT_A_ROW = {ChatLocal, ToolsAndMessagesMixin}


def test_every_provider_class_has_a_row() -> None:
    """Every public chat model of the package keeps the contract; no two rows share a name."""
    public = [getattr(langchain_autotools, name) for name in langchain_autotools.__all__]
    classes = {value for value in public if isinstance(value, type) and issubclass(value, BaseChatModel)}
    assert classes - WITHOUT_A_ROW == {row.chat_model for row in ROWS}
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names))
