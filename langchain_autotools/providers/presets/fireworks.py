"""`ChatFireworks`: the models that Fireworks serves, with tools that run.

Wire facts (wire quirks A-12, A-17, E-03): the id of a call is repeated on every fragment, or comes before its name; the usage of a
stream may come without choices.
"""

from typing import ClassVar

from .._base.parameters import Environment
from .._base.profiles import by_name, profile
from ..openai.dialect import Dialect
from ..openai.preset import Preset, PresetChatModel

_MODELS = "accounts/fireworks/models/"


class ChatFireworks(PresetChatModel):
    """The chat models that Fireworks serves, with tools that run. Constructor names are those of langchain-fireworks' `ChatFireworks`.

    Raises:
        ConfigurationError: An argument is unknown or cannot work; or, at the first request, there is no key.
    """

    preset: ClassVar[Preset] = Preset(
        dialect=Dialect(provider="fireworks"),
        base_url="https://api.fireworks.ai/inference/v1",
        environment=Environment(key=("FIREWORKS_API_KEY",), base_url=("FIREWORKS_API_BASE", "FIREWORKS_BASE_URL")),
        arguments={"fireworks_api_key": "openai_api_key", "fireworks_api_base": "openai_api_base"},
        renamed={"max_completion_tokens": "max_tokens"},
        methods=("function_calling", "json_schema", "json_mode"),
        profiles=by_name(
            {
                f"{_MODELS}gpt-oss-120b": profile(131_072, 32_768, reasoning=True),
                f"{_MODELS}deepseek-v4p1-flash": profile(1_000_000, 384_000, images=True, reasoning=True),
                f"{_MODELS}glm-5p3": profile(1_048_573, 262_144, reasoning=True),
                f"{_MODELS}kimi-k3": profile(1_048_576, 131_072, images=True, reasoning=True, temperature=False),
                f"{_MODELS}minimax-m3": profile(512_000, 512_000, reasoning=True),
            }
        ),
    )
