"""What is known of Anthropic's models, for `model.profile`.

The numbers are those that models.dev (MIT) published in November 2026. Of any other model nothing is claimed, and `profile={...}`
says what the user knows.
"""

import re
from typing import Any

from .._base.profiles import by_name, profile

__all__ = ["profile_of"]

_TO_HIGH = ("low", "medium", "high")
_TO_MAX = (*_TO_HIGH, "max")
_TO_EXTRA = (*_TO_HIGH, "xhigh", "max")

# names: (input tokens, output tokens, structured output, takes a temperature, system messages anywhere, forced choices, efforts)
_Row = tuple[int, int, bool, bool, bool, bool, tuple[str, ...] | None]
_TABLE: dict[str, _Row] = {
    "claude-haiku-4-5 claude-sonnet-4-5": (200_000, 64_000, True, True, False, True, None),
    "claude-opus-4-5": (200_000, 64_000, True, True, False, True, _TO_HIGH),
    "claude-opus-4-6 claude-sonnet-4-6": (1_000_000, 128_000, True, True, False, True, _TO_MAX),
    "claude-opus-4-7": (1_000_000, 128_000, True, False, False, True, _TO_EXTRA),
    "claude-opus-4-8 claude-opus-5 claude-sonnet-5 claude-fable-5": (1_000_000, 128_000, True, False, True, True, _TO_EXTRA),
    "claude-opus-5-5 claude-sonnet-5-5 claude-fable-5-1": (1_000_000, 128_000, True, False, True, False, _TO_EXTRA),
    "claude-haiku-5-5": (1_000_000, 128_000, False, False, True, True, None),
}
_ROWS = by_name(_TABLE)
_WITHOUT_TOOL_CHANGES = "claude-sonnet-5"
_DATE = re.compile(r"-\d{8}\Z|-latest\Z")


def profile_of(model: str) -> dict[str, Any]:
    """What is known of a model; empty if nothing is. A dated version is taken for its undated name."""
    name = model.lower()
    row = _ROWS.get(name) or _ROWS.get(_DATE.sub("", name))
    if row is None:
        return {}
    input_tokens, output_tokens, structured, temperature, system_anywhere, forced, efforts = row
    known = profile(
        input_tokens,
        output_tokens,
        images=True,
        pdfs=True,
        reasoning=True,
        efforts=efforts,
        default_effort=("medium" if name.startswith("claude-opus-5-5") else "high") if efforts else None,
        structured=structured,
        temperature=temperature,
    )
    changes = _DATE.sub("", name) != _WITHOUT_TOOL_CHANGES
    anywhere = {"mid_conversation_system_messages": True, "mid_conversation_tools": changes} if system_anywhere else {}
    return {**known, "tool_choice": forced, **anywhere}
