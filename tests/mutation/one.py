"""Tests with one module changed before it is loaded: `python -m tests.mutation.one PATH NUMBER TEST...`.

For changes outside functions, which a loaded package cannot take.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

import pytest

from .mutants import PACKAGE, Mutant, mutated

OPTIONS = ("-x", "-q", "-s", "-p", "no:cacheprovider", "-p", "tests.mutation.profile", "-o", "timeout=120")


class _Loader(SourceFileLoader):
    """Loads the changed tree in place of the source."""

    def __init__(self, name: str, path: str, mutant: Mutant) -> None:
        super().__init__(name, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        """The changed module's code."""
        return compile(mutated(self._mutant), self.path, "exec")


class _Finder(MetaPathFinder):
    """Finds the changed module before anybody else finds the one that it was."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        self._file = str(PACKAGE / mutant.path)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module's spec, with the other loader."""
        spec = PathFinder.find_spec(name, path, target) if name.startswith(PACKAGE.name) else None
        if spec is None or spec.origin != self._file:
            return None
        spec.loader = _Loader(name, self._file, self._mutant)
        return spec


if __name__ == "__main__":
    module, place, *chosen = sys.argv[1:]
    if place != "-1":
        sys.meta_path.insert(0, _Finder(Mutant(module, int(place), 0, range(0), "", "", "", "", 1)))
    sys.exit(pytest.main([*OPTIONS, *chosen]))
