"""Token counts of generateContent in LangChain's terms.

Wire facts: the counts of each event are those of the reply so far (wire quirk G-15); `candidatesTokenCount` does not include thinking, and
`promptTokenCount` includes what came from a cache but not what the server's own tools added. Modalities are words, or numbers
where a client asked for those; those of text are left out, because LangChain's details are not to sum to more than the total.
"""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages.ai import UsageMetadata

from .._base.token_counts import detailed_usage, token_count

_MODALITIES = {1: "text", 2: "image", 3: "video", 4: "audio", 5: "document"}
_TEXT = "text"


def usage_metadata(usage: Mapping[str, Any]) -> UsageMetadata | None:
    """Return the token counts of one reply; None if there are none.

    Args:
        usage: The wire's `usageMetadata`. Missing numbers count as 0.
    """
    counts = {key: value for key, value in usage.items() if isinstance(value, int | float)}
    if not counts:
        return None
    input_tokens = int(counts.get("promptTokenCount", 0) + counts.get("toolUsePromptTokenCount", 0))
    output_tokens = int(counts.get("candidatesTokenCount", 0) + counts.get("thoughtsTokenCount", 0))
    put = _by_modality(usage, "promptTokensDetails", "toolUsePromptTokensDetails")
    out = _by_modality(usage, "candidatesTokensDetails")
    total = int(counts.get("totalTokenCount") or input_tokens + output_tokens)
    read = {"cache_read": token_count(counts, "cachedContentTokenCount"), **put}
    return detailed_usage(input_tokens, output_tokens, read, {"reasoning": token_count(counts, "thoughtsTokenCount"), **out}, total)


def _by_modality(usage: Mapping[str, Any], *names: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for detail in (detail for name in names for detail in usage.get(name) or ()):
        modality = detail.get("modality") if isinstance(detail, Mapping) else None
        name = _MODALITIES.get(modality) if isinstance(modality, int) else str(modality or "").lower()
        if name and name != _TEXT:
            found[name] = found.get(name, 0) + int(detail.get("tokenCount") or 0)
    return found
