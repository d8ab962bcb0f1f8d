"""The end of a run in AG-UI: its interrupts, or the reason why it ended."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ag_ui.core import (
    Interrupt,
    RunFinishedCancelledOutcome,
    RunFinishedInterruptOutcome,
    RunFinishedOutcome,
    RunFinishedSuccessOutcome,
)

from ..event_types import RunEnded
from ..executor.approval.elicitation import ELICITATION
from ..executor.approval.pending import APPROVABLE, PendingCall, full_name, is_apart
from ..strict_json import mend_surrogates
from .plain import plain, to_json
from .posted import signature_of
from .streaming import Failure

_ANSWER: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean", "description": "Whether the call may run."},
        "editedArgs": {"type": "object", "description": "All arguments to run with instead."},
        "reason": {"type": "string", "description": "Why the call may not run, for the model."},
    },
    "required": ["approved"],
}


def outcome_of(pending: Sequence[tuple[str, PendingCall]], ended: Sequence[RunEnded]) -> RunFinishedOutcome:
    """Return the common outcome of a stream's runs. A cancelled one requests nothing, whatever it left pending.

    Args:
        pending: The calls that wait, with the ids that the client has for them.
        ended: The ends of the runs.
    """
    if ended and ended[-1].stop_reason == "cancelled":
        return RunFinishedCancelledOutcome()
    interrupts = [_INTERRUPTS[call.kind](call_id, call) for call_id, call in pending if call.kind in _INTERRUPTS]
    if interrupts:
        return RunFinishedInterruptOutcome(interrupts=interrupts)
    left = [call_id for call_id, call in pending if call.kind != "queued"]
    return RunFinishedSuccessOutcome(pending_tool_call_ids=left or None)


def _approval(call_id: str, call: PendingCall) -> Interrupt:
    arguments = f" Its arguments: {to_json(call.args)}" if is_apart(call) else ""  # no event of the run has shown them
    return Interrupt(
        id=signature_of(call),
        reason="tool_call",
        message=mend_surrogates(f"The tool {full_name(call)} may run only if that is approved.{arguments}"),
        tool_call_id=call_id,
        response_schema=dict(_ANSWER),
    )


def _question(call_id: str, call: PendingCall) -> Interrupt:
    sentences = [str(call.args[name]) for name in ("message", "url") if name in call.args]
    return Interrupt(
        id=signature_of(call),
        reason="input_required",
        message=mend_surrogates("\n".join(sentences)),
        response_schema=plain(call.args.get("schema", {"type": "object"})),
    )


_INTERRUPTS: Final[Mapping[str, Callable[[str, PendingCall], Interrupt]]] = {
    **dict.fromkeys(APPROVABLE, _approval),
    ELICITATION: _question,
}


def result_of(ended: Sequence[RunEnded]) -> dict[str, Any] | None:
    """Return why the last run ended, and the number of requests of all runs; None if there was none."""
    return {"stopReason": ended[-1].stop_reason, "turns": sum(event.turns for event in ended)} if ended else None


def sentence_of(failure: Failure) -> str:
    """Return the text of a failure for a client: its details if they may be sent, else a plain sentence."""
    return mend_surrogates(failure.text if failure.details is None else failure.details)
