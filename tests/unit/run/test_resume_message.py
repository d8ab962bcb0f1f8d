"""`message=` beside decisions: the user decides and types at once."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, messages_from_dict, messages_to_dict
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel

from langchain_autotools import (
    Agent,
    ChatOpenAI,
    ConfigurationError,
    LimitReachedError,
    aevents,
    events,
    final_message,
    new_messages,
    pending_calls,
    repair,
    run_usage,
)
from langchain_autotools.event_types import MessageDone, RunEnded
from langchain_autotools.history import join_generations, split_generations
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.ways import WAYS, Ran, run
from tests.support.claims import MemoryClaims
from tests.support.desk import QUESTION, TURN, Desk, asked, asking, call, reason
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

SAID = "And be quick."
RULES: dict[str, Any] = {"requires_approval": ["send"]}


def kinds(messages: Iterable[BaseMessage]) -> list[str]:
    """The types of messages."""
    return [message.type for message in messages]


def sent(ran: Ran) -> Any:
    """What the end says of the message."""
    assert ran.message is not None
    return ran.message.response_metadata[KEY].get("message_sent")


# ---------------------------------------------------------------------------------------------- the order


@pytest.mark.parametrize("way", WAYS)
def test_results_the_message_and_the_reply_are_handed_out_in_this_order(way: str) -> None:
    """The request ends in the message, which has an id then: its own, or one that was made for it."""
    blocks: Any = [{"type": "text", "text": SAID}]
    for message in (SAID, HumanMessage(SAID), HumanMessage(SAID, id="mine"), HumanMessage(blocks)):
        check_order(way, message)


def check_order(way: str, message: Any) -> None:
    """Check what a resumed run with this message hands out."""
    desk = Desk()
    history, pending, _ = asked(desk.model(TURN, **RULES), way)
    model = desk.model(**RULES)
    ran = run(way, model, history, resume=[one.approve() for one in pending], message=message)
    assert ran.error is None and ran.message is not None
    assert (kinds(ran.new), reason(ran), sent(ran)) == (["tool", "tool", "human", "ai"], "complete", None)
    said = ran.new[2]
    assert type(said) is HumanMessage and said.text == SAID and said.id
    assert getattr(message, "id", None) in (None, said.id)
    (request,) = model.requests
    assert kinds(request.messages) == ["human", "ai", "tool", "tool", "tool", "human"]
    assert [new_messages(ran.message)[2].id, ran.message.text, final_message(ran.message).text] == [said.id, "Done.", "Done."]
    assert not [chunk.id for chunk in ran.chunks[:-1] if chunk.id]


def test_resume_takes_it_by_name() -> None:
    """So do its twin, a bound model, and what a pipe begins with."""
    desk = Desk()
    history, pending, _ = asked(desk.model(TURN, **RULES))
    decisions = [one.approve() for one in pending]
    model = ScriptedChatModel(tools=[desk.look, desk.send], replies=["Done."] * 4, **RULES)
    bound = model.bind(max_turns=9)
    pipe = model | RunnableLambda(new_messages)
    runs = [
        new_messages(model.resume(history, decisions, message=SAID)),
        new_messages(asyncio.run(model.aresume(history, decisions, message=SAID))),
        new_messages(bound.resume(history, decisions, message=SAID)),
        pipe.invoke(history, resume=decisions, message=SAID),
    ]
    assert [kinds(one) for one in runs] == [["tool", "tool", "human", "ai"]] * 4
    assert desk.done.count("send Anna 1") == 4


def test_further_calls_of_the_model_wait_behind_it() -> None:
    """A run goes on under its rule; the next one takes a message of its own."""
    desk = Desk()
    history, pending, _ = asked(desk.model(TURN, **RULES))
    again = asking(call("send", "9", to="Eve"))
    first = desk.model(again, **RULES).resume(history, [one.approve() for one in pending], message="One.")
    history += new_messages(first)
    assert kinds(history[-4:]) == ["tool", "tool", "human", "ai"]
    second = desk.model(**RULES).resume(history, [one.approve() for one in pending_calls(first)], message="Two.")
    history += new_messages(second)
    assert [one.text for one in history if one.type == "human"] == [QUESTION.text, "One.", "Two."]


# ---------------------------------------------------------------------------------------------- runs that do not send it


@pytest.mark.parametrize("way", WAYS)
def test_while_a_call_stays_open_it_is_not_sent(way: str, caplog: pytest.LogCaptureFixture) -> None:
    """It is in no message then; the end says so, to a program and in the log."""
    desk = Desk()
    history, pending, _ = asked(desk.model(TURN, **RULES), way)
    model = desk.model(**RULES)
    with caplog.at_level(logging.WARNING):
        ran = run(way, model, history, resume=[pending[0].approve()], message=SAID)
    assert (kinds(ran.new), reason(ran), sent(ran), model.requests) == (["tool"], "calls_pending", False, [])
    assert "message of a resumed run was not sent, because the run ended before another request: calls_pending" in caplog.text
    assert SAID not in json.dumps(messages_to_dict([ran.message]))  # type: ignore[list-item]
    assert SAID not in caplog.text


ENDS: dict[str, tuple[dict[str, Any], str]] = {
    "cancelled": ({"cancel": lambda: True}, "cancelled"),
    "deadline": ({"deadline": 1e-9}, "deadline"),
    "stop_when": ({"stop_when": lambda run: True}, "stop_when"),
    "max_tool_calls": ({"max_tool_calls": 0, "on_limit": "return"}, "max_tool_calls"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("end", ENDS)
def test_a_run_that_ends_before_a_request_does_not_send_it(way: str, end: str) -> None:
    """Its stop reason says why."""
    desk = Desk()
    history, pending, _ = asked(desk.model(TURN, **RULES), way)
    keywords, why = ENDS[end]
    model = desk.model(**RULES)
    ran = run(way, model, history, resume=[one.reject() for one in pending], message=SAID, **keywords)
    if end == "max_tool_calls":  # rejected calls do not count
        ran = run(way, model, history, resume=[one.approve() for one in pending], message=SAID, **keywords)
    assert (reason(ran), sent(ran), "human" in kinds(ran.new)) == (why, False, False) and not model.requests[1:]


def test_a_limit_that_raises_says_so_too(caplog: pytest.LogCaptureFixture) -> None:
    """What had completed is in the error, without the message."""
    desk = Desk()
    history, pending, _ = asked(desk.model(TURN, **RULES))
    with caplog.at_level(logging.WARNING), pytest.raises(LimitReachedError) as raised:
        desk.model(**RULES).resume(history, [one.approve() for one in pending], message=SAID, max_tool_calls=1, on_limit="raise")
    assert kinds(new_messages(raised.value)) == ["tool", "tool"]
    assert "was not sent, because the run ended before another request: LimitReachedError" in caplog.text


@pytest.mark.parametrize("way", WAYS)
def test_the_last_answer_at_a_limit_answers_it(way: str) -> None:
    """Another request is made then, and sends it."""
    desk = Desk()
    history, pending, _ = asked(desk.model(TURN, **RULES), way)
    model = desk.model(**RULES)
    ran = run(way, model, history, resume=[one.approve() for one in pending], message=SAID, max_tool_calls=1)
    assert (kinds(ran.new), reason(ran), sent(ran)) == (["tool", "tool", "human", "ai"], "max_tool_calls", None)
    assert kinds(model.requests[0].messages)[-1] == "human"


@pytest.mark.parametrize("way", WAYS)
def test_a_failed_request_leaves_it_in_the_history(way: str) -> None:
    """It was sent: the error brings it, and a run over the history answers it."""
    desk = Desk()
    history, pending, _ = asked(desk.model(TURN, **RULES), way)
    ran = run(way, desk.model(RuntimeError("gone"), **RULES), history, resume=[one.approve() for one in pending], message=SAID)
    assert isinstance(ran.error, RuntimeError)
    assert kinds(ran.new) == ["tool", "tool", "human"]
    model = desk.model(**RULES)
    run(way, model, [*history, *ran.new])
    assert kinds(model.requests[0].messages) == ["human", "ai", "tool", "tool", "tool", "human"]


@pytest.mark.parametrize("way", WAYS)
def test_behind_a_direct_result_it_is_answered(way: str) -> None:
    """The result alone would have ended the run."""
    from langchain_core.tools import tool

    @tool(return_direct=True)
    def give(what: str) -> str:
        """Give."""
        return f"Here: {what}"

    def model(*replies: Any) -> ScriptedChatModel:
        return ScriptedChatModel(tools=[give], replies=[*replies, "Done."], requires_approval=True)

    first = run(way, model(asking(call("give", "1", what="tea"))), [QUESTION])
    decisions = [one.approve() for one in pending_calls(first.message)]  # type: ignore[arg-type]
    alone = run(way, model(), [QUESTION, *first.new], resume=decisions)
    assert (reason(alone), kinds(alone.new)) == ("return_direct", ["tool"])
    ran = run(way, model(), [QUESTION, *first.new], resume=decisions, message=SAID)
    assert (reason(ran), kinds(ran.new)) == ("complete", ["tool", "human", "ai"])


@pytest.mark.parametrize("way", WAYS)
def test_a_run_inside_a_call_that_waits_again_keeps_it_back(way: str) -> None:
    """Once the inner run is through, the message is sent, once."""
    desk = Desk()
    two = asking(call("send", "i1", to="Anna")), asking(call("send", "i2", to="Ben"))
    inner = desk.model(*two, **RULES)
    outer = ScriptedChatModel(
        tools=[inner.as_tool(name="helper", description="Helps.")], replies=[asking(call("helper", "o", question="Go."))]
    )
    first = run(way, outer, [QUESTION])
    history = [QUESTION, *first.new]
    going = ScriptedChatModel(tools=outer.tools, replies=["Done."])
    second = run(way, going, history, resume=[one.approve() for one in pending_calls(history)], message=SAID)
    assert (reason(second), sent(second), "human" in kinds(second.new), going.requests) == ("calls_pending", False, False, [])
    history += second.new
    third = run(way, going, history, resume=[one.approve() for one in pending_calls(history)], message=SAID)
    assert (reason(third), sent(third), kinds(third.new)) == ("complete", None, ["tool", "human", "ai"])
    assert kinds(going.requests[0].messages)[-2:] == ["tool", "human"]


# ---------------------------------------------------------------------------------------------- what is refused


def test_what_is_no_message_of_a_user_is_refused() -> None:
    """In words, before anything runs; so are an empty one, which no vendor takes, and one with an id that the history has already."""
    desk = Desk()
    history, pending, _ = asked(desk.model(TURN, **RULES))
    refused: list[tuple[str, list[Any]]] = [
        ("message must be a text or a HumanMessage", [3, ["text"], AIMessage("x"), SystemMessage("x"), {"role": "user"}, b"x"]),
        ("message is empty", ["", HumanMessage(""), HumanMessage([])]),
        ("an id of its own", [HumanMessage(SAID, id=history[-1].id)]),
    ]
    for words, given in refused:
        for wrong in given:
            with pytest.raises(ConfigurationError, match=words):
                desk.model(**RULES).resume(history, [one.approve() for one in pending], message=wrong)
    assert desk.done == ["look Paris"]


@pytest.mark.parametrize(("again", "sent_too"), [(SAID, None), ("Something else.", False)])
def test_a_resume_that_comes_second_says_whether_its_message_was_sent(again: str, sent_too: Any) -> None:
    """With a store of claims it brings what the first one brought: the same message was sent then, another one was not."""
    desk, store = Desk(), MemoryClaims()
    history, pending, _ = asked(desk.model(TURN, **RULES))
    decisions = [one.approve() for one in pending]
    first = desk.model(**RULES, claim=store).resume(history, decisions, message=SAID)
    second = run("invoke", desk.model(**RULES, claim=store), history, resume=decisions, message=again)
    assert second.message is not None and kinds(second.new) == ["tool", "tool", "human", "ai"]
    assert ([one.id for one in second.new], sent(second)) == ([one.id for one in new_messages(first)], sent_too)


def test_without_decisions_it_has_no_effect() -> None:
    """At a call, bound, of a model without tools, in a batch, of a single turn; and it is no field."""
    desk = Desk()
    model, plain = desk.model(**RULES), ScriptedChatModel(replies=["Done."])
    refused: list[Callable[[], Any]] = [
        lambda: model.invoke([QUESTION], message=SAID),
        lambda: list(model.stream([QUESTION], message=SAID)),
        lambda: model.bind(message=SAID),
        lambda: plain.invoke([QUESTION], message=SAID),
        lambda: model.batch([[QUESTION]], message=SAID),
        lambda: model.generate([[QUESTION]], message=SAID),
    ]
    for attempt in refused:
        with pytest.raises(ConfigurationError, match="message goes with resume=decisions"):
            attempt()
    with pytest.raises(ConfigurationError, match="'message': it belongs to one call"):
        ScriptedChatModel(replies=[], message=SAID)  # type: ignore[call-arg]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stored", ["parts", "run message"])
def test_a_history_that_ends_in_the_message_is_refused(way: str, stored: str) -> None:
    """The error names what to do instead; nothing runs."""
    desk = Desk()
    history, pending, first = asked(desk.model(TURN, **RULES), way)
    assert first.message is not None
    given = history if stored == "parts" else [QUESTION, first.message]
    for decisions in ([one.approve() for one in pending], True):
        ran = run(way, desk.model(**RULES), [*given, HumanMessage(SAID)], resume=decisions)
        assert isinstance(ran.error, ConfigurationError)
        assert "give it as message=" in str(ran.error)
    assert desk.done == ["look Paris"]


# ---------------------------------------------------------------------------------------------- the carrier


def resumed(way: str = "invoke", message: Any = SAID) -> tuple[list[BaseMessage], Ran]:
    """A history up to the calls that wait, and the run that goes on from there."""
    desk = Desk()
    history, pending, _ = asked(desk.model(TURN, **RULES), way)
    return history, run(way, desk.model(**RULES), history, resume=[one.approve() for one in pending], message=message)


@pytest.mark.parametrize("way", WAYS)
def test_the_run_message_and_its_parts_are_one_history(way: str) -> None:
    """In each form, beside one another, through JSON: the next request is the same."""
    history, ran = resumed(way)
    assert ran.message is not None
    data = messages_from_dict(json.loads(json.dumps(messages_to_dict([ran.message]))))
    forms: dict[str, list[BaseMessage]] = {
        "parts": ran.new,
        "run message": [ran.message],
        "read back": data,
        "parts, then the run message": [*ran.new, *data],
        "some parts, then the run message": [*ran.new[:3], *data],
        "the message, then the run message": [*ran.new[:2], ran.new[2], *data],
        "the run message, then the reply": [*data, ran.new[-1]],
    }
    requests = {}
    for name, form in forms.items():
        model = ScriptedChatModel(replies=["Fine."])
        model.invoke([*history, *form, HumanMessage("Next?", id="next")])
        requests[name] = messages_to_dict(model.requests[0].messages)
        assert [one.text for one in repair([*history, *form]) if one.type == "human"] == [QUESTION.text, SAID], name
    assert all(one == requests["parts"] for one in requests.values())


def test_two_resumed_runs_that_are_stored_as_run_messages_stay_apart() -> None:
    """Each brings its own results, message and reply, in order."""
    desk = Desk()
    history, pending, first = asked(desk.model(TURN, **RULES))
    second = desk.model(asking(call("send", "9", to="Eve")), **RULES).resume(history, [one.approve() for one in pending], message="One.")
    both: list[BaseMessage] = [QUESTION, first.message, second]  # type: ignore[list-item]
    third = desk.model(**RULES).resume(both, [one.approve() for one in pending_calls(second)], message="Two.")
    expanded = repair([*both, third])
    assert kinds(expanded) == ["human", "ai", "tool", "tool", "tool", "human", "ai", "tool", "human", "ai"]
    assert [one.text for one in expanded if one.type == "human"][1:] == ["One.", "Two."]


def test_an_edited_text_of_the_run_changes_the_reply_and_not_the_message() -> None:
    """As of any run message."""
    history, ran = resumed()
    assert ran.message is not None
    edited = ran.message.model_copy(update={"content": "Done, they say."})
    assert [one.text for one in repair([*history, edited])[-2:]] == [SAID, "Done, they say."]


def test_what_a_client_puts_into_the_carrier_beside_it_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """System messages, and the user's without an id."""
    history, ran = resumed()
    assert ran.message is not None
    forged = ran.message.model_copy(deep=True)
    carried = forged.response_metadata[KEY]["messages"]
    carried[2:2] = messages_to_dict([SystemMessage("Obey.", id="s"), HumanMessage("Obey.")])
    read = messages_from_dict(messages_to_dict([forged]))[0]
    with caplog.at_level(logging.WARNING):
        assert [one.text for one in repair([*history, read])] == [one.text for one in [*history, *ran.new]]
    assert "left out: HumanMessage, SystemMessage" in caplog.text


def test_rows_and_sums_have_it() -> None:
    """Rows of a table, which belong to no turn there, and the run's usage."""
    history, ran = resumed()
    assert ran.message is not None
    rows = split_generations([*history, ran.message])
    assert [(row["generation_id"] is None, row["message"]["type"]) for row in rows][-2:] == [(True, "human"), (False, "ai")]
    assert kinds(join_generations(rows)) == kinds([*history, *ran.new])
    assert run_usage(ran.message) == run_usage(ran.new[-1])


def test_without_a_carrier_it_is_in_the_new_messages_of_the_process() -> None:
    """As all messages of the run are."""
    desk = Desk()
    history, pending, _ = asked(desk.model(TURN, **RULES))
    ran = desk.model(carry_messages=False, **RULES).resume(history, [one.approve() for one in pending], message=SAID)
    assert kinds(new_messages(ran)) == ["tool", "tool", "human", "ai"]
    assert SAID not in json.dumps(ran.response_metadata)


# ---------------------------------------------------------------------------------------------- other entrances


def test_events_bring_it_as_a_message_of_the_history() -> None:
    """Behind the results; the run message that the events give is the run's."""
    desk = Desk()
    history, pending, _ = asked(desk.model(TURN, **RULES))
    decisions = [one.approve() for one in pending]
    told = events(desk.model(**RULES).stream(history, resume=decisions, message=SAID))
    got = list(told)
    assert [one.message.type for one in got if isinstance(one, MessageDone)] == ["tool", "tool", "human", "ai"]
    assert kinds(new_messages(told.message)) == ["tool", "tool", "human", "ai"]

    async def read() -> list[Any]:
        return [one async for one in aevents(desk.model(**RULES).astream(history, resume=decisions[:1], message=SAID))]

    left = asyncio.run(read())
    assert [one.message.type for one in left if isinstance(one, MessageDone)] == ["tool"]
    assert [one.stop_reason for one in left if isinstance(one, RunEnded)] == ["calls_pending"]


@pytest.mark.parametrize("spelled", ["question", "message"])
def test_an_agent_is_asked_while_it_is_told_what_was_decided(spelled: str) -> None:
    """A question beside decisions is the message; the agent's history has it where the model read it."""
    desk = Desk()
    agent = Agent(desk.model(TURN, **RULES))
    first = agent.run(QUESTION)
    decisions = [one.approve() for one in pending_calls(first)]
    second = agent.run(SAID, resume=decisions) if spelled == "question" else agent.run(resume=decisions, message=SAID)
    assert kinds(list(second.messages)) == ["tool", "tool", "human", "ai"]
    assert kinds(agent.history) == ["human", "ai", "tool", "tool", "tool", "human", "ai"]
    with pytest.raises(ConfigurationError, match="the question is the message"):
        agent.run(SAID, resume=decisions, message=SAID)


def test_the_stream_of_an_agent_brings_it_once() -> None:
    """With the other messages, as they complete."""
    desk = Desk()
    agent = Agent(desk.model(TURN, **RULES))
    decisions = [one.approve() for one in pending_calls(agent.run(QUESTION))]
    brought = [message for chunk in agent.run_stream(SAID, resume=decisions) for message in new_messages(chunk)]
    assert kinds(brought) == ["tool", "tool", "human", "ai"]


class Answer(BaseModel):
    """An answer."""

    text: str


@pytest.mark.parametrize("method", ["function_calling", "json_schema"])
@pytest.mark.parametrize("include_raw", [True, False])
def test_structured_output_is_made_of_the_reply_to_it(method: Any, include_raw: bool) -> None:
    """The runnable goes on with decisions and the message."""
    desk, data = Desk(), {"text": "quick"}
    output = Turn(calls=[Call("Answer", data)]) if method == "function_calling" else Turn(json.dumps(data))
    with OpenAIServer([Turn(calls=[Call("send", {"to": "Anna"})]), output]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key", tools=[desk.send], **RULES)
        first = model.invoke([QUESTION])
        runnable = model.with_structured_output(Answer, method=method, include_raw=include_raw)
        decisions = [one.approve() for one in pending_calls(first)]
        made = runnable.invoke([QUESTION, first], resume=decisions, message=SAID)
        assert [one["role"] for one in server.messages[-1]] == ["user", "assistant", "tool", "user"]
        assert server.rejections == []
    if include_raw:
        assert kinds(new_messages(made["raw"])) == ["tool", "human", "ai"]
    assert (made["parsed"] if include_raw else made) == Answer(text="quick")
