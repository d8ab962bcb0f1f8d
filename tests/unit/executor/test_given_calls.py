"""The shapes of calls that an executor takes, and what runs beside what was decided."""

import asyncio
import logging
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_autotools import ConfigurationError, ToolCallRecord, ToolExecutor, add_tool_calls_and_results

TEXT = '{"to": "Anna"}'
ARGS = {"to": "Anna"}
SHAPES: dict[str, Any] = {
    "args": {"id": "1", "name": "send", "args": ARGS},
    "args as text": {"id": "1", "name": "send", "args": TEXT},
    "arguments": {"id": "1", "name": "send", "arguments": ARGS},
    "arguments as text": {"id": "1", "name": "send", "arguments": TEXT},
    "record": ToolCallRecord("1", "send", TEXT, ARGS),
    "record of a text": ToolCallRecord("1", "send", TEXT),
    "chat completions": {"id": "1", "type": "function", "function": {"name": "send", "arguments": TEXT}},
    "responses": {"type": "function_call", "id": "fc_9", "call_id": "1", "name": "send", "arguments": TEXT, "status": "completed"},
    "anthropic": {"type": "tool_use", "id": "1", "name": "send", "input": ARGS},
    "entry": {"type": "tool_call", "id": "1", "name": "send", "args": ARGS},
}


class Desk:
    """Two tools that note what they did."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def send(self, to: str) -> str:
        """Send something."""
        self.done.append(f"send {to}")
        return f"Sent to {to}."

    def look(self) -> str:
        """Look."""
        self.done.append("look")
        return "seen"


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_a_call_runs(shape: str) -> None:
    """By each method, and where calls are added by hand."""
    executor, call = ToolExecutor([Desk().send]), SHAPES[shape]
    results = [executor.execute(call).message, asyncio.run(executor.aexecute(call)).message, *executor.execute_all([call])]
    assert [(one.text, one.tool_call_id, one.status) for one in results] == [("Sent to Anna.", "1", "success")] * 3
    history = add_tool_calls_and_results([HumanMessage("Send.")], [call], {"1": "sent"})
    assert history[1].tool_calls[0]["args"] == ARGS  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ({"id": "1", "name": "send", "arguments": '{"to": "An'}, "not one complete JSON object"),
        ({"id": "1", "name": "send", "arguments": '["Anna"]'}, "not one complete JSON object"),
        ({"id": "1", "name": "send"}, "not one complete JSON object"),
        (ToolCallRecord("1", "send", '{"to": "An'), "not one complete JSON object"),
        (ToolCallRecord("1", "send", TEXT, why="the turn was cut"), "the turn was cut"),
        ({"type": "invalid_tool_call", "id": "1", "name": "send", "args": TEXT, "error": "the turn was cut"}, "the turn was cut"),
    ],
)
def test_what_cannot_run_says_so(call: Any, why: str) -> None:
    """Arguments that are not whole, and what was refused before, run nothing."""
    desk = Desk()
    result = ToolExecutor([desk.send]).execute(call)
    assert (desk.done, result.message.status) == ([], "error")
    assert why in result.message.text


def test_a_call_of_a_vendors_toolset_is_its_callers() -> None:
    """It has the name of a tool, and runs none."""
    desk = Desk()
    with pytest.raises(ConfigurationError, match="for its caller"):
        ToolExecutor([desk.send]).execute({"type": "tool_use", "id": "1", "name": "send", "input": ARGS, "toolset_name": "computer"})
    assert desk.done == []


def test_what_is_no_call_is_refused() -> None:
    """Without a name there is nothing to run."""
    for call in ({"id": "1", "args": {}}, {"function": {"arguments": "{}"}}, "send"):
        with pytest.raises(TypeError, match="a call is a ToolCallRecord or a dict"):
            ToolExecutor([Desk().send]).execute(call)  # type: ignore[arg-type]


@pytest.mark.parametrize("way", ["execute_all", "aexecute_all"])
def test_siblings_of_a_decided_call_are_named_or_known(way: str, caplog: pytest.LogCaptureFixture) -> None:
    """Without `messages=` they run, and one warning names them; with it a call that has a result is never repeated."""
    desk = Desk()
    executor = ToolExecutor([desk.send, desk.look], requires_approval=["send"])
    calls = [
        {"id": str(number), "name": name, "args": args} for number, (name, args) in enumerate([("look", {}), ("send", ARGS), ("look", {})])
    ]
    answer = AIMessage("", id="m", tool_calls=calls)

    def execute(**options: Any) -> list[str]:
        done = executor.execute_all(answer, **options) if way == "execute_all" else asyncio.run(executor.aexecute_all(answer, **options))
        return [one.tool_call_id for one in done]

    decisions = [call.approve() for call in executor.pending_calls(answer)]
    with caplog.at_level(logging.WARNING, "langchain_autotools"):
        first = executor.execute_all(answer)
        assert [one.tool_call_id for one in first] == ["0", "2"]
        assert not caplog.records
        history = [HumanMessage("Send."), answer, first[0]]
        assert execute(messages=history) == ["2"]
        assert execute(messages=history, decisions=decisions) == ["1", "2"]
        assert execute(messages=[*history[:2], *first], decisions=decisions) == ["1"]
        assert execute(messages=[*history[:2], *first]) == []
        assert not caplog.records
        assert execute(decisions=decisions) == ["0", "1", "2"]
        (record,) = caplog.records
        assert "look (0), look (2)" in record.getMessage()
    assert ToolExecutor([desk.look]).execute_all(answer, messages=[answer, first[0], first[1]])[0].status == "error"
