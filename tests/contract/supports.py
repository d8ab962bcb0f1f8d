"""What each wire supports, as the contract tests found it: keeps their outcomes and makes docs/supports.md of them.

    python -m pytest -m "" tests/contract --supports write      # writes the page
    python -m pytest -m "" tests/contract --supports check      # fails where the page says anything else

Nothing is written by hand. A behaviour is a contract test, and its words are the test's docstring. A reason is that of the row in wires.py
which says what its vendor cannot do, or what a class said when it refused (a test's property `found`).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "supports.md"
OPTION = "--supports"
_HEAD = """# What each class supports

Every line is a behaviour that the contract tests (`tests/contract`) hold each class to, over real HTTP, against a server that refuses
what the vendor refuses, and for most in all ways to run a model: `invoke`, `stream`, `ainvoke`, `astream`. This page is made from their
results (`python -m pytest -m "" tests/contract --supports write`); CI compares. First what differs, then why, and what holds for all."""


def facts(function: object, module: object) -> dict[str, str]:
    """What a test shows, and the heading that it is under."""
    heading = re.split("[:;.]", str(module.__doc__).split("\n")[0])[0]
    return {"behaviour": behaviour_of(function.__doc__), "heading": heading}


def behaviour_of(docstring: str | None) -> str:
    """The first sentence of a test's docstring, as the words of a line."""
    words = " ".join(str(docstring).split())
    return re.split(r"(?<=\w)\. ", words)[0].rstrip(".").replace("|", "\\|")


class Supports:
    """A plugin of pytest: keeps the outcomes of contract tests, and writes or compares the page when the tests have ended."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._order: dict[tuple[str, int, int], tuple[str, str]] = {}
        self._outcomes: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._classes: dict[str, str] = {}
        self._reasons: dict[str, int] = {}
        self._stale = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what came of a test; setup and teardown count where they did not pass."""
        said = {str(name): str(value) for name, value in report.user_properties}
        if "wire" not in said or (report.when != "call" and report.outcome == "passed"):
            return
        path, line, _ = report.location
        reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
        found = {said["behaviour"]: reason.removeprefix("Skipped: ") or report.outcome}
        if "found" in said and report.passed:
            found = {f"`{name}`": why or "passed" for name, why in json.loads(said["found"]).items()}
        for place, (behaviour, outcome) in enumerate(found.items()):
            self._order[path, line or 0, place] = said["heading"], behaviour
            self._outcomes[said["wire"], behaviour].add(outcome)
        if "class" in said:
            self._classes[said["wire"]] = said["class"]

    def page(self, groups: Mapping[str, Sequence[str]]) -> str:
        """The page that these results make: for each group of rows tables of what differs, the reasons, and what holds for all."""
        self._reasons.clear()
        wires = [wire for rows in groups.values() for wire in rows]
        holds = [told for told in self._in_order() if all(self._cell(wire, told[1]) == "yes" for wire in wires)]
        lines = [_HEAD]
        for title, rows in groups.items():
            tables: dict[str, list[str]] = defaultdict(list)
            for heading, behaviour in self._in_order():
                tables[heading] += [] if (heading, behaviour) in holds else self._line(behaviour, rows)
            lines.append(f"\n## What differs: {title}")
            for heading, table in tables.items():
                lines += [f"\n### {heading}\n", *self._top(rows), *table] if table else []
        notes = [f"{number}. {reason}" for reason, number in self._reasons.items()]
        lines += ["\n## Why not\n", *notes] if notes else []
        return "\n".join([*lines, *self._held(holds)]) + "\n"

    def _held(self, holds: Sequence[tuple[str, str]]) -> list[str]:
        """What every class does, in few words."""
        lists: dict[str, list[str]] = defaultdict(list)
        for heading, behaviour in holds:
            lists[heading].append(f"- {behaviour}")
        lines = [line for heading, behaviours in lists.items() for line in (f"\n**{heading}**\n", *behaviours)]
        return ["\n## What holds for every class", *lines] if lines else []

    def _in_order(self) -> list[tuple[str, str]]:
        """Heading and behaviour of each test, as they are in the files."""
        return [told for _, told in sorted(self._order.items())]

    def _top(self, wires: Sequence[str]) -> list[str]:
        names = [f"`{self._classes.get(wire, wire)}`<br>{wire}" for wire in wires]
        return ["| | " + " | ".join(names) + " |", "|---|" + "---|" * len(wires)]

    def _line(self, behaviour: str, wires: Sequence[str]) -> list[str]:
        """The line of a behaviour; none where it is tested over none of these rows."""
        if not any((wire, behaviour) in self._outcomes for wire in wires):
            return []
        return [f"| {behaviour} | " + " | ".join(self._cell(wire, behaviour) for wire in wires) + " |"]

    def _cell(self, wire: str, behaviour: str) -> str:
        """Yes, no, or partly, with the numbers of the reasons."""
        outcomes = self._outcomes.get((wire, behaviour))
        if not outcomes:
            return "not tested"
        numbers = [self._reasons.setdefault(reason, len(self._reasons) + 1) for reason in sorted(outcomes - {"passed"})]
        word = "yes" if not numbers else "partly" if "passed" in outcomes else "no"
        return word + "".join(f" ({number})" for number in numbers)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the page, or fail the session where the committed one is stale."""
        from tests.contract.wires import PRESETS, WIRES

        if not self._outcomes:
            return
        if any("failed" in outcomes for outcomes in self._outcomes.values()):
            self._stale = "contract tests failed: docs/supports.md was neither written nor compared"
            return
        groups = {"classes with a wire or a place of their own": WIRES, "presets of ChatOpenAI": PRESETS}
        made = self.page({title: [wire.name for wire in rows] for title, rows in groups.items()})
        if self._mode == "write":
            PAGE.write_text(made, encoding="utf-8")
        elif not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != made:
            self._stale = "docs/supports.md is stale: python -m pytest -m '' tests/contract --supports write"
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say that the page is stale."""
        if self._stale:
            terminalreporter.write_line(self._stale, red=True)
