"""Encoders of a run's events as bytes, in protocols of web pages or programs, for any ASGI response."""

from .ag_ui import ag_ui
from .ag_ui_messages import from_ag_ui
from .ai_sdk import AI_SDK_HEADERS, ai_sdk
from .ai_sdk_messages import ai_sdk_messages, from_ai_sdk
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
    "ai_sdk_messages",
    "encoded",
    "from_ag_ui",
    "from_ai_sdk",
    "sse",
]
