"""What the package keeps of a message: all of it under one key of `response_metadata`, `KEY`.

- Of a turn as it leaves the accumulator: `{"calls": [...], "blocked": reason | None}`, the verdict.
- Of a stored AI message: `{"calls": [{"id", "sent_id"?, "arguments", "wire_id"?, "extra"?}]}`, the arguments as the model wrote them;
  `sent_id` is what a call is sent with whose `id` was made here.
- Of a run message: `{"messages": [...], "stop_reason", "turns", "usage", "asked"?}`, the carrier.
"""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import BaseMessage

KEY = "autotools"
"""The one key in `response_metadata` that belongs to this package."""

ASKED = "asked"
"""The key, in what is kept of a run message, of the id of the message that made the calls it leaves, where no turn of the run did."""


def text_of(message: BaseMessage) -> str:
    """The text of a message: its string content, or its text blocks joined."""
    return message.content if isinstance(message.content, str) else str(message.text)


def own_metadata(message: BaseMessage) -> Mapping[str, Any]:
    """What the package keeps of this message; empty where there is nothing, or something foreign."""
    own = message.response_metadata.get(KEY)
    return own if isinstance(own, Mapping) else {}


def with_own_metadata(metadata: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A message's `response_metadata` in which `own` is all that the package keeps of it."""
    foreign = {name: value for name, value in metadata.items() if name != KEY}
    return {**foreign, KEY: own} if own else foreign
