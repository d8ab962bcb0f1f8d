"""Token counts of the Messages API in LangChain's terms.

Wire facts: `input_tokens` counts what neither came from a cache nor went into one, `output_tokens` includes thinking; of a stream the
counts of `message_delta` are cumulative and may leave fields out.
"""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages.ai import UsageMetadata

from .._base.token_counts import detailed_usage, token_count

_LIFETIMES = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")


def merged_usage(earlier: Mapping[str, Any], later: Any) -> dict[str, Any]:
    """Merge a later event's counts over the earlier ones."""
    counted = {key: value for key, value in later.items() if value is not None} if isinstance(later, Mapping) else {}
    return {**earlier, **counted}


def usage_metadata(usage: Mapping[str, Any]) -> UsageMetadata:
    """Return the token counts of one reply. As in LangChain's partner package, input tokens include the prompt cache's.

    Args:
        usage: The wire's `usage`. Missing numbers count as 0.
    """
    read = token_count(usage, "cache_read_input_tokens")
    created = token_count(usage, "cache_creation_input_tokens")
    by_lifetime = usage.get("cache_creation")
    lifetimes = {key: token_count(by_lifetime, key) for key in _LIFETIMES} if isinstance(by_lifetime, Mapping) else {}
    specific = sum(count or 0 for count in lifetimes.values())
    input_tokens = (token_count(usage, "input_tokens") or 0) + (read or 0) + (specific or created or 0)
    output_tokens = token_count(usage, "output_tokens") or 0
    details = usage.get("output_tokens_details")
    thinking = token_count(details, "thinking_tokens") if isinstance(details, Mapping) else None
    # A write that is counted by its lifetime is not counted once more under the general name.
    entered = {"cache_read": read, "cache_creation": 0 if specific else created, **lifetimes}
    return detailed_usage(input_tokens, output_tokens, entered, {"reasoning": thinking})
