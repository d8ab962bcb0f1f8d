"""Token counts of chat completions, and of the Responses API, in LangChain's terms."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages.ai import UsageMetadata

from .._base.token_counts import detailed_usage, token_count
from .wire import Usage

# Servers count cached and reasoning tokens under the vendor's details, or under a key of their own beside them.
_CACHE_READ = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens", "num_cached_tokens")
_CACHE_CREATION = ("cache_write_tokens", "cache_creation_input_tokens")
_MEDIA = ("audio", "image", "video")
_PRICED_TIERS = frozenset({"priority", "flex"})


def usage_metadata(usage: Usage, service_tier: str | None = None) -> UsageMetadata:
    """Return the token counts of one reply.

    Args:
        usage: The wire's `usage`. Missing numbers count as 0, a missing total as the sum.
        service_tier: The tier that served the reply. Tokens of a tier with its own price are counted under its name too, as
            LangChain's partner package does.
    """
    input_tokens = token_count(usage, "prompt_tokens") or 0
    output_tokens = token_count(usage, "completion_tokens") or 0
    prompt, completion = _details(usage, "prompt_tokens_details"), _details(usage, "completion_tokens_details")
    tier = service_tier if service_tier in _PRICED_TIERS else None
    prefix = f"{tier}_" if tier else ""
    cache_read = _first(prompt, usage, _CACHE_READ)
    reasoning = _first(completion, usage, ("reasoning_tokens",))
    read: dict[str, int | None] = {
        **_media(prompt),
        f"{prefix}cache_read": cache_read,
        f"{prefix}cache_creation": _first(prompt, usage, _CACHE_CREATION),
    }
    written: dict[str, int | None] = {**_media(completion), f"{prefix}reasoning": reasoning}
    if tier:
        read[tier] = input_tokens - (cache_read or 0)
        written[tier] = output_tokens - (reasoning or 0)
    return detailed_usage(input_tokens, output_tokens, read, written, token_count(usage, "total_tokens"))


def responses_usage(usage: Mapping[str, Any], service_tier: str | None = None) -> UsageMetadata:
    """Return the token counts of one reply of the Responses API; see `usage_metadata` for the arguments."""
    names = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
    renamed = {old.replace(name, new): value for old, value in usage.items() for name, new in names.items() if name in old}
    counts: Any = {**usage, **renamed}
    return usage_metadata(counts, service_tier)


def _details(usage: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    details = usage.get(key)
    return details if isinstance(details, Mapping) else {}


def _media(details: Mapping[str, Any]) -> dict[str, int | None]:
    return {name: token_count(details, f"{name}_tokens") for name in _MEDIA}


def _first(details: Mapping[str, Any], usage: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    counts = (token_count(holder, key) for holder in (details, usage) for key in keys)
    return next((count for count in counts if count is not None), None)
