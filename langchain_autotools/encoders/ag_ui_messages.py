"""Conversion of LangChain's messages to those of an AG-UI client or back, without `ag_ui` itself."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from pydantic import BaseModel, SecretStr

from ..errors import ConfigurationError, DecisionProblem
from ..executor.pending import APPROVABLE, ELICITATION
from ..history.expansion import expand
from ..messages.blocks import standard_blocks
from ..messages.calls import ToolCallRecord
from ..messages.metadata import text_of
from ..strict_json import mend_surrogates
from .posted import Posted, PostedDecisions, read_body, signature_of
from .public import page_calls, plain, public_message, to_json

_PARTS: Final[Mapping[str, str]] = {"image": "image", "audio": "audio", "video": "video", "file": "document"}
_BLOCKS: Final[Mapping[Any, str]] = {part: block for block, part in _PARTS.items()}
_LINKS: Final = ("https://", "http://", "data:")
_UNKNOWN: Final = "application/octet-stream"
_IGNORED_FIELDS: Final = {"tools": "tools", "context": "context", "state": "state", "forwardedProps": "forwarded properties"}
_IDS: Final = ("threadId", "runId")
_AGENT_ROLES: Final = ("assistant", "tool")
_KNOWN_ROLES: Final = ("user", "reasoning", "activity", *_AGENT_ROLES)


def page_messages(history: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Return the messages of the user, the model and its tools. System messages are not for pages."""
    return [
        {"id": _posted_id(message, place), **_message_data(public_message(message))}
        for place, message in enumerate(history)
        if isinstance(message, HumanMessage | AIMessage | ToolMessage)
    ]


def _message_data(message: BaseMessage) -> dict[str, Any]:
    if isinstance(message, ToolMessage):
        ran = ToolCallRecord(message.tool_call_id, "", "").carried_out(message)
        told = {"autotools": {"status": message.status, **({"editedArguments": plain(ran.args)} if ran.edited else {})}}
        return {"role": "tool", "toolCallId": mend_surrogates(message.tool_call_id), "content": content_parts(message), "metadata": told}
    if not isinstance(message, AIMessage):
        return {"role": "user", "content": content_parts(message)}
    calls = [
        {"id": mend_surrogates(call.id), "function": {"name": mend_surrogates(call.name), "arguments": mend_surrogates(call.arguments)}}
        for call in page_calls(message)
    ]
    return {"role": "assistant", "content": mend_surrogates(text_of(message)), **({"toolCalls": calls} if calls else {})}


def _posted_id(message: BaseMessage, place: int) -> str:
    """Return the page's id of a message: its own, else one derived from its position."""
    return mend_surrogates(message.id) if message.id else f"message {place + 1}"


# ---------------------------------------------------------------------------------------------- what a client posts


def from_ag_ui(
    body: Any,
    history: Sequence[BaseMessage],
    *,
    approval_key: str | SecretStr | None = None,
    check: Callable[..., Sequence[DecisionProblem]] | None = None,
) -> Posted:
    """Parse the `RunAgentInput` that a client of AG-UI posts.

    Taken are the user's new message, answers to the interrupts of calls and questions that wait in `history`, and results of calls that
    were left to the page. Everything else is the page's word and is left out, with a warning: the history is the server's own.

    Args:
        body: The body: bytes, a text, or what was parsed of it, also a `RunAgentInput` of `ag_ui.core`.
        history: The server's own messages of this thread.
        approval_key: The model's. Without it no answers to interrupts of calls are taken.
        check: The model's `check`, or any function of the history and the decisions that returns what is wrong with these.

    Returns:
        The user's new message (with the id that the page gave it), if there is one, and decisions.

    Raises:
        ConfigurationError: The body is no `RunAgentInput`, or another argument cannot be what it should.
        DecisionsError: The answer to a question does not fit its schema, or `check` finds that a decision cannot be carried out.
    """
    fields = read_body(body.model_dump(by_alias=True) if isinstance(body, BaseModel) else body)
    messages, resume = fields.get("messages"), fields.get("resume")
    if not (isinstance(messages, list) and isinstance(resume, list | None) and all(isinstance(fields.get(key), str) for key in _IDS)):
        raise ConfigurationError("the posted body is no RunAgentInput: that has threadId, runId and messages")
    decisions = PostedDecisions(history, approval_key)
    kept, posted = expand(history), [message for message in messages if isinstance(message, Mapping)]
    for key in _IGNORED_FIELDS:
        if fields.get(key):
            decisions.drop(_IGNORED_FIELDS[key])
    _add_answers(resume or [], decisions)
    _add_results(posted, kept, decisions)
    return Posted(_new_message(posted, kept, decisions), decisions.checked(check))


def _add_answers(resume: Sequence[Any], decisions: PostedDecisions) -> None:
    """Add the answers to interrupts: each contains the signature of its call."""
    waiting = {signature_of(call): call_id for call_id, call in decisions.pending.items() if call.kind in (*APPROVABLE, ELICITATION)}
    for entry in resume:
        interrupt = entry.get("interruptId") if isinstance(entry, Mapping) else None
        call_id = waiting.get(interrupt) if isinstance(interrupt, str) else None
        if call_id is None:
            decisions.drop("answers to interrupts that are not open")
            continue
        status, payload = entry.get("status"), entry.get("payload")
        answer = payload if isinstance(payload, Mapping) else {}
        if decisions.is_question(call_id):  # of an MCP server: the payload, by the schema of the interrupt
            if status in ("resolved", "cancelled"):
                decisions.answer(call_id, "accept" if status == "resolved" else "cancel", payload)
            else:
                decisions.drop("answers to interrupts that are neither resolved nor cancelled")
        elif status == "cancelled" or (status == "resolved" and answer.get("approved") is False):
            decisions.reject(call_id, interrupt, answer.get("reason"))
        elif status == "resolved" and answer.get("approved") is True and isinstance(answer.get("editedArgs"), dict | None):
            decisions.approve(call_id, interrupt, args=answer.get("editedArgs"))
        else:
            decisions.drop("answers to interrupts that say neither yes nor no")


def _add_results(posted: Sequence[Mapping[str, Any]], history: Sequence[BaseMessage], decisions: PostedDecisions) -> None:
    """Add the results of calls left to the page. Those of the history are skipped."""
    known = {message.tool_call_id for message in history if isinstance(message, ToolMessage)}
    for message in posted:
        call_id = _text_field(message, "toolCallId")
        if message.get("role") != "tool" or call_id in known or "subagentRunId" in message:
            continue
        why = _text_field(message, "error")
        if why is None:
            decisions.respond(call_id, _read_parts(message.get("content"), decisions.drop))
        else:
            decisions.fail(call_id, why)


def _new_message(posted: Sequence[Mapping[str, Any]], history: Sequence[BaseMessage], decisions: PostedDecisions) -> list[BaseMessage]:
    """Return the user's message after all answered ones, unless the history has it already."""
    known = {_posted_id(message, place) for place, message in enumerate(history)}
    roles = [message.get("role") for message in posted]
    if any(role not in _KNOWN_ROLES for role in roles):
        decisions.drop("messages in the name of the system or of a developer")
    behind = max((place for place, role in enumerate(roles) if role in _AGENT_ROLES), default=-1)
    users = [message for message in posted[behind + 1 :] if message.get("role") == "user"]
    new = [message for message in users if _text_field(message, "id") is None or _text_field(message, "id") not in known]
    if len(new) > 1:
        decisions.drop("messages of the user before the last one")
    content = _read_parts(new[-1].get("content"), decisions.drop) if new else None
    return [] if content is None else [HumanMessage(content, id=_text_field(new[-1], "id"))]


def _text_field(message: Mapping[str, Any], key: str) -> str | None:
    value = message.get(key)
    return value if isinstance(value, str) and value else None


# ---------------------------------------------------------------------------------------------- the content of messages


def content_parts(message: BaseMessage) -> str | list[dict[str, Any]]:
    """Return the content of a result: its text, or its parts. A block without a form in the protocol becomes JSON text."""
    if isinstance(message.content, str):
        return mend_surrogates(message.content)
    return [_content_part(block) for block in standard_blocks(message)]


def _content_part(block: Mapping[str, Any]) -> dict[str, Any]:
    kind, source = block.get("type", ""), _part_source(block)
    if kind in _PARTS and source is not None:
        return {"type": _PARTS[kind], "source": source}
    text = block.get("text") if kind == "text" else None
    other = block.get("value", block) if kind == "non_standard" else block  # what LangChain puts around an object that is no block
    return {"type": "text", "text": mend_surrogates(text) if isinstance(text, str) else to_json(other)}


def _part_source(block: Mapping[str, Any]) -> dict[str, Any] | None:
    mime_type = block.get("mime_type")
    mime = {"mimeType": mime_type} if isinstance(mime_type, str) else {}
    if isinstance(block.get("base64"), str):
        return {"type": "data", "value": block["base64"], "mimeType": _UNKNOWN, **mime}
    for key, kind in (("url", "url"), ("file_id", "file")):
        if isinstance(block.get(key), str):
            return {"type": kind, "value": block[key], **mime}
    return None


def _read_parts(content: Any, drop: Callable[[str], None]) -> str | list[str | dict[Any, Any]] | None:
    """Return a page's content as the content of a message; None if it is empty.

    Args:
        content: A text, or parts.
        drop: Told of what is left out: parts that are none, and files that only an id at a vendor names, which may be anybody's.
    """
    if isinstance(content, str):
        return content or None
    blocks: list[str | dict[Any, Any]] = []
    for part in content if isinstance(content, list) else ():
        block = _block(part) if isinstance(part, Mapping) else None
        if block is None:
            drop("parts of a message that are neither text nor a file with its data or its address")
        else:
            blocks.append(block)
    return blocks or None


def _block(part: Mapping[str, Any]) -> dict[str, Any] | None:
    kind, source = part.get("type"), part.get("source")
    if kind == "text" and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if not (isinstance(kind, str) and kind in _BLOCKS and isinstance(source, Mapping) and isinstance(source.get("value"), str)):
        return None
    mime_type, value = source.get("mimeType"), source["value"]
    mime = {"mime_type": mime_type} if isinstance(mime_type, str) else {}
    if source.get("type") == "data" and mime:
        return {"type": _BLOCKS[kind], "base64": value, **mime}
    if source.get("type") == "url" and value.lower().startswith(_LINKS):
        return {"type": _BLOCKS[kind], "url": value, **mime}
    return None
