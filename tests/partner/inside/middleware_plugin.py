"""Runs inside a test run of LangChain's own: `create_agent(model, tools, middleware)` makes a model of ours that runs its tools.

What it returns is asked as an agent is, with a state that has messages alone.
"""

import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from langchain import agents
from langchain.agents import factory
from langchain_core.messages import SystemMessage, convert_to_messages

from langchain_autotools import new_messages, with_tools

RECORD = os.environ["PARTNER_RECORD"]
WITHOUT_EFFECT = frozenset({"cache", "checkpointer", "debug", "name", "store", "version"})
"""Arguments of `create_agent` that say nothing of one conversation in one process."""

made: list[str] = []
"""What the running test has made of `create_agent`."""


class NeedsGraph(Exception):
    """A test wants what only a graph has."""


class Agent:
    """A model of ours, asked as an agent is."""

    def __init__(self, given: Any, model: Any, system: Any) -> None:
        self._given = given
        self._model = model
        self._system = [SystemMessage(system)] if isinstance(system, str) else [system] if system is not None else []

    def __getattr__(self, name: str) -> Any:
        raise NeedsGraph(f"the test asks an agent for {name!r}")

    def _messages(self, state: Any) -> list[Any]:
        if not isinstance(state, Mapping) or state.keys() - {"messages"}:
            raise NeedsGraph(f"the state of an agent: {type(state).__name__} {list(state) if isinstance(state, Mapping) else ''}")
        return list(convert_to_messages(state["messages"] if isinstance(state["messages"], list) else [state["messages"]]))

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """What the test's model counts in its fields is counted by the copy that runs the tools: the test looks at its own."""
        try:
            yield
        finally:
            self._given.__dict__.update({name: self._model.__dict__[name] for name in self._given.__dict__})

    def invoke(self, state: Any, config: Any = None, **keywords: Any) -> dict[str, Any]:
        """The messages of a conversation and those of its run."""
        messages = self._messages(state)
        with self._counted():
            run = self._model.invoke([*self._system, *messages], _config(config, keywords))
        return {"messages": [*messages, *new_messages(run)]}

    async def ainvoke(self, state: Any, config: Any = None, **keywords: Any) -> dict[str, Any]:
        """The same, asynchronously."""
        messages = self._messages(state)
        with self._counted():
            run = await self._model.ainvoke([*self._system, *messages], _config(config, keywords))
        return {"messages": [*messages, *new_messages(run)]}

    def stream(self, state: Any, config: Any = None, *, stream_mode: Any = None, **keywords: Any) -> Iterator[Any]:
        """The chunks of a run, where the messages are wanted."""
        for chunk in self._model.stream([*self._system, *self._messages(state)], _streamed(config, stream_mode, keywords)):
            yield chunk, {}

    async def astream(self, state: Any, config: Any = None, *, stream_mode: Any = None, **keywords: Any) -> AsyncIterator[Any]:
        """The same, asynchronously."""
        async for chunk in self._model.astream([*self._system, *self._messages(state)], _streamed(config, stream_mode, keywords)):
            yield chunk, {}


def _config(config: Any, keywords: Mapping[str, Any]) -> Any:
    if keywords:
        raise NeedsGraph(f"arguments of a graph's run: {sorted(keywords)}")
    return config


def _streamed(config: Any, mode: Any, keywords: Mapping[str, Any]) -> Any:
    if mode != "messages":
        raise NeedsGraph(f"the stream of a graph: {mode!r}")
    return _config(config, keywords)


class Refused:
    """An agent that a test file makes outside of a test, and that could not be made: whoever uses it gets the error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        made.append("agent")
        raise self._error


def create_agent(model: Any, tools: Any = None, *, system_prompt: Any = None, middleware: Sequence[Any] = (), **others: Any) -> Any:
    """A model of ours with these tools and this middleware."""
    made.append("agent")
    given = sorted(name for name, value in others.items() if value is not None and name not in WITHOUT_EFFECT)
    try:
        if given:
            raise NeedsGraph(f"arguments of create_agent: {given}")
        return Agent(model, with_tools(model, list(tools or ()), middleware=list(middleware), no_progress=None), system_prompt)
    except Exception as error:
        if "PYTEST_CURRENT_TEST" in os.environ:
            raise
        return Refused(error)


agents.create_agent = factory.create_agent = create_agent  # type: ignore[assignment]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Write down what a test that makes an agent came to."""
    outcome = yield
    report = outcome.get_result()
    if call.when == "teardown" or (call.when == "setup" and report.passed):
        return
    line = {"id": item.nodeid, "outcome": "xfailed" if hasattr(report, "wasxfail") else report.outcome, "agent": bool(made)}
    if report.failed and call.excinfo:
        line["error"] = f"{call.excinfo.typename}: {call.excinfo.value}"[:2000]
    made.clear()
    with open(RECORD, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that cannot even be read is one failed entry."""
    if report.failed:
        with open(RECORD, "a", encoding="utf-8") as file:
            file.write(json.dumps({"id": report.nodeid, "outcome": "failed", "agent": True, "error": str(report.longrepr)[-2000:]}) + "\n")
