"""Replies that do not fit their schema, sent back to the model with the error."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, ClassVar, cast

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration
from pydantic import ValidationError

from ...errors import ConfigurationError
from ...messages.calls import calls_of
from ...messages.failover import OF_RUN
from ...messages.metadata import KEY
from ...messages.pauses import is_paused
from ...run.model_calls import Attempt, with_records
from ...run.phases import generator_of
from ...run.turn_wrappers import AsyncProceed, Proceed, TurnPart, TurnRequest, TurnWrapper
from .structured import check_complete

_AGAIN = "The output is not valid: {problem}\nAnswer again, with the whole output."
_NOT_RUN = "Not run: the output beside this call was not valid."


def output_check(parser: Any, retries: Any, name: str | None = None) -> dict[str, Any]:
    """Return the run keyword that has each output checked; empty without retries.

    Args:
        parser: Reads the output.
        retries: How often a reply goes back to the model.
        name: The tool whose call is the output; None: the text is.

    Raises:
        ConfigurationError: `retries` is no such number.
    """
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise ConfigurationError(f"retries must be a whole number of at least 0, not {retries!r}")
    return {"output_check": _OutputCheck(parser, retries, name)} if retries else {}


class _OutputCheck(TurnWrapper):
    """A wrapper of turns that makes a turn again whose output does not parse. It holds its parts back, as the run does with its text."""

    layer: ClassVar[str] = "before_turn"

    def __init__(self, parser: Any, retries: int, name: str | None) -> None:
        self._parser = parser
        self._retries = retries
        self._name = name

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[TurnPart]:
        """Make a turn, and make it again as long as its output is not valid."""
        rejected: list[AIMessage] = []
        for left in range(self._retries, -1, -1):
            attempt = _held(request)
            for part in proceed(request):
                attempt.feed(part)
            again = self._again(attempt, left)
            if not again:
                yield from with_records(attempt.held, rejected)
                return
            rejected.append(attempt.end())
            request = replace(request, messages=[*request.messages, *again])

    async def awrap_turn(self, request: TurnRequest, proceed: AsyncProceed) -> AsyncIterator[TurnPart]:
        """Like `wrap_turn`, asynchronously."""
        rejected: list[AIMessage] = []
        for left in range(self._retries, -1, -1):
            attempt = _held(request)
            async with aclosing(generator_of(cast("AsyncIterator[Any]", proceed(request)))) as parts:
                async for part in parts:
                    attempt.feed(part)
            again = self._again(attempt, left)
            if not again:
                for held in with_records(attempt.held, rejected):
                    yield held
                return
            rejected.append(attempt.end())
            request = replace(request, messages=[*request.messages, *again])

    def _again(self, attempt: Attempt, left: int) -> Sequence[BaseMessage]:
        """Return the reply and what tells the model its error, to be sent; empty if the reply is final."""
        message = attempt.end()
        problem = self._problem(message) if left else None
        if problem is None:
            return ()
        calls = calls_of(message)
        if not calls:
            return message, HumanMessage(_AGAIN.format(problem=problem), response_metadata={KEY: {OF_RUN: True}})
        texts = [_AGAIN.format(problem=problem) if call.name == self._name else _NOT_RUN for call in calls]
        results = [ToolMessage(text, tool_call_id=call.id, status="error") for call, text in zip(calls, texts, strict=True)]
        return message, *results

    def _problem(self, message: AIMessage) -> str | None:
        """Return what is wrong with the output of a reply; None if it is valid, incomplete, or none yet."""
        names = [call.name for call in calls_of(message)]
        if is_paused(message) or (names if self._name is None else self._name not in names):
            return None
        try:
            check_complete(message)
        except Exception:  # cut off or refused: another try would end as this one, and its reader says how
            return None
        try:
            self._parser.parse_result([ChatGeneration(message=message)])
        except (OutputParserException, ValidationError) as error:
            return str(error).partition("\nFor troubleshooting")[0]
        return None


def _held(request: TurnRequest) -> Attempt:
    """Return an attempt of which nothing leaves before its end."""
    return Attempt(replace(request, streams=False))
