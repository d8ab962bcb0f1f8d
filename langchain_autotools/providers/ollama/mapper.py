"""The mapper of /api/chat: LangChain's messages and tools on one side, the wire's JSON on the other."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata

from ...messages.memo import MessageMemo
from ...turn.tool_choice import ToolChoice, read_choice
from .._encode.json_text import dumps_params, to_bytes
from .calls import CallId
from .decode import OllamaDecoder, decode_body
from .encode import Encoded, MessageEncoder
from .tools import format_tool, format_tool_choice
from .usage import usage_metadata

__all__ = ["OllamaMapper"]


class OllamaMapper:
    """Encodes requests and decodes replies. Any number of threads and streams may use one mapper at once.

    Args:
        origin: A digest of the endpoint and the model. Thinking and the server's own ids go back only to the origin they came
            from; "" keeps none.
        model: The model's name, by which histories of other packages are recognised.
    """

    def __init__(self, *, origin: str = "", model: str = "") -> None:
        self.origin = origin
        self._encoder = MessageEncoder(origin, model)
        self._memo: MessageMemo[Encoded] = MessageMemo()

    # ------------------------------------------------------------------------------------------ requests

    def encode_request(self, messages: Sequence[BaseMessage], params: Mapping[str, Any]) -> bytes:
        """The body of a request: `params`, already in the wire's names, and the messages.

        The same history gives the same bytes, and a longer one starts with those of a shorter one: each message is encoded
        once and remembered for as long as it lives.

        Raises:
            ConfigurationError: A parameter is no JSON value.
            UnsupportedFeatureError: A message has content that the wire cannot carry.
        """
        head = dumps_params({key: value for key, value in params.items() if key != "messages"})[:-1]
        lead = f"{head}," if len(head) > 1 else head
        return b"".join((to_bytes(lead), b'"messages":[', b",".join(self._bodies(messages)), b"]}"))

    def encode_message(self, message: BaseMessage) -> bytes:
        """One message as it would stand in a request, alone."""
        return self._remembered(message, ()).body

    def _bodies(self, messages: Sequence[BaseMessage]) -> list[bytes]:
        bodies: list[bytes] = []
        calls: tuple[CallId, ...] = ()
        for message in messages:
            is_answer = not isinstance(message, AIMessage)
            encoded = self._remembered(message, calls if is_answer else ())
            bodies.append(encoded.body)
            if not is_answer:
                calls = encoded.calls
            elif calls:
                calls = _without(message.tool_call_id, calls) if isinstance(message, ToolMessage) else ()
        return bodies

    def _remembered(self, message: BaseMessage, calls: tuple[CallId, ...]) -> Encoded:
        """The message on the wire. Besides itself it depends on the calls that it may answer."""
        encoded = self._memo.get(message, calls)
        if encoded is None:
            encoded = self._encoder.encode(message, calls)
            self._memo.put(message, calls, encoded)
        return encoded

    # ------------------------------------------------------------------------------------------ replies

    def decode_body(self, body: Mapping[str, Any]) -> AIMessageChunk:
        """A whole reply as one raw chunk.

        Raises:
            StreamError: The reply is not one of /api/chat.
            Exception: The reply holds an error; it is raised as the vendor's own.
        """
        return decode_body(body, origin=self.origin)

    def stream_decoder(self) -> OllamaDecoder:
        """A decoder for one stream."""
        return OllamaDecoder(origin=self.origin)

    def usage(self, usage: Mapping[str, Any], service_tier: str | None = None) -> UsageMetadata:
        """The wire's token counts in LangChain's terms."""
        return usage_metadata(usage) or UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0)

    # ------------------------------------------------------------------------------------------ tools

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """A tool as this wire declares it, see `tools.format_tool`."""
        return format_tool(tool)

    def format_tool_choice(self, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
        """A tool choice, see `tools.format_tool_choice`."""
        return format_tool_choice(choice, tools)

    def read_tool_choice(self, choice: Any) -> ToolChoice:
        """What a choice that `format_tool_choice` gave means for a run."""
        return read_choice(choice)


def _without(identifier: str, calls: tuple[CallId, ...]) -> tuple[CallId, ...]:
    """The calls without the first of this id: calls that share an id are answered in order."""
    position = next((number for number, call in enumerate(calls) if call.known == identifier), None)
    return calls if position is None else calls[:position] + calls[position + 1 :]
