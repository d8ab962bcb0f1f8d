"""Records of rejected replies: whole replies that were paid for and are no messages, because their turn was made again.

They stand among the package's metadata of the message that took their place, and hold what tokens and prices are counted by.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

from langchain_core.messages import AIMessage

from .blocks import is_call_block
from .metadata import KEY, own_metadata, with_own_metadata

REJECTED: Final = "rejected"
"""The key of the records, in the package's metadata of an AI message."""

_SAYS = frozenset({"text", "reasoning", "thinking", "redacted_thinking"})
_BILLED_BY = ("type", "name", "action", "args", "extras")
"""What tells of a block of the vendor's own how it is billed."""

_M = TypeVar("_M", bound=AIMessage)


def with_rejected(message: _M, replies: Sequence[AIMessage]) -> _M:
    """Return a message or chunk with records of the replies in whose place it stands; the same object without replies."""
    if not replies:
        return message
    own = own_metadata(message)
    records = [record for reply in replies for record in recorded_replies(reply)]
    metadata = with_own_metadata(message.response_metadata, {**own, REJECTED: [*records, *_records(message)]})
    return message.model_copy(update={"response_metadata": metadata})


def rejected_replies(message: AIMessage) -> Sequence[AIMessage]:
    """Return the replies in whose place a message stands, in order, each with its usage and metadata alone."""
    return [AIMessage(**record) for record in _records(message)]


def recorded_replies(message: AIMessage) -> Sequence[dict[str, Any]]:
    """Return records of a reply and of those in whose place it stands, in order."""
    return (*_records(message), _record(message))


def _records(message: AIMessage) -> Sequence[dict[str, Any]]:
    return valid_records(own_metadata(message).get(REJECTED))


def valid_records(records: Any) -> Sequence[dict[str, Any]]:
    """Return those of some records that are records of replies: a history may come from a client."""
    return [record for record in records if _is_record(record)] if isinstance(records, list | tuple) else ()


def _is_record(record: Any) -> bool:
    try:
        AIMessage(**record)
    except (TypeError, ValueError):
        return False
    return True


def _record(reply: AIMessage) -> dict[str, Any]:
    metadata = {key: value for key, value in reply.response_metadata.items() if key not in (KEY, "logprobs")}
    return {"content": list(_billed_blocks(reply.content)), "response_metadata": metadata, "usage_metadata": reply.usage_metadata}


def _billed_blocks(content: str | list[Any]) -> Iterator[dict[str, Any]]:
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") not in _SAYS and not is_call_block(block):
            yield {key: block[key] for key in _BILLED_BY if key in block}
