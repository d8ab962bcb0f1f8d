"""`ChatOpenRouter`: the models that OpenRouter routes to, with tools that run.

Wire facts (openrouter.ai/docs; wire quirks R-04, E-08, E-09, E-11): reasoning arrives as `reasoning` and, structured, as
`reasoning_details`, which the model behind wants back unchanged with its calls; errors may be inside a stream or a choice.
"""

from dataclasses import replace
from typing import Any, ClassVar

from langchain_core.utils import from_env
from pydantic import Field

from .._base.parameters import Environment
from .._encode.sources import Block, Source
from ..openai.dialect import Dialect
from ..openai.parameters import ClientSettings
from ..openai.preset import Preset, PresetChatModel

_PARAMETERS = (
    "cache_control debug deferred_tools image_config min_p models provider repetition_penalty stop_server_tools_when top_a "
    "top_k transforms usage"
)

_SOUNDS = {
    **{f"audio/{name}": name for name in ("aac", "aiff", "flac", "ogg")},
    **{"audio/x-aiff": "aiff", "audio/x-flac": "flac", "audio/mp4": "m4a", "audio/x-m4a": "m4a"},
}


def _openrouter_media(block: Block, source: Source) -> dict[str, Any] | None:
    """Return a video, a PDF by its address, or sound in a format that OpenAI has not (openrouter.ai/docs, "Multimodal")."""
    if source.kind == "video" and (source.url or source.data):
        return {"type": "video_url", "video_url": {"url": source.url or f"data:{source.essence};base64,{source.data}"}}
    if source.kind == "audio" and source.data and source.essence in _SOUNDS:
        return {"type": "input_audio", "input_audio": {"data": source.data, "format": _SOUNDS[source.essence]}}
    if source.kind == "pdf" and source.url:
        return {"type": "file", "file": {"filename": source.name or "file.pdf", "file_data": source.url}}
    return None


class ChatOpenRouter(PresetChatModel):
    """The chat models behind OpenRouter, with tools that run."""

    reasoning: dict[str, Any] | None = None
    """Reasoning options, `{"effort": "low"}`."""
    openrouter_provider: dict[str, Any] | None = None
    """Routing preferences for providers, `{"order": ["anthropic"]}`."""
    route: str | None = None
    """Routing when a model fails, `fallback`."""
    plugins: list[dict[str, Any]] | None = None
    """OpenRouter's plugins, `[{"id": "web"}]`."""
    session_id: str | None = Field(default_factory=from_env("OPENROUTER_SESSION_ID", default=None))
    """Session id that groups requests in OpenRouter's records. Environment: `OPENROUTER_SESSION_ID`."""
    trace: dict[str, Any] | None = None
    """Metadata for observability tools, `{"trace_id": ...}`."""
    app_url: str | None = Field(default_factory=from_env("OPENROUTER_APP_URL", default=None))
    """URL of your application, for OpenRouter's rankings. Environment: `OPENROUTER_APP_URL`."""
    app_title: str | None = Field(default_factory=from_env("OPENROUTER_APP_TITLE", default=None))
    """Title of your application. Environment: `OPENROUTER_APP_TITLE`."""
    app_categories: list[str] | None = None
    """Categories of your application, `["cli-agent"]`."""

    preset: ClassVar[Preset] = Preset(
        example="openrouter/auto",
        dialect=Dialect(provider="openrouter", reasoning="reasoning", media=_openrouter_media),
        base_url="https://openrouter.ai/api/v1",
        environment=Environment(key=("OPENROUTER_API_KEY",), base_url=("OPENROUTER_API_BASE",)),
        arguments={"openrouter_api_key": "openai_api_key", "openrouter_api_base": "openai_api_base"},
        fields={name: name for name in ("reasoning", "route", "plugins", "session_id", "trace")} | {"openrouter_provider": "provider"},
        parameters=frozenset(_PARAMETERS.split()),
        renamed={"max_completion_tokens": "max_tokens"},
        methods=("function_calling", "json_schema", "json_mode"),
    )

    def _client_settings(self) -> ClientSettings:
        settings = super()._client_settings()
        categories = ",".join(self.app_categories or ())
        about = {"HTTP-Referer": self.app_url, "X-Title": self.app_title, "X-OpenRouter-Categories": categories}
        given = {name.lower() for name, _ in settings.headers}
        own = [(name, value) for name, value in about.items() if value and name.lower() not in given]
        return replace(settings, headers=(*own, *settings.headers))
