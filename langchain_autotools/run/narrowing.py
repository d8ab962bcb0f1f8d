"""Narrowing of a turn's calls to the tools of its own request, where a wrapper of turns has declared fewer than the run has."""

from collections.abc import Collection, Mapping
from typing import Any

from langchain_core.messages import AIMessage

from ..executor.resolution import Meaning
from ..messages.calls import ToolCallRecord
from ..messages.metadata import KEY
from ..strict_json import read_object


def narrowed(part: AIMessage, known: Collection[str], allowed: Collection[str], caller_tools: Collection[str]) -> AIMessage:
    """Return a part of a turn whose verdict lets only calls of allowed tools run, however they are written.

    Args:
        part: The part; one without a verdict is returned as it is.
        known: The names of the run's tools.
        allowed: The names of those that the turn's request has left.
        caller_tools: The names of those whose calls are left to the caller.
    """
    verdict = part.response_metadata[KEY]
    if "blocked" not in verdict or not verdict["calls"]:
        return part
    meaning = Meaning(dict.fromkeys([*known, *allowed]), caller_tools, allowed)
    calls = [{**record, **_refusal(record, meaning)} for record in verdict["calls"]]
    return part.model_copy(update={"response_metadata": {**part.response_metadata, KEY: {**verdict, "calls": calls}}})


def _refusal(record: Mapping[str, Any], meaning: Meaning) -> dict[str, Any]:
    """Return the reason why a call must not run, as an entry of its verdict; empty if it may."""
    arguments = record["arguments"]
    call = ToolCallRecord(record["id"], record["name"], arguments, read_object(arguments), extra=record.get("extra", {}))
    if not record["ok"] or call.args is None:
        return {}
    meant = meaning.of(call)
    refused = [one.why for one in meant.inner or (meant,) if one.args is None]
    return {"why": refused[0]} if refused else {}
