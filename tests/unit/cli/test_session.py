"""An interactive session at a terminal: a real program on a pseudo terminal, with colours and without."""

import os
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.http_server import Gate
from tests.support.openai_server import OpenAIServer
from tests.support.programs import interrupt
from tests.support.script import Call, Failure, Turn

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo terminals are of other systems")

REPOSITORY = Path(__file__).parents[3]
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\r")


class Terminal:
    """A program on a pseudo terminal: `type` a line, `see` a text, `interrupt`, `leave`."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._screen, inner = os.openpty()
        self.program = subprocess.Popen(command, env=environment, stdin=inner, stdout=inner, stderr=inner, start_new_session=True)
        os.close(inner)
        self.raw = ""
        self._seen = 0

    def type(self, line: str) -> None:
        """Type a line and press Return."""
        os.write(self._screen, line.encode() + b"\n")

    def see(self, text: str) -> None:
        """Wait until the text is on the screen, after what was seen before."""
        while text not in self.shown[self._seen :]:
            assert self._read(), f"{text!r} did not come; the screen shows:\n{self.shown}"
        self._seen = self.shown.index(text, self._seen) + len(text)

    @property
    def shown(self) -> str:
        """All that was shown, without escapes."""
        return _ESCAPES.sub("", self.raw)

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        interrupt(self.program)

    def leave(self) -> int:
        """Press Ctrl-D; returns the exit code."""
        os.write(self._screen, b"\x04")
        while self._read():
            pass
        return self.program.wait(60)

    def close(self) -> None:
        """Take the terminal away."""
        self.program.kill()
        self.program.wait()
        os.close(self._screen)

    def _read(self) -> bool:
        if not select.select([self._screen], [], [], 60)[0]:
            return False
        try:
            piece = os.read(self._screen, 65536)
        except OSError:  # the program has closed its side
            return False
        self.raw += piece.decode(errors="replace")
        return bool(piece)


@contextmanager
def session(server: OpenAIServer, *arguments: str, **more: str) -> Iterator[Terminal]:
    """A session with a model on this server."""
    environment: dict[str, Any] = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "TERM": "xterm",
        "COLUMNS": "120",
        "PYTHONIOENCODING": "utf-8",
    }
    environment |= {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": server.url, **more}
    terminal = Terminal([sys.executable, "-m", "langchain_autotools", "chat", *arguments], environment)
    try:
        yield terminal
    finally:
        terminal.close()


def test_a_session_remembers_and_survives_interrupts_and_errors():
    """Questions share one history; Ctrl-C ends a reply, an error is one line, Ctrl-D ends the session with code 0."""
    gate = Gate()
    replies = [
        Turn(calls=[Call("get_temperature", {"city": "Rome"}, "call_1")]),
        Turn("It has 24 °C."),
        Turn("Once upon a time there was", holds={3: gate}),
        Failure(400, "Nonsense.", "invalid_request_error"),
        Turn("Good bye."),
    ]
    with OpenAIServer(replies) as server, session(server) as terminal:
        terminal.see("> ")
        terminal.type("How warm is it in Rome?")
        for text in ('get_temperature(city="Rome")', "24 °C", "It has 24 °C.", "2 turns", "> "):
            terminal.see(text)
        terminal.type("A story!")
        terminal.see("Once")
        terminal.interrupt()
        terminal.see("(interrupted)")
        gate.open()
        terminal.type("Go on?")
        terminal.see("error: ")
        terminal.see("Nonsense.")
        terminal.type("Bye!")
        terminal.see("Good bye.")
        terminal.see("> ")
        assert terminal.leave() == 0
    assert "Traceback" not in terminal.shown
    last = server.messages[-1]
    assert [message["role"] for message in last] == ["user", "assistant", "tool", "assistant", "user", "assistant", "user"]
    assert last[-2]["content"].startswith("Once") and last[-1]["content"] == "Bye!"


@pytest.mark.further
def test_an_interrupt_at_the_prompt_drops_the_line_only():
    """Ctrl-C at the prompt gives a new prompt; `/new` forgets; `/exit` leaves."""
    with OpenAIServer([Turn("One."), Turn("Two.")]) as server, session(server) as terminal:
        terminal.see("> ")
        terminal.interrupt()
        terminal.see("> ")
        terminal.type("Hello")
        terminal.see("One.")
        terminal.type("/new")
        terminal.see("> ")
        terminal.type("Hello again")
        terminal.see("Two.")
        terminal.type("/exit")
        assert terminal.program.wait(60) == 0
    assert [len(messages) for messages in server.messages] == [1, 1]


@pytest.mark.further
def test_pasted_lines_are_one_question():
    """What the terminal marks as pasted is one question, line ends included, with the `readline` that Python has here or without."""
    with OpenAIServer([Turn("Two lines.")]) as server, session(server) as terminal:
        terminal.see("> ")
        terminal.type("\x1b[200~first\nsecond\x1b[201~")
        terminal.see("Two lines.")
        terminal.see("> ")
        assert terminal.leave() == 0
    assert [messages[-1]["content"] for messages in server.messages] == ["first\nsecond"]


@pytest.mark.further
@pytest.mark.parametrize("coloured", [True, False])
def test_colours_where_rich_is_and_plain_text_elsewhere(coloured, tmp_path):
    """The same lines with colours where `rich` is installed, and without where it is not or NO_COLOR asks for none."""
    if coloured:
        pytest.importorskip("rich")
    without_rich = tmp_path / "rich.py"
    without_rich.write_text("raise ImportError('not here')")
    more = {} if coloured else {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(REPOSITORY)])}
    with OpenAIServer([Turn(calls=[Call("get_temperature", {"city": "[red]Rome"}, "call_1")]), Turn("[bold]Warm.")]) as server:
        with session(server, "How warm?", **more) as terminal:
            terminal.see('→ get_temperature(city="[red]Rome")')
            terminal.see("[bold]Warm.")
            terminal.see("tokens in")
            assert terminal.program.wait(60) == 0
    assert ("\x1b[36m" in terminal.raw) is coloured
