"""What a vendor's chat completions ask for, or send, otherwise than OpenAI's own: plain data, read by encoder and decoder."""

import re
from dataclasses import dataclass

from .._encode.calls import derived_id

OPAQUE_KEYS = ("reasoning_content", "reasoning", "reasoning_text", "thinking", "reasoning_details", "extra_content")
"""The keys of messages under which servers send state that some want back, and others refuse (wire quirks R-01 to R-05)."""


@dataclass(frozen=True)
class IdShape:
    """Which ids of calls a server takes, and what one looks like that is made where another cannot be sent.

    Attributes:
        legal: A regular expression that matches every legal id.
        prefix: What a made id begins with.
        digits: How many digits follow.
        always: Whether this holds of ids too that the server itself is said to have sent.
    """

    legal: str = r"(?s:.{1,40})"
    prefix: str = "call_"
    digits: int = 24
    always: bool = False

    def fit(self, identifier: str) -> str:
        """The id itself where the wire takes it, else one made from it."""
        return identifier if re.fullmatch(self.legal, identifier) else self.derived(identifier)

    def derived(self, identifier: str, name: str = "", position: int = 0) -> str:
        """An id for a call whose own cannot be sent; the same call always gets the same.

        Args:
            identifier: The call's own id.
            name: The tool's name.
            position: The call's place in its message.
        """
        return derived_id(self.prefix, identifier, name, position, digits=self.digits)


@dataclass(frozen=True)
class Dialect:
    """One vendor's way to speak chat completions.

    Attributes:
        provider: The name under which replies say where they are from (`response_metadata["model_provider"]`).
        ids: Which ids of calls the server takes.
        reasoning: The wire's key for what LangChain's users find as `additional_kwargs["reasoning_content"]`; "thinking_part" where it
            is a part of the content.
        refuses: Keys of opaque state that the server refuses to be sent back.
        demands: Keys of opaque state that every assistant message with calls must have, empty where none is known.
        names: Whether messages may say the name of their author.
        developer: Whether messages may have the role `developer`; else they are system messages.
        bridge: What the assistant is made to say between a tool's result and a message that may not follow one. "": all may.
        assistant_keys: Keys of an AI message's `additional_kwargs` that the server takes (`prefix`, say).
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


OPENAI = Dialect(developer=True)
