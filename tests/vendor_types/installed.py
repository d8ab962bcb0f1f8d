"""All rows whose SDK is installed: the package's own SDKs, and those that come with the extra `vendor-types`."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from tests.vendor_types import asking_rows, rows
from tests.vendor_types.asking import Asked
from tests.vendor_types.rows import Row

FURTHER = {"groq": "groq_rows", "mistralai": "mistral_rows"}
"""The modules of rows whose SDK the package itself does not need, by the package that defines their types."""
ABSENT = frozenset(name for name in FURTHER if find_spec(name) is None)
"""Those of these packages that are not installed: the page keeps what it says of them."""

_modules = [import_module(f"tests.vendor_types.{FURTHER[name]}") for name in FURTHER if name not in ABSENT]
ROWS: tuple[Row, ...] = (*rows.ROWS, *(row for module in _modules for row in module.ROWS))
ASKED: tuple[Asked, ...] = (*asking_rows.ASKED, *(row for module in _modules for row in module.ASKED))
