"""Profiles of Anthropic's models, for `model.profile`.

The numbers are those that models.dev (MIT) published in November 2026. Of any other model nothing is claimed, and `profile={...}`
says what the user knows.
"""

import re
from functools import partial
from typing import Any

from .._base.profiles import described, profile, profile_in

_TO_HIGH = ("low", "medium", "high")
_known = partial(profile, images=True, pdfs=True, reasoning=True)
_large = partial(_known, 1_000_000, 128_000, default_effort="high")
_recent = partial(
    _large,
    efforts=(*_TO_HIGH, "xhigh", "max"),
    temperature=False,
    mid_conversation_system_messages=True,
    mid_conversation_tools=True,
)
_CARDS = """
claude-haiku-4-5 | Claude Haiku 4.5 (latest) | 2025-10-15
claude-sonnet-4-5 | Claude Sonnet 4.5 (latest) | 2025-09-29
claude-opus-4-5 | Claude Opus 4.5 (latest) | 2025-11-24
claude-opus-4-6 | Claude Opus 4.6 | 2026-02-04 2026-03-13
claude-sonnet-4-6 | Claude Sonnet 4.6 | 2026-02-17 2026-03-13
claude-opus-4-7 | Claude Opus 4.7 | 2026-04-14 2026-04-16
claude-opus-4-8 | Claude Opus 4.8 | 2026-05-28
claude-opus-5 | Claude Opus 5 | 2026-07-24
claude-fable-5 | Claude Fable 5 | 2026-06-07 2026-06-09
claude-sonnet-5 | Claude Sonnet 5 | 2026-06-29 2026-06-30
claude-opus-5-5 | Claude Opus 5.5 | 2026-09-22
claude-sonnet-5-5 | Claude Sonnet 5.5 | 2026-09-28
claude-fable-5-1 | Claude Fable 5.1 | 2026-09-01
claude-haiku-5-5 | Claude Haiku 5.5 | 2026-10-07
"""
PROFILES = described(
    {
        "claude-haiku-4-5 claude-sonnet-4-5": _known(200_000, 64_000),
        "claude-opus-4-5": _known(200_000, 64_000, efforts=_TO_HIGH, default_effort="high"),
        "claude-opus-4-6 claude-sonnet-4-6": _large(efforts=(*_TO_HIGH, "max")),
        "claude-opus-4-7": _large(efforts=(*_TO_HIGH, "xhigh", "max"), temperature=False),
        "claude-opus-4-8 claude-opus-5 claude-fable-5": _recent(),
        "claude-sonnet-5": _recent(mid_conversation_tools=False),
        "claude-opus-5-5": _recent(default_effort="medium", tool_choice=False),
        "claude-sonnet-5-5 claude-fable-5-1": _recent(tool_choice=False),
        "claude-haiku-5-5": _recent(efforts=None, default_effort=None, structured=False),
    },
    _CARDS,
)
_DATE = re.compile(r"-\d{8}\Z|-latest\Z")


def profile_of(model: str) -> dict[str, Any]:
    """Return the profile of a model; empty if it is unknown. A dated version counts as its undated name."""
    return profile_in(PROFILES, model, _DATE)
