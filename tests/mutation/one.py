"""Tests with one module changed before it is loaded: `python -m tests.mutation.one PATH NUMBER TEST...`.

For changes outside functions, which a loaded package cannot take.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

import pytest

from .mutants import PACKAGE, mutated

OPTIONS = ("-x", "-q", "-s", "-p", "no:cacheprovider", "-p", "tests.mutation.profile", "-o", "timeout=120")


class _Loader(SourceFileLoader):
    """Loads the changed tree in place of the source."""

    def __init__(self, name: str, path: str, number: int) -> None:
        super().__init__(name, path)
        self._number = number

    def get_code(self, fullname: str) -> CodeType:
        """The changed module's code."""
        return compile(mutated(Path(self.path), self._number), self.path, "exec")


class _Finder(MetaPathFinder):
    """Finds the changed module before anybody else finds the one that it was."""

    def __init__(self, path: Path, number: int) -> None:
        self._file, self._number = str(path), number

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module's spec, with the other loader."""
        spec = PathFinder.find_spec(name, path, target) if name.startswith(PACKAGE.name) else None
        if spec is None or spec.origin != self._file:
            return None
        spec.loader = _Loader(name, self._file, self._number)
        return spec


if __name__ == "__main__":
    module, place, *chosen = sys.argv[1:]
    if place != "-1":
        sys.meta_path.insert(0, _Finder(PACKAGE / module, int(place)))
    sys.exit(pytest.main([*OPTIONS, *chosen]))
