"""Token counts of replies in LangChain's form."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages.ai import InputTokenDetails, OutputTokenDetails, UsageMetadata

_Counts = Mapping[str, int | None]


def token_count(counts: Mapping[str, Any], key: str) -> int | None:
    """Return one token count of a reply; None if it is missing.

    Args:
        counts: The reply's counts.
        key: The name of the count.
    """
    value = counts.get(key)
    return int(value) if isinstance(value, int | float) else None


def detailed_usage(input_tokens: int, output_tokens: int, read: _Counts, written: _Counts, total: int | None = None) -> UsageMetadata:
    """Return the usage of one reply.

    Args:
        input_tokens: All tokens of the request.
        output_tokens: All tokens of the reply.
        read: Details of the request's tokens; None for what is not known.
        written: Details of the reply's.
        total: The sum as the server says it; None for that of the two.
    """
    return UsageMetadata(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=input_tokens + output_tokens if total is None else total,
        input_token_details=InputTokenDetails(**_known(read)),  # type: ignore[typeddict-item]
        output_token_details=OutputTokenDetails(**_known(written)),  # type: ignore[typeddict-item]
    )


def _known(counts: _Counts) -> dict[str, int]:
    return {key: count for key, count in counts.items() if count is not None}
