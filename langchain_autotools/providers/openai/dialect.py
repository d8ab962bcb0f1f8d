"""Differences of a vendor's chat completions from OpenAI's, as plain data for encoder and decoder."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from .._encode.calls import derived_id

OPAQUE_KEYS = ("reasoning_content", "reasoning", "reasoning_text", "thinking", "reasoning_details", "extra_content")
"""Message keys of opaque state that some servers require back and others reject (wire quirks R-01 to R-05)."""


OwnParts = Mapping[str, tuple[str, ...]]
"""The keys of a vendor's own content parts by their type; a block is one of them if it has the first key."""
NO_PARTS: OwnParts = {}


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
        bridge: The assistant's text inserted between a tool's result and a message that may not follow one. "": all may.
        assistant_keys: Keys of an AI message's `additional_kwargs` that the server takes (`prefix`, say).
        parts: Content parts that the server takes besides those of chat completions, or in a form of its own.
    """

    provider: str = "openai"
    ids: IdShape = IdShape()
    reasoning: str = "reasoning_content"
    refuses: frozenset[str] = frozenset()
    demands: frozenset[str] = frozenset()
    names: bool = True
    developer: bool = False
    bridge: str = ""
    assistant_keys: tuple[str, ...] = ()
    parts: OwnParts = field(default_factory=dict, hash=False)


OPENAI = Dialect(developer=True)
