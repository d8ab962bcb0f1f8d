"""Writes docs/middleware_tests.md: `python -m tests.partner middleware`.

LangChain's own tests of its middleware run with `create_agent(model, tools, middleware)` in the form of a model of ours that runs its tools
(`inside/middleware_plugin.py`). What a test wants of a graph has a reason here, and is named on the page.
"""

import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Collection
from json import loads
from pathlib import Path

from .core_suites import SDISTS
from .suites import FENCES, HERE, REPOSITORY, Result, fetch, release_of, settle
from .verdicts import GAP, STATED, Rule, Verdicts, judge

PAGE = REPOSITORY / "docs" / "middleware_tests.md"
TRIED = "tests/unit_tests/agents/middleware"
OPTIONS = ["-q", "--tb=no", "-p", "middleware_plugin", "-p", "no:cacheprovider", "-p", "no:anyio", "-o", "asyncio_mode=auto", "-n", "2"]
GRAPH = "needs a graph"
COLUMNS = ("passed", GRAPH, STATED, GAP)

_HOW_TO = "howto/middleware.md"
_OTHER_HOOKS = "is refused by name where the model is made"
_STATE = "`request.state` has only the messages"


def _rule(kind: str, why: str, says: str, *, error: str = "", tests: tuple[str, ...] = ()) -> Rule:
    return Rule(kind, why, "langchain", tests, error, _HOW_TO, says)


RULES = [
    _rule(GRAPH, "has hooks of an agent, or a state of its own: refused by name", _OTHER_HOOKS, error="which only LangChain's agents have"),
    _rule(GRAPH, "changes the agent's state by a command", _STATE, error="returns a command, which only LangChain's agents apply"),
    _rule(GRAPH, "looks at the agent's graph, its stored state or its stream of events", _OTHER_HOOKS, error="^NeedsGraph: the test asks"),
    _rule(GRAPH, "gives `create_agent` an argument that a model does not have", _STATE, error="^NeedsGraph: arguments of create_agent"),
    _rule(
        GRAPH,
        "reads what a graph streams",
        _STATE,
        error="^NeedsGraph: (the stream|arguments) of a graph",
        tests=("*test_emulation_call_stays*",),
    ),
    _rule(
        GRAPH,
        "stops at `interrupt`",
        "`interrupt`",
        error="^RuntimeError: Called get_config outside of a runnable context",
        tests=("*test_tool_retry.py::test_tool_retry_*interrupt*",),
    ),
    _rule(
        STATED, "brings tools with a request that the run does not have", "A tool that the run does not have is refused", error="adds tools"
    ),
    _rule(
        STATED,
        "has one of both twins, and the error is of another class",
        "works only in synchronous or only in asynchronous runs",
        error="runs need it$",
    ),
    _rule(
        STATED,
        "adds a message to the list of its request, which is the agent's own list there",
        "the history keeps none",
        error="^AssertionError",
        tests=("core/test_framework.py::test_on_model_call",),
    ),
    _rule(STATED, "has no hook at all", "has no effect and is refused", error="it has no effect$"),
    _rule(
        STATED, "answers with more than one AI message", "`response_format` and commands are refused", error="must return one AI message"
    ),
    _rule(
        STATED,
        "calls a synchronous run in an event loop, where the tests forbid to wait for a thread",
        "runs in a thread of its own",
        error="^BlockingError",
    ),
    _rule(
        STATED,
        "lets a tool's exception through, which is no exception of the run",
        "If the middleware lets it through, it becomes the error that the model reads",
        error="^Failed: DID NOT RAISE",
    ),
]

HEAD = """# LangChain's tests of its middleware

The unit tests that langchain {release} ships for its middleware, run with a shim: `create_agent(model, tools, middleware)` makes a model
by `with_tools(model, tools, middleware=...)`, which is asked as the agent would be. `python -m tests.partner middleware` fetches the
published sources, runs them and writes this page. {others:,} other tests call a middleware without an agent, and so without this package.

*needs a graph*: the test gives, changes or asserts the state of an agent's graph, or its middleware does. *stated difference*:
[Use LangChain's middleware](howto/middleware.md) says what is otherwise here. *gap*: a model could do it and does not yet.

| tests | passed | needs a graph | stated difference | gap |
|---:|---:|---:|---:|---:|
| {counts} |
"""


def run(folder: Path) -> tuple[list[Result], int]:
    """How each test went that makes an agent, and how many make none."""
    record, settings = folder / "record.jsonl", folder / "settings.ini"
    settings.write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", *OPTIONS, *FENCES, "-c", str(settings), "--rootdir", str(folder), TRIED]
    paths = os.pathsep.join([str(HERE / "inside"), str(REPOSITORY)])
    about = {"PARTNER_RECORD": str(record), "PYTHONPATH": paths}
    subprocess.run(command, cwd=folder, env={**os.environ, **about}, capture_output=True, check=False, timeout=1800)
    lines = [loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    own = [line for line in lines if line["agent"]]
    results = [Result("langchain", line["id"].removeprefix(f"{TRIED}/"), line["outcome"], line.get("error", "")) for line in own]
    return sorted(results, key=lambda one: one.id), len(lines) - len(own)


def text_of(found: Verdicts, others: int, release: str) -> str:
    """The whole page."""
    counts = found.outcomes["langchain"]
    numbers = [counts[column] for column in COLUMNS]
    parts = [HEAD.format(release=release, others=others, counts=" | ".join(map(str, [sum(numbers), *numbers])))]
    names: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for result, rule in found.explained:
        names[rule.kind, rule.why][result.id.partition("[")[0]] = None
    for (kind, why), tests in sorted(names.items()):
        number = sum(rule.why == why for _, rule in found.explained)
        parts.append(f"\n## {kind.capitalize()}: {why}\n\n{number} of the tests, with all their parameters:\n")
        parts += [f"- `{name}`" for name in sorted(tests)]
    return "\n".join(parts) + "\n"


def report(_: Collection[str], *, writes: bool, newest: bool) -> list[str]:
    """Run the tests, print what they came to and return what is wrong. Write the page, or compare it."""
    with tempfile.TemporaryDirectory() as folder:
        place = fetch(Path(folder), SDISTS, ["langchain"], newest=newest)["langchain"]
        results, others = run(place)
    found = judge(results, RULES)
    print("middleware:", dict(found.outcomes["langchain"]), flush=True)
    return found.faults if newest else found.faults + settle(PAGE, text_of(found, others, release_of(place)), writes=writes)
