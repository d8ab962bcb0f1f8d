"""Conversion of LangChain messages to the items of Responses API requests."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from ..._encode.calls import without_call
from ..._encode.json_text import request_body
from ..calls import CallId
from ..encode import user_message
from .encode import Encoded, ItemEncoder, without_answers

_logger = logging.getLogger("langchain_autotools")


class ResponsesMapper(ItemEncoder):
    """Encodes requests. Safe for use by any number of threads."""

    def encode_request(self, messages: Sequence[BaseMessage], params: Mapping[str, Any], *, after: int = 0) -> bytes:
        """Encode a request.

        Args:
            messages: The history.
            params: Everything else, in the wire's names.
            after: The number of messages that the server has stored (`previous_response_id`); they are not sent.

        Raises:
            ConfigurationError: A parameter is no JSON value.
            UnsupportedFeatureError: A message has content that the API cannot carry.
        """
        continued = after > 0 or any(params.get(name) for name in ("previous_response_id", "conversation", "prompt"))
        return request_body(params, "input", filter(None, self._bodies(messages, after, continued=continued)))

    def _bodies(self, messages: Sequence[BaseMessage], after: int, *, continued: bool) -> list[bytes]:
        bodies: list[bytes] = []
        media: list[bytes] = []
        used: set[str] = set()
        awaited: set[str] = set()
        waiting: tuple[CallId, ...] = ()
        for position, message in enumerate(messages):
            if media and not isinstance(message, ToolMessage):
                bodies.append(user_message(media))
                media = []
            if isinstance(message, AIMessage):
                encoded = self._reply(message, used, messages, position)
                used |= encoded.call_ids
                awaited.update(*encoded.awaits)
                waiting = encoded.calls
            else:
                encoded = self._remembered(message, waiting)
                if not continued and not encoded.answers <= awaited:
                    rest = without_answers(message, encoded.answers - awaited)
                    encoded = self.encode(rest, waiting) if rest.content else Encoded(b"")
                if isinstance(message, ToolMessage):
                    waiting = without_call(message.tool_call_id, waiting)
            if position >= after:
                bodies.append(encoded.body)
                if encoded.media:
                    media.append(encoded.media)
        return [*bodies, user_message(media)] if media else bodies

    def _reply(self, message: AIMessage, used: set[str], messages: Sequence[BaseMessage], position: int) -> Encoded:
        """Encode a reply with ids that no earlier call has, without unanswered calls of the vendor's tools."""
        encoded = self._reply_as(message, frozenset(), plain=False)
        taken = frozenset(used & encoded.call_ids)
        if taken:
            encoded = self._reply_as(message, frozenset(used), plain=False)
        answered = self._answered(messages, position + 1) if encoded.awaits else frozenset()
        if not all(names & answered for names in encoded.awaits):
            _logger.warning("calls of the vendor's tools are not sent, because no message answers them: %s", _listed(encoded.awaits))
            encoded = self._reply_as(message, frozenset(used) if taken else taken, plain=True)
        return encoded

    def _reply_as(self, message: AIMessage, taken: frozenset[str], *, plain: bool) -> Encoded:
        context = (taken, plain)
        encoded = self._memo.get(message, context)
        return encoded or self._put(message, context, self._assistant(message, taken, plain=plain))

    def _answered(self, messages: Sequence[BaseMessage], start: int) -> frozenset[str]:
        """Return the calls of the vendor's tools that messages from `start` on answer."""
        others = (message for message in messages[start:] if not isinstance(message, AIMessage | ToolMessage))
        return frozenset(name for message in others for name in self.encode(message).answers)


def _listed(awaits: Sequence[frozenset[str]]) -> str:
    return ", ".join(min(names) for names in awaits)
