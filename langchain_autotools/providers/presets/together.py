"""`ChatTogether`: the models that Together serves, with tools that run."""

from typing import ClassVar

from .._base.parameters import Environment
from ..openai.dialect import Dialect
from ..openai.preset import Preset, PresetChatModel

_PARAMETERS = "chat_template_kwargs compliance context_length_exceeded_behavior echo min_p repetition_penalty safety_model top_k"


class ChatTogether(PresetChatModel):
    """The chat models that Together serves, with tools that run."""

    preset: ClassVar[Preset] = Preset(
        example="openai/gpt-oss-120b",
        dialect=Dialect(provider="together"),
        base_url="https://api.together.xyz/v1",
        environment=Environment(key=("TOGETHER_API_KEY",), base_url=("TOGETHER_API_BASE",)),
        arguments={"together_api_key": "openai_api_key", "together_api_base": "openai_api_base"},
        fields={"reasoning": "reasoning"},
        parameters=frozenset(_PARAMETERS.split()),
        renamed={"max_completion_tokens": "max_tokens"},
    )
