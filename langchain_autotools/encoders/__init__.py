"""Encoders of a run's events as bytes, in protocols of web pages and programs, for any ASGI response."""

from .ag_ui_bytes import ag_ui
from .ag_ui_posted import from_ag_ui
from .ai_sdk import AI_SDK_HEADERS, ai_sdk
from .ai_sdk_posted import from_ai_sdk
from .posted import Posted
from .server_sent_events import SSE_HEADERS, sse
from .streaming import Encoder, Failure, encoded

__all__ = [
    "AI_SDK_HEADERS",
    "SSE_HEADERS",
    "Encoder",
    "Failure",
    "Posted",
    "ag_ui",
    "ai_sdk",
    "encoded",
    "from_ag_ui",
    "from_ai_sdk",
    "sse",
]
