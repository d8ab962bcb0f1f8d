"""Conversion of LangChain messages to the JSON of chat completions requests."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from ...messages.growing import derive
from .._encode.calls import without_call
from .._encode.json_text import encode, request_body
from .calls import CallId
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
        return request_body(params, "messages", derive(messages, self, partial(_Bodies, self, self._dialect.bridge)).all())


class _Bodies:
    """A fold of the bodies of messages, with those that stand between a turn's results and the next message.

    Args:
        encoder: Encodes each message.
        bridge: The text of an assistant that some vendors need between results and a user.
    """

    __slots__ = ("_answered", "_bodies", "_bridge", "_encoder", "_media", "_waiting")

    def __init__(self, encoder: ChatCompletionsEncoder, bridge: str, bodies: Sequence[bytes] = (), media: Sequence[bytes] = ()) -> None:
        self._encoder, self._bridge = encoder, bridge
        self._bodies, self._media = [*bodies], [*media]
        self._answered = False
        self._waiting: tuple[CallId, ...] = ()

    def copy(self) -> "_Bodies":
        """Return an independent copy."""
        made = _Bodies(self._encoder, self._bridge, self._bodies, self._media)
        made._answered, made._waiting = self._answered, self._waiting
        return made

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""
        for message in messages:
            if isinstance(message, ToolMessage):
                encoded = self._encoder.remembered(message, self._waiting)
                self._waiting = without_call(message.tool_call_id, self._waiting)
                self._answered = True
            else:
                encoded = self._encoder.remembered(message)
                if self._answered or self._media:
                    self._bodies += self._between(message)
                self._waiting, self._media, self._answered = encoded.calls, [], False
            self._bodies.append(encoded.body)
            if encoded.media:
                self._media.append(encoded.media)

    def all(self) -> list[bytes]:
        """Return the bodies of a request that ends here."""
        return [*self._bodies, *self._between(None)]

    def _between(self, following: BaseMessage | None) -> list[bytes]:
        """Return the messages between a turn's results and the next message: media of the results, after text that some vendors need."""
        user = [user_message(self._media)] if self._media else []
        speaks = bool(user) or not (following is None or isinstance(following, AIMessage))
        return [encode({"role": "assistant", "content": self._bridge}), *user] if self._bridge and self._answered and speaks else user
