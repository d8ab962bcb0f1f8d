"""What is known of OpenAI's chat models, for `model.profile`.

The numbers are those that models.dev (MIT) published in November 2026. Only models that converse in text are listed; of any other,
a compatible server's among them, nothing is claimed, and `profile={...}` says what the user knows. The efforts of the `-codex` and
`-pro` models, and that they take no temperature, are as OpenAI's own pages of these models have it.
"""

import re
from typing import Any

from .._base.profiles import by_name, profile

__all__ = ["profile_of", "refuses_chat_completions", "refuses_tools_on_chat_completions"]

_LOW_TO_HIGH = ("low", "medium", "high")
_FROM_MINIMAL = ("minimal", *_LOW_TO_HIGH)
_FROM_NONE = ("none", *_LOW_TO_HIGH)
_UP_TO_EXTRA = (*_FROM_NONE, "xhigh")
_LOW_TO_EXTRA = (*_LOW_TO_HIGH, "xhigh")
_FROM_MEDIUM = ("medium", "high", "xhigh")
_UP_TO_MAXIMUM = (*_UP_TO_EXTRA, "max")

# names: (input tokens, output tokens, images and PDFs, structured output, takes a temperature, reasoning efforts or None)
_Row = tuple[int, int, bool, bool, bool, tuple[str, ...] | None]
_OLDEST: _Row = (16_385, 4_096, False, False, True, None)
_TABLE: dict[str, _Row] = {
    "gpt-3.5-turbo gpt-3.5-turbo-0125 gpt-3.5-turbo-1106 gpt-3.5-turbo-16k gpt-35-turbo gpt-35-turbo-16k": _OLDEST,
    "gpt-4 gpt-4-0613": (8_192, 8_192, False, False, True, None),
    "gpt-4-turbo": (128_000, 4_096, True, False, True, None),
    "gpt-4-turbo-preview gpt-4-0125-preview gpt-4-1106-preview": (128_000, 4_096, False, False, True, None),
    "gpt-4o gpt-4o-mini": (128_000, 16_384, True, True, True, None),
    "gpt-4o-2024-05-13": (128_000, 4_096, True, False, True, None),
    "gpt-4.1 gpt-4.1-mini gpt-4.1-nano": (1_047_576, 32_768, True, True, True, None),
    "o1 o1-pro o3 o3-pro o4-mini": (200_000, 100_000, True, True, False, _LOW_TO_HIGH),
    "o3-mini": (200_000, 100_000, False, True, False, _LOW_TO_HIGH),
    "gpt-5 gpt-5-mini gpt-5-nano": (272_000, 128_000, True, True, False, _FROM_MINIMAL),
    "gpt-5-pro": (272_000, 272_000, True, True, False, ("high",)),
    "gpt-5-codex gpt-5.1-codex gpt-5.1-codex-mini": (272_000, 128_000, True, True, False, _LOW_TO_HIGH),
    "gpt-5.1-codex-max gpt-5.2-codex": (272_000, 128_000, True, True, False, _LOW_TO_EXTRA),
    "gpt-5.1": (272_000, 128_000, True, True, True, _FROM_NONE),
    "gpt-5.2": (272_000, 128_000, True, True, True, _UP_TO_EXTRA),
    "gpt-5.2-pro": (272_000, 128_000, True, False, False, _FROM_MEDIUM),
    "gpt-5.3-codex": (400_000, 128_000, True, True, False, _LOW_TO_EXTRA),
    "gpt-5.3-codex-spark": (128_000, 32_000, True, True, False, _LOW_TO_EXTRA),
    "gpt-5.4": (1_050_000, 128_000, True, True, True, _UP_TO_EXTRA),
    "gpt-5.4-mini gpt-5.4-nano": (400_000, 128_000, True, True, True, _UP_TO_EXTRA),
    "gpt-5.4-pro": (1_050_000, 128_000, True, False, False, _FROM_MEDIUM),
    "gpt-5.5-pro": (1_050_000, 128_000, True, True, False, _FROM_MEDIUM),
    "gpt-5.5": (1_050_000, 128_000, True, True, False, _UP_TO_EXTRA),
    "gpt-5.6 gpt-5.6-luna gpt-5.6-sol gpt-5.6-terra gpt-6-luna gpt-6-sol": (1_050_000, 128_000, True, True, False, _UP_TO_MAXIMUM),
    "gpt-6-astra": (1_050_000, 128_000, True, True, False, (*_LOW_TO_EXTRA, "max")),
    "gpt-6.1-sol gpt-6.1-terra": (1_050_000, 128_000, True, True, False, _LOW_TO_HIGH),
}
_ROWS = by_name(_TABLE)
_DEFAULT_EFFORTS = by_name({"gpt-5.5 gpt-5.5-pro gpt-5.6 gpt-5.6-luna gpt-5.6-sol gpt-5.6-terra gpt-6-luna gpt-6-sol": "medium"})
_SYSTEM_ANYWHERE = re.compile(r"gpt-4\.1|gpt-5|gpt-6(?!\.1-terra)|o3")
_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}\Z")
_RESPONSES_ONLY = re.compile(r"(gpt-\d(\.\d+)?|o\d)-pro\b|gpt-5\.6-sol\b|computer-use\b|.*(codex|-deep-research)\b")
_VERSION = re.compile(r"gpt-(\d)(?:\.(\d+))?(?![\d.])")  # gpt-35-turbo is Azure's name of a 3.5
_FIRST_TO_REFUSE_TOOLS = (5, 4)
_FIRST_TO_REASON_ALWAYS = (6, 0)


def profile_of(model: str) -> dict[str, Any]:
    """What is known of a model; empty if nothing is. A dated version is taken for its undated name."""
    name = model.lower()
    row = _ROWS.get(name) or _ROWS.get(_DATE.sub("", name))
    if row is None:
        return {}
    input_tokens, output_tokens, media, structured, temperature, efforts = row
    known = profile(
        input_tokens,
        output_tokens,
        images=media,
        pdfs=media,
        reasoning=efforts is not None,
        efforts=efforts,
        default_effort=_DEFAULT_EFFORTS.get(_DATE.sub("", name)),
        structured=structured,
        temperature=temperature,
    )
    return {**known, **({"mid_conversation_system_messages": True} if _SYSTEM_ANYWHERE.match(name) else {})}


def refuses_chat_completions(model: str) -> bool:
    """Whether OpenAI serves a model by the Responses API alone, or wants it used there."""
    return _RESPONSES_ONLY.match(_base(model)) is not None


def refuses_tools_on_chat_completions(model: str, effort: str) -> bool:
    """Whether OpenAI's chat completions refuse a model function tools.

    Args:
        model: The model's name.
        effort: The reasoning effort that is asked for; "" leaves it to the vendor, who does not take `none`.
    """
    found = _VERSION.match(_base(model))
    version = (int(found[1]), int(found[2] or 0)) if found else (0, 0)
    return version >= (_FIRST_TO_REASON_ALWAYS if effort == "none" else _FIRST_TO_REFUSE_TOOLS)


def _base(model: str) -> str:
    """The model that a fine-tuned one was made of; any other is itself."""
    return model.lower().removeprefix("ft:").partition(":")[0]
