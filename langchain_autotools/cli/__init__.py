"""The command line: reads the arguments, runs one conversation, turns every failure into one line and an exit code."""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn

from langchain_autotools.errors import ConfigurationError

from .conversation import Conversation, converse
from .display import Display, make_display
from .models import open_model, provider_names
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
        return _run(words, display)
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


def _run(words: Sequence[str], display: Display) -> int:
    options = _parser().parse_args(words)
    tools = load_tools(options.tools or []) if options.tools or options.no_tools else None
    settings = {"temperature": options.temperature, "max_tokens": options.max_tokens}
    chosen = open_model(options.model, tools, {name: value for name, value in settings.items() if value is not None})
    display.model(chosen.name, chosen.reason)
    if chosen.built_in:
        display.note(f"tools: {', '.join(tool.name for tool in chosen.built_in)} (built in; the temperatures are invented)")
    conversation = Conversation(chosen.model, display, model_name=chosen.name, system=options.system, max_turns=options.max_turns)
    prompt = sys.stdin.read() if options.prompt == "-" else options.prompt
    if prompt is not None and not prompt.strip():
        raise ConfigurationError("The prompt is empty")
    if prompt is None:
        code = 0 if converse(conversation, display) else FAILED
    else:
        conversation.ask(prompt)
        code = 0
    sys.stdout.flush()  # here, where a closed pipe is still handled
    return code


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=PROGRAM, description="Chat models that run their own tools.")
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    chat = commands.add_parser("chat", help="ask a model that may call tools", description="Ask a model that may call tools.")
    chat.add_argument("prompt", nargs="?", help="the question; `-` reads it from standard input; without it a session starts")
    chat.add_argument(
        "--model",
        metavar="NAME",
        help=f"provider, provider:model or a model known by its name, of {', '.join(provider_names())} (local:FILE.gguf runs a file); "
        "default: a provider whose key is set in the environment, else the local model",
    )
    which = chat.add_mutually_exclusive_group()
    which.add_argument(
        "--tools",
        metavar="SOURCE",
        action="append",
        help="tools to use in place of the built-in ones: module:attribute, file.py or file.py:attribute; may be repeated",
    )
    which.add_argument("--no-tools", action="store_true", help="use no tools at all")
    chat.add_argument("--system", metavar="TEXT", help="the system message")
    chat.add_argument("--temperature", type=float, metavar="NUMBER", help="how freely the model chooses its words")
    chat.add_argument("--max-tokens", type=int, metavar="NUMBER", help="the longest reply of one turn")
    chat.add_argument("--max-turns", type=int, metavar="NUMBER", help="how many turns of one question may ask for tools")
    chat.add_argument("--json", action="store_true", help="print one JSON event a line")
    return parser


def _version() -> str:
    try:
        return version("langchain-autotools-chat")
    except PackageNotFoundError:
        return "(not installed)"


def _make_output_robust() -> None:
    """A character that the terminal cannot show is replaced, never an error."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def _drop_output() -> None:
    """Nobody reads any more: let the interpreter's last flush go nowhere."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
