"""Parsing of a page's posts, in whichever protocol: decisions about pending calls are checked against the server's own history.

The history is the server's own. Nothing of a posted one is believed; what is left out is logged.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage
from pydantic import SecretStr

from ..errors import ConfigurationError, DecisionProblem, DecisionsError
from ..executor import Decision, PendingCall, pending_calls
from ..executor.approvals import same_digest
from ..executor.pending import APPROVABLE, ELICITATION, Refusals, check_answer, page_id
from ..executor.run_tool import shown_digest
from ..messages.calls import CLIENT_TOOL, VENDOR_APPROVAL, entries_of_awaited, open_end, records_of
from ..strict_json import read_json

_logger = logging.getLogger("langchain_autotools")

_NO_KEY = "approvals, which count only with approval_key: give the key that the model has"


class Posted(NamedTuple):
    """The content of a page's post.

    Attributes:
        messages: The new messages of the user; empty where there is none. Without decisions they are to be appended to the history.
        decisions: Decisions about calls of the history that wait, for `model.resume` or `resume=`.
    """

    messages: list[BaseMessage]
    decisions: list[Decision]

    @property
    def keywords(self) -> dict[str, Any]:
        """The keywords of the run: `resume` with the decisions, and `message` with what the user said beside them; empty without any."""
        if not self.decisions:
            return {}
        return {"resume": self.decisions, **({"message": self.messages[-1]} if self.messages else {})}


def read_body(body: Any) -> Mapping[str, Any]:
    """Return a posted body as an object.

    Args:
        body: The body: bytes, a text, or what was parsed of it.

    Raises:
        ConfigurationError: It is no JSON object.
    """
    if isinstance(body, bytes | bytearray | str):
        try:
            body = read_json(body if isinstance(body, str) else body.decode())
        except ValueError as error:
            raise ConfigurationError(f"the posted body is no JSON: {error}") from None
    if not isinstance(body, Mapping):
        raise ConfigurationError(f"the posted body is no JSON object, but {type(body).__name__}")
    return body


def signature_of(call: PendingCall) -> str:
    """Return the token that a page receives with a pending call, and returns with its decision."""
    return f"{call.uuid}.{call.digest}"


class PostedDecisions:
    """Collects a page's decisions about the pending calls of the server's own history, and drops invalid ones.

    Args:
        history: The history.
        approval_key: The model's; None: no approvals are taken.

    Attributes:
        pending: The calls that wait, by their ids for pages.
        refusals: Collects the errors of decisions that cannot be carried out.

    Raises:
        ConfigurationError: The history or the key cannot be one.
    """

    def __init__(self, history: Sequence[BaseMessage], approval_key: str | SecretStr | None = None) -> None:
        if isinstance(history, str | BaseMessage) or not isinstance(history, Sequence):
            raise ConfigurationError(f"history must be the list of messages that the server keeps, not {type(history).__name__}")
        if not (approval_key is None or (isinstance(approval_key, str | SecretStr) and approval_key)):
            raise ConfigurationError("approval_key must be a SecretStr, or a text that is not empty")
        self._key = approval_key.get_secret_value() if isinstance(approval_key, SecretStr) else approval_key
        self.pending = {page_id(call): call for call in pending_calls(history)}
        self._tools = _tools_of(history)
        self._history = history
        self.refusals = Refusals()
        self._decisions: dict[str, Decision] = {}
        self._dropped: set[str] = set()

    @property
    def decisions(self) -> list[Decision]:
        """The valid decisions, in the order of the pending calls."""
        return [self._decisions[call_id] for call_id in self.pending if call_id in self._decisions]

    def checked(self, check: Callable[..., Sequence[DecisionProblem]] | None) -> list[Decision]:
        """Return the valid decisions.

        Args:
            check: Says what is wrong with them; None where nothing does.

        Raises:
            DecisionsError: Some cannot be carried out.
        """
        decisions = self.decisions
        with self.refusals as refusals:
            problems = check(self._history, decisions) if check is not None and decisions else ()
            if problems:
                refusals.append(DecisionsError("; ".join(f"call {one.id!r}: {one.words}" for one in problems), problems))
        return decisions

    def approve(self, call_id: Any, signature: Any, *, args: Any = None) -> None:
        """Add an approval; with `args`, of the call with these arguments instead."""
        call = self._signed(call_id, signature)
        if call is not None and call.kind not in APPROVABLE:
            self.drop("approvals of calls that need none")
        elif call is not None and args is not None and call.kind == VENDOR_APPROVAL:
            self.drop("other arguments for calls that run as they are")
        elif call is not None:
            self._add(call, call.approve() if args is None else call.edit(args))

    def reject(self, call_id: Any, signature: Any, why: Any = None) -> None:
        """Add a rejection of a call that needs approval, with its reason."""
        call = self._signed(call_id, signature)
        if call is not None:
            self._add(call, call.reject(why if isinstance(why, str) and why else None))

    def respond(self, call_id: Any, content: Any) -> None:
        """Add the output of a call that was left to the page."""
        call = self._own(call_id)
        if call is not None:
            self._add(call, call.respond("" if content is None else content))

    def fail(self, call_id: Any, why: Any) -> None:
        """Add the error of a call that was left to the page."""
        call = self._own(call_id)
        if call is not None:
            self._add(call, call.reject(why if isinstance(why, str) and why else None))

    def is_question(self, call_id: Any) -> bool:
        """Whether a pending call is the question of an MCP server."""
        call = self._waiting(call_id)
        return call is not None and call.kind == ELICITATION

    def answer(self, call_id: str, action: Any, content: Any = None) -> None:
        """Add the answer to the question of an MCP server: accept with its content, decline or cancel."""
        question = self.pending[call_id]
        if action == "accept":
            answer = {} if content is None else content
            with self.refusals.collected():
                check_answer(question.args, answer, uuid=question.uuid, call_id=question.id)
                self._add(question, question.respond(answer))
        elif action in ("decline", "cancel"):
            self._add(question, question.reject() if action == "decline" else question.cancel())
        else:
            self.refuse(call_id, f"the answer to {question.args.get('message')!r} says neither accept nor decline nor cancel")

    def refuse(self, call_id: str, text: str) -> None:
        """Refuse a decision that cannot be read.

        Args:
            call_id: The page's id of the call.
            text: Why, for the program.
        """
        call = self._waiting(call_id)
        known = ("", call_id) if call is None else (call.uuid, call.id)
        self.refusals.add_unreadable(*known, text)

    def drop(self, what: str) -> None:
        """Log, once for each kind, that posted data is dropped."""
        if what not in self._dropped:
            self._dropped.add(what)
            _logger.warning("of what was posted this is left out: %s", what)

    def _own(self, call_id: Any) -> PendingCall | None:
        """Return a call that was left to the page; None for others."""
        call = self._waiting(call_id)
        if call is not None and call.kind in ("caller", CLIENT_TOOL):
            return call
        self.drop("results of calls that were not left to the page")
        return None

    def _signed(self, call_id: Any, signature: Any) -> PendingCall | None:
        """Return the call that this signature is valid for; None otherwise."""
        if self._key is None:
            self.drop(_NO_KEY)
            return None
        call = self._waiting(call_id)
        if call is None:
            self.drop("decisions about calls that do not wait")
        elif (
            not isinstance(signature, str)
            or not same_digest(signature, signature_of(call))
            or not any(
                same_digest(call.digest, shown_digest(replace(call, name=name), self._key))
                for name in (call.name, self._tools.get(call.id, call.name))
            )
        ):
            self.drop("decisions without the call's own signature")
        else:
            return call
        return None

    def _waiting(self, call_id: Any) -> PendingCall | None:
        return self.pending.get(call_id) if isinstance(call_id, str) else None

    def _add(self, call: PendingCall, decision: Decision) -> None:
        if page_id(call) in self._decisions:
            self.drop("second decisions about one call")
        else:
            self._decisions[page_id(call)] = decision


def _tools_of(history: Sequence[BaseMessage]) -> dict[str, str]:
    """Return the names of the tools that waiting calls mean where they are shown under others, by the ids of the calls."""
    message, _ = open_end(history)
    entries = {} if message is None else {**records_of(message), **entries_of_awaited(message)}
    approvals = {call_id: entry.get("approval") for call_id, entry in entries.items()}
    tools = {call_id: record.get("tool") for call_id, record in approvals.items() if isinstance(record, Mapping)}
    return {call_id: tool for call_id, tool in tools.items() if isinstance(tool, str)}
