"""Conversion of LangChain messages to the JSON of chat completions requests."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from .._encode.json_text import encode, request_body
from .encode import ChatCompletionsEncoder, user_message


class ChatCompletionsMapper(ChatCompletionsEncoder):
    """Encodes requests. Safe for use by any number of threads."""

    def encode_request(self, messages: Sequence[BaseMessage], params: Mapping[str, Any]) -> bytes:
        """Encode a request.

        Args:
            messages: The messages.
            params: Everything else, in the wire's names.

        Raises:
            ConfigurationError: A parameter is no JSON value.
            UnsupportedFeatureError: A message has content that chat completions cannot carry.
        """
        return request_body(params, "messages", self._bodies(messages))

    def _bodies(self, messages: Sequence[BaseMessage]) -> list[bytes]:
        bodies: list[bytes] = []
        media: list[bytes] = []
        answered = False
        for message, encoded in zip(messages, self.encode_each(messages), strict=True):
            result = isinstance(message, ToolMessage)
            if (answered or media) and not result:
                bodies += self._between(answered, media, message)
                media = []
            bodies.append(encoded.body)
            if encoded.media:
                media.append(encoded.media)
            answered = result
        return [*bodies, *self._between(answered, media, None)]

    def _between(self, answered: bool, media: Sequence[bytes], following: BaseMessage | None) -> list[bytes]:
        """Return the messages between a turn's results and the next message: media of the results, after text that some vendors need."""
        user = [user_message(media)] if media else []
        speaks = bool(media) or not (following is None or isinstance(following, AIMessage))
        bridge = self._dialect.bridge
        return [encode({"role": "assistant", "content": bridge}), *user] if bridge and answered and speaks else user
