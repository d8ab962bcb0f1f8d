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
from dataclasses import dataclass, field
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

    def model(self, process: Process, *, later: bool = False) -> ScriptedChatModel:
        """The model, as one process makes it."""

        def pay(to: str) -> str:
            """Pay somebody: needs approval."""
            process.step("in tool")
            self.effects.append(to)
            process.step("in tool")
            return f"paid {to}"

        def note(text: str) -> str:
            """Note something: needs none."""
            process.step("in note")
            self.effects.append(text)
            return "noted"

        def replying(first: AIMessage, text: str) -> Callable[..., Any]:
            def reply(messages: Sequence[BaseMessage], **_: Any) -> Any:
                process.step("request")
                turn = sum(isinstance(message, AIMessage) for message in messages)
                return (first, AIMessage("", tool_calls=[call("note", f"{text}_n", text=text)]), "Done.")[min(turn, 2)]

            return reply

        common: dict[str, Any] = {"requires_approval": ["pay"], "parallel": self.parallel, "no_progress": None}
        asked = [call("pay", f"in_{number}", to=f"inner {number}") for number in range(self.inner)]
        helper = ScriptedChatModel(name="helper", tools=[pay, note], replies=replying(AIMessage("", tool_calls=asked), "inside"), **common)
        first = [call("pay", f"own_{number}", to=f"own {number}") for number in range(self.own)]
        first.insert(self.own // 2, call("helper", "ask", question="Pay them.")) if self.inner else None
        tools = [pay, note, *([helper] if self.inner else [])]
        claim = LaterClaims(process) if later else process
        return ScriptedChatModel(tools=tools, replies=replying(AIMessage("", tool_calls=first), "outside"), claim=claim, **common)

    def labels(self, calls: Sequence[PendingCall]) -> list[str]:
        """What the calls that wait would do."""
        return [str(one.args["to"]) for one in calls]


def resumed(model: ScriptedChatModel, way: str, history: Sequence[BaseMessage], decisions: Sequence[Decision]) -> list[BaseMessage]:
    """What a resume brings."""
    if way == "ainvoke":
        return new_messages(asyncio.run(model.aresume(history, decisions)))
    if way == "stream":
        return [message for chunk in model.stream(history, resume=decisions) for message in new_messages(chunk)]
    return new_messages(model.resume(history, decisions))


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
    history += new_messages(conversation.model(Process(store)).invoke(history))
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
                return resumed(conversation.model(process, later=way == "ainvoke"), way, through_json(given), said)
            except BaseException as error:
                raise Died(process.at) if process.is_dead else error from None  # core makes another error of some

        ended = at_once([lambda process=process, way=way: work(process, way) for process, way in zip(processes, ways, strict=True)])  # type: ignore[misc]
        last = resumed(conversation.model(Process(store)), "invoke", history, decisions)
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
    began, deaths = time.monotonic(), sum(conversation_of(seed) for seed in range(int(sys.argv[1])))
    print(f"{sys.argv[1]} conversations, {deaths} processes died, {time.monotonic() - began:.0f} s")
