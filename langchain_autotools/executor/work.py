"""From the calls of a model to the work that answers them: read the calls, find their tools, refuse what cannot run."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import AIMessage, ToolCall, ToolMessage

from ..messages import ToolCallRecord, calls_of
from .call import ToolRun
from .results import ToolCallResult, cancelled_result, failed, interrupted_result

__all__ = ["Calls", "Work", "bundled_calls", "read_calls", "unknown_tool", "unreadable"]

Calls = AIMessage | Iterable[ToolCallRecord | ToolCall | Mapping[str, Any]]
"""What an executor executes: an AI message, or calls."""

# A model's way to make several calls in one (quirks.md N-05).
_BUNDLES = frozenset({"multi_tool_use.parallel", "multi_tool_use_parallel", "parallel"})


@dataclass(frozen=True)
class Work:
    """What answers one call.

    Attributes:
        call: The call.
        refused: Its answer, where nothing is to run.
        runs: The tool to run; several where the call bundles others.
        bundled: Whether it does.
    """

    call: ToolCallRecord
    refused: ToolCallResult | None = None
    runs: Sequence[ToolRun] = ()
    bundled: bool = False

    def outcome(self, results: Sequence[ToolCallResult]) -> ToolCallResult:
        """The call's result, from those of its runs."""
        return _combined(self.call, results) if self.bundled else results[0]

    def unfinished(self, error: BaseException | None) -> ToolCallResult:
        """The result of a call that began and did not end, with what it raised if it ended the run."""
        executed = any(run.executed for run in self.runs)
        duration = self.runs[0].duration()
        if error is not None:
            return interrupted_result(self.call, error, executed=executed, duration=duration)
        return cancelled_result(self.call, executed=executed, duration=duration)


def read_calls(calls: Calls) -> list[ToolCallRecord]:
    """The calls as records; one without an id is given one by its position."""
    records = calls_of(calls) if isinstance(calls, AIMessage) else [_record(call) for call in calls]
    return [record if record.id else replace(record, id=f"call_{position}") for position, record in enumerate(records)]


def _record(call: ToolCallRecord | Mapping[str, Any]) -> ToolCallRecord:
    if isinstance(call, ToolCallRecord):
        return call
    if not isinstance(call, Mapping) or "name" not in call:
        raise TypeError(f"a tool call is a ToolCallRecord or a dict with name, args and id, not {call!r}")
    message = AIMessage(content="")
    kind = "invalid_tool_calls" if not isinstance(call.get("args"), Mapping) else "tool_calls"
    return calls_of(message.model_copy(update={kind: [{"id": None, "type": kind[:-1], **call}]}))[0]


def unknown_tool(call: ToolCallRecord, names: Iterable[str]) -> ToolCallResult:
    """The result of a call whose name means no tool."""
    valid = ", ".join(names)
    offer = f"The valid tools are: {valid}." if valid else "There are no tools."
    text = f"{call.name[:100]!r} is not a valid tool. {offer}"
    return failed(call, text, LookupError(text))


def unreadable(call: ToolCallRecord) -> ToolCallResult:
    """The result of a call whose arguments cannot be used."""
    text = call.why or "the arguments are not one complete JSON object"
    return failed(call, text, ValueError(text))


# ---------------------------------------------------------------------------------------------- bundles of calls


def bundled_calls(call: ToolCallRecord, find: Callable[[str], Any]) -> list[ToolCallRecord] | None:
    """The calls inside a bundling call; None if it is none, or if one of the tools it names is unknown."""
    uses = (call.args or {}).get("tool_uses")
    if call.name.strip() not in _BUNDLES or not isinstance(uses, list) or not uses:
        return None
    calls: list[ToolCallRecord] = []
    for position, use in enumerate(uses):
        name, args = (use.get("recipient_name"), use.get("parameters", {})) if isinstance(use, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(args, dict) or find(name) is None:
            return None
        calls.append(ToolCallRecord(f"{call.id}_{position}", name, json.dumps(args, ensure_ascii=False), args))
    return calls


def _combined(call: ToolCallRecord, results: Sequence[ToolCallResult]) -> ToolCallResult:
    """One result for the bundling call, with the results of all calls inside."""
    parts = [{"tool": result.call.name, "status": result.message.status, "result": result.message.content} for result in results]
    failures = [result.error for result in results if result.message.status == "error"]
    message = ToolMessage(
        content=json.dumps(parts, ensure_ascii=False),
        tool_call_id=call.id,
        name=call.name,
        artifact=[result.message.artifact for result in results],
        status="error" if len(failures) == len(results) else "success",
    )
    duration = sum(result.duration for result in results)
    executed = any(result.executed for result in results)
    commands = tuple(command for result in results for command in result.commands)
    return ToolCallResult(call, message, next(iter(failures), None), duration, executed=executed, commands=commands)
