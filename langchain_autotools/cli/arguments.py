"""The commands and options of the command line."""

import argparse
import json
from collections.abc import Collection, Sequence
from typing import Any, NoReturn

from langchain_autotools._version import __version__
from langchain_autotools.providers.registry import PROVIDERS

PROGRAM = "langchain-autotools"


class UsageError(Exception):
    """Raised for an invalid command line."""


class Parser(argparse.ArgumentParser):
    """A parser that raises `UsageError` instead of ending the program."""

    def error(self, message: str) -> NoReturn:
        """Raise with one line that names the help."""
        raise UsageError(f"{message} (see `{self.prog} --help`)")


def make_parser() -> Parser:
    """Return the parser of the whole command line."""
    parser = Parser(prog=PROGRAM, description="Chat models that run their own tools.")
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    _add_chat(commands.add_parser("chat", help="ask a model that may call tools", description="Ask a model that may call tools."))
    names = "list the models that -m takes, as the provider's server lists them, or without a key those known here"
    _add_models(commands.add_parser("models", help="list the models of a provider", description=names.capitalize() + "."))
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
    chat.add_argument("--temperature", type=float, metavar="NUMBER", help="sampling temperature")
    chat.add_argument("--max-tokens", type=int, metavar="NUMBER", help="the most tokens of one reply")
    chat.add_argument("--max-turns", type=int, metavar="NUMBER", help="how many turns of one question may ask for tools")
    chat.add_argument("--history", metavar="FILE", help="continue the conversation in this file, and keep it there")
    chat.add_argument("--json", action="store_true", help="print one JSON event a line")


def _add_models(models: argparse.ArgumentParser) -> None:
    models.add_argument("provider", nargs="?", metavar="PROVIDER", help="the provider; default: as of `chat`")
    _add_model_options(models, "the same as PROVIDER")
    models.add_argument("--json", action="store_true", help="print one JSON object a line")


def _add_model_options(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "-m",
        "--model",
        metavar="NAME",
        help=f"provider, provider:model or a model known by its name, of {', '.join(PROVIDERS)} (local:FILE.gguf runs a file); {default}",
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


def constructor_arguments(options: argparse.Namespace, names: Sequence[str] = ("base_url",)) -> dict[str, Any]:
    """Return the model's constructor arguments: options of these names, and those of `--option`."""
    given = {name: getattr(options, name) for name in names}
    return {name: value for name, value in given.items() if value is not None} | dict(map(_option, options.option or ()))


def _option(pair: Sequence[str]) -> tuple[str, Any]:
    """Return a constructor argument: its value is parsed as JSON if possible, else text."""
    name, text = pair
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text


def take_question(options: argparse.Namespace, tool_names: Collection[str]) -> None:
    """Use the word after `--approve` as the question if there is no other and the word names no tool."""
    others = [word for word in options.approve or () if word not in tool_names]
    if options.prompt is None and len(others) == 1:
        options.approve.remove(others[0])
        options.prompt = others[0]
