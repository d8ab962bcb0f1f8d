"""The mapper of generateContent: LangChain's messages and tools on one side, the wire's JSON on the other."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, SystemMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata

from ...messages.memo import MessageMemo
from ...messages.metadata import KEY
from ...turn.tool_choice import ToolChoice
from .._encode.json_text import dumps, dumps_params, to_bytes
from .blocks import text_part
from .calls import CallId
from .decode import GenerateContentDecoder, decode_body
from .encode import Encoded, Home, MessageEncoder
from .tools import format_tool, format_tool_choice, read_choice
from .usage import usage_metadata

__all__ = ["GenerateContentMapper"]

_OPENING = to_bytes(dumps(text_part("(The conversation begins with the model.)")))
_LATER_SYSTEM = "<system>\n{}\n</system>"


class GenerateContentMapper:
    """Encodes requests and decodes replies. Any number of threads and streams may use one mapper at once.

    Args:
        home: The endpoint and model that are asked.
    """

    def __init__(self, home: Home | None = None) -> None:
        self.home = home or Home()
        self._encoder = MessageEncoder(self.home)
        self._memo: MessageMemo[Encoded] = MessageMemo()

    # ------------------------------------------------------------------------------------------ requests

    def encode_request(self, messages: Sequence[BaseMessage], params: Mapping[str, Any]) -> bytes:
        """The body of a request: `params`, already in the wire's names, and the messages.

        The same history gives the same bytes, and a longer one starts with those of a shorter one: each message is encoded
        once and remembered for as long as it lives.

        Args:
            messages: The messages. System messages at the start become the request's `systemInstruction`.
            params: Everything else.

        Raises:
            ConfigurationError: A parameter is no JSON value.
            UnsupportedFeatureError: A message has content that the wire cannot carry.
        """
        messages, token = _continued(messages, self.home.origin)
        if token:
            params = {**params, "continuationToken": token}
        first = next((place for place, message in enumerate(messages) if not isinstance(message, SystemMessage)), len(messages))
        system = [part for message in messages[:first] for part in self._remembered(message, ()).parts]
        head = {key: value for key, value in params.items() if key != "contents" and not (key == "systemInstruction" and system)}
        lead = to_bytes(dumps_params(head)[:-1] + ("," if head else ""))
        said = [b'"systemInstruction":{"parts":[', b",".join(system), b"]},"] if system else []
        return b"".join((lead, *said, b'"contents":[', b",".join(self._contents(messages[first:])), b"]}"))

    def encode_message(self, message: BaseMessage) -> bytes:
        """One message as it would stand in a request, alone."""
        encoded = self._remembered(message, ())
        return _content(encoded.role, [*encoded.responses, *encoded.parts])

    def _contents(self, messages: Sequence[BaseMessage]) -> list[bytes]:
        """The Contents on the wire: neighbours of one role are one; the responses of a turn are one before all else."""
        groups: list[tuple[str, bool, list[bytes]]] = []
        late: list[bytes] = []  # media of results, which may not come between the responses
        for encoded in self._each(messages):
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
        return [_content(role, parts) for role, _, parts in groups]

    def _each(self, messages: Sequence[BaseMessage]) -> Iterable[Encoded]:
        """Each message that says anything."""
        ids: tuple[CallId, ...] = ()
        for message in messages:
            encoded = self._remembered(message, ids)
            if isinstance(message, AIMessage):
                ids = encoded.calls
            elif isinstance(message, ToolMessage):
                ids = _without(message.tool_call_id, ids)
            if encoded.parts or encoded.responses:
                yield _later_system(encoded) if encoded.role == "system" else encoded

    def _remembered(self, message: BaseMessage, ids: tuple[CallId, ...]) -> Encoded:
        """The message on the wire. What it depends on besides itself: the calls that it may answer."""
        context = () if isinstance(message, AIMessage) else ids
        encoded = self._memo.get(message, context)
        if encoded is None:
            encoded = self._encoder.encode(message, context)
            self._memo.put(message, context, encoded)
        return encoded

    # ------------------------------------------------------------------------------------------ replies

    def decode_body(self, body: Any, *, blocks: bool = False, may_be_empty: bool = True) -> AIMessageChunk:
        """A whole reply as one raw chunk.

        Args:
            body: The reply's JSON.
            blocks: Whether content is a list of blocks even where it is nothing but text.
            may_be_empty: Whether a reply that ends normally may say nothing.

        Raises:
            StreamError: The reply is none of this wire, or empty.
            Exception: The reply holds an error; it is raised as the vendor's own.
        """
        return decode_body(body, origin=self.home.origin, blocks=blocks, may_be_empty=may_be_empty, signs=self.home.signs)

    def stream_decoder(self, *, blocks: bool = False, may_be_empty: bool = True) -> GenerateContentDecoder:
        """A decoder for one stream; the arguments as in `decode_body`."""
        return GenerateContentDecoder(origin=self.home.origin, blocks=blocks, may_be_empty=may_be_empty, signs=self.home.signs)

    def usage(self, usage: Mapping[str, Any], service_tier: str | None = None) -> UsageMetadata:
        """The wire's token counts in LangChain's terms."""
        return usage_metadata(usage) or UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0)

    # ------------------------------------------------------------------------------------------ tools

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """A tool as this wire declares it, see `tools.format_tool`."""
        return format_tool(tool, strict=strict)

    def format_tool_choice(self, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
        """A tool choice, made plain, see `tools.format_tool_choice`."""
        return format_tool_choice(choice, tools)

    def read_tool_choice(self, choice: Any) -> ToolChoice:
        """What a choice that `format_tool_choice` gave means for a run."""
        return read_choice(choice)


def _continued(messages: Sequence[BaseMessage], origin: str) -> tuple[Sequence[BaseMessage], str | None]:
    """The messages without the parts of an unfinished reply that they end in, and the token by which the server goes on with it.

    The request that it was asked with is made again, with the token of the last part (google-genai, "automatic continuation").
    """
    token = _continuation(messages[-1], origin) if messages else None
    end = len(messages)
    while token and end and _continuation(messages[end - 1], origin):
        end -= 1
    return messages[:end], token


def _continuation(message: BaseMessage, origin: str) -> str | None:
    own = message.response_metadata.get(KEY) if isinstance(message, AIMessage) else None
    token = own.get("continuation") if isinstance(own, Mapping) and own.get("origin") == origin else None
    return token if isinstance(token, str) else None


def _content(role: str, parts: Iterable[bytes]) -> bytes:
    return b'{"role":"%s","parts":[%s]}' % (role.encode(), b",".join(parts))


def _add(groups: list[tuple[str, bool, list[bytes]]], role: str, responses: bool, parts: Sequence[bytes]) -> None:
    """Append the parts to the last group where they may stand in it, else as a new one."""
    if not parts:
        return
    if not groups or groups[-1][:2] != (role, responses):
        groups.append((role, responses, []))
    groups[-1][2].extend(parts)


def _later_system(encoded: Encoded) -> Encoded:
    """A system message after the first other message, which the wire has no place for: the user says it, marked."""
    text = "\n".join(json.loads(part)["text"] for part in encoded.parts)
    return Encoded("user", (to_bytes(dumps(text_part(_LATER_SYSTEM.format(text)))),))


def _without(identifier: str, ids: tuple[CallId, ...]) -> tuple[CallId, ...]:
    """The calls without the first of this id: calls that share an id are answered in order."""
    position = next((number for number, call in enumerate(ids) if call.known == identifier), None)
    return ids if position is None else ids[:position] + ids[position + 1 :]
