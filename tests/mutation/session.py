"""The tests, collected once; for each mutant a fork of the process runs those that run the changed statement, until one fails."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from .mutants import PACKAGE, REPOSITORY, Mutant, mutated
from .notes import Fate, Notes
from .reach import Known, forked, known_of

NEAR = ("tests/unit/", "tests/providers/")
"""Where the tests of the rooms are; the others are wider."""

_SECONDS_OF_TESTS = 10.0
"""How much time of a processor the rooms' tests of one mutant together took without it, at most, and then the wider ones."""

_WIRES = ("[openai-chat", "[openai-responses", "[anthropic", "[google", "[ollama")
"""Of the contract tests, which run over every class, those of one class of each wire."""


@dataclass(frozen=True)
class Running:
    """A mutant on trial, in a process that may run until `ends`."""

    mutant: Mutant
    process: int
    ends: float


@dataclass
class Trials:
    """A pytest plugin that, in place of running the tests, tries mutants with them.

    Attributes:
        mutants: The mutants.
        jobs: How many are tried at once.
        cache: Where what is known of the tests is kept.
        notes: Takes what became of each.
        ends: After which time nothing further is begun.
    """

    mutants: Sequence[Mutant]
    jobs: int
    cache: Path
    notes: Notes
    ends: float

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Find out which test runs what; then one mutant after another."""
        items = [item for item in session.items if "tests/contract/" not in item.nodeid or any(wire in item.nodeid for wire in _WIRES)]
        self._items = {item.nodeid: item for item in items}
        self._functions = _functions(self.mutants)
        self._known = known_of(items, self.jobs, self.cache, self.ends)
        waiting, running = list(self.mutants) if self._known else [], list[Running]()
        while running or (waiting and time.monotonic() < self.ends):
            running = [one for one in running if not self._has_ended(one)]
            if waiting and len(running) < self.jobs and time.monotonic() < self.ends:
                running += self._begin(waiting.pop(0))
            else:
                time.sleep(0.02)
        return True

    def _begin(self, mutant: Mutant) -> list[Running]:
        chosen = self._tests_for(mutant)
        if not chosen:
            self._note(mutant, "not reached")
            return []
        process = forked(lambda: self._trial(mutant, chosen))
        return [Running(mutant, process, time.monotonic() + 30 + 3 * sum(self._known[name].waited for name in chosen))]

    def _tests_for(self, mutant: Mutant) -> list[str]:
        """The rooms' tests that run the statement (for a change outside functions: anything of the module), then the wider tests that do.

        Those of its own room come first, then those that run little else: they are the most telling.
        """
        known = self._known
        if mutant.function:
            able = [name for name in known if known[name].runs(mutant.path, mutant.lines)]
        else:
            able = [name for name in known if mutant.path in known[name].lines]
        vendor = "/".join(mutant.path.split("/")[:2])
        folder = f"tests/{vendor}/" if mutant.room == "providers" else f"tests/unit/{mutant.room}/"
        able.sort(key=lambda name: (not name.startswith(folder), known[name].size))
        near = [name for name in able if name.startswith(NEAR)]
        return [*self._in_time(near), *self._in_time([name for name in able if not name.startswith(NEAR)])]

    def _in_time(self, names: Sequence[str]) -> Iterator[str]:
        seconds = 0.0
        for place, name in enumerate(names):
            if not place or seconds + self._known[name].seconds <= _SECONDS_OF_TESTS:
                seconds += self._known[name].seconds
                yield name

    def _trial(self, mutant: Mutant, chosen: Sequence[str]) -> int:
        if _take_over(mutant, self._functions):
            return _run_until_failure([self._items[name] for name in chosen], self._known)
        one = [sys.executable, "-m", "tests.mutation.one", mutant.path]
        changed = subprocess.run([*one, str(mutant.number), *chosen], check=False, capture_output=True, text=True)
        failed = next((name for name in chosen if f" {name} - " in changed.stdout), chosen[0])
        return changed.returncode and not subprocess.run([*one, "-1", failed], check=False).returncode  # it may fail without any change

    def _has_ended(self, one: Running) -> bool:
        process, status = os.waitpid(one.process, os.WNOHANG)
        if not process and time.monotonic() < one.ends:
            return False
        if not process:
            os.killpg(one.process, signal.SIGKILL)
            os.waitpid(one.process, 0)
        self._note(one.mutant, "killed by time" if not process else "killed" if status else "survived")
        return True

    def _note(self, mutant: Mutant, fate: Fate) -> None:
        self.notes.add(mutant, fate)
        print(f"{fate:14} {mutant.line:4} {mutant.key}", flush=True)


class _EndAtFailure:
    """A pytest plugin: the first failure ends the process."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os._exit(1)


def _run_until_failure(items: Sequence[pytest.Item], known: dict[str, Known]) -> int:
    items[0].config.pluginmanager.register(_EndAtFailure())
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.add_marker(pytest.mark.timeout(10 + 5 * known[item.nodeid].waited))
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    return 0


# ---------------------------------------------------------------------------------------------- the change


def _functions(mutants: Sequence[Mutant]) -> list[FunctionType]:
    """Every function of the package that there is, with the modules that are changed loaded."""
    for path in sorted({PACKAGE / mutant.path for mutant in mutants}):
        import_module(".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__"))
    gc.unfreeze()
    functions = [one for one in gc.get_objects() if isinstance(one, FunctionType) and _is_ours(one.__code__)]
    gc.freeze()
    return functions


def _take_over(mutant: Mutant, functions: Sequence[FunctionType]) -> bool:
    """Give the functions of the changed module their new code; False where none has any, or one cannot take it."""
    file = str(PACKAGE / mutant.path)
    codes: dict[tuple[str, int], CodeType] = {}
    _gather(compile(mutated(PACKAGE / mutant.path, mutant.number), file, "exec"), codes)
    changed = []
    for function in functions:
        code = function.__code__
        new = codes.get((code.co_qualname, code.co_firstlineno)) if code.co_filename == file else None
        if new is not None and new != code:
            changed.append((function, new))
    if any(function.__code__.co_freevars != new.co_freevars for function, new in changed):
        return False  # it uses other variables from around it than before
    for function, new in changed:
        function.__code__ = new
    return bool(changed)


def _gather(code: CodeType, into: dict[tuple[str, int], CodeType]) -> None:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            into[constant.co_qualname, constant.co_firstlineno] = constant
            _gather(constant, into)


def _is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(f"{PACKAGE}{os.sep}")
