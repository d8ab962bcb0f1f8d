"""A conversation with a model that runs its own tools: it asks, shows what comes, and remembers."""

from collections.abc import Callable, Generator
from contextlib import closing, suppress
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_autotools.executor import Decision, PendingCall, ToolCallResult
from langchain_autotools.messages.calls import ToolCallRecord, calls_of
from langchain_autotools.messages.carrier import new_messages

from .display import Display
from .history_file import HistoryFile


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
        self._system = system
        given = {"max_turns": max_turns, "approve": approve}
        self._keywords = {name: value for name, value in given.items() if value is not None}
        self._calls: dict[str, ToolCallRecord] = {}
        self._answered: set[str] = set()
        self._file = file
        self.history: list[BaseMessage] = []
        self.start_over()
        stored = file.read() if file else []
        self.history += stored[1:] if self._system and stored and stored[0].type == "system" else stored

    def start_over(self) -> None:
        """Forget everything but the system message."""
        self.history = [SystemMessage(self._system)] if self._system else []
        self._calls.clear()
        self._answered.clear()

    def ask(self, prompt: str) -> None:
        """Put one question and show the whole answer.

        Where the run fails or is interrupted the history keeps what was completed and, of an interrupted one, what the
        reader saw of the rest, so that "go on" makes sense; a question that nothing came of is forgotten.
        """
        before = list(self.history)
        self.history.append(HumanMessage(prompt))
        unfinished = ""
        last: AIMessageChunk | None = None
        try:
            with closing(self._stream()) as chunks:  # an interrupted reply ends at the server too
                for last in chunks:
                    unfinished += last.text
                    if last.text:
                        self._display.text(last.text)
                    if self._add_messages(new_messages(last)):
                        unfinished = ""
        except BaseException as error:
            with suppress(BrokenPipeError):
                self._add_messages(new_messages(error))
            if isinstance(error, KeyboardInterrupt) and unfinished.strip():
                self.history.append(AIMessage(unfinished))
            if len(self.history) == len(before) + 1:
                self.history = before
            raise
        finally:
            if self._file is not None and len(self.history) > len(before):
                self._file.write(self.history)
        self._display.done(last or AIMessage(""))

    def _executed(self, result: ToolCallResult) -> None:
        self._answered.add(result.call.id)
        self._display.call_done(result)

    def _stream(self) -> Generator[AIMessageChunk]:
        stream: Any = self._model.stream
        shown = {"on_executing": self._display.call_started, "on_executed": self._executed}
        chunks: Generator[AIMessageChunk] = stream(list(self.history), **shown, **self._keywords)
        return chunks

    def _add_messages(self, messages: list[BaseMessage]) -> bool:
        self.history += messages
        for message in messages:
            if isinstance(message, AIMessage):
                self._calls |= {call.id: call for call in calls_of(message)}
            elif isinstance(message, ToolMessage):
                self._show_unexecuted(message)
            self._display.message(message)
        return bool(messages)

    def _show_unexecuted(self, message: ToolMessage) -> None:
        """Show the answer to a call that no tool was asked for: a limit or an interrupt came first."""
        call = self._calls.get(message.tool_call_id)
        if call is not None and call.id not in self._answered:
            self._executed(ToolCallResult(call, message, executed=False, attempts=0))
