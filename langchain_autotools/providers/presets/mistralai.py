"""`ChatMistralAI`: Mistral's models, with tools that run.

Wire facts (docs.mistral.ai/api; wire quirks H-05, H-09, E-07, R-03): ids of calls are nine letters and digits; requests with fields
that it does not know are refused (422), `stream_options` and a message's `name` among them; a user may not speak directly after a
tool, and a system message stands at the start only; the content of a reply may be a list of text and thinking, and goes back as one.
"""

from typing import Any, ClassVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import Field

from ...history.merging import merge_runs
from .._base.parameters import Environment
from .._base.profiles import by_name, profile
from ..openai.dialect import OPAQUE_KEYS, Dialect, IdShape
from ..openai.preset import Preset, PresetChatModel

_UNKNOWN = "Mistral's API does not know it"


def _adapt_messages(messages: list[BaseMessage]) -> list[BaseMessage]:
    """System messages at the start only (later ones are said by the user), neighbours of one role joined, a last reply to be continued."""
    start = next((position for position, message in enumerate(messages) if not isinstance(message, SystemMessage)), len(messages))
    later = [_as_user(message) if isinstance(message, SystemMessage) else message for message in messages[start:]]
    taken = merge_runs([*messages[:start], *later])
    last = taken[-1] if taken else None
    if isinstance(last, AIMessage) and not (last.tool_calls or last.invalid_tool_calls or last.additional_kwargs.get("prefix")):
        taken[-1] = last.model_copy(update={"additional_kwargs": {**last.additional_kwargs, "prefix": True}})
    return taken


def _as_user(message: BaseMessage) -> HumanMessage:
    return HumanMessage(content=message.content, id=message.id)


def _request(params: dict[str, Any]) -> dict[str, Any]:
    """Mistral's word for a forced choice of any tool."""
    return {**params, "tool_choice": "any"} if params.get("tool_choice") == "required" else params


class ChatMistralAI(PresetChatModel):
    """Mistral's chat models, with tools that run. Constructor names are those of langchain-mistralai's `ChatMistralAI`.

    Raises:
        ConfigurationError: An argument is unknown or cannot work; or, at the first request, there is no key.
    """

    model_name: str = Field(default="mistral-small-latest", alias="model")
    """The model's name."""
    safe_mode: bool | None = None
    """Whether the vendor puts its safety prompt before the conversation."""

    preset: ClassVar[Preset] = Preset(
        dialect=Dialect(
            provider="mistralai",
            reasoning="thinking_part",
            ids=IdShape(legal="[a-zA-Z0-9]{9}", prefix="", digits=9, always=True),
            refuses=frozenset(OPAQUE_KEYS),
            names=False,
            bridge="OK.",
            assistant_keys=("prefix",),
        ),
        base_url="https://api.mistral.ai/v1",
        environment=Environment(key=("MISTRAL_API_KEY",), base_url=("MISTRAL_BASE_URL",)),
        ls_provider="mistral",
        llm_type="mistralai-chat",
        arguments={"mistral_api_key": "openai_api_key", "endpoint": "openai_api_base", "random_seed": "seed"},
        fields={"safe_mode": "safe_prompt"},
        renamed={"max_completion_tokens": "max_tokens", "seed": "random_seed"},
        dropped_params=frozenset({"stream_options"}),
        unsupported={
            **dict.fromkeys(
                ("logit_bias", "logprobs", "top_logprobs", "store", "modalities", "audio", "service_tier", "verbosity"), _UNKNOWN
            ),
            "max_concurrent_requests": "give config={'max_concurrency': ...} to batch and abatch",
        },
        methods=("function_calling", "json_schema", "json_mode"),
        stream_usage=False,  # it tells them without being asked, and refuses the question
        profiles=by_name(
            {
                "mistral-large-latest mistral-large-2512 mistral-medium-2508": profile(262_144, 262_144, images=True),
                "mistral-medium-latest mistral-medium-2604": profile(262_144, 262_144, images=True, reasoning=True),
                "mistral-small-latest mistral-small-2603": profile(256_000, 256_000, images=True, reasoning=True),
                "mistral-small-2506": profile(128_000, 16_384, images=True),
                "magistral-medium-latest": profile(128_000, 16_384, reasoning=True),
                "magistral-small": profile(128_000, 128_000, reasoning=True),
                "devstral-latest devstral-2512 devstral-medium-latest": profile(262_144, 262_144),
                "codestral-latest": profile(256_000, 4_096),
                "ministral-3b-latest ministral-8b-latest mistral-nemo open-mistral-nemo": profile(128_000, 128_000),
            }
        ),
        request=_request,
        adapt_messages=_adapt_messages,
    )
