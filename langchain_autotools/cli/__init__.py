"""The command line: reads the arguments, runs one conversation, turns every failure into one line and an exit code."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from langchain_autotools._version import __version__
from langchain_autotools.errors import ConfigurationError
from langchain_autotools.providers.registry import PROVIDERS
from langchain_autotools.run.settings import toolbox_of

from .approving import Approver
from .conversation import Conversation
from .display import Display, make_display
from .history_file import HistoryFile
from .models import open_model
from .session import converse
from .tools import load_tools

__all__ = ["main"]

PROGRAM = "langchain-autotools"
FAILED, WRONG_USE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141


class UsageError(Exception):
    """The command line itself is wrong."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see `{self.prog} --help`)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: What stands behind the program's name; `sys.argv` if not given.

    Returns:
        The exit code: 0 done, 1 failed, 2 wrong use, 130 interrupted, 141 the reader of the output went away.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    _make_output_robust()
    display = make_display(as_json="--json" in words)
    try:
        return _chat(words, display)
    except UsageError as error:
        display.error(error)
        return WRONG_USE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return PIPE_CLOSED
    except Exception as error:
        display.error(error)
        return FAILED


def _chat(words: Sequence[str], display: Display) -> int:
    options = _parser().parse_args(words)
    prompt = _prompt(options.prompt)
    file = HistoryFile(options.history) if options.history else None
    tools = load_tools(options.tools or []) if options.tools or options.no_tools else None
    chosen = open_model(options.model, tools, _constructor_arguments(options))
    display.model(chosen.name, chosen.reason)
    if chosen.built_in:
        display.note(f"tools: {', '.join(tool.name for tool in chosen.built_in)} (built in; the temperatures are invented)")
    approve = None if options.approve is None else Approver(toolbox_of(chosen.model).executor, display)
    if approve is not None:
        display.asked = options.approve or None
    conversation = Conversation(chosen.model, display, system=options.system, max_turns=options.max_turns, approve=approve, file=file)
    if prompt is None:
        converse(conversation, display)
    else:
        conversation.ask(prompt)
    sys.stdout.flush()  # here, where a closed pipe is still handled
    return 0


def _prompt(given: str | None) -> str | None:
    """The question: what is piped in and the prompt, together where there are both; None for a session.

    Raises:
        ConfigurationError: It is empty.
    """
    at_terminal = sys.stdin is not None and sys.stdin.isatty()
    if given is None and at_terminal:
        return None
    piped = "" if sys.stdin is None or (at_terminal and given != "-") else sys.stdin.read()
    parts = [part for part in (piped, "" if given in (None, "-") else given) if part and part.strip()]
    if not parts:
        raise ConfigurationError("The prompt is empty")
    return "\n\n".join([*(part.rstrip() for part in parts[:-1]), parts[-1]])


def _constructor_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The model's constructor arguments."""
    given: dict[str, Any] = {"temperature": options.temperature, "max_tokens": options.max_tokens, "base_url": options.base_url}
    if options.approve:
        given["requires_approval"] = options.approve
    return {name: value for name, value in given.items() if value is not None} | dict(map(_option, options.option or ()))


def _option(pair: Sequence[str]) -> tuple[str, Any]:
    """A constructor argument: its value is JSON where it can be read as that, else text."""
    name, text = pair
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=PROGRAM, description="Chat models that run their own tools.")
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    chat = commands.add_parser("chat", help="ask a model that may call tools", description="Ask a model that may call tools.")
    chat.add_argument(
        "prompt", nargs="?", help="the question; what is piped in comes before it, or is the question; without both a session starts"
    )
    chat.add_argument(
        "-m",
        "--model",
        metavar="NAME",
        help=f"provider, provider:model or a model known by its name, of {', '.join(PROVIDERS)} (local:FILE.gguf runs a file); "
        "default: a provider whose key is set in the environment, else the local model",
    )
    chat.add_argument("--base-url", metavar="URL", help="the address of the provider's API, or of a server compatible with it")
    which = chat.add_mutually_exclusive_group()
    which.add_argument(
        "-T",
        "--tools",
        metavar="SOURCE",
        action="append",
        help="tools to use in place of the built-in ones: module:attribute, file.py or file.py:attribute; may be repeated",
    )
    which.add_argument("--no-tools", action="store_true", help="use no tools at all")
    chat.add_argument(
        "--approve",
        metavar="NAME",
        nargs="*",
        action="extend",
        help="ask before a call of one of these tools runs, or without names before any call; the question stands before it",
    )
    chat.add_argument("-s", "--system", metavar="TEXT", help="the system message")
    chat.add_argument("--temperature", type=float, metavar="NUMBER", help="sampling temperature")
    chat.add_argument("--max-tokens", type=int, metavar="NUMBER", help="the most tokens of one reply")
    chat.add_argument("--max-turns", type=int, metavar="NUMBER", help="how many turns of one question may ask for tools")
    chat.add_argument(
        "-o",
        "--option",
        nargs=2,
        metavar=("NAME", "VALUE"),
        action="append",
        help="any other constructor argument of the model's class, its value as JSON or text; may be repeated",
    )
    chat.add_argument("--history", metavar="FILE", help="continue the conversation in this file, and keep it there")
    chat.add_argument("--json", action="store_true", help="print one JSON event a line")
    return parser


def _make_output_robust() -> None:
    """A character that the terminal cannot show is replaced, never an error."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def _drop_output() -> None:
    """Nobody reads any more: let the interpreter's last flush go nowhere."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
