"""The program: runs the command that its words name, with an exit code for every failure."""

import argparse
import json
import os
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from .._version import __version__
from ..errors import ConfigurationError
from ..run.settings import toolbox_of
from .conversation import Approver, Conversation, HistoryFile, converse
from .display import Display, EventDisplay, PlainDisplay, RichDisplay
from .models import PROVIDER_NAMES, list_models, open_model
from .tools import DEMO_TOOLS, LoadedTools, load_tools

PROGRAM = "langchain-autotools"
_FAILED, _WRONG_USE, _INTERRUPTED, _PIPE_CLOSED = 1, 2, 130, 141


class _UsageError(Exception):
    """Raised for an invalid command line."""


def run(words: Sequence[str]) -> int:
    """Run the command of these words; return the exit code."""
    _make_output_robust()
    display = make_display(as_json="--json" in words)
    try:
        _run_command(words, display)
        sys.stdout.flush()  # here, where a closed pipe is still handled
        return 0
    except _UsageError as error:
        display.error(error)
        return _WRONG_USE
    except KeyboardInterrupt:
        display.interrupted()
        return _INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return _PIPE_CLOSED
    except Exception as error:
        display.error(error)
        return _FAILED


def _run_command(words: Sequence[str], display: Display) -> None:
    parser = make_parser()
    if not words:
        parser.print_help()
        return
    options = parser.parse_args(words)
    if options.command == "models":
        list_models(options.provider or options.model, _constructor_arguments(options), display)
    else:
        _chat(options, display)


def _chat(options: argparse.Namespace, display: Display) -> None:
    loaded = load_tools(options.tools or []) if options.tools or options.no_tools else None
    _take_question(options, [tool.name for tool in DEMO_TOOLS] if loaded is None else loaded.names)
    prompt = _prompt(options, display)
    file = HistoryFile(options.history) if options.history else None
    settings = _constructor_arguments(options, ("temperature", "max_tokens", "base_url"))
    if options.approve:
        settings["requires_approval"] = options.approve
    chosen = open_model(options.model, None if loaded is None else loaded.tools, settings)
    display.model(chosen.name, chosen.reason)
    if chosen.built_in:
        display.note(f"tools: {', '.join(tool.name for tool in chosen.built_in)} (built in; the temperatures are invented)")
    if loaded is not None:
        _note_tools(loaded, display)
    approve = None if options.approve is None else Approver(toolbox_of(chosen.model).executor, display)
    if approve is not None:
        display.asked = options.approve or None
    conversation = Conversation(chosen.model, display, system=options.system, max_turns=options.max_turns, approve=approve, file=file)
    if prompt is None:
        converse(conversation, display)
    else:
        conversation.ask(prompt)


def _note_tools(loaded: LoadedTools, display: Display) -> None:
    if loaded.names:
        display.note(f"tools: {', '.join(loaded.names)} (of {', '.join(loaded.sources)})")
    if loaded.passed_over:
        display.note(f"passed over: {'; '.join(f'{name} ({reason})' for name, reason in loaded.passed_over)}")


def _prompt(options: argparse.Namespace, display: Display) -> str | None:
    """Return the question: piped input and the prompt, combined; None for a session.

    With approvals and a prompt nothing is read here: standard input is for the answers.

    Raises:
        ConfigurationError: It is empty.
    """
    given = options.prompt
    at_terminal = sys.stdin is not None and sys.stdin.isatty()
    if given is None and at_terminal:
        return None
    for_answers = options.approve is not None and given not in (None, "-")
    if for_answers and sys.stdin is not None and not at_terminal:
        display.note("Standard input is for answers: one line each.")
    piped = "" if sys.stdin is None or for_answers or (at_terminal and given != "-") else sys.stdin.read()
    parts = [part for part in (piped, "" if given in (None, "-") else given) if part and part.strip()]
    if not parts:
        raise ConfigurationError("The prompt is empty")
    return "\n\n".join([*(part.rstrip() for part in parts[:-1]), parts[-1]])


def _make_output_robust() -> None:
    """Replace characters that the terminal cannot show, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def _drop_output() -> None:
    """Discard further output after its reader has gone, including the interpreter's last flush."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def make_display(*, as_json: bool) -> Display:
    """Return the display for the output: JSON events on request, colours at a terminal with `rich`, else plain text.

    Plain text keeps answers (standard output) apart from everything else (standard error). NO_COLOR, if set, means no colours.
    """
    if as_json:
        return EventDisplay(sys.stdout)
    if not os.environ.get("NO_COLOR") and (sys.stdout.isatty() or sys.stderr.isatty()):
        with suppress(ImportError):
            return RichDisplay(sys.stdout, sys.stderr)
    return PlainDisplay(sys.stdout, sys.stderr)


# ---------------------------------------------------------------------------------------------- the words of a command


class _Parser(argparse.ArgumentParser):
    """A parser that raises `_UsageError` instead of ending the program."""

    def error(self, message: str) -> NoReturn:
        """Raise with one line that names the help."""
        raise _UsageError(f"{message} (see `{self.prog} --help`)")


def make_parser() -> _Parser:
    """Return the parser of the whole command line."""
    parser = _Parser(prog=PROGRAM, description="Chat models that run their own tools.")
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
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


def _constructor_arguments(options: argparse.Namespace, names: Sequence[str] = ("base_url",)) -> dict[str, Any]:
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


def _take_question(options: argparse.Namespace, tool_names: Collection[str]) -> None:
    """Use the word after `--approve` as the question if there is no other and the word names no tool."""
    others = [word for word in options.approve or () if word not in tool_names]
    if options.prompt is None and len(others) == 1:
        options.approve.remove(others[0])
        options.prompt = others[0]
