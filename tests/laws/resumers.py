"""Random conversations that several processes resume at once with the same decisions, some of which die at a random step.

python -m tests.laws.resumers 10000
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import AlreadyResumedError, Decision, PendingCall, new_messages, pending_calls
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.service import through_json
from tests.support.claims import Died, LaterClaims, MemoryClaims, Process, at_once

_MOST_STEPS = 60


def call(name: str, call_id: str, **args: Any) -> dict[str, Any]:
    """A call."""
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


@dataclass
class Conversation:
    """A conversation whose first turn has calls that wait, of the model itself and of one that it asks.

    Attributes:
        own: How many calls of its own wait.
        inner: How many wait inside the model that it asks; 0 where it asks none.
        parallel: Whether calls run side by side.
        effects: What has happened, in order.
    """

    own: int
    inner: int
    parallel: bool
    effects: list[str] = field(default_factory=list)


_here: ContextVar[tuple[Conversation, Process]] = ContextVar("here")
"""The conversation, and the process in which something happens."""


def pay(to: str) -> str:
    """Pay somebody: needs approval."""
    conversation, process = _here.get()
    process.step("in tool")
    conversation.effects.append(to)
    process.step("in tool")
    return f"paid {to}"


def note(text: str) -> str:
    """Note something: needs none."""
    conversation, process = _here.get()
    process.step("in note")
    conversation.effects.append(text)
    return "noted"


def replying(first: AIMessage, text: str) -> Callable[..., Any]:
    """Replies: calls, then one of a tool that needs no approval, then a text."""

    def reply(messages: Sequence[BaseMessage], **_: Any) -> Any:
        _here.get()[1].step("request")
        turn = sum(isinstance(message, AIMessage) for message in messages)
        return (first, AIMessage("", tool_calls=[call("note", f"{text}_n", text=text)]), "Done.")[min(turn, 2)]

    return reply


@lru_cache
def model_of(own: int, inner: int, parallel: bool) -> ScriptedChatModel:
    """The model of conversations of one kind."""
    common: dict[str, Any] = {"requires_approval": ["pay"], "parallel": parallel, "no_progress": None}
    asked = [call("pay", f"in_{number}", to=f"inner {number}") for number in range(inner)]
    helper = ScriptedChatModel(name="helper", tools=[pay, note], replies=replying(AIMessage("", tool_calls=asked), "inside"), **common)
    first = [call("pay", f"own_{number}", to=f"own {number}") for number in range(own)]
    if inner:
        first.insert(own // 2, call("helper", "ask", question="Pay them."))
    tools = [pay, note, *([helper] if inner else [])]
    return ScriptedChatModel(tools=tools, replies=replying(AIMessage("", tool_calls=first), "outside"), **common)


def resumed(
    conversation: Conversation, process: Process, way: str, history: Sequence[BaseMessage], decisions: Sequence[Decision] | None
) -> list[BaseMessage]:
    """What a run in a process brings."""
    _here.set((conversation, process))
    model: Any = model_of(conversation.own, conversation.inner, conversation.parallel)
    if way == "ainvoke":
        return new_messages(asyncio.run(model.ainvoke(history, resume=decisions, claim=LaterClaims(process))))
    if way == "stream":
        return [message for chunk in model.stream(history, resume=decisions, claim=process) for message in new_messages(chunk)]
    return new_messages(model.invoke(history, resume=decisions, claim=process))


def decided(one: PendingCall, chance: random.Random) -> tuple[Decision, str | None]:
    """A decision, and what it lets happen."""
    to = str(one.args["to"])
    made: list[tuple[Decision, str | None]] = [
        *[(one.approve(), to)] * 3,
        (one.edit({"to": f"{to} edited"}), f"{to} edited"),
        (one.reject("No."), None),
        (one.respond("by hand"), None),
    ]
    return chance.choice(made)


def plain(messages: Sequence[BaseMessage]) -> list[tuple[str, str, Any]]:
    """What messages say."""
    return [(one.type, str(one.content), getattr(one, "tool_call_id", None)) for one in messages]


def rounds(conversation: Conversation, store: MemoryClaims, chance: random.Random) -> int:
    """Let processes resume the conversation until nothing waits, and check what has happened; returns how many died."""
    died = 0
    history: list[BaseMessage] = [HumanMessage("Pay them.")]
    history += resumed(conversation, Process(store), "invoke", history, None)
    allowed: list[str] = []
    while calls := [one for one in pending_calls(history) if one.kind == "approval"]:
        chosen = calls if chance.random() < 0.7 else chance.sample(calls, chance.randint(1, len(calls)))
        made = [decided(one, chance) for one in chosen]
        decisions = [decision for decision, _ in made]
        allowed += [effect for _, effect in made if effect is not None]
        ways = [chance.choice(["invoke", "stream", "ainvoke"]) for _ in range(chance.randint(1, 4))]
        deaths = [chance.choice([None, chance.randint(1, _MOST_STEPS)]) for _ in ways]
        pause = chance.choice([0.0, 0.0005])
        processes = [Process(store, at, pause, random.Random(chance.random())) for at in deaths]

        def work(process: Process, way: str, given: Sequence[BaseMessage] = tuple(history), said: Any = tuple(decisions)) -> Any:
            try:
                return resumed(conversation, process, way, through_json(given), said)
            except BaseException as error:
                raise Died(process.at) if process.is_dead else error from None  # core makes another error of some

        ended = at_once([partial(work, process, way) for process, way in zip(processes, ways, strict=True)])
        last = resumed(conversation, Process(store), "invoke", history, decisions)
        dead = [process.at for process in processes if process.is_dead]
        died += len(dead)
        check(conversation, ended, last, allowed, dead, store.left)
        assert died or all(conversation.effects.count(effect) <= 1 for effect in ("inside", "outside"))
        history += last
    assert 1 <= conversation.effects.count("outside") <= 1 + died
    return died


def check(
    conversation: Conversation,
    ended: Sequence[Any],
    last: Sequence[BaseMessage],
    allowed: Sequence[str],
    dead: Sequence[str],
    left: Collection[str],
) -> None:
    """Nothing has happened twice or without consent; all that came to an end came to the same one."""
    assert all(isinstance(one, list | AlreadyResumedError | Died) for one in ended), ended
    assert all(plain(one) == plain(last) for one in ended if isinstance(one, list))
    happened = Counter(conversation.effects)
    paid = {effect: count for effect, count in happened.items() if effect not in ("inside", "outside")}
    assert max(paid.values(), default=1) == 1, paid
    assert paid.keys() <= set(allowed)
    unknown = [one for one in last if isinstance(one, ToolMessage) and "outcome is not known" in str(one.content)]
    assert len(unknown) <= len(left), dead  # only what had begun in a process that died before it was done


def conversation_of(seed: int) -> int:
    """One random conversation; returns how many processes died."""
    chance = random.Random(seed)
    conversation = Conversation(chance.randint(1, 3), chance.choice([0, 0, 1, 2]), chance.choice([True, False]))
    try:
        return rounds(conversation, MemoryClaims(), chance)
    except BaseException as error:
        error.add_note(f"seed {seed}: {conversation}")
        raise


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    count, first = int(sys.argv[1]), int((sys.argv[2:] or ["0"])[0])
    began, deaths = time.monotonic(), sum(conversation_of(seed) for seed in range(first, first + count))
    print(f"{count} conversations, {deaths} processes died, {time.monotonic() - began:.0f} s")
