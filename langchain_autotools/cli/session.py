"""A session at the terminal: reads questions and commands until the human leaves."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from .conversation import Conversation
from .display import Display

_COMMANDS = {
    "/new": "starts over",
    "/help": "shows this",
    "/exit": "leaves, as /quit and Ctrl-D do",
}
_LEAVE = {"/exit", "/quit"}
_PASTE, _PASTED = "\x1b[200~", "\x1b[201~"  # what a terminal sets around pasted text (bracketed paste)


def converse(conversation: Conversation, display: Display) -> None:
    """Hold a session: one question a line, pasted lines together, until the human leaves. Ctrl-C ends a reply, not the session."""
    display.note("/help lists the commands, Ctrl-D leaves, Ctrl-C ends a reply.")
    with _marked_pastes():
        for line in _questions(display):
            if line.strip() in _LEAVE:
                return
            if line.startswith("/"):
                _obey(line.strip(), conversation, display)
            else:
                _ask(line.strip(), conversation, display)


def _ask(question: str, conversation: Conversation, display: Display) -> None:
    try:
        conversation.ask(question)
    except KeyboardInterrupt:
        display.interrupted()
    except BrokenPipeError:
        raise
    except Exception as error:
        display.error(error)


def _obey(command: str, conversation: Conversation, display: Display) -> None:
    if command == "/new":
        conversation.start_over()
    elif command == "/help":
        for name, meaning in _COMMANDS.items():
            display.note(f"{name:<6} {meaning}")
        display.note("A question that begins with a slash: put a space before it. Pasted lines are one question.")
    else:
        display.note(f"There is no command {command.split()[0]}; /help lists them. (A question: put a space before the slash.)")


def _questions(display: Display) -> Iterator[str]:
    while True:
        try:
            line = read_line(display.prompt)
        except EOFError:
            display.note("")
            return
        except KeyboardInterrupt:  # at the prompt it drops the line
            display.note("")
            continue
        if line.strip():
            yield line


def read_line(prompt: str) -> str:
    """Return one line of standard input, or all lines of one paste.

    Raises:
        EOFError: There is none.
    """
    if sys.stdin is None:
        raise EOFError
    if not sys.stdout.isatty():  # the prompt is no answer
        print(prompt, end="", file=sys.stderr, flush=True)
        prompt = ""
    line = input(prompt)
    while line.count(_PASTE) > line.count(_PASTED):
        line += "\n" + input()
    return line.replace(_PASTE, "").replace(_PASTED, "")


@contextmanager
def _marked_pastes() -> Iterator[None]:
    """Enable bracketed paste, so that `readline` reads pasted text whole."""
    try:
        import readline  # its presence also gives `input` editing and recall
    except ImportError:
        print("\x1b[?2004h", end="", file=sys.stderr, flush=True)
        try:
            yield
        finally:
            print("\x1b[?2004l", end="", file=sys.stderr, flush=True)
    else:
        readline.parse_and_bind("set enable-bracketed-paste on")
        yield
