"""The mapper of the Responses API: LangChain's messages and tools on one side, the wire's items on the other."""

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata

from ....messages.memo import MessageMemo
from ....turn.tool_choice import ToolChoice, read_choice
from ..._encode.json_text import dumps_params, to_bytes
from ..tools import format_tool, format_tool_choice
from .decode import ResponsesDecoder, decode_body, responses_usage
from .encode import Encoded, ItemEncoder, Waiting, still_waiting, without_answers
from .parameters import wire_choice, wire_tool

__all__ = ["ResponsesMapper"]

_logger = logging.getLogger("langchain_autotools")


class ResponsesMapper:
    """Encodes requests and decodes replies. Any number of threads and streams may use one mapper at once.

    Args:
        origin: A digest of the endpoint and the model. Reasoning and items of the vendor's tools go back only to the origin
            they came from; "" keeps none.
        provider: The name under which replies say where they are from (`response_metadata["model_provider"]`).
        part_keys: Keys of content blocks that this server takes besides the vendor's own.
        opaque: Whether replies go back as the items that they were; else as text and calls.
    """

    def __init__(self, *, origin: str = "", provider: str = "openai", part_keys: Collection[str] = (), opaque: bool = True) -> None:
        self.origin = origin
        self.provider = provider
        self._encoder = ItemEncoder(origin, part_keys=tuple(dict.fromkeys(part_keys)), opaque=opaque)
        self._memo: MessageMemo[Encoded] = MessageMemo()

    # ------------------------------------------------------------------------------------------ requests

    def encode_request(self, messages: Sequence[BaseMessage], params: Mapping[str, Any], *, after: int = 0) -> bytes:
        """The body of a request: `params`, already in the wire's names, and the input.

        The same history gives the same bytes, and a longer one starts with those of a shorter one.

        Args:
            messages: The history.
            params: The parameters.
            after: How many messages the server knows already (`previous_response_id`); they are not sent.

        Raises:
            ConfigurationError: A parameter is no JSON value.
            UnsupportedFeatureError: A message has content that the API cannot carry.
        """
        head = dumps_params({key: value for key, value in params.items() if key != "input"})[:-1]
        lead = f"{head}," if len(head) > 1 else head
        continued = after > 0 or any(params.get(name) for name in ("previous_response_id", "conversation", "prompt"))
        bodies = self._bodies(messages, after, continued=continued)
        return b"".join((to_bytes(lead), b'"input":[', b",".join(filter(None, bodies)), b"]}"))

    def encode_message(self, message: BaseMessage) -> bytes:
        """One message as it would stand in a request, alone."""
        return b",".join(filter(None, self._bodies([message], 0, continued=True)))

    def _bodies(self, messages: Sequence[BaseMessage], after: int, *, continued: bool) -> list[bytes]:
        bodies: list[bytes] = []
        media: list[bytes] = []
        used: set[str] = set()
        awaited: set[str] = set()
        waiting: Waiting = ()
        for position, message in enumerate(messages):
            if media and not isinstance(message, ToolMessage):
                bodies.append(_user(media))
                media = []
            if isinstance(message, AIMessage):
                encoded = self._reply(message, used, messages, position)
                used |= encoded.call_ids
                awaited.update(*encoded.awaits)
                waiting = encoded.waiting
            else:
                encoded = self._memo.get(message, waiting) or self._remembered(message, waiting)
                if not continued and not encoded.answers <= awaited:
                    rest = without_answers(message, encoded.answers - awaited)
                    encoded = self._encoder.encode(rest, waiting) if rest.content else Encoded(b"")
                if waiting and isinstance(message, ToolMessage):
                    waiting = still_waiting(waiting, message.tool_call_id)
            if position >= after:
                bodies.append(encoded.body)
                if encoded.media:
                    media.append(encoded.media)
        return [*bodies, _user(media)] if media else bodies

    def _remembered(self, message: BaseMessage, waiting: Waiting) -> Encoded:
        encoded = self._encoder.encode(message, waiting)
        self._memo.put(message, waiting, encoded)
        return encoded

    def _reply(self, message: AIMessage, used: set[str], messages: Sequence[BaseMessage], position: int) -> Encoded:
        """A reply in its place: with ids that no earlier call has, and without calls of the vendor's tools that nobody answers."""
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
        if encoded is None:
            encoded = self._encoder.reply(message, taken, plain=plain)
            self._memo.put(message, context, encoded)
        return encoded

    def _answered(self, messages: Sequence[BaseMessage], start: int) -> frozenset[str]:
        """The calls of the vendor's tools that messages from `start` on answer."""
        others = (message for message in messages[start:] if not isinstance(message, AIMessage | ToolMessage))
        return frozenset(name for message in others for name in self._encoder.encode(message).answers)

    # ------------------------------------------------------------------------------------------ replies

    def decode_body(
        self,
        body: Mapping[str, Any],
        *,
        stored: bool = True,
        blocks: bool = False,
        listed: bool = False,
        taken: Collection[str | None] = frozenset(),
    ) -> AIMessageChunk:
        """A whole reply as one raw chunk.

        Args:
            body: The reply's JSON.
            stored: Whether the server was asked to store it (a reply that says otherwise is believed).
            blocks: Whether content is a list of v1 content blocks.
            listed: Whether content is a list, of texts and of what waits for the caller; else that is so only where anything waits.
            taken: Ids that messages of the history have: the reply gets none of them.

        Raises:
            StreamError: The reply is not one of the Responses API, or is not finished.
            Exception: The reply holds an error; it is raised as the vendor's own.
        """
        return decode_body(body, self.stream_decoder(stored=stored, blocks=blocks, listed=listed, taken=taken))

    def stream_decoder(
        self, *, stored: bool = True, blocks: bool = False, listed: bool = False, taken: Collection[str | None] = frozenset()
    ) -> ResponsesDecoder:
        """A decoder for one stream; arguments as of `decode_body`."""
        return ResponsesDecoder(origin=self.origin, provider=self.provider, stored=stored, blocks=blocks, listed=listed, taken=taken)

    def usage(self, usage: Mapping[str, Any], service_tier: str | None = None) -> UsageMetadata:
        """The wire's token counts in LangChain's terms."""
        return responses_usage(usage, service_tier)

    # ------------------------------------------------------------------------------------------ tools

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """A tool as this wire declares it."""
        return wire_tool(format_tool(tool, strict=strict))

    def format_tool_choice(self, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
        """A tool choice as this wire says it, of tools that `format_tool` gave."""
        return wire_choice(format_tool_choice(choice, tools))

    def read_tool_choice(self, choice: Any) -> ToolChoice:
        """What a choice that `format_tool_choice` gave means for a run."""
        return read_choice(choice)


def _listed(awaits: Sequence[frozenset[str]]) -> str:
    return ", ".join(min(names) for names in awaits)


def _user(media: Sequence[bytes]) -> bytes:
    """The user message that holds what a turn's outputs and their assistant could not."""
    return b'{"role":"user","content":[' + b",".join(media) + b"]}"
