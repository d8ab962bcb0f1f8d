"""Entrances that other programs make of a model: structured output, over a real wire, nodes of a graph, and another package's class."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar

from langchain_core.exceptions import ModelAPIError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from langchain_autotools import CallsPendingError, Decision, ToolsAndMessagesMixin, new_messages, pending_calls, stop_reason, with_tools
from langchain_autotools.errors import DecisionProblem
from tests.laws.entrances import CONFIG, PAID, QUESTION, Entrance, Outcome
from tests.laws.service import through_json
from tests.laws.ways import Ran, chat, waited
from tests.support.http_server import Exchange
from tests.support.openai_server import OpenAIServer
from tests.support.responses_server import ResponsesServer
from tests.support.script import Call, Failure, Turn
from tests.support.whole_classes import ChatHouse, ChatStreamsBoth, call_of

ANSWER = {
    "title": "Answer",
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
_numbers = itertools.count()


class Structured(Entrance):
    """A model whose answer is an object, over OpenAI's wire: the server refuses what the vendor refuses."""

    ways = ("invoke", "ainvoke")
    output: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Further keywords of the output."""

    def open(self) -> None:
        """Make the model, and its server: of chat completions, and where the vendor's own tools are called of the Responses API."""
        builtin = [{"type": kind} for kind in self.plan.kinds]
        self.server = (ResponsesServer if builtin else OpenAIServer)(self._reply)
        self.server.__enter__()
        self.requests = lambda: len(self.server.requests)
        api = {"use_responses_api": True} if builtin else {}
        fallbacks = {"fallbacks": [chat(self.server, model="another", no_progress=3, **api)]} if self.plan.fails else {}
        model: Any = chat(self.server, tools=[*self.tools(), *builtin], **api, **fallbacks, **self.plan.fields)
        declared = {"tools": self.plan.declared} if self.plan.declared else {}
        self.model = model.with_structured_output(ANSWER, method="json_schema", include_raw=True, **declared, **self.output)

    def _reply(self, exchange: Exchange) -> Turn | Failure:
        if self.plan.fails and exchange.json["model"] != "another":
            return Failure(503)
        sent = exchange.json["input" if self.plan.handled else "messages"]
        said = [one for one in sent if one.get("role") in ("assistant", "user")]
        before = [AIMessage("") if one["role"] == "assistant" else HumanMessage(one["content"]) for one in said]
        usage: Any = {"usage": (len(exchange.body) // 4, 7)} if self.plan.counts else {}
        if (summary := self.plan.summary(before)) is not None:
            return Turn(summary, **usage)
        calls = self.plan.calls(before)
        reply: Any = ("Let me see.", calls) if calls else ('{"answer": "Done."}',)
        usage = {"usage": (1_000_000, 0)} if self.plan.paid else usage
        return Turn(*reply, items=self.plan.items(before), **usage)

    def run(self, history: Sequence[BaseMessage], **keywords: Any) -> Outcome:
        """One run; what it raises brings its messages."""
        options: dict[str, Any] = {**self.keywords(), **keywords}
        try:
            if self.way == "invoke":
                out = self.model.invoke(list(history), CONFIG, **options)
            else:
                out = waited(self.model.ainvoke(list(history), CONFIG, **options))
        except Exception as error:
            after = [*history, *new_messages(error)]
            if isinstance(error, CallsPendingError):
                return Outcome(after, "calls_pending", pending_calls(after))
            return Outcome(after, getattr(error, "stop_reason", None), error=error)
        outcome = self.outcome(history, Ran(new_messages(out["raw"]), out["raw"]))
        if outcome.pending:
            wants = outcome.reason == "calls_pending" and any(call.kind != "caller" for call in outcome.pending)
            assert out["parsed"] is None and isinstance(out["parsing_error"], CallsPendingError) == wants
        elif outcome.reason == "complete":
            assert out["parsed"] == {"answer": "Done."}
        return outcome

    def problems(self, before: Outcome, decisions: Sequence[Decision]) -> list[DecisionProblem] | None:
        """A sequence of LangChain's, which has no `check`."""
        return None

    def check(self, last: Outcome) -> None:
        """The server refused nothing."""
        assert [one.message for one in self.server.rejections] == []

    def close(self) -> None:
        """End the server."""
        super().close()
        self.server.__exit__(None, None, None)


class Checked(Structured):
    """The same, of an output that is checked: the first one does not fit, and goes back to the model with the error, in the same run."""

    output: ClassVar[Mapping[str, Any]] = MappingProxyType({"retries": 1})

    def open(self) -> None:
        """Make the model, and its server."""
        self._rejects = iter([True])
        super().open()

    def _reply(self, exchange: Exchange) -> Turn | Failure:
        made = super()._reply(exchange)
        is_output = isinstance(made, Turn) and made.text.startswith('{"answer"')
        return Turn('{"answer": ') if is_output and next(self._rejects, False) else made


class _Planned(ChatHouse):
    """A model of another package that plays the plan: whole replies, with calls as such a class has read them."""

    plan: Any

    def _reply(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        if self.plan.fails:
            raise ModelAPIError("It is down.")
        self.sent.append((list(messages), kwargs))
        if (summary := self.plan.summary(messages)) is not None:
            return AIMessage(summary)
        calls, beside = self.plan.calls(messages), self.plan.beside(messages)
        made = self._written([*calls, *beside]) if calls else AIMessage("Done.")
        paid = {"usage_metadata": PAID.usage_metadata, "response_metadata": PAID.response_metadata} if self.plan.paid else {}
        return made.model_copy(update={"content": _with_toolset(made.text, beside) if beside else made.content, **paid})

    def _written(self, calls: Sequence[Call]) -> AIMessage:
        return AIMessage("Let me see.", tool_calls=[{**call_of(one.name, **json.loads(one.raw)), "id": one.id} for one in calls])


def _with_toolset(text: str, calls: Sequence[Call]) -> list[Any]:
    """The content of a reply, with calls whose toolset is there alone, as other packages have it."""
    uses = [{"type": "tool_use", "id": one.id, "name": one.name, "input": json.loads(one.raw), "toolset_name": "shell"} for one in calls]
    return [{"type": "text", "text": text}, *uses]


class _PlannedJoined(ToolsAndMessagesMixin, _Planned):
    """The mixin before the class."""


class _PlannedStreams(ChatStreamsBoth, _Planned):
    """The same with streams, whose fragments are what the model wrote."""

    def _written(self, calls: Sequence[Call]) -> AIMessage:
        written = [{"name": one.name, "args": one.raw, "id": one.id, "error": None} for one in calls]
        return AIMessage("Let me see.", invalid_tool_calls=written)


class Joined(Entrance):
    """A chat model class of another package, joined with the tools: whole with the mixin before it, streamed by `with_tools`."""

    ways = ("invoke", "astream")
    further_ways = ("ainvoke", "stream")

    def open(self) -> None:
        """Join."""
        other = {"fallbacks": [with_tools(_PlannedStreams(plan=replace(self.plan, fails=False)), [])]} if self.plan.fails else {}
        if self.way.endswith("invoke"):
            model: Any = _PlannedJoined(plan=self.plan, tools=self.tools(), no_progress=None, **other, **self.plan.fields)
        else:
            model = with_tools(_PlannedStreams(plan=self.plan), self.tools(), no_progress=None, **other, **self.plan.fields)
        self.requests = lambda: len(model.sent)
        self.model = self.declared(model)


class Graph(Entrance):
    """Nodes of a graph whose reader has LangGraph's handlers attached: one runs the model, the other one asks somebody."""

    ways = ("stream", "astream")

    def open(self) -> None:
        """Compile the graph."""
        super().open()
        self.ran = Ran()
        builder = StateGraph(MessagesState).add_node("run_model", self._run_model).add_node("ask_human", self._ask_human)
        builder.add_edge(START, "run_model").add_conditional_edges("run_model", _following).add_conditional_edges("ask_human", _following)
        self.saver = InMemorySaver()
        self.graph: Any = builder.compile(checkpointer=self.saver)
        self.thread = self._new_thread()

    def _new_thread(self) -> Any:
        return {"configurable": {**CONFIG["configurable"], "thread_id": str(next(_numbers))}}

    def _run_model(self, state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        return self._brought(self.model.invoke(state["messages"], config, **self.keywords()))

    def _ask_human(self, state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        decisions = interrupt([call.to_dict() for call in pending_calls(state["messages"])])
        said = self.decided([Decision.from_dict(one) for one in decisions])
        return self._brought(self.model.invoke(state["messages"], config, **said, **self.keywords()))

    def _brought(self, message: AIMessage) -> dict[str, Any]:
        self.ran = Ran(new_messages(message), message)
        return {"messages": self.ran.new}

    def ask(self) -> Outcome:
        """Ask the question."""
        return self._outcome({"messages": [QUESTION]})

    def resume(self, before: Outcome, decisions: Sequence[Decision]) -> Outcome:
        """Go on behind the interrupt."""
        return self._outcome(Command(resume=[one.to_dict() for one in decisions]))

    def again(self, before: Outcome, decisions: Sequence[Decision], after: Outcome) -> Any:
        """The same decisions come to another thread of the same history, as to a graph whose process died before it wrote."""
        return self.run(through_json(before.history), **self.decided(decisions)).error

    def _outcome(self, given: Any) -> Outcome:
        self.ran, error = Ran(), None
        modes = ["messages", "updates", "custom"]
        try:
            if self.way == "stream":
                list(self.graph.stream(given, self.thread, stream_mode=modes))
            else:
                waited(self._read(given, modes))
        except Exception as raised:
            error = raised
        history = list(self.graph.get_state(self.thread).values["messages"])
        if error is not None:
            return Outcome([*history, *new_messages(error)], getattr(error, "stop_reason", None), error=error)
        assert self.ran.message is not None
        return Outcome(history, stop_reason(self.ran.message), pending_calls(history))

    async def _read(self, given: Any, modes: Any) -> None:
        async for _ in self.graph.astream(given, self.thread, stream_mode=modes):
            pass


def _following(state: MessagesState) -> str:
    return "ask_human" if pending_calls(state["messages"]) else END
