"""Recorded streams that end too early, anywhere: whatever ran, ran with the arguments that the model had written.

The whole form (every byte of the twenty streams with the most calls, torn and ended cleanly) is marked `exhaustive`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import StructuredTool

from langchain_autotools import ChatOpenAI
from tests.support.http_server import Exchange
from tests.support.openai_server import OpenAIServer
from tests.support.recorded import Recording, recordings
from tests.support.script import Cut, Raw, Reply, Turn

Executed = list[tuple[str, dict[str, Any]]]
OPEN: dict[str, Any] = {"type": "object", "properties": {}}


@pytest.fixture(scope="module")
def chosen(wire_folder: Path) -> list[Recording]:
    """The twenty streams with the most calls, and of those with as many the longest."""
    streams = [record for record in recordings(wire_folder, "openai-chat") if record.streamed and record.expected["tool_calls"]]
    return sorted(streams, key=lambda record: (-len(record.expected["tool_calls"]), -len(record.body), record.id))[:20]


class Cutter:
    """A server that answers a user with one recording's first bytes and a tool result with text."""

    def __init__(self, record: Recording) -> None:
        self.record = record
        self.after = len(record.body)
        self.drop = False

    def __call__(self, exchange: Exchange) -> Reply:
        """The reply to a request."""
        if exchange.json["messages"][-1]["role"] != "user":
            return Turn("Well.")
        return Cut(Raw([self.record.body], self.record.content_type), self.after, self.drop)


def tools_of(record: Recording, executed: Executed) -> list[StructuredTool]:
    """Tools that note what they are called with, under every name that the recording declares or calls."""
    schemas = {tool["function"]["name"]: tool["function"].get("parameters") or OPEN for tool in record.tools}
    names = {call["name"]: OPEN for call in record.expected["tool_calls"]} | schemas

    def noting(name: str) -> StructuredTool:
        def note(**arguments: Any) -> str:
            executed.append((name, arguments))
            return "noted"

        return StructuredTool.from_function(note, name=name, description="Note.", args_schema={**OPEN, **names[name]})

    return [noting(name) for name in names]


def run_cut(record: Recording, step: int, drops: tuple[bool, ...]) -> Iterator[tuple[int, bool, Executed]]:
    """Run the record cut at every `step`-th byte; what ran each time."""
    executed: Executed = []
    cutter = Cutter(record)
    with OpenAIServer(cutter, rules=None) as server:
        model = ChatOpenAI(model="cut", base_url=server.url, api_key="k", max_retries=0, tools=tools_of(record, executed))
        for after in [*range(0, len(record.body), step), len(record.body)]:
            for drop in drops:
                executed.clear()
                cutter.after, cutter.drop = after, drop
                try:
                    list(model.stream("x"))
                except Exception as error:  # a cut stream may be an error; what ran is what counts
                    assert after < len(record.body), error
                yield after, drop, list(executed)


def check(record: Recording, step: int, drops: tuple[bool, ...]) -> tuple[int, int]:
    """How many cuts were tried and how many calls ran; fails where one ran that the model did not make."""
    meant = [(call["name"], json.dumps(call["args"], sort_keys=True)) for call in record.expected["tool_calls"]]
    cuts = calls = 0
    for after, drop, executed in run_cut(record, step, drops):
        ran = [(name, json.dumps(args, sort_keys=True)) for name, args in executed]
        for call in ran:
            assert ran.count(call) <= meant.count(call), (record.id, after, drop, call)
        cuts, calls = cuts + 1, calls + len(ran)
        if after == len(record.body) and not drop:
            assert sorted(ran) == sorted(meant), (record.id, "whole")
    return cuts, calls


def test_a_cut_stream_runs_nothing_wrong(chosen: list[Recording]) -> None:
    """A sample of the cuts: no call runs with arguments that the model had not finished."""
    assert len(chosen) == 20
    for record in chosen:
        check(record, step=1801, drops=(False, True))


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("place", range(20))
def test_every_cut_runs_nothing_wrong(chosen: list[Recording], place: int) -> None:
    """Every byte of the twenty streams with the most calls, the stream torn there or ended as if it were whole."""
    cuts, calls = check(chosen[place], step=1, drops=(False, True))
    print(f"\n{chosen[place].id}: {cuts} cut streams, {calls} calls ran, 0 with wrong arguments")
