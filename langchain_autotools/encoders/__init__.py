"""The events of a run as bytes, in the protocols of pages and programs: any ASGI response takes them."""

from .ai_sdk import AI_SDK_HEADERS, ai_sdk
from .ai_sdk_posted import from_ai_sdk
from .posted import Posted
from .server_sent_events import sse

__all__ = ["AI_SDK_HEADERS", "Posted", "ai_sdk", "from_ai_sdk", "sse"]
