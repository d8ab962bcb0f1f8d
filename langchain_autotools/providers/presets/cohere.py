"""`ChatCohere`: Cohere's models over its compatibility endpoint, with tools that run.

Wire facts (docs.cohere.com/docs/compatibility-api; wire quirks B-03, A-23): `max_tokens`, not `max_completion_tokens`. A tool choice forces
some tool or forbids all, it cannot name one. A tool's `strict` is refused (422). A call without arguments says `null`. Calls of one reply
may share an id.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from ...executor.names import own_name
from ...turn.tools import read_choice
from .._base.parameters import Environment
from ..openai.dialect import OPAQUE_KEYS, Dialect
from ..openai.preset import Preset, PresetChatModel

_UNKNOWN = "Cohere's compatibility endpoint does not know it"


def _cohere_request(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters in Cohere's form: no `strict`, only the tools that the choice names, and no choice of `auto`, the default."""
    tools, choice = params.get("tools"), params.get("tool_choice")
    if not tools:
        return params
    if isinstance(choice, Mapping):
        read = read_choice(choice)
        names = [own_name(choice)] if read.allowed is None else read.allowed
        tools, choice = [tool for tool in tools if own_name(tool) in names], "required" if read.forced else None
    kept = {key: value for key, value in params.items() if key != "tool_choice"}
    chosen = {"tool_choice": choice} if choice and choice != "auto" else {}
    return {**kept, "tools": [_without_strict(tool) for tool in tools], **chosen}


def _without_strict(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    function = tool.get("function")
    if not isinstance(function, Mapping):
        return tool
    return {**tool, "function": {key: value for key, value in function.items() if key != "strict"}}


class ChatCohere(PresetChatModel):
    """Cohere's chat models, with tools that run."""

    model_name: str = Field(default="command-a-03-2025", alias="model")
    """The model's name."""

    preset: ClassVar[Preset] = Preset(
        example="command-a-03-2025",
        dialect=Dialect(provider="cohere", refuses=frozenset(OPAQUE_KEYS)),
        base_url="https://api.cohere.ai/compatibility/v1",
        environment=Environment(key=("COHERE_API_KEY", "CO_API_KEY")),
        arguments={"cohere_api_key": "openai_api_key", "timeout_seconds": "request_timeout"},
        renamed={"max_completion_tokens": "max_tokens"},
        dropped_params=frozenset({"parallel_tool_calls"}),
        unsupported={
            **dict.fromkeys(("logit_bias", "top_logprobs", "store", "modalities", "audio", "service_tier", "verbosity"), _UNKNOWN),
            "preamble": "begin the messages with a SystemMessage",
            "user_agent": "give default_headers={'User-Agent': ...}",
        },
        profiles=Path(__file__).with_suffix(".csv"),
        request=_cohere_request,
    )
