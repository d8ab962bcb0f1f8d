"""Every kind of event says how it is written, and every consumer that shows events names every kind, in a table that is its dispatch."""

import ast
import shutil
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import pytest

import langchain_autotools
from langchain_autotools import event_types
from langchain_autotools.event_types import RunEvent
from tests.event_reference import PAGE, written
from tests.support.trees import nodes_of

pytestmark = pytest.mark.house

PACKAGE = Path(langchain_autotools.__file__).parent
DOCS = PACKAGE.parent / "docs"
CONSUMERS = {"AI SDK", "AG-UI", "pages, notebooks and terminals"}
SINGLE_KINDS = {
    "durable/conversation_runs.py": "picks the messages out of what a run has emitted",
    "durable/runs.py": "raises what a run has failed with, behind its event",
    "encoders/ai_sdk_messages.py": "a run of a stored history is a message that it made, or the calls that wait behind it",
    "run/event_emitter.py": "a cut that was told is why the request behind it leaves the prefix of the one before",
    "showing/view_model.py": "the end of a run in the view model is one of two kinds",
}
"""The modules that look for events of one kind beside the tables, and why."""


class Table(NamedTuple):
    """A table as the source has it; `kinds` is None where it is another consumer's table with entries of its own."""

    consumer: str
    kinds: set[str] | None


def subclasses(kind: type[RunEvent]) -> Iterator[str]:
    """The names of all kinds of events below one."""
    for one in kind.__subclasses__():
        if one.__module__.startswith("langchain_autotools"):
            yield one.__name__
            yield from subclasses(one)


def kinds_of(package: Path) -> set[str]:
    """The names of the kinds of events that a package defines, wherever it does."""
    classes = [node for path in sources(package, "RunEvent") for node in nodes_of(path) if isinstance(node, ast.ClassDef)]
    known, before = {"RunEvent"}, 0
    while len(known) > before:
        before = len(known)
        known |= {one.name for one in classes if any(ast.unparse(base).split(".")[-1] in known for base in one.bases)}
    return known - {"RunEvent"}


def tables_of(package: Path) -> list[Table]:
    """The tables of a package's consumers."""
    calls = [node for path in sources(package, "EventTable(", "EventTable[") for node in nodes_of(path) if isinstance(node, ast.Call)]
    return [
        table(call) for call in calls if name_of(call.func.value if isinstance(call.func, ast.Subscript) else call.func) == "EventTable"
    ]


def name_of(node: ast.expr) -> str | None:
    """The name that an expression is; None of any other expression."""
    return node.id if isinstance(node, ast.Name) else None


def table(call: ast.Call) -> Table:
    """The table that a call makes."""
    consumer, entries = call.args
    assert isinstance(consumer, ast.Constant) and isinstance(entries, ast.Dict), ast.unparse(call)
    if any(key is None for key in entries.keys):
        return Table(str(consumer.value), None)
    return Table(str(consumer.value), {ast.unparse(key).rpartition(".")[2] for key in entries.keys if key is not None})


def sources(package: Path, *words: str) -> list[Path]:
    """The modules of a package that have one of the words."""
    return [path for path in sorted(package.rglob("*.py")) if any(word in path.read_text(encoding="utf-8") for word in words)]


def undescribed(package: Path) -> list[str]:
    """The kinds that do not say how they are written."""
    classes = {node.name: node for path in sources(package, "RunEvent") for node in nodes_of(path) if isinstance(node, ast.ClassDef)}
    return [kind for kind in sorted(kinds_of(package)) if not any(map(is_description, classes[kind].body))]


def is_description(node: ast.stmt) -> bool:
    """Whether a statement of a class is `wire = ...`."""
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "wire"


def gaps(package: Path) -> list[str]:
    """What is missing: `wire: kind` for each kind without a description, `consumer: kind` for each that a table does not name."""
    kinds = kinds_of(package)
    return [f"wire: {kind}" for kind in undescribed(package)] + [
        f"{one.consumer}: {kind}" for one in tables_of(package) if one.kinds is not None for kind in sorted(kinds - one.kinds)
    ]


def test_every_consumer_names_every_kind_of_event() -> None:
    """Also those of which it shows nothing; the tables name no others."""
    assert gaps(PACKAGE) == []
    whole = [one for one in tables_of(PACKAGE) if one.kinds is not None]
    assert {one.consumer for one in whole} == CONSUMERS and len(whole) == len(CONSUMERS)
    kinds = kinds_of(PACKAGE)
    assert kinds == set(subclasses(RunEvent)) and all(one.kinds == kinds for one in whole)


def test_every_description_is_of_its_kind() -> None:
    """No two have one name; the fields that it names are the kind's, and the properties too."""
    kinds = RunEvent.__subclasses__()
    wires = {kind: kind.wire for kind in kinds if kind.wire is not None}
    assert len({wire.name for wire in wires.values()}) == len(wires) == len(kinds_of(PACKAGE))
    for kind, wire in wires.items():
        assert {*wire.brief, *wire.absent, *wire.renamed} <= {one.name for one in fields(kind)}
        assert all(isinstance(getattr(kind, name), property) for name in wire.also)


def test_a_kind_that_is_added_is_missed_at_every_consumer(tmp_path: Path) -> None:
    """On a copy of the package in which a turn's start is an event of its own."""
    copy = tmp_path / "langchain_autotools"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    with (copy / "event_types.py").open("a", encoding="utf-8") as module:
        module.write('\n\n@dataclass(frozen=True, kw_only=True)\nclass TurnStarted(RunEvent):\n    """A turn begins."""\n\n    turn: int\n')
    assert sorted(gaps(copy)) == sorted(f"{consumer}: TurnStarted" for consumer in {*CONSUMERS, "wire"})


def test_no_consumer_looks_for_kinds_of_events_beside_its_table() -> None:
    """A chain of `isinstance` or of `case` would pass over a new kind in silence."""
    kinds = kinds_of(PACKAGE)
    beside = set()
    for path in sources(PACKAGE, *kinds):
        for node in nodes_of(path):
            is_check = isinstance(node, ast.Call) and name_of(node.func) == "isinstance"
            looked_for = node.args[1] if is_check and isinstance(node, ast.Call) else node.cls if isinstance(node, ast.MatchClass) else None
            if looked_for is not None and {name.split(".")[-1].strip() for name in ast.unparse(looked_for).split("|")} & kinds:
                beside.add(path.relative_to(PACKAGE).as_posix())
    assert beside == set(SINGLE_KINDS)


def test_every_kind_of_event_is_public_and_documented() -> None:
    """In its module, in the reference, which is made from the classes, and in the list of the page on events."""
    reference, page = PAGE.read_text(encoding="utf-8"), (DOCS / "events.md").read_text(encoding="utf-8")
    assert reference == written(reference), "python -m tests.event_reference --write"
    for kind in kinds_of(PACKAGE):
        assert kind in event_types.__all__
        assert f"::: langchain_autotools.event_types.{kind}\n" in reference and f"\n| `{kind}` |" in page
