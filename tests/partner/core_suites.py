"""Writes docs/core_tests.md from the suites of langchain-core, langchain, langgraph-supervisor and langgraph-swarm.

They run with the mixin before every chat model class that they define or take from core. What fails only with it has a reason here.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from json import loads
from pathlib import Path

from .suites import FENCES, HERE, REPOSITORY, Result, fetch, release_of
from .verdicts import STATED, Rule, unexplained, unsaid

PAGE = REPOSITORY / "docs" / "core_tests.md"
SDISTS = HERE / "sdists_core.txt"
TRIED = {"langchain": "tests/unit_tests", "langchain_core": "tests/unit_tests", "langgraph_supervisor": "tests", "langgraph_swarm": "tests"}
"""Where the tests of each package are."""
MODEL = re.compile("ChatModel|ToolCallingModel|create_agent")
"""What a file with a chat model has: the name of one, or of what makes an agent of one. Only such files are run."""
HIDDEN = {"langchain_core": "langchain"}
"""What a suite may not find installed: core records the release of langchain with each model, and its snapshots have none."""
NOT_TRIED = ("test_benchmark.py", "test_rate_limiting.py")
"""Tests of how long something takes."""
OPTIONS = [
    "-q",
    "--tb=no",
    "-p",
    "hiding_plugin",
    "-p",
    "joining_plugin",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:anyio",
    "-o",
    "asyncio_mode=auto",
]

_BELOW = "tests/unit_tests/"
_V3 = "language_models/test_chat_model_v3_stream.py::"
RULES = [
    Rule(
        STATED,
        "the fragments of a call are held to the end of the turn, and then leave whole",
        "langchain_core",
        tests=(f"{_V3}TestToolCallsYieldDeltas::test_*",),
        page="own_model.md",
        says="The fragments of a call are held to the end of the turn",
    ),
    Rule(
        STATED,
        "arguments that cannot be read are marked, so that nothing completes them",
        "langchain_core",
        tests=(f"{_V3}TestStreamV2::test_stream_events_v3_malformed_tool_args_produce_invalid_tool_call",),
        page="own_model.md",
        says="arguments cannot be read",
    ),
    Rule(
        STATED,
        "the mixin's fields are part of what identifies a model in a cache",
        "langchain_core",
        tests=("language_models/chat_models/test_cache.py::test_llm_representation_for_serializable",),
        page="own_model.md",
        says="They are part of what identifies the model in LangChain's cache",
    ),
    Rule(
        STATED,
        "a call without an id gets one",
        "langchain",
        tests=(
            "agents/middleware/implementations/test_human_in_the_loop.py::test_per_call_needs_a_tool_call_id",
            "agents/middleware/implementations/test_human_in_the_loop.py::test_per_call_same_tool_twice_*",
            "agents/test_invalid_tool_calls.py::test_create_agent_patches_only_invalid_tool_calls_with_ids*",
        ),
        page="own_model.md",
        says="a call without an id gets one",
    ),
]

HEAD = """# LangChain's own tests

The unit tests of langchain-core, langchain, langgraph-supervisor and langgraph-swarm (all files that name a chat model or make an agent),
with `ToolsAndMessagesMixin` before every chat model class that a test defines or takes from core. Nothing else is changed. What fails is
run once more by itself, and then without the mixin; what fails there too (snapshots of other releases, for the most part) is counted and
not named.

`.ci/run` runs them beside these releases: a failure that is not named here fails it, and so does a test that is named and passes.
`.ci/world suites` runs those of the newest releases. `python -m tests.partner` fetches the published sources, runs them and writes this
page; `python -m tests.partner langchain_core` writes the part of one package.
"""


@dataclass(frozen=True)
class Outcome:
    """What a suite came to.

    Attributes:
        package: The package.
        release: Its release.
        tests: How many tests passed or failed.
        anyway: How many fail without the mixin too.
        failed: Those that fail only with it.
    """

    package: str
    release: str
    tests: int
    anyway: int
    failed: Sequence[Result]


def run(package: str, folder: Path, *, joins: bool, only: Sequence[str] = ()) -> dict[str, Result]:
    """Run a suite, or these of its tests alone, its models joined or as they are; gives how each test went, by its id."""
    record, settings = folder / "record.jsonl", folder / "settings.ini"
    record.write_text("", encoding="utf-8")
    settings.write_text("[pytest]\n", encoding="utf-8")
    found = [path for path in sorted((folder / TRIED[package]).rglob("test_*.py")) if path.name not in NOT_TRIED]
    files = [str(path.relative_to(folder)) for path in found if MODEL.search(path.read_text(encoding="utf-8"))]
    tests = [name if (folder / name.partition("::")[0]).exists() else _BELOW + name for name in only]
    command = [sys.executable, "-m", "pytest", *OPTIONS, *FENCES, "-c", str(settings), "--rootdir", str(folder), *(tests or files)]
    paths = os.pathsep.join([str(HERE / "inside"), str(REPOSITORY)])
    about = {
        "PARTNER_RECORD": str(record),
        "PARTNER_JOIN": "1" if joins else "",
        "PARTNER_HIDDEN": HIDDEN.get(package, ""),
        "PYTHONPATH": paths,
    }
    made = subprocess.run(command, cwd=folder, env={**os.environ, **about}, capture_output=True, check=False, timeout=1800, text=True)
    lines = list(map(loads, record.read_text(encoding="utf-8").splitlines()))
    if not lines:
        raise RuntimeError(f"no test of {package} ran: {made.stdout[-2000:]}{made.stderr[-2000:]}")
    results = (Result(package, line["id"].removeprefix(_BELOW), line["outcome"], line.get("error", "")) for line in lines)
    return {result.id: result for result in results}


def outcome_of(package: str, folder: Path) -> Outcome:
    """Run a suite with the mixin; what fails once more by itself, since the machine may have been busy, and then without the mixin.

    A file that cannot be read is told, with the mixin or without.
    """
    counted = [result for result in run(package, folder, joins=True).values() if result.outcome in ("passed", "failed")]
    failed, anyway = {result.id for result in counted if result.outcome == "failed"}, set[str]()
    if failed:
        again, plain = (run(package, folder, joins=joins, only=sorted(failed)) for joins in (True, False))
        failed -= {name for name, result in again.items() if result.outcome != "failed"}
        anyway = failed & {name for name, result in plain.items() if result.outcome == "failed" and "::" in name}
    return Outcome(package, release_of(folder), len(counted), len(anyway), [result for result in counted if result.id in failed - anyway])


def part_of(outcome: Outcome) -> str:
    """The page's part about a package."""
    passed = outcome.tests - outcome.anyway - len(outcome.failed)
    lines = [
        f"## {outcome.package.replace('_', '-')} {outcome.release}\n",
        f"Of {outcome.tests} tests {passed} pass, {outcome.anyway} fail without the mixin too, and with it alone {len(outcome.failed)}.\n",
    ]
    reasons = [(result.id, rule) for result in sorted(outcome.failed, key=_id_of) for rule in RULES if rule.covers(result)]
    rows = [f"| `{test}` | {rule.why} | [{rule.page}]({rule.page}) |" for test, rule in reasons]
    return "\n".join([*lines, *(["| fails with it | why | page |", "|---|---|---|", *rows] if rows else [])]).strip() + "\n"


def _id_of(result: Result) -> str:
    return result.id


def parts(text: str) -> dict[str, str]:
    """The page's parts, by the names of their packages."""
    found = [f"## {part}".strip() + "\n" for part in text.split("\n## ")[1:]]
    return {part.split()[1].replace("-", "_"): part for part in found}


def named(part: str) -> list[str]:
    """The rows of a part, which name the tests that fail, and why. (How many others there are depends on what else is installed.)"""
    return [line for line in part.splitlines() if line.startswith("| `")]


def write(found: Iterable[Outcome]) -> None:
    """Write the page's parts about these packages."""
    known = parts(PAGE.read_text(encoding="utf-8")) | {one.package: part_of(one) for one in found}
    PAGE.write_text("\n".join([HEAD, *(known[name] for name in sorted(known))]), encoding="utf-8")


def wrong(found: Collection[Outcome]) -> list[str]:
    """What has no reason, and what the page does not say, or says and is not so."""
    said = parts(PAGE.read_text(encoding="utf-8"))
    failed = [result for one in found for result in one.failed]
    faults = unsaid(RULES) + [unexplained(result) for result in failed if not any(rule.covers(result) for rule in RULES)]
    for one in found:
        page, true = named(said.get(one.package, "")), named(part_of(one))
        faults += [f"the page lacks: {row}" for row in true if row not in page] + [f"not so: {row}" for row in page if row not in true]
    return faults


def report(packages: Collection[str] = TRIED, *, writes: bool, newest: bool) -> list[str]:
    """Run these packages' suites, print what they came to and return what is wrong. Write the page's parts about them, or compare these."""
    with tempfile.TemporaryDirectory() as folder:
        places = fetch(Path(folder), SDISTS, packages, newest=newest)
        found = [outcome_of(package, place) for package, place in sorted(places.items())]
    print(*map(part_of, found), sep="\n", flush=True)
    if writes:
        write(found)
    return wrong(found)
