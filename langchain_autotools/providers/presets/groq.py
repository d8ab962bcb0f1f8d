"""`ChatGroq`: the models that Groq serves, with tools that run.

Wire facts (console.groq.com/docs/openai, groq's types; wire quirks T-07, E-12, R-01, R-03): `logprobs`, `logit_bias`, `top_logprobs`
and a message's `name` are refused (400). JSON output is neither streamed nor combined with tools. Reasoning arrives as `reasoning`, and
models that have it take it back under this name alone. A call that does not fit its tool's schema is refused as `tool_use_failed` (400),
with what the model wrote.
"""

from pathlib import Path
from typing import Any, ClassVar

from ...errors import ConfigurationError
from .._base.parameters import Environment
from ..openai.dialect import OPAQUE_KEYS, Dialect
from ..openai.preset import Preset, PresetChatModel

_PARAMETERS = (
    "citation_options compound_custom disable_tool_validation documents exclude_domains include_domains include_reasoning search_settings"
)

_UNKNOWN = "Groq refuses it"


def _groq_request(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters for JSON output, which is not streamed and not combined with tools."""
    if (params.get("response_format") or {}).get("type") not in ("json_object", "json_schema"):
        return params
    if params.get("tools"):
        raise ConfigurationError(
            "Groq gives JSON output only where no tools are declared: leave response_format out, or use method='function_calling'"
        )
    return {name: value for name, value in params.items() if name not in ("stream", "stream_options")}


class ChatGroq(PresetChatModel):
    """The chat models that Groq serves, with tools that run."""

    reasoning_format: str | None = None
    """Form of reasoning: `parsed` (separate), `raw` (in the text), `hidden`."""

    preset: ClassVar[Preset] = Preset(
        example="openai/gpt-oss-120b",
        dialect=Dialect(
            provider="groq",
            reasoning="reasoning",
            refuses=frozenset(OPAQUE_KEYS) - {"reasoning_content"},
            names=False,
            developer=True,
            parts={"document": ("document",)},
        ),
        base_url="https://api.groq.com/openai/v1",
        environment=Environment(key=("GROQ_API_KEY",), base_url=("GROQ_API_BASE",), proxy=("GROQ_PROXY",)),
        arguments={"groq_api_key": "openai_api_key", "groq_api_base": "openai_api_base", "groq_proxy": "openai_proxy"},
        fields={"reasoning_format": "reasoning_format"},
        parameters=frozenset(_PARAMETERS.split()),
        unsupported=dict.fromkeys(("logit_bias", "logprobs", "top_logprobs", "modalities", "audio", "store", "verbosity"), _UNKNOWN),
        methods=("function_calling", "json_schema", "json_mode"),
        profiles=Path(__file__).with_suffix(".csv"),
        request=_groq_request,
    )
