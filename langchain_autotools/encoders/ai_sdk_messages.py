"""Conversion of LangChain's messages to the UI messages of an AI SDK page or back.

The parts of an assistant's message are what a page makes of the chunks that `UIMessageChunks` writes of the same run, so that a page that
is loaded again shows what it showed before, and posts the same.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from pydantic import SecretStr

from ..errors import ConfigurationError, DecisionProblem
from ..event_types import CallsPending, MessageDone, RunEvent
from ..executor.pending import ELICITATION, page_id
from ..strict_json import read_json
from .ai_sdk import Chunk, UIMessageChunks
from .finished_runs import history_events
from .posted import Posted, PostedDecisions, read_body
from .public import plain, public, public_message

_UNANSWERED: Final = "This call has no result."
_DEEPEST: Final = 200  # the parts' own levels around values that were cut already
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+", re.ASCII)
_KINDS = ("image", "audio", "video")
_EDITED = "data-edited-arguments"
_QUESTION = f" > {ELICITATION}"


def ai_sdk_messages(history: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Return a history as UI messages of the AI SDK: the first messages of a page that is loaded again, `useChat({ messages })`.

    They are the messages of the user and, of each run, one of the assistant, as the page had it from `ai_sdk`. Calls that wait for an
    answer wait there too; `from_ai_sdk` reads what is decided about them. What only a running stream tells is not in a history: progress,
    runs inside tools, calls of the vendor's own tools, and that a result is that of a rejected call, which is an error then.

    Args:
        history: The messages that the server keeps of this conversation. Run messages are expanded. What the system says, and all else
            that is not for pages, is left out.

    Returns:
        Plain JSON, for the response of an endpoint.

    Raises:
        ConfigurationError: `history` is no list of messages.
    """
    if isinstance(history, str | BaseMessage) or not isinstance(history, Sequence):
        raise ConfigurationError(f"history must be the list of messages that the server keeps, not {type(history).__name__}")
    made: list[dict[str, Any]] = []
    for run_id, group in groupby(history_events(history), lambda one: one.run_id if isinstance(one, RunEvent) else None):
        if run_id is None:
            made += [UIMessageChunks.user_message(public_message(one)) for one in group if isinstance(one, HumanMessage)]
        else:
            made.append(_run_message(public(one) for one in group if isinstance(one, RunEvent)))
    return [plain({**message, "id": page}, _DEEPEST) for message, page in zip(made, _ids(made), strict=True)]


def _ids(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return an id of its own for each message: that of the history, or its place."""
    ids: dict[str, None] = {}
    for place, message in enumerate(messages, 1):
        known = message["id"]
        ids[known if known and known not in ids else f"message {place}"] = None
    return list(ids)


# ---------------------------------------------------------------------------------------------- the assistant's messages


def _run_message(told: Iterable[RunEvent]) -> dict[str, Any]:
    """Return the message of a run."""
    chunks, parts = UIMessageChunks(), _Parts()
    first: str | None = None
    waiting: set[str] = set()
    for event in told:
        parts.take(chunks.feed(event))
        if isinstance(event, MessageDone):
            first = first or event.message.id
        elif isinstance(event, CallsPending):
            waiting = {page_id(call) for call in event.calls}
    parts.take(chunks.end())
    parts.end(waiting)
    metadata = {"metadata": parts.metadata} if parts.metadata else {}
    return {"id": first, "role": "assistant", **metadata, "parts": parts.made or [{"type": "step-start"}]}


class _Parts:
    """Creates the parts of a UI message from its chunks, as a page does.

    Attributes:
        made: The parts.
        metadata: The metadata of the message.
    """

    def __init__(self) -> None:
        self.made: list[Chunk] = []
        self.metadata: dict[str, Any] = {}
        self._texts: dict[str, Chunk] = {}
        self._calls: dict[str, Chunk] = {}
        self._approvals: dict[str, Chunk] = {}

    def take(self, chunks: Iterable[Chunk]) -> None:
        """Add what chunks tell."""
        for chunk in chunks:
            self.metadata |= chunk.get("messageMetadata", {})
            if (maker := _PARTS.get(chunk["type"])) is not None:
                maker(self, chunk)

    def end(self, waiting: set[str]) -> None:
        """Mark the calls that have no result and wait for none: no page should show them as running."""
        for call_id, part in self._calls.items():
            if part["state"] in ("input-streaming", "input-available") and call_id not in waiting:
                part |= {"state": "output-error", "errorText": _UNANSWERED}

    def _begins(self, chunk: Chunk) -> None:
        self._texts[chunk["id"]] = {"type": chunk["type"].removesuffix("-start"), "text": "", "state": "done"}
        self.made.append(self._texts[chunk["id"]])

    def _goes_on(self, chunk: Chunk) -> None:
        self._texts[chunk["id"]]["text"] += chunk["delta"]

    def _whole(self, chunk: Chunk) -> None:
        self.made.append(chunk)

    def _call(self, chunk: Chunk) -> None:
        call_id = chunk["toolCallId"]
        part = self._calls.get(call_id)
        if part is None:
            part = self._calls[call_id] = {"type": f"tool-{chunk['toolName']}", "toolCallId": call_id}
            self.made.append(part)
        part |= {"state": _STATES[chunk["type"]], "input": chunk.get("input")}
        part |= {name: chunk[key] for key, name in _ABOUT_CALLS.items() if key in chunk}

    def _written(self, chunk: Chunk) -> None:
        """Add the arguments of a call, which come in one piece."""
        self._calls[chunk["toolCallId"]]["input"] = read_json(chunk["inputTextDelta"])

    def _result(self, chunk: Chunk) -> None:
        part = self._calls.get(chunk["toolCallId"])
        if part is not None:  # else nothing asked for it
            part.pop("errorText", None)
            part["state"] = _STATES[chunk["type"]]
            part.update((key, chunk[key]) for key in _OF_RESULTS if key in chunk)

    def _asks(self, chunk: Chunk) -> None:
        part = self._calls[chunk["toolCallId"]]
        approval: Chunk = {"id": chunk["approvalId"], **{key: chunk[key] for key in ("signature", "isAutomatic") if key in chunk}}
        part.update(state="approval-requested", approval=approval)
        self._approvals[chunk["approvalId"]] = part

    def _answered(self, chunk: Chunk) -> None:
        part = self._approvals[chunk["approvalId"]]
        part |= {"state": "approval-responded", "approval": {**part["approval"], "approved": chunk["approved"]}}


_STATES: Final[Mapping[str, str]] = {
    "tool-input-start": "input-streaming",
    "tool-input-available": "input-available",
    "tool-input-error": "output-error",
    "tool-output-available": "output-available",
    "tool-output-error": "output-error",
}
_ABOUT_CALLS: Final[Mapping[str, str]] = {"errorText": "errorText", "providerMetadata": "callProviderMetadata"}
_OF_RESULTS: Final = ("output", "errorText", "preliminary")

_PARTS: Final[Mapping[str, Callable[[_Parts, Chunk], None]]] = {
    "start-step": lambda parts, _: parts.made.append({"type": "step-start"}),
    "text-start": _Parts._begins,
    "reasoning-start": _Parts._begins,
    "text-delta": _Parts._goes_on,
    "reasoning-delta": _Parts._goes_on,
    "tool-input-start": _Parts._call,
    "tool-input-available": _Parts._call,
    "tool-input-error": _Parts._call,
    "tool-input-delta": _Parts._written,
    "tool-output-available": _Parts._result,
    "tool-output-error": _Parts._result,
    "tool-approval-request": _Parts._asks,
    "tool-approval-response": _Parts._answered,
    "source-url": _Parts._whole,
    "source-document": _Parts._whole,
    "file": _Parts._whole,
    "data-vendor-file": _Parts._whole,
    "data-tool-definition": _Parts._whole,
    _EDITED: _Parts._whole,
}
"""What a page makes of a chunk; none of the others comes of a history, or is a part."""


# ---------------------------------------------------------------------------------------------- what a page posts


def from_ai_sdk(
    body: Any,
    history: Sequence[BaseMessage],
    *,
    approval_key: str | SecretStr | None = None,
    check: Callable[..., Sequence[DecisionProblem]] | None = None,
) -> Posted:
    """Parse the post of a page with `useChat`: the user's new message, decisions about pending calls, or both.

    The page posts the whole conversation as it has it. Nothing of that is believed but what the last message says, and where that is the
    user's and calls wait the assistant's before it. A user's message is taken with its text and files. Of an assistant message are taken
    the answers to approvals whose signature holds, the outputs of calls that were left to the page, and the answers to questions of MCP
    servers. These are outputs of the form `{"action": "accept", "content": {...}}`, `{"action": "decline"}` or `{"action": "cancel"}`. An
    approved call runs with other arguments where the body has them, as `{"edits": {call id: arguments}}`, or the message has a part
    `data-edited-arguments` with `toolCallId` and `input`.

    A post that asks for a reply anew (`regenerate`) brings nothing, for its message is in the history.

    Args:
        body: The body of the request: bytes, a text, or what was parsed of it.
        history: The messages that the server keeps of this conversation.
        approval_key: The `approval_key` of the model. Without it no approvals are taken.
        check: The `check` of the model, or any function of the history and the decisions that returns what is wrong with these.

    Returns:
        The new messages and the decisions. What was left out is logged as a warning.

    Raises:
        ConfigurationError: The body is no such post, or an argument is wrong.
        DecisionsError: The answer to a question does not fit its schema, another decision cannot be read, or `check` finds that one
            cannot be carried out.
    """
    body = read_body(body)
    decisions = PostedDecisions(history, approval_key)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(one, Mapping) for one in messages):
        raise ConfigurationError("the posted body has no messages")
    if any(one.get("role") not in ("user", "assistant") for one in messages):
        decisions.drop("messages that are neither the user's nor the assistant's")
    parts = _parts_of(messages[-1])
    if body.get("trigger") == "regenerate-message":
        return Posted([], [])
    said: list[BaseMessage] = []
    if messages[-1].get("role") == "user":
        said = [_posted_message(parts, decisions)]
        is_decided = decisions.pending and len(messages) > 1
        parts = _parts_of(messages[-2]) if is_decided and messages[-2].get("role") == "assistant" else []
    elif messages[-1].get("role") != "assistant":
        return Posted([], [])
    _decide(parts, _edits(body, parts), decisions, {one.tool_call_id for one in history if isinstance(one, ToolMessage)})
    return Posted(said, decisions.checked(check))


def _parts_of(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the parts of a posted message.

    Raises:
        ConfigurationError: It has none.
    """
    parts = message.get("parts")
    if not isinstance(parts, list) or not all(isinstance(one, Mapping) for one in parts):
        raise ConfigurationError("the last of the posted messages has no parts")
    return parts


def _posted_message(parts: Sequence[Mapping[str, Any]], decisions: PostedDecisions) -> HumanMessage:
    blocks: list[str | dict[str, Any]] = []
    for part in parts:
        text, url = part.get("text"), part.get("url")
        if part.get("type") == "text" and isinstance(text, str):
            blocks.append({"type": "text", "text": text})
        elif part.get("type") == "file" and isinstance(url, str) and url.lower().startswith(("data:", "https:", "http:")):
            blocks.append(_posted_file(part, url))
        else:
            decisions.drop("parts of the user's message that are neither text nor files")
    if not any(block.get("text", True) for block in blocks if isinstance(block, dict)):
        raise ConfigurationError("the user's message is empty")
    match blocks:
        case [{"type": "text", "text": str() as only}]:
            return HumanMessage(only)
    return HumanMessage(blocks)


def _posted_file(part: Mapping[str, Any], url: str) -> dict[str, Any]:
    media_type, name = part.get("mediaType"), part.get("filename")
    if not isinstance(media_type, str) or not _MEDIA_TYPE.fullmatch(media_type):
        raise ConfigurationError("a file of the user's message has no media type")
    kind = media_type.partition("/")[0]
    block: dict[str, Any] = {"type": kind if kind in _KINDS else "file", "mime_type": media_type}
    if isinstance(name, str) and name:
        block["extras"] = {"filename": name}
    return {**block, "base64": _posted_data(url)} if url.lower().startswith("data:") else {**block, "url": url}


def _posted_data(url: str) -> str:
    head, _, data = url.partition(",")
    try:
        if head.endswith(";base64"):
            base64.b64decode(data, validate=True)
            return data
        return base64.b64encode(unquote_to_bytes(data)).decode()
    except (binascii.Error, ValueError):
        raise ConfigurationError("a file of the user's message is no base64") from None


# ---------------------------------------------------------------------------------------------- decisions of a page


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
            _answer_question(call_id, part, decisions)
        elif state == "output-available" and part.get("preliminary") is not True:
            decisions.respond(call_id, part.get("output"))
        elif state == "output-error":
            decisions.fail(call_id, part.get("errorText"))


def _answer_question(call_id: str, part: Mapping[str, Any], decisions: PostedDecisions) -> None:
    """Add the answer to the question of an MCP server: the output of its part, as the protocol of MCP has it. An error dismisses it."""
    output = part.get("output") if part.get("state") == "output-available" else {"action": "cancel"}
    answer = output if isinstance(output, Mapping) else {}
    decisions.answer(call_id, answer.get("action"), answer.get("content"))


def _answer(call_id: str, approval: Any, edits: dict[str, Any], decisions: PostedDecisions) -> None:
    if not isinstance(approval, Mapping) or not isinstance(approval.get("approved"), bool):
        decisions.refuse(call_id, "the answer to an approval does not say whether it is approved")
        return
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
        decisions.refuse(call_id, f"the edited arguments of call {call_id!r} are no object")
