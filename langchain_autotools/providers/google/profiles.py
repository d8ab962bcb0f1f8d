"""Profiles of Google's models, for `model.profile`, and protocol features by model name.

The numbers are those that models.dev (MIT) published in November 2026. Of any other model nothing is claimed, and `profile={...}`
says what the user knows.
"""

import re
from functools import partial
from typing import Any

from .._base.profiles import described, profile, profile_in

_TO_HIGH = ("low", "medium", "high")
_ALL = ("minimal", *_TO_HIGH)
_known = partial(profile, images=True, pdfs=True, reasoning=True, streams_calls=False)
_gemini = partial(_known, 1_048_576, 65_536, sound_and_video=True)
_CARDS = """
gemini-2.5-flash | Gemini 2.5 Flash | 2025-06-17
gemini-2.5-flash-lite | Gemini 2.5 Flash-Lite | 2025-06-17
gemini-2.5-pro | Gemini 2.5 Pro | 2025-06-17
gemini-2.5-computer-use-preview-10-2025 | Gemini 2.5 Computer Use Preview 10-2025 | 2025-10-07
gemini-3.1-pro-preview | Gemini 3.1 Pro Preview | 2026-02-19
gemini-3.1-pro-preview-customtools | Gemini 3.1 Pro Preview Custom Tools | 2026-02-19
gemini-3-flash-preview | Gemini 3 Flash Preview | 2025-12-17
gemini-3.1-flash-lite | Gemini 3.1 Flash Lite | 2026-05-07
gemini-3.5-flash-lite | Gemini 3.5 Flash Lite | 2026-07-21
gemini-3.5-flash | Gemini 3.5 Flash | 2026-05-19
gemini-3.6-flash | Gemini 3.6 Flash | 2026-07-21
gemini-3.7-flash | Gemini 3.7 Flash | 2026-08-13
gemini-3.8-flash | Gemini 3.8 Flash | 2026-09-02
gemini-flash-latest | Gemini Flash Latest | 2026-08-13
gemini-flash-lite-latest | Gemini Flash-Lite Latest | 2026-07-21
gemini-4-argon | Gemini 4 Argon | 2026-10-13
gemma-4-26b-a4b-it | Gemma 4 26B A4B IT | 2026-04-02 | open
gemma-4-31b-it | Gemma 4 31B IT | 2026-04-02 | open
"""
PROFILES = described(
    {
        "gemini-2.5-flash gemini-2.5-flash-lite gemini-2.5-pro": _gemini(),
        "gemini-2.5-computer-use-preview-10-2025": _known(128_000, 64_000, structured=False),
        "gemini-3-pro-preview": _gemini(efforts=("low", "high"), default_effort="high"),
        "gemini-3.1-pro-preview gemini-3.1-pro-preview-customtools": _gemini(efforts=_TO_HIGH, default_effort="high"),
        "gemini-3-flash-preview": _gemini(efforts=_ALL, default_effort="high"),
        "gemini-3.1-flash-lite gemini-3.5-flash-lite": _gemini(efforts=_ALL, default_effort="minimal"),
        "gemini-3.5-flash gemini-3.6-flash": _gemini(efforts=_ALL, default_effort="medium"),
        "gemini-3.7-flash gemini-3.8-flash gemini-flash-latest gemini-flash-lite-latest": _gemini(),
        "gemini-4-argon": _gemini(efforts=_TO_HIGH, default_effort="medium", temperature=False),
        "gemma-4-26b-a4b-it gemma-4-31b-it": _known(262_144, 32_768),
    },
    _CARDS,
)
_VERSION = re.compile(r"-\d{3}\Z")
_MAJOR = re.compile(r"gemini-(\d+)")


def plain_name(model: str) -> str:
    """Return a model's name without its path."""
    return model.rpartition("/")[2]


def is_older(model: str) -> bool:
    """Whether a model is older than Gemini 3: those need no signatures and accept no media in tool responses."""
    major = _MAJOR.search(model.lower())
    return (major is not None and int(major[1]) < 3) or plain_name(model).lower().startswith("gemma")


def answers_in_blocks(model: str) -> bool:
    """Whether any reply of a model may hold more than text: signatures from Gemini 3 on, or pictures of image models."""
    major = _MAJOR.search(model.lower())
    return (major is not None and int(major[1]) >= 3) or "-image" in plain_name(model).lower()


def profile_of(model: str) -> dict[str, Any]:
    """Return the profile of a model; empty if it is unknown. A numbered version counts as its name without the number."""
    return profile_in(PROFILES, plain_name(model), _VERSION)
