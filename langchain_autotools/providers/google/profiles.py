"""What is known of Google's models, for `model.profile`, and what a model's name says of its protocol.

The numbers are those that models.dev (MIT) published in November 2026. Of any other model nothing is claimed, and `profile={...}`
says what the user knows.
"""

import re
from typing import Any

from .._base.profiles import by_name, profile

__all__ = ["answers_in_blocks", "is_older", "plain_name", "profile_of"]

_TO_HIGH = ("low", "medium", "high")
_ALL = ("minimal", *_TO_HIGH)
_MILLION = 1_048_576

# names: (input tokens, output tokens, hears and sees moving pictures, structured output, takes a temperature, efforts)
_Row = tuple[int, int, bool, bool, bool, tuple[str, ...] | None]
_TABLE: dict[str, _Row] = {
    "gemini-2.5-flash gemini-2.5-flash-lite gemini-2.5-pro": (_MILLION, 65_536, True, True, True, None),
    "gemini-2.5-computer-use-preview-10-2025": (128_000, 64_000, False, False, True, None),
    "gemini-3-pro-preview": (_MILLION, 65_536, True, True, True, ("low", "high")),
    "gemini-3.1-pro-preview gemini-3.1-pro-preview-customtools": (_MILLION, 65_536, True, True, True, _TO_HIGH),
    "gemini-3-flash-preview gemini-3.1-flash-lite gemini-3.5-flash": (_MILLION, 65_536, True, True, True, _ALL),
    "gemini-3.5-flash-lite gemini-3.6-flash": (_MILLION, 65_536, True, True, True, _ALL),
    "gemini-3.7-flash gemini-3.8-flash gemini-flash-latest gemini-flash-lite-latest": (_MILLION, 65_536, True, True, True, None),
    "gemini-4-argon": (_MILLION, 65_536, True, True, False, _TO_HIGH),
    "gemma-4-26b-a4b-it gemma-4-31b-it": (262_144, 32_768, False, True, True, None),
}
_ROWS = by_name(_TABLE)
_DEFAULT_EFFORTS = by_name(
    {
        "gemini-3-flash-preview gemini-3-pro-preview gemini-3.1-pro-preview gemini-3.1-pro-preview-customtools": "high",
        "gemini-3.1-flash-lite gemini-3.5-flash-lite": "minimal",
        "gemini-3.5-flash gemini-3.6-flash gemini-4-argon": "medium",
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
    name = plain_name(model).lower()
    row = _ROWS.get(name) or _ROWS.get(_VERSION.sub("", name))
    if row is None:
        return {}
    input_tokens, output_tokens, moving, structured, temperature, efforts = row
    return profile(
        input_tokens,
        output_tokens,
        images=True,
        pdfs=True,
        sound_and_video=moving,
        reasoning=True,
        efforts=efforts,
        default_effort=_DEFAULT_EFFORTS.get(_VERSION.sub("", name)),
        structured=structured,
        temperature=temperature,
        streams_calls=False,
    )
