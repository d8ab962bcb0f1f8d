"""A conversation with a model that runs its tools: asking, displaying and storing."""

from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langchain_autotools import event_types as kinds
from langchain_autotools import vendor_event_types as vendor_kinds
from langchain_autotools.event_reader import EventStream, events
from langchain_autotools.event_tables import NOTHING, EventTable
from langchain_autotools.event_types import RunEvent
from langchain_autotools.executor import Decision, PendingCall
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


_REMEMBERED: Final = EventTable[Callable[[Conversation, Any], None]](
    "CLI history",
    {
        kinds.RunStarted: NOTHING,
        kinds.TextDelta: Conversation._text,
        kinds.ReasoningDelta: NOTHING,
        kinds.CallStarted: NOTHING,
        kinds.CallArgumentsDelta: NOTHING,
        kinds.CallReady: NOTHING,
        kinds.CallDiscarded: NOTHING,
        kinds.CallProgress: NOTHING,
        kinds.CallResult: NOTHING,
        kinds.MessageDone: Conversation._message,
        kinds.MessageDiscarded: NOTHING,
        kinds.ModelChanged: NOTHING,
        kinds.MessagesAdded: NOTHING,
        kinds.TurnUsage: NOTHING,
        kinds.CallsPending: NOTHING,
        vendor_kinds.VendorCallStarted: NOTHING,
        vendor_kinds.VendorCallProgress: NOTHING,
        vendor_kinds.VendorCallDone: NOTHING,
        vendor_kinds.SourceFound: NOTHING,
        vendor_kinds.FileMade: NOTHING,
        kinds.RunEnded: NOTHING,
        kinds.RunFailed: NOTHING,
    },
)
