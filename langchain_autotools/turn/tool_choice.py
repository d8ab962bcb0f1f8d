"""A tool choice as a run uses it: the demand for the first turn, the lasting part, and the allowed tools.

A choice either *asks* (call some tool, call this one), which holds for the first turn only: kept, it would never let a run end.
Or it *restricts* (no tool, these tools only, no calls side by side), which holds on every turn. Only a wire knows its own words
for it; the words here are those that a model uses which does not say otherwise.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..executor.names import tool_name

_FREE = (None, "auto")


@dataclass(frozen=True)
class ToolChoice:
    """A tool choice in a wire's form, and its effect on a run.

    Attributes:
        asked: The choice in the first request; None: none.
        lasting: The choice in every later request; None: none.
        allowed: Names of the tools that may be called, on every turn; None for all.
        forced: Whether the first turn must call a tool.
    """

    asked: Any = None
    lasting: Any = None
    allowed: Collection[str] | None = None
    forced: bool = False

    def within(self, outer: "ToolChoice") -> "ToolChoice":
        """Return this choice within an outer one, from a place farther from the call: the restrictions of both hold."""
        if self.asked is None or outer.allowed is None:
            return outer if self.asked is None else self
        is_free = not self.forced and self.allowed is None
        if is_free or not outer.allowed:
            return ToolChoice(outer.lasting, outer.lasting, outer.allowed)
        if self.allowed is None:
            return replace(self, lasting=outer.lasting, allowed=outer.allowed)
        return replace(self, allowed=[name for name in self.allowed if name in outer.allowed])


def read_choice(choice: Any) -> ToolChoice:
    """Parse a choice: a word, a mapping for one tool, or one of `type` "allowed_tools" (flat, or nested under that key)."""
    word = choice.get("type") if isinstance(choice, Mapping) else choice
    if isinstance(word, str | None) and word in _FREE:
        return ToolChoice(choice, choice)
    if word == "none":
        return ToolChoice(choice, choice, ())
    if word == "allowed_tools" and isinstance(choice, Mapping):
        return _read_allowed(choice)
    return ToolChoice(choice, forced=True)


def _read_allowed(choice: Mapping[str, Any]) -> ToolChoice:
    nested = choice.get("allowed_tools")
    body = nested if isinstance(nested, Mapping) else choice
    tools: Sequence[Any] = body.get("tools") or ()
    free = {**body, "mode": "auto"}
    lasting = {**choice, "allowed_tools": free} if body is nested else free
    names = [tool_name(tool) if isinstance(tool, Mapping) else str(tool) for tool in tools]
    return ToolChoice(choice, lasting, names, forced=body.get("mode") in ("required", "any"))
