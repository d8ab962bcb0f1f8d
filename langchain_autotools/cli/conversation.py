"""A conversation with a model that runs its own tools: one question, or a session that remembers."""

import sys
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_autotools.executor import ToolCallResult
from langchain_autotools.messages import KEY, ToolCallRecord, calls_of, new_messages, run_usage

from .display import Display, RunSummary

__all__ = ["Conversation", "converse"]

_LEAVE = {"/exit", "/quit"}
_START_OVER = "/new"


class Conversation:
    """The questions and answers so far, and the model that continues them.

    Args:
        model: A chat model of this package, with its tools.
        display: Who shows what happens.
        model_name: The model's name, for the summary of each run.
        system: The system message, if any.
        max_turns: The limit of one run; None for the model's own.
    """

    def __init__(
        self, model: BaseChatModel, display: Display, *, model_name: str, system: str | None = None, max_turns: int | None = None
    ) -> None:
        self._model = model
        self._display = display
        self._model_name = model_name
        self._system = system
        self._keywords: dict[str, Any] = {} if max_turns is None else {"max_turns": max_turns}
        self._calls: dict[str, ToolCallRecord] = {}
        self._answered: set[str] = set()
        self.history: list[BaseMessage] = []
        self.start_over()

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
                    if self._keep(new_messages(last)):
                        unfinished = ""
        except BaseException as error:
            with suppress(BrokenPipeError):
                self._keep(new_messages(error))
            if isinstance(error, KeyboardInterrupt) and unfinished.strip():
                self.history.append(AIMessage(unfinished))
            if len(self.history) == len(before) + 1:
                self.history = before
            raise
        self._display.done(self._summary(last))

    def _executed(self, result: ToolCallResult) -> None:
        self._answered.add(result.call.id)
        self._display.call_done(result)

    def _stream(self) -> Generator[AIMessageChunk]:
        stream: Any = self._model.stream
        shown = {"on_executing": self._display.call_started, "on_executed": self._executed}
        chunks: Generator[AIMessageChunk] = stream(list(self.history), **shown, **self._keywords)
        return chunks

    def _keep(self, messages: list[BaseMessage]) -> bool:
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
            self._executed(ToolCallResult(call, message, executed=False))

    def _summary(self, last: AIMessageChunk | None) -> RunSummary:
        run = (last.response_metadata.get(KEY) if last else None) or {}
        usage = run_usage(last) if last else None
        return RunSummary(self._model_name, run.get("stop_reason", "complete"), run.get("turns", 1), dict(usage) if usage else None)


def converse(conversation: Conversation, display: Display) -> bool:
    """A session: one question a line until the input ends. Ctrl-C ends a reply, not the session.

    Returns:
        Whether all questions were answered.
    """
    at_terminal = sys.stdin.isatty()
    if at_terminal:
        with suppress(ImportError):
            import readline  # noqa: F401  # its presence gives `input` editing and recall
        display.note("Ctrl-D or /exit leaves, /new starts over, Ctrl-C ends a reply.")
    complete = True
    for prompt in _prompts(display, at_terminal):
        if prompt == _START_OVER:
            conversation.start_over()
            continue
        try:
            conversation.ask(prompt)
        except KeyboardInterrupt:
            display.note("(interrupted)")
        except BrokenPipeError:
            raise
        except Exception as error:
            display.error(error)
            complete = False
            if not at_terminal:
                break
    return complete or at_terminal


def _prompts(display: Display, at_terminal: bool) -> Iterator[str]:
    while True:
        try:
            line = input(display.prompt if at_terminal else "").strip()
        except EOFError:
            if at_terminal:
                display.note("")
            return
        except KeyboardInterrupt:  # at the prompt it drops the line
            display.note("")
            if at_terminal:
                continue
            raise
        if line in _LEAVE:
            return
        if line:
            yield line
