"""Conversion of LangChain messages to the JSON of generateContent requests."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from ...messages.metadata import own_metadata
from .._encode.json_text import encode, request_body
from .._encode.system import as_user_text, count_leading_system
from .blocks import text_part
from .encode import ContentEncoder, Encoded

_OPENING = encode(text_part("(The conversation begins with the model.)"))


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
        first = count_leading_system(messages)
        system = [part for message in messages[:first] for part in self._remembered(message).parts]
        head = {key: value for key, value in params.items() if not (key == "systemInstruction" and system)}
        before = b'"systemInstruction":{"parts":[%s]},' % b",".join(system) if system else b""
        return request_body(head, "contents", self._contents(messages[first:]), before)

    def _contents(self, messages: Sequence[BaseMessage]) -> list[bytes]:
        """Return the wire's Contents: neighbours of one role are merged, with a turn's responses before other parts."""
        groups: list[tuple[str, bool, list[bytes]]] = []
        late: list[bytes] = []  # media of results, which may not come between the responses
        for encoded in self.encode_each(messages):
            if not (encoded.parts or encoded.responses):
                continue
            encoded = _later_system(encoded) if encoded.role == "system" else encoded
            if encoded.responses:
                _add(groups, "user", True, encoded.responses)
                late += encoded.parts
                continue
            _add(groups, "user", False, late)
            late = []
            _add(groups, encoded.role, False, encoded.parts)
        _add(groups, "user", False, late)
        if groups and groups[0][0] == "model":
            groups.insert(0, ("user", False, [_OPENING]))
        return [_content_json(role, parts) for role, _, parts in groups]


def _continued(messages: Sequence[BaseMessage], origin: str) -> tuple[Sequence[BaseMessage], str | None]:
    """Return the messages without a final unfinished reply, and the token with which the server continues it.

    The request that it was asked with is made again, with the token of the last part (google-genai, "automatic continuation").
    """
    token = _continuation(messages[-1], origin) if messages else None
    end = len(messages)
    while token and end and _continuation(messages[end - 1], origin):
        end -= 1
    return messages[:end], token


def _continuation(message: BaseMessage, origin: str) -> str | None:
    own = own_metadata(message) if isinstance(message, AIMessage) else {}
    token = own.get("continuation") if own.get("origin") == origin else None
    return token if isinstance(token, str) else None


def _content_json(role: str, parts: Iterable[bytes]) -> bytes:
    return b'{"role":"%s","parts":[%s]}' % (role.encode(), b",".join(parts))


def _add(groups: list[tuple[str, bool, list[bytes]]], role: str, responses: bool, parts: Sequence[bytes]) -> None:
    """Append the parts to the last group if they may join it, else as a new group."""
    if not parts:
        return
    if not groups or groups[-1][:2] != (role, responses):
        groups.append((role, responses, []))
    groups[-1][2].extend(parts)


def _later_system(encoded: Encoded) -> Encoded:
    """Return a system message after the first other message as marked text of the user, since the wire has no place for it."""
    return Encoded("user", (encode(text_part(as_user_text(json.loads(part)["text"] for part in encoded.parts))),))
