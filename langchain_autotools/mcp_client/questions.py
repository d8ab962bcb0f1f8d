"""The questions that an MCP server asks during a call, whose answers the call waits for.

Up to protocol 2025-11-25 a server asks while the call is under way: it is answered at once, or declined. From 2026-07-28 on it ends the
call with its questions and a state; the same call with the answers and the state goes on, in any process.

A login is such a question too, by any protocol: the call has not run, and is made anew once a human has logged in.
"""

import asyncio
import json
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable, iscoroutinefunction
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import ToolException

from ..errors import LoginNeededError
from ..executor.approvals import checked_decision, no_interrupt
from ..executor.nested_runs import current_nested_runs
from ..executor.pending import ELICITATION, Decision, PendingCall, Refusals, check_answer, digest_of, misfit
from ..executor.run_tool import ContinuedRun, outer_call
from ..executor.user_functions import acall_user
from ..messages.calls import ToolCallRecord
from ..messages.run_messages import metadata_of_open_run

_logger = logging.getLogger("langchain_autotools")

_STATE = "mcp"
_WAITS = "This call has not finished: its server waits for the answer to a question."
_WAITS_FOR_LOGIN = "This call has not run: its server waits until somebody has logged in."
_DECLINED: Mapping[str, Any] = {"action": "decline"}
_UNANSWERED: Mapping[str, Mapping[str, Any]] = {"reject": _DECLINED, "cancel": {"action": "cancel"}}

Elicit = Callable[[str, Mapping[str, Any]], Any]
"""A function that answers a server's question: it gets the text and the schema of the answer, and returns the answer; None declines. May be
asynchronous."""


@dataclass
class Round:
    """What a server wants to know before a call goes on.

    Attributes:
        requests: What it asks, by its own keys.
        state: What goes back to it unchanged.
        answers: The answers so far.
        login: None for a server's own questions. For a login: the data of the round whose answers the call is made with afterwards, empty
            where there is none.
    """

    requests: Mapping[str, Mapping[str, Any]]
    state: str | None = None
    answers: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    login: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> "Round | None":
        """Return what the result of a call asks; None where it is the end of the call."""
        if result.get("resultType") != "input_required":
            return None
        return cls(result.get("inputRequests") or {}, result.get("requestState"))

    @classmethod
    def continued(cls, run: ContinuedRun) -> "Round":
        """Return the questions of a call that waited, with the answers that were decided.

        Raises:
            DecisionsError: An answer does not fit the schema of its question.
        """
        kept = run.messages[0].additional_kwargs[_STATE]
        made = cls(**{**kept, "answers": dict(kept["answers"])})  # its own: the record is the caller's
        with Refusals() as refusals:
            for decision in run.decisions:
                key = max((key for key in made.requests if decision.id.endswith(f":{key}")), key=len)
                with refusals.collected():
                    made.answers[key] = _answer(decision, made.requests[key]["params"])
        return made

    @property
    def sent(self) -> "Round | None":
        """What the server is sent of it: nothing of a login."""
        if self.login is None:
            return self
        return Round(**self.login) if self.login else None

    @property
    def data(self) -> dict[str, Any]:
        """Its plain data."""
        login = {} if self.login is None else {"login": self.login}
        return {"requests": self.requests, "state": self.state, "answers": self.answers, **login}

    @property
    def open(self) -> Sequence[str]:
        """The keys of the questions that nobody has answered."""
        return [key for key in self.requests if key not in self.answers]

    def pending(self, call: ToolCallRecord, key: str) -> PendingCall:
        """Return a question as a call that waits. Its digest holds for this question at this state of the call."""
        shown = _shown(self.requests[key]["params"])
        bound = ToolCallRecord(f"{call.id}:{key}", call.name, "", {**shown, "state": self.state})
        return PendingCall(bound.id, ELICITATION, shown, ELICITATION, "", digest_of(bound, ELICITATION))


class Questions:
    """The questions of a server during one call. Made where the call runs.

    Args:
        label: The server's name in logs.
        elicit: Answers them; None where the run decides.
        roots: The folders that the server may know of, as URIs.
    """

    def __init__(self, label: str, elicit: Elicit | None, roots: Sequence[str]) -> None:
        around = current_nested_runs.get()
        self._outer = None if around is None or around.around is None else outer_call(around.around)
        self._label = label
        self._elicit = elicit
        self._roots = roots

    @property
    def waited(self) -> Round | None:
        """The questions for which the call waited; None where it begins."""
        run = None if self._outer is None else self._outer.call.run
        return None if run is None else Round.continued(run)

    def login(self, error: LoginNeededError, asked: Round | None) -> Round:
        """Return the question that a call waits with until a human has logged in.

        Args:
            error: What the call has ended with.
            asked: What the call has waited for before; None where it has not.
        """
        sent = None if asked is None else asked.sent
        params = {"message": f"Log in at {self._label}.", **({"url": error.url} if error.url else {})}
        request = {"method": "elicitation/create", "params": params}
        # the state, which no server gets, makes the question another one each time
        return Round({"login": request}, str(uuid.uuid4()), login={} if sent is None else sent.data)

    async def during(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer to a question that is asked while the call is under way."""
        return await self._at_once("0", Round({"0": {"params": asked}})) or declined(self._label)

    async def answer(self, asked: Round) -> ToolMessage | None:
        """Answer questions at once; the result of a call that waits for some of them.

        Raises:
            ToolException: The server wants to use the model, or nobody logs in.
        """
        for key in asked.open:
            method = asked.requests[key].get("method")
            if method == "roots/list":
                asked.answers[key] = {"roots": [{"uri": uri} for uri in self._roots]}
            elif method != "elicitation/create":
                raise ToolException(f"{self._label} wants to use the model (sampling), which is not supported")
            elif (answer := await self._at_once(key, asked)) is not None:
                asked.answers[key] = answer
            elif self._outer is None:
                asked.answers[key] = declined(self._label) if asked.login is None else _DECLINED
        if asked.login is not None and any(answer.get("action") != "accept" for answer in asked.answers.values()):
            raise ToolException(f"{self._label} needs a login, and nobody has logged in: this call has not run")
        return self._waiting(asked) if asked.open else None

    async def _at_once(self, key: str, asked: Round) -> Mapping[str, Any] | None:
        """Return the answer of the caller's function; None without one, and where it leaves the question open."""
        params = asked.requests[key]["params"]
        if self._elicit is not None and asked.login is None:
            answer = await called(self._elicit, params.get("message", ""), params.get("requestedSchema", {}))
            return _DECLINED if answer is None else self._fitting(answer, params)
        if self._outer is None or self._outer.approvals.approve is None:
            return None
        shown = self._outer.shown(asked.pending(self._outer.call, key))
        with no_interrupt():
            decision = await acall_user(self._outer.approvals.approve, shown, lambda: False, lambda: None)
        made = checked_decision(decision, shown)
        if made is None or made.action != "respond":
            return None if made is None else _UNANSWERED[made.action]
        return self._fitting(made.value, params)

    def _fitting(self, answer: Any, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if misfit(answer, params.get("requestedSchema", {})) is None:
            return _accepted(answer, params)
        _logger.warning("an answer to a question of %s does not fit its schema: the question is declined", self._label)
        return _DECLINED

    def _waiting(self, asked: Round) -> ToolMessage:
        assert self._outer is not None
        shown = [asked.pending(self._outer.call, key) for key in asked.open]
        record = self._outer.record([AIMessage("", additional_kwargs={_STATE: asked.data})], shown)
        content = json.dumps({"error": _WAITS if asked.login is None else _WAITS_FOR_LOGIN})
        known: dict[str, Any] = {"id": f"open-{uuid.uuid4()}", "response_metadata": metadata_of_open_run(record)}
        return ToolMessage(content=content, tool_call_id="", status="error", **known)


def declined(label: str, why: str = "mcp_server(elicit=...) or approve= would answer it") -> Mapping[str, Any]:
    """Return the answer that declines a question, and say so in the log."""
    _logger.warning("%s asks a question, which is declined: %s", label, why)
    return _DECLINED


def _shown(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question as it is shown."""
    names = {"message": "message", "requestedSchema": "schema", "url": "url"}
    return {shown: params[name] for name, shown in names.items() if name in params}


def _answer(decision: Decision, params: Mapping[str, Any]) -> Mapping[str, Any]:
    if decision.action != "respond":
        return _UNANSWERED[decision.action]
    check_answer(_shown(params), decision.value, uuid=decision.uuid, call_id=decision.id)
    return _accepted(decision.value, params)


def _accepted(answer: Mapping[str, Any], params: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"action": "accept", **({} if "url" in params else {"content": answer})}


async def called(function: Callable[..., Any], *values: Any) -> Any:
    """Return the result of a caller's function; a synchronous one, which may wait for a human, is called in a thread."""
    result = function(*values) if iscoroutinefunction(function) else await asyncio.to_thread(function, *values)
    return await result if isawaitable(result) else result
