"""Composition of a run's optional parts: its end, its clock, its journal, its observer, the wrappers of its turns.

A run asks nothing of this: it has an end that may never come, an observer that may do nothing, and turns that nothing may wrap.
"""

import time
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, cast

from langchain_core.messages import BaseMessage

from ..cancelling import deadline_of
from ..deadline import NEVER, Deadline, abounded, bounded, deadline_after
from ..event_bus import listening
from ..executor.admission import Admission, Reservation
from ..executor.steps import CallWrapper
from .keywords import CallSettings
from .observer import UNOBSERVED, RunObserver
from .recording import RunJournal
from .turn_wrappers import AsyncProceed, Proceed, TurnPart, TurnRequest, Turns, TurnWrapper

UNWRAPPED = Turns()
"""Turns without wrappers: LLM runs of core alone."""


def _random_uuid(message_id: str, call_id: str) -> str:
    return str(uuid.uuid4())


def _unmetered(request: TurnRequest, history: Sequence[BaseMessage]) -> None:
    return None


@dataclass(frozen=True)
class RunParts:
    """The optional parts of a run.

    Attributes:
        end: The deadline, and the caller's cancellation.
        clock: Seconds since any fixed start.
        observer: Observes the run.
        turns: Makes its turns.
        admissions: What admits its calls besides approvals, one after another.
        meter: Returns the function that tells whether the next request would cost too much; None if there is no such limit.
        call_wrappers: What stands around each of its calls, the outermost first.
        new_uuid: Makes the UUID of a call that waits, of the ids of its message and of the call.
    """

    end: Deadline = NEVER
    clock: Callable[[], float] = time.monotonic
    observer: RunObserver = UNOBSERVED
    turns: Turns = UNWRAPPED
    admissions: Sequence[Admission] = ()
    meter: Callable[[TurnRequest, Sequence[BaseMessage]], Callable[[Sequence[BaseMessage]], bool] | None] = _unmetered
    call_wrappers: Sequence[CallWrapper] = ()
    new_uuid: Callable[[str, str], str] = _random_uuid


class _Bounded(TurnWrapper):
    """A wrapper that ends a turn at the end of its run."""

    layer: ClassVar[str] = "end"

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[TurnPart]:
        return bounded(proceed(request), request.end)

    def awrap_turn(self, request: TurnRequest, proceed: AsyncProceed) -> AsyncGenerator[TurnPart, None]:
        return abounded(cast("AsyncGenerator[TurnPart, None]", proceed(request)), request.end)


def _meter(call: CallSettings, request: TurnRequest, history: Sequence[BaseMessage]) -> Callable[[Sequence[BaseMessage]], bool]:
    """Return the function that tells whether the next request of a run would exceed its maximum cost.

    Args:
        call: The settings of the call.
        request: The run's requests, but for their messages.
        history: The messages that the run begins with.

    Raises:
        ConfigurationError: The model has no price.
    """
    from ..pricing.meter import CostMeter  # here, because it costs every other program its import

    return CostMeter(cast("float", call.limits.max_cost), call.prices, request, history).exceeded


def run_parts(call: CallSettings, wrappers: Iterable[TurnWrapper] = (), call_wrappers: Sequence[CallWrapper] = ()) -> RunParts:
    """Compose the optional parts of a run.

    Args:
        call: The settings of the call.
        wrappers: Wrappers of turns that the model and the call bring.
        call_wrappers: Wrappers of calls, likewise, the outermost first.
    """
    parts = compose(call.cancel, call.limits.deadline, call.journal, separator=call.separator, wrappers=wrappers)
    meter = _unmetered if call.limits.max_cost is None else partial(_meter, call)
    return replace(parts, meter=meter, call_wrappers=call_wrappers) if call_wrappers or meter is not _unmetered else parts


def compose(
    cancel: Any,
    seconds: float | None,
    journal: RunJournal | None = None,
    *,
    separator: str = "",
    wrappers: Iterable[TurnWrapper] = (),
) -> RunParts:
    """Compose the optional parts of a run or a reply.

    Args:
        cancel: The caller's cancellation flag; None if there is none.
        seconds: The time limit; None for no limit.
        journal: Records the run; None if nothing does.
        separator: The separator between the texts of two turns.
        wrappers: Wrappers of turns that the model brings.

    Raises:
        ConfigurationError: The flag is neither an event nor a function.
    """
    around = list(wrappers)
    clock, new_uuid = time.monotonic, _random_uuid
    admissions: Sequence[Admission] = ()
    if journal is not None:
        around.append(journal)
        admissions = (Reservation(journal.entries),)
        cancel, seconds, clock, new_uuid = journal.is_cancelled, journal.left(seconds), journal.now, journal.uuid
    end = deadline_after(seconds) if cancel is None else deadline_of(cancel, seconds)
    if end is not NEVER:
        around.append(_Bounded())
    observer: RunObserver = UNOBSERVED
    if (place := listening.get()) is not None:
        from .event_emitter import RunEvents  # here, because it costs every other program its import

        observer = events = RunEvents(place, separator)
        around.append(events)
    return RunParts(end, clock, observer, Turns(around) if around else UNWRAPPED, admissions, new_uuid=new_uuid)
