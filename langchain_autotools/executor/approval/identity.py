"""The identity of a call: the key of its decisions, claims and results.

A vendor's id of a call may stand twice in a message, and again in every later turn (`call_0`). A call that waits is known by the UUID
that is recorded of it, any other one by a digest over its message's id, its place, its id, its name and its arguments.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from ...errors import ConfigurationError
from ...messages.calls import VENDOR_APPROVAL, ToolCallRecord, entries_of_awaited, open_end, records_of, results_behind
from ...messages.metadata import ASKED, own_metadata
from ...strict_json import interchanged

RECORD = "approval"
"""The key of a call's record of why it waits."""

KINDS = ("approval", "caller", "client_tool", "queued", VENDOR_APPROVAL)
"""The reasons why a call may wait."""


@dataclass(frozen=True)
class CallIdentity:
    """The identity of one call.

    Attributes:
        call: The call, as its message has it.
        message_id: The id of its message; None where there is none.
        place: Its place among the calls of its message that have its id: 0, unless a vendor repeats ids.
        record: The call's record since it began to wait; None if there is none.
        result: Its result, where there is one.
    """

    call: ToolCallRecord
    message_id: str | None = None
    place: int = 0
    record: Mapping[str, Any] | None = None
    result: ToolMessage | None = None

    @property
    def is_unique(self) -> bool:
        """Whether the identity differs from that of an equal call in any other message."""
        return self.record is not None or bool(self.message_id)

    @property
    def uuid(self) -> str:
        """The recorded UUID, or the digest in its place."""
        if self.record is not None:
            return str(self.record["uuid"])
        call = self.call
        written = call.arguments if call.args is None else call.args
        return hashlib.sha256(plain_json(call, [self.message_id, self.place, call.id, call.spelling, written])).hexdigest()


def plain_json(call: ToolCallRecord, shown: Any) -> bytes:
    """Return a shown call in canonical form, independent of key order and of a browser's changes to numbers (`interchanged`).

    Raises:
        ConfigurationError: The arguments are not plain JSON.
    """
    try:
        return json.dumps(interchanged(shown), sort_keys=True).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"the arguments of call {call.id!r} are not plain JSON: {error}") from None


def record_of(entry: Any) -> Mapping[str, Any] | None:
    """Return the record of a waiting call; None if it is invalid, because a history may come from a client."""
    record = entry.get(RECORD) if isinstance(entry, Mapping) else None
    texts = [record.get(name) for name in ("kind", "uuid", "digest")] if isinstance(record, Mapping) else [None]
    return record if all(isinstance(text, str) for text in texts) and texts[0] in KINDS else None


def identities(message: AIMessage | None, calls: Sequence[ToolCallRecord], results: Iterable[ToolMessage] = ()) -> list[CallIdentity]:
    """Return the identities of a message's calls, in call order. The first of several calls with one id has the record and first result.

    Args:
        message: The message; None where it is not known.
        calls: Its calls.
        results: The results behind it.
    """
    records = {} if message is None else {**records_of(message), **entries_of_awaited(message)}
    message_id = None if message is None else own_metadata(message).get(ASKED) or message.id
    answers = _answers(calls, results)
    places: dict[str, int] = {}
    known: list[CallIdentity] = []
    for number, call in enumerate(calls):
        place = places[call.id] = places.get(call.id, -1) + 1
        record = None if place else record_of(records.get(call.id))
        known.append(CallIdentity(call, message_id, place, record, answers.get(number)))
    return known


def _answers(calls: Sequence[ToolCallRecord], results: Iterable[ToolMessage]) -> dict[int, ToolMessage]:
    """Return the results by the positions of their calls; of several calls with one id, the first with its name, else the first."""
    found: dict[int, ToolMessage] = {}
    waiting: dict[str, list[int]] = {}
    for number, call in enumerate(calls):
        waiting.setdefault(call.id, []).append(number)
    for result in results:
        numbers = waiting.get(result.tool_call_id)
        if numbers:
            number = next((number for number in numbers if calls[number].spelling == result.name), numbers[0])
            numbers.remove(number)
            found[number] = result
    return found


def identified(
    given: AIMessage | object,
    calls: Sequence[ToolCallRecord],
    messages: Sequence[BaseMessage],
    all_calls: Any,
    *,
    results_only: bool = False,
) -> list[CallIdentity]:
    """Return the identities of calls that are to be executed.

    Args:
        given: The caller's argument: the AI message, or a list of calls.
        calls: Its calls.
        messages: The conversation so far.
        all_calls: Reads the calls of a message.
        results_only: Whether nothing but the results that there are is needed.
    """
    if isinstance(given, AIMessage):
        return identities(given, calls, results_behind(given, messages))
    if results_only and not (messages and isinstance(messages[-1], ToolMessage)):
        return [CallIdentity(call) for call in calls]
    message, results = open_end(messages)
    left: dict[str, list[CallIdentity]] = {}
    for one in [] if message is None else identities(message, all_calls(message), results):
        left.setdefault(one.call.id, []).append(one)
    return [_taken_from(left.get(call.id, []), call) or CallIdentity(call, place=place) for place, call in enumerate(calls)]


def _taken_from(left: list[CallIdentity], call: ToolCallRecord) -> CallIdentity | None:
    """Remove and return a call's identity among those with its id, preferably of an equal call without a result."""
    if not left:
        return None
    equal = [number for number, one in enumerate(left) if one.call.args == call.args and one.call.spelling == call.spelling]
    return left.pop(min(equal or range(len(left)), key=lambda number: left[number].result is not None))
