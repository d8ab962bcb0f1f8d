"""The entrances of the table of features and entrances: each plays a planned conversation through its door, and says what it came to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from langchain_core.exceptions import ModelAPIError
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import Agent, Decision, PendingCall, aevents, events, new_messages, pending_calls, stop_reason
from langchain_autotools.errors import DecisionProblem
from langchain_autotools.event_types import CallsPending, FileMade, MessageDone, RunEnded, RunEvent, VendorCallDone, VendorCallStarted
from langchain_autotools.executor import raw_functions
from langchain_autotools.testing import ScriptedChatModel
from langchain_autotools.turn.accumulator import with_events
from tests.laws.guarded import allowing
from tests.laws.planned import USER, Plan, awaiting
from tests.laws.service import through_json
from tests.laws.ways import Ran, run, waited
from tests.support.script import Call

QUESTION = HumanMessage("Go.", id="question")
CONFIG: Mapping[str, Any] = {"configurable": {"user": USER}}


@dataclass
class Outcome:
    """What a run came to.

    Attributes:
        history: What the caller has stored: what was before, and what the run has brought.
        reason: Why the run ended; None where the entrance has no run.
        pending: The calls that wait, as the entrance shows them.
        error: What ended the run.
    """

    history: list[BaseMessage]
    reason: str | None = None
    pending: list[PendingCall] = field(default_factory=list)
    error: BaseException | None = None


def fragments(calls: Sequence[Call]) -> list[dict[str, Any]]:
    """Calls as a wire has them."""
    return [{"index": number, "id": call.id, "name": call.name, "args": call.raw} for number, call in enumerate(calls)]


PAID = AIMessageChunk(
    "",
    usage_metadata={"input_tokens": 1_000_000, "output_tokens": 0, "total_tokens": 1_000_000},
    response_metadata={"model_provider": "own", "model_name": "any"},
)
"""A part of a reply: what it has used."""


class Scripted(ScriptedChatModel):
    """A model that has a name, as those of vendors do."""

    model: str = "any"


def scripted(plan: Plan, tools: Any, **fields: Any) -> ScriptedChatModel:
    """A model that plays the plan, and remembers nothing: what it says follows from what it is sent."""

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        if (summary := plan.summary(messages)) is not None:
            return summary
        calls = plan.calls(messages)
        said: list[Any] = ["Let me see.", fragments(calls), *item_chunks(plan.items(messages))] if calls else ["Done."]
        said = [PAID, *said] if plan.paid else said
        return [*by_vendor(str(len(messages))), *said] if plan.vendor else said

    def broken(messages: list[BaseMessage], **_: Any) -> Any:
        return ["Wait. ", fragments(plan.calls(messages)), ModelAPIError("It broke off.")]

    if plan.fails:
        fields["fallbacks"] = [Scripted(replies=reply)]
    return Scripted(replies=broken if plan.fails else reply, tools=tools, no_progress=None, **fields)


def item_chunks(items: Sequence[dict[str, Any]]) -> list[AIMessageChunk]:
    """Items that wait for an answer, as the end of a reply."""
    blocks: list[Any] = [{**item, "index": number} for number, item in enumerate(items)]
    return [AIMessageChunk(blocks, response_metadata=awaiting(items))] if items else []


def by_vendor(number: str) -> list[AIMessageChunk]:
    """What the vendor does by itself in a reply, for listeners alone."""
    nowhere: dict[str, Any] = {"run_id": "", "message_id": ""}
    call = {**nowhere, "call_id": f"ws_{number}", "name": "web_search"}
    made: list[RunEvent] = [
        VendorCallStarted(**call),
        VendorCallDone(**call),
        FileMade(**nowhere, mime_type="image/png", data="QUJD", size=3),
    ]
    return [with_events(AIMessageChunk(content=""), [event]) for event in made]


class Entrance:
    """A door to the tools of a conversation; this one is a model.

    Args:
        plan: The conversation.
        way: Which of its methods is used.

    Attributes:
        requests: How many requests were made; None where the entrance makes none.
    """

    ways: ClassVar[Sequence[str]] = ("invoke", "stream", "ainvoke", "astream")
    further_ways: ClassVar[Sequence[str]] = ()
    """Those that are tried under the marker `exhaustive`."""

    def __init__(self, plan: Plan, way: str) -> None:
        self.plan = plan
        self.way = way
        self.cancel = threading.Event()
        plan.work.stop = self.cancel.set
        self.requests: Callable[[], int | None] = lambda: None
        self.open()

    def open(self) -> None:
        """Make the model."""
        self.model = self.declared(self.remembered(scripted(self.plan, self.tools(), **self.plan.fields)))

    def tools(self) -> Any:
        """The tools, as the entrance takes them."""
        return self.plan.tools

    def remembered(self, model: Any) -> Any:
        """The model, whose requests are counted."""
        self.requests = lambda: len(model.requests)
        return model

    def declared(self, model: Any) -> Any:
        """The model with the tools that are left to the caller."""
        return model.bind_tools(self.plan.declared) if self.plan.declared else model

    def keywords(self) -> dict[str, Any]:
        """What is said with each call: which tools may be called, and what ends the run."""
        plan = self.plan
        names = {*plan.offered, *(tool["function"]["name"] for tool in plan.declared)}
        choice = {"tool_choice": allowing(names - plan.forbidden, "auto", plan.kinds)} if plan.forbidden else {}
        said = {} if plan.inbox is None else {"inbox": plan.inbox}
        return {**choice, **said, **({"cancel": self.cancel} if plan.cancels else {})}

    def ask(self) -> Outcome:
        """Ask the question."""
        return self.run([QUESTION])

    def resume(self, before: Outcome, decisions: Sequence[Decision]) -> Outcome:
        """Go on, as another process does: with what was stored."""
        return self.run(through_json(before.history), **self.decided(decisions))

    def decided(self, decisions: Sequence[Decision]) -> dict[str, Any]:
        """What a run is given that goes on: decisions as they were stored, and what the user says as well."""
        said = {} if self.plan.says is None else {"message": self.plan.says}
        return {"resume": [one.to_dict() for one in decisions], **said}

    def problems(self, before: Outcome, decisions: Sequence[Decision]) -> list[DecisionProblem] | None:
        """What `check` says of decisions; None where the entrance has none."""
        return self.model.check(through_json(before.history), [one.to_dict() for one in decisions], **self.keywords())  # type: ignore[no-any-return]

    def again(self, before: Outcome, decisions: Sequence[Decision], after: Outcome) -> Any:
        """The same decisions once more, on the same history: what was raised, or that it was the same run."""
        return self.resume(before, decisions).error

    def run(self, history: Sequence[BaseMessage], **keywords: Any) -> Outcome:
        """One run over a history."""
        return self.outcome(history, run(self.way, self.model, history, config=CONFIG, **self.keywords(), **keywords))

    def outcome(self, history: Sequence[BaseMessage], ran: Ran) -> Outcome:
        """What a run of the model came to."""
        after = [*history, *ran.new]
        if ran.message is None:
            return Outcome(after, getattr(ran.error, "stop_reason", None), error=ran.error)
        assert pending_calls(ran.message) == pending_calls(after)
        return Outcome(after, stop_reason(ran.message), pending_calls(after))

    def check(self, last: Outcome) -> None:
        """Check what the entrance has around the run."""

    def close(self) -> None:
        """End what the entrance has begun."""
        self.plan.work.release.set()


class Bound(Entrance):
    """A model of which everything is bound: nothing is said where it is made, nor with the call."""

    ways = ("invoke", "astream")
    further_ways = ("stream", "ainvoke")

    def open(self) -> None:
        """Bind."""
        fields = dict(self.plan.fields)
        own = {name: fields.pop(name) for name in ("middleware", "handlers") if name in fields}  # no call has them
        model = self.declared(self.remembered(scripted(self.plan, self.tools(), **own)))
        self.model = model.bind(**fields, **super().keywords()).with_config(CONFIG)

    def run(self, history: Sequence[BaseMessage], **keywords: Any) -> Outcome:
        """One run over a history."""
        return self.outcome(history, run(self.way, self.model, history, **keywords))

    def problems(self, before: Outcome, decisions: Sequence[Decision]) -> list[DecisionProblem] | None:
        """What the model says under what is bound."""
        return self.model.check(through_json(before.history), list(decisions))  # type: ignore[no-any-return]


class Raw(Entrance):
    """Functions of the JSON text of their arguments. Such a tool is given the whole call: its cache needs a key."""

    ways = ("invoke", "astream")

    def open(self) -> None:
        """Make the model."""
        policies = self.plan.fields.get("policies", {})
        for name, policy in policies.items():
            policies[name] = replace(policy, cache_key=dict) if policy.cache is not None else policy
        super().open()

    def tools(self) -> Any:
        """The tools."""
        work, names = self.plan.work, self.plan.names
        return raw_functions(work.raw(names), work.functions(names))


class Asked(Entrance):
    """An `Agent`."""

    ways = ("run_stream", "arun")
    further_ways = ("run", "arun_stream")

    def run(self, history: Sequence[BaseMessage], **keywords: Any) -> Outcome:
        """A question to an agent, or what was decided about its calls."""
        question = None if "resume" in keywords else history[-1]
        before = history if question is None else history[:-1]
        self.agent, options = Agent(self.model, history=before), {"config": CONFIG, **self.keywords(), **keywords}
        try:
            result = self._run(question, options)
        except Exception as error:
            return Outcome(self.agent.history, getattr(error, "stop_reason", None), error=error)
        assert self.agent.history == [*before, *result.messages]
        return Outcome(list(self.agent.history), result.stop_reason, pending_calls(result.message))

    def problems(self, before: Outcome, decisions: Sequence[Decision]) -> list[DecisionProblem] | None:
        """What the agent says of its own conversation, or of a given one."""
        if self.way.startswith("a"):
            return waited(self.agent.acheck(decisions, **self.keywords()))  # type: ignore[no-any-return]
        return self.agent.check(decisions, history=through_json(before.history), **self.keywords())

    def _run(self, question: Any, options: Mapping[str, Any]) -> Any:
        if self.way == "run":
            return self.agent.run(question, **options)
        if self.way == "arun":
            return waited(self.agent.arun(question, **options))
        stream = self.agent.run_stream(question, **options) if self.way == "run_stream" else self.agent.arun_stream(question, **options)
        if self.way == "run_stream":
            list(stream)
        else:
            waited(_exhaust(stream))
        return stream.result


class Events(Entrance):
    """The events of a stream: what is stored is what they bring."""

    ways = ("events", "aevents")

    def run(self, history: Sequence[BaseMessage], **keywords: Any) -> Outcome:
        """One run, as its reader knows it."""
        options, told = {"config": CONFIG, **self.keywords(), **keywords}, []
        error: Exception | None = None
        stream: Any = events(self.model.stream(history, **options)) if self.way == "events" else None
        try:
            if stream is not None:
                told.extend(stream)
            else:
                waited(collect(told, lambda: aevents(self.model.astream(history, **options))))
        except Exception as raised:
            error = raised
        told = [event for event in told if event.run_id == told[0].run_id]  # models that are given as tools have events of their own
        self.plan.told += told
        messages = [event.message for event in told if isinstance(event, MessageDone)]
        waiting = [call for event in told if isinstance(event, CallsPending) for call in event.calls]
        reasons = [event.stop_reason for event in told if isinstance(event, RunEnded)] or [getattr(error, "stop_reason", None)]
        assert not waiting or waiting == pending_calls([*history, *messages])
        return Outcome([*history, *messages], reasons[0], list(waiting), error)


async def _exhaust(chunks: Any) -> None:
    async for _ in chunks:
        pass


async def collect(told: list[Any], read: Callable[[], Any]) -> None:
    """Add what a stream brings to a list."""
    async for event in read():
        told.append(event)


class Nested(Entrance):
    """A model that a tool of another model asks. What is decided comes to the inner one; what ends the run is told to the outer one."""

    ways = ("invoke", "astream")

    def open(self) -> None:
        """Make the inner model."""
        self.ends = {"deadline": seconds} if (seconds := self.plan.fields.pop("deadline", None)) else {}
        super().open()
        self.inner: Outcome | None = None

    def run(self, history: Sequence[BaseMessage], **keywords: Any) -> Outcome:
        """A run whose tool runs the inner model over this history."""
        inner_way = {"invoke": "stream", "astream": "ainvoke"}[self.way]
        options = self.keywords()
        around = {**self.ends, **({"cancel": options.pop("cancel")} if self.plan.cancels else {})}

        def finish(ran: Ran) -> Any:
            self.inner = self.outcome(history, ran)
            if ran.error is not None:
                raise ran.error
            return ran.message

        def delegate() -> Any:
            """Have somebody else do it."""
            return finish(run(inner_way, self.model, history, config=CONFIG, **options, **keywords))

        async def adelegate() -> Any:
            """Have somebody else do it."""
            try:
                message = await self.model.ainvoke(list(history), dict(CONFIG), **options, **keywords)
            except Exception as error:
                return finish(Ran(new_messages(error), error=error))
            return finish(Ran(new_messages(message), message))

        replies: Any = lambda messages, **_: "Told." if messages[-1].type == "tool" else [fragments([Call("delegate", {}, "outer_0")])]  # noqa: E731
        outer = ScriptedChatModel(replies=replies, tools={"delegate": delegate if self.way == "invoke" else adelegate})
        self.ran = run(self.way, outer, [QUESTION], config=CONFIG, **around)
        self.outer = self.outcome([QUESTION], self.ran)
        if around:
            return self.outer
        assert self.inner is not None
        return self.inner

    def check(self, last: Outcome) -> None:
        """The outer run's result says what became of the inner one."""
        if self.outer is last:
            return
        (result,) = [one for one in self.outer.history if isinstance(one, ToolMessage)]
        assert self.outer.reason == "complete" and not self.outer.pending
        assert result.status == ("success" if last.error is None and last.reason == "complete" else "error"), result
        assert all(call.name in result.text for call in last.pending)
