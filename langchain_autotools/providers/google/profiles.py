"""What is known of Google's models, for `model.profile`, and what a model's name says of its protocol.

The numbers are those that models.dev (MIT) published in November 2026. Of any other model nothing is claimed, and `profile={...}`
says what the user knows.
"""

import re
from functools import partial
from typing import Any

from .._base.profiles import by_name, profile, profile_in

_TO_HIGH = ("low", "medium", "high")
_ALL = ("minimal", *_TO_HIGH)
_known = partial(profile, images=True, pdfs=True, reasoning=True, streams_calls=False)
_gemini = partial(_known, 1_048_576, 65_536, sound_and_video=True)
_PROFILES = by_name(
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
    }
)
_VERSION = re.compile(r"-\d{3}\Z")
_MAJOR = re.compile(r"gemini-(\d+)")


def plain_name(model: str) -> str:
    """A model's name without the path to it."""
    return model.rpartition("/")[2]


def is_older(model: str) -> bool:
    """Whether a model is of a generation before Gemini 3: those ask for no signatures, and take no media in tools' responses."""
    major = _MAJOR.search(model.lower())
    return (major is not None and int(major[1]) < 3) or plain_name(model).lower().startswith("gemma")


def answers_in_blocks(model: str) -> bool:
    """Whether a model is known for replies of more than text, whatever it is asked: from Gemini 3 on they may be signed, and makers of
    pictures make them unasked."""
    major = _MAJOR.search(model.lower())
    return (major is not None and int(major[1]) >= 3) or "-image" in plain_name(model).lower()


def profile_of(model: str) -> dict[str, Any]:
    """What is known of a model; empty if nothing is. A numbered version is taken for its name without the number."""
    return profile_in(_PROFILES, plain_name(model), _VERSION)
