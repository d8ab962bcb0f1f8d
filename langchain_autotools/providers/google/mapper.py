"""Conversion of LangChain messages to the JSON of generateContent requests."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from ...messages.growing import derive
from ...messages.metadata import own_metadata
from .._encode.calls import without_call
from .._encode.json_text import encode, request_body
from .._encode.system import as_user_text
from .blocks import text_part
from .calls import CallId
from .encode import ContentEncoder, Encoded

_OPENING = encode({"role": "user", "parts": [text_part("(The conversation begins with the model.)")]}) + b","


class GenerateContentMapper(ContentEncoder):
    """Encodes requests. Safe for use by any number of threads.

    The arguments are those of `ContentEncoder`.
    """

    def encode_request(self, messages: Sequence[BaseMessage], params: Mapping[str, Any]) -> bytes:
        """Encode a request.

        Args:
            messages: The messages. System messages at the start become the request's `systemInstruction`.
            params: Everything else, in the wire's names.

        Raises:
            ConfigurationError: A parameter is no JSON value.
            UnsupportedFeatureError: A message has content that the wire cannot carry.
        """
        messages, token = _continued(messages, self.origin)
        if token:
            params = {**params, "continuationToken": token}
        contents = derive(messages, self, partial(_Contents, self))
        head = {key: value for key, value in params.items() if not (key == "systemInstruction" and contents.system)}
        before = b'"systemInstruction":{"parts":[%s]},' % b",".join(contents.system) if contents.system else b""
        return request_body(head, "contents", contents.all(), before)


class _Contents:
    """A fold of Contents: neighbours of one role are merged, with a turn's responses before other parts.

    Args:
        encoder: Encodes each message.

    Attributes:
        system: The parts of the system messages that the history begins with.
    """

    __slots__ = ("_begun", "_encoder", "_late", "_open", "_pieces", "_waiting", "system")

    def __init__(self, encoder: ContentEncoder) -> None:
        self._encoder = encoder
        self.system: list[bytes] = []
        self._pieces: list[bytes] = []  # of the JSON of the Contents, the last of them open
        self._open: tuple[str, bool] | None = None  # its role, and whether it holds responses
        self._late: list[bytes] = []  # media of results, which may not come between the responses
        self._waiting: tuple[CallId, ...] = ()
        self._begun = False

    def copy(self) -> "_Contents":
        """Return an independent copy."""
        made = _Contents(self._encoder)
        made.system, made._pieces, made._late = [*self.system], [*self._pieces], [*self._late]
        made._open, made._waiting, made._begun = self._open, self._waiting, self._begun
        return made

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""
        for message in messages:
            if isinstance(message, ToolMessage):
                encoded = self._encoder.remembered(message, self._waiting)
                self._waiting = without_call(message.tool_call_id, self._waiting)
            else:
                encoded = self._encoder.remembered(message)
                self._waiting = encoded.calls
            self._begun = self._begun or encoded.role != "system"
            if not self._begun:
                self.system += encoded.parts
            elif encoded.responses:
                self._add("user", True, encoded.responses)
                self._late += encoded.parts
            elif encoded.parts:
                self._add("user", False, self._late)
                self._late = []
                placed = _later_system(encoded) if encoded.role == "system" else encoded
                self._add(placed.role, False, placed.parts)

    def all(self) -> list[bytes]:
        """Return the Contents of a request that ends here, as JSON."""
        if not self._late:
            return [b"".join((*self._pieces, b"]}"))] if self._pieces else []
        ended = self.copy()
        ended._late = []
        ended._add("user", False, self._late)
        return ended.all()

    def _add(self, role: str, responses: bool, parts: Sequence[bytes]) -> None:
        """Append the parts to the last Content if they may join it, else as a new one."""
        if not parts:
            return
        start = b'{"role":"%s","parts":[' % role.encode()
        if self._open == (role, responses):
            start = b","
        elif self._open is not None:
            start = b"]}," + start
        elif role == "model":
            start = _OPENING + start
        for part in parts:
            self._pieces += (start, part)
            start = b","
        self._open = role, responses


def _continued(messages: Sequence[BaseMessage], origin: str) -> tuple[Sequence[BaseMessage], str | None]:
    """Return the messages without a final unfinished reply, and the token with which the server continues it.

    The request that it was asked with is made again, with the token of the last part (google-genai, "automatic continuation").
    """
    token = _continuation(messages[-1], origin) if messages else None
    if not token:
        return messages, None
    end = len(messages)
    while end and _continuation(messages[end - 1], origin):
        end -= 1
    return messages[:end], token


def _continuation(message: BaseMessage, origin: str) -> str | None:
    own = own_metadata(message) if isinstance(message, AIMessage) else {}
    token = own.get("continuation") if own.get("origin") == origin else None
    return token if isinstance(token, str) else None


def _later_system(encoded: Encoded) -> Encoded:
    """Return a system message after the first other message as marked text of the user, since the wire has no place for it."""
    return Encoded("user", (encode(text_part(as_user_text(json.loads(part)["text"] for part in encoded.parts))),))
