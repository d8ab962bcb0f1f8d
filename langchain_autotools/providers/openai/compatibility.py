"""How requests to one endpoint and model are written, and what is learned from a server that refuses a form.

Servers that speak chat completions differ in two things that no request can get right for all of them (wire quirks H-03, R-03): the
content of an assistant message that has only calls (null or the empty string), and opaque state sent back with a history
(demanded by some, refused by others). The first refusal that names one of them changes the form, and the form is kept.
"""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from .._transport.clients import Shared
from .dialect import OPAQUE_KEYS, OPENAI, Dialect
from .mapper import ChatCompletionsMapper

__all__ = ["Compatibility", "CompatibilityKey", "LearnedCompatibility"]

_IS_MISSED = re.compile(r"\b(must be (passed|returned|provided|sent)|missing|is required)\b", re.IGNORECASE)
_ABOUT_CONTENT = re.compile(r"\bcontent\b.{0,120}\b(null|none\w*|str|string|empty|required|missing)\b", re.IGNORECASE | re.DOTALL)


class CompatibilityKey(NamedTuple):
    """What decides the form of a request before anything is learned."""

    origin: str
    null_content: bool
    part_keys: tuple[str, ...]
    dialect: Dialect = OPENAI


@dataclass(frozen=True)
class Compatibility:
    """How requests are written: the mapper that writes them, and what it was made with."""

    mapper: ChatCompletionsMapper
    null_content: bool
    omit: frozenset[str]
    demand: frozenset[str] = frozenset()


class LearnedCompatibility(Shared):
    """The forms in use. Safe for threads."""

    def __init__(self) -> None:
        self._learned: dict[CompatibilityKey, Compatibility] = {}

    def get(self, key: CompatibilityKey) -> Compatibility:
        """The form for a key."""
        form = self._learned.get(key)
        return form if form is not None else self._learned.setdefault(key, _compatibility(key, key.null_content))

    def keep(self, key: CompatibilityKey, form: Compatibility) -> None:
        """Write requests in this form from now on."""
        self._learned[key] = form

    def other(self, key: CompatibilityKey, used: Compatibility, error: Any) -> Compatibility | None:
        """The form to try after a refusal; None where the refusal has nothing to do with the form, or all were tried.

        Args:
            key: The request's key.
            used: The form that was refused.
            error: The SDK's error.
        """
        if getattr(error, "status_code", None) not in (400, 422):
            return None
        current = self.get(key)
        if current is not used:
            return current  # another request has learned meanwhile
        said = f"{error} {error.body}"
        found = [name for name in OPAQUE_KEYS if re.search(rf"\b{name}\b", said)]
        if found and _IS_MISSED.search(said):
            missed = frozenset(found[:1])
            return None if missed <= used.demand else _compatibility(key, used.null_content, used.omit - missed, used.demand | missed)
        named = frozenset(found)
        if named - used.omit:
            return _compatibility(key, used.null_content, used.omit | named, used.demand - named)
        if used.null_content == key.null_content and _ABOUT_CONTENT.search(said):
            return _compatibility(key, not key.null_content, used.omit, used.demand)
        return None


def _compatibility(
    key: CompatibilityKey, null_content: bool, omit: frozenset[str] = frozenset(), demand: frozenset[str] = frozenset()
) -> Compatibility:
    mapper = ChatCompletionsMapper(
        origin=key.origin, dialect=key.dialect, null_content=null_content, omit=omit, demand=demand, part_keys=key.part_keys
    )
    return Compatibility(mapper, null_content, omit, demand)
