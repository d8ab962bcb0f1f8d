"""The mapper of /api/chat: LangChain's messages and tools on one side, the wire's JSON on the other."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessageChunk, BaseMessage

from .._encode.json_text import request_body
from .decode import OllamaDecoder, decode_body
from .encode import ChatEncoder

__all__ = ["OllamaMapper"]


class OllamaMapper(ChatEncoder):
    """Encodes requests and decodes replies. Any number of threads and streams may use one mapper at once."""

    def encode_request(self, messages: Sequence[BaseMessage], params: Mapping[str, Any]) -> bytes:
        """Encode a request.

        Args:
            messages: The messages.
            params: Everything else, in the wire's names.

        Raises:
            ConfigurationError: A parameter is no JSON value.
            UnsupportedFeatureError: A message has content that the wire cannot carry.
        """
        return request_body(params, "messages", (encoded.body for encoded in self.encode_each(messages)))

    def decode_body(self, body: Mapping[str, Any]) -> AIMessageChunk:
        """A whole reply as one raw chunk.

        Raises:
            StreamError: The reply is not one of /api/chat.
            Exception: The reply holds an error; it is raised as the vendor's own.
        """
        return decode_body(body, origin=self.origin)

    def stream_decoder(self) -> OllamaDecoder:
        """A decoder for one stream."""
        return OllamaDecoder(origin=self.origin)
