"""The program's words: which command they name with which options, or what is wrong with them. Neither needs LangChain."""

import argparse
import json
import math
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import NoReturn

from .._version import __version__
from ..providers.known import LANGCHAIN_CLASSES, PROVIDERS

PROGRAM = "langchain-autotools"
_WRONG_USE, _PIPE_CLOSED = 2, 141
_OF_PROGRAM = ("-h", "--help", "--version")
_COMMANDS = ("chat", "models")
_NEAR = 0.7  # the least similarity of a misspelt option
PROVIDER_NAMES = f"{', '.join(PROVIDERS)}, or with the packages of LangChain's that docs/providers.md names {', '.join(LANGCHAIN_CLASSES)}"
"""The names of all providers, for a help text."""


class UsageError(Exception):
    """Raised for an invalid command line."""


def run(words: Sequence[str]) -> int:
    """Run the command of these words; return the exit code."""
    for stream in (sys.stdout, sys.stderr):  # what a terminal cannot show is replaced
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        return _run(words)
    except BrokenPipeError:
        with suppress(OSError, ValueError):  # nobody reads any more, the interpreter's last flush included
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED


def _run(words: Sequence[str]) -> int:
    if not words:
        make_parser().print_help()
        return 0
    try:
        options = parse(words)
    except UsageError as error:
        _tell(error, as_json="--json" in words)
        return _WRONG_USE
    from .commands import run_command  # here, because a help text and a wrong option need nothing of it

    return run_command(options)


def _tell(error: UsageError, *, as_json: bool) -> None:
    """Print what is wrong: one line on standard error, or an event, as a display does."""
    text = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in " ".join(str(error).split()))
    if as_json:
        print(json.dumps({"type": "error", "error": type(error).__name__, "message": text}), flush=True)
    else:
        print(f"error: {text}", file=sys.stderr, flush=True)


# ---------------------------------------------------------------------------------------------- what the words mean


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Return the options of the command that words name. Where they begin with an option of its, `chat` is meant.

    Raises:
        UsageError: They are wrong.
    """
    first = words[0]
    if first.startswith("-") and first not in _OF_PROGRAM:
        words = ["chat", *words]
    elif not first.startswith("-") and first not in _COMMANDS:
        near = get_close_matches(first, _COMMANDS, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(f"there is no command {first!r}: {hint}A question goes behind `chat`, in quotes (see `{PROGRAM} --help`)")
    options, further = make_parser().parse_known_args(words)
    if further:
        raise UsageError(f"{_unknown(options.command, further)} (see `{PROGRAM} {options.command} --help`)")
    return options


def _unknown(command: str, words: Sequence[str]) -> str:
    """Return what is wrong with words that a command does not take."""
    option = next((word.partition("=")[0] for word in words if word.startswith("-")), None)
    if option is None:
        wanted = f"put the question in quotes, as in `{PROGRAM} chat {chr(34)}How warm is it in Paris?{chr(34)}`"
        return f"{command} takes no further word {words[0]!r}" + (f": {wanted}" if command == "chat" else "")
    near = get_close_matches(option, [*_option_names(command), *_OF_PROGRAM], n=1, cutoff=_NEAR)
    return f"{command} has no option {option}" + (f": did you mean {near[0]}?" if near else "")


def _option_names(command: str) -> list[str]:
    commands = next(action for action in make_parser()._actions if isinstance(action, argparse._SubParsersAction))
    return [name for action in commands.choices[command]._actions for name in action.option_strings]


# ---------------------------------------------------------------------------------------------- commands and options


class _Parser(argparse.ArgumentParser):
    """A parser that raises `UsageError` instead of ending the program."""

    def error(self, message: str) -> NoReturn:
        """Raise with one line that names the help."""
        raise UsageError(f"{message} (see `{self.prog} --help`)")


def make_parser() -> _Parser:
    """Return the parser of the whole command line."""
    parser = _Parser(prog=PROGRAM, description="Chat models that run their own tools.")
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    _add_chat(commands.add_parser("chat", help="ask a model that may call tools", description="Ask a model that may call tools."))
    names = "list the models that -m takes, as the provider's server lists them, or without a key those known here"
    models = commands.add_parser("models", help="list the models of a provider", description=names.capitalize() + ".")
    models.add_argument("provider", nargs="?", metavar="PROVIDER", help="the provider; default: as of `chat`")
    _add_model_options(models, "the same as PROVIDER")
    models.add_argument("--json", action="store_true", help="print one JSON object a line")
    return parser


def _add_chat(chat: argparse.ArgumentParser) -> None:
    chat.add_argument(
        "prompt",
        nargs="?",
        help="the question; what is piped in comes before it (with --approve it is the answers), or is the question; "
        "without both a session starts",
    )
    _add_model_options(chat, "default: a provider whose key is set in the environment, else the local model")
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
        help="ask before a call of one of these tools runs, or without names before any call; answers are read from standard input",
    )
    chat.add_argument("-s", "--system", metavar="TEXT", help="the system message")
    chat.add_argument("--temperature", type=_number, metavar="NUMBER", help="sampling temperature")
    chat.add_argument("--max-tokens", type=_whole, metavar="NUMBER", help="the most tokens of one reply")
    chat.add_argument("--max-turns", type=_count, metavar="NUMBER", help="how many turns of one question may ask for tools")
    chat.add_argument("--history", metavar="FILE", help="continue the conversation in this file, and keep it there")
    chat.add_argument("--json", action="store_true", help="print one JSON event a line")


def _add_model_options(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "-m",
        "--model",
        metavar="NAME",
        help=f"provider, provider:model or a model known by its name, of {PROVIDER_NAMES} (local:FILE.gguf runs a file); {default}",
    )
    parser.add_argument("--base-url", metavar="URL", help="the address of the provider's API, or of a server compatible with it")
    parser.add_argument(
        "-o",
        "--option",
        nargs=2,
        metavar=("NAME", "VALUE"),
        action="append",
        help="any other constructor argument of the model's class, its value as JSON or text; may be repeated",
    )


def _number(text: str) -> float:
    """Return the number that a text says, for an option."""
    with suppress(ValueError):
        if math.isfinite(number := float(text)):
            return number
    raise argparse.ArgumentTypeError(f"must be a number, not {text!r}")


def _whole(text: str) -> int:
    """Like `_number`, for whole numbers."""
    with suppress(ValueError):
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}")


def _count(text: str) -> int:
    """Like `_whole`, for numbers above 0."""
    if (number := _whole(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, not {text!r}")
    return number
