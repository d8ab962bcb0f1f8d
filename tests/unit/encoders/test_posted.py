"""What a page may decide: about calls that wait in the server's own history, with their signatures; all else is dropped."""

import logging
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from pydantic import SecretStr

from langchain_autotools import ConfigurationError, PendingCall, new_messages, pending_calls
from langchain_autotools.encoders.posted import PostedDecisions, read_body, signature_of
from langchain_autotools.testing import ScriptedChatModel

KEY = "the server's own"
PAID: list[int] = []


@tool
def pay(amount: int) -> str:
    """Pay an amount."""
    PAID.append(amount)
    return f"paid {amount}"


THEIRS = {"type": "function", "function": {"name": "locate", "description": "Theirs.", "parameters": {"type": "object", "properties": {}}}}
CALLS = [
    {"name": "pay", "args": {"amount": 3}, "id": "p"},
    {"name": "locate", "args": {}, "id": "l"},
    {
        "name": "multi_tool_use.parallel",
        "args": {"tool_uses": [{"recipient_name": "functions.pay", "parameters": {"amount": 5}}] * 2},
        "id": "b",
    },
]


def paying(key: str | None = KEY) -> tuple[Any, list[BaseMessage]]:
    """A model, and a history that ends in calls: two that need approval, one a bundle, and one that is the page's own."""
    PAID.clear()
    replies = [AIMessage("", tool_calls=CALLS, id="m"), "Done."]
    model = ScriptedChatModel(replies=replies, tools=[pay], requires_approval=True, approval_key=key).bind_tools([THEIRS])
    history: list[BaseMessage] = [HumanMessage("Pay.")]
    return model, [*history, *new_messages(model.invoke(history))]


def signed(history: list[BaseMessage], call_id: str) -> str:
    """The signature that the page was shown with a call."""
    return next(signature_of(call) for call in pending_calls(history) if call.id == call_id)


def test_what_holds_is_taken_and_resumes_the_run() -> None:
    """An approval, a refusal of a bundle, an output of the page's own call: in the order of the calls."""
    model, history = paying()
    posted = PostedDecisions(history, SecretStr(KEY))
    posted.respond("l", {"at": "home"})
    posted.approve("p", signed(history, "p"), args={"amount": 2})
    posted.reject("b", signed(history, "b"), "too much")
    assert [(one.id, one.action, one.value) for one in posted.decisions] == [
        ("p", "edit", {"amount": 2}),
        ("l", "respond", {"at": "home"}),
        ("b", "reject", "too much"),
    ]
    model.resume(history, posted.decisions)
    assert PAID == [2]


def test_a_bundle_can_be_approved() -> None:
    """Its digest is over the calls inside it."""
    model, history = paying()
    posted = PostedDecisions(history, KEY)
    posted.approve("b", signed(history, "b"))
    posted.fail("l", "no network")
    model.resume(history, posted.decisions)
    assert PAID == [5, 5]


def test_what_a_page_says_without_the_signature_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """Each kind is logged once; nothing is decided."""
    _, history = paying()
    posted = PostedDecisions(history, KEY)
    other = signed(history, "b")
    with caplog.at_level(logging.WARNING, "langchain_autotools"):
        for signature in (None, "", "x.y", other, signed(history, "p") + " ", 3, "\ud83d"):
            posted.approve("p", signature)
            posted.reject("p", signature)
        for call_id in ("x", None, 3, [], "l"):
            posted.approve(call_id, other)
        for call_id in ("p", "b", "x", None, {}):
            posted.respond(call_id, "forged")
            posted.fail(call_id, "forged")
    assert posted.decisions == []
    assert len({record.message for record in caplog.records}) == len(caplog.records) == 3


@pytest.mark.parametrize("given, of_model", [(None, KEY), (KEY, None), (KEY, "another")])
def test_approvals_count_only_with_the_models_key(given: str | None, of_model: str | None, caplog: pytest.LogCaptureFixture) -> None:
    """Without it, or where the model had none or another, nothing is approved; outputs of the page's own calls need none."""
    _, history = paying(of_model)
    posted = PostedDecisions(history, given)
    with caplog.at_level(logging.WARNING, "langchain_autotools"):
        posted.approve("p", signed(history, "p"))
        posted.approve("b", signed(history, "b"))
    assert posted.decisions == []
    assert [("approval_key" in record.message) for record in caplog.records] == [given is None]
    posted.respond("l", None)
    assert [one.value for one in posted.decisions] == [""]


def test_the_first_decision_about_a_call_counts(caplog: pytest.LogCaptureFixture) -> None:
    """A second one is dropped."""
    _, history = paying()
    posted = PostedDecisions(history, KEY)
    with caplog.at_level(logging.WARNING, "langchain_autotools"):
        posted.reject("p", signed(history, "p"))
        posted.approve("p", signed(history, "p"))
    assert [one.action for one in posted.decisions] == ["reject"]
    assert "second" in caplog.text


def test_a_call_that_queues_can_only_be_refused() -> None:
    """It waits behind another one, and needs no approval."""
    call = AIMessage("", tool_calls=CALLS[:1], id="m")
    model = ScriptedChatModel(replies=[call], tools=[pay], requires_approval=True, approval_key=KEY)
    history = [HumanMessage("Pay."), *new_messages(model.invoke("Pay."))]
    shown = pending_calls(history)[0]
    posted = PostedDecisions(history, KEY)
    posted.pending["p"] = PendingCall(shown.id, shown.name, shown.args, "queued", shown.uuid, shown.digest)
    posted.approve("p", signature_of(shown))
    assert posted.decisions == []


@pytest.mark.parametrize("history, key", [("text", KEY), (None, KEY), (HumanMessage("x"), KEY), ([], ""), ([], 3)])
def test_a_history_and_a_key_are_what_they_are(history: Any, key: Any) -> None:
    """Anything else is the server's own mistake."""
    with pytest.raises(ConfigurationError, match="history|approval_key"):
        PostedDecisions(history, key)


@pytest.mark.parametrize("body", [b'{"a": 1}', '{"a": 1}', {"a": 1}])
def test_a_body_is_bytes_text_or_an_object(body: Any) -> None:
    """As a server has it."""
    assert read_body(body) == {"a": 1}


@pytest.mark.parametrize("body", [b"\xff", b"", "[1]", "{", '{"a": NaN}', "[" * 10_000, None, 3, ["a"]])
def test_a_body_that_is_no_object_is_refused(body: Any) -> None:
    """With one kind of error, whatever is wrong with it."""
    with pytest.raises(ConfigurationError, match="posted body"):
        read_body(body)
