"""The wrappers around a planned call, and their order."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ..messages.calls import ToolCallRecord
from .changed import changed_result, is_same, refused_change
from .plan import PlannedCall
from .steps import CallWrapper, Proceed, Steps, ends_as


class Wrappers(NamedTuple):
    """The wrappers of one planned call, outermost first. A call that only needs an answer has at most the first.

    Attributes:
        entry: The journal's entry. Outermost: whatever the others make of the call is recorded, once, and not made again when the run
            goes on in another process, where there may be less time, and other middleware.
        turn: Waits until the call may begin, and answers it where there is no time. Inside the journal, since a later process must find
            the same answer; outside the claim, which is not to be held meanwhile.
        claim: Takes the call from the caller's store. Directly before the call begins, so that a call that is taken has begun, or is given
            back; outside handlers, so that none of them acts on a call that runs elsewhere.
        begin: Notes that the call has begun.
        around: Handlers and middleware. Outside policies: they see one call, however often it is tried, and the result as it is stored.
        attempts: Runs the tool as its policy says: innermost, since a retry makes the tool's own call again and nothing else.
    """

    entry: CallWrapper | None
    turn: CallWrapper
    claim: CallWrapper | None
    begin: CallWrapper
    around: Sequence[CallWrapper]
    attempts: Proceed


def wrapped(
    planned: PlannedCall, wrappers: Wrappers, is_concerned: Callable[[ToolCallRecord, ToolCallRecord], bool], *, may_wait: bool
) -> Steps:
    """Return the steps of a planned call within its wrappers.

    Args:
        planned: The call.
        wrappers: What stands around it.
        is_concerned: Whether a call that a wrapper has changed needs an approval that it does not have; it is asked of the call before
            and after.
        may_wait: Whether such a call can wait for it.
    """
    proceed = wrappers.attempts
    if wrappers.around or planned.call.approved is not None:
        proceed = partial(_as_approved, planned, is_concerned, may_wait, proceed)
        for wrapper in reversed(wrappers.around):
            proceed = partial(wrapper, proceed=proceed)
    for outer in (wrappers.begin, wrappers.claim, wrappers.turn, wrappers.entry):
        if outer is not None:
            proceed = partial(outer, proceed=proceed)
    return proceed(planned)


def _as_approved(
    before: PlannedCall,
    is_concerned: Callable[[ToolCallRecord, ToolCallRecord], bool],
    may_wait: bool,
    proceed: Proceed,
    planned: PlannedCall,
) -> Steps:
    """Continue a call after its wrappers; a changed one waits if it needs an approval.

    A call that was approved after a change came to the wrappers as it was before it: they may make the same change again, or none.
    """
    run, call, approved = planned.run, planned.call, before.call.approved
    assert run is not None  # only calls that run have wrappers
    bound = call is not before.call and (approved is not None or is_concerned(before.call, call))
    if bound and not any(is_same(call, one) for one in (before.call, approved or before.call)):
        return ends_as(changed_result(run, before.call, call) if may_wait else refused_change(before.call))
    if approved is not None:
        planned = replace(planned, call=approved)
    if run.call is not planned.call:
        run.change(planned.call)
    return proceed(planned)
