"""The program: runs one command, and turns every failure into one line and an exit code."""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from langchain_autotools.errors import ConfigurationError
from langchain_autotools.run.settings import toolbox_of

from .approving import Approver
from .arguments import UsageError, constructor_arguments, make_parser, take_question
from .conversation import Conversation
from .demo_tools import DEMO_TOOLS
from .display import Display, make_display
from .history_file import HistoryFile
from .listing import list_models
from .models import open_model
from .session import converse
from .tools import LoadedTools, load_tools

FAILED, WRONG_USE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141


def run(words: Sequence[str]) -> int:
    """Run the command of these words; return the exit code."""
    _make_output_robust()
    display = make_display(as_json="--json" in words)
    try:
        _obey(words, display)
        sys.stdout.flush()  # here, where a closed pipe is still handled
        return 0
    except UsageError as error:
        display.error(error)
        return WRONG_USE
    except KeyboardInterrupt:
        display.interrupted()
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return PIPE_CLOSED
    except Exception as error:
        display.error(error)
        return FAILED


def _obey(words: Sequence[str], display: Display) -> None:
    parser = make_parser()
    if not words:
        parser.print_help()
        return
    options = parser.parse_args(words)
    if options.command == "models":
        list_models(options.provider or options.model, constructor_arguments(options), display)
    else:
        _chat(options, display)


def _chat(options: argparse.Namespace, display: Display) -> None:
    loaded = load_tools(options.tools or []) if options.tools or options.no_tools else None
    take_question(options, [tool.name for tool in DEMO_TOOLS] if loaded is None else loaded.names)
    prompt = _prompt(options, display)
    file = HistoryFile(options.history) if options.history else None
    settings = constructor_arguments(options, ("temperature", "max_tokens", "base_url"))
    if options.approve:
        settings["requires_approval"] = options.approve
    chosen = open_model(options.model, None if loaded is None else loaded.tools, settings)
    display.model(chosen.name, chosen.reason)
    if chosen.built_in:
        display.note(f"tools: {', '.join(tool.name for tool in chosen.built_in)} (built in; the temperatures are invented)")
    if loaded is not None:
        _tell_tools(loaded, display)
    approve = None if options.approve is None else Approver(toolbox_of(chosen.model).executor, display)
    if approve is not None:
        display.asked = options.approve or None
    conversation = Conversation(chosen.model, display, system=options.system, max_turns=options.max_turns, approve=approve, file=file)
    if prompt is None:
        converse(conversation, display)
    else:
        conversation.ask(prompt)


def _tell_tools(loaded: LoadedTools, display: Display) -> None:
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
