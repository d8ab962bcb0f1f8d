"""All laws on many more random conversations: `pytest -m exhaustive tests/laws`."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

_FILES = sorted({*Path(__file__).parent.glob("test_*.py")} - {Path(__file__)})
_MODULES = [import_module(f"tests.laws.{path.stem}") for path in _FILES]
_LAWS = [(name, value.many) for module in _MODULES for name, value in vars(module).items() if hasattr(value, "many")]


@pytest.mark.exhaustive
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("check", [check for _, check in _LAWS], ids=[name for name, _ in _LAWS])
def test_laws_on_many_conversations(check: Any) -> None:
    """Hundreds of random conversations for each law."""
    check()
