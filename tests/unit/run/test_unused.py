"""What a run does not use costs it nothing: no function of these modules is entered while it runs."""

import ast
import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from langchain_autotools.executor import user_functions
from langchain_autotools.testing import ScriptedChatModel
from tests.support.entered import entered

PACKAGE = Path(sys.modules["langchain_autotools"].__file__ or "").parent
OPTIONAL = [
    *("executor/approvals.py", "executor/policies.py", "executor/context.py", "executor/handlers.py"),
    *("event_bus.py", "event_types.py", "event_reader.py", "run/event_emitter.py", "run/failover.py"),
]
"""Modules of approvals, policies, contexts, events, failover and handlers."""
OPTIONAL_NAMES = {
    "executor/pending.py": ("PendingCall", "Decision", "pending_calls", "shown_to_caller", "read_decisions", "digest_of"),
    "executor/steps.py": ("policy_steps", "_tries", "_repeatable", "_shared"),
    "executor/executor.py": ("_apply_policies",),
    "executor/results.py": ("shortened", "_cut"),
    "deadline.py": ("Cancel", "deadline_of", "checked_cancel"),
    "turn/accumulator.py": ("PartialCalls", "piece_chunk", "with_events", "keep_pieces", "pieces_of", "restart_chunk"),
    "messages/blocks.py": ("deltas_of", "_block_deltas"),
}
"""What is optional of modules that every run needs."""
CALLING = AIMessage("", tool_calls=[{"id": name, "name": "look", "args": {"at": name}} for name in ("Rome", "Oslo")])


def look(at: str) -> str:
    """Look at a place."""
    return f"{at} is quiet"


async def gaze(at: str) -> str:
    """Look at a place for long."""
    return f"{at} is quiet"


def reply(messages: Sequence[BaseMessage], **_: Any) -> Any:
    """Two calls, then an answer."""
    return "All quiet." if messages[-1].type == "tool" else CALLING


async def drain(chunks: Any) -> list[Any]:
    """All chunks."""
    return [chunk async for chunk in chunks]


RUNS: dict[str, Callable[[ScriptedChatModel], Any]] = {
    "invoke": lambda model: model.invoke("Look around."),
    "stream": lambda model: list(model.stream("Look around.")),
    "ainvoke": lambda model: asyncio.run(model.ainvoke("Look around.")),
    "astream": lambda model: asyncio.run(drain(model.astream("Look around."))),
}


@pytest.mark.parametrize("way", RUNS)
@pytest.mark.parametrize("tool", [look, gaze], ids=["synchronous", "asynchronous"])
def test_a_run_that_uses_none_of_it_enters_none_of_it(tool: Any, way: str) -> None:
    """Approvals, policies, contexts, cancelling, events, failover and handlers do nothing for a run without them: it has run once."""
    model = ScriptedChatModel(replies=reply, tools={"look": tool})
    user_functions._free.clear()  # those of other tests are not looked into
    with entered() as functions:
        RUNS[way](model)  # the first run gets the tools ready
        functions.clear()
        RUNS[way](model)
    assert (str(PACKAGE / "executor" / "executor.py"), "_read_calls") in functions
    optional = {str(PACKAGE / path) for path in OPTIONAL}
    named = {(str(PACKAGE / path), name) for path, names in OPTIONAL_NAMES.items() for name in names}
    assert sorted((file, name) for file, name in functions if file in optional or (file, name.partition(".")[0]) in named) == []


def test_what_is_optional_exists() -> None:
    """Every module and name of the lists does."""
    assert [path for path in OPTIONAL if not (PACKAGE / path).is_file()] == []
    for path, names in OPTIONAL_NAMES.items():
        tree = ast.parse((PACKAGE / path).read_text(encoding="utf-8"))
        assert {*names} <= {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
