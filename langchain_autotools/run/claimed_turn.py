"""A run that goes on with decisions as the only one: its turn in the caller's store of claims.

Before each further request the store is asked whether the turn is still the run's. At the end it keeps what the run has brought, which a
later run with the same history hands out in place of another request.
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile
from typing import Any, ClassVar

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage, messages_from_dict

from ..executor import ToolCallResult
from ..executor.batch_drivers import adriven, driven
from ..executor.claims import Claims
from ..executor.user_functions import UserCall, acall_user, call_user
from ..messages.calls import ToolCallRecord, awaited_calls, calls_of, open_end
from ..messages.run_messages import is_paused, open_results, serialize_messages
from .loop import RunOutcome, RunTools
from .output import RunOutput
from .turn_wrappers import AsyncProceed, Proceed, RunClaims, RunObserver, TurnPart, TurnRequest, TurnWrapper

_GRACE_SECONDS = 1.0
_POLL_SECONDS = 0.01


class ClaimedTurn(RunClaims, TurnWrapper):
    """The turn that a run has claimed. A wrapper of its requests.

    Args:
        claim: The store.
        end: When the run must end.
    """

    layer: ClassVar[str] = "journal"

    def __init__(self, claim: Any, end: Any) -> None:
        self.claims: Claims = Claims(claim)
        self._end = end
        self._until: float | None = None

    # ------------------------------------------------------------------------------------------ before each request

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[TurnPart]:
        """Make a turn if the run still has what it claimed."""
        self._check(self._call(self.claims.held()))
        yield from proceed(request)

    async def awrap_turn(self, request: TurnRequest, proceed: AsyncProceed) -> AsyncIterator[TurnPart]:
        """Like `wrap_turn`, asynchronously."""
        self._check(await self._acall(self.claims.held()))
        async for part in proceed(request):
            yield part

    def _check(self, held: Any) -> None:
        if held is False:
            raise self.claims.lost()

    # ------------------------------------------------------------------------------------------ the end

    def ending(self, value: Mapping[str, Any] | None) -> Sequence[Any]:
        """Tell the store how the run has ended."""
        driven(self.claims.ending(None if value is None else dict(value)), self._call)
        return ()

    async def aending(self, value: Mapping[str, Any] | None) -> AsyncGenerator[Any, None]:
        """Like `ending`, asynchronously."""
        await adriven(self.claims.ending(None if value is None else dict(value)), self._acall)
        return
        yield  # makes it a generator

    def abandon(self) -> None:
        """Give up what is still claimed."""
        self.claims.abandon()

    async def aabandon(self) -> None:
        """Like `abandon`, asynchronously."""
        await self.claims.aabandon()

    # ------------------------------------------------------------------------------------------ calls of the store

    def _call(self, told: UserCall | None) -> Any:
        return None if told is None else call_user(*told, self._is_over, self._patience)

    async def _acall(self, told: UserCall | None) -> Any:
        return None if told is None else await acall_user(*told, self._is_over, self._patience)

    def _is_over(self) -> bool:
        """Whether the store is waited for no longer: a second after the end of the run."""
        if not (self._end.is_over() or self._end.is_set()):
            return False
        self._until = self._until or time.monotonic() + _GRACE_SECONDS
        return time.monotonic() >= self._until

    def _patience(self) -> float | None:
        patience = self._end.patience()
        return None if patience is None else max(patience, _POLL_SECONDS)


def kept_value(outcome: RunOutcome, messages: Sequence[BaseMessage], *, owned: bool) -> dict[str, Any] | None:
    """Return what a store keeps of a run that has ended; None if calls of its turn wait, about which others will decide.

    Args:
        outcome: The outcome of the run.
        messages: Its messages.
        owned: Whether it is kept for the turn, and not for these decisions alone.
    """
    if owned and not outcome.turns and (outcome.pending or outcome.opened):
        return None
    ended = {"stop_reason": outcome.stop_reason, "turns": outcome.turns, "usage": outcome.usage}
    return {"messages": serialize_messages(messages), **ended}


def repeated(
    value: Mapping[str, Any], tools: RunTools, given: Sequence[ToolCallResult], output: RunOutput, observer: RunObserver, *, withholds: bool
) -> tuple[list[AIMessageChunk], RunOutcome]:
    """Return the chunks of what another run has brought, and its outcome, from `kept_value`.

    Args:
        value: The value.
        tools: The calls that are answered first.
        given: Their results, if these are handed out already; those that the value begins with are left out then.
        output: Makes the chunks.
        observer: Observes the messages.
        withholds: Whether what turns that call tools say does not leave.
    """
    asked, calls = tools.message, {call.id: call for call in tools.calls}
    chunks, results = list[AIMessageChunk](), [result.message for result in given]
    messages: Iterable[BaseMessage] = messages_from_dict(list(value["messages"]))
    for message in dropwhile(lambda one: isinstance(one, ToolMessage), messages) if given else messages:
        if isinstance(message, AIMessage):
            if not (withholds and (calls_of(message) or is_paused(message))):
                chunks += output.from_message(message)
            asked, chunk = output.message(message)
            calls, results = {call.id: call for call in _every_call(asked)}, []
            observer.turn_done(asked)
            chunks.append(chunk)
            continue
        if isinstance(message, ToolMessage):
            results.append(message)
            call = calls.get(message.tool_call_id) or ToolCallRecord(message.tool_call_id, message.name or "", "")
            observer.result_done(ToolCallResult(call, message, executed=False, attempts=0))
        elif isinstance(message, HumanMessage):
            observer.messages_taken([message])
        chunks.append(output.carrier_chunk(message))
    before = open_end(tools.messages)[1] if asked is tools.message else ()
    answered = {result.tool_call_id for result in (*before, *results)}
    pending = [call for call in _every_call(asked) if call.id not in answered]
    direct = results if value["stop_reason"] == "return_direct" else ()
    made = RunOutcome(value["stop_reason"], value["turns"], value["usage"], pending, asked, direct, open_results(results))
    return chunks, made


def _every_call(message: AIMessage) -> list[ToolCallRecord]:
    return [*calls_of(message), *awaited_calls(message)]
