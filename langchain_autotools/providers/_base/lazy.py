"""Names of a module that are loaded when they are first asked for (PEP 562), so that importing it loads no SDK."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy"]


def lazy(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module.

    Args:
        module: The module's name.
        homes: By the names that it gives, the modules that have them.
    """

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return __getattr__
