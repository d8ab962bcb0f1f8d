"""The tests, collected once; for each mutant a fork of the process runs those that enter the changed function, until one fails."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Literal

import pytest
from coverage import Coverage

from .mutants import PACKAGE, REPOSITORY, ROOMS, Mutant, mutated

Fate = Literal["killed", "killed by time", "survived", "not reached"]

_SECONDS_OF_TESTS = 8.0
"""How much time of a processor the tests of one mutant together took without it, at most; those that enter little else come first."""


@dataclass(frozen=True)
class Known:
    """What is known of a test: how long it takes, by the clock and of a processor, and the lines it runs, by module."""

    waited: float
    seconds: float
    lines: dict[str, set[int]]

    def runs(self, path: str, lines: range) -> bool:
        """Whether it runs any of these lines."""
        return not self.lines.get(path, set()).isdisjoint(lines)

    @property
    def size(self) -> int:
        """How many lines it runs."""
        return sum(map(len, self.lines.values()))


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
        fates: What became of each; of those that are in it already nothing is asked. Where time ran out, of the first ones alone.
        ends: After which time no further one is begun.
        tests: How many tests there are to try them with.
    """

    mutants: Sequence[Mutant]
    jobs: int
    fates: dict[Mutant, Fate] = field(default_factory=dict)
    ends: float = float("inf")
    tests: int = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Find out which test enters what; then one mutant after another."""
        self._items = {item.nodeid: item for item in session.items}
        self._functions = _functions()
        self._known = _look(session.items, self.jobs)
        self.tests = len(self._known)
        waiting, running = [mutant for mutant in self.mutants if mutant not in self.fates], list[Running]()
        while running or (waiting and time.monotonic() < self.ends):
            running = [one for one in running if not self._has_ended(one)]
            if waiting and len(running) < self.jobs and time.monotonic() < self.ends:
                running += self._begin(waiting.pop(0))
            else:
                time.sleep(0.02)
        if waiting:  # those killed before that come later in the draw would make the result look better
            for mutant in self.mutants[self.mutants.index(waiting[0]) :]:
                self.fates.pop(mutant, None)
        return True

    def _begin(self, mutant: Mutant) -> list[Running]:
        chosen = self._tests_for(mutant)
        if not chosen:
            self._note(mutant, "not reached")
            return []
        process = _forked(lambda: self._trial(mutant, chosen))
        return [Running(mutant, process, time.monotonic() + 30 + 3 * sum(self._known[name].waited for name in chosen))]

    def _tests_for(self, mutant: Mutant) -> list[str]:
        """The tests that run the statement (for a change outside functions: anything of the module), the most telling first."""
        known = self._known
        if mutant.function:
            able = [name for name in known if known[name].runs(mutant.path, mutant.lines)]
        else:
            able = [name for name in known if mutant.path in known[name].lines]
        folder = f"tests/unit/{mutant.room}/"
        able.sort(key=lambda name: (not name.startswith(folder), known[name].size))
        chosen, seconds = [], 0.0
        for name in able:
            if not chosen or seconds + known[name].seconds <= _SECONDS_OF_TESTS:
                seconds += known[name].seconds
                chosen.append(name)
        return chosen

    def _trial(self, mutant: Mutant, chosen: Sequence[str]) -> int:
        if _take_over(mutant, self._functions):
            return _run_until_failure([self._items[name] for name in chosen], self._known)
        one = [sys.executable, "-m", "tests.mutation.one", mutant.path]
        if subprocess.run([*one, "-1", *chosen[:1]], check=False).returncode:
            return -1  # it fails without any change
        return subprocess.run([*one, str(mutant.number), *chosen], check=False).returncode

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
        self.fates[mutant] = fate
        print(f"{len(self.fates):4} {fate:14} {mutant.path}:{mutant.line} {mutant.was}  ->  {mutant.becomes}", flush=True)


# ---------------------------------------------------------------------------------------------- processes


def _forked(work: Callable[[], int]) -> int:
    """Do it in a fork of this process, in silence; returns its number."""
    process = os.fork()
    if process:
        return process
    said = os.fdopen(os.dup(2), "w")
    try:
        os.setsid()
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        os._exit(work() & 255)
    except BaseException:
        traceback.print_exc(file=said)
        said.flush()
        os._exit(1)


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


# ---------------------------------------------------------------------------------------------- which test enters what


def _look(items: Sequence[pytest.Item], jobs: int) -> dict[str, Known]:
    """Run every test once; those that fail are of no use."""
    size = -(-len(items) // jobs)
    seen: dict[str, Known] = {}
    with tempfile.TemporaryDirectory() as folder:
        parts = [(Path(folder) / str(start), items[start : start + size]) for start in range(0, len(items), size)]
        for process in [_forked(lambda file=file, part=part: _watch(file, part)) for file, part in parts]:
            os.waitpid(process, 0)
        for file, _ in parts:
            seen.update(pickle.loads(file.read_bytes()))
    seconds = sum(one.seconds for one in seen.values())
    print(f"{len(seen)} of {len(items)} tests pass without a change, in {seconds:.0f} s of a processor", flush=True)
    return seen


class _Watch:
    """A pytest plugin that notes whether the running test passes."""

    def __init__(self) -> None:
        self.passed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed = report.passed if report.when == "call" else self.passed and not report.failed


def _watch(file: Path, items: Sequence[pytest.Item]) -> int:
    watch, times = _Watch(), dict[str, tuple[float, float]]()
    items[0].config.pluginmanager.register(watch)
    coverage = Coverage(data_file=None, config_file=False, include=[f"{PACKAGE}/*"])
    coverage.start()
    for item, following in zip(items, [*items[1:], None], strict=True):
        coverage.switch_context(item.nodeid)
        watch.passed = False
        begun, worked = time.monotonic(), time.process_time()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if watch.passed:
            times[item.nodeid] = time.monotonic() - begun, time.process_time() - worked
    coverage.stop()
    lines: dict[str, dict[str, set[int]]] = {name: {} for name in times}
    data = coverage.get_data()
    for measured in data.measured_files():
        path = Path(measured).relative_to(PACKAGE).as_posix()
        for line, names in data.contexts_by_lineno(measured).items():
            for name in lines.keys() & names:
                lines[name].setdefault(path, set()).add(line)
    file.write_bytes(pickle.dumps({name: Known(*times[name], lines[name]) for name in times}))
    return 0


def _is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(f"{PACKAGE}{os.sep}")


# ---------------------------------------------------------------------------------------------- the change


def _functions() -> list[FunctionType]:
    """Every function of the package that there is."""
    for room in ROOMS:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            import_module(".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__"))
    gc.unfreeze()
    functions = [one for one in gc.get_objects() if isinstance(one, FunctionType) and _is_ours(one.__code__)]
    gc.freeze()
    return functions


def _take_over(mutant: Mutant, functions: Sequence[FunctionType]) -> bool:
    """Give the functions of the changed module their new code; False where none has any, or one cannot take it."""
    file = str(PACKAGE / mutant.path)
    codes: dict[tuple[str, int], CodeType] = {}
    _gather(compile(mutated(mutant), file, "exec"), codes)
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
