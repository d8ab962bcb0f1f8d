"""Chat completions as their servers speak them: the types of the wire, the differences of each vendor from OpenAI.

They are wider than the SDK's types (`openai.types.chat`): compatible servers take more parts, and of their replies any key may be
absent, null or beside others.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Required, TypedDict

from .._encode.encoder import derived_id
from .._encode.sources import Block, Source

if TYPE_CHECKING:
    from openai.types.chat.chat_completion_content_part_image_param import ImageURL
    from openai.types.chat.chat_completion_content_part_param import FileFile


class InputAudio(TypedDict):
    """Audio as base64 data."""

    data: str
    format: str


class Part(TypedDict, total=False):
    """A part of a message's content: its type, and its value under the key of that name."""

    type: Required[str]
    text: str
    image_url: "ImageURL"
    input_audio: InputAudio
    file: "FileFile"
    thinking: "list[Part] | str"
    refusal: str


class CallText(TypedDict, total=False):
    """The text of a call: `arguments` of a function, `input` of a custom tool."""

    name: str | None
    arguments: str | None
    input: str | None


class Call(TypedDict, total=False):
    """A tool call, or a fragment of one."""

    id: str | None
    type: str | None
    index: int | None
    function: CallText | None
    custom: Any
    """The text of a custom tool's call (`CallText`); in the package's own fragments True marks one."""
    caller: dict[str, Any] | None
    """The vendor's program that made the call, if the model did not."""


class Message(TypedDict, total=False):
    """A message, or a fragment of one."""

    role: str
    name: str
    content: str | list[Part] | None
    refusal: str | None
    reasoning_content: str | None
    tool_calls: list[Call] | None
    tool_call_id: str
    function_call: CallText | None
    audio: dict[str, Any] | None


class Usage(TypedDict, total=False):
    """Token counts of a reply."""

    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    prompt_tokens_details: dict[str, int | None] | None
    completion_tokens_details: dict[str, int | None] | None


class Choice(TypedDict, total=False):
    """One of a reply's alternatives: a fragment (`delta`) or the whole (`message`)."""

    index: int | None
    delta: Message | None
    message: Message | None
    finish_reason: str | None
    logprobs: dict[str, list[Any]] | None
    usage: Usage | None
    error: Any


class Event(TypedDict, total=False):
    """An event of a streamed reply, or a whole reply."""

    id: str | None
    object: str | None
    type: str | None
    model: str | None
    choices: list[Choice] | None
    usage: Usage | None
    x_groq: Any
    error: Any
    message: str | None


# ---------------------------------------------------------------------------------------------- dialect
# Differences of a vendor's chat completions from OpenAI's, as plain data for encoder and decoder.


OPAQUE_KEYS = ("reasoning_content", "reasoning", "reasoning_text", "thinking", "reasoning_details", "extra_content")
"""Message keys of opaque state that some servers require back and others reject (wire quirks R-01 to R-05)."""


OwnParts = Mapping[str, tuple[str, ...]]
"""The keys of a vendor's own content parts by their type; a block is one of them if it has the first key."""


@dataclass(frozen=True)
class IdShape:
    """The form of tool call ids that a server accepts, and of replacements for other ids.

    Attributes:
        legal: A regular expression that matches every legal id.
        prefix: The prefix of a derived id.
        digits: The number of digits after the prefix.
        always: Whether this holds of ids too that the server itself is said to have sent.
    """

    legal: str = r"(?s:.{1,40})"
    prefix: str = "call_"
    digits: int = 24
    always: bool = False

    def fit(self, identifier: str) -> str:
        """Return the id if the wire accepts it, else one derived from it."""
        return identifier if re.fullmatch(self.legal, identifier) else self.derived(identifier)

    def derived(self, identifier: str, name: str = "", position: int = 0) -> str:
        """Return a derived id for a call whose own id cannot be sent; equal calls get equal ids.

        Args:
            identifier: The call's own id.
            name: The tool's name.
            position: The call's place in its message.
        """
        return derived_id(self.prefix, identifier, name, position, digits=self.digits)


@dataclass(frozen=True)
class Dialect:
    """One vendor's dialect of chat completions.

    Attributes:
        provider: The name under which replies say where they are from (`response_metadata["model_provider"]`).
        ids: The form of tool call ids that the server accepts.
        reasoning: The wire's key for what LangChain's users find as `additional_kwargs["reasoning_content"]`; "thinking_part" where it
            is a part of the content.
        refuses: Keys of opaque state that the server refuses to be sent back.
        demands: Keys of opaque state that every assistant message with calls must have, empty where none is known.
        names: Whether messages may say the name of their author.
        developer: Whether messages may have the role `developer`; else they are system messages.
        refusals: Whether assistant messages may hold a refusal, which otherwise is sent as text.
        bridge: The assistant's text inserted between a tool's result and a message that may not follow one. "": all may.
        assistant_keys: Keys of an AI message's `additional_kwargs` that the server takes (`prefix`, say).
        parts: Content parts that the server takes besides those of chat completions, or in a form of its own.
        media: Returns the server's own part for a block with data, where it has one.
    """

    provider: str = "openai"
    ids: IdShape = IdShape()
    reasoning: str = "reasoning_content"
    refuses: frozenset[str] = frozenset()
    demands: frozenset[str] = frozenset()
    names: bool = True
    developer: bool = False
    refusals: bool = False
    bridge: str = ""
    assistant_keys: tuple[str, ...] = ()
    parts: OwnParts = field(default_factory=dict, hash=False)
    media: Callable[[Block, Source], Any] | None = None


OPENAI = Dialect(developer=True)
