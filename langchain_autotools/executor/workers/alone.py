"""Exclusive execution: a call waits for abandoned calls that still run in threads."""

import time
from collections.abc import Callable, Collection, Generator
from typing import Any

from ..call import ToolRun
from ..results import ToolCallResult, not_alone
from ..steps import Pause

POLL_SECONDS = 0.02
"""Seconds between two checks whether an abandoned call has ended."""


class GivenUp:
    """The timed-out calls of a batch that still run, in threads that cannot be stopped.

    Args:
        exclusive: The positions of the calls that no other one runs beside.
    """

    def __init__(self, exclusive: Collection[int]) -> None:
        self._exclusive = exclusive
        self._runs: list[tuple[int, ToolRun]] = []

    def note(self, number: int, run: ToolRun | None) -> None:
        """Record a call at position `number` that has its result but may still run."""
        if self._exclusive and run is not None and run.is_late and not run.ended:
            self._runs.append((number, run))

    def waits(self, number: int, run: ToolRun, ends: Callable[[], bool]) -> Generator[Pause, Any, ToolCallResult | None]:
        """Yield the waits until a call may begin.

        Args:
            number: The position of the call.
            run: The call.
            ends: Whether its batch has ended, or must end.

        Returns:
            None where the wait is over; else the answer to the call, which has waited as long as it, or what it waits for, may take.
        """
        beside = [other for place, other in self._runs if number in self._exclusive or place in self._exclusive]
        end = time.monotonic() + (run.timeout or max((other.timeout or 0.0 for other in beside), default=0.0))
        while any(not other.ended for other in beside) and not ends():
            if time.monotonic() >= end:
                return not_alone(run.call, run.call if number in self._exclusive else beside[0].call)
            yield Pause(POLL_SECONDS)
        return None
