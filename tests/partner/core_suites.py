"""Writes docs/core_tests.md: `python -m tests.partner.core_suites`, with the extra `partner` and a package index.

The suites of langchain-core, langchain's agents and langgraph-supervisor run twice: as they are, and with the mixin before every chat
model class that they define or take from core. What fails only the second time has a reason here.
"""

import os
import subprocess
import sys
import tempfile
from collections import Counter
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
NOT_TRIED = ("test_benchmark.py",)
"""Tests of how long something takes."""
OPTIONS = ["-q", "--tb=no", "-p", "joining_plugin", "-p", "no:cacheprovider", "-p", "no:anyio", "-o", "asyncio_mode=auto", "-n", "2"]

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

The test suites of langchain-core (the files that name a chat model), langchain (agents) and langgraph-supervisor, run twice in one
environment: as they are, and with `ToolsAndMessagesMixin` before every chat model class that a test defines or takes from core. Nothing
else is changed. `python -m tests.partner.core_suites` fetches the published sources, runs them and writes this page;
`pytest -m partner tests/partner/test_core_suites.py` checks it.

*fail anyway*: they fail without the mixin too (snapshots of other releases, for the most part). *fail with it*: these are named below.

| package | tests | fail anyway | fail with it |
|---|---:|---:|---:|
"""


@dataclass(frozen=True)
class Outcome:
    """What a suite came to.

    Attributes:
        package: The package.
        tests: How many tests passed or failed.
        anyway: How many fail without the mixin.
        failed: Those that fail only with it.
    """

    package: str
    tests: int
    anyway: int
    failed: Sequence[Result]


def run(package: str, folder: Path, *, joins: bool) -> dict[str, Result]:
    """Run a suite, its models joined or as they are; gives how each test went, by its id."""
    record, settings = folder / f"record{joins}.jsonl", folder / "settings.ini"
    settings.write_text("[pytest]\n", encoding="utf-8")
    files = [str(path.relative_to(folder)) for path in sorted((folder / TRIED[package]).rglob("test_*.py")) if path.name not in NOT_TRIED]
    if package == "langchain_core":
        files = [name for name in files if "ChatModel" in (folder / name).read_text(encoding="utf-8")]
    command = [sys.executable, "-m", "pytest", *OPTIONS, *FENCES, "-c", str(settings), "--rootdir", str(folder), *files]
    paths = os.pathsep.join([str(HERE / "inside"), str(REPOSITORY)])
    about = {"PARTNER_RECORD": str(record), "PARTNER_JOIN": "1" if joins else "", "PYTHONPATH": paths}
    subprocess.run(command, cwd=folder, env={**os.environ, **about}, capture_output=True, check=False, timeout=1800)
    lines = map(loads, record.read_text(encoding="utf-8").splitlines())
    found = (Result(package, line["id"].removeprefix("tests/unit_tests/"), line["outcome"], line.get("error", "")) for line in lines)
    return {result.id: result for result in found}


def outcome_of(package: str, folder: Path) -> Outcome:
    """Run a suite both ways."""
    plain, joined = (run(package, folder, joins=joins) for joins in (False, True))
    counted = [result for result in joined.values() if result.outcome in ("passed", "failed")]
    failed = {name for name, result in plain.items() if result.outcome == "failed"}
    new = [result for result in counted if result.outcome == "failed" and result.id not in failed]
    return Outcome(package, len(counted), len(failed), new)


def outcomes() -> list[Outcome]:
    """All suites, both ways."""
    with tempfile.TemporaryDirectory() as folder:
        return [outcome_of(package, place) for package, place in sorted(fetch(Path(folder), SDISTS).items())]


def unexplained(found: Iterable[Outcome]) -> list[Result]:
    """The failures that no rule names."""
    return [result for one in found for result in one.failed if not any(rule.covers(result) for rule in RULES)]


def text_of(found: Sequence[Outcome]) -> str:
    """The whole page."""
    releases = dict(line.split()[0].split("==") for line in SDISTS.read_text(encoding="utf-8").splitlines() if "==" in line)
    rows = []
    for one in found:
        name = one.package.replace("_", "-")
        rows.append(f"| {name} {releases[name]} | {one.tests} | {one.anyway} | {len(one.failed)} |")
    why = Counter((result.package, rule.why, rule.page) for one in found for result in one.failed for rule in RULES if rule.covers(result))
    reasons = [
        f"| {package.replace('_', '-')} | {number} | {text} | [{page}]({page}) |" for (package, text, page), number in sorted(why.items())
    ]
    table = ["", "## What fails with it", "", "| package | tests | why | page |", "|---|---:|---|---|", *reasons] if reasons else []
    return HEAD + "\n".join([*rows, *table]) + "\n"


if __name__ == "__main__":
    results = outcomes()
    PAGE.write_text(text_of(results), encoding="utf-8")
    for one in unexplained(results):
        print("unexplained:", one.package, one.id, one.error[:300])
    sys.exit(bool(unexplained(results)))
