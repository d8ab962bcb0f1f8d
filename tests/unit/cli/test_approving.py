"""`--approve`: what is asked at the terminal, what each answer does, and that nobody's silence lets a call run."""

import json
import os
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import pytest

from langchain_autotools.cli import main
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn
from tests.support.terminals import input_pipe, piped_in
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


def asked(monkeypatch: pytest.MonkeyPatch, server: OpenAIServer, lines: Sequence[str], *arguments: str) -> list[str]:
    """The results of the last request of a question with these options; these lines and the end of the input come through a pipe."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    with piped_in(monkeypatch, "".join(f"{line}\n" for line in lines)):
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
    ],
)
def test_each_answer_does_what_it_says(monkeypatch, capsys, tools, lines, result, times):
    """y runs the call, n and a reason do not, e runs it with other arguments that its tool takes; no answer refuses it in words."""
    with OpenAIServer([SEND, Turn("Well.")]) as server:
        (content,) = asked(monkeypatch, server, lines, "-T", tools, "--approve")
    assert result in content
    assert ("Sent to" in content) is result.startswith("Sent")
    shown = capsys.readouterr().err
    assert shown.count('? send(to="Anna")') == times
    assert ("\n(no answer: the call does not run)\n" in shown) is (result == "gave no answer")


@pytest.mark.parametrize(("names", "questions"), [([], 2), (["send"], 1), (["send", "look"], 2)])
def test_names_say_which_calls_are_asked_about(monkeypatch, capsys, tools, names, questions):
    """Without names every call is, in call order; a question that is refused holds up no other call."""
    both = Turn(calls=[Call("send", {"to": "Anna"}, "call_1"), Call("look", {"city": "Rome"}, "call_2")])
    with OpenAIServer([both, Turn("Well.")]) as server:
        assert asked(monkeypatch, server, ["n", "y"], "-T", tools, "--approve", *names) == [DENIED, "Rome: 21"]
    shown = capsys.readouterr().err
    assert shown.count("Run it?") == questions
    assert [name for name in ("send", "look") if f"? {name}(" in shown] == ["send", "look"][:questions]


def test_nothing_that_the_model_wrote_steers_the_terminal(monkeypatch, capsys, tools):
    """Escape sequences, line ends and what reorders a line are written out where a human decides."""
    evil = "Anna\x1b[2K\r\n? look(city='Rome')\u202e\x9b1A"
    with OpenAIServer([Turn(calls=[Call("send", {"to": evil}, "call_1")]), Turn("Well.")]) as server:
        asked(monkeypatch, server, ["n"], "-T", tools, "--approve")
    shown = capsys.readouterr().err
    (question,) = (line for line in shown.splitlines() if line.startswith("? "))
    assert "Anna" in question and "look" in question and question.endswith(")")
    assert not {"\x1b", "\r", "\u202e", "\x9b"} & set(shown)


def test_a_program_reads_each_question_and_answers_it(monkeypatch, tools):
    """With `--json` `approval` comes while standard input is an open pipe; what was no answer is asked again; none joins the question."""
    found: list[dict[str, Any]] = []
    answers = iter(["", "e"])

    def play_program(output: int, input_pipe: TextIO) -> None:
        with open(output, encoding="utf-8") as lines:
            for event in map(json.loads, lines):
                found.append(event)
                if event["type"] == "approval":
                    line = next(answers)
                    print(line, file=input_pipe)
                    if line == "e":
                        print('{"to": "Ben"}', file=input_pipe)

    reading, writing = os.pipe()
    with OpenAIServer([SEND, Turn("Well.")]) as server, input_pipe(monkeypatch) as pipe, open(writing, "w", encoding="utf-8") as output:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setattr(sys, "stdout", output)
        other = threading.Thread(target=play_program, args=(reading, pipe))
        other.start()
        try:
            assert main(["chat", "Write to Anna.", "-T", tools, "--json", "--approve"]) == 0
        finally:
            output.close()
            other.join()
    asked, answered = server.messages
    assert asked == [{"role": "user", "content": "Write to Anna."}]
    assert answered[-1]["content"].endswith("Sent to Ben.")
    kinds = [event["type"] for event in found if event["type"] not in ("tool_call_delta", "usage")]
    assert kinds[:6] == ["tool_call_start", "tool_call", "message", "approval", "approval", "tool_result"]
    assert next(event["args"] for event in found if event["type"] == "tool_call") == {"to": "Anna"}
    assert {"type": "approval", "id": "call_1", "name": "send", "args": {"to": "Anna"}} in found


@pytest.mark.parametrize(
    ("words", "question", "asks"),
    [
        (["--approve", "Write to both."], "Write to both.", 2),
        (["--approve", "send", "Write to both."], "Write to both.", 1),
        (["--approve", "Write", "-s", "Be brief."], "Write", 2),
        (["-", "--approve"], "y\ny\n", 2),
        (["--approve", "send"], "y\ny\n", 1),
    ],
)
def test_a_question_after_approve_is_the_question(monkeypatch, capsys, tools, words, question, asks):
    """The word that names no tool; where the question itself is piped in, no line is left for answers and no call that waits runs."""
    calls = Turn(calls=[Call("send", {"to": "Anna"}, "1"), Call("look", {"city": "Rome"}, "2")])
    with OpenAIServer([calls, Turn("Well.")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with piped_in(monkeypatch, "y\ny\n"):
            assert main(["chat", "-T", tools, *words]) == 0
    assert next(message["content"] for message in server.messages[0] if message["role"] == "user") == question
    sent = next(message["content"] for message in server.messages[1] if message["role"] == "tool")
    assert sent.endswith("Sent to Anna.") is ("y" not in question.split())
    assert capsys.readouterr().err.count("Run it?") == asks


def test_without_standard_input_nobody_answers(monkeypatch, tools):
    """A program that is started without any: the call does not run."""
    monkeypatch.setattr(sys, "stdin", None)
    with OpenAIServer([SEND, Turn("Well.")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert main(["chat", "Write to Anna.", "-T", tools, "--approve"]) == 0
    assert "gave no answer" in server.messages[-1][-1]["content"]


def test_a_call_stands_among_the_others_once_it_may_run(monkeypatch, capsys, tools):
    """With the arguments that it runs with; one that is refused does not, one that nobody is asked about is there at once."""
    calls = [Call("send", {"to": "Anna"}, "1"), Call("look", {"city": "Rome"}, "2"), Call("send", {"to": "Zoe"}, "3")]
    with OpenAIServer([Turn(calls=calls), Turn("Well.")]) as server:
        asked(monkeypatch, server, ["e", '{"to": "Ben"}', "n"], "-T", tools, "--approve", "send")
    shown = re.findall(r"[→?] \w+\(.*\)$", capsys.readouterr().err, re.MULTILINE)  # a terminal ends the lines of answers
    assert shown == ['→ look(city="Rome")', '? send(to="Anna")', '→ send(to="Ben") (edited)', '? send(to="Zoe")']


def test_a_call_that_cannot_run_is_shown_without_a_question(monkeypatch, capsys, tools):
    """Nobody is asked about a tool that does not exist."""
    with OpenAIServer([Turn(calls=[Call("sing", {}, "1")]), Turn("Well.")]) as server:
        asked(monkeypatch, server, [], "-T", tools, "--approve")
    assert [line[:8] for line in capsys.readouterr().err.splitlines() if line[:1] in "→?←"] == ["→ sing()", "← sing: "]


def test_a_name_that_no_tool_has_is_an_error(monkeypatch, capsys, tools):
    """Before anything is asked."""
    with piped_in(monkeypatch, ""):
        assert main(["chat", "Hi", "-T", tools, "--approve", "delete"]) == 2
    assert "requires_approval names tools that do not exist: 'delete'" in capsys.readouterr().err


def test_without_tools_there_is_nothing_to_ask(monkeypatch, capsys):
    """`--no-tools --approve` is a conversation like any other."""
    with OpenAIServer([Turn("Well.")]) as server:
        assert asked(monkeypatch, server, [], "--no-tools", "--approve") == []
    assert "Run it?" not in capsys.readouterr().err


@pytest.mark.further
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


DESK = """
from langchain_core.messages import AIMessage
from langchain_autotools.testing import ScriptedChatModel


def pay(to: str) -> str:
    "Pay somebody."
    return f"Paid {to}."


def reply(messages, **_):
    pays = {"name": "pay", "args": {"to": "Anna"}, "id": "call_1"}
    return messages[-1].text if messages[-1].type == "tool" else AIMessage("", tool_calls=[pays])


tools = [ScriptedChatModel(name="clerk", tools=[pay], requires_approval=True, replies=reply)]
"""


@pytest.mark.parametrize(("lines", "result"), [(["y"], "Paid Anna."), (["e", '{"to": "Ben"}'], "Paid Ben."), (["n"], "was denied")])
def test_a_call_inside_a_model_is_asked_about_with_the_path(monkeypatch, capsys, tmp_path, lines, result):
    """The question names the model before the tool, and its answer is that of the call inside."""
    (tmp_path / "paying_desk.py").write_text(DESK)
    asks_clerk = Turn(calls=[Call("clerk", {"question": "Pay Anna."}, "call_1")])
    with OpenAIServer([asks_clerk, Turn("Well.")]) as server:
        (told,) = asked(monkeypatch, server, ["y", *lines], "-T", str(tmp_path / "paying_desk.py"), "--approve")
    sys.modules.pop("paying_desk", None)
    assert result in told
    assert '? clerk > pay(to="Anna")' in capsys.readouterr().err


def test_a_question_of_a_server_is_answered_at_the_terminal(monkeypatch, capfd, tmp_path):
    """y answers nothing, so it is asked again; e and the answer do."""
    pytest.importorskip("mcp", reason="needs the extra `mcp`")
    program = Path(__file__).parents[2] / "support" / "mcp_program.py"
    file = tmp_path / "desk.py"
    command = f"[sys.executable, {str(program)!r}, {str(tmp_path / 'notes')!r}]"
    file.write_text(f"import sys\nfrom langchain_autotools import mcp_server\ntools = [mcp_server({command})]\n")
    try:
        with OpenAIServer([Turn(calls=[Call("ask", {}, "call_1")]), Turn("Well.")]) as server:
            (content,) = asked(monkeypatch, server, ["y", "y", "e", '{"city": "Rome"}'], "-T", str(file), "--approve")
    finally:
        sys.modules.pop("desk").tools[0].close()
    assert json.loads(content) == {"action": "accept", "content": {"city": "Rome"}}
    assert "its server asks a question" in capfd.readouterr().err
