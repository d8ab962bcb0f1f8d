"""A conversation at the terminal, from the question that is read to the answer that is kept in a file."""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, messages_from_dict

from .. import event_types as kinds
from ..errors import ConfigurationError
from ..event_reader import EventStream, events
from ..event_types import RunEvent
from ..executor import Decision, PendingCall, ToolExecutor
from ..executor.pending import ELICITATION, full_name, with_decision
from ..messages.calls import ToolCallRecord
from ..messages.run_messages import new_messages, serialize_messages
from ..strict_json import read_object
from .display import Display, one_line

_COMMANDS = {
    "/new": "starts over",
    "/help": "shows this",
    "/exit": "leaves, as /quit and Ctrl-D do",
}
_LEAVE = {"/exit", "/quit"}
_PASTE, _PASTED = "\x1b[200~", "\x1b[201~"  # what a terminal sets around pasted text (bracketed paste)
_UNANSWERED = "The user was asked whether this call may run, and gave no answer. It did not run."


# -------------------------------------------------------------------------------- a session: questions and commands, until the human leaves


def converse(conversation: "Conversation", display: Display) -> None:
    """Hold a session: one question a line, pasted lines together, until the human leaves. Ctrl-C ends a reply, not the session."""
    display.note("Type a question. /help lists the commands, Ctrl-D leaves, Ctrl-C ends a reply.")
    with _marked_pastes():
        for line in _questions(display):
            if line.strip() in _LEAVE:
                return
            if line.startswith("/"):
                _run_session_command(line.strip(), conversation, display)
            else:
                _ask(line.strip(), conversation, display)


def _ask(question: str, conversation: "Conversation", display: Display) -> None:
    try:
        conversation.ask(question)
    except KeyboardInterrupt:
        display.interrupted()
    except BrokenPipeError:
        raise
    except Exception as error:
        display.error(error)


def _run_session_command(command: str, conversation: "Conversation", display: Display) -> None:
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
            line = _read_line(display.prompt)
        except EOFError:
            display.note("")
            return
        except KeyboardInterrupt:  # at the prompt it drops the line
            display.note("")
            continue
        if line.strip():
            yield line


def _read_line(prompt: str) -> str:
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


# ---------------------------------------------------------------------------------------------- the conversation, kept in a file


class HistoryFile:
    """A file with a conversation.

    Args:
        path: The file; it need not exist yet.

    Raises:
        ConfigurationError: No file can be written there.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        folder = self._path.absolute().parent
        if self._path.is_dir() or not os.access(folder, os.W_OK):
            raise ConfigurationError(f"--history {path}: no file can be written there")

    def read(self) -> list[BaseMessage]:
        """Return the messages in the file; an empty list if it does not exist.

        Raises:
            ConfigurationError: It holds something else.
        """
        try:
            stored = json.loads(self._path.read_text(encoding="utf-8"))
            if not isinstance(stored, list):
                raise TypeError(type(stored).__name__)
            return messages_from_dict(stored)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ConfigurationError(f"--history {self._path}: cannot be read: {error.strerror or error}") from error
        except Exception as error:
            raise ConfigurationError(f"--history {self._path}: holds no conversation (a JSON list of messages)") from error

    def write(self, messages: Sequence[BaseMessage]) -> None:
        """Replace the file's content by these messages. A new file is readable only by its owner."""
        text = json.dumps(serialize_messages(messages), ensure_ascii=False, indent=1)
        handle, unfinished = tempfile.mkstemp(dir=self._path.absolute().parent, prefix=f".{self._path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text + "\n")
            with suppress(FileNotFoundError):
                os.chmod(unfinished, self._path.stat().st_mode & 0o777)
            os.replace(unfinished, self._path)
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise


class Conversation:
    """The questions and answers so far, and the model that continues them.

    Args:
        model: A chat model of this package, with its tools.
        display: Who shows what happens.
        system: The system message, if any.
        max_turns: The limit of one run; None for the model's own.
        approve: Decides about calls that need approval; None for nobody.
        file: Holds the conversation to continue, and gets it after each question.
    """

    def __init__(
        self,
        model: BaseChatModel,
        display: Display,
        *,
        system: str | None = None,
        max_turns: int | None = None,
        approve: Callable[[PendingCall], Decision] | None = None,
        file: HistoryFile | None = None,
    ) -> None:
        self._model = model
        self._display = display
        display.joined.separate_by(getattr(model, "message_separator", "\n"))
        self._system = system
        given = {"max_turns": max_turns, "approve": approve}
        self._keywords = {name: value for name, value in given.items() if value is not None}
        self._unfinished = ""  # the text of a message that is being written
        self._file = file
        self.history: list[BaseMessage] = []
        self.start_over()
        stored = file.read() if file else []
        self.history += stored[1:] if self._system and stored and stored[0].type == "system" else stored

    def start_over(self) -> None:
        """Drop everything but the system message."""
        self.history = [SystemMessage(self._system)] if self._system else []

    def ask(self, prompt: str) -> None:
        """Ask one question and show the whole answer.

        Where the run fails or is interrupted the history keeps what was completed and, of an interrupted one, what the
        reader saw of the rest, so that "go on" makes sense; a question that nothing came of is forgotten.
        """
        before = list(self.history)
        self.history.append(HumanMessage(prompt))
        self._unfinished = ""
        try:
            with closing(self._stream()) as run:  # an interrupted reply ends at the server too
                for event in run:
                    self._take(event)
        except BaseException as error:
            self._keep(error)
            if len(self.history) == len(before) + 1:
                self.history = before
            raise
        finally:
            if self._file is not None and len(self.history) > len(before):
                self._file.write(self.history)

    def _stream(self) -> EventStream:
        stream: Any = self._model.stream
        return events(stream(list(self.history), **self._keywords))

    def _take(self, event: RunEvent) -> None:
        """Store and show an event. Runs inside tools are not part of the conversation."""
        remember = _REMEMBERED.get(type(event))
        if remember is not None and event.parent_run_id is None:
            remember(self, event)
        self._display.show(event)

    def _text(self, event: kinds.TextDelta) -> None:
        self._unfinished += event.text

    def _message(self, event: kinds.MessageDone) -> None:
        self.history.append(event.message)
        self._unfinished = ""

    def _keep(self, error: BaseException) -> None:
        """Store the messages of a run that broke off, and the visible text of an interrupted one."""
        known = {message.id for message in self.history}
        missing = [message for message in new_messages(error) if message.id not in known]
        self.history += missing
        if isinstance(error, KeyboardInterrupt) and self._unfinished.strip() and not missing:
            self.history.append(AIMessage(self._unfinished))


_REMEMBERED: Final[Mapping[type[RunEvent], Callable[[Conversation, Any], None]]] = {
    kinds.TextDelta: Conversation._text,
    kinds.MessageDone: Conversation._message,
}
"""What of a run belongs to the conversation."""


# ---------------------------------------------------------------------------------------------- approval of calls by the human


class Approver:
    """Asks about one call after another on standard input; a value for `approve=`.

    Args:
        executor: Knows the tools, and what arguments they take.
        display: Shows the calls.
    """

    def __init__(self, executor: ToolExecutor, display: Display) -> None:
        self._executor = executor
        self._display = display

    def __call__(self, call: PendingCall) -> Decision:
        """Return the human's decision about the call: y, n, e and other arguments, or a reason. Without an answer it does not run."""
        shown = ToolCallRecord(call.id, full_name(call), json.dumps(call.args), call.args)
        while True:
            self._display.call_waits(shown, call)
            try:
                decision = self._answered(call, _read_line(self._display.question).strip())
                if decision is not None:
                    self._tell(with_decision(shown, decision) if call.path else self._executor.decided(shown, decision))
                    return decision
            except (EOFError, KeyboardInterrupt):
                self._display.note("\n(no answer: the call does not run)")
                return call.reject(_UNANSWERED)
            except ConfigurationError as error:
                self._display.note(one_line(error))

    def _tell(self, call: ToolCallRecord) -> None:
        """Show the call that runs now; a rejected one has no arguments."""
        if call.args is not None:
            self._display.call_allowed(call)

    def _answered(self, call: PendingCall, answer: str) -> Decision | None:
        """Return the decision for an answer; None if the answer is invalid."""
        if answer.lower() in ("y", "yes"):
            return call.approve()
        if answer.lower() in ("n", "no"):
            return call.reject()
        if answer.lower() in ("e", "edit"):
            args = read_object(_read_line(self._display.edit_question))
            if args is None:
                raise ConfigurationError('the arguments are a JSON object on one line, such as {"city": "Paris"}')
            return call.respond(args) if call.kind == ELICITATION else call.edit(args)
        return call.reject(answer) if answer else None
