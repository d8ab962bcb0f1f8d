"""Parsing of posts of AI SDK pages, restricted to what a page may send."""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from pydantic import SecretStr

from ..errors import ConfigurationError
from ..executor.approval.elicitation import ELICITATION
from .posted import Posted, PostedDecisions, read_body

_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+", re.ASCII)
_KINDS = ("image", "audio", "video")
_EDITED = "data-edited-arguments"
_QUESTION = f" > {ELICITATION}"


def from_ai_sdk(body: Any, history: Sequence[BaseMessage], *, approval_key: str | SecretStr | None = None) -> Posted:
    """Parse the post of a page with `useChat`: the user's new message, or decisions about pending calls.

    The page posts the whole conversation as it has it. Nothing of that is believed but what the last message says: a user's message is
    taken with its text and files; of an assistant message the answers to approvals whose signature holds, the outputs of calls that were
    left to the page, and the answers to questions of MCP servers: outputs of the form `{"action": "accept", "content": {...}}`,
    `{"action": "decline"}` or `{"action": "cancel"}`. An approved call runs with other arguments where the body has them, as
    `{"edits": {call id: arguments}}`, or the message has a part `data-edited-arguments` with `toolCallId` and `input`.

    A post that asks for a reply anew (`regenerate`) brings nothing, for its message is in the history.

    Args:
        body: The body of the request: bytes, a text, or what was parsed of it.
        history: The messages that the server keeps of this conversation.
        approval_key: The `approval_key` of the model. Without it no approvals are taken.

    Returns:
        The new messages and the decisions. What was left out is logged as a warning.

    Raises:
        ConfigurationError: The body is no such post, the answer to a question does not fit its schema, or an argument is wrong.
    """
    body = read_body(body)
    decisions = PostedDecisions(history, approval_key)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(one, Mapping) for one in messages):
        raise ConfigurationError("the posted body has no messages")
    if any(one.get("role") not in ("user", "assistant") for one in messages):
        decisions.drop("messages that are neither the user's nor the assistant's")
    parts = messages[-1].get("parts")
    if not isinstance(parts, list) or not all(isinstance(one, Mapping) for one in parts):
        raise ConfigurationError("the last of the posted messages has no parts")
    match messages[-1].get("role"), body.get("trigger"):
        case _, "regenerate-message":
            return Posted([], [])
        case "user", _:
            return Posted([_message(parts, decisions)], [])
        case "assistant", _:
            _decide(parts, _edits(body, parts), decisions, {one.tool_call_id for one in history if isinstance(one, ToolMessage)})
    return Posted([], decisions.decisions)


# ---------------------------------------------------------------------------------------------- the user's message


def _message(parts: Sequence[Mapping[str, Any]], decisions: PostedDecisions) -> HumanMessage:
    blocks: list[str | dict[str, Any]] = []
    for part in parts:
        text, url = part.get("text"), part.get("url")
        if part.get("type") == "text" and isinstance(text, str):
            blocks.append({"type": "text", "text": text})
        elif part.get("type") == "file" and isinstance(url, str) and url.lower().startswith(("data:", "https:", "http:")):
            blocks.append(_file(part, url))
        else:
            decisions.drop("parts of the user's message that are neither text nor files")
    if not any(block.get("text", True) for block in blocks if isinstance(block, dict)):
        raise ConfigurationError("the user's message is empty")
    match blocks:
        case [{"type": "text", "text": str() as only}]:
            return HumanMessage(only)
    return HumanMessage(blocks)


def _file(part: Mapping[str, Any], url: str) -> dict[str, Any]:
    media_type, name = part.get("mediaType"), part.get("filename")
    if not isinstance(media_type, str) or not _MEDIA_TYPE.fullmatch(media_type):
        raise ConfigurationError("a file of the user's message has no media type")
    kind = media_type.partition("/")[0]
    block: dict[str, Any] = {"type": kind if kind in _KINDS else "file", "mime_type": media_type}
    if isinstance(name, str) and name:
        block["extras"] = {"filename": name}
    return {**block, "base64": _data(url)} if url.lower().startswith("data:") else {**block, "url": url}


def _data(url: str) -> str:
    head, _, data = url.partition(",")
    try:
        if head.endswith(";base64"):
            base64.b64decode(data, validate=True)
            return data
        return base64.b64encode(unquote_to_bytes(data)).decode()
    except (binascii.Error, ValueError):
        raise ConfigurationError("a file of the user's message is no base64") from None


# ---------------------------------------------------------------------------------------------- decisions


def _edits(body: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the edited arguments of calls, by their ids."""
    given = body.get("edits", {})
    data = [part.get("data") for part in parts if part.get("type") == _EDITED]
    if not isinstance(given, Mapping) or not all(isinstance(one, Mapping) for one in data):
        raise ConfigurationError("edited arguments are objects, by the ids of their calls")
    return {**{str(one.get("toolCallId")): one.get("input") for one in data if isinstance(one, Mapping)}, **given}


def _decide(parts: Sequence[Mapping[str, Any]], edits: dict[str, Any], decisions: PostedDecisions, answered: set[str]) -> None:
    for part in parts:
        kind, state = part.get("type"), part.get("state")
        if not isinstance(kind, str) or not (kind == "dynamic-tool" or kind.startswith("tool-")) or part.get("providerExecuted"):
            continue
        call_id = str(part.get("toolCallId"))
        if state == "approval-responded":
            _answer(call_id, part.get("approval"), edits, decisions)
        elif call_id in answered or (kind.endswith(_QUESTION) and not decisions.is_question(call_id)):
            continue
        elif state in ("output-available", "output-error") and decisions.is_question(call_id):
            _reply(call_id, part, decisions)
        elif state == "output-available" and part.get("preliminary") is not True:
            decisions.respond(call_id, part.get("output"))
        elif state == "output-error":
            decisions.fail(call_id, part.get("errorText"))


def _reply(call_id: str, part: Mapping[str, Any], decisions: PostedDecisions) -> None:
    """Add the answer to the question of an MCP server: the output of its part, as the protocol of MCP has it. An error dismisses it."""
    output = part.get("output") if part.get("state") == "output-available" else {"action": "cancel"}
    answer = output if isinstance(output, Mapping) else {}
    decisions.answer(call_id, answer.get("action"), answer.get("content"))


def _answer(call_id: str, approval: Any, edits: dict[str, Any], decisions: PostedDecisions) -> None:
    if not isinstance(approval, Mapping) or not isinstance(approval.get("approved"), bool):
        raise ConfigurationError("the answer to an approval does not say whether it is approved")
    approved, signature = approval["approved"], approval.get("signature")
    waiting = decisions.pending.get(call_id)
    if waiting is not None and waiting.kind == "queued" and approved:
        return  # the encoder's own: it runs once the calls before it are decided
    if not approved:
        decisions.reject(call_id, signature, approval.get("reason"))
    elif call_id not in edits:
        decisions.approve(call_id, signature)
    elif isinstance(edits[call_id], dict):
        decisions.approve(call_id, signature, args=edits[call_id])
    else:
        raise ConfigurationError(f"the edited arguments of call {call_id!r} are no object")
