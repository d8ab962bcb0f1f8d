"""`ChatXAI`: xAI's Grok models, with tools that run.

Wire facts (docs.x.ai): reasoning arrives as `reasoning_content`; models that reason refuse stop sequences.
"""

from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from .._base.chat_model import read_profiles
from .._base.parameters import Environment
from ..openai.dialect import Dialect
from ..openai.preset import Preset, PresetChatModel

_UNKNOWN = "xAI's API does not know it"
_THINKERS = ("grok-3", "grok-4", "grok-code-fast")
_PROFILES = Path(__file__).with_suffix(".csv")


def _xai_request(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters without stop sequences for models known to reject them."""
    model = str(params["model"]).lower()
    known = read_profiles(_PROFILES).get(model)
    thinks = known["reasoning_output"] if known else model.startswith(_THINKERS)
    return {name: value for name, value in params.items() if name != "stop"} if thinks else params


class ChatXAI(PresetChatModel):
    """xAI's chat models, with tools that run."""

    model_name: str = Field(default="grok-4", alias="model")
    """The model's name."""

    preset: ClassVar[Preset] = Preset(
        example="grok-4",
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
        request=_xai_request,
    )
