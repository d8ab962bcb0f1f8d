"""Forms of requests per endpoint and model, adapted to a server's rejections.

Servers that speak chat completions differ in two things that no request can get right for all of them (wire quirks H-03, R-03): the
content of an assistant message that has only calls (null or the empty string), and opaque state sent back with a history
(demanded by some, refused by others). The first refusal that names one of them changes the form, and the form is kept.
"""

import re
from typing import Any, NamedTuple

from .._transport.clients import Shared
from .dialect import OPAQUE_KEYS, OPENAI, Dialect
from .mapper import ChatCompletionsMapper

_IS_MISSED = re.compile(r"\b(must be (passed|returned|provided|sent)|missing|is required)\b", re.IGNORECASE)
_ABOUT_CONTENT = re.compile(r"\bcontent\b.{0,120}\b(null|none\w*|str|string|empty|required|missing)\b", re.IGNORECASE | re.DOTALL)


class CompatibilityKey(NamedTuple):
    """The values that determine the form of a request before any rejection."""

    origin: str
    null_content: bool
    part_keys: tuple[str, ...]
    dialect: Dialect = OPENAI


class LearnedCompatibility(Shared):
    """The mappers in use, each of which writes one form. Safe for threads."""

    def __init__(self) -> None:
        self._learned: dict[CompatibilityKey, ChatCompletionsMapper] = {}

    def get(self, key: CompatibilityKey) -> ChatCompletionsMapper:
        """Return the mapper for a key."""
        mapper = self._learned.get(key)
        return mapper if mapper is not None else self._learned.setdefault(key, ChatCompletionsMapper(**key._asdict()))

    def keep(self, key: CompatibilityKey, mapper: ChatCompletionsMapper) -> None:
        """Use this mapper for requests from now on.

        Args:
            key: The request's key.
            mapper: The mapper that the server took a request of.
        """
        self._learned[key] = mapper

    def other(self, key: CompatibilityKey, used: ChatCompletionsMapper, error: Any) -> ChatCompletionsMapper | None:
        """Return the mapper to try after a rejection; None if the form is not the reason or all forms have been tried.

        Args:
            key: The request's key.
            used: The mapper whose request was refused.
            error: The SDK's error.
        """
        if getattr(error, "status_code", None) not in (400, 422):
            return None
        current = self.get(key)
        if current is not used:
            return current  # another request has learned meanwhile
        refusal = f"{error} {error.body}"
        found = [name for name in OPAQUE_KEYS if re.search(rf"\b{name}\b", refusal)]
        if found and _IS_MISSED.search(refusal):
            missed = frozenset(found[:1])
            return None if missed <= used.demand else used.variant(omit=used.omit - missed, demand=used.demand | missed)
        named = frozenset(found)
        if named - used.omit:
            return used.variant(omit=used.omit | named, demand=used.demand - named)
        if used.null_content == key.null_content and _ABOUT_CONTENT.search(refusal):
            return used.variant(null_content=not key.null_content)
        return None
