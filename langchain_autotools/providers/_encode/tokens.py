"""Estimates of token counts, without a tokenizer and without the network.

A token is taken for four bytes of UTF-8: close for English text, and usable for scripts whose characters take three bytes and
about one token each. A picture counts as one of ordinary size. A caller who needs the exact number of a text gives
`custom_get_token_ids`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from ...messages.calls import calls_of
from ...messages.carrier import carried_messages

_BYTES_PER_TOKEN = 4
_PER_MESSAGE = 3
_PER_REPLY = 3
_PER_CALL = 3
_PICTURE = 765  # four tiles of 170 and a base of 85: OpenAI's count for 1024 x 1024 pixels
_SMALL_PICTURE = 85
_DOCUMENT = 1_000
_TEXTS = ("text", "reasoning", "thinking", "refusal")


def estimate(text: str) -> int:
    """Return the estimated number of tokens of a text."""
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN)


def messages_tokens(messages: Iterable[BaseMessage], tools: Sequence[Mapping[str, Any]], count: Callable[[str], int]) -> int:
    """Return the estimated number of tokens of a request.

    Args:
        messages: The messages; of a run message those that it carries are counted.
        tools: The declared tools, in the wire's form.
        count: Counts the tokens of a text.
    """
    plain = [part for message in messages for part in carried_messages(message) or [message]]
    declared = sum(count(json.dumps(tool, ensure_ascii=False, default=str)) for tool in tools)
    return declared + sum(_message_tokens(message, count) for message in plain) + _PER_REPLY


def _message_tokens(message: BaseMessage, count: Callable[[str], int]) -> int:
    tokens = _PER_MESSAGE + (count(message.name) if message.name else 0)
    blocks = [message.content] if isinstance(message.content, str) else message.content
    tokens += sum(_block_tokens(block, count) for block in blocks)
    if isinstance(message, AIMessage):
        tokens += sum(_PER_CALL + count(call.name) + count(call.arguments) for call in calls_of(message))
    return tokens + (_PER_CALL if isinstance(message, ToolMessage) else 0)


def _block_tokens(block: Any, count: Callable[[str], int]) -> int:
    if isinstance(block, str):
        return count(block)
    kind = str(block.get("type", ""))
    if "image" in kind:
        nested = block.get("image_url")
        low = isinstance(nested, Mapping) and nested.get("detail") == "low"
        return _SMALL_PICTURE if low else _PICTURE
    if any(isinstance(block.get(key), str) for key in _TEXTS):
        return sum(count(block[key]) for key in _TEXTS if isinstance(block.get(key), str))
    return 0 if "tool" in kind or "call" in kind else _DOCUMENT
