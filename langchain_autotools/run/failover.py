"""Failover inside a run: a turn whose model fails is made by the next of the model's fallbacks.

Before any text has left, another model is asked and the caller does not notice. After text, the turn ends as a cut one: the text is a
message of its own, its calls never run, and the next turn goes to the next model, which is asked to go on.
"""

import logging
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from typing import Any, ClassVar, cast

from langchain_core.exceptions import ModelError
from langchain_core.messages import AIMessage, AIMessageChunk

from ..chunks import ChunkSum
from ..deadline import DeadlinePassed
from ..errors import StreamError
from ..event_types import ModelChanged
from ..messages.endings import stop_reason
from ..messages.failover import failover_mark, with_mark
from ..messages.finish_reasons import BROKEN_OFF
from ..messages.live import cut_reply
from ..messages.metadata import own_metadata, text_of, with_own_metadata
from ..messages.rejected import with_rejected
from .failover_models import FailoverModels, check_fallbacks
from .failover_rules import FailoverRules
from .first_token import afirst_in_time, first_in_time
from .run import cut_message
from .settings import is_parsed
from .turn_wrappers import AsyncProceed, Discarded, Mark, Notice, Proceed, Restart, Stored, TurnPart, TurnRequest, TurnWrapper

_logger = logging.getLogger("langchain_autotools")

_FORMATS = ("response_format", "response_schema", "response_json_schema", "response_mime_type", "format")
_HOLD_FORMATS = ("output_config", "text")


class Failover(TurnWrapper):
    """The failover of one run.

    Args:
        model: The run's model.
        tools: The tools that it declares itself.

    Raises:
        ConfigurationError: A fallback cannot take the model's place.
    """

    layer: ClassVar[str] = "failover"

    def __init__(self, model: Any, tools: Sequence[Any]) -> None:
        check_fallbacks(model, tools)
        self.rules = FailoverRules.of(model)
        self.models = FailoverModels(model)
        self._is_checked = False

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[TurnPart]:
        """Yield the parts of a turn by the first model that does not fail, or up to where one fails after text."""
        turn = self._begin(request)
        while not turn.is_over:
            try:
                with closing(first_in_time(proceed(turn.request), turn.first_token)) as parts:
                    for part in parts:
                        yield from turn.part(part)
                turn.is_over = True
            except Exception as error:
                yield from turn.failed(error)

    async def awrap_turn(self, request: TurnRequest, proceed: AsyncProceed) -> AsyncGenerator[TurnPart, None]:
        """Like `wrap_turn`, asynchronously."""
        turn = self._begin(request)
        while not turn.is_over:
            try:
                async with aclosing(_aparts(turn, proceed)) as parts:
                    async for part in parts:
                        yield part
            except Exception as error:
                for one in turn.failed(error):
                    yield one

    def _begin(self, request: TurnRequest) -> "_Turn":
        if not self._is_checked:  # before the first request, not when a model has failed
            self.models.check(request)
            self._is_checked = True
        return _Turn(self.rules, self.models, request)


async def _aparts(turn: "_Turn", proceed: AsyncProceed) -> AsyncGenerator[TurnPart, None]:
    """Yield what leaves of one model's reply, and end the turn with it."""
    made = cast("AsyncGenerator[TurnPart, None]", proceed(turn.request))
    async with aclosing(afirst_in_time(made, turn.first_token)) as parts:
        async for part in parts:
            for one in turn.part(part):
                yield one
    turn.is_over = True


class _BrokenOff(Exception):
    """Raised for a reply whose last part says that it did not end well.

    Attributes:
        error: The error that describes it.
        part: The last part.
    """

    def __init__(self, error: Exception, part: AIMessage) -> None:
        super().__init__(str(error))
        self.error = error
        self.part = part


class _Turn:
    """One turn, by one model after another.

    Args:
        rules: The rules.
        models: The models.
        request: The request for the run's own model.

    Attributes:
        is_over: Whether the turn has its end.
        request: The request of the current attempt.
    """

    def __init__(self, rules: FailoverRules, models: FailoverModels, request: TurnRequest) -> None:
        self.is_over = False
        self._rules = rules
        self._models = models
        self._asked = request
        self._left = models.order(request.messages)
        self._begun_at = self._left[0]
        self._number = self._begun_at
        self._notes: list[str] = []
        self._rejected: list[AIMessage] = []
        self._first: list[TurnPart] = []
        self._go_to(models.warm(self._left), None)

    def _go_to(self, number: int, error: Exception | None) -> None:
        """Begin the attempts at a model, after this error of another one."""
        if number != self._number:
            self._first.append(self._notice(number, error, after_text=False))
        if number and not self._number:
            self._models.left_behind(self._asked)
        self._number = number
        self._left.remove(number)
        self.request = self._models.request(number, self._asked, self._rules.attempts if self._left else None)
        self._chunks = ChunkSum()
        self._held: list[TurnPart] = []
        self._has_text = False

    @property
    def first_token(self) -> float | None:
        """The seconds within which the current attempt must begin; None for no limit."""
        return self._rules.first_token if self._left and self.request.streams else None

    # ------------------------------------------------------------------------------------------ what comes

    def part(self, part: TurnPart) -> Sequence[TurnPart]:
        """Return what leaves of a part. White space before the text is held back: it makes no text.

        Raises:
            _BrokenOff: The reply ends, and not well.
        """
        if isinstance(part, Mark):
            return self._out(part)
        if getattr(part, "chunk_position", "last") == "last":
            return self._last(part)
        if not self._has_text:
            text = text_of(part)
            self._has_text = bool(text.strip())
            if not self._has_text and (text or self._held):
                self._held.append(part)
                return ()
        held, self._held = self._held, []
        for one in (*held, part):
            self._chunks.add(cast("AIMessageChunk", one))
        return self._out(*held, part)

    def _last(self, part: AIMessage) -> Sequence[TurnPart]:
        reason = str(part.response_metadata.get("finish_reason") or "").lower()
        if reason in BROKEN_OFF:
            raise _BrokenOff(StreamError(f"the reply did not come to its end (finish reason {reason!r})"), part)
        if self._rules.ended_as and not self._has_text and (ended := stop_reason(part)) in self._rules.ended_as:
            raise _BrokenOff(ModelError(f"the reply ended as {ended!r}"), part)
        return self._end(part)

    def _end(self, part: AIMessage) -> Sequence[TurnPart]:
        """Return the last parts of a reply that stays."""
        self.is_over = True
        if self._number != self._begun_at:
            part = with_mark(part, self._mark(self._begun_at, self._number, after_text=False))
        held, self._held = self._held, []
        return self._out(*held, with_rejected(part, self._rejected))

    def _out(self, *parts: TurnPart) -> Sequence[TurnPart]:
        first, self._first = self._first, []
        return [*first, *parts]

    # ------------------------------------------------------------------------------------------ what fails

    def failed(self, error: Exception) -> Sequence[TurnPart]:
        """Return the marks between a failed attempt and what comes next.

        Raises:
            Exception: The error, where no other model answers it.
        """
        part = error.part if isinstance(error, _BrokenOff) else None
        cause = error.error if isinstance(error, _BrokenOff) else error
        if self.is_over or isinstance(error, DeadlinePassed):
            raise error
        self._asked.end.check()
        name = self._models.names[self._number]
        if part is None and not self._rules.applies(cause):
            raise self._noted(cause)
        self._models.cool(self._number, self._rules.cooldown)
        if not self._left or (self._has_text and not self._may_go_on()):
            if part is not None and not (self._left and self._rules.after_text == "raise"):
                return self._end(part)
            raise self._noted(cause)
        self._notes.append(f"{name} failed before: {type(cause).__name__}")
        _logger.warning("%s failed (%s): %s is asked", name, type(cause).__name__, self._models.names[self._models.warm(self._left)])
        known = part or cut_reply(cause)
        return self._cut(cause, known) if self._has_text and not self._is_withheld() else self._again(cause, known)

    def _again(self, error: Exception, part: AIMessage | None) -> Sequence[TurnPart]:
        """Ask the next model for the same turn. The tokens that the last part of a reply reports count."""
        if isinstance(part, AIMessageChunk):
            self._chunks.add(part)
            part = self._chunks.message()
        if part is not None and part.usage_metadata is not None:
            self._rejected.append(part)
        marks = self._out(Discarded())
        self._go_to(self._models.warm(self._left), error)
        return [*marks, *self._out()]

    def _cut(self, error: Exception, part: AIMessage | None) -> Sequence[TurnPart]:
        """End the turn with the text that has left."""
        self.is_over = True
        to = self._models.warm(self._left)
        if isinstance(part, AIMessageChunk):
            self._chunks.add(part)
        message = cast("AIMessage", cut_message(self._chunks.message()))  # it has text
        own = {name: value for name, value in own_metadata(message).items() if name == "origin"}
        said = {**message.response_metadata, "finish_reason": "incomplete"}
        stored = message.model_copy(update={"response_metadata": with_own_metadata(said, own)})
        stored = with_rejected(with_mark(stored, self._mark(self._number, to, after_text=True)), self._rejected)
        return self._out(Restart(), self._notice(to, error, after_text=True), Stored(stored))

    def _may_go_on(self) -> bool:
        """Whether another model may follow after text."""
        return self._is_withheld() or (self._rules.after_text == "continue" and not self._is_formatted())

    def _is_withheld(self) -> bool:
        """Whether the run holds text back until its turn is whole, because somebody parses it."""
        return is_parsed(self._asked.keywords)

    def _is_formatted(self) -> bool:
        """Whether the call or the model's own fields demand a form of its reply, which two models cannot write together."""
        model = self.request.model
        given = {**(getattr(model, "model_kwargs", None) or {}), **self.request.keywords}
        values = {name: given.get(name) or getattr(model, name, None) for name in (*_FORMATS, *_HOLD_FORMATS)}
        inside = [values.pop(name) for name in _HOLD_FORMATS]
        return any(values.values()) or any(isinstance(value, Mapping) and value.get("format") for value in inside)

    def _noted(self, error: Exception) -> Exception:
        for note in self._notes:
            error.add_note(note)
        self._notes = []
        return error

    def _mark(self, number: int, to: int, *, after_text: bool) -> dict[str, Any]:
        return failover_mark(self._models.names[number], self._models.names[to], after_text=after_text)

    def _notice(self, to: int, error: Exception | None, *, after_text: bool) -> Notice:
        names = self._models.names
        return Notice(ModelChanged(run_id="", from_model=names[self._number], to_model=names[to], error=error, after_text=after_text))
