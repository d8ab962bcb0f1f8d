"""`--approve`: what is asked at the terminal, what each answer does, and that nobody's silence lets a call run."""

import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from langchain_autotools.cli import main
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn
from tests.unit.cli.test_session import session

TOOLS = """
def send(to: str, text: str = "") -> str:
    "Send a mail."
    return f"Sent to {to}."


def look(city: str) -> str:
    "Look."
    return f"{city}: 21"


tools = [send, look]
"""
DENIED = '{"error": "This call was denied and did not run."}'
SEND = Turn(calls=[Call("send", {"to": "Anna"}, "call_1")])


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider's key is set."""
    monkeypatch.setenv("OPENAI_API_KEY", "key")


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[str]:
    """A file with two tools."""
    file = tmp_path / "desk.py"
    file.write_text(TOOLS)
    yield str(file)
    sys.modules.pop("desk", None)


def typing(monkeypatch: pytest.MonkeyPatch, *lines: str | type[BaseException]) -> list[str]:
    """A human who types these lines, one for each question; returns the questions."""
    left, prompts = list(lines), []

    def read(prompt: str = "") -> str:
        prompts.append(prompt)
        line = left.pop(0) if left else EOFError
        if isinstance(line, str):
            return line
        raise line

    monkeypatch.setattr("builtins.input", read)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    return prompts


def asked(monkeypatch: pytest.MonkeyPatch, server: OpenAIServer, *arguments: str) -> list[str]:
    """The results of the last request of a question with these options."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert main(["chat", "Write to Anna.", *arguments]) == 0
    return [message["content"] for message in server.messages[-1] if message["role"] == "tool"]


@pytest.mark.parametrize(
    ("lines", "result", "times"),
    [
        (["y"], "Sent to Anna.", 1),
        ([" YES "], "Sent to Anna.", 1),
        (["n"], DENIED, 1),
        (["She is ill."], "She is ill.", 1),
        (["e", '{"to": "Ben"}'], "Sent to Ben.", 1),
        (["", "y"], "Sent to Anna.", 2),
        (["e", "to=Ben", "n"], DENIED, 2),
        (["e", '{"whom": "Ben"}', "n"], DENIED, 2),
        (["e"], "gave no answer", 1),
        ([], "gave no answer", 1),
        ([KeyboardInterrupt], "gave no answer", 1),
    ],
)
def test_each_answer_does_what_it_says(monkeypatch, capsys, tools, lines, result, times):
    """y runs the call, n and a reason do not, e runs it with other arguments that its tool takes; no answer refuses it in words."""
    typing(monkeypatch, *lines)
    with OpenAIServer([SEND, Turn("Well.")]) as server:
        (content,) = asked(monkeypatch, server, "-T", tools, "--approve")
    assert result in content
    assert ("Sent to" in content) is result.startswith("Sent")
    shown = capsys.readouterr().err
    assert shown.count('? send(to="Anna")') == times
    assert ("\n(no answer: the call does not run)\n" in shown) is (result == "gave no answer")


@pytest.mark.parametrize(("names", "questions"), [([], 2), (["send"], 1), (["send", "look"], 2)])
def test_names_say_which_calls_are_asked_about(monkeypatch, capsys, tools, names, questions):
    """Without names every call is, in call order; a question that is refused holds up no other call."""
    prompts = typing(monkeypatch, "n", "y")
    both = Turn(calls=[Call("send", {"to": "Anna"}, "call_1"), Call("look", {"city": "Rome"}, "call_2")])
    with OpenAIServer([both, Turn("Well.")]) as server:
        assert asked(monkeypatch, server, "-T", tools, "--approve", *names) == [DENIED, "Rome: 21"]
    assert len(prompts) == questions
    shown = capsys.readouterr().err
    assert [name for name in ("send", "look") if f"? {name}(" in shown] == ["send", "look"][:questions]


def test_nothing_that_the_model_wrote_steers_the_terminal(monkeypatch, capsys, tools):
    """Escape sequences, line ends and what reorders a line are written out where a human decides."""
    evil = "Anna\x1b[2K\r\n? look(city='Rome')\u202e\x9b1A"
    prompts = typing(monkeypatch, "n")
    with OpenAIServer([Turn(calls=[Call("send", {"to": evil}, "call_1")]), Turn("Well.")]) as server:
        asked(monkeypatch, server, "-T", tools, "--approve")
    shown = capsys.readouterr().err + "".join(prompts)
    (question,) = (line for line in shown.splitlines() if line.startswith("? "))
    assert "Anna" in question and "look" in question and question.endswith(")")
    assert not {"\x1b", "\r", "\u202e", "\x9b"} & set(shown)


def test_events_ask_too(monkeypatch, capsys, tools):
    """With `--json` a program reads `approval` and answers on standard input; what was no answer is asked again."""
    typing(monkeypatch, "", "e", '{"to": "Ben"}')
    with OpenAIServer([SEND, Turn("Well.")]) as server:
        assert asked(monkeypatch, server, "-T", tools, "--approve", "--json")[0].endswith("Sent to Ben.")
    events: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    kinds = [event["type"] for event in events if event["type"] not in ("tool_call_delta", "usage")]
    assert kinds[:6] == ["tool_call_start", "tool_call", "message", "approval", "approval", "tool_result"]
    assert next(event["args"] for event in events if event["type"] == "tool_call") == {"to": "Anna"}
    assert {"type": "approval", "id": "call_1", "name": "send", "args": {"to": "Anna"}} in events


def test_a_call_stands_among_the_others_once_it_may_run(monkeypatch, capsys, tools):
    """With the arguments that it runs with; one that is refused does not, one that nobody is asked about is there at once."""
    typing(monkeypatch, "e", '{"to": "Ben"}', "n")
    calls = [Call("send", {"to": "Anna"}, "1"), Call("look", {"city": "Rome"}, "2"), Call("send", {"to": "Zoe"}, "3")]
    with OpenAIServer([Turn(calls=calls), Turn("Well.")]) as server:
        asked(monkeypatch, server, "-T", tools, "--approve", "send")
    shown = re.findall(r"[→?] \w+\(.*\)$", capsys.readouterr().err, re.MULTILINE)  # a terminal ends the lines of answers
    assert shown == ['→ look(city="Rome")', '? send(to="Anna")', '→ send(to="Ben")', '? send(to="Zoe")']


def test_a_call_that_cannot_run_is_shown_without_a_question(monkeypatch, capsys, tools):
    """Nobody is asked about a tool that does not exist."""
    typing(monkeypatch)
    with OpenAIServer([Turn(calls=[Call("sing", {}, "1")]), Turn("Well.")]) as server:
        asked(monkeypatch, server, "-T", tools, "--approve")
    assert [line[:8] for line in capsys.readouterr().err.splitlines() if line[:1] in "→?←"] == ["→ sing()", "← sing: "]


def test_a_name_that_no_tool_has_is_an_error(monkeypatch, capsys, tools):
    """Before anything is asked."""
    typing(monkeypatch)
    assert main(["chat", "Hi", "-T", tools, "--approve", "delete"]) == 1
    assert "requires_approval names tools that do not exist: 'delete'" in capsys.readouterr().err


def test_without_tools_there_is_nothing_to_ask(monkeypatch):
    """`--no-tools --approve` is a conversation like any other."""
    prompts = typing(monkeypatch)
    with OpenAIServer([Turn("Well.")]) as server:
        assert asked(monkeypatch, server, "--no-tools", "--approve") == []
    assert prompts == []


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo terminals are of other systems")
def test_a_session_asks_at_its_terminal(tools):
    """A real terminal: y lets a call run; Ctrl-C at the next question refuses that call, and the session goes on."""
    again = Turn(calls=[Call("send", {"to": "Ben"}, "call_2")])
    with OpenAIServer([SEND, again, Turn("Anna knows.")]) as server, session(server, "-T", tools, "--approve", "send") as terminal:
        terminal.see("> ")
        terminal.type("Write to both.")
        terminal.see('? send(to="Anna")')
        terminal.see("why not: ")
        terminal.type("y")
        terminal.see("Sent to Anna.")
        terminal.see('? send(to="Ben")')
        terminal.see("why not: ")
        terminal.interrupt()
        terminal.see("(no answer: the call does not run)")
        terminal.see("Anna knows.")
        terminal.see("> ")
        assert terminal.leave() == 0
    assert [message["content"][:10] for message in server.messages[-1] if message["role"] == "tool"] == ["Sent to An", '{"error": ']
