"""The mapper of chat completions: LangChain's messages and tools on one side, the wire's JSON on the other."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata

from ...messages.memo import MessageMemo
from ...turn.tool_choice import ToolChoice, read_choice
from .._encode.json_text import dumps_params, to_bytes
from .calls import Ids
from .decode import ChatCompletionsDecoder, decode_body
from .dialect import OPENAI, Dialect
from .encode import Encoded, MessageEncoder, answers, encode_part, unanswered
from .tools import format_tool, format_tool_choice
from .usage import usage_metadata

__all__ = ["ChatCompletionsMapper"]


class ChatCompletionsMapper:
    """Encodes requests and decodes replies. Any number of threads and streams may use one mapper at once.

    Args:
        origin: A digest of the endpoint and the model. Opaque state (reasoning, signatures, the server's own ids) goes back
            only to the origin it came from; "" keeps none.
        dialect: The vendor's way to speak this wire.
        null_content: Whether an assistant message with calls and no text says null (else the empty string): servers differ.
        omit: Keys of opaque state that this server refuses to be sent back.
        demand: Keys of opaque state that it wants in every assistant message with calls.
        part_keys: Keys of content blocks that this server takes besides those of chat completions (`cache_control`, say).
    """

    def __init__(
        self,
        *,
        origin: str = "",
        dialect: Dialect = OPENAI,
        null_content: bool = True,
        omit: Collection[str] = (),
        demand: Collection[str] = (),
        part_keys: Collection[str] = (),
    ) -> None:
        self.origin = origin
        self._dialect = dialect
        self._bridge = encode_part({"role": "assistant", "content": dialect.bridge}) if dialect.bridge else b""
        self._encoder = MessageEncoder(
            origin,
            dialect,
            null_content=null_content,
            omit=frozenset(omit),
            demand=frozenset(demand),
            part_keys=tuple(dict.fromkeys(part_keys)),
        )
        self._memo: MessageMemo[Encoded] = MessageMemo()

    # ------------------------------------------------------------------------------------------ requests

    def encode_request(self, messages: Sequence[BaseMessage], params: Mapping[str, Any]) -> bytes:
        """The body of a request: `params`, already in the wire's names, and the messages.

        The same history gives the same bytes, and a longer one starts with those of a shorter one: each message is encoded
        once and remembered for as long as it lives.

        Raises:
            ConfigurationError: A parameter is no JSON value.
            UnsupportedFeatureError: A message has content that chat completions cannot carry.
        """
        head = dumps_params({key: value for key, value in params.items() if key != "messages"})[:-1]
        lead = f"{head}," if len(head) > 1 else head
        return b"".join((to_bytes(lead), b'"messages":[', b",".join(self._bodies(messages)), b"]}"))

    def encode_message(self, message: BaseMessage) -> bytes:
        """One message as it would stand in a request, alone."""
        return (self._memo.get(message, ()) or self._remembered(message, ())).body

    def _bodies(self, messages: Sequence[BaseMessage]) -> list[bytes]:
        bodies: list[bytes] = []
        media: list[bytes] = []
        ids: Ids = ()
        answered = False
        for message in messages:
            if (answered or media) and not answers(message):
                bodies += self._between(answered, media, message)
                media = []
            if ids and isinstance(message, AIMessage):
                ids = ()
            encoded = self._memo.get(message, ids) or self._remembered(message, ids)
            bodies.append(encoded.body)
            if encoded.media:
                media.append(encoded.media)
            if encoded.ids:
                ids = encoded.ids
            elif ids:
                ids = unanswered(ids, message)
            answered = bool(self._bridge) and isinstance(message, ToolMessage)
        return [*bodies, *self._between(answered, media, None)]

    def _between(self, answered: bool, media: Sequence[bytes], following: BaseMessage | None) -> list[bytes]:
        """What stands between a turn's results and the next message: media of the results, after words that some vendors want."""
        user = [_user(media)] if media else []
        speaks = bool(media) or not (following is None or isinstance(following, AIMessage))
        return [self._bridge, *user] if answered and speaks else user

    def _remembered(self, message: BaseMessage, ids: Ids) -> Encoded:
        encoded = self._encoder.encode(message, ids)
        self._memo.put(message, ids, encoded)
        return encoded

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

    def usage(self, usage: Mapping[str, Any], service_tier: str | None = None) -> UsageMetadata:
        """The wire's token counts in LangChain's terms."""
        return usage_metadata(usage, service_tier)

    # ------------------------------------------------------------------------------------------ tools

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """A tool as this wire declares it, see `tools.format_tool`."""
        return format_tool(tool, strict=strict)

    def format_tool_choice(self, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
        """A tool choice as this wire says it, see `tools.format_tool_choice`."""
        return format_tool_choice(choice, tools)

    def read_tool_choice(self, choice: Any) -> ToolChoice:
        """What a choice that `format_tool_choice` gave means for a run."""
        return read_choice(choice)


def _user(media: Sequence[bytes]) -> bytes:
    """The user message that holds what a turn's results and their assistant could not."""
    return b'{"role":"user","content":[' + b",".join(media) + b"]}"
