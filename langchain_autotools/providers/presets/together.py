"""`ChatTogether`: the models that Together serves, with tools that run."""

from typing import ClassVar

from .._base.parameters import Environment
from ..openai.dialect import Dialect
from ..openai.preset import Preset, PresetChatModel


class ChatTogether(PresetChatModel):
    """The chat models that Together serves, with tools that run. Constructor names are those of langchain-together's `ChatTogether`.

    Raises:
        ConfigurationError: An argument is unknown or cannot work; or, at the first request, there is no key.
    """

    preset: ClassVar[Preset] = Preset(
        dialect=Dialect(provider="together"),
        base_url="https://api.together.xyz/v1",
        environment=Environment(key=("TOGETHER_API_KEY",), base_url=("TOGETHER_API_BASE",)),
        arguments={"together_api_key": "openai_api_key", "together_api_base": "openai_api_base"},
        renamed={"max_completion_tokens": "max_tokens"},
    )
