"""What every test shares: a clean environment, the recorded-traffic folder and the hypothesis profiles."""

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.laws.checks", "tests.laws.guarded", "tests.laws.service", "tests.laws.told", "tests.laws.ways")

from tests.contract.supports import OPTION, Supports  # noqa: E402 - only modules imported from here on are rewritten
from tests.support.pairwise import further  # noqa: E402

gc.disable()  # while tests are collected: what imports make stays, and looking at it again and again was a sixth of that time

REPOSITORY = Path(__file__).resolve().parent.parent
_TESTS = REPOSITORY / "tests"
_WHOLE = ("contract", "standard", "loops", "support")
"""The folders in which nothing is `further`; nor is anything in files beside the folders."""
_LANES = (
    *("exhaustive", "local", "integration", "compat", "named", "surface"),
    *("types", "parsers", "browser", "kills", "scale", "installs", "house"),
)
"""What does not run by default anyway has all its cases there."""

collect_ignore_glob = [] if find_spec("ag_ui") else ["*ag_ui*.py"]  # it is not there with the lowest releases of the others

# Variables that would change what a model sends, where it sends it, or who listens.
_VENDORS = ("OPENAI_", "ANTHROPIC_", "GOOGLE_", "GEMINI_", "OLLAMA_")
_LISTENERS = ("LANGSMITH_", "LANGCHAIN_", "LC_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")

# A shared machine is slow at times: no deadlines. CI repeats itself exactly; elsewhere every run looks at new cases. They are few, for the
# four minutes of the default suite: `--hypothesis-profile many` looks at many.
settings.register_profile("default", deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("many", settings.get_profile("default"), max_examples=1000)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


# A shell starts background jobs with interrupts ignored, and children inherit that: programs under test must hear them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The page of what each class supports is made from a run of the contract tests."""
    parser.addoption(OPTION, choices=("check", "write"), help="compare docs/supports.md with the contract tests' results, or write it")


def pytest_configure(config: pytest.Config) -> None:
    """Keep the results where they come together: not in a worker of xdist."""
    if (mode := config.getoption(OPTION)) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Supports(mode))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """By default a test has those of its cases that differ in what they show (tests/support/pairwise.py); the others are `further`.

    Contract tests and standard suites choose by what they know of their rows.
    """
    tests: dict[str, list[Any]] = {}
    for item in items:
        folder = item.path.parent
        if folder != _TESTS and folder.name not in _WHOLE and not any(map(item.get_closest_marker, _LANES)):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, cases in tests.items():
        if len(cases) > 1:
            for place in further([_parts(case) for case in cases], len(name)):
                cases[place].add_marker(pytest.mark.further)


def _parts(case: Any) -> tuple[list[str], str | None]:
    """The parts of the id of a test's case, and the name of the wire that it runs over, if any."""
    wires = sys.modules.get("tests.contract.wires")
    kind = wires.Wire if wires else ()
    params = case.callspec.params.values() if hasattr(case, "callspec") else ()
    return getattr(getattr(case, "callspec", None), "_idlist", []), next((value.name for value in params if isinstance(value, kind)), None)


def pytest_itemcollected(item: pytest.Item) -> None:
    """A name with an address in it differs from process to process: xdist would refuse to run anything."""
    if " object at 0x" in item.nodeid:
        raise pytest.UsageError(f"give the parameters of this test names: {item.nodeid}")


def pytest_collection_finish() -> None:
    """What imports have made stays to the end: full collections need not look at it again (8 % of the contract's CPU)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)  # each module of tests ends with a collection: the many small ones were 3 % of the time
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep half a pair of surrogates, which tests log, out of reports: no worker of pytest-xdist can send it."""
    report = yield
    report.sections = [(title, text.encode("utf-8", "backslashreplace").decode()) for title, text in report.sections]
    return report


@pytest.fixture(autouse=True, scope="module")
def swept() -> Iterator[None]:
    """What a module of tests leaves behind is garbage now, or stays to the end: later collections need not look at it again."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def unlearned() -> Iterator[None]:
    """What one test's server has taught this process says nothing of another's, which may get the same port."""
    yield
    if found := sys.modules.get("langchain_autotools.providers.openai.chat_model"):
        found.LEARNED.__init__()


@pytest.fixture(autouse=True, scope="session")
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees the user's keys, endpoints, tracers, proxies or caches. The embedded local model (marker `local`) keeps its cache."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.upper().startswith(_VENDORS + _LISTENERS) and name != "LANGCHAIN_AUTOTOOLS_MODEL_PATH":
                patch.delenv(name)
        patch.setenv("NO_PROXY", "*")
        yield


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty user cache folder for this test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="session")
def wire_folder() -> Path:
    """The folder of recorded traffic beside the checkout; skips where it is absent."""
    folder = REPOSITORY.parent / "shared" / "wire"
    if not folder.is_dir():
        pytest.skip("recorded traffic (../shared/wire) is not beside this checkout")
    return folder
