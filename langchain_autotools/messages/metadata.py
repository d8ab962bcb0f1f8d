"""The package's metadata of a message, all under one key of `response_metadata`, `KEY`.

- Of a turn as it leaves the accumulator: `{"calls": [...], "blocked": reason | None}`, the verdict.
- Of a stored AI message: `{"calls": [{"id", "sent_id"?, "arguments", "wire_id"?, "extra"?}]}`, the arguments as the model wrote them;
  `sent_id` is what a call is sent with whose `id` was made here.
- Of an AI message where another model took over, also `"failover"`: see `failover`.
- Of an AI message whose turn was made again, also `"rejected"`: see `rejected`.
- Of a run message: `{"messages": [...], "stop_reason", "turns", "usage", "asked"?, "open_calls"?}`, the carrier.
- Of the result of a call inside which a run waits: `{"open_run": {...}}`, see `open_runs`.
- Of the result of a call inside which runs were made, `"used_inside"`: see `inner_usage`.
"""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import BaseMessage

KEY = "autotools"
"""The key of this package's metadata in `response_metadata`."""

ASKED = "asked"
"""The key, in a run message's metadata, of the id of the message whose calls it leaves open, if no turn of the run made them."""


def text_of(message: BaseMessage) -> str:
    """Return the text of a message: its string content, or its text blocks joined."""
    return message.content if isinstance(message.content, str) else str(message.text)


def own_metadata(message: BaseMessage) -> Mapping[str, Any]:
    """Return the package's metadata of a message; empty if it is missing or invalid."""
    own = message.response_metadata.get(KEY)
    return own if isinstance(own, Mapping) else {}


def with_own_metadata(metadata: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return `response_metadata` with the package's part replaced by `own`."""
    foreign = {name: value for name, value in metadata.items() if name != KEY}
    return {**foreign, KEY: own} if own else foreign
