"""What runs inside tools have used, as recorded in the metadata of the results of these calls.

A run counts what the runs of its models and agents as tools have used: the record holds their replies, as rejected replies are recorded,
and the number of their tool calls. A result says what was used since the one before it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from .metadata import KEY, own_metadata, with_own_metadata
from .rejected import recorded_replies, rejected_replies, valid_records

USED_INSIDE: Final = "used_inside"
"""The key of the record, in the package's metadata of a result."""

_M = TypeVar("_M", bound=ToolMessage)


@dataclass
class InnerUsage:
    """What runs inside one tool call have used so far.

    Attributes:
        ended: Records of the replies of those that have ended.
        calls: The number of tool calls that they have made.
        inside: What runs inside the calls of one that has not ended have used.
    """

    ended: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0
    inside: list["InnerUsage"] = field(default_factory=list)
    _begun: list[dict[str, Any]] = field(default_factory=list)

    @property
    def replies(self) -> Sequence[dict[str, Any]]:
        """Records of all replies, those of a run that has not ended and of runs inside its calls too."""
        return (*self.ended, *self._begun, *(reply for one in self.inside for reply in one.replies))

    @property
    def tool_calls(self) -> int:
        """The number of all tool calls, likewise."""
        return self.calls + sum(one.tool_calls for one in self.inside)

    def count_calls(self, calls: int) -> None:
        """Count tool calls."""
        self.calls += calls

    def note(self, reply: AIMessage) -> None:
        """Count a reply of a run that has not ended."""
        self._begun += recorded_replies(reply)

    def end(self, messages: Iterable[BaseMessage]) -> None:
        """Count the replies among the new messages of a run that has ended, in place of what was counted of it before."""
        self.calls = self.tool_calls
        self._begun, self.inside = [], []
        for message in messages:
            self.ended += recorded_replies(message) if isinstance(message, AIMessage) else _record(message).get("replies", ())

    def as_messages(self) -> Sequence[AIMessage]:
        """Return the replies, each with its usage and metadata alone."""
        return [AIMessage(**reply) for reply in self.replies]

    def on(self, message: _M) -> _M:
        """Return the result of the call with the record; the same object if nothing was used."""
        replies, calls = [*self.replies], self.tool_calls
        if not replies and not calls:
            return message
        record = {"replies": replies, "tool_calls": calls}
        metadata = with_own_metadata(message.response_metadata, {**own_metadata(message), USED_INSIDE: record})
        return message.model_copy(update={"response_metadata": metadata})


def inner_usage(messages: Iterable[BaseMessage]) -> InnerUsage:
    """Return what runs inside the calls of these results have used together."""
    records = [_record(message) for message in messages]
    replies = [reply for record in records for reply in record.get("replies", ())]
    return InnerUsage(replies, sum(record.get("tool_calls", 0) for record in records))


def paid_replies(messages: Iterable[BaseMessage]) -> Iterator[AIMessage]:
    """Yield all replies that were paid for in a run, of its new messages: rejected ones, and those of runs inside its tools, too."""
    for message in messages:
        if isinstance(message, AIMessage):
            yield from (*rejected_replies(message), message)
        elif isinstance(message, ToolMessage):
            yield from replies_inside(message)


def replies_inside(message: BaseMessage) -> Sequence[AIMessage]:
    """Return the replies of the runs inside the call of a result, each with its usage and metadata alone."""
    return inner_usage([message]).as_messages()


def _record(message: BaseMessage) -> dict[str, Any]:
    own = message.response_metadata.get(KEY)
    record = own.get(USED_INSIDE) if isinstance(own, dict) else None
    if not isinstance(record, dict):
        return {}
    calls = record.get("tool_calls")
    return {"replies": valid_records(record.get("replies")), "tool_calls": calls if isinstance(calls, int) else 0}
