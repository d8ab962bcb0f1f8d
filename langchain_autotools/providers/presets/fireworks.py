"""`ChatFireworks`: the models that Fireworks serves, with tools that run.

Wire facts (wire quirks A-12, A-17, E-03): the id of a call is repeated on every fragment, or comes before its name; the usage of a
stream may come without choices.
"""

from pathlib import Path
from typing import ClassVar

from .._base.parameters import Environment
from ..openai.dialect import Dialect
from ..openai.preset import Preset, PresetChatModel

_PARAMETERS = (
    "context_length_exceeded_behavior echo echo_last ignore_eos min_p mirostat_lr mirostat_target perf_metrics_in_response "
    "prompt_cache_isolation_key prompt_truncate_len raw_output reasoning_history repetition_penalty return_token_ids "
    "safe_tokenization speculation thinking top_k typical_p"
)

_MODELS = "accounts/fireworks/models/"


class ChatFireworks(PresetChatModel):
    """The chat models that Fireworks serves, with tools that run."""

    preset: ClassVar[Preset] = Preset(
        example="accounts/fireworks/models/gpt-oss-120b",
        dialect=Dialect(provider="fireworks"),
        base_url="https://api.fireworks.ai/inference/v1",
        environment=Environment(key=("FIREWORKS_API_KEY",), base_url=("FIREWORKS_API_BASE", "FIREWORKS_BASE_URL")),
        arguments={"fireworks_api_key": "openai_api_key", "fireworks_api_base": "openai_api_base"},
        parameters=frozenset(_PARAMETERS.split()),
        renamed={"max_completion_tokens": "max_tokens"},
        methods=("function_calling", "json_schema", "json_mode"),
        profiles=Path(__file__).with_suffix(".csv"),
    )
