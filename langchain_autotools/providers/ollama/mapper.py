"""Conversion of LangChain messages to the JSON of /api/chat requests."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage

from ...messages.growing import derive
from .._encode.calls import without_call
from .._encode.json_text import request_body
from .calls import CallId
from .encode import ChatEncoder


class OllamaMapper(ChatEncoder):
    """Encodes requests. Safe for use by any number of threads."""

    def encode_request(self, messages: Sequence[BaseMessage], params: Mapping[str, Any]) -> bytes:
        """Encode a request.

        Args:
            messages: The messages.
            params: Everything else, in the wire's names.

        Raises:
            ConfigurationError: A parameter is no JSON value.
            UnsupportedFeatureError: A message has content that the wire cannot carry.
        """
        return request_body(params, "messages", derive(messages, self, partial(_Bodies, self)).bodies)


class _Bodies:
    """A fold of the bodies of messages.

    Args:
        encoder: Encodes each message.
    """

    __slots__ = ("_encoder", "_waiting", "bodies")

    def __init__(self, encoder: ChatEncoder, bodies: Sequence[bytes] = (), waiting: tuple[CallId, ...] = ()) -> None:
        self._encoder = encoder
        self.bodies = [*bodies]
        self._waiting = waiting

    def copy(self) -> "_Bodies":
        """Return an independent copy."""
        return _Bodies(self._encoder, self.bodies, self._waiting)

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""
        for message in messages:
            if isinstance(message, ToolMessage):
                encoded = self._encoder.remembered(message, self._waiting)
                self._waiting = without_call(message.tool_call_id, self._waiting)
            else:
                encoded = self._encoder.remembered(message)
                self._waiting = encoded.calls
            self.bodies.append(encoded.body)
