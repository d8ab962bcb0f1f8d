"""Parts of a streamed reply that only make sense whole, put together fragment by fragment.

LangChain's sum of chunks joins strings under equal keys, which would double ids, formats and types; so these are put together
here and handed on once.
"""

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["AudioParts", "LogProbabilities", "ReasoningDetails"]

_GROWING = ("text", "summary")
_CONTINUED = frozenset({"reasoning.text", "reasoning.summary"})


class ReasoningDetails:
    """Structured reasoning (`reasoning_details`): text and summaries grow, encrypted blocks and signatures come whole.

    The order is kept: the server wants back what it sent (openrouter.ai/docs/use-cases/reasoning-tokens).
    """

    def __init__(self) -> None:
        self.merged: list[Any] = []

    def add(self, fragments: Iterable[Any]) -> None:
        """Take the fragments of one delta."""
        for fragment in fragments:
            last = self.merged[-1] if self.merged else None
            if isinstance(fragment, Mapping) and isinstance(last, dict) and _continues(last, fragment):
                _grow(last, fragment)
            else:
                self.merged.append(dict(fragment) if isinstance(fragment, Mapping) else fragment)


def _continues(last: Mapping[str, Any], fragment: Mapping[str, Any]) -> bool:
    """Whether a fragment is the next piece of the last detail: same kind, same place, and not signed off already."""
    if fragment.get("type") not in _CONTINUED or fragment.get("type") != last.get("type"):
        return False
    if fragment.get("id") and last.get("id") and fragment["id"] != last["id"]:
        return False
    signed = bool(last.get("signature")) and any(fragment.get(key) for key in _GROWING)
    return fragment.get("index") == last.get("index") and not signed


def _grow(last: dict[str, Any], fragment: Mapping[str, Any]) -> None:
    for key, value in fragment.items():
        if key in _GROWING and isinstance(last.get(key), str) and isinstance(value, str):
            last[key] += value
        elif value is not None or key not in last:
            last[key] = value


class AudioParts:
    """A spoken reply: data and transcript grow, id and expiry come once."""

    def __init__(self) -> None:
        self.merged: dict[str, Any] = {}

    def add(self, audio: Mapping[str, Any]) -> None:
        """Take the audio of one delta; fields without a value say nothing."""
        for key, value in audio.items():
            if not value:
                continue
            if key in ("data", "transcript"):
                value = self.merged.get(key, "") + value
            self.merged[key] = value


class LogProbabilities:
    """The log probabilities of a reply's tokens: each list grows."""

    def __init__(self) -> None:
        self.merged: dict[str, list[Any]] = {}

    def add(self, logprobs: Any) -> None:
        """Take what one choice brings, which may be nothing."""
        if not isinstance(logprobs, Mapping):
            return
        for key, value in logprobs.items():
            if isinstance(value, list):
                self.merged.setdefault(key, []).extend(value)
