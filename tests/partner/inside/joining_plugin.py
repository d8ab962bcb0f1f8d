"""Runs inside a test run of LangChain's own: puts the mixin before every chat model class of the tests, and before core's fakes.

Each class that a test file makes of `BaseChatModel` is replaced as it is made by what a user would write,
`class Same(ToolsAndMessagesMixin, Class)`. With `PARTNER_JOIN` empty nothing is replaced: the baseline.
"""

import builtins
import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core import language_models
from langchain_core.language_models import BaseChatModel, fake_chat_models

from langchain_autotools import ToolsAndMessagesMixin

RECORD = os.environ["PARTNER_RECORD"]
JOINS = bool(os.environ.get("PARTNER_JOIN"))


def joined(cls: Any) -> Any:
    """The class with the mixin before it; one that has it already, and one that is no model, as it is."""
    if not isinstance(cls, type) or not issubclass(cls, BaseChatModel) or issubclass(cls, ToolsAndMessagesMixin):
        return cls
    made = type(cls)(cls.__name__, (ToolsAndMessagesMixin, cls), {"__module__": cls.__module__, "__doc__": cls.__doc__})
    made.__qualname__ = cls.__qualname__
    return made


_build: Callable[..., Any] = builtins.__build_class__


def build_class(function: Any, name: str, *bases: Any, **kwargs: Any) -> Any:
    """Make a class, and join it where a test file makes it."""
    cls = _build(function, name, *bases, **kwargs)
    return joined(cls) if str(function.__module__).partition(".")[0] == "tests" else cls


if JOINS:
    for module in (fake_chat_models, language_models):
        for name, value in list(vars(fake_chat_models).items()):
            if isinstance(value, type) and value.__module__ == fake_chat_models.__name__:
                setattr(module, name, joined(getattr(fake_chat_models, name)))
    builtins.__build_class__ = build_class


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Write down what the test's call came to, or its setup where that failed."""
    outcome = yield
    report = outcome.get_result()
    if call.when == "teardown" or (call.when == "setup" and report.passed):
        return
    line = {"id": item.nodeid, "outcome": "xfailed" if hasattr(report, "wasxfail") else report.outcome}
    if report.failed and call.excinfo:
        line["error"] = f"{call.excinfo.typename}: {call.excinfo.value}"[:2000]
    write(line)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that cannot even be read is one failed entry."""
    if report.failed:
        write({"id": report.nodeid, "outcome": "failed", "error": str(report.longrepr)[-2000:]})


def write(line: dict[str, Any]) -> None:
    """One line of the record."""
    with open(RECORD, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
