"""The stored outline of a reply's output items, from which they are sent back unchanged.

A reasoning item must go back together with the item that follows it, in order and unchanged; so must whatever the vendor's own
tools did. LangChain's message already holds the texts and the calls. What is kept beside them is an outline: each item without
its text and its call, which are put in again from the message. A message that was edited no longer fits its outline, and goes
back as text and calls alone, which is always legal.

Wire facts: "Item of type 'reasoning' was provided without its required following item" and the reverse (wire quirk P-05); items that
the server does not store are unknown to it by their id; `status` and what other servers add is refused by some.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from ....messages.calls import ToolCallRecord
from ..calls import custom_input, legal_name
from .wire import Item, ItemPart

FUNCTION_CALL = "function_call"
CUSTOM_CALL = "custom_tool_call"
CALL_TYPES = frozenset({FUNCTION_CALL, CUSTOM_CALL})

MODEL_MADE = frozenset({"message", "reasoning", *CALL_TYPES})
_NEVER_SENT = frozenset({"created_by", "parsed_arguments", "parsed", "sequence_number"})
_OF_A_CALL = frozenset({"name", "arguments", "input", "call_id", "item_id", "output_index"})
_BARE = frozenset({"type", "name"})
# The API takes these without their id: where the server does not keep what it sent, it knows none.
_MAY_LACK_ID = frozenset({"shell_call", "apply_patch_call"})


def text_of_item(item: Item) -> str:
    """Return the text of a message item."""
    return "".join(str(part.get("text") or "") for part in parts_of(item) if part.get("type") == "output_text")


def parts_of(item: Item, key: Literal["content", "summary"] = "content") -> list[ItemPart]:
    """Return the parts of an item's content or summary.

    Args:
        item: The item.
        key: The list to return.
    """
    parts = item.get(key)
    return [part for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []


# ---------------------------------------------------------------------------------------------- what is kept


def outline(items: Sequence[Item], *, stored: bool) -> list[Item]:
    """Return the outline of a reply's items; empty if text and calls alone suffice.

    Args:
        items: The output items, complete and in order.
        stored: Whether the server keeps them: then it knows them by their ids, else ids mean nothing to it.
    """
    kept = [entry for entry in (_entry(item, stored) for item in items) if entry is not None]
    return [] if _is_plain(kept) else kept


def _entry(item: Item, stored: bool) -> Item | None:
    kind = item.get("type")
    hidden = _NEVER_SENT | ({"status"} if kind in MODEL_MADE else set()) | (_OF_A_CALL if kind in CALL_TYPES else set())
    entry: Item = _without({key: value for key, value in item.items() if value is not None}, hidden)
    if (kind in MODEL_MADE or kind in _MAY_LACK_ID) and not stored:
        entry.pop("id", None)
    if kind == "message":
        return {**entry, "content": [_measured(part) for part in parts_of(item)]}
    if kind == "reasoning":
        return _reasoning_entry(entry)
    return {**entry, "name": item.get("name")} if kind in CALL_TYPES else entry


def _without(part: Mapping[str, object], keys: Collection[str]) -> Any:
    """Return an item or part without some of its keys."""
    return {key: value for key, value in part.items() if key not in keys}


def _measured(part: ItemPart) -> ItemPart:
    """Return a part with its text replaced by the text's length, and without log probabilities."""
    if part.get("type") != "output_text":
        return {**part}
    kept: ItemPart = _without({key: value for key, value in part.items() if value}, ("text", "logprobs", "parsed"))
    return {**kept, "length": len(str(part.get("text") or ""))}


def _reasoning_entry(entry: Item) -> Item | None:
    """Return a reasoning item; None for one that is neither stored nor complete, whose content is lost."""
    if not entry.get("content"):
        entry.pop("content", None)
    if not ("id" in entry or "encrypted_content" in entry or "content" in entry):
        return None
    return {**entry, "summary": entry.get("summary") or []}


def _is_plain(entries: Sequence[Item]) -> bool:
    """Whether the entries are at most one text message followed by function calls, ignoring ids."""
    kinds = [entry.get("type") for entry in entries]
    if set(kinds[1:]) - {FUNCTION_CALL} or set(kinds[:1]) - {"message", FUNCTION_CALL}:
        return False
    if kinds[:1] == ["message"] and (
        entries[0].keys() - {"type", "id", "role", "content"} or any(part.keys() != {"type", "length"} for part in parts_of(entries[0]))
    ):
        return False
    return not any(entry.keys() - _BARE - {"id"} for entry in entries if entry.get("type") == FUNCTION_CALL)


# ---------------------------------------------------------------------------------------------- how it goes back


def restored(entries: Any, text: str, calls: Sequence[ToolCallRecord], ids: Sequence[str]) -> list[Item] | None:
    """Return the original items of a reply; None if the message has been changed.

    Args:
        entries: The outline.
        text: The message's text.
        calls: The message's calls.
        ids: The id that each of them is sent with.
    """
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        return None
    outlined: list[Item] = entries
    named = [entry.get("name") for entry in outlined if entry.get("type") in CALL_TYPES]
    if named != [call.name for call in calls] or any(call.args is None or legal_name(call.name) != call.name for call in calls):
        return None
    rest = iter(zip(calls, ids, strict=True))
    items: list[Item] = []
    start = 0
    for entry in outlined:
        if entry.get("type") in CALL_TYPES:
            items.append(_with_call(entry, *next(rest)))
        elif entry.get("type") == "message":
            item, start = _with_text(entry, text, start)
            items.append(item)
        else:
            items.append({**entry})
    return items if start == len(text) else None


def _with_call(entry: Item, call: ToolCallRecord, identifier: str) -> Item:
    if entry["type"] == CUSTOM_CALL:
        return {**entry, "call_id": identifier, "input": custom_input(call)}
    return {**entry, "call_id": identifier, "arguments": call.arguments}


def _with_text(entry: Item, text: str, start: int) -> tuple[Item, int]:
    parts: list[ItemPart] = []
    for part in parts_of(entry):
        if "length" not in part:
            parts.append({**part})
            continue
        end = start + int(part["length"])
        kept: ItemPart = _without(part, ("length",))
        parts.append({"annotations": [], **kept, "text": text[start:end]})
        start = end
    return {**entry, "content": parts}, start
