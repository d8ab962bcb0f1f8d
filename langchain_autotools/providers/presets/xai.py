"""`ChatXAI`: xAI's Grok models, with tools that run.

Wire facts (docs.x.ai): reasoning arrives as `reasoning_content`; models that reason refuse stop sequences.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from .._base.parameters import Environment
from .._base.profiles import by_name, profile
from ..openai.dialect import Dialect
from ..openai.preset import Preset, PresetChatModel

_UNKNOWN = "xAI's API does not know it"
_THINKERS = ("grok-3", "grok-4", "grok-code-fast")
_PROFILES: Mapping[str, Mapping[str, Any]] = by_name(
    {
        "grok-4.20-0309-non-reasoning": profile(1_000_000, 30_000, images=True, pdfs=True),
        "grok-4.20-0309-reasoning grok-4.3": profile(1_000_000, 30_000, images=True, pdfs=True, reasoning=True),
        "grok-4.5": profile(500_000, 500_000, images=True, pdfs=True, reasoning=True),
        "grok-build-0.1": profile(256_000, 256_000, images=True, pdfs=True, reasoning=True),
    }
)


def _request(params: dict[str, Any]) -> dict[str, Any]:
    """Without stop sequences where the model is known to refuse them."""
    model = str(params["model"]).lower()
    known = _PROFILES.get(model)
    thinks = known["reasoning_output"] if known else model.startswith(_THINKERS)
    return {name: value for name, value in params.items() if name != "stop"} if thinks else params


class ChatXAI(PresetChatModel):
    """xAI's chat models, with tools that run. Constructor names are those of langchain-xai's `ChatXAI`.

    Raises:
        ConfigurationError: An argument is unknown or cannot work; or, at the first request, there is no key.
    """

    model_name: str = Field(default="grok-4", alias="model")
    """The model's name."""

    preset: ClassVar[Preset] = Preset(
        dialect=Dialect(provider="xai"),
        base_url="https://api.x.ai/v1",
        environment=Environment(key=("XAI_API_KEY",), base_url=("XAI_API_BASE",)),
        arguments={"xai_api_key": "openai_api_key", "xai_api_base": "openai_api_base"},
        unsupported={
            **dict.fromkeys(("logit_bias", "store", "modalities", "audio", "verbosity"), _UNKNOWN),
            "search_parameters": "xAI has ended Live Search; its web_search tool belongs to the Responses API",
        },
        methods=("function_calling", "json_schema", "json_mode"),
        profiles=_PROFILES,
        request=_request,
    )
