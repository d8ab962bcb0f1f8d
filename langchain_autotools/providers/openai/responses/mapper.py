"""Conversion of LangChain messages to the items of Responses API requests."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from ....messages.growing import derive
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
        items = derive(messages, (self, after, continued), partial(_Items, self, after, continued))
        if items.looks_ahead:
            items = _Items(self, after, continued, messages)
            items.read(messages)
        return request_body(params, "input", filter(None, items.all()))

    def reply_as(self, message: AIMessage, taken: frozenset[str], *, plain: bool) -> Encoded:
        """Encode a reply, as of `ItemEncoder`; the same object as before if it has not changed."""
        context = (taken, plain)
        encoded = self._memo.get(message, context)
        return encoded or self._put(message, context, self._assistant(message, taken, plain=plain))


class _Items:
    """A fold of the input items of messages.

    Args:
        mapper: Encodes each message.
        after: The number of messages that the server has stored.
        continued: Whether the request continues a conversation that the server has stored.
        messages: All messages, where a reply calls tools of the vendor's that only a later message may answer.

    Attributes:
        looks_ahead: Whether a reply does, but the messages are not known: what was read is of no use.
    """

    __slots__ = (
        *("_after", "_awaited", "_bodies", "_continued", "_count", "_mapper", "_media", "_messages", "_used", "_waiting"),
        "looks_ahead",
    )

    def __init__(self, mapper: ResponsesMapper, after: int, continued: bool, messages: Sequence[BaseMessage] | None = None) -> None:
        self._mapper, self._after, self._continued, self._messages = mapper, after, continued, messages
        self.looks_ahead = False
        self._bodies: list[bytes] = []
        self._media: list[bytes] = []
        self._used: set[str] = set()
        self._awaited: set[str] = set()
        self._waiting: tuple[CallId, ...] = ()
        self._count = 0

    def copy(self) -> "_Items":
        """Return an independent copy."""
        made = _Items(self._mapper, self._after, self._continued)
        made.looks_ahead, made._waiting, made._count = self.looks_ahead, self._waiting, self._count
        made._bodies, made._media, made._used, made._awaited = [*self._bodies], [*self._media], {*self._used}, {*self._awaited}
        return made

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""
        for message in messages:
            if self._media and not isinstance(message, ToolMessage):
                self._bodies.append(user_message(self._media))
                self._media = []
            if isinstance(message, AIMessage):
                encoded = self._reply(message)
                self._used |= encoded.call_ids
                self._awaited.update(*encoded.awaits)
                self._waiting = encoded.calls
            else:
                encoded = self._other(message)
                if isinstance(message, ToolMessage):
                    self._waiting = without_call(message.tool_call_id, self._waiting)
            if self._count >= self._after:
                self._bodies.append(encoded.body)
                self._media += [encoded.media] if encoded.media else []
            self._count += 1

    def all(self) -> list[bytes]:
        """Return the items of a request that ends here."""
        return [*self._bodies, user_message(self._media)] if self._media else self._bodies

    def _other(self, message: BaseMessage) -> Encoded:
        """Encode a message that is no reply, without answers to calls that are not sent."""
        encoded = self._mapper.remembered(message, self._waiting)
        if self._continued or encoded.answers <= self._awaited:
            return encoded
        rest = without_answers(message, encoded.answers - self._awaited)
        return self._mapper.encode(rest, self._waiting) if rest.content else Encoded(b"")

    def _reply(self, message: AIMessage) -> Encoded:
        """Encode a reply with ids that no earlier call has, without unanswered calls of the vendor's tools."""
        encoded = self._mapper.reply_as(message, frozenset(), plain=False)
        taken = frozenset(self._used & encoded.call_ids)
        if taken:
            encoded = self._mapper.reply_as(message, frozenset(self._used), plain=False)
        if not encoded.awaits or self._messages is None:
            self.looks_ahead = self.looks_ahead or bool(encoded.awaits)
            return encoded
        answered = self._answered(self._messages)
        if not all(names & answered for names in encoded.awaits):
            _logger.warning("calls of the vendor's tools are not sent, because no message answers them: %s", _listed(encoded.awaits))
            encoded = self._mapper.reply_as(message, frozenset(self._used) if taken else taken, plain=True)
        return encoded

    def _answered(self, messages: Sequence[BaseMessage]) -> frozenset[str]:
        """Return the calls of the vendor's tools that later messages answer."""
        others = (message for message in messages[self._count + 1 :] if not isinstance(message, AIMessage | ToolMessage))
        return frozenset(name for message in others for name in self._mapper.encode(message).answers)


def _listed(awaits: Sequence[frozenset[str]]) -> str:
    return ", ".join(min(names) for names in awaits)
