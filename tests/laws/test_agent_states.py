"""Whatever was done to an agent: its next question is answered, its history is valid, and no request is open."""

from __future__ import annotations

import asyncio
import gc
import logging
import pickle
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import Agent, ConfigurationError, aevents, events, new_messages, pending_calls, validate
from langchain_autotools.testing import ScriptedChatModel

OPEN: Counter[str] = Counter()
"""How many replies of each kind are open."""
QUESTIONS = ("answer", "look", "look fail", "fail", "book", "look book")
LEFT = st.integers(1, 8)
KEPT = st.booleans()


def look(at: str) -> str:
    """Look at a place."""
    return f"{at} is quiet"


def book(at: str) -> str:
    """Book a room; somebody must approve."""
    return f"booked in {at}"


def replies(messages: list[BaseMessage], **_: Any) -> Any:
    """Does what the last question says, one word a turn, then answers."""
    asked = max(place for place, message in enumerate(messages) if isinstance(message, HumanMessage))
    done = sum(isinstance(message, ToolMessage) for message in messages[asked:])
    words = messages[asked].text.split()[done:]
    word = words[0] if words else "answer"
    if word == "fail":
        return [OSError("down")]
    if word in ("look", "book"):
        call = {"id": f"{word}_{len(messages)}", "name": word, "args": {"at": "Rome"}}
        return AIMessage("Let me see.", tool_calls=[call])
    return "All is quiet here."


class Watched(ScriptedChatModel):
    """A model that knows how many of its replies are open, whichever copy of it makes them; `hang` never ends."""

    @contextmanager
    def _counted(self, kind: str) -> Iterator[None]:
        OPEN[kind] += 1
        try:
            yield
        finally:
            OPEN[kind] -= 1

    def raw_stream(self, *args: Any, **kwargs: Any) -> Iterator[AIMessage]:
        """As of the script, counted."""
        with self._counted("sync"):
            yield from super().raw_stream(*args, **kwargs)

    async def araw_stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[AIMessage]:
        """As of the script, counted."""
        with self._counted("async"):
            async for chunk in super().araw_stream(*args, **kwargs):
                yield chunk
                if args[0][-1].text == "hang":
                    await asyncio.Event().wait()


class AgentStates(RuleBasedStateMachine):
    """One agent, and everything that a program may do to it."""

    def __init__(self) -> None:
        super().__init__()
        OPEN.clear()
        self.agent = Agent(Watched(replies=replies, tools=[look, book], requires_approval=["book"]))
        self.loop = asyncio.Runner()
        self.held: list[Any] = []

    def teardown(self) -> None:
        """Drop what is held, and end the loop. (One that ends closes all generators at once, so it is given the time to close these.)"""
        self.held.clear()
        self.loop.run(asyncio.sleep(0.001))
        self.loop.close()
        assert not +OPEN, OPEN

    # ------------------------------------------------------------------------------------------ what a program does

    @rule(question=st.sampled_from(QUESTIONS), asynchronous=st.booleans())
    def run(self, question: str, asynchronous: bool) -> None:
        """Ask at a stroke; the run may fail, or wait for somebody."""
        with suppress(OSError):
            result = self.loop.run(self.agent.arun(question)) if asynchronous else self.agent.run(question)
            assert new_messages(result) == self.agent.history[-len(result.messages) :]

    @rule(question=st.sampled_from(QUESTIONS), most=LEFT, keep=KEPT, how=st.sampled_from(("break", "raise", "close", "events")))
    def leave(self, question: str, most: int, keep: bool, how: str) -> None:
        """Read a few chunks or events of a stream, then leave it; it is held, or dropped."""
        stream: Any = self.agent.run_stream(question)
        stream = events(stream) if how == "events" else stream
        with suppress(OSError, LookupError):
            for number, _ in enumerate(stream, 1):
                if number == most and how == "raise":
                    raise LookupError
                if number == most:
                    break
        if how == "close":
            stream.close()
        self.held += [stream] if keep else []

    @rule(question=st.sampled_from(QUESTIONS), most=LEFT, keep=KEPT, how=st.sampled_from(("break", "raise", "close", "events")))
    def aleave(self, question: str, most: int, keep: bool, how: str) -> None:
        """The same of an asynchronous stream."""

        async def read() -> Any:
            stream: Any = self.agent.arun_stream(question)
            stream, number = aevents(stream) if how == "events" else stream, 0
            with suppress(OSError, LookupError):
                async for _ in stream:
                    number += 1
                    if number == most and how == "raise":
                        raise LookupError
                    if number == most:
                        break
            if how == "close":
                await stream.aclose()
            return stream if keep else None

        self.held.append(self.loop.run(read()))

    @rule(streamed=st.booleans())
    def time_out(self, streamed: bool) -> None:
        """A reply hangs, and the caller's time is over."""

        async def ask() -> None:
            async with asyncio.timeout(0.005):
                if streamed:
                    async for _ in self.agent.arun_stream("hang"):
                        pass
                await self.agent.arun("hang")

        with pytest.raises(TimeoutError):
            self.loop.run(ask())

    @rule(question=st.sampled_from(QUESTIONS), asynchronous=st.booleans())
    def begin(self, question: str, asynchronous: bool) -> None:
        """Make a stream that nobody reads."""
        self.held.append((self.agent.arun_stream if asynchronous else self.agent.run_stream)(question))

    @rule()
    def read_on(self) -> None:
        """Read the streams that are held to their end: those that gave way say so."""
        held, self.held = self.held, []
        for stream in held:
            if hasattr(stream, "__next__"):
                with suppress(OSError, ConfigurationError):
                    for _ in stream:
                        pass
            del stream

    @precondition(lambda self: any(call.kind == "approval" for call in pending_calls(self.agent.history)))
    @rule(approve=st.booleans(), streamed=st.booleans())
    def resume(self, approve: bool, streamed: bool) -> None:
        """Decide about the calls that wait once no stream is left; the run that goes on may fail, or make further calls."""
        self.held.clear()
        self.loop.run(asyncio.sleep(0.001))
        waiting = [call for call in pending_calls(self.agent.history) if call.kind == "approval"]
        if not waiting:  # what a stream had brought has come behind them
            return
        decisions = [call.approve() if approve else call.reject() for call in waiting]
        with suppress(OSError):
            if streamed:
                for _ in self.agent.run_stream(resume=decisions):
                    pass
            else:
                self.agent.run(resume=decisions)
        assert not {call.id for call in waiting} & {call.id for call in pending_calls(self.agent.history)}

    @rule()
    def copy(self) -> None:
        """Go on with a copy from elsewhere; the original is dropped with its streams."""
        self.agent = pickle.loads(pickle.dumps(self.agent))
        self.held.clear()

    # ------------------------------------------------------------------------------------------ what must hold

    @invariant()
    def history_is_valid(self) -> None:
        """Up to the calls that somebody may still decide about, or that a stream has left for the next question to answer."""
        assert not validate(self.agent.history, open_end=True)
        ids = [message.id for message in self.agent.history]
        assert len(set(ids)) == len(ids) and all(ids)

    @rule(asynchronous=st.booleans())
    def ask_next(self, asynchronous: bool) -> None:
        """The next question is answered; nothing of what was before it is open, and the history is valid to its end."""
        result = self.loop.run(self.agent.arun("answer")) if asynchronous else self.agent.run("answer")
        assert (result.text, result.stop_reason) == ("All is quiet here.", "complete")
        assert self.agent.history[-2:] == list(result.messages) and not validate(self.agent.history)
        self.loop.run(asyncio.sleep(0.001))  # what was read on the loop is closed on the loop
        assert not +OPEN, OPEN


def check(examples: int, steps: int, *, derandomize: bool) -> None:
    """Play the machine, without the garbage collector's help; nothing is raised where nobody can catch it."""
    odd: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: odd.append(record.getMessage() + repr(record.exc_info and record.exc_info[1]))  # type: ignore[method-assign]
    logging.getLogger("asyncio").addHandler(handler)
    gc.collect()
    gc.disable()
    try:
        checks = [HealthCheck.too_slow, HealthCheck.filter_too_much]
        options = settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=derandomize,
            database=None,
            suppress_health_check=checks,
            phases=(Phase.explicit, Phase.generate),  # to shrink takes minutes, and the steps of a failure are printed anyway
        )
        run_state_machine_as_test(AgentStates, settings=options)  # type: ignore[no-untyped-call]
    finally:
        gc.enable()
        logging.getLogger("asyncio").removeHandler(handler)
    assert odd == [], odd[:5]


def test_the_next_question_of_an_agent_is_always_answered() -> None:
    """After runs, failures, streams that were left in every way, timeouts, decisions and copies."""
    check(examples=12, steps=12, derandomize=True)


@pytest.mark.exhaustive
def test_the_next_question_of_an_agent_is_always_answered_in_long_lives() -> None:
    """The same, in a larger sample."""
    check(examples=1_000, steps=40, derandomize=False)
