"""The wrappers that the settings of a call bring. A call that has none imports none of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from .keywords import CallSettings
from .turn_wrappers import TurnWrapper


def wraps_turns(model: Any, keywords: Mapping[str, Any]) -> bool:
    """Whether something of the caller's stands around the turns of a call."""
    return model.before_turn is not None or keywords.get("before_turn") is not None


def hooks_of(call: CallSettings) -> Sequence[TurnWrapper]:
    """Return the wrappers of turns that the settings of a call bring."""
    if call.before_turn is None:
        return ()
    from .before_turn import BeforeTurn  # here, because it costs every other program its import

    return (BeforeTurn(call.before_turn),)
