"""Calls to which a wrapper has given other arguments than were approved, or arguments that need an approval."""

import uuid
from dataclasses import replace

from ..messages.calls import ToolCallRecord, compact
from ..messages.open_runs import metadata_of_open_run
from .approval.identity import plain_json
from .call import ToolRun
from .results import ToolCallResult, failed
from .run_tool import outer_call

_WAITS = "Not run: the arguments of this call were changed to {arguments}, and with these it waits for approval."
_REFUSED = "Not run: the arguments of this call were changed, and with these it needs an approval that it does not have."


def is_same(one: ToolCallRecord, other: ToolCallRecord) -> bool:
    """Whether two forms of a call have the same arguments, as a human is shown them."""
    return one.args == other.args or plain_json(one, one.args) == plain_json(other, other.args)


def changed_result(run: ToolRun, before: ToolCallRecord, after: ToolCallRecord) -> ToolCallResult:
    """Return the result of a changed call: it waits for approval with the changed arguments, which its metadata keeps.

    Args:
        run: The execution of the call.
        before: The call before its wrappers.
        after: The call as they have changed it.
    """
    if run.tried:  # what has run cannot wait
        return refused_change(before)
    record = replace(outer_call(run), call=before).changed(after.args or {})
    text = _WAITS.format(arguments=compact(record["calls"][0]["args"]))
    result = failed(before, text, PermissionError(text))
    metadata = metadata_of_open_run(record)
    return replace(result, message=result.message.model_copy(update={"id": f"open-{uuid.uuid4()}", "response_metadata": metadata}))


def refused_change(call: ToolCallRecord) -> ToolCallResult:
    """Return the result of a changed call that cannot wait: one inside a bundle, or one that has run before."""
    return failed(call, _REFUSED, PermissionError(_REFUSED))
