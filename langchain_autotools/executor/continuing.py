"""Calls inside which runs wait, and calls that were changed and wait: they go on with what was decided."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool

from ..errors import ConfigurationError
from ..messages.calls import ToolCallRecord, canonical_call, open_end
from ..messages.open_runs import open_results, open_run
from ..strict_json import equivalent
from .approval.approvals import Approvals
from .approval.identity import CallIdentity
from .approval.open_runs import OuterCall, continued_call, shown_index
from .approval.pending import Decision, edited, read_decisions
from .nested_runs import inside
from .run_tool import governed, is_run_tool

_NOT_GIVEN = "call {id!r} waits with a run inside, which {name!r} cannot go on with: it is no model, agent or tool of a server that waits"


class Executes(Protocol):
    """The interface of an executor."""

    tools: dict[str, BaseTool]
    approvals: Approvals | None

    def meant(self, calls: Iterable[ToolCallRecord]) -> list[ToolCallRecord]:
        """Return the calls under their tools' own names."""

    def decided(self, call: ToolCallRecord, decision: Decision) -> ToolCallRecord:
        """Return the call with its decision applied."""


def continued_calls(
    executor: Executes, decisions: Sequence[Decision], opened: Sequence[ToolMessage], message: AIMessage, calls: Sequence[ToolCallRecord]
) -> tuple[list[Decision], dict[str, ToolCallRecord]]:
    """Return the decisions about a message's own calls, and by id the open calls that go on with the other decisions.

    Args:
        executor: Executes the calls.
        decisions: All decisions.
        opened: The results of such calls.
        message: The message that made these calls.
        calls: Its calls.

    Raises:
        ConfigurationError: A record was changed, a decision is not possible, or two are about one call.
    """
    own, continued = list(decisions), dict[str, ToolCallRecord]()
    meant = {call.id: call for call in executor.meant(calls)}
    for result in opened:
        record, call = open_run(result), meant.get(result.tool_call_id)
        mine = [] if record is None else [one for one in own if shown_index(record, one) is not None]
        if record is None or call is None or not mine:
            continue
        OuterCall(call, message.id, governed(executor.approvals, inside.get())).check(record)
        own = [one for one in own if one not in mine]
        if not record["inside"]:
            continued[call.id] = _changed_call(executor, call, record, mine)
            continue
        continued[call.id] = _checked(executor.tools.get(call.name), continued_call(call, record, mine))
    return own, continued


def _checked(tool: BaseTool | None, call: ToolCallRecord) -> ToolCallRecord:
    """Return a call that goes on; raise if its tool cannot go on with it."""
    check = getattr(tool, "check_continued", None)
    if check is not None:
        check(call.run)
    elif tool is None or not is_run_tool(tool):
        raise ConfigurationError(_NOT_GIVEN.format(id=call.id, name=call.name))
    return call


def _changed_call(executor: Executes, call: ToolCallRecord, record: Mapping[str, Any], decisions: Sequence[Decision]) -> ToolCallRecord:
    """Return a call that a wrapper has changed, with the decision about it: to run as it was approved, or to be answered.

    The wrappers get it as they got it before, or as the decision edits it.
    """
    if len(decisions) > 1:
        raise ConfigurationError(f"there are two decisions about call {call.id!r}")
    (decision,) = decisions
    (shown,) = executor.meant([edited(call, record["calls"][0]["args"])])
    made = executor.decided(shown, decision)
    if made.args is None:
        return made
    approved = canonical_call(replace(made, edited=not equivalent(made.args, call.args)))
    if decision.action == "edit":
        return replace(approved, approved=approved)
    own = call if record["args"] is None else canonical_call(replace(call, args=dict(record["args"]), edited=True))
    return replace(own, waits=None, decision=decision, approved=approved)


def continuing(
    executor: Executes,
    given: Any,
    messages: Sequence[BaseMessage],
    decisions: Any,
    calls: Sequence[ToolCallRecord],
    known: Sequence[CallIdentity],
) -> tuple[list[Decision], list[ToolCallRecord], list[CallIdentity]]:
    """Return the decisions about a batch's own calls, its calls and their identities; those whose runs inside go on have no result.

    Args:
        executor: Executes the calls.
        given: What was given to be executed: the AI message, or its calls.
        messages: The conversation so far.
        decisions: The decisions.
        calls: The calls.
        known: Their identities.
    """
    read = read_decisions(decisions)
    opened = open_results(one.result for one in known if one.result is not None)
    message = given if isinstance(given, AIMessage) else open_end(messages)[0]
    if not opened or message is None:
        return read, [*calls], [*known]
    own, continued = continued_calls(executor, read, opened, message, calls)
    going_on = [replace(one, result=None) if one.call.id in continued else one for one in known]
    return own, [continued.get(call.id, call) for call in calls], going_on
