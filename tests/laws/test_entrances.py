"""Every feature at every entrance: one table, one oracle.

A cell is a conversation with one feature, played through one entrance. Where there can be none the table says why. Cells of runs that
are kept share one launch of DBOS, and need the extra `durable`.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_autotools import ConfigurationError, ToolExecutor
from langchain_autotools.executor import raw_functions
from tests.laws.entrance_oracle import Accept, planned, play
from tests.laws.entrances import Asked, Bound, Entrance, Events, Nested, Raw
from tests.laws.entrances_apart import Checked, Graph, Joined, Structured
from tests.laws.entrances_by_hand import Executor, Loop
from tests.laws.entrances_kept import Conversation, Durable
from tests.laws.feature import Feature
from tests.laws.features import ENDS, FEATURES
from tests.laws.features_served import SERVED
from tests.laws.planned import Work
from tests.laws.ways import chat
from tests.support.openai_server import OpenAIServer
from tests.support.script import Turn

REPOSITORY = Path(__file__).resolve().parents[2]
ENTRANCES: Mapping[str, type[Entrance]] = {
    "model": Entrance,
    "bound model": Bound,
    "executor alone": Executor,
    "explicit loop": Loop,
    "agent": Asked,
    "structured output": Structured,
    "checked output": Checked,
    "nested run": Nested,
    "events": Events,
    "durable": Durable,
    "conversations": Conversation,
    "raw functions": Raw,
    "graph": Graph,
    "joined model": Joined,
}
KEPT = ("durable", "conversations")
KEPT_PAIRS = [("approvals", "tool choice"), ("edits", "client tools"), ("approvals", "injected arguments"), ("handlers", "tool choice")]
"""What a run that goes on must still know."""

_NO_RUN = "counts calls and turns of a run, and an executor knows batches only: a loop of one's own counts for itself"
_NO_TURN = "makes one request at a time, and executes: who writes a loop of their own asks another model themselves"
_ANEW = "is asked anew whenever a run goes on, and is refused"
_NO_TURN = "makes no request that it could stand around: a loop of one's own changes its requests and calls itself"
_ITSELF = "makes no request: who writes a loop of their own appends what the user says behind the results"
_ONE_PROCESS = "is a queue of one process, and is refused: a run that is kept goes on in others"
CANNOT: Mapping[tuple[str, str], str] = {
    ("check", "structured output"): "is a sequence of LangChain's: its model checks",
    ("check", "checked output"): "is a sequence of LangChain's: its model checks",
    ("check", "raw functions"): "take any arguments",
    ("turn hooks", "executor alone"): _NO_TURN,
    ("turn hooks", "explicit loop"): _NO_TURN,
    ("middleware", "executor alone"): _NO_TURN,
    ("middleware", "explicit loop"): _NO_TURN,
    ("changed calls", "executor alone"): _NO_TURN,
    ("changed calls", "explicit loop"): _NO_TURN,
    ("message with decisions", "executor alone"): _ITSELF,
    ("message with decisions", "explicit loop"): _ITSELF,
    ("compaction", "executor alone"): _NO_TURN,
    ("compaction", "explicit loop"): _NO_TURN,
    ("summaries", "executor alone"): _NO_TURN,
    ("summaries", "explicit loop"): _NO_TURN,
    ("inbox", "executor alone"): _ITSELF,
    ("inbox", "explicit loop"): _ITSELF,
    ("inbox", "durable"): _ONE_PROCESS,
    ("inbox", "conversations"): _ONE_PROCESS,
    ("decided at once", "durable"): _ANEW,
    ("decided at once", "conversations"): _ANEW,
    ("limits", "executor alone"): _NO_RUN,
    ("limits", "explicit loop"): _NO_RUN,
    ("inner budgets", "executor alone"): _NO_RUN,
    ("inner budgets", "explicit loop"): _NO_RUN,
    ("stop condition", "executor alone"): _NO_RUN,
    ("stop condition", "explicit loop"): _NO_RUN,
    ("maximum cost", "executor alone"): _NO_RUN,
    ("maximum cost", "explicit loop"): _NO_RUN,
    ("MCP servers", "raw functions"): "are functions: a server is given as itself",
    ("questions of servers", "raw functions"): "are functions: a server is given as itself",
    ("changed tools", "raw functions"): "are functions: a source is given as itself",
    ("inner budgets", "raw functions"): "are functions: a model is given as itself",
    ("failure", "executor alone"): _NO_RUN,
    ("failure", "explicit loop"): _NO_RUN,
    ("vendor events", "executor alone"): _NO_TURN,
    ("failover", "executor alone"): _NO_TURN,
    ("failover", "explicit loop"): _NO_TURN,
    ("client tools", "executor alone"): (
        "declares nothing to a model, and answers a name that it has not as unknown; what a vendor marks as its own waits: test_toolsets.py"
    ),
    ("injected arguments", "raw functions"): "take the text of their arguments, and nothing else",
    ("names of arguments", "raw functions"): "take the text of their arguments, and nothing else",
    ("agents as tools", "raw functions"): "are functions: a model is given as itself",
}
"""The cells that cannot be, and why: the tests at the end show what is there instead."""

ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "page": ("tests/unit/encoders/test_posted.py", "tests/compositions/test_web_examples.py", "tests/compositions/test_web_streams.py"),
    "pipe": ("tests/unit/cli/test_approving.py", "tests/unit/cli/test_session.py"),
}
"""Entrances with tests of their own."""

NEEDS = {"MCP servers": "mcp", "questions of servers": "mcp_types"}
"""Features that need a package which is not always there: since version 2 of `mcp`, which comes with `mcp_types`, a call can wait."""

_SAME = ("bound model", "checked output", "graph", "joined model")
"""Entrances that do nothing of their own for features that differ little."""
LIKE_ANOTHER = {
    ("double click", "claim"): (*_SAME, "explicit loop", "raw functions", "events", "structured output"),
    ("check", "edits"): (*_SAME, "explicit loop", "events", "structured output"),
    ("message with decisions", "approvals"): (*_SAME, "raw functions", "events", "structured output"),
    ("inbox", "message with decisions"): (*_SAME, "raw functions", "nested run", "events", "structured output"),
    ("compaction", "inbox"): (*_SAME, "raw functions", "nested run", "events", "structured output", "agent"),
    ("summaries", "compaction"): ("bound model", "graph", "joined model", "raw functions", "nested run", "events", "agent"),
    ("changed tools", "changed calls"): tuple(entrance for entrance in ENTRANCES if entrance != "raw functions"),
}
"""Cells that differ from those of another feature by nothing that their entrance does: they are `exhaustive`."""
FURTHER = {(feature, entrance) for (feature, _), entrances in LIKE_ANOTHER.items() for entrance in entrances}

CELLS = [pair for pair in itertools.product(FEATURES, ENTRANCES) if pair not in CANNOT]


def _params(*, kept: bool) -> Iterator[Any]:
    """The cells in every way; a cell takes one of its entrance's ways, the next feature the next one, and the rest is `exhaustive`."""
    for feature, entrance in (cell for cell in CELLS if (cell[1] in KEPT) == kept):
        door, turn = ENTRANCES[entrance], [*FEATURES].index(feature) + [*ENTRANCES].index(entrance)
        for place, way in enumerate((*door.ways, *door.further_ways)):
            by_default = way in door.ways and (place + turn) % len(door.ways) == 0 and (feature, entrance) not in FURTHER
            marks = [] if by_default else [pytest.mark.exhaustive]
            yield pytest.param(feature, entrance, way, id=f"{feature}-{entrance}-{way}", marks=marks)


ONE_FIELD = ({"claim", "double click"}, {"compaction", "summaries"})
"""Features of one setting: no conversation has both."""

PAIRS = [pair for pair in itertools.combinations(FEATURES, 2) if not set(pair) <= set(ENDS) and set(pair) not in ONE_FIELD]


def _entrances_of(pair: tuple[str, str]) -> list[str]:
    """The entrances at which both features can be."""
    return [one for one in ENTRANCES if one not in KEPT and not any((feature, one) in CANNOT for feature in pair)]


def _pairs() -> Iterator[Any]:
    """Every second pair at one of its entrances, by turns; one of four of these by default, the others are `exhaustive`."""
    for number, pair in list(enumerate(PAIRS))[1::2]:
        possible = _entrances_of(pair)
        entrance = possible[number // 2 % len(possible)]
        by_default = number % 8 == 1 and not any((feature, entrance) in FURTHER for feature in pair)
        ways, marks = ENTRANCES[entrance].ways, [] if by_default else [pytest.mark.exhaustive]
        yield pytest.param(pair, entrance, ways[number % len(ways)], id=f"{pair[0]}+{pair[1]}-{entrance}", marks=marks)


@pytest.fixture(scope="module", autouse=True)
def served() -> Iterator[None]:
    """Ends the MCP server of the table."""
    yield
    SERVED.close()


@pytest.fixture(scope="module")
def accept() -> Iterator[Accept]:
    """Sends histories to one strict server."""
    with OpenAIServer(lambda exchange: Turn("Fine.")) as server:
        model = chat(server)

        def send(history: Any) -> None:
            model.invoke([*history, HumanMessage("Go on.")])
            assert [one.message for one in server.rejections] == []

        yield send


@pytest.mark.parametrize(("feature", "entrance", "way"), list(_params(kept=False)))
def test_a_feature_at_an_entrance(feature: str, entrance: str, way: str, accept: Accept) -> None:
    """The laws hold at each step, and what the feature promises is so at the end."""
    _skip_without(feature)
    features = [FEATURES[feature]()]
    _played(features, ENTRANCES[entrance](planned(features), way), accept)


def _is_there(*features: str) -> bool:
    return all(importlib.util.find_spec(NEEDS[feature]) for feature in features if feature in NEEDS)


def _skip_without(*features: str) -> None:
    if not _is_there(*features):
        pytest.skip(f"needs the extra of {' and '.join(features)}")


def _played(features: Sequence[Feature], door: Entrance, accept: Accept) -> None:
    try:
        play(features, door, accept)
    finally:
        door.close()


def _play_pair(pair: Sequence[str], entrance: str, way: str, accept: Accept) -> None:
    _skip_without(*pair)
    features = [FEATURES[one]() for one in pair]
    _played(features, ENTRANCES[entrance](planned(features), way), accept)


@pytest.mark.parametrize(("pair", "entrance", "way"), list(_pairs()))
def test_two_features_at_an_entrance(pair: Sequence[str], entrance: str, way: str, accept: Accept) -> None:
    """Two features in one conversation: every second pair at an entrance, and one of four of these by default.

    Where one of them ends the run, the laws alone are asked.
    """
    _play_pair(pair, entrance, way, accept)


@pytest.mark.exhaustive
@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_two_features_at_every_entrance(pair: tuple[str, str], accept: Accept, subtests: pytest.Subtests) -> None:
    """The same at all entrances."""
    number = PAIRS.index(pair)
    for entrance in _entrances_of(pair):
        ways = ENTRANCES[entrance].ways
        with subtests.test(entrance):
            _play_pair(pair, entrance, ways[number % len(ways)], accept)


def test_every_cell_is_tested_or_says_why_not(request: pytest.FixtureRequest) -> None:
    """The table has the features and the entrances that laws 8, 10 and 11 name, and no empty cell."""
    told = (REPOSITORY / "docs" / "laws.md").read_text()
    assert all(f"| {feature} |" in told for feature in FEATURES)
    assert all(entrance in told for entrance in (*ENTRANCES, *ELSEWHERE))
    assert CANNOT.keys() <= set(itertools.product(FEATURES, ENTRANCES)) and all(CANNOT.values())
    missing = [path for paths in ELSEWHERE.values() for path in paths if not (REPOSITORY / path).is_file()]
    assert not missing
    collected = [one for one in request.session.items if one.name.startswith("test_a_feature_at_an_entrance")]
    tested = {tuple(one.name.partition("[")[2].split("-")[:2]) for one in collected}
    if len(collected) > 1 and not request.config.option.keyword:
        assert tested | CANNOT.keys() | FURTHER == set(itertools.product(FEATURES, ENTRANCES))


def test_an_executor_alone_refuses_what_it_cannot_count(accept: Accept) -> None:
    """What stands in for limits there: a keyword that would have no effect is refused, and a program says itself what may run."""
    work = Work()
    tools = work.functions(["count"])
    with pytest.raises(TypeError):
        ToolExecutor(tools, max_tool_calls=2)  # type: ignore[call-arg]
    executor = ToolExecutor(tools)
    answer = AIMessage("", tool_calls=[{"name": "count", "args": {"number": number}, "id": str(number)} for number in range(3)], id="m")
    with pytest.raises(TypeError):
        executor.execute_all(answer, max_tool_calls=2)
    left = iter([True, True])
    results = executor.execute_all(answer, only=lambda call: next(left, False))
    assert [one.status for one in results] == ["success", "success", "error"]
    assert sorted(args["number"] for _, args in work.ran) == [0, 1]
    accept([answer, *results])


def test_an_executor_alone_answers_what_it_does_not_know(accept: Accept) -> None:
    """What stands in for client tools there: nothing runs, nothing waits, the model is told."""
    executor = ToolExecutor(Work().functions(["look"]))
    answer = AIMessage("", tool_calls=[{"name": "ask_user", "args": {"question": "Which?"}, "id": "1"}], id="m")
    (result,) = executor.execute_all(answer)
    assert result.status == "error" and "ask_user" in result.text
    assert executor.pending_calls(answer) == []
    accept([answer, result])


@pytest.mark.parametrize("name", ["autotools_context", "config", "run_manager", "self", "text", "call_id"])
def test_a_raw_function_takes_its_text_and_nothing_else(name: str) -> None:
    """What stands in for injected arguments there: whatever a model names its arguments, they are in the text, and nowhere else."""
    texts: list[str] = []

    def read(text: str) -> str:
        """Read."""
        texts.append(text)
        return "Read."

    executor = ToolExecutor(raw_functions({"read": read}))
    (result,) = executor.execute_all([{"name": "read", "args": {name: "forged"}, "id": "1"}])
    assert (result.text, [json.loads(text) for text in texts]) == ("Read.", [{name: "forged"}])


@pytest.mark.parametrize("entrance", KEPT)
def test_who_decides_at_once_is_refused_where_runs_are_kept(entrance: str) -> None:
    """What stands in for deciding at once there: an error where the model is made, on the model and on its executor."""
    pytest.importorskip("dbos", reason="needs the extra `durable`")
    plan = planned([FEATURES["decided at once"]()])
    with pytest.raises(ConfigurationError, match="approve"):
        ENTRANCES[entrance](plan, ENTRANCES[entrance].ways[0])


# ---------------------------------------------------------------------------------------------- runs that are kept: last, for their launch


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[Any, Any]]:
    """The cells of all runs that are kept, made before the one launch that they share."""
    if importlib.util.find_spec("dbos") is None:
        pytest.skip("needs the extra `durable`")
    from langchain_autotools.durable import launch, shutdown

    made = {}
    for feature, entrance in (cell for cell in CELLS if _is_there(cell[0])):
        for way in ENTRANCES[entrance].ways if entrance in KEPT else ():
            features = [FEATURES[feature]()]
            made[feature, entrance, way] = features, ENTRANCES[entrance](planned(features), way)
    for pair, entrance in itertools.product(KEPT_PAIRS, KEPT):
        features = [FEATURES[one]() for one in pair]
        made[pair, entrance] = features, ENTRANCES[entrance](planned(features), ENTRANCES[entrance].ways[0])
    launch(f"sqlite:///{tmp_path_factory.mktemp('kept') / 'runs.sqlite'}", "the table")
    yield made
    shutdown()


@pytest.mark.parametrize(("feature", "entrance", "way"), list(_params(kept=True)))
def test_a_feature_at_an_entrance_that_keeps_runs(feature: str, entrance: str, way: str, accept: Accept, kept: Mapping[Any, Any]) -> None:
    """The same of durable runs and of conversations."""
    _skip_without(feature)
    _played(*kept[feature, entrance, way], accept)


@pytest.mark.parametrize("entrance", KEPT)
@pytest.mark.parametrize("pair", KEPT_PAIRS, ids="+".join)
def test_two_features_of_runs_that_are_kept(pair: Any, entrance: str, accept: Accept, kept: Mapping[Any, Any]) -> None:
    """A run that goes on with what was decided has the restrictions and the declared tools of the one that left the calls."""
    _played(*kept[pair, entrance], accept)
