"""Conversion of a history to AG-UI's messages, for a page without any."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from ..messages.calls import ToolCallRecord, awaited_calls, calls_of, canonical_call
from ..messages.metadata import text_of
from ..strict_json import mend_surrogates
from .ag_ui_content import content_parts


def page_id(message: BaseMessage, place: int) -> str:
    """Return the page's id of a message: its own, else one derived from its position."""
    return mend_surrogates(message.id) if message.id else f"message {place + 1}"


def page_calls(message: AIMessage) -> list[ToolCallRecord]:
    """Return the calls of a message that a page is shown: also the vendor's own items that something here answers."""
    return [*calls_of(message), *map(canonical_call, awaited_calls(message))]


def page_messages(history: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Return the messages of the user, the model and its tools. System messages are not for pages."""
    return [
        {"id": page_id(message, place), **_said(message)}
        for place, message in enumerate(history)
        if isinstance(message, HumanMessage | AIMessage | ToolMessage)
    ]


def _said(message: BaseMessage) -> dict[str, Any]:
    if isinstance(message, ToolMessage):
        told = {"autotools": {"status": message.status}}
        return {"role": "tool", "toolCallId": mend_surrogates(message.tool_call_id), "content": content_parts(message), "metadata": told}
    if not isinstance(message, AIMessage):
        return {"role": "user", "content": content_parts(message)}
    calls = [
        {"id": mend_surrogates(call.id), "function": {"name": mend_surrogates(call.name), "arguments": mend_surrogates(call.arguments)}}
        for call in page_calls(message)
    ]
    return {"role": "assistant", "content": mend_surrogates(text_of(message)), **({"toolCalls": calls} if calls else {})}
