"""A policy that retries repeats no call whose outcome is unknown, unless the server or the policy says that it may be repeated."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from langchain_core.messages import ToolMessage

from langchain_autotools import McpServer, OutcomeUnknownError, RetryPolicy, ToolExecutor, ToolPolicy, mcp_server
from tests.unit.mcp_client.test_mcp_server import PROGRAM, Notes, asks

pytestmark = pytest.mark.further

RETRY = RetryPolicy(attempts=3, wait_scale=0)
EVERYTHING: dict[str, Any] = {"retry": RETRY, "retry_on": (Exception,)}


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    """The notes of this test's servers."""
    return Notes(tmp_path / "notes")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Ends this test's servers."""
    with ExitStack() as opened:
        yield opened


def server(stack: ExitStack, notes: Notes, **annotations: Any) -> McpServer:
    """A server that says this of the tools in which it dies, and of the one that takes too long."""
    otherwise = {name: {"annotations": annotations} for name in ("die", "wait")}
    notes.path.with_name("tools.json").write_text(json.dumps(otherwise))
    return stack.enter_context(mcp_server([sys.executable, str(PROGRAM), str(notes.path)]))


def executed(source: McpServer, name: str, policy: ToolPolicy, *, asynchronous: bool) -> ToolMessage:
    """The result of a call under a policy."""
    executor = ToolExecutor([source], policies={name: policy})
    results = asyncio.run(executor.aexecute_all(asks(name))) if asynchronous else executor.execute_all(asks(name))
    return results[0]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("annotations", "known", "times"),
    [
        ({}, {}, 1),
        ({"idempotentHint": False, "destructiveHint": True}, {}, 1),
        ({}, {"retry_on": (OutcomeUnknownError,)}, 1),
        ({}, {"rerun": True}, 3),
        ({"idempotentHint": True}, {}, 3),
        ({"readOnlyHint": True}, {}, 3),
        ({"idempotentHint": True}, {"rerun": False}, 1),
        ({"idempotentHint": "yes"}, {}, 1),
        ({"idempotentHint": True}, {"retry_on": (ConnectionError,)}, 1),
    ],
)
def test_a_call_in_which_the_server_dies(
    annotations: dict[str, Any], known: dict[str, Any], times: int, asynchronous: bool, stack: ExitStack, notes: Notes
) -> None:
    """It is repeated only where somebody says that it may be; the model is told that its outcome is unknown."""
    result = executed(server(stack, notes, **annotations), "die", ToolPolicy(**{**EVERYTHING, **known}), asynchronous=asynchronous)
    assert (notes.begun("die"), result.status) == (times, "error") and "interrupted, outcome unknown" in result.text


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(("annotations", "times"), [({}, 1), ({"readOnlyHint": True}, 3)])
def test_a_call_that_takes_too_long(annotations: dict[str, Any], times: int, asynchronous: bool, stack: ExitStack, notes: Notes) -> None:
    """The server may be at work still: that is likewise."""
    source = server(stack, notes, **annotations)
    result = executed(source, "wait", ToolPolicy(timeout=0.2, **EVERYTHING), asynchronous=asynchronous)
    ToolExecutor([source]).execute_all(asks("steps"))  # the server is done then with all that it was sent before
    assert "timed out" in result.text and notes.begun("wait") == times


def test_what_failed_for_sure_is_tried_again(stack: ExitStack, notes: Notes) -> None:
    """A failure that the server tells of has an outcome."""
    result = executed(server(stack, notes), "fail", ToolPolicy(**EVERYTHING), asynchronous=False)
    assert (result.text.count("no luck"), notes.begun("fail")) == (1, 3)


def test_equal_calls_that_wait_for_one_get_its_error(stack: ExitStack, notes: Notes) -> None:
    """A cache does not repeat it for them either, and keeps no error. The server ends while both wait."""
    executor = ToolExecutor([server(stack, notes)], policies={"wait": ToolPolicy(cache=True, cache_key=dict, **EVERYTHING)})

    async def run() -> list[ToolMessage]:
        running = asyncio.ensure_future(executor.aexecute_all(asks("wait", "wait")))  # begun in one turn of the loop
        while not notes.begun("wait"):
            await asyncio.sleep(0.01)
        os.kill(notes.processes[-1], signal.SIGKILL)
        return list(await running)

    results = asyncio.run(run())
    assert all("outcome unknown" in result.text for result in results) and notes.begun("wait") == 1
