"""Writes docs/core_tests.md: `python -m tests.partner.core_suites`, with the extra `partner` and a package index.

The suites of langchain-core, langchain's agents and langgraph-supervisor run with the mixin before every chat model class that they
define or take from core. What fails only with it has a reason here. With names of packages it is their suites alone; with `--check` the
page is compared, and not written.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from json import loads
from pathlib import Path

from .suites import FENCES, HERE, REPOSITORY, Result, fetch
from .verdicts import STATED, Rule

PAGE = REPOSITORY / "docs" / "core_tests.md"
SDISTS = HERE / "sdists_core.txt"
TRIED = {"langchain": "tests/unit_tests/agents", "langchain_core": "tests/unit_tests", "langgraph_supervisor": "tests"}
"""Where the tests of each package stand. Of langchain-core those files are run that name a chat model."""
NOT_TRIED = ("test_benchmark.py", "test_rate_limiting.py")
"""Tests of how long something takes."""
OPTIONS = ["-q", "--tb=no", "-p", "joining_plugin", "-p", "no:cacheprovider", "-p", "no:anyio", "-o", "asyncio_mode=auto"]

_BELOW = "tests/unit_tests/"
_V3 = "language_models/test_chat_model_v3_stream.py::"
RULES = [
    Rule(
        STATED,
        "the fragments of a call are held to the end of the turn, and then leave whole",
        "langchain_core",
        tests=(f"{_V3}TestToolCallsYieldDeltas::test_*",),
        page="own_model.md",
        says="the fragments of a call are held to the end of the turn",
    ),
    Rule(
        STATED,
        "arguments that cannot be read are marked, so that nothing completes them",
        "langchain_core",
        tests=(f"{_V3}TestStreamV2::test_stream_events_v3_malformed_tool_args_produce_invalid_tool_call",),
        page="own_model.md",
        says="arguments that cannot be read",
    ),
    Rule(
        STATED,
        "the mixin's fields are part of what identifies a model in a cache",
        "langchain_core",
        tests=("language_models/chat_models/test_cache.py::test_llm_representation_for_serializable",),
        page="own_model.md",
        says="Its fields are part of what identifies the model in LangChain's cache",
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

The test suites of langchain-core (the files that name a chat model), langchain (agents) and langgraph-supervisor, with
`ToolsAndMessagesMixin` before every chat model class that a test defines or takes from core. Nothing else is changed. What fails is run
once more by itself, and then without the mixin; what fails there too (snapshots of other releases, for the most part) is counted and not
named.

`.ci/run` runs langchain-core's suite beside that release of it: a failure that is not named here fails it, and so does a test that is
named and passes. `python -m tests.partner.core_suites` fetches the published sources, runs all suites and writes this page;
`python -m tests.partner.core_suites langchain_core` writes the part of one package. `pytest -m partner
tests/partner/test_core_suites.py` checks all parts.
"""


@dataclass(frozen=True)
class Outcome:
    """What a suite came to.

    Attributes:
        package: The package.
        tests: How many tests passed or failed.
        anyway: How many fail without the mixin too.
        failed: Those that fail only with it.
    """

    package: str
    tests: int
    anyway: int
    failed: Sequence[Result]


def run(package: str, folder: Path, *, joins: bool, only: Sequence[str] = ()) -> dict[str, Result]:
    """Run a suite, or these of its tests alone, its models joined or as they are; gives how each test went, by its id."""
    record, settings = folder / "record.jsonl", folder / "settings.ini"
    record.write_text("", encoding="utf-8")
    settings.write_text("[pytest]\n", encoding="utf-8")
    files = [str(path.relative_to(folder)) for path in sorted((folder / TRIED[package]).rglob("test_*.py")) if path.name not in NOT_TRIED]
    if package == "langchain_core":
        files = [name for name in files if "ChatModel" in (folder / name).read_text(encoding="utf-8")]
    tests = [name if (folder / name.partition("::")[0]).exists() else _BELOW + name for name in only]
    command = [sys.executable, "-m", "pytest", *OPTIONS, *FENCES, "-c", str(settings), "--rootdir", str(folder), *(tests or files)]
    paths = os.pathsep.join([str(HERE / "inside"), str(REPOSITORY)])
    about = {"PARTNER_RECORD": str(record), "PARTNER_JOIN": "1" if joins else "", "PYTHONPATH": paths}
    made = subprocess.run(command, cwd=folder, env={**os.environ, **about}, capture_output=True, check=False, timeout=1800, text=True)
    lines = list(map(loads, record.read_text(encoding="utf-8").splitlines()))
    if not lines:
        raise RuntimeError(f"no test of {package} ran: {made.stdout[-2000:]}{made.stderr[-2000:]}")
    found = (Result(package, line["id"].removeprefix(_BELOW), line["outcome"], line.get("error", "")) for line in lines)
    return {result.id: result for result in found}


def outcome_of(package: str, folder: Path) -> Outcome:
    """Run a suite with the mixin; what fails once more by itself, since the machine may have been busy, and then without the mixin."""
    counted = [result for result in run(package, folder, joins=True).values() if result.outcome in ("passed", "failed")]
    failed, anyway = {result.id for result in counted if result.outcome == "failed"}, set[str]()
    if failed:
        again, plain = (run(package, folder, joins=joins, only=sorted(failed)) for joins in (True, False))
        failed -= {name for name, result in again.items() if result.outcome != "failed"}
        anyway = failed & {name for name, result in plain.items() if result.outcome == "failed"}
    return Outcome(package, len(counted), len(anyway), [result for result in counted if result.id in failed - anyway])


def outcomes(packages: Iterable[str] = TRIED) -> list[Outcome]:
    """These packages' suites."""
    with tempfile.TemporaryDirectory() as folder:
        return [outcome_of(package, place) for package, place in sorted(fetch(Path(folder), SDISTS, packages).items())]


def unexplained(found: Iterable[Outcome]) -> list[Result]:
    """The failures that no rule names."""
    return [result for one in found for result in one.failed if not any(rule.covers(result) for rule in RULES)]


def part_of(outcome: Outcome) -> str:
    """The page's part about a package."""
    releases = dict(line.split()[0].split("==") for line in SDISTS.read_text(encoding="utf-8").splitlines() if "==" in line)
    name = outcome.package.replace("_", "-")
    passed = outcome.tests - outcome.anyway - len(outcome.failed)
    lines = [
        f"## {name} {releases[name]}\n",
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


def wrong(found: Iterable[Outcome]) -> list[str]:
    """What the page does not say, or says and is not so."""
    said = parts(PAGE.read_text(encoding="utf-8"))
    faults = [f"no reason: {result.package} {result.id}: {result.error[:300]}" for result in unexplained(found)]
    for one in found:
        page, true = named(said.get(one.package, "")), named(part_of(one))
        faults += [f"the page lacks: {row}" for row in true if row not in page] + [f"not so: {row}" for row in page if row not in true]
    return faults


def main() -> int:
    """Run suites and write their parts of the page, or check these."""
    parser = argparse.ArgumentParser(prog="python -m tests.partner.core_suites")
    parser.add_argument("packages", nargs="*", help=f"of {', '.join(TRIED)}; all of them by default")
    parser.add_argument("--check", action="store_true", help="compare with the page in place of writing it")
    asked = parser.parse_args()
    results = outcomes(asked.packages or TRIED)
    print("\n".join(map(part_of, results)))
    if not asked.check:
        write(results)
    faults = wrong(results)
    print(*faults, sep="\n")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
