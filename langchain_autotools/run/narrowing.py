"""Narrowing of a turn's calls to the tools of its own request, where a wrapper of turns has declared fewer than the run has."""

from collections.abc import Collection, Mapping
from typing import Any

from langchain_core.messages import AIMessage

from ..executor.resolution import Meaning, forbidden
from ..messages.calls import AWAITS, ToolCallRecord
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
    meaning = Meaning(dict.fromkeys([*known, *allowed]), caller_tools, allowed)
    changed: dict[str, Any] = {}
    if "blocked" in verdict and verdict["calls"]:
        changed["calls"] = [{**record, **_refusal(record, meaning)} for record in verdict["calls"]]
    if AWAITS in verdict:
        changed[AWAITS] = [{**entry, **_refusal_of_item(entry, known, allowed)} for entry in verdict[AWAITS]]
    return part.model_copy(update={"response_metadata": {**part.response_metadata, KEY: {**verdict, **changed}}}) if changed else part


def _refusal(record: Mapping[str, Any], meaning: Meaning) -> dict[str, Any]:
    """Return the reason why a call must not run, as an entry of its verdict; empty if it may."""
    arguments = record["arguments"]
    call = ToolCallRecord(record["id"], record["name"], arguments, read_object(arguments), extra=record.get("extra", {}))
    if not record["ok"] or call.args is None:
        return {}
    if call.toolset is not None:
        declared = [name for name in meaning.tools if name == call.toolset or name.startswith(f"{call.toolset}_toolset")]
        return _left_out(call.name, declared, meaning.only)
    meant = meaning.of(call)
    refused = [one.why for one in meant.inner or (meant,) if one.args is None]
    return {"why": refused[0]} if refused else {}


def _refusal_of_item(entry: Mapping[str, Any], known: Collection[str], allowed: Collection[str]) -> dict[str, Any]:
    """The same of a call that is the vendor's own item: its entry says which tools make such items."""
    declared = [name for name in known if name in entry.get("tools", ())]
    return _left_out(str(entry["answer"]).removesuffix("_output"), declared, allowed)


def _left_out(name: str, declared: Collection[str], allowed: Any) -> dict[str, Any]:
    """The same of a call of a tool of the vendor's that is declared under one of these names, or not at all."""
    return {"why": forbidden(name, allowed)} if declared and not any(one in allowed for one in declared) else {}
