"""`ChatMistralAI`: Mistral's models, with tools that run.

Wire facts (docs.mistral.ai/api; wire quirks H-05, H-09, E-07, R-03): ids of calls are nine letters and digits. Requests with fields that it
does not know are refused (422), `stream_options` and a message's `name` among them. A user may not speak directly after a tool, and a
system message is at the start only. The content of a reply may be a list of text and thinking, and goes back as one.
"""

from pathlib import Path
from typing import Any, ClassVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import Field

from ...history import merge_runs
from .._base.parameters import Environment
from .._encode.sources import PDF, Block, Source, extra
from ..openai.dialect import OPAQUE_KEYS, Dialect, IdShape
from ..openai.preset import Preset, PresetChatModel

_PARAMETERS = "guardrails min_tokens prompt_logprobs prompt_mode repetition_penalty safe_prompt top_k top_prompt_logprobs"

_UNKNOWN = "Mistral's API does not know it"
_PARTS = {
    "document_url": ("document_url", "document_name"),
    "file": ("file_id",),
    "reference": ("reference_ids",),
    "resource": ("uri", "content"),
    "resource_link": ("uri", "metadata"),
    "thinking": ("thinking", "signature", "closed"),
}


def _mistral_media(block: Block, source: Source) -> dict[str, Any] | None:
    """Return sound as base64 alone, and a document by its address or as a data URL (docs.mistral.ai, "Audio", "Document AI")."""
    if source.kind == "audio" and source.data is not None:
        return {"type": "input_audio", "input_audio": source.data}
    if source.kind == "pdf" and (source.url or source.data):
        name = source.name or extra(block, "title")
        url = source.url or f"data:{PDF};base64,{source.data}"
        return {"type": "document_url", "document_url": url, **({"document_name": name} if name else {})}
    return None


def _adapt_messages(messages: list[BaseMessage]) -> list[BaseMessage]:
    """Return messages with system messages only at the start, neighbours of one role merged, and a final reply marked as a prefix."""
    start = next((position for position, message in enumerate(messages) if not isinstance(message, SystemMessage)), len(messages))
    later = [HumanMessage(one.content, id=one.id) if isinstance(one, SystemMessage) else one for one in messages[start:]]
    merged = merge_runs([*messages[:start], *later])
    last = merged[-1] if merged else None
    if isinstance(last, AIMessage) and not (last.tool_calls or last.invalid_tool_calls or last.additional_kwargs.get("prefix")):
        merged[-1] = last.model_copy(update={"additional_kwargs": {**last.additional_kwargs, "prefix": True}})
    return merged


class ChatMistralAI(PresetChatModel):
    """Mistral's chat models, with tools that run."""

    model_name: str = Field(default="mistral-small-latest", alias="model")
    """The model's name."""
    safe_mode: bool | None = None
    """Whether the vendor adds its safety prompt before the conversation."""

    preset: ClassVar[Preset] = Preset(
        example="mistral-small-latest",
        dialect=Dialect(
            provider="mistralai",
            reasoning="thinking_part",
            ids=IdShape(legal="[a-zA-Z0-9]{9}", prefix="", digits=9, always=True),
            refuses=frozenset(OPAQUE_KEYS),
            names=False,
            bridge="OK.",
            assistant_keys=("prefix",),
            parts=_PARTS,
            media=_mistral_media,
        ),
        base_url="https://api.mistral.ai/v1",
        environment=Environment(key=("MISTRAL_API_KEY",), base_url=("MISTRAL_BASE_URL",)),
        ls_provider="mistral",
        llm_type="mistralai-chat",
        arguments={"mistral_api_key": "openai_api_key", "endpoint": "openai_api_base", "random_seed": "seed"},
        fields={"safe_mode": "safe_prompt"},
        parameters=frozenset(_PARAMETERS.split()),
        renamed={"max_completion_tokens": "max_tokens", "seed": "random_seed"},
        dropped_params=frozenset({"stream_options"}),
        unsupported={
            **dict.fromkeys(("logit_bias", "store", "modalities", "audio", "verbosity"), _UNKNOWN),
            "max_concurrent_requests": "give config={'max_concurrency': ...} to batch and abatch",
        },
        methods=("function_calling", "json_schema", "json_mode"),
        stream_usage=False,  # it tells them without being asked, and refuses the question
        profiles=Path(__file__).with_suffix(".csv"),
        request=lambda params: {**params, "tool_choice": "any"} if params.get("tool_choice") == "required" else params,
        adapt_messages=_adapt_messages,
    )
