"""Stored messages and decisions that somebody has changed: every reader refuses them or gives a result, and nothing runs unapproved."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from hypothesis import strategies as st
from langchain_core.exceptions import LangChainException, ModelAPIError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, message_to_dict, messages_from_dict, messages_to_dict
from pydantic import BaseModel

from langchain_autotools import (
    calls_of,
    final_message,
    markdown_of,
    new_messages,
    pending_calls,
    repair,
    results_of,
    run_cost,
    run_usage,
    stop_reason,
    validate,
)
from langchain_autotools.encoders import ai_sdk_messages, from_ai_sdk
from langchain_autotools.errors import AutoToolsError
from langchain_autotools.history import expand, explain, split_generations
from langchain_autotools.testing import ScriptedChatModel
from tests.fuzz.spoiling import VALUES, changed
from tests.laws.ways import WAYS, law, run

DOCUMENTED = (AutoToolsError, LangChainException)
QUESTION = HumanMessage("Wipe it.")
WIPED: list[Any] = []


def look(city: str) -> str:
    """Look at a city."""
    return "21"


def wipe(city: str) -> str:
    """Wipe a city off the map."""
    WIPED.append(city)
    return "gone"


class City(BaseModel):
    """A city."""

    name: str


def calls(*names: str) -> AIMessage:
    """A reply with calls."""
    return AIMessage(
        "Let me.", tool_calls=[{"name": name, "args": {"city": "Oslo"}, "id": f"c{place}"} for place, name in enumerate(names)]
    )


def model_of(*replies: Any, **fields: Any) -> ScriptedChatModel:
    """A model whose call of `wipe` waits."""
    return ScriptedChatModel(**{"replies": replies, "tools": [look, wipe], "requires_approval": ["wipe"], **fields})


def _waiting() -> ScriptedChatModel:
    return model_of(calls("look", "wipe"))


def _whole() -> ScriptedChatModel:
    return model_of(calls("look", "look"), "It is 21.")


def _declared() -> Any:
    return model_of(calls("look", "choose", "wipe")).bind_tools([{"name": "choose", "description": "x", "parameters": {"type": "object"}}])


def _inside() -> ScriptedChatModel:
    return ScriptedChatModel(
        replies=[AIMessage("", tool_calls=[{"name": "helper", "args": {"question": "Wipe it."}, "id": "h"}])],
        tools=[_waiting().as_tool(name="helper", description="Helps.")],
    )


def _failed_over() -> ScriptedChatModel:
    return model_of(["It is ", ModelAPIError("overloaded")], fallbacks=[model_of(calls("wipe"), tools=[], requires_approval=None)])


@cache
def stories() -> Sequence[tuple[list[BaseMessage], BaseMessage]]:
    """New messages and run messages of runs that end in every way."""
    made = []
    for model in (_waiting(), _whole(), _declared(), _inside(), _failed_over()):
        ran = run("stream", model, [QUESTION])
        assert ran.message is not None, ran.error
        made.append((ran.new, ran.message))
    return made


def stored(chance: random.Random, messages: Sequence[BaseMessage]) -> list[BaseMessage] | None:
    """The messages as they come back from a store that somebody has changed; None where LangChain takes them no more."""
    data = json.loads(json.dumps(messages_to_dict(messages)))
    for _ in range(chance.choice([1, 1, 2, 4])):
        place = chance.randrange(len(data))
        inner = data[place]["data"]
        key = chance.choice(["response_metadata"] * 4 + ["content", "tool_calls", "additional_kwargs", "id", "invalid_tool_calls", "name"])
        metadata = inner.get("response_metadata")
        if key == "response_metadata" and isinstance(metadata, dict) and metadata.get("autotools"):
            metadata["autotools"] = changed(chance, metadata["autotools"])
        else:
            inner[key] = changed(chance, inner.get(key))
    try:
        return messages_from_dict(data)
    except Exception:
        return None  # LangChain's own refusal


def readers(history: list[BaseMessage]) -> list[Callable[[], Any]]:
    """Everything that reads a history, or a message of one."""
    pages: list[Any] = [ai_sdk_messages, partial(from_ai_sdk, {"messages": []})]
    whole: list[Any] = [repair, validate, explain, expand, pending_calls, split_generations, *pages]
    each: list[Any] = [new_messages, final_message, results_of, run_usage, cost, stop_reason, pending_calls, markdown_of, calls_of]
    last = [one for one in history if isinstance(one, AIMessage)]
    return [*(partial(read, history) for read in whole), *(partial(read, one) for one in last for read in each)]


def cost(message: BaseMessage) -> Any:
    """What a run has cost, where its message carries all replies."""
    try:
        return run_cost(message)
    except ValueError as error:
        assert "its cost is not known" in str(error)
        return None


def tried(read: Callable[[], Any]) -> Any:
    """What a reader gives; None where it refuses."""
    try:
        return read()
    except DOCUMENTED as error:
        assert str(error)
        return None


@law(25, 5_000)
def test_a_changed_history_is_read_or_refused(data: st.DataObject) -> None:
    """By every reader, and by a model that goes on with it; what needs an approval does not run."""
    chance = data.draw(st.integers(0, 2**32).map(random.Random))
    new, message = chance.choice(stories())
    history = stored(chance, [QUESTION, *new] if chance.random() < 0.5 else [QUESTION, message])
    if history is None:
        return
    for read in readers(history):
        tried(read)
    repaired = tried(partial(repair, history))
    assert repaired is None or validate(repaired) == []
    WIPED.clear()
    model = model_of("Fine.")
    ran = run(chance.choice(WAYS), model, [*history, HumanMessage("And?")])
    assert ran.error is None or isinstance(ran.error, DOCUMENTED), repr(ran.error)
    assert WIPED == []


# ---------------------------------------------------------------------------------------------- decisions


def decided(chance: random.Random, history: list[BaseMessage]) -> Any:
    """Decisions that nobody made: those of what waits, changed; or anything."""
    waiting = pending_calls(history)
    how = chance.random()
    if how < 0.2 or not waiting:
        return chance.choice([*VALUES, [chance.choice(VALUES)], {"c1": chance.choice(VALUES)}, [{}]])
    told = [chance.choice([call.reject("no"), call.reject()]).to_dict() for call in waiting]
    return [changed(chance, one) for one in told] if how < 0.8 else changed(chance, told)


@law(25, 5_000)
def test_a_changed_decision_runs_nothing(data: st.DataObject) -> None:
    """A rejection that somebody has changed is refused, or stays one: it never becomes an approval of the call as it was shown."""
    chance = data.draw(st.integers(0, 2**32).map(random.Random))
    new, message = chance.choice(stories())
    history = [QUESTION, *new] if chance.random() < 0.5 else [QUESTION, message]
    decisions = decided(chance, history)
    WIPED.clear()
    ran = run(chance.choice(WAYS), model_of("Fine."), history, resume=decisions)
    assert ran.error is None or isinstance(ran.error, DOCUMENTED), repr(ran.error)
    assert WIPED == [] or _approves(decisions), decisions


def _approves(decisions: Any) -> bool:
    """Whether decisions say, in so many words, that something is to run."""
    entries = decisions if isinstance(decisions, list) else []
    return any(isinstance(one, dict) and one.get("action") in ("approve", "edit") for one in entries)


@law(25, 5_000)
def test_a_changed_dict_is_a_decision_or_none(data: st.DataObject) -> None:
    """`from_dict` of decisions and pending calls."""
    from langchain_autotools import Decision, PendingCall

    chance = data.draw(st.integers(0, 2**32).map(random.Random))
    (call, *_) = pending_calls(stories()[0][0])
    for kind, one in ((PendingCall, call.to_dict()), (Decision, call.edit({"city": "Rome"}).to_dict())):
        spoilt: Any = json.loads(json.dumps(one))
        for _ in range(chance.choice([1, 2, 3])):
            spoilt = changed(chance, spoilt)
        read = tried(partial(kind.from_dict, spoilt))
        assert read is None or tried(partial(kind.from_dict, json.loads(json.dumps(read.to_dict())))) == read


def test_the_stories_end_in_every_way() -> None:
    """What is changed holds calls that wait, here, for the caller and inside a tool, and a reply that was cut."""
    seen = [stop_reason(message) for _, message in stories()]
    assert seen == ["calls_pending", "complete", "calls_pending", "calls_pending", "calls_pending"]
    assert pending_calls(stories()[3][0])[0].path == ("helper",)
    assert "after_text" in json.dumps([message_to_dict(one) for one in stories()[4][0]])
