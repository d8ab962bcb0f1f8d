"""`check`: what is wrong with decisions, all of it, in words for whoever decides, before anything runs."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage

from langchain_autotools import Agent, ConfigurationError, DecisionsError, ToolExecutor, init_chat_model, new_messages, pending_calls
from langchain_autotools.errors import DecisionProblem
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.ways import WAYS, run
from tests.support.desk import QUESTION, TURN, Desk, asked, asking, call
from tests.unit.run.test_agents_as_tools import Shed, boss, cleaner, waiting

NO_NUMBER = "The arguments of 'send' are not valid: amount: Input should be a valid integer, unable to parse string as an integer."
UNKNOWN = "'cc' is no argument of the tool."


def misread(pending: Any) -> list[Any]:
    """Edits that the tool does not take, of the two calls of a turn."""
    return [pending[0].edit({"to": "Anna", "amount": "much"}), pending[1].edit({"to": "Ben", "cc": "Eve"})]


@pytest.mark.parametrize("way", WAYS)
def test_all_that_is_wrong_is_named_at_once(way: str) -> None:
    """Each call with its id and its uuid; `resume` refuses with the same list, nothing runs, and other decisions go on."""
    desk = Desk()
    model = desk.model(TURN, requires_approval=["send"])
    history, pending, _ = asked(model)
    desk.done.clear()
    problems = model.check(history, misread(pending))
    assert problems == [(pending[0].uuid, "1", NO_NUMBER), (pending[1].uuid, "3", UNKNOWN)]
    ran = run(way, model, history, resume=misread(pending))
    assert isinstance(ran.error, DecisionsError) and ran.error.problems == problems
    assert all(text in str(ran.error) for text in ("call '1' cannot be used", "call '3' cannot be used"))
    assert (desk.done, len(model.requests), ran.new) == ([], 1, [])
    right = [pending[0].edit({"to": "Anna", "amount": 2}), pending[1].reject()]
    assert model.check(history, right) == [] and run(way, model, history, resume=right).error is None
    assert desk.done == ["send Anna 2"]


def test_plain_decisions_are_checked_too() -> None:
    """True, a mapping, dicts that are no decisions, and a history in which nothing waits."""
    desk = Desk()
    model = desk.model(TURN, requires_approval=["send"])
    history, pending, _ = asked(model)
    own = "This call needs a decision of its own."
    uuids = [one.uuid for one in pending]
    assert model.check(history) == model.check(history, {"1": True, "3": {"to": "Eve"}}) == [(uuids[0], "1", own), (uuids[1], "3", own)]
    assert model.check(history, {"1": False, "9": True}) == [("", "9", "This call does not wait.")]
    unread = [{**pending[0].approve().to_dict(), "action": "allow"}, {"id": 1}]
    anew = "This decision cannot be read: decide anew."
    assert model.check(history, unread) == [(uuids[0], "1", anew), ("", "", anew)]
    assert model.check([QUESTION], []) == [("", "", "Nothing waits for a decision.")]
    twice = model.check(history, [pending[0].approve(), pending[0].reject()])
    assert twice == [(uuids[0], "1", "There are two decisions about this call.")]
    for wrong in (None, 5, "all"):
        with pytest.raises(ConfigurationError, match="resume takes"):
            model.check(history, wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="resume takes a model with tools"):
        ScriptedChatModel(replies=[]).check(history)
    with pytest.raises(ConfigurationError, match="max_turns"):
        model.check(history, [pending[0].approve()], max_turnz=1)
    assert desk.done == ["look Paris"]


def test_a_call_that_has_changed_is_told_of_in_plain_words() -> None:
    """Nothing of digests, keys or records."""
    desk = Desk()
    model = desk.model(TURN, requires_approval=["send"], approval_key="a key")
    history, pending, _ = asked(model)
    changed = copy.deepcopy(history)
    changed[1].tool_calls[0]["args"] = {"to": "Eve"}  # type: ignore[attr-defined]
    (problem,) = model.check(changed, [pending[0].approve()])
    assert problem == (pending[0].uuid, "1", "This is not the call that was shown: look at it again, and decide anew.")
    (other,) = desk.model(TURN, requires_approval=["send"]).check(history, [pending[0].approve()])
    assert other == problem


def test_what_is_bound_counts() -> None:
    """A rule, tools that are declared, and keywords of the call, as for `resume`."""
    desk = Desk()
    declared = {"title": "ask_user", "type": "object", "properties": {}}
    turn = asking(call("send", "1", to="Anna"), call("ask_user", "2"))
    bound = desk.model(turn).bind(requires_approval=["send"]).bind_tools([declared])
    history = [QUESTION, *new_messages(bound.invoke([QUESTION]))]
    assert bound.check(history, {"1": True, "2": True}) == [
        (pending_calls(history)[0].uuid, "1", "This call needs a decision of its own."),
        ("", "2", "This call cannot run here."),
    ]
    assert bound.check(history, [one.reject() for one in pending_calls(history)]) == []
    assert bound.with_config(tags=["a"]).check(history, True) == bound.check(history, True)


def test_nothing_is_claimed_and_a_rule_is_asked() -> None:
    """`check` is the first step of `resume`: before the store of claims, and with the rule."""
    desk, claimed, judged = Desk(), list[str](), list[str]()

    def rule(made: Any) -> bool:
        judged.append(made.id)
        return bool(made.name == "send")

    model = desk.model(TURN, requires_approval=rule, claim=lambda key: claimed.append(key) or True)
    history, pending, _ = asked(model)
    judged.clear()
    assert model.check(history, [one.approve() for one in pending]) == []
    assert (claimed, judged) == ([], ["1", "3"])


@pytest.mark.parametrize("as_agent", [False, True])
def test_a_run_inside_is_checked_at_the_top(as_agent: bool) -> None:
    """By its own model, however deep: the problem is that of the call as it was shown outside, and nothing inside is lost."""
    shed = Shed()

    def model() -> ScriptedChatModel:
        inner = cleaner(shed)
        middle = boss([Agent(inner) if as_agent else inner], name="middle")
        return boss([(Agent(middle) if as_agent else middle).as_tool(name="cleaner")])

    history = waiting(model())
    (shown,) = pending_calls(history)
    assert shown.path == ("cleaner", "cleaner")
    wrong = [shown.edit({"path": 3})]
    problems = model().check(history, wrong)
    assert [(uuid, call_id) for uuid, call_id, _ in problems] == [(shown.uuid, shown.id)]
    assert problems[0].words == "The arguments of 'delete' are not valid: path: Input should be a valid string."
    with pytest.raises(DecisionsError, match="the run inside call 'call_0' cannot go on") as refused:
        model().resume(history, wrong)
    assert refused.value.problems == problems and shed.deleted == []
    assert [one.words for one in model().check(history, True)] == ["This call needs a decision of its own."]
    right = [shown.edit({"path": "/tmp/b"})]
    assert model().check(history, right) == []
    assert model().resume(history, right).text.endswith("deleted /tmp/b") and shed.deleted == ["/tmp/b"]


def test_a_run_inside_that_cannot_go_on_is_named() -> None:
    """Its agent is no tool any more, or its record belongs to a call of another message."""
    shed = Shed()
    history = waiting(boss([cleaner(shed)]))
    (shown,) = pending_calls(history)
    without = ScriptedChatModel(tools={"cleaner": lambda question: "Clean."}, replies=["Done."])
    assert without.check(history, [shown.approve()]) == [(shown.uuid, shown.id, "The agent that asks this is not there any more.")]
    changed = copy.deepcopy(history)
    changed[1].id = "another"
    (problem,) = boss([cleaner(shed)]).check(changed, [shown.approve()])
    assert problem == (shown.uuid, shown.id, "This is not the call that was shown: look at it again, and decide anew.")


def test_an_executor_alone_checks_too() -> None:
    """What `execute_all` refuses, with the same list, before anything has run; also where results are known."""
    desk = Desk()
    executor: ToolExecutor = desk.executor(requires_approval=["send"])
    answer = TURN.model_copy(update={"id": "m"})
    pending = executor.pending_calls(answer)
    problems = executor.check(answer, misread(pending))
    assert problems == [(pending[0].uuid, "1", NO_NUMBER), (pending[1].uuid, "3", UNKNOWN)]
    with pytest.raises(DecisionsError) as refused:
        executor.execute_all(answer, decisions=misread(pending))
    assert refused.value.problems == problems and desk.done == []
    results = executor.execute_all(answer)
    known: list[BaseMessage] = [answer, *results]
    decisions = [one.approve() for one in pending]
    assert executor.check(answer, decisions, messages=known) == []
    executor.execute_all(answer, messages=known, decisions=decisions)
    assert desk.done == ["look Paris", "send Anna 1", "send Ben 1"]


async def test_an_agent_checks_its_own_conversation() -> None:
    """Or a given one, with its system prompt, synchronously or not."""
    desk = Desk()
    agent = Agent(desk.model(TURN, requires_approval=["send"]), system_prompt="Be kind.")
    result = agent.run("Write.")
    pending = pending_calls(result)
    problems = agent.check(misread(pending))
    assert [one.words for one in problems] == [NO_NUMBER, UNKNOWN]
    assert await agent.acheck(misread(pending)) == problems == agent.check(misread(pending), history=agent.history)
    assert agent.check(misread(pending), history=[HumanMessage("Hi.")]) == [
        (one.uuid, one.id, "This call does not wait.") for one in pending
    ]
    with pytest.raises(DecisionsError):
        await agent.arun(resume=misread(pending))
    assert agent.check([one.approve() for one in pending]) == []
    assert agent.run(resume=[one.approve() for one in pending]).text == "Done."


def test_a_model_that_the_configuration_selects_checks() -> None:
    """With the tools and keywords of the model that it selects."""
    model = init_chat_model("openai:gpt-5", configurable_fields="any", tools=[Desk().send], api_key="key")
    assert model.check([QUESTION], {}) == [("", "", "Nothing waits for a decision.")]


def test_the_error_is_plain_data() -> None:
    """It is an error of configuration, and can be pickled; a problem is a tuple that JSON takes."""
    problem = DecisionProblem("uuid", "1", "No.")
    error = pickle.loads(pickle.dumps(DecisionsError("wrong", [problem, problem])))
    assert isinstance(error, ConfigurationError) and (str(error), error.problems) == ("wrong", [problem])
    assert json.loads(json.dumps(error.problems)) == [["uuid", "1", "No."]]
