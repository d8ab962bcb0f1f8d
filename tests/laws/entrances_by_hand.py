"""Entrances that a program makes itself: an executor alone, and a loop around a model and an executor."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langchain_autotools import Decision, PendingCall, ToolExecutor, pending_calls
from langchain_autotools.errors import DecisionProblem
from langchain_autotools.executor.pending import is_apart
from langchain_autotools.messages.run_messages import open_run
from tests.laws.entrances import CONFIG, Entrance, Outcome, collect, scripted
from tests.laws.planned import awaiting, ids_of
from tests.laws.ways import run, waited


class Executor(Entrance):
    """A `ToolExecutor` alone: calls come from anywhere, here from the plan, one AI message after another."""

    ways = ("execute_all", "astream")
    further_ways = ("aexecute_all", "stream")
    _KNOWN = ("requires_approval", "approve", "claim", "policies", "parallel", "handlers")

    def open(self) -> None:
        """Make the executor."""
        fields = {name: value for name, value in self.plan.fields.items() if name in self._KNOWN}
        self.executor, self.kept = ToolExecutor(self.tools(), **fields), dict[str, Any]()

    def options(self) -> dict[str, Any]:
        """What is said with each batch of calls."""
        plan = self.plan
        only = {"only": {*plan.offered, *plan.kinds} - plan.forbidden} if plan.forbidden else {}
        cancel = {"cancel": self.cancel} if plan.cancels else {}
        deadline = {"deadline": plan.fields["deadline"]} if "deadline" in plan.fields else {}
        return {"config": CONFIG, "cache": self.kept, **only, **cancel, **deadline}

    def next_message(self, history: Sequence[BaseMessage]) -> AIMessage:
        """What the model says next."""
        calls = [{"name": call.name, "args": json.loads(call.raw), "id": call.id} for call in self.plan.calls(history)]
        items: list[Any] = self.plan.items(history)
        content = items or ("" if calls else "Done.")
        return AIMessage(content, tool_calls=calls, id=f"message {len(history)}", response_metadata=awaiting(items))

    def run(self, history: Sequence[BaseMessage], resume: Any = None) -> Outcome:
        """The loop that a program writes, until calls wait or the model answers."""
        messages = list(history)
        try:
            while True:
                if resume is None:
                    messages.append(self.next_message(messages))
                answer = self.answering(messages)
                if not answer.tool_calls:
                    return Outcome(messages)
                messages = self.executed(messages, answer, resume)
                waiting, resume = self.waiting(messages, answer), None
                if waiting or self.ended():
                    return Outcome(messages, pending=waiting)
        except Exception as error:
            return Outcome(messages, error=error)

    def answering(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """The AI message whose calls are to be answered."""
        return next(one for one in reversed(messages) if isinstance(one, AIMessage))

    def executed(self, messages: list[BaseMessage], answer: AIMessage, decisions: Any) -> list[BaseMessage]:
        """The history after the calls have run, their results in call order."""
        results = self.execute(answer, messages=messages, decisions=decisions, **self.options())
        return in_call_order(messages, answer, results)

    def problems(self, before: Outcome, decisions: Sequence[Decision]) -> list[DecisionProblem] | None:
        """What the executor says."""
        return self.checked(before.history, self.answering(before.history), decisions)

    def checked(self, messages: Sequence[BaseMessage], answer: AIMessage, decisions: Sequence[Decision]) -> list[DecisionProblem]:
        """What is wrong with decisions about the calls of a message."""
        only = {name: value for name, value in self.options().items() if name == "only"}
        return self.executor.check(answer, decisions, messages=messages, **only)

    def execute(self, calls: Any, **options: Any) -> list[ToolMessage]:
        """The results of calls."""
        if self.way == "execute_all":
            return self.executor.execute_all(calls, **options)
        if self.way == "aexecute_all":
            return waited(self.executor.aexecute_all(calls, **options))  # type: ignore[no-any-return]
        if self.way == "stream":
            return [result.message for result in self.executor.stream(calls, **options)]
        results: list[Any] = []
        waited(collect(results, lambda: self.executor.astream(calls, **options)))
        return [result.message for result in results]

    def waiting(self, messages: Sequence[BaseMessage], answer: AIMessage) -> list[PendingCall]:
        """The calls that wait, those of runs inside tools last."""
        answered = {one.tool_call_id for one in messages if isinstance(one, ToolMessage)}
        inside = [call for call in pending_calls([*messages]) if is_apart(call)]
        return [*(call for call in self.executor.pending_calls(answer) if call.id not in answered), *inside]

    def ended(self) -> bool:
        """Whether the program leaves its loop."""
        return self.cancel.is_set() or "deadline" in self.plan.fields


class Loop(Executor):
    """A loop of one's own: a model that declares the tools, and an executor that runs their calls."""

    further_ways = ()

    def open(self) -> None:
        """Make both."""
        super().open()
        model = self.remembered(scripted(self.plan, None))
        self.model = model.bind_tools([*self.tools(), *self.plan.declared])

    def next_message(self, history: Sequence[BaseMessage]) -> AIMessage:
        """Ask the model."""
        ran = run("invoke" if self.way == "execute_all" else "astream", self.model, history, config=CONFIG, **self.keywords())
        assert ran.message is not None, ran.error
        return ran.message

    def checked(self, messages: Sequence[BaseMessage], answer: AIMessage, decisions: Sequence[Decision]) -> list[DecisionProblem]:
        """What the executor says of what is its own."""
        own, theirs = own_calls(answer)
        known = [own if one is answer else one for one in messages]
        return super().checked(known, own, [one for one in decisions if one.id not in theirs])

    def executed(self, messages: list[BaseMessage], answer: AIMessage, decisions: Any) -> list[BaseMessage]:
        """The executor runs what is its own; what is the program's, the program answers."""
        own, theirs = own_calls(answer)
        known = [own if one is answer else one for one in messages]
        decided = [Decision.from_dict(one) for one in decisions or ()]
        answers = [ToolMessage(one.value, tool_call_id=one.id) for one in decided if one.id in theirs]
        left = [one for one in decided if one.id not in theirs] if decisions is not None else None
        results = self.execute(own, messages=known, decisions=left, **self.options())
        return in_call_order(messages, answer, [*answers, *results])

    def waiting(self, messages: Sequence[BaseMessage], answer: AIMessage) -> list[PendingCall]:
        """The executor's, and those that are the program's own."""
        answered = {one.tool_call_id for one in messages if isinstance(one, ToolMessage)}
        theirs = [call for call in pending_calls([*messages]) if call.name == "ask_user"] if self.plan.declared else []
        own = [call for call in [*self.executor.pending_calls(answer), *theirs] if call.id not in answered and call.name != "unknown"]
        return [*own, *(call for call in pending_calls([*messages]) if is_apart(call))]


def own_calls(answer: AIMessage) -> tuple[AIMessage, set[str]]:
    """A message with the executor's calls, and the ids of those that are the program's."""
    theirs = {str(call["id"]) for call in answer.tool_calls if call["name"] == "ask_user"}
    return answer.model_copy(update={"tool_calls": [call for call in answer.tool_calls if call["id"] not in theirs]}), theirs


def in_call_order(messages: Sequence[BaseMessage], answer: AIMessage, results: Sequence[ToolMessage]) -> list[BaseMessage]:
    """A history that ends in an AI message and results, with further results, all in call order."""
    place = [one.id for one in messages].index(answer.id)
    found = {one.tool_call_id: one for one in (*messages[place + 1 :], *results) if isinstance(one, ToolMessage)}
    gone_on = [one for one in messages[place + 1 :] if open_run(one) is not None and one is not found[one.tool_call_id]]  # type: ignore[attr-defined]
    assert len(found) + len(gone_on) == len(messages) - place - 1 + len(results), "a call has two results"
    return [*messages[: place + 1], *(found[call_id] for call_id in ids_of(answer) if call_id in found)]
