"""The vendor's own calls of a run that have begun and not ended, so that each start has its end."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..event_types import RunEvent
from ..vendor_event_types import VendorCallDone, VendorCallStarted


class VendorCalls:
    """Keeps the open calls of the vendor's own tools in a run. One may end in a later turn than it began in."""

    def __init__(self) -> None:
        self._open: dict[str, VendorCallStarted] = {}

    def of(self, event: RunEvent) -> Iterator[RunEvent]:
        """Yield the event of a turn, behind the start that it lacks."""
        rule = _RULES.get(type(event))
        return iter((event,)) if rule is None else rule(self, event)

    def left(self) -> Iterator[RunEvent]:
        """Yield the ends of the calls that are open: nothing more comes of them."""
        calls, self._open = self._open, {}
        for call in calls.values():
            yield VendorCallDone(**{**vars(call), "failed": True})

    def _begin(self, event: VendorCallStarted) -> Iterator[RunEvent]:
        begun = self._open.get(event.call_id)
        self._open[event.call_id] = event if begun is None or event.args is not None else begun
        if begun is None:  # a second one only adds what it is called with
            yield event

    def _end(self, event: VendorCallDone) -> Iterator[RunEvent]:
        begun = self._open.pop(event.call_id, None)
        if begun is None:
            yield VendorCallStarted(**{name: value for name, value in vars(event).items() if name not in ("output", "failed")})
            yield event
        else:  # a result in a later reply says neither the name nor the arguments
            yield replace(event, name=begun.name, args=begun.args if event.args is None else event.args)


_RULES: Mapping[type[RunEvent], Callable[[VendorCalls, Any], Iterator[RunEvent]]] = {
    VendorCallStarted: VendorCalls._begin,
    VendorCallDone: VendorCalls._end,
}
