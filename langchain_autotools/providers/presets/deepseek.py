"""`ChatDeepSeek`: DeepSeek's models, with tools that run.

Wire facts (api-docs.deepseek.com/guides/thinking_mode; wire quirk R-02): a model that thinks wants its `reasoning_content` back in every
assistant message with calls, and refuses the request where one has none (400); an empty one is taken where it did not think. There
is JSON output, but none that is held to a schema.
"""

from pathlib import Path
from typing import ClassVar

from .._base.parameters import Environment
from ..openai.dialect import Dialect
from ..openai.preset import Preset, PresetChatModel

_UNKNOWN = "DeepSeek's API does not know it"


class ChatDeepSeek(PresetChatModel):
    """DeepSeek's chat models, with tools that run."""

    preset: ClassVar[Preset] = Preset(
        example="deepseek-v4-flash",
        dialect=Dialect(provider="deepseek", demands=frozenset({"reasoning_content"})),
        base_url="https://api.deepseek.com/v1",
        environment=Environment(key=("DEEPSEEK_API_KEY",), base_url=("DEEPSEEK_API_BASE",)),
        llm_type="chat-deepseek",
        arguments={"deepseek_api_key": "openai_api_key", "api_base": "openai_api_base"},
        parameters=frozenset({"thinking", "user_id"}),
        renamed={"max_completion_tokens": "max_tokens"},
        unsupported=dict.fromkeys(("logit_bias", "store", "modalities", "audio", "service_tier", "verbosity"), _UNKNOWN),
        methods=("function_calling", "json_mode"),
        profiles=Path(__file__).with_suffix(".csv"),
    )
