"""Records of runs that wait inside a call, kept in the metadata of the call's result.

Such a result is valid as it is: it tells the model that the run inside did not finish. A later result of the call takes its place.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from .calls import call_ids
from .metadata import KEY, own_metadata

_OPEN_RUN = "open_run"
OPEN_CALLS = "open_calls"
"""The key, in a run message's metadata, of the pending calls of runs inside its tools, as they are shown."""


def open_run(message: BaseMessage) -> Mapping[str, Any] | None:
    """Return the record of the run that waits inside the call of a result; None for other messages, and for an invalid record."""
    record = own_metadata(message).get(_OPEN_RUN)
    return record if isinstance(record, Mapping) and isinstance(record.get("calls"), list) else None


def metadata_of_open_run(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a result with this record."""
    return {KEY: {_OPEN_RUN: record}}


def open_results(results: Iterable[ToolMessage]) -> list[ToolMessage]:
    """Return the last result of each call if a run waits inside it."""
    last = {result.tool_call_id: result for result in results}
    return [result for result in last.values() if open_run(result) is not None]


def in_call_order(message: AIMessage, results: Iterable[ToolMessage]) -> list[ToolMessage]:
    """Return results of a message's calls in the order of the calls."""
    places = {call_id: place for place, call_id in enumerate(call_ids(message))}
    return sorted(results, key=lambda result: places.get(result.tool_call_id, len(places)))


def shown_entries(message: BaseMessage | None, results: Iterable[ToolMessage]) -> Sequence[Any]:
    """Return the pending calls of runs inside tools, as their dicts: those that a run message names, and those in results."""
    named = () if message is None else own_metadata(message).get(OPEN_CALLS)
    opened = open_results(results)
    ordered = in_call_order(message, opened) if opened and isinstance(message, AIMessage) else opened
    inside = [entry for result in ordered for entry in (open_run(result) or {})["calls"]]
    return [*(named if isinstance(named, list) else ()), *inside]
