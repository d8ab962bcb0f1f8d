"""What tools report, what runs inside them and what they answer with, on the command line."""

import io

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool

from langchain_autotools import ToolContext
from langchain_autotools.testing import ScriptedChatModel
from tests.unit.cli.test_conversation import asks, conversation, events, get_temperature, says


def test_what_a_tool_reports_and_what_runs_in_it_are_events_too():
    """Progress as it is; a run inside a tool wrapped, so that its text is not taken for the answer's."""
    output = io.StringIO()

    def ask_expert(question: str, context: ToolContext) -> str:
        """Ask."""
        context.report({"asking": question})
        return ScriptedChatModel(replies=["Take a coat."]).invoke(question).text

    call = AIMessage("", tool_calls=[{"name": "ask_expert", "args": {"question": "Cold?"}, "id": "id_1"}])
    conversation([call, says("A coat.")], output, tools=[ask_expert]).ask("What to wear?")
    found = events(output)
    progress = next(event for event in found if event["type"] == "tool_progress")
    assert (progress["id"], progress["value"]) == ("id_1", {"asking": "Cold?"})
    inner = [event["event"] for event in found if event["type"] == "nested"]
    assert [event["type"] for event in inner] == ["run_start", *["text"] * 3, "message", "run_end"]
    assert {event["parent_call_id"] for event in inner} == {"id_1"}
    assert "".join(event["text"] for event in found if event["type"] == "text") == "A coat."


def test_plain_text_shows_what_runs_inside_a_tool():
    """Indented, below its call, with what tools report; none of it is remembered."""
    output = io.StringIO()

    def ask_expert(question: str, context: ToolContext) -> str:
        """Ask."""
        context.report("asking")
        return ScriptedChatModel(replies=[asks("Rome", text="I look."), "4 °C."], tools=[get_temperature]).invoke(question).text

    call = AIMessage("", tool_calls=[{"name": "ask_expert", "args": {"question": "Cold?"}, "id": "id_1"}])
    talk = conversation([call, says("No.")], output, as_json=False, tools=[ask_expert])
    talk.ask("Is it cold?")
    assert output.getvalue().splitlines() == [
        '→ ask_expert(question="Cold?")',
        "… ask_expert: asking",
        "  I look.",
        '  → get_temperature(city="Rome")',
        "  ← get_temperature: 4 °C",
        "  4 °C.",
        "  [2 turns · 10 tokens in, 5 out]",
        "← ask_expert: I look. 4 °C.",
        "No.",
        "[2 turns · 10 tokens in, 5 out]",
    ]
    assert [message.type for message in talk.history] == ["human", "ai", "tool", "ai"]


@pytest.mark.parametrize("as_json", [True, False])
def test_a_result_that_is_returned_as_it_is_belongs_to_the_answer(as_json):
    """The result of a tool with `return_direct` is the end of the answer's text."""
    output = io.StringIO()
    direct = StructuredTool.from_function(get_temperature, return_direct=True)
    conversation([asks("Rome", "Oslo", text="Let me look.")], output, as_json=as_json, tools=[direct]).ask("How warm is it?")
    if as_json:
        assert "".join(event["text"] for event in events(output) if event["type"] == "text") == "Let me look.\n4 °C\n4 °C"
    else:
        assert output.getvalue().splitlines()[-3:] == ["4 °C", "4 °C", "[1 turn · 10 tokens in, 5 out · stopped: return_direct]"]
