"""Which test runs which lines of the package: found out by running each once, and kept while neither it nor the package changes."""

import os
import pickle
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest
from coverage import Coverage

from .mutants import PACKAGE, REPOSITORY


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


def known_of(items: Sequence[pytest.Item], jobs: int, cache: Path, ends: float) -> dict[str, Known]:
    """What is known of each test; those that fail are of no use.

    Nothing, where the time is over before all are known: what is known of some is kept for the next time.
    """
    shared = b"".join(path.read_bytes() for folder in (PACKAGE, REPOSITORY / "tests" / "support") for path in sorted(folder.rglob("*.py")))
    files: dict[Path, list[pytest.Item]] = defaultdict(list)
    for item in items:
        files[item.path].append(item)
    kept = {path: cache / f"{path.stem}-{sha256(shared + path.read_bytes()).hexdigest()}" for path in files}
    _look([(kept[path], files[path]) for path in files if not kept[path].exists()], jobs, ends)
    if missing := sum(not file.exists() for file in kept.values()):
        print(f"of {missing} of {len(kept)} files with tests it is not known yet what they run", flush=True)
        return {}
    known: dict[str, Known] = {}
    for file in kept.values():
        known.update(pickle.loads(file.read_bytes()))
    asked = {item.nodeid: known[item.nodeid] for item in items if item.nodeid in known}
    seconds = sum(one.seconds for one in asked.values())
    print(f"{len(asked)} of {len(items)} tests pass without a change, in {seconds:.0f} s of a processor", flush=True)
    return asked


def _look(files: Sequence[tuple[Path, Sequence[pytest.Item]]], jobs: int, ends: float) -> None:
    for process in [forked(lambda share=files[start::jobs]: _watch_all(share, ends)) for start in range(min(jobs, len(files)))]:
        os.waitpid(process, 0)


def _watch_all(files: Sequence[tuple[Path, Sequence[pytest.Item]]], ends: float) -> int:
    coverage = Coverage(data_file=None, config_file=False, include=[f"{PACKAGE}/*"])
    watch = _Watch()
    files[0][1][0].config.pluginmanager.register(watch)
    for (kept, items), after in zip(files, [*[items[0] for _, items in files[1:]], None], strict=True):
        if time.monotonic() < ends:
            known = _watched([*items, after], coverage, watch)
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(pickle.dumps(known))
    return 0


def forked(work: Callable[[], int]) -> int:
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


class _Watch:
    """A pytest plugin that notes whether the running test passes."""

    def __init__(self) -> None:
        self.passed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed = report.passed if report.when == "call" else self.passed and not report.failed


def _watched(items: Sequence[pytest.Item | None], coverage: Coverage, watch: _Watch) -> dict[str, Known]:
    """What is known of these tests; the last one is only what follows them."""
    times = dict[str, tuple[float, float]]()
    coverage.erase()
    coverage.start()
    for item, following in pairwise(items):
        assert item is not None
        coverage.switch_context(item.nodeid)
        watch.passed = False
        begun, worked = time.monotonic(), time.process_time()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if watch.passed:
            times[item.nodeid] = time.monotonic() - begun, time.process_time() - worked
    coverage.stop()
    lines: dict[str, dict[str, set[int]]] = {name: {} for name in times}
    with warnings.catch_warnings(action="ignore"):  # no line of the package may have been run
        data = coverage.get_data()
    for measured in data.measured_files():
        path = Path(measured).relative_to(PACKAGE).as_posix()
        for line, names in data.contexts_by_lineno(measured).items():
            for name in lines.keys() & names:
                lines[name].setdefault(path, set()).add(line)
    return {name: Known(*times[name], lines[name]) for name in times}
