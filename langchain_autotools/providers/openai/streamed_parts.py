"""Parts of a streamed reply that are only useful as a whole, assembled from fragments.

LangChain's sum of chunks joins strings under equal keys, which would double ids, formats and types; so these are put together
here and handed on once.
"""

from collections.abc import Iterable, Mapping
from typing import Any

_GROWING = ("text", "summary")
_PLAIN = frozenset({"type", "thinking", "closed"})
_CONTINUED = frozenset({"reasoning.text", "reasoning.summary"})


def add_reasoning_details(details: list[Any], fragments: Iterable[Any]) -> None:
    """Add one delta's structured reasoning (`reasoning_details`): text and summaries grow; encrypted blocks and signatures are whole.

    The order is kept: the server wants back what it sent (openrouter.ai/docs/use-cases/reasoning-tokens).

    Args:
        details: The details so far; changed in place.
        fragments: The delta's fragments.
    """
    for fragment in fragments:
        last = details[-1] if details else None
        if isinstance(fragment, Mapping) and isinstance(last, dict) and _continues(last, fragment):
            _grow(last, fragment)
        else:
            details.append(dict(fragment) if isinstance(fragment, Mapping) else fragment)


def _continues(last: Mapping[str, Any], fragment: Mapping[str, Any]) -> bool:
    """Whether a fragment continues the last detail: same kind, same place, and not signed yet."""
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


def add_thinking(parts: list[dict[str, Any]], fragment: Mapping[str, Any]) -> None:
    """Add one fragment of a thinking part: its texts grow, and what is signed is not continued.

    Args:
        parts: The parts so far; changed in place.
        fragment: The fragment.
    """
    inner = fragment.get("thinking")
    entries = inner if isinstance(inner, list) else [{"type": "text", "text": text_of(inner)}] if inner else []
    if not parts or (entries and parts[-1].get("signature")):
        parts.append({"type": "thinking", "thinking": []})
    part = parts[-1]
    part.update((key, value) for key, value in fragment.items() if key != "thinking" and value is not None)
    for entry in entries:
        last = part["thinking"][-1] if part["thinking"] else {}
        if _is_text(last) and _is_text(entry):
            last["text"] += entry["text"]
        else:
            part["thinking"].append(dict(entry) if isinstance(entry, Mapping) else {"type": "text", "text": str(entry)})


def _is_text(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.keys() == {"type", "text"} and isinstance(entry["text"], str)


def is_more_than_text(parts: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether thinking parts hold anything but text and that they are whole: a signature, sources."""
    return any(part.keys() - _PLAIN or part.get("closed") is False or not all(map(_is_text, part["thinking"])) for part in parts)


def text_of(value: Any) -> str:
    """Return reasoning as text, from a string, a list of parts, or an object around one of these."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return text_of(value.get("text") or value.get("content") or value.get("thinking") or "")
    return "".join(map(text_of, value)) if isinstance(value, list) else ""


def add_audio(audio: dict[str, Any], fragment: Mapping[str, Any]) -> None:
    """Add one delta of an audio reply: data and transcript grow; id and expiry are set once; empty values are ignored.

    Args:
        audio: The audio so far; changed in place.
        fragment: The delta's fragment.
    """
    for key, value in fragment.items():
        if value:
            audio[key] = audio.get(key, "") + value if key in ("data", "transcript") else value


def add_log_probabilities(log_probabilities: dict[str, list[Any]], fragment: Any) -> None:
    """Add the log probabilities of one choice to the lists so far.

    Args:
        log_probabilities: The lists so far; changed in place.
        fragment: The choice's log probabilities.
    """
    for key, value in fragment.items() if isinstance(fragment, Mapping) else ():
        if isinstance(value, list):
            log_probabilities.setdefault(key, []).extend(value)
