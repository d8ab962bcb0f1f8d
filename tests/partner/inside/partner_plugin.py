"""Runs inside the partner package's own test run: gives it our classes under its names, and writes down how each test went.

A name that we do not have becomes a `Missing`: importing it is harmless, so that one name does not take a whole file along; using it
raises, and the test's line in the record says which name it was.
"""

import importlib.abc
import importlib.machinery
import json
import os
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import sent

import langchain_autotools

RECORD = os.environ["PARTNER_RECORD"]
CLASSES: dict[str, list[str]] = json.loads(os.environ["PARTNER_CLASSES"])
"""The packages that ours stand in for, and the names that we have of each."""

touched: set[str] = set()
"""The names that the running test has used and we do not have."""


class MissingName(Exception):
    """The test uses a name of the partner package that we do not have."""


def refuse(path: str) -> Any:
    """Note the use of a missing name and raise."""
    touched.add(path)
    raise MissingName(path)


class Missing(type):
    """Takes the place of a name that we do not have. A class, so that it may be in annotations, `except` and `pytest.raises`."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """No call brings anything."""
        return refuse(cls.__doc__ or "")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return refuse(cls.__doc__ or "")

    def __iter__(cls) -> Any:
        return refuse(cls.__doc__ or "")

    def __instancecheck__(cls, instance: object) -> Any:
        return refuse(cls.__doc__ or "")


class Shim(ModuleType):
    """A module of the partner package: our classes under their names, `Missing` for the rest."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        ours = CLASSES[self.__name__.partition(".")[0]]
        if name in ours:
            return getattr(langchain_autotools, name)
        if name == "__all__":
            return ours
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        path = f"{self.__name__}.{name}"
        if path in sent.FUNCTIONS:
            return sent.FUNCTIONS[path]
        touched.add(path)
        return Missing("Missing", (Exception,), {"__doc__": path})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Every module of the partner package is a `Shim`."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """A spec for the partner package and what lies in it."""
        if name.partition(".")[0] not in CLASSES:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """An empty module."""
        return Shim(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""


sys.meta_path.insert(0, Finder())
sent.give()


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


PRIVATE = re.compile(r"(?:has no|does not have the) (?:attribute|field) \W?(_\w+)|object has no field \W(_\w+)")


def private_attributes(error: BaseException) -> set[str]:
    """Private attributes of our objects that an error says are missing."""
    found = (PRIVATE.search(str(one)) for one in chain(error))
    return {match[1] or match[2] for match in found if match}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Write down what the test's call came to, or its setup where that failed."""
    outcome = yield
    report = outcome.get_result()
    if call.when == "setup":
        item.stash[SEEN] = set()
        sent.asked.clear()
    names = item.stash[SEEN]
    names |= touched
    touched.clear()
    if call.when == "teardown" or (call.when == "setup" and report.passed):
        return
    error = call.excinfo.value if call.excinfo else None
    line = {"id": item.nodeid, "outcome": "xfailed" if hasattr(report, "wasxfail") else report.outcome, "missing": sorted(names)}
    line["sent"] = bool(sent.asked)
    if report.failed and error is not None:
        line |= {"private": sorted(private_attributes(error)), "error": f"{type(error).__name__}: {error}"[:2000]}
    with open(RECORD, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


SEEN: pytest.StashKey[set[str]] = pytest.StashKey()


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that cannot even be read is one failed entry. What imports touch belongs to no test."""
    touched.clear()
    if report.failed:
        with open(RECORD, "a", encoding="utf-8") as file:
            file.write(json.dumps({"id": report.nodeid, "outcome": "failed", "missing": [], "error": str(report.longrepr)[-2000:]}) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """The marks that the partner packages declare in their own settings."""
    for mark in ("requires", "compile", "scheduled", "flaky", "enable_socket"):
        config.addinivalue_line("markers", f"{mark}: the partner package's")
