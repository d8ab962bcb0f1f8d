"""A conversation on the command line: what is shown, in which order, and what is remembered."""

import io
import json
import os
import sys
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage, messages_from_dict

from langchain_autotools.cli.conversation import Conversation, converse
from langchain_autotools.cli.display import EventDisplay, PlainDisplay, make_display, one_line
from langchain_autotools.event_types import TextDelta
from langchain_autotools.testing import ScriptedChatModel
from tests.support.terminals import input_terminal

USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}


def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    if city == "Atlantis":
        raise ValueError("it sank")
    return f"{len(city)} °C"


def asks(*cities: str, text: str = "", name: str = "get_temperature") -> AIMessage:
    """A turn that asks for the temperature of some cities."""
    calls = [{"name": name, "args": {"city": city}, "id": f"id_{city}"} for city in cities]
    return AIMessage(text, tool_calls=calls, usage_metadata=USAGE)


def says(text: str) -> AIMessage:
    """A turn that answers."""
    return AIMessage(text, usage_metadata=USAGE)


def conversation(replies: list[Any], output: io.StringIO, as_json: bool = True, **settings: Any) -> Conversation:
    """A conversation with a scripted model that shows itself in `output`."""
    display = EventDisplay(output) if as_json else PlainDisplay(output, output)
    model = ScriptedChatModel(replies=replies, tools=settings.pop("tools", [get_temperature]), parallel=False)
    if as_json:
        display.model("scripted", None)
    return Conversation(model, display, **settings)


def events(output: io.StringIO) -> list[dict[str, Any]]:
    """The events in `output`."""
    return [json.loads(line) for line in output.getvalue().splitlines()]


def kinds(output: io.StringIO) -> list[str]:
    """The kinds of events, repeated ones once."""
    found = [event["type"] for event in events(output)]
    return [kind for number, kind in enumerate(found) if number == 0 or found[number - 1] != kind]


def test_events_come_in_the_documented_order():
    """Text, the calls, the message that makes them; each result and its message; then the answer, and the end."""
    output = io.StringIO()
    conversation([asks("Rome", "Oslo", text="Let me look."), says("4 and 4.")], output).ask("How warm is it?")
    calls, answer = ["tool_call_start", "tool_call"] * 2, ["text", "message", "usage"]
    assert kinds(output) == ["text", *calls, "message", "usage", *["tool_result", "message"] * 2, *answer, "done"]
    found = events(output)
    call = next(event for event in found if event["type"] == "tool_call")
    assert call.items() >= {"id": "id_Rome", "name": "get_temperature", "args": {"city": "Rome"}}.items()
    result = next(event for event in found if event["type"] == "tool_result")
    assert result.items() >= {"id": "id_Rome", "name": "get_temperature", "status": "success", "content": "4 °C"}.items()
    assert "".join(event["text"] for event in found if event["type"] == "text") == "Let me look.\n4 and 4."
    run_id = found[0]["run_id"]
    assert found[-1] == {
        "type": "done",
        "run_id": run_id,
        "stop_reason": "complete",
        "max_turns_reached": False,
        "usage": {"input_tokens": 20, "output_tokens": 10, "total_tokens": 30},
        "turns": 2,
        "model": "scripted",
    }


def test_message_events_are_the_new_messages():
    """The messages of all `message` events are the history behind the question."""
    output = io.StringIO()
    talk = conversation([asks("Rome"), says("4.")], output)
    talk.ask("How warm is it?")
    told = messages_from_dict([event["message"] for event in events(output) if event["type"] == "message"])
    assert told == talk.history[1:]
    assert [type(message) for message in told] == [AIMessage, ToolMessage, AIMessage]


@pytest.mark.parametrize(
    ("call", "status", "content"),
    [(asks("Atlantis"), "error", "it sank"), (asks("Rome", name="get_tide"), "error", "get_tide")],
    ids=["the tool fails", "no such tool"],
)
def test_a_call_that_fails_has_its_three_events_too(call, status, content):
    """Every call has a start, its arguments and a result, also where no tool could run."""
    output = io.StringIO()
    conversation([call, says("Sorry.")], output).ask("How warm is it?")
    start, args, result = (event for event in events(output) if event["type"].startswith("tool_"))
    assert (start["type"], args["type"], result["type"]) == ("tool_call_start", "tool_call", "tool_result")
    assert start["id"] == args["id"] == result["id"]
    assert result["status"] == status and content in result["content"]


def test_unparsable_arguments_are_shown_as_written():
    """Arguments that are no JSON object are in the event as the model's text."""
    output = io.StringIO()
    broken = {"index": 0, "id": "id_1", "name": "get_temperature", "args": '{"city": "Ro'}
    conversation([[AIMessageChunk("", tool_call_chunks=[broken])], says("Sorry.")], output).ask("How warm is it?")
    call = next(event for event in events(output) if event["type"] == "tool_call")
    assert call["args"] == '{"city": "Ro'


def test_a_reached_limit_is_told_and_its_calls_are_answered():
    """`max_turns` ends the run with an answer; the stop reason and its flag say so, and no call stays without a result."""
    output = io.StringIO()
    conversation([asks("Rome"), asks("Oslo"), says("Enough.")], output, max_turns=2).ask("How warm is it?")
    done = events(output)[-1]
    assert (done["stop_reason"], done["max_turns_reached"]) == ("max_turns", True)
    found = [event["type"] for event in events(output)]
    assert found.count("tool_call_start") == found.count("tool_call") == found.count("tool_result") == 2


def test_plain_text_shows_calls_and_results_as_they_happen():
    """A human sees the text, each call as in Python, its result, the answer, and the numbers of the run."""
    output = io.StringIO()
    conversation([asks("Rome", text="Let me look."), says("4 °C.")], output, as_json=False).ask("How warm is it?")
    assert output.getvalue().splitlines() == [
        "Let me look.",
        '→ get_temperature(city="Rome")',
        "← get_temperature: 4 °C",
        "4 °C.",
        "[2 turns · 20 tokens in, 10 out]",
    ]


def test_plain_text_says_why_a_run_stopped():
    """An unusual end is in the last line; long results are cut; control characters never reach the terminal."""
    output = io.StringIO()

    def get_page(city: str) -> str:
        """A page."""
        return "\x1b[31m" + "x" * 500

    replies = [asks("Rome", name="get_page"), says("\x1b]0;evil\x07Enough.")]
    conversation(replies, output, as_json=False, tools=[get_page], max_turns=1).ask("Read.")
    lines = output.getvalue().splitlines()
    assert lines[-1] == "[2 turns · 20 tokens in, 10 out · stopped: max_turns]"
    assert "\x1b" not in output.getvalue() and max(map(len, lines)) < 230


STEERING = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b2J\u202e\u2066\u2028\x08"


def test_nothing_a_model_or_a_tool_writes_steers_the_terminal():
    """Clipboard writes, clear screen, C1 and bidi controls of calls, results and answers never leave; in calls they are written out."""
    output = io.StringIO()
    raw = {"name": f"get{STEERING}", "args": f"{{{STEERING}", "id": "raw", "type": "invalid_tool_call", "error": None}
    calls = [
        {"name": f"get_{STEERING}", "args": {"city": STEERING}, "id": "one"},
        {"name": "get_temperature", "args": {"city": STEERING}, "id": "two"},
    ]
    replies = [AIMessage(STEERING, tool_calls=calls, invalid_tool_calls=[raw]), says(f"Done{STEERING}.")]
    conversation(replies, output, as_json=False).ask("How warm?")
    shown = output.getvalue()
    assert "Done" in shown and not set(STEERING) - set("]52;c;ZXZpbA==[2J") & set(shown)
    assert "get_\\x1b]52;c;" in shown and "\\u202e" in shown


def test_answers_and_remarks_go_to_their_places():
    """What a program reads is the text of the answer alone; calls, results and usage are elsewhere."""
    answers, remarks = io.StringIO(), io.StringIO()
    model = ScriptedChatModel(replies=[asks("Rome", text="Let me look."), says("4 °C.")], tools=[get_temperature])
    Conversation(model, PlainDisplay(answers, remarks)).ask("How warm is it?")
    assert answers.getvalue() == "Let me look.\n4 °C.\n"
    assert remarks.getvalue().splitlines() == [
        '→ get_temperature(city="Rome")',
        "← get_temperature: 4 °C",
        "[2 turns · 20 tokens in, 10 out]",
    ]


def test_the_second_question_sees_the_first():
    """A session remembers questions, calls, results and answers; `start_over` forgets all but the system message."""
    output = io.StringIO()
    talk = conversation([asks("Rome"), says("4."), says("Yes."), says("Hello.")], output, system="Be brief.")
    talk.ask("How warm is it?")
    talk.ask("Sure?")
    sent = talk._model.requests[-1].messages
    assert [type(message) for message in sent] == [SystemMessage, HumanMessage, AIMessage, ToolMessage, AIMessage, HumanMessage]
    talk.start_over()
    talk.ask("Hello!")
    assert [message.content for message in talk._model.requests[-1].messages] == ["Be brief.", "Hello!"]


def test_without_tools_a_conversation_is_the_same():
    """No tools: text, the message, and the end with its usage."""
    output = io.StringIO()
    talk = conversation([says("Hello.")], output, tools=[])
    talk.ask("Hi!")
    assert kinds(output) == ["text", "message", "usage", "done"]
    assert events(output)[-1]["usage"] == USAGE
    assert len(talk.history) == 2


def test_a_failed_run_keeps_what_was_completed():
    """An error in the second turn leaves the question, the call and its result in the history."""
    output = io.StringIO()
    talk = conversation([asks("Rome"), RuntimeError("gone"), says("4.")], output)
    with pytest.raises(RuntimeError):
        talk.ask("How warm is it?")
    assert [type(message) for message in talk.history] == [HumanMessage, AIMessage, ToolMessage]
    talk.ask("Well?")
    assert talk.history[-1].content == "4."


def test_a_question_that_nothing_came_of_is_forgotten():
    """An error before anything was completed leaves the history as it was."""
    talk = conversation([RuntimeError("gone"), says("Hello.")], io.StringIO())
    with pytest.raises(RuntimeError):
        talk.ask("Lost")
    assert talk.history == []


def test_an_interrupted_reply_is_remembered_as_far_as_it_was_read():
    """Ctrl-C in the middle of a text keeps that part, so that the user can say "go on"."""
    talk = conversation([["Once upon ", "a time", KeyboardInterrupt()]], io.StringIO())
    with pytest.raises(KeyboardInterrupt):
        talk.ask("A story!")
    assert [message.content for message in talk.history] == ["A story!", "Once upon a time"]


def held(monkeypatch: pytest.MonkeyPatch, lines: str, replies: list[Any]) -> tuple[str, list[Any]]:
    """Hold a session over these lines, typed at a terminal, and Ctrl-D; returns what was shown, and the requests."""
    output = io.StringIO()
    talk = conversation(replies, output, as_json=False)
    with input_terminal(monkeypatch) as terminal:
        terminal.write(lines + "\x04")
        terminal.flush()
        converse(talk, talk._display)
    return output.getvalue(), talk._model.requests


def questions(requests: list[Any]) -> list[str]:
    """What was asked in each request."""
    return [request.messages[-1].content for request in requests]


@pytest.mark.parametrize("leave", ["/exit", "/quit"])
def test_a_session_takes_one_question_a_line(monkeypatch, leave):
    """Empty lines are no questions, `/new` forgets, `/exit` and `/quit` end."""
    shown, requests = held(monkeypatch, f"One\n\nTwo\n/new\nThree\n{leave}\nFour\n", [says("1"), says("2"), says("3")])
    assert "/help lists the commands" in shown
    assert [len(request.messages) for request in requests] == [1, 3, 1]


def test_commands_stay_in_the_session(monkeypatch):
    """`/help` names the commands; what begins with a slash and is none is refused, not sent; a space makes it a question."""
    shown, requests = held(monkeypatch, "/help\n/weather in Rome\n /etc/hosts is what?\n", [says("A file.")])
    assert all(command in shown for command in ("/new", "/help", "/exit", "/quit"))
    assert "There is no command /weather" in shown
    assert questions(requests) == ["/etc/hosts is what?"]


def test_pasted_lines_are_one_question(monkeypatch):
    """Lines between a terminal's paste marks are one question, whatever they hold."""
    monkeypatch.setitem(sys.modules, "readline", None)
    _, requests = held(monkeypatch, "Sum this: \x1b[200~one\n/new\n\ntwo\x1b[201~\nNext\n", [says("1"), says("2")])
    assert questions(requests) == ["Sum this: one\n/new\n\ntwo", "Next"]


def test_an_error_does_not_end_a_session(monkeypatch, capsys):
    """A failure is one line, and the session goes on."""
    shown, requests = held(monkeypatch, "One\nTwo\n", [RuntimeError("gone"), says("2")])
    assert questions(requests) == ["One", "Two"] and "2" in shown
    assert capsys.readouterr().err.count("error: RuntimeError: gone\n") == 1


def test_an_interrupt_ends_the_reply_and_not_the_session(monkeypatch):
    """Ctrl-C while the model writes: a remark, then the next question."""
    shown, requests = held(monkeypatch, "One\nTwo\n", [["Once ", KeyboardInterrupt()], says("2")])
    assert "Once \n(interrupted)" in shown
    assert [message.content for message in requests[1].messages] == ["One", "Once ", "Two"]


def test_a_closed_output_ends_a_session(monkeypatch):
    """Nobody reads any more: the error goes up to the program, which ends quietly."""
    with pytest.raises(BrokenPipeError):
        held(monkeypatch, "One\nTwo\n", [BrokenPipeError(), says("2")])


def test_a_terminal_gets_colours_and_nothing_is_read_as_markup(monkeypatch):
    """The display at a terminal is the coloured one, with NO_COLOR the plain one; square brackets of a model stay what they are."""
    pytest.importorskip("rich")
    from langchain_autotools.cli.display import RichDisplay

    human, program = os.openpty()
    with open(human, "rb", buffering=0) as seen, open(program, "w", encoding="utf-8") as screen:
        monkeypatch.setattr(sys, "stdout", screen)
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("NO_COLOR", raising=False)
        display = make_display(as_json=False)
        assert isinstance(display, RichDisplay)
        display.note("remark")
        display.show(TextDelta(run_id="1", message_id="2", text="[bold]Warm[/bold]"))
        shown = b""
        while b"[bold]Warm[/bold]" not in shown:
            shown += seen.read(4096)
        assert b"\x1b[2m" in shown
        monkeypatch.setenv("NO_COLOR", "1")
        assert type(make_display(as_json=False)) is PlainDisplay


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("no\n  good  "), "no good"),
        (KeyError("city"), "KeyError: 'city'"),
        (RuntimeError(), "RuntimeError"),
        (ValueError("\x1b[31mred alert"), "[31mred alert"),
    ],
)
def test_an_error_is_one_line(error, line):
    """White space is joined, control characters go, and a bare word is told with its type."""
    assert one_line(error) == line
