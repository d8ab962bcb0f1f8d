"""Calls that several runs make at once, of which some have longer than others."""

import threading
from typing import Any

import pytest

from langchain_autotools import ToolExecutor, ToolPolicy
from tests.support.calls import Way, both_ways, call, error


@both_ways
@pytest.mark.parametrize("longer", [10, None])
def test_who_has_longer_runs_what_was_too_slow_for_another(run: Way, longer: float | None) -> None:
    """A follower does not inherit the timeout of a call that had less time; one that has no more does."""
    begun, runs = threading.Event(), []
    release = threading.Event()
    shared: dict[str, Any] = {}

    def slow() -> str:
        """Take longer than the first caller has."""
        runs.append(1)
        begun.set()
        if len(runs) == 1:
            release.wait(60)
        return "done"

    def executor(timeout: float | None) -> ToolExecutor:
        return ToolExecutor({"slow": slow}, policies={"slow": ToolPolicy(cache=shared, timeout=timeout)})

    found: dict[str, Any] = {}
    leader = threading.Thread(target=lambda: found.update(leader=run(executor(0.1), call("slow"))[0]))
    leader.start()
    begun.wait(60)
    others = [threading.Thread(target=lambda name=name, timeout=timeout: found.update({name: run(executor(timeout), call("slow"))[0]}))
              for name, timeout in (("short", 0.1), ("long", longer))]  # fmt: skip
    for thread in others:
        thread.start()
    for thread in (leader, *others):
        thread.join(60)
    release.set()
    assert error(found["leader"]) == "timed out after 0.1 s"
    assert (found["long"].message.content, len(runs)) == ("done", 2)
    assert found["short"].message.status == "error" or found["short"].message.content == "done"
