"""Conversion of LangChain messages to the JSON of /api/chat requests."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from .._encode.json_text import request_body
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
        return request_body(params, "messages", (encoded.body for encoded in self.encode_each(messages)))
