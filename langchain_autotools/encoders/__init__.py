"""The events of a run as bytes, in the protocols of pages and programs: any ASGI response takes them."""

from .posted import Posted
from .server_sent_events import sse

__all__ = ["Posted", "sse"]
