"""Models and agents as tools: each call is a run, and where that run waits, the call waits with it."""

import inspect
import uuid
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field

from ..errors import ConfigurationError
from ..messages.calls import open_end
from ..messages.carrier import new_messages
from ..messages.endings import HoldsRun, run_message_of
from ..messages.inner_usage import InnerUsage
from ..messages.metadata import own_metadata
from ..messages.open_runs import metadata_of_open_run
from .approval.approvals import Approvals
from .approval.open_runs import OuterCall
from .approval.pending import Decision, PendingCall, pending_calls
from .content import output_content
from .nested_runs import InnerBudget, NestedRuns, inside, run_content

_NAMELESS = "{kind} as a tool needs a name: as_tool(name=...), a mapping of name to tool, or the model's own name="


class Runs(Protocol):
    """An object that makes runs, each in a conversation of its own."""

    def run(self, question: HumanMessage | None, *, history: Sequence[BaseMessage], config: RunnableConfig, **kwargs: Any) -> Any:
        """Ask a question after a conversation, or (with `resume` in place of the question) go on with it."""

    async def arun(self, question: HumanMessage | None, *, history: Sequence[BaseMessage], config: RunnableConfig, **kwargs: Any) -> Any:
        """Like `run`, asynchronously."""


@dataclass(frozen=True)
class ModelRuns:
    """The runs of a model.

    Attributes:
        model: The model, or a binding of one.
    """

    model: Any

    def run(self, question: HumanMessage | None, *, history: Sequence[BaseMessage], config: RunnableConfig, **kwargs: Any) -> Any:
        """Invoke the model."""
        return self.model.invoke([*history, *_listed(question)], config, **kwargs)

    async def arun(self, question: HumanMessage | None, *, history: Sequence[BaseMessage], config: RunnableConfig, **kwargs: Any) -> Any:
        """Like `run`, asynchronously."""
        return await self.model.ainvoke([*history, *_listed(question)], config, **kwargs)


class _Question(BaseModel):
    """Arguments of a model or an agent as a tool."""

    question: str = Field(description="The question or task, with everything that is needed to answer it.")


class RunTool(BaseTool):
    """A tool whose calls are runs of a model or an agent."""

    runs: Any = Field(repr=False)
    args_schema: Any = _Question

    @classmethod
    def of(cls, runs: Runs, kind: str, name: str | None, description: str | None) -> "RunTool":
        """Return the tool that asks `runs`.

        Raises:
            ConfigurationError: It has no name.
        """
        if not name:
            raise ConfigurationError(_NAMELESS.format(kind=kind))
        return cls(name=name, description=description or f"Ask {name}, which answers in words.", runs=runs)

    def _run(self, question: str, config: RunnableConfig) -> Any:
        call = _InnerRun(question)
        with call:
            value = self.runs.run(call.question, history=call.history, config=config, **call.keywords)
        return call.answer(value)

    async def _arun(self, question: str, config: RunnableConfig) -> Any:
        call = _InnerRun(question)
        with call:
            value = await self.runs.arun(call.question, history=call.history, config=config, **call.keywords)
        return call.answer(value)


class _InnerRun:
    """The run inside a call, new or continued, in the context of the call. A context manager that counts the replies of a run that fails.

    Attributes:
        history: Its messages so far.
        question: The question; None where it goes on.
        keywords: The keywords of the run.
    """

    def __init__(self, question: str) -> None:
        around = inside.get()
        self._outer = None if around is None or around.around is None else outer_call(around.around)
        run = None if self._outer is None else self._outer.call.run
        self.history: Sequence[BaseMessage] = () if run is None else run.messages
        self.question = HumanMessage(question) if run is None else None
        self.keywords = {} if run is None else {"resume": run.decisions}
        self._used: InnerUsage | None = None
        if around is not None and self._outer is not None:
            budget: InnerBudget | None = around.around.budget
            self._used = None if budget is None else budget.used
            inside.set(_GivenRuns(self._outer, budget))

    def __enter__(self) -> None:
        """Begin the run."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Count the replies of a run that failed."""
        if error is not None and self._used is not None:
            self._used.end(new_messages(error))

    def answer(self, value: Any) -> Any:
        """Return what the run gave, and count its replies; if it waits, a result with its record."""
        run = run_message_of(value)
        if run is not None and self._used is not None:
            self._used.end(new_messages(value))
        waits = run is not None and own_metadata(run).get("stop_reason") == "calls_pending"  # a reply without a run cannot go on
        if run is None or self._outer is None or not waits:
            return output_content(value)
        asked = () if isinstance(value, HoldsRun) else _listed(self.question)
        record = self._outer.record([*self.history, *asked, *new_messages(value)], pending_calls(run))
        metadata, content = metadata_of_open_run(record), run_content(run)
        assert isinstance(content, ToolMessage)  # since it is not finished
        return content.model_copy(update={"id": f"open-{uuid.uuid4()}", "response_metadata": metadata})


class _GivenRuns(NestedRuns):
    """The runs of a model or an agent that is given as a tool: their open calls are not left, they wait."""

    def __init__(self, outer: OuterCall, budget: InnerBudget | None) -> None:
        super().__init__()
        self._outer = outer
        self._budget = budget
        self.used = None if budget is None else budget.used

    def leave_open(self, calls: Any, *, named: bool = False) -> None:
        """Do nothing."""

    def governs(self, approvals: Any) -> Any:
        """Return the approvals of such a run: what its own leave open, those of the run around decide."""
        outer = self._outer.approvals
        approve = None if outer.approve is None else self._ask
        known = {"approve": approvals.approve or approve, "key": approvals.key or outer.key, "claim": approvals.claim or outer.claim}
        return replace(approvals, **known)

    def bound(self, settings: Any) -> Any:
        """Return the settings of such a run, within what the run around has left."""
        return settings if self._budget is None else self._budget.bound(settings)

    def _ask(self, pending: PendingCall) -> Any:
        """Ask the function of the run around, with the path."""
        shown, approve = self._outer.shown(pending), self._outer.approvals.approve
        assert approve is not None
        decision = approve(shown)
        return _awaited(decision, pending, shown) if inspect.isawaitable(decision) else _inner_decision(decision, pending, shown)


async def _awaited(decision: Awaitable[Any], pending: PendingCall, shown: PendingCall) -> Any:
    return _inner_decision(await decision, pending, shown)


def _inner_decision(decision: Any, pending: PendingCall, shown: PendingCall) -> Any:
    """Return a decision about a shown call as one about the call inside; other values unchanged."""
    if isinstance(decision, Decision) and (decision.id, decision.uuid, decision.digest) == (shown.id, shown.uuid, shown.digest):
        return replace(decision, uuid=pending.uuid, digest=pending.digest)
    return decision


def outer_call(around: Any) -> OuterCall:
    """Return the call that a tool is running, of its `ToolRun`."""
    message, _ = open_end(around.messages)
    made = isinstance(message, AIMessage) and any(call["id"] == around.call.id for call in message.tool_calls)
    return OuterCall(around.call, message.id if made and message is not None else None, governed(around.approvals, around.within))


def governed(approvals: Approvals | None, within: NestedRuns | None) -> Approvals:
    """Return the approvals of a run together with those of the runs around it."""
    own = approvals or Approvals()
    return own if within is None else within.governs(own)


def is_run_tool(tool: BaseTool) -> bool:
    """Whether the calls of a tool are runs of a model or an agent, also through a wrapper."""
    return isinstance(getattr(tool, "inside", tool), RunTool)


def _listed(question: HumanMessage | None) -> list[BaseMessage]:
    return [] if question is None else [question]
