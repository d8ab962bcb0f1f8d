"""What a run does not use costs it nothing: no function of these modules is entered while it runs."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from langchain_autotools.executor.workers import threads
from langchain_autotools.testing import ScriptedChatModel
from tests.support.entered import entered

PACKAGE = Path(sys.modules["langchain_autotools"].__file__ or "").parent
OPTIONAL = [
    *(
        "executor/approval/approvals.py",
        "executor/approval/pending.py",
        "executor/policy/policies.py",
        "executor/policy/attempts.py",
        "executor/policy/cache.py",
    ),
    *("executor/policy/shortening.py", "executor/context.py", "cancelling.py"),
    *("event_bus.py", "event_types.py", "event_reader.py", "run/event_emitter.py", "turn/partial_calls.py", "messages/deltas.py"),
    *("run/failover.py", "run/failover_models.py", "run/failover_rules.py", "run/first_token.py", "executor/handlers.py"),
]
"""What approvals, policies, contexts, cancelling, events, failover and handlers are made of."""
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
    threads._free.clear()  # those of other tests are not looked into
    with entered() as functions:
        RUNS[way](model)  # the first run gets the tools ready
        functions.clear()
        RUNS[way](model)
    assert (str(PACKAGE / "executor" / "plan.py"), "read_calls") in functions
    optional = {str(PACKAGE / path) for path in OPTIONAL}
    assert [path for path in OPTIONAL if not (PACKAGE / path).is_file()] == []
    assert sorted((file, name) for file, name in functions if file in optional) == []
