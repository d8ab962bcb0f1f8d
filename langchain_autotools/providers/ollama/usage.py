"""Token counts of /api/chat in LangChain's terms."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages.ai import UsageMetadata


def usage_metadata(reply: Mapping[str, Any]) -> UsageMetadata | None:
    """Return the token counts of one reply; None if there are none.

    Args:
        reply: The reply's last event: `prompt_eval_count` is left out by servers that took the whole prompt from their cache.
    """
    read, written = reply.get("prompt_eval_count"), reply.get("eval_count")
    if not isinstance(read, int) and not isinstance(written, int):
        return None
    read, written = read or 0, written or 0
    return UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
