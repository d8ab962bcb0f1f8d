"""The building blocks of every vendor's chat model."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

# ---------------------------------------------------------------------------------------------- lazy
# Module names that load on first access (PEP 562), so that importing the module loads no SDK.


def lazy(module: str, home: Callable[[str], str | None]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module with lazy names.

    Args:
        module: The module's name.
        home: Given a name, the module that has it; None where there is none.
    """

    def __getattr__(name: str) -> Any:
        source = home(name)
        if source is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(import_module(source), name)

    return __getattr__
