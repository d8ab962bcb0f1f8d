"""All laws on many more random conversations, and the checks of tests/fuzz: `pytest -m exhaustive tests/laws/test_many.py`."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest


def _imported(name: str) -> Any:
    """A module; None where it needs an extra that is not there."""
    try:
        return import_module(name)
    except (ImportError, pytest.skip.Exception):
        return None


_TESTS = Path(__file__).parent.parent
_FILES = sorted(path for room in ("laws", "fuzz") for path in (_TESTS / room).glob("test_*.py") if path != Path(__file__))
_MODULES = [_imported(f"tests.{path.parent.name}.{path.stem}") for path in _FILES]
_FOUND = [(module, name, value.many) for module in _MODULES if module for name, value in vars(module).items() if hasattr(value, "many")]
_LAWS = [(f"{name} ({module.__name__.rpartition('.')[2]})" if "fuzz" in module.__name__ else name, many) for module, name, many in _FOUND]


@pytest.mark.exhaustive
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("check", [check for _, check in _LAWS], ids=[name for name, _ in _LAWS])
def test_laws_on_many_conversations(check: Any) -> None:
    """Hundreds of random conversations for each law."""
    check()
