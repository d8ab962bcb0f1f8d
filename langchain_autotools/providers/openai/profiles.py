"""Profiles of OpenAI's chat models, for `model.profile`.

The numbers are those that models.dev (MIT) published in November 2026. Only models that converse in text are listed; of any other,
a compatible server's among them, nothing is claimed, and `profile={...}` says what the user knows. The efforts of the `-codex` and
`-pro` models, and that they take no temperature, are as OpenAI's own pages of these models have it.
"""

import re
from functools import partial
from typing import Any

from .._base.profiles import described, profile, profile_in

_LOW_TO_HIGH = ("low", "medium", "high")
_FROM_MINIMAL = ("minimal", *_LOW_TO_HIGH)
_FROM_NONE = ("none", *_LOW_TO_HIGH)
_UP_TO_EXTRA = (*_FROM_NONE, "xhigh")
_LOW_TO_EXTRA = (*_LOW_TO_HIGH, "xhigh")
_FROM_MEDIUM = ("medium", "high", "xhigh")
_UP_TO_MAXIMUM = (*_UP_TO_EXTRA, "max")

_seeing = partial(profile, images=True, pdfs=True)
_reasoning = partial(_seeing, reasoning=True, temperature=False)
_CARDS = """
gpt-3.5-turbo | GPT-3.5-turbo | 2023-03-01 2023-11-06 | deprecated
gpt-4 | GPT-4 | 2023-11-06 2024-04-09 | deprecated
gpt-4-turbo | GPT-4 Turbo | 2023-11-06 2024-04-09 | deprecated
gpt-4o | GPT-4o | 2024-05-13 2024-08-06
gpt-4o-mini | GPT-4o mini | 2024-07-18
gpt-4o-2024-05-13 | GPT-4o (2024-05-13) | 2024-05-13 | deprecated
gpt-4.1 | GPT-4.1 | 2025-04-14
gpt-4.1-mini | GPT-4.1 mini | 2025-04-14
gpt-4.1-nano | GPT-4.1 nano | 2025-04-14 | deprecated
o1 | o1 | 2024-12-05 | deprecated
o1-pro | o1-pro | 2025-03-19 | deprecated
o3 | o3 | 2025-04-16
o3-pro | o3-pro | 2025-06-10
o4-mini | o4-mini | 2025-04-16 | deprecated
o3-mini | o3-mini | 2024-12-20 2025-01-29 | deprecated
gpt-5 | GPT-5 | 2025-08-07
gpt-5-mini | GPT-5 Mini | 2025-08-07
gpt-5-nano | GPT-5 Nano | 2025-08-07
gpt-5-pro | GPT-5 Pro | 2025-10-06
gpt-5.1 | GPT-5.1 | 2025-11-13
gpt-5.2 | GPT-5.2 | 2025-12-11
gpt-5.2-pro | GPT-5.2 Pro | 2025-12-11
gpt-5.3-codex | GPT-5.3 Codex | 2026-02-05
gpt-5.3-codex-spark | GPT-5.3 Codex Spark | 2026-02-05
gpt-5.4 | GPT-5.4 | 2026-03-05
gpt-5.4-mini | GPT-5.4 mini | 2026-03-17
gpt-5.4-nano | GPT-5.4 nano | 2026-03-17
gpt-5.4-pro | GPT-5.4 Pro | 2026-03-05
gpt-5.5-pro | GPT-5.5 Pro | 2026-04-23
gpt-5.5 | GPT-5.5 | 2026-04-23
gpt-5.6 | GPT-5.6 | 2026-07-09
gpt-5.6-luna | GPT-5.6 Luna | 2026-07-09
gpt-5.6-sol | GPT-5.6 Sol | 2026-07-09
gpt-5.6-terra | GPT-5.6 Terra | 2026-07-09
gpt-6-luna | GPT-6 Luna | 2026-09-22
gpt-6-sol | GPT-6 Sol | 2026-09-22
gpt-6-astra | GPT-6 Astra | 2026-09-04
gpt-6.1-sol | GPT-6.1 Sol | 2026-09-29
gpt-6.1-terra | GPT-6.1 Terra | 2026-10-26
"""
PROFILES = described(
    {
        "gpt-3.5-turbo gpt-3.5-turbo-0125 gpt-3.5-turbo-1106 gpt-3.5-turbo-16k": profile(16_385, 4_096, structured=False),
        "gpt-35-turbo gpt-35-turbo-16k": profile(16_385, 4_096, structured=False),
        "gpt-4 gpt-4-0613": profile(8_192, 8_192, structured=False),
        "gpt-4-turbo": _seeing(128_000, 4_096, structured=False),
        "gpt-4-turbo-preview gpt-4-0125-preview gpt-4-1106-preview": profile(128_000, 4_096, structured=False),
        "gpt-4o gpt-4o-mini": _seeing(128_000, 16_384),
        "gpt-4o-2024-05-13": _seeing(128_000, 4_096, structured=False),
        "gpt-4.1 gpt-4.1-mini gpt-4.1-nano": _seeing(1_047_576, 32_768),
        "o1 o1-pro o3 o3-pro o4-mini": _reasoning(200_000, 100_000, efforts=_LOW_TO_HIGH),
        "o3-mini": _reasoning(200_000, 100_000, efforts=_LOW_TO_HIGH, images=False, pdfs=False),
        "gpt-5 gpt-5-mini gpt-5-nano": _reasoning(272_000, 128_000, efforts=_FROM_MINIMAL),
        "gpt-5-pro": _reasoning(272_000, 272_000, efforts=("high",)),
        "gpt-5-codex gpt-5.1-codex gpt-5.1-codex-mini": _reasoning(272_000, 128_000, efforts=_LOW_TO_HIGH),
        "gpt-5.1-codex-max gpt-5.2-codex": _reasoning(272_000, 128_000, efforts=_LOW_TO_EXTRA),
        "gpt-5.1": _reasoning(272_000, 128_000, efforts=_FROM_NONE, temperature=True),
        "gpt-5.2": _reasoning(272_000, 128_000, efforts=_UP_TO_EXTRA, temperature=True),
        "gpt-5.2-pro": _reasoning(272_000, 128_000, efforts=_FROM_MEDIUM, structured=False),
        "gpt-5.3-codex": _reasoning(400_000, 128_000, efforts=_LOW_TO_EXTRA),
        "gpt-5.3-codex-spark": _reasoning(128_000, 32_000, efforts=_LOW_TO_EXTRA),
        "gpt-5.4": _reasoning(1_050_000, 128_000, efforts=_UP_TO_EXTRA, temperature=True),
        "gpt-5.4-mini gpt-5.4-nano": _reasoning(400_000, 128_000, efforts=_UP_TO_EXTRA, temperature=True),
        "gpt-5.4-pro": _reasoning(1_050_000, 128_000, efforts=_FROM_MEDIUM, structured=False),
        "gpt-5.5-pro": _reasoning(1_050_000, 128_000, efforts=_FROM_MEDIUM, default_effort="medium"),
        "gpt-5.5": _reasoning(1_050_000, 128_000, efforts=_UP_TO_EXTRA, default_effort="medium"),
        "gpt-5.6 gpt-5.6-luna gpt-5.6-sol gpt-5.6-terra": _reasoning(1_050_000, 128_000, efforts=_UP_TO_MAXIMUM, default_effort="medium"),
        "gpt-6-luna gpt-6-sol": _reasoning(1_050_000, 128_000, efforts=_UP_TO_MAXIMUM, default_effort="medium"),
        "gpt-6-astra": _reasoning(1_050_000, 128_000, efforts=(*_LOW_TO_EXTRA, "max")),
        "gpt-6.1-sol gpt-6.1-terra": _reasoning(1_050_000, 128_000, efforts=_LOW_TO_HIGH),
    },
    _CARDS,
)
_CHANGED_MIDWAY = {"mid_conversation_system_messages": True, "mid_conversation_tools": True}
_CHANGES_MIDWAY = re.compile(r"gpt-4\.1|gpt-5|gpt-6(?!\.1-terra)|o3")
_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}\Z")
_RESPONSES_ONLY = re.compile(r"(gpt-\d(\.\d+)?|o\d)-pro\b|gpt-5\.6-sol\b|computer-use\b|.*(codex|-deep-research)\b")
_VERSION = re.compile(r"gpt-(\d)(?:\.(\d+))?(?![\d.])")  # gpt-35-turbo is Azure's name of a 3.5
_FIRST_TO_REFUSE_TOOLS = (5, 4)
_FIRST_TO_REASON_ALWAYS = (6, 0)


def profile_of(model: str) -> dict[str, Any]:
    """Return the profile of a model at OpenAI's Responses API; empty if it is unknown. A dated version counts as its undated name."""
    known = profile_in(PROFILES, model, _DATE)
    return known | _CHANGED_MIDWAY if known and _CHANGES_MIDWAY.match(model.lower()) else known


def refuses_chat_completions(model: str) -> bool:
    """Whether OpenAI serves a model only, or preferably, by the Responses API."""
    return _RESPONSES_ONLY.match(_base(model)) is not None


def refuses_tools_on_chat_completions(model: str, effort: str) -> bool:
    """Whether OpenAI's chat completions reject function tools for a model.

    Args:
        model: The model's name.
        effort: The reasoning effort that is asked for; "" leaves it to the vendor, who does not take `none`.
    """
    found = _VERSION.match(_base(model))
    version = (int(found[1]), int(found[2] or 0)) if found else (0, 0)
    return version >= (_FIRST_TO_REASON_ALWAYS if effort == "none" else _FIRST_TO_REFUSE_TOOLS)


def _base(model: str) -> str:
    """Return the base model of a fine-tuned one; other names unchanged."""
    return model.lower().removeprefix("ft:").partition(":")[0]
