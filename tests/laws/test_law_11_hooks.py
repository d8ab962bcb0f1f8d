"""Law 11 for what a caller puts into a run: a condition that ends it, a function that changes its requests, a check of its output."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import NextTurn, RunSoFar, new_messages, run_usage, stop_reason
from langchain_autotools.history import validate
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.ways import chat
from tests.support.openai_server import OpenAIServer
from tests.support.script import Turn

NAMES = ("look", "listen", "smell")
ASK = HumanMessage("Go.")
ANSWER = {"title": "Answer", "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
turns_of_calls = st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3), max_size=4)


class Tools:
    """Three tools, and the ids of the calls of them that ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def all(self) -> list[Any]:
        """The tools."""

        def look(key: str) -> str:
            """Look."""
            return self._run(key)

        def listen(key: str) -> str:
            """Listen."""
            return self._run(key)

        def smell(key: str) -> str:
            """Smell."""
            return self._run(key)

        return [look, listen, smell]

    def _run(self, key: str) -> str:
        self.ran.append(key)
        return f"done {key}"


def replies_of(turns: list[list[str]]) -> list[AIMessage]:
    """A reply with calls for each turn."""
    numbered = [[(name, f"{turn}.{place}") for place, name in enumerate(names)] for turn, names in enumerate(turns)]
    return [AIMessage("", tool_calls=[{"name": name, "args": {"key": key}, "id": key} for name, key in calls]) for calls in numbered]


def run_of(model: Any, messages: list[BaseMessage], *, is_async: bool) -> AIMessage:
    """One run."""
    return asyncio.run(model.ainvoke(messages)) if is_async else model.invoke(messages)


@given(turns_of_calls, st.integers(1, 5), st.booleans())
def test_a_condition_ends_a_run_where_it_is_true_and_nowhere_else(turns: list[list[str]], at: int, is_async: bool) -> None:
    """After the turn at which it is true all calls have results, no request follows, and the next run goes on from there."""
    tools, asked = Tools(), list[int]()

    def is_met(run: RunSoFar) -> bool:
        asked.append(run.turns)
        return run.turns == at

    model = ScriptedChatModel(tools=tools.all(), replies=[*replies_of(turns), "Done.", "Done."], stop_when=is_met)
    run = run_of(model, [ASK], is_async=is_async)
    history = [ASK, *new_messages(run)]
    ends = min(at, len(turns))
    assert stop_reason(run) == ("stop_when" if at <= len(turns) else "complete")
    assert asked == [*range(1, ends + 1)] and len(model.requests) == (at if at <= len(turns) else len(turns) + 1)
    assert sorted(tools.ran) == [f"{turn}.{place}" for turn in range(ends) for place in range(len(turns[turn]))]
    assert not validate(history)
    if at < len(turns):
        follows = run_of(model, [*history, HumanMessage("Go on.")], is_async=is_async)
        assert not validate([*history, HumanMessage("Go on."), *new_messages(follows)])


@given(turns_of_calls, st.data(), st.booleans())
def test_only_what_a_function_leaves_in_a_turn_runs_in_it(turns: list[list[str]], data: st.DataObject, is_async: bool) -> None:
    """Each request declares what the function has left, a call of anything else has an error, and the history is the run's own."""
    left = [set(data.draw(st.sets(st.sampled_from(NAMES)), f"turn {number}")) for number in range(len(turns) + 1)]

    def change(turn: NextTurn) -> NextTurn:
        kept = [name for name in turn.tools if name in left[turn.number - 1]]
        return replace(turn, tools=kept, messages=[*turn.messages, HumanMessage("Only for this request.")])

    tools = Tools()
    model = ScriptedChatModel(tools=tools.all(), replies=[*replies_of(turns), "Done."], before_turn=change)
    new = new_messages(run_of(model, [ASK], is_async=is_async))
    assert [set(request.tool_names) for request in model.requests] == left
    allowed = {f"{turn}.{place}" for turn, names in enumerate(turns) for place, name in enumerate(names) if name in left[turn]}
    assert sorted(tools.ran) == sorted(allowed)
    assert {one.tool_call_id for one in new if isinstance(one, ToolMessage) and one.status == "success"} == allowed
    assert not validate([ASK, *new]) and not any(isinstance(one, HumanMessage) for one in new)


@given(st.lists(st.booleans(), min_size=1, max_size=5), st.integers(1, 3), st.booleans())
def test_the_first_output_that_fits_is_the_answer(fits: list[bool], retries: int, is_async: bool) -> None:
    """As many further requests as are given, each with the error before; every reply's tokens count; the last error is raised."""
    texts = [f'{{"n": {number}}}' if fit else f'{{"n": {number}, ' for number, fit in enumerate(fits)]
    made = texts[: retries + 1]
    answer = next((number for number, fit in enumerate(fits[: len(made)]) if fit), None)
    if answer is None and len(made) <= retries:
        return  # the script would end before the run does
    with OpenAIServer([Turn(text) for text in texts]) as server:
        chain = chat(server).with_structured_output(ANSWER, method="json_schema", include_raw=True, retries=retries)
        out = asyncio.run(chain.ainvoke([ASK])) if is_async else chain.invoke([ASK])
        asked = [[one["content"] for one in exchange.json["messages"]] for exchange in server.exchanges]
        assert not server.rejections
    if answer is None:
        assert out["parsed"] is None and isinstance(out["parsing_error"], OutputParserException)
    else:
        assert out["parsed"] == {"n": answer} and out["parsing_error"] is None
    assert len(asked) == (len(made) if answer is None else answer + 1)
    for before, after in pairwise(asked):
        assert after[: len(before)] == before and after[len(before)] in made and "not valid" in after[-1]
    usage = run_usage(out["raw"])
    assert usage is not None and usage["total_tokens"] == len(asked) * sum(Turn().usage)
