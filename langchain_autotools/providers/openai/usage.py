"""Token counts of chat completions in LangChain's terms."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages.ai import InputTokenDetails, OutputTokenDetails, UsageMetadata

__all__ = ["usage_metadata"]

# Servers count cached and reasoning tokens under the vendor's details, or under a key of their own beside them.
_CACHE_READ = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens", "num_cached_tokens")
_CACHE_CREATION = ("cache_write_tokens", "cache_creation_input_tokens")
_PRICED_TIERS = frozenset({"priority", "flex"})


def usage_metadata(usage: Mapping[str, Any], service_tier: str | None = None) -> UsageMetadata:
    """Token counts of one reply.

    Args:
        usage: The wire's `usage`. Missing numbers count as 0, a missing total as the sum.
        service_tier: The tier that served the reply. Tokens of a tier with its own price are counted under its name too, as
            LangChain's partner package does.
    """
    input_tokens = _count(usage, "prompt_tokens") or 0
    output_tokens = _count(usage, "completion_tokens") or 0
    total_tokens = _count(usage, "total_tokens")
    prompt, completion = _details(usage, "prompt_tokens_details"), _details(usage, "completion_tokens_details")
    tier = service_tier if service_tier in _PRICED_TIERS else None
    prefix = f"{tier}_" if tier else ""
    cache_read = _first(prompt, usage, _CACHE_READ)
    reasoning = _first(completion, usage, ("reasoning_tokens",))
    read: dict[str, int | None] = {
        "audio": _count(prompt, "audio_tokens"),
        f"{prefix}cache_read": cache_read,
        f"{prefix}cache_creation": _first(prompt, usage, _CACHE_CREATION),
    }
    written: dict[str, int | None] = {"audio": _count(completion, "audio_tokens"), f"{prefix}reasoning": reasoning}
    if tier:
        read[tier] = input_tokens - (cache_read or 0)
        written[tier] = output_tokens - (reasoning or 0)
    return UsageMetadata(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=input_tokens + output_tokens if total_tokens is None else total_tokens,
        input_token_details=InputTokenDetails(**_known(read)),  # type: ignore[typeddict-item]
        output_token_details=OutputTokenDetails(**_known(written)),  # type: ignore[typeddict-item]
    )


def _details(usage: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    details = usage.get(key)
    return details if isinstance(details, Mapping) else {}


def _count(counts: Mapping[str, Any], key: str) -> int | None:
    value = counts.get(key)
    return int(value) if isinstance(value, int | float) else None


def _first(details: Mapping[str, Any], usage: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    counts = (_count(holder, key) for holder in (details, usage) for key in keys)
    return next((count for count in counts if count is not None), None)


def _known(counts: Mapping[str, int | None]) -> dict[str, int]:
    return {key: count for key, count in counts.items() if count is not None}
