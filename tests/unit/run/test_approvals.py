"""Calls that wait for approval, in runs: what ends as pending, what resumes, what never runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.load import dumps
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langchain_autotools import ChatOpenAI, ConfigurationError, Decision, ToolCallRecord, init_chat_model, new_messages, pending_calls
from tests.laws.ways import WAYS, run
from tests.support.desk import QUESTION, SECRET, TURN, Desk, asked, asking, call, reason, through_json

# ---------------------------------------------------------------------------------------------- waiting and going on


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key", [None, SECRET])
def test_what_was_approved_runs_in_another_process(way: str, key: str | None) -> None:
    """The others have run before; what was decided is stored as JSON; the result says what an edited call ran with."""
    desk = Desk()
    rules: dict[str, Any] = {"requires_approval": ["send"], "approval_key": key}
    history, pending, first = asked(desk.model(TURN, **rules), way)
    assert (reason(first), desk.done) == ("calls_pending", ["look Paris"])
    assert [(one.id, one.name, one.args, one.kind) for one in pending] == [
        ("1", "send", {"to": "Anna"}, "approval"),
        ("3", "send", {"to": "Ben"}, "approval"),
    ]
    stored, decisions = through_json(history, [pending[0].approve(), pending[1].edit({"to": "Eve"})])
    second = run(way, desk.model(**rules), stored, resume=decisions)
    assert reason(second) == "complete"
    assert sorted(desk.done) == ["look Paris", "send Anna 1", "send Eve 1"]
    said = 'The arguments of this call were changed before it ran. It ran with: {"to": "Eve"}\n\nSent to Eve.'
    assert [message.text for message in second.new] == ["Sent to Anna.", said, "Done."]


@pytest.mark.parametrize("way", WAYS)
def test_refused_and_answered_calls_do_not_run(way: str) -> None:
    """The model is told why, or what somebody found out by hand."""
    desk = Desk()
    history, pending, _ = asked(desk.model(TURN, requires_approval=True), way)
    assert desk.done == []
    decisions = [pending[0].reject("Not Anna."), pending[1].respond("Paris: 30"), pending[2].respond({"sent": True})]
    second = run(way, desk.model(requires_approval=True), history, resume=decisions)
    assert [message.text for message in second.new] == ['{"error": "Not Anna."}', "Paris: 30", '{"sent": true}', "Done."]
    assert [getattr(message, "status", None) for message in second.new[:3]] == ["error", "success", "success"]
    assert desk.done == []


@pytest.mark.parametrize("way", WAYS)
def test_no_request_is_made_before_all_calls_are_decided(way: str) -> None:
    """What was decided has run; the others wait as before, in the run message as in the history."""
    desk = Desk()
    history, pending, _ = asked(desk.model(TURN, requires_approval=["send"]), way)
    model = desk.model(requires_approval=["send"])
    second = run(way, model, history, resume=[pending[1].approve()])
    assert (reason(second), model.requests) == ("calls_pending", [])
    assert second.message is not None
    history += second.new
    assert pending_calls(second.message) == pending_calls(history) == pending[:1]
    none = run(way, model, history, resume=[])
    assert (reason(none), model.requests, none.new) == ("calls_pending", [], [])
    third = run(way, model, history, resume=[pending[0].approve()])
    assert (reason(third), desk.done) == ("complete", ["look Paris", "send Ben 1", "send Anna 1"])


def test_the_rule_holds_in_the_resumed_run() -> None:
    """The next call waits as well, and so the loop of the page comes to its end."""
    desk = Desk()
    model = desk.model(TURN, asking(call("Send", "4", to="Eve")), asking(call("functions.send", "5", to="Eve")), requires_approval=["send"])
    history: list[BaseMessage] = [QUESTION]
    answer = model.invoke(history)
    history += new_messages(answer)
    shown: list[str] = []
    while calls := pending_calls(answer):
        shown += [f"{one.name} {one.id}" for one in calls]
        answer = model.resume(history, [one.reject() if one.args == {"to": "Eve"} else one.approve() for one in calls])
        history += new_messages(answer)
    assert shown == ["send 1", "send 3", "send 4", "send 5"]
    assert (sorted(desk.done), answer.text) == (["look Paris", "send Anna 1", "send Ben 1"], "Done.")


def test_the_rules_of_the_model_and_of_its_executor_add_up() -> None:
    """No keyword of a call takes one away, only a copy of the model does."""
    desk = Desk()
    fields: dict[str, Any] = {"executor": {"requires_approval": ["send"]}, "requires_approval": lambda record: record.name == "look"}
    _, pending, _ = asked(desk.model(TURN, **fields))
    assert [one.id for one in pending] == ["1", "2", "3"]
    _, pending, _ = asked(desk.model(TURN, **fields), requires_approval=())
    assert [one.id for one in pending] == ["1", "2", "3"]
    _, pending, _ = asked(desk.model(TURN, **fields).model_copy(update={"requires_approval": None}))
    assert [one.id for one in pending] == ["1", "3"]
    assert desk.done == ["look Paris"]


def test_the_rule_of_a_call_holds_without_a_field() -> None:
    """Bound or said in the call; without it the next run still takes no bare True for what was shown for approval."""
    desk = Desk()
    bound: Any = desk.model(TURN).bind(requires_approval=["send"])
    answer = bound.invoke([QUESTION])
    history = [QUESTION, *new_messages(answer)]
    assert len(pending_calls(answer)) == 2
    for decisions in (True, {"1": True}, {"1": {"to": "Eve"}}):
        with pytest.raises(ConfigurationError, match="'1' needs approval, and (True|a mapping of arguments) binds nothing"):
            desk.model().resume(history, decisions)
    assert desk.done == ["look Paris"]


def test_a_rule_that_is_bound_holds_in_the_resumed_run() -> None:
    """As that of a field does: `resume` of the bound model knows what was bound."""
    desk = Desk()
    bound: Any = desk.model(asking(call("send", "1", to="Anna")), asking(call("send", "2", to="Ben"))).bind(requires_approval=["send"])
    first = bound.invoke([QUESTION])
    again = bound.resume([QUESTION, *new_messages(first)], [one.approve() for one in pending_calls(first)])
    assert [one.id for one in pending_calls(again)] == ["2"]
    assert desk.done == ["send Anna 1"]


@pytest.mark.parametrize("decisions", [True, {"1": True, "3": False}, {"1": {"to": "Anna"}}])
@pytest.mark.parametrize("record", [True, False])
def test_what_binds_nothing_approves_nothing(decisions: Any, record: bool) -> None:
    """Neither True nor arguments, whether the call was shown or a client wrote the history. The default is True."""
    desk = Desk()
    model = desk.model(TURN, requires_approval=["send"])
    history = asked(model)[0] if record else [QUESTION, TURN]
    desk.done.clear()
    with pytest.raises(ConfigurationError, match="needs approval"):
        model.resume(history, decisions)
    with pytest.raises(ConfigurationError, match="needs approval"):
        model.resume(history)
    assert desk.done == []


def test_arguments_that_need_approval_are_not_given_by_a_plain_decision() -> None:
    """The call itself needed none."""
    desk = Desk()
    model = desk.model(requires_approval=lambda record: record.args["amount"] > 10)
    history = [QUESTION, asking(call("send", "1", to="Anna", amount=5))]
    with pytest.raises(ConfigurationError, match="needs approval"):
        model.resume(history, {"1": {"to": "Anna", "amount": 5000}})
    model.resume(history, {"1": {"to": "Anna", "amount": 6}})
    assert desk.done == ["send Anna 6"]


# ---------------------------------------------------------------------------------------------- one after another


@pytest.mark.parametrize("way", WAYS)
def test_one_after_another_calls_behind_a_waiting_one_are_queued(way: str, caplog: pytest.LogCaptureFixture) -> None:
    """They run without a decision of their own once those before them are decided; one that is decided too early waits on."""
    desk = Desk()
    fields: dict[str, Any] = {"requires_approval": ["send"], "parallel": False, "approval_key": SECRET}
    turn = asking(call("look", "0", city="Rome"), *TURN.tool_calls)  # type: ignore[arg-type]
    history, pending, first = asked(desk.model(turn, **fields), way)
    assert [(one.id, one.kind) for one in pending] == [("1", "approval"), ("2", "queued"), ("3", "approval")]
    assert (desk.done, reason(first)) == (["look Rome"], "calls_pending")
    early = run(way, desk.model(**fields), history, resume=[pending[2].approve()])
    assert (early.new, reason(early)) == ([], "calls_pending")
    assert "the decision on call 3 has no effect" in caplog.text
    with pytest.raises(ConfigurationError, match="waits behind other calls"):
        pending[1].approve()
    second = run(way, desk.model(**fields), history, resume=[pending[0].approve()])
    assert (desk.done, reason(second)) == (["look Rome", "send Anna 1", "look Paris"], "calls_pending")
    last = run(way, desk.model(**fields), [*history, *second.new], resume=[pending[2].approve()])
    assert (desk.done[3:], reason(last)) == (["send Ben 1"], "complete")


# ---------------------------------------------------------------------------------------------- the caller's calls


def test_the_callers_own_calls_are_answered_or_refused() -> None:
    """Declared tools: the caller runs them; a decision about another call is an error."""
    desk = Desk()
    bound: Any = desk.model(TURN).bind_tools([{"name": "look", "parameters": {"type": "object", "properties": {}}}])
    answer = bound.invoke([QUESTION])
    history = [QUESTION, *new_messages(answer)]
    (pending,) = pending_calls(answer)
    assert (pending.id, pending.kind, sorted(desk.done)) == ("2", "caller", ["send Anna 1", "send Ben 1"])
    with pytest.raises(ConfigurationError, match="only declared"):
        pending.approve()
    with pytest.raises(ConfigurationError, match="'2' takes no approve"):
        bound.resume(history, [Decision("2", "approve", None, pending.uuid, pending.digest)])
    with pytest.raises(ConfigurationError, match="about another call"):
        bound.resume(history, [Decision("2", "respond", "21")])
    answer = bound.resume(history, [pending.respond("21")])
    assert [message.text for message in new_messages(answer)] == ["21", "Done."]


def test_a_rule_is_not_asked_about_the_callers_calls() -> None:
    """They are his anyway; a constructor's tool of that name runs none of them without approval."""
    desk = Desk()
    bound: Any = desk.model(asking(call("send", "1", to="Anna")), requires_approval=["send"]).bind_tools([desk.send])
    answer = bound.invoke([QUESTION])
    assert [one.kind for one in pending_calls(answer)] == ["caller"]
    with pytest.raises(ConfigurationError, match="needs approval"):
        bound.resume([QUESTION, *new_messages(answer)], True)
    assert desk.done == []


# ---------------------------------------------------------------------------------------------- failing rules, limits, copies


def _broken(record: ToolCallRecord) -> bool:
    raise RuntimeError("no rule today")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("rule", "error"), [(_broken, RuntimeError), (lambda record: None, ConfigurationError)])
def test_a_rule_that_fails_ends_the_run_with_nothing_run(way: str, rule: Any, error: type[Exception]) -> None:
    """The turn that was whole is handed out, each of its calls answered."""
    desk = Desk()
    ran = run(way, desk.model(TURN, requires_approval=rule), [QUESTION])
    assert isinstance(ran.error, error)
    assert desk.done == []
    assert [message.type for message in ran.new] == ["ai", "tool", "tool", "tool"]
    assert all("cancelled before it ran" in message.text for message in ran.new[1:])


def test_calls_that_wait_count_for_no_limit() -> None:
    """Limits count what a resumed run executes."""
    desk = Desk()
    fields: dict[str, Any] = {"requires_approval": ["send"], "max_tool_calls": 1}
    history, pending, _ = asked(desk.model(TURN, **fields))
    answer = desk.model(**fields).resume(history, [one.approve() for one in pending])
    assert desk.done == ["look Paris", "send Anna 1"]
    assert "limit of tool calls" in new_messages(answer)[1].text


def test_the_last_answer_at_a_limit_asks_nobody() -> None:
    """Its calls are refused: none of them waits, and none has a record."""
    desk = Desk()
    model = desk.model(asking(call("look", "0", city="Rome")), lambda messages, **_: TURN, requires_approval=["send"], max_turns=1)
    answer = model.invoke([QUESTION])
    assert (pending_calls(answer), desk.done) == ([], ["look Rome"])
    assert "approval" not in dumps(new_messages(answer))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"requires_approval": ["sned"]}, "requires_approval names tools that do not exist: 'sned'"),
        ({"requires_approval": "send"}, "requires_approval must be a list of names"),
        ({"approve": True}, "approve must be a function"),
    ],
)
def test_a_rule_that_cannot_work_is_refused_where_the_model_is_made(fields: dict[str, Any], text: str) -> None:
    """And where it is a keyword of a call."""
    with pytest.raises(ValueError, match=text):
        Desk().model(**fields)
    with pytest.raises(ConfigurationError, match=text):
        Desk().model().invoke([QUESTION], **fields)


def test_what_is_sent_is_the_same_with_and_without_a_rule() -> None:
    """Records stay here: a vendor never sees them."""
    desk = Desk()
    history, pending, _ = asked(desk.model(TURN, requires_approval=["send"]))
    model = desk.model()
    model.resume(history, [one.approve() for one in pending])
    plain = desk.model(TURN)
    plain.invoke([QUESTION])
    ((resumed,), (_, straight)) = model.requests, plain.requests
    sent, other = ([(one.type, one.content, getattr(one, "tool_calls", [])) for one in request.messages] for request in (resumed, straight))
    assert sent == other


def test_a_history_with_pending_calls_is_answered_as_interrupted_elsewhere() -> None:
    """Without resume nothing is decided, and nothing runs."""
    desk = Desk()
    history, _, _ = asked(desk.model(TURN, requires_approval=["send"]))
    desk.done.clear()
    new = new_messages(desk.model(requires_approval=["send"]).invoke(history))
    assert [type(message) for message in new] == [ToolMessage, ToolMessage, AIMessage]
    assert "interrupted" in new[0].text
    assert desk.done == []


BATCHES: dict[str, Callable[[Any], Any]] = {
    "batch": lambda model: model.batch([[QUESTION]], resume=True),
    "batch_as_completed": lambda model: list(model.batch_as_completed([[QUESTION]], resume=[])),
    "abatch": lambda model: asyncio.run(model.abatch([[QUESTION]], resume={"1": True})),
    "abatch_as_completed": lambda model: asyncio.run(_all(model)),
}


async def _all(model: Any) -> list[Any]:
    return [one async for one in model.abatch_as_completed([[QUESTION]], resume=[])]


@pytest.mark.parametrize("way", BATCHES)
@pytest.mark.parametrize("bound", [False, True])
def test_a_batch_resumes_nothing(way: str, bound: bool) -> None:
    """Decisions are about the calls of one history; a batch without them is what it was."""
    model: Any = Desk().model()
    model = model.bind(stop=["x"]) if bound else model
    with pytest.raises(ConfigurationError, match="batch takes none"):
        BATCHES[way](model)
    assert [answer.text for answer in model.batch([[QUESTION]], resume=None)] == ["Done."]


def test_a_bound_rule_stays_whatever_is_declared_afterwards() -> None:
    """A binding's `bind_tools`, `with_tools` and `with_structured_output` do not forget it."""

    def ring(number: int) -> str:
        """Ring."""
        return str(number)

    desk = Desk()
    declare: list[Callable[[Any], Any]] = [lambda bound: bound.bind_tools([ring]), lambda bound: bound.with_tools([desk.look, desk.send])]
    for declared in declare:
        desk.done.clear()
        waiting = pending_calls(declared(desk.model(TURN).bind(requires_approval=["send"])).invoke([QUESTION]))
        assert [one.kind for one in waiting] == ["approval", "approval"]
        assert desk.done == ["look Paris"]
    model: Any = ChatOpenAI(model="any", api_key="key", tools=[desk.send]).bind(requires_approval=["send"])
    for method in ("function_calling", "json_schema"):
        assert model.with_structured_output({"title": "Out", "type": "object"}, method=method).first.kwargs["requires_approval"] == ["send"]


def test_a_rule_bound_to_a_configurable_model_holds_when_it_is_resumed() -> None:
    """A history without a record of the call, as a client may send one, runs nothing."""
    desk = Desk()
    model: Any = init_chat_model("openai:any", configurable_fields=["temperature"], api_key="key", tools=[desk.look, desk.send])
    with pytest.raises(ConfigurationError, match="needs approval"):
        model.bind(requires_approval=["send"]).resume([QUESTION, asking(call("send", "1", to="Anna"))], True)
    assert desk.done == []
