"""Calls and outputs in the input of a request to the Responses API: what of them it refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.strict import Rejection

Item = Mapping[str, Any]

_OF_CLIENTS = ("shell_call", "local_shell_call", "apply_patch_call", "computer_call")


def check_pairing(items: Sequence[Item], continued: bool) -> None:
    """Each call is answered once, after it; each output answers a call before it."""
    _check_clients(items, continued)
    waiting: dict[str, bool] = {}
    for position, item in enumerate(items):
        kind = item.get("type", "message")
        if kind in ("function_call", "custom_tool_call"):
            if item["call_id"] in waiting:
                raise Rejection(f"Duplicate call_id '{item['call_id']}' in input.", f"input[{position}].call_id", "invalid_value")
            waiting[item["call_id"]] = kind == "custom_tool_call"
        elif kind in ("function_call_output", "custom_tool_call_output"):
            custom = waiting.get(item["call_id"])
            if item["call_id"] not in waiting and continued:
                continue
            if custom is not (kind == "custom_tool_call_output"):
                raise Rejection(f"No tool call found for function call output with call_id {item['call_id']}.", "input")
            waiting[item["call_id"]] = None  # type: ignore[assignment]
    open_calls = [call for call, custom in waiting.items() if custom is not None]
    if open_calls:
        raise Rejection(f"No tool output found for function call {open_calls[0]}.", "input")


def _check_clients(items: Sequence[Item], continued: bool) -> None:
    """So is each call of the vendor's tools on the client's machine."""
    answered = {item.get("call_id") or item.get("id") for item in items if str(item.get("type")).endswith("_call_output")}
    asked = [item for item in items if item.get("type") in _OF_CLIENTS]
    unanswered = next((item for item in asked if not {item["call_id"], item.get("id")} & answered), None)
    if unanswered is not None:
        raise Rejection(f"No tool output found for {unanswered['type'].replace('_', ' ')} {unanswered['call_id']}.", "input")
    unasked = [item for item in items if item.get("type") in {f"{kind}_output" for kind in _OF_CLIENTS} and not continued]
    known = {name for item in asked for name in (item["call_id"], item.get("id"))}
    if any((item.get("call_id") or item.get("id")) not in known for item in unasked):
        raise Rejection("No tool call found for an output.", "input")
