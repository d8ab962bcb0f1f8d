"""The mapper of chat completions: LangChain's messages and tools on one side, the wire's JSON on the other."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage

from .._encode.json_text import encode, request_body
from .decode import ChatCompletionsDecoder, decode_body
from .encode import ChatCompletionsEncoder, user_message

__all__ = ["ChatCompletionsMapper"]


class ChatCompletionsMapper(ChatCompletionsEncoder):
    """Encodes requests and decodes replies. Any number of threads and streams may use one mapper at once."""

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
        """What stands between a turn's results and the next message: media of the results, after words that some vendors want."""
        user = [user_message(media)] if media else []
        speaks = bool(media) or not (following is None or isinstance(following, AIMessage))
        bridge = self._dialect.bridge
        return [encode({"role": "assistant", "content": bridge}), *user] if bridge and answered and speaks else user

    # ------------------------------------------------------------------------------------------ replies

    def decode_body(self, body: Mapping[str, Any], *, choices: int = 1, taken: Collection[str | None] = frozenset()) -> AIMessageChunk:
        """A whole reply as one raw chunk.

        Args:
            body: The reply's JSON.
            choices: How many alternatives were asked for (`n`). Of several the first is read; where one was asked for, a
                reply that is spread over several choices is put together.
            taken: Ids that messages of the history have: the reply gets none of them.

        Raises:
            StreamError: The reply is not one of chat completions.
            Exception: The reply holds an error; it is raised as the vendor's own.
        """
        return decode_body(body, self.stream_decoder(choices=choices, taken=taken))

    def stream_decoder(self, *, choices: int = 1, taken: Collection[str | None] = frozenset()) -> ChatCompletionsDecoder:
        """A decoder for one stream; arguments as of `decode_body`."""
        return ChatCompletionsDecoder(origin=self.origin, dialect=self._dialect, choices=choices, taken=taken)
