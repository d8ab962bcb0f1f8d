"""Calls inside which runs wait, and that go on with what was decided about the calls of those runs."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool

from ..errors import ConfigurationError
from ..messages.calls import ToolCallRecord, open_end
from ..messages.open_runs import open_results, open_run
from .approval.approvals import Approvals
from .approval.identity import CallIdentity
from .approval.open_runs import OuterCall, continued_call, shown_index
from .approval.pending import Decision, read_decisions
from .nested_runs import inside
from .run_tool import governed, is_run_tool

_NOT_GIVEN = "call {id!r} waits with a run inside, which {name!r} cannot go on with: it is no model or agent that is given as a tool"


class Executes(Protocol):
    """The interface of an executor."""

    tools: dict[str, BaseTool]
    approvals: Approvals | None

    def meant(self, calls: Iterable[ToolCallRecord]) -> list[ToolCallRecord]:
        """Return the calls under their tools' own names."""


def continued_calls(
    executor: Executes, decisions: Sequence[Decision], opened: Sequence[ToolMessage], message: AIMessage, calls: Sequence[ToolCallRecord]
) -> tuple[list[Decision], dict[str, ToolCallRecord]]:
    """Return the decisions about a message's own calls, and by id those calls whose runs inside go on with the others.

    Args:
        executor: Executes the calls.
        decisions: All decisions.
        opened: The results of calls inside which runs wait.
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
        if call.name not in executor.tools or not is_run_tool(executor.tools[call.name]):
            raise ConfigurationError(_NOT_GIVEN.format(id=call.id, name=call.name))
        own = [one for one in own if one not in mine]
        continued[call.id] = continued_call(call, record, mine)
    return own, continued


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
