"""Parsing of AG-UI clients' posts: the user's new message, answers to interrupts, and results of the page's own tools."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from pydantic import BaseModel, SecretStr

from ..errors import ConfigurationError
from ..executor.approval.elicitation import ELICITATION
from ..executor.approval.pending import APPROVABLE
from ..history.expansion import expand
from .ag_ui_content import read_parts
from .ag_ui_history import page_id
from .posted import Posted, PostedDecisions, read_body, signature_of

_LEFT_OUT: Final = {"tools": "tools", "context": "context", "state": "state", "forwardedProps": "forwarded properties"}
_IDS: Final = ("threadId", "runId")
_WRITERS: Final = ("assistant", "tool")
_READ: Final = ("user", "reasoning", "activity", *_WRITERS)


def from_ag_ui(body: Any, history: Sequence[BaseMessage], *, approval_key: str | SecretStr | None = None) -> Posted:
    """Parse the `RunAgentInput` that a client of AG-UI posts.

    Taken are the user's new message, answers to the interrupts of calls and questions that wait in `history`, and results of calls that
    were left to the page. Everything else is the page's word and is left out, with a warning: the history is the server's own.

    Args:
        body: The body: bytes, a text, or what was parsed of it, also a `RunAgentInput` of `ag_ui.core`.
        history: The server's own messages of this thread.
        approval_key: The model's. Without it no answers to interrupts of calls are taken.

    Returns:
        The user's new message (with the id that the page gave it), if there is one, and decisions.

    Raises:
        ConfigurationError: The body is no `RunAgentInput`, the answer to a question does not fit its schema, or another argument cannot be
            what it should.
    """
    fields = read_body(body.model_dump(by_alias=True) if isinstance(body, BaseModel) else body)
    messages, resume = fields.get("messages"), fields.get("resume")
    if not (isinstance(messages, list) and isinstance(resume, list | None) and all(isinstance(fields.get(key), str) for key in _IDS)):
        raise ConfigurationError("the posted body is no RunAgentInput: that has threadId, runId and messages")
    decisions = PostedDecisions(history, approval_key)
    kept, posted = expand(history), [message for message in messages if isinstance(message, Mapping)]
    for key in _LEFT_OUT:
        if fields.get(key):
            decisions.drop(_LEFT_OUT[key])
    _answers(resume or [], decisions)
    _results(posted, kept, decisions)
    return Posted(_new_message(posted, kept, decisions), decisions.decisions)


def _answers(resume: Sequence[Any], decisions: PostedDecisions) -> None:
    """Add the answers to interrupts: each contains the signature of its call."""
    waiting = {signature_of(call): call_id for call_id, call in decisions.pending.items() if call.kind in (*APPROVABLE, ELICITATION)}
    for entry in resume:
        interrupt = entry.get("interruptId") if isinstance(entry, Mapping) else None
        call_id = waiting.get(interrupt) if isinstance(interrupt, str) else None
        if call_id is None:
            decisions.drop("answers to interrupts that are not open")
            continue
        if decisions.is_question(call_id):
            _reply(call_id, entry, decisions)
            continue
        payload = entry.get("payload")
        answer = payload if isinstance(payload, Mapping) else {}
        if entry.get("status") == "cancelled" or (entry.get("status") == "resolved" and answer.get("approved") is False):
            decisions.reject(call_id, interrupt, answer.get("reason"))
        elif entry.get("status") == "resolved" and answer.get("approved") is True and isinstance(answer.get("editedArgs"), dict | None):
            decisions.approve(call_id, interrupt, args=answer.get("editedArgs"))
        else:
            decisions.drop("answers to interrupts that say neither yes nor no")


def _reply(call_id: str, entry: Mapping[str, Any], decisions: PostedDecisions) -> None:
    """Add the answer to the question of an MCP server: the payload, by the schema of the interrupt."""
    if entry.get("status") in ("resolved", "cancelled"):
        decisions.answer(call_id, "accept" if entry["status"] == "resolved" else "cancel", entry.get("payload"))
    else:
        decisions.drop("answers to interrupts that are neither resolved nor cancelled")


def _results(posted: Sequence[Mapping[str, Any]], history: Sequence[BaseMessage], decisions: PostedDecisions) -> None:
    """Add the results of calls left to the page. Those of the history are skipped."""
    known = {message.tool_call_id for message in history if isinstance(message, ToolMessage)}
    for message in posted:
        call_id = _text(message, "toolCallId")
        if message.get("role") != "tool" or call_id in known or "subagentRunId" in message:
            continue
        why = _text(message, "error")
        if why is None:
            decisions.respond(call_id, read_parts(message.get("content"), decisions.drop))
        else:
            decisions.fail(call_id, why)


def _new_message(posted: Sequence[Mapping[str, Any]], history: Sequence[BaseMessage], decisions: PostedDecisions) -> list[BaseMessage]:
    """Return the user's message after all answered ones, unless the history has it already."""
    known = {page_id(message, place) for place, message in enumerate(history)}
    roles = [message.get("role") for message in posted]
    if any(role not in _READ for role in roles):
        decisions.drop("messages in the name of the system or of a developer")
    behind = max((place for place, role in enumerate(roles) if role in _WRITERS), default=-1)
    users = [message for message in posted[behind + 1 :] if message.get("role") == "user"]
    new = [message for message in users if _text(message, "id") is None or _text(message, "id") not in known]
    if len(new) > 1:
        decisions.drop("messages of the user before the last one")
    content = read_parts(new[-1].get("content"), decisions.drop) if new else None
    return [] if content is None else [HumanMessage(content, id=_text(new[-1], "id"))]


def _text(message: Mapping[str, Any], key: str) -> str | None:
    value = message.get(key)
    return value if isinstance(value, str) and value else None
