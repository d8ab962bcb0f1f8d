"""Calls of the vendor's tools that the caller answers: a shell, patches, a computer, approvals of remote tools.

Nothing here runs them. They stand in the message as the items that they are, end a run as pending, and go back together with the
answer that the caller gives, by a decision or as a message, which the API insists on (all but approvals).

Wire facts: an answer is an item of type `..._output` that repeats the call's `call_id`; a local shell's repeats it as `id`; an
approval is an `mcp_approval_response` that repeats the request's `id`; a shell in the vendor's own container (the call's
`environment` is a `container_reference`) is answered in the reply itself (platform.openai.com/docs/api-reference/responses/create).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ....messages.calls import CLIENT_TOOL, VENDOR_APPROVAL, id_of_item
from .wire import Item

_CALLS = frozenset({"computer_call", "local_shell_call", "shell_call", "apply_patch_call"})
_CONTAINER = "container_reference"
_APPROVAL = "mcp_approval_request"
_SEARCH = "tool_search_call"
APPROVED = "mcp_approval_response"
"""The item type for the approval or rejection of a remote tool call."""
FOUND_TOOLS = "tool_search_output"
"""The item type for the tools that a search has found."""
_HANDLERS = {
    **{"computer_call": "computer", "local_shell_call": "shell", "shell_call": "shell", "apply_patch_call": "apply_patch"},
    **{_APPROVAL: "mcp_approval", _SEARCH: "tool_search"},
}
_SCREENS = ("computer", "computer_use", "computer_use_preview")
_MAKERS: Mapping[str, Sequence[str]] = {"computer_call": _SCREENS, _APPROVAL: ("mcp",)}
_TOOLS = frozenset({"shell", "local_shell", "apply_patch", *_SCREENS})


def answers_in_blocks(tools: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a reply may need content blocks: calls for the caller to answer, or partial images."""
    return any(tool.get("type") in _TOOLS or _asks(tool) or _shows(tool) for tool in tools)


def _asks(tool: Mapping[str, Any]) -> bool:
    kind = tool.get("type")
    approves = kind == "mcp" and tool.get("require_approval") != "never"
    return approves or (kind == "tool_search" and tool.get("execution") == "client")


def pending_calls(items: Sequence[Item]) -> list[Item]:
    """Return the items of a reply that wait for the caller: calls on the caller's machine, and approval requests."""
    open_calls = client_calls(items)
    return [item for item in items if item.get("type") == _APPROVAL or (is_for_client(item) and item in open_calls)]


def awaited_entry(item: Item) -> dict[str, Any]:
    """Return the record of a waiting item: its id, what it waits for, the kind of handlers for it, the type of its answer, and the names of
    the tools that make such items."""
    kind = str(item.get("type"))
    tools = _MAKERS.get(kind, (kind.removesuffix("_call"),))
    known = {"id": id_of_item(item), "handler": _HANDLERS[kind], "tools": [*tools]}
    if kind == _APPROVAL:
        return {**known, "kind": VENDOR_APPROVAL, "answer": APPROVED}
    return {**known, "kind": CLIENT_TOOL, "answer": FOUND_TOOLS if kind == _SEARCH else f"{kind}_output"}


def _shows(tool: Mapping[str, Any]) -> bool:
    return tool.get("type") == "image_generation" and bool(tool.get("partial_images"))


def client_calls(items: Sequence[Item]) -> list[Item]:
    """Return the unanswered calls that no request may contain without an answer, those of a shell in the vendor's own container too."""
    answered = {answered_id(item) for item in items}
    return [item for item in items if _is_answered_by_item(item) and not names_of(item) & answered]


def is_for_client(item: Item) -> bool:
    """Whether an item is a call that the caller's machine answers."""
    place = item.get("environment")
    return _is_answered_by_item(item) and not (isinstance(place, Mapping) and place.get("type") == _CONTAINER)


def _is_answered_by_item(item: Item) -> bool:
    return item.get("type") in _CALLS or (item.get("type") == _SEARCH and item.get("execution") == "client")


def names_of(call: Item) -> frozenset[str]:
    """Return the ids by which an answer may refer to a call."""
    names = (call.get("call_id"), call.get("id") if call.get("type") == "local_shell_call" else None)
    return frozenset(str(name) for name in names if name)


def answered_id(item: Item) -> str | None:
    """Return the id of the call that an item answers; None for other items."""
    kind = str(item.get("type"))
    if not kind.endswith("_output"):
        return None
    named = item.get("call_id") or (item.get("id") if kind == "local_shell_call_output" else None)
    return str(named) if named else None
