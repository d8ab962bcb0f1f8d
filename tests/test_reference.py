"""The reference has every public name once: `docs/reference` says which docstrings go where; building the site resolves them."""

from collections import Counter
from importlib import import_module

import pytest

from tests.release.surface import MODULES, described_names
from tests.support.pages import skip_without_extra

NAMED = Counter(described_names())


WITH_EXTRA = ("encoders", "durable", "showing")


@pytest.mark.parametrize("modules", [tuple(name for name in MODULES if name not in WITH_EXTRA), *((name,) for name in WITH_EXTRA)])
def test_the_reference_has_every_public_name_once(modules: tuple[str, ...]) -> None:
    """Each name of a public `__all__` is on one page, those of the root under the root's name."""
    skip_without_extra(f"langchain_autotools.{modules[0]}")
    root = import_module("langchain_autotools")
    for module in modules:
        public = set(import_module(f"langchain_autotools.{module}".rstrip(".")).__all__) - {"__version__"}
        wanted = {f"{module}.{name}" if module and name not in root.__all__ else name for name in public}
        assert {name: NAMED[name] for name in wanted} == dict.fromkeys(wanted, 1)


@pytest.mark.parametrize("durable", [False, True])
def test_the_reference_names_only_what_exists(durable: bool) -> None:
    """Each name on its pages can be imported, so that a user can follow it."""
    skip_without_extra("langchain_autotools.durable" if durable else "")
    for name in [name for name in NAMED if name.startswith("durable.") is durable]:
        module, _, attribute = f"langchain_autotools.{name}".rpartition(".")
        assert hasattr(import_module(module), attribute), name
