"""Random runs, and the events that are told of them: for tests of what events are, and of what is made of them.

```python
for seed in range(1000):
    told = told_of(random_run(seed))          # one run, read to its end (or left, or failed)
    told.events, told.message, told.error     # what was told, the run message, what was raised
    for told in conversation(seed): ...       # the same run, then those that go on with its pending calls once somebody has decided
```

A run is data: all that is in it follows from its seed, but for the order in which tools end that run side by side, and ids that are made
here. It is read in one of `WAYS`, synchronously or not; each function here is synchronous, and not for use inside an event loop.
"""

from __future__ import annotations

import asyncio
import gc
import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda

from langchain_autotools import Agent, Compaction, Decision, PendingCall, aevents, events, new_messages, pending_calls
from langchain_autotools.agent import AgentStream, AsyncAgentStream
from langchain_autotools.chunks import sum_chunks
from langchain_autotools.event_types import MessageDone, RunEvent
from langchain_autotools.messages.metadata import attach_messages
from langchain_autotools.testing import Request, ScriptedChatModel
from tests.support.inboxes import Readings
from tests.support.random_replies import random_reply, random_text, with_vendor_items
from tests.support.random_tools import CALLERS, POLICIES, Around, random_calls, tools_of

WAYS = ("stream", "astream", "chain", "achain", "lambda", "alambda", "agent", "aagent")
"""How a run is read: of the model itself, with a prompt before and a parser behind it, with a function behind it, of an agent; each
synchronously and asynchronously."""
QUESTION = HumanMessage("How warm is it?")
DECLARED = [
    {"type": "function", "function": {"name": name, "description": "Theirs.", "parameters": {"type": "object", "properties": {}}}}
    for name in CALLERS
]
_NESTED = 2
# LangChain silences warnings while it makes a tool of a function: no more than one thread at a time can do that.
_MAKING = threading.Lock()
_TEXTS = ("chain", "achain")


@dataclass(frozen=True)
class RandomModel:
    """A model that plays a script.

    Attributes:
        replies: What it says, request by request; "Fine." after that.
        settings: Arguments of its constructor: limits, approvals, `output_version`.
        has_tools: Whether it has tools of its own.
        declares: Whether a tool is declared to it that is left to the caller.
        depth: How many runs are around it.
    """

    replies: Sequence[Sequence[Any]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    has_tools: bool = True
    declares: bool = False
    depth: int = 0

    @property
    def settings_of_compaction(self) -> dict[str, Any]:
        """What of the settings says how requests are shortened."""
        return {
            name: value for name, value in self.settings.items() if name in ("compact", "context_window") and "compact" in self.settings
        }

    def made(self, around: Around) -> Any:
        """The model."""
        draw = random.Random(repr(self.replies))
        script = iter([with_vendor_items(draw, reply) for reply in deepcopy(self.replies)])  # core writes ids into the chunks it is given
        with _MAKING:
            tools = tools_of(around, lambda seed: random_model(random.Random(seed), self.depth + 1).made(around)) if self.has_tools else ()
            model = ScriptedChatModel(replies=lambda messages, **_: next(script, "Fine."), tools=tools, **self.settings)
        return model.bind_tools(DECLARED) if self.declares else model


@dataclass(frozen=True)
class RandomRun:
    """One run that is going to be read.

    Attributes:
        seed: What all else follows from.
        way: One of `WAYS`.
        model: The model.
        history: What it is asked with.
        decisions: What was decided about the calls that the history ends in; None where the run is no resumed one.
        cancel_after: After how many events the reader cancels the run; None for never.
        leave_after: After how many events the reader closes the stream; None for never.
        said: What the user has said before each reading of the inbox; None for a run without one.
    """

    seed: int
    way: str
    model: RandomModel
    history: Sequence[BaseMessage] = (QUESTION,)
    decisions: Sequence[Decision] | None = None
    cancel_after: int | None = None
    leave_after: int | None = None
    said: Sequence[Sequence[Any]] | None = None


@dataclass
class Told:
    """What was told of a run.

    Attributes:
        run: The run.
        events: All events, in order.
        message: What the stream came to: the run message; None where it failed or was left.
        result: The message that an agent's own stream says it came to.
        error: What the events raised at their end.
        requests: What the outermost model was asked.
    """

    run: RandomRun
    events: list[RunEvent] = field(default_factory=list)
    message: AIMessage | None = None
    result: AIMessage | None = None
    error: Exception | None = None
    requests: list[Request] = field(default_factory=list)

    @property
    def run_id(self) -> str | None:
        """The id of the outermost run."""
        return self.events[0].run_id if self.events else None

    @property
    def own(self) -> list[RunEvent]:
        """The events of the outermost run alone, without those of runs inside its tools."""
        return [event for event in self.events if event.run_id == self.run_id]

    @property
    def messages(self) -> list[BaseMessage]:
        """The new messages of the outermost run, as its events have them."""
        return [event.message for event in self.own if isinstance(event, MessageDone)]


# ---------------------------------------------------------------------------------------------- making runs


def random_run(seed: int, way: str | None = None) -> RandomRun:
    """The run of a seed.

    Args:
        seed: The same seed makes the same run.
        way: How it is to be read, one of `WAYS`; None leaves that to the seed.
    """
    draw = random.Random(seed)
    chosen = draw.choice(WAYS) if way is None else draw.choice(WAYS) and way
    model = random_model(draw)
    cancel_after = draw.randint(0, 30) if draw.random() < 0.1 else None
    return RandomRun(seed, chosen, model, history=_history(draw), cancel_after=cancel_after)


def with_inbox(run: RandomRun) -> RandomRun:
    """The same run, in which the user says something now and then. Its model has more to say."""
    draw = random.Random(f"inbox/{run.seed}")
    more = [random_reply(draw, (), f"msg_more_{run.seed}_{number}") for number in range(draw.randint(0, 3))]
    calls = random_calls(draw, 9, nested=False, stops=False) if run.model.has_tools and draw.random() < 0.3 else ()
    more += [random_reply(draw, calls, f"msg_calls_{run.seed}")] if calls else []
    return replace(run, model=replace(run.model, replies=[*run.model.replies, *more]), said=random_said(draw))


def with_compaction(run: RandomRun) -> RandomRun:
    """The same run behind long results, which are left out of its requests; now and then its model reads one again."""
    draw = random.Random(f"compaction/{run.seed}")
    if not run.model.has_tools:
        return run
    settings = {"compact": Compaction(at=draw.choice([1e-8, 1e-6, 3e-6]), keep=draw.randint(0, 3)), "context_window": 10**9}
    made, replies = random_calls(draw, 9, nested=False, stops=False), list(run.model.replies)
    if draw.random() < 0.7:
        reads = [replace(one, name="read_result", args={"handle": f"r{draw.randint(1, 5)}", "find": "3"}) for one in made]
        replies.insert(draw.randrange(len(replies)), random_reply(draw, reads, f"msg_reads_{run.seed}"))
    long = [HumanMessage("Before."), *_long_turn(draw), AIMessage("Seen."), *run.history]
    return replace(run, history=long, model=replace(run.model, replies=replies, settings={**run.model.settings, **settings}))


def _long_turn(draw: random.Random) -> list[BaseMessage]:
    """Calls with long results."""
    ids = [f"long_{number}" for number in range(draw.randint(1, 5))]
    calls = [{"name": "long", "args": {}, "id": one} for one in ids]
    return [AIMessage("", tool_calls=calls), *(ToolMessage("word 3\n" * draw.choice([10, 100, 1000]), tool_call_id=one) for one in ids)]


def random_said(draw: random.Random) -> list[list[Any]]:
    """What the user says before each reading: often nothing, now and then something that is no message."""
    plan = []
    for reading in range(draw.randint(1, 6)):
        words = [f"{reading}.{number} {random_text(draw, 2)}" for number in range(draw.choice([0, 0, 1, 1, 2]))]
        plan.append([draw.choice([one, HumanMessage(one), HumanMessage([{"type": "text", "text": one}], id=one[:3])]) for one in words])
    if draw.random() < 0.05:
        draw.choice(plan).append(draw.choice(["", 3, AIMessage("x"), HumanMessage("x", id="0.0")]))
    return plan


def random_model(draw: random.Random, depth: int = 0) -> RandomModel:
    """A model with a script of some turns that call tools, and an answer.

    Args:
        draw: What is drawn from.
        depth: How many runs are around it.
    """
    has_tools = draw.random() < 0.9
    settings = _settings(draw, depth) if has_tools else {}
    if draw.random() < 0.2:
        settings["output_version"] = "v1"
    turns = draw.choice([0, 1, 1, 2, 3]) if has_tools else 0
    blocks = settings.get("deadline") is not None
    replies = []
    for number in range(turns):
        calls = random_calls(draw, number, nested=depth < _NESTED, stops=depth == 0)
        if blocks and number == turns - 1:
            calls = [replace(calls[0], name="block", args={})]
        replies.append(random_reply(draw, calls, f"msg_{depth}_{draw.randrange(10**6)}_{number}"))
    replies.append(random_reply(draw, (), f"msg_{depth}_{draw.randrange(10**6)}_end"))
    return RandomModel(replies, settings, has_tools, declares=draw.random() < (0.3 if has_tools else 0.5), depth=depth)


def _settings(draw: random.Random, depth: int) -> dict[str, Any]:
    """Limits, approvals and ways to execute; most runs have none or few."""
    settings: dict[str, Any] = {"policies": POLICIES, "no_progress": None}
    limits = [("max_turns", draw.randint(1, 2)), ("max_tool_calls", draw.randint(0, 2)), ("token_budget", 60)]
    if draw.random() < 0.3:
        settings |= dict([draw.choice(limits)])
        settings["on_limit"] = draw.choice(["answer", "return", "raise"])
    if draw.random() < 0.25 and depth == 0:
        settings["requires_approval"] = draw.choice([True, ["fast", "measure"], ["ask", "aask", "direct", "slow"]])
    if draw.random() < 0.1:
        settings["parallel"] = False
    elif draw.random() < 0.1:
        settings["max_concurrency"] = 1
    if draw.random() < 0.03 and depth == 0:
        settings["deadline"] = 0.05
    if draw.random() < 0.03:
        settings["on_executed"] = _full
    return settings


def _full(result: Any) -> None:
    """A listener that ends the run once a call has run."""
    raise OSError("full")


def _history(draw: random.Random) -> list[BaseMessage]:
    """A question; in some runs after a call that nobody has answered, which the run answers as interrupted."""
    if draw.random() < 0.93:
        return [QUESTION]
    calls = [{"name": "fast", "args": {"gate": "old"}, "id": "call_old"}]
    return [QUESTION, AIMessage("Wait.", tool_calls=calls, id="msg_old")]


def random_decisions(draw: random.Random, calls: Sequence[PendingCall]) -> list[Decision]:
    """What somebody decides about calls that wait: most of them, in any of the ways that are offered."""
    decisions = []
    for call in calls:
        if call.kind in ("caller", "client_tool"):
            decisions.append(draw.choice([call.respond("done"), call.respond({"done": 1}), call.reject("no")]))
        elif call.kind == "approval" and draw.random() < 0.9:
            decisions.append(draw.choice([call.approve, call.approve, call.reject, _edit(call), lambda call=call: call.respond("mine")])())
    return decisions


def _edit(call: PendingCall) -> Any:
    return (lambda: call.edit({**call.args, "gate": "edited"})) if "gate" in call.args else call.approve


# ---------------------------------------------------------------------------------------------- reading them


def told_of(run: RandomRun, *, heard: bool = True) -> Told:
    """Read a run: to its end, until it fails, or until the reader leaves.

    Args:
        run: The run.
        heard: Whether its events are read; else its stream is read itself, and nobody listens.
    """
    around, told = Around(), Told(run)
    gc.freeze()  # what is older than the run is not looked through at its end, in `settled`
    model = run.model.made(around)
    try:
        if run.way in ("astream", "achain", "alambda", "aagent"):
            asyncio.run((_aread if heard else _aread_unheard)(told, stream_of(run, model, around), around))
        else:
            (_read if heard else _read_unheard)(told, stream_of(run, model, around), around)
    finally:
        around.release.set()
    told.requests = getattr(model, "bound", model).requests
    return told


def told(run: RandomRun) -> list[RunEvent]:
    """The events of a run."""
    return told_of(run).events


def conversation(seed: int, most: int = 3) -> Iterator[Told]:
    """A run, and those that go on with its pending calls once somebody has decided, `most` in all. Each is a stream of its own."""
    run, draw = random_run(seed), random.Random(f"decisions/{seed}")
    for _ in range(most):
        told = told_of(run)
        yield told
        history = [*run.history, *told.messages]
        calls = pending_calls(history)
        if told.error is not None or not calls:
            return
        way = draw.choice(("stream", "astream", "agent", "aagent")) if run.model.has_tools else run.way
        decisions = random_decisions(draw, calls)
        if not (run.model.has_tools and decisions):
            return
        left = run.model.replies[len(told.requests) :]
        run = replace(run, way=way, model=replace(run.model, replies=left), history=history, decisions=decisions, cancel_after=None)


def stream_of(run: RandomRun, model: Any, around: Around) -> Any:
    """The stream that is read, of a model, a chain or an agent."""
    keywords: dict[str, Any] = {} if run.decisions is None else {"resume": run.decisions}
    keywords["cancel"] = around.cancel
    if run.said is not None:
        keywords["inbox"] = Readings(run.said)
    messages = list(run.history)
    kind = run.way if run.way in ("stream", "agent") else run.way.removeprefix("a")
    asynchronous = kind != run.way
    if kind == "agent" and not hasattr(model, "bound"):
        agent = Agent(model, history=messages[:-1])
        question = None if run.decisions is not None else messages[-1]
        if isinstance(question, HumanMessage) or question is None:
            agent.history = messages if question is None else messages[:-1]
            return (agent.arun_stream if asynchronous else agent.run_stream)(question, **keywords)
    if kind == "chain":
        prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("messages")])
        chain = prompt | model.bind(**keywords) | StrOutputParser()
        return (chain.astream if asynchronous else chain.stream)({"messages": messages})
    if kind == "lambda":
        chain = model.bind(**keywords) | RunnableLambda(lambda message: message)
        return (chain.astream if asynchronous else chain.stream)(messages)
    return (model.astream if asynchronous else model.stream)(messages, **keywords)


def _read(told: Told, stream: Any, around: Around) -> None:
    told_by = events(stream)
    try:
        for event in told_by:
            if _takes(told, event, around):
                return
        told.message, told.result = told_by.message, _result(stream)
    except Exception as error:
        told.error = error
    finally:
        told_by.close()


async def _aread(told: Told, stream: Any, around: Around) -> None:
    told_by = aevents(stream)
    try:
        async for event in told_by:
            if _takes(told, event, around):
                return
        told.message, told.result = told_by.message, _result(stream)
    except Exception as error:
        told.error = error
    finally:
        await told_by.aclose()
        await settled()


async def settled() -> None:
    """Wait until no other task is at work: chains of LangChain's leave the closing of what is before them to the garbage collector.

    Raises:
        TimeoutError: One goes on for long.
    """
    gc.collect()
    async with asyncio.timeout(20):
        quiet = 0
        while quiet < 20:  # each may bring about another one
            await asyncio.sleep(0)
            quiet = quiet + 1 if asyncio.all_tasks() == {asyncio.current_task()} else 0


def _takes(told: Told, event: RunEvent, around: Around) -> bool:
    """Take an event; True where the reader leaves after it."""
    told.events.append(event)
    if told.run.cancel_after == len(told.events):
        around.cancel.set()
    return told.run.leave_after == len(told.events)


def _read_unheard(told: Told, stream: Any, around: Around) -> None:
    chunks = []
    try:
        for chunk in stream:
            chunks.append(chunk)
        told.message, told.result = None if told.run.way in _TEXTS else summed(chunks), _result(stream)
    except Exception as error:
        told.error = error


async def _aread_unheard(told: Told, stream: Any, around: Around) -> None:
    chunks = []
    try:
        async for chunk in stream:
            chunks.append(chunk)
        told.message, told.result = None if told.run.way in _TEXTS else summed(chunks), _result(stream)
    except Exception as error:
        told.error = error


def summed(chunks: Sequence[Any]) -> AIMessage:
    """What chunks sum to, with the live messages that they bring, but for an agent's question, which comes first."""
    message, brought = sum_chunks(chunks), [one for chunk in chunks for one in new_messages(chunk)]
    attach_messages(message, list(dropwhile(lambda one: isinstance(one, HumanMessage), brought)))
    return message


def _result(stream: Any) -> AIMessage | None:
    return stream.result.message if isinstance(stream, AgentStream | AsyncAgentStream) else None
