"""`resume`: what was decided runs, what was not waits, and nothing runs that nobody approved."""

from __future__ import annotations

import asyncio
import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableBinding
from langchain_core.tools import tool

from langchain_autotools import new_messages
from langchain_autotools.errors import ConfigurationError
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.ways import WAYS, run
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "approval.py"
QUESTION = HumanMessage("Write to Anna and to Ben.")


class Post:
    """A mail that notes what it sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def send(self, to: str) -> str:
        """Send a mail."""
        self.sent.append(to)
        return f"Sent to {to}."


def mail(to: str, call_id: str | None = None) -> dict[str, Any]:
    """A call of `send`."""
    return {"name": "send", "args": {"to": to}, "id": call_id or f"call_{to}"}


def asked(*calls: dict[str, Any]) -> list[BaseMessage]:
    """A history that ends in calls."""
    return [QUESTION, AIMessage("", tool_calls=list(calls))]


HISTORY = asked(mail("anna"), mail("ben"))


def scripted(post: Post, *replies: Any, **fields: Any) -> ScriptedChatModel:
    """A model that has the tool."""
    return ScriptedChatModel(tools=[post.send], replies=[*replies, "Done."], **fields)


@pytest.mark.parametrize("way", WAYS)
def test_a_call_without_a_decision_stays_pending(way: str) -> None:
    """What was decided runs and is handed out; no request is made before all is decided, in a second step as in one."""
    post = Post()
    model = scripted(post)
    first = run(way, model, HISTORY, resume={"call_anna": True})
    assert (post.sent, model.requests, first.error) == (["anna"], [], None)
    assert [message.text for message in first.new] == ["Sent to anna."]
    assert first.message is not None
    assert first.message.response_metadata[KEY]["stop_reason"] == "calls_pending"
    assert [call["id"] for call in first.message.tool_calls] == ["call_ben"]
    for history in ([*HISTORY, *first.new], [*HISTORY, first.message]):
        second = run(way, scripted(post), history, resume={"call_ben": "Not Ben."})
        assert [message.text for message in second.new] == ['{"error": "Not Ben."}', "Done."]
    assert post.sent == ["anna"]


@pytest.mark.parametrize("decisions", [{"call_eve": True}, {"call_anna": True, "call_eve": False}])
def test_a_decision_about_no_call_is_an_error(decisions: dict[str, Any]) -> None:
    """It names the calls that wait, and nothing runs."""
    post = Post()
    with pytest.raises(ConfigurationError, match="about 'call_eve', but the calls that wait are 'call_anna', 'call_ben'"):
        scripted(post).resume(HISTORY, decisions)
    assert post.sent == []


@pytest.mark.parametrize(
    ("history", "named"),
    [
        ([QUESTION], "about 'call_anna', but the calls that wait are none"),
        ([*asked(mail("anna")), ToolMessage("Sent.", tool_call_id="call_anna")], "about 'call_anna', but there is a result already"),
    ],
)
@pytest.mark.parametrize("decisions", [True, {}, {"call_anna": True}])
def test_where_nothing_waits_nothing_is_asked(history: list[BaseMessage], named: str, decisions: Any) -> None:
    """There is nothing to decide: an error, not a request that costs, which names a call that is decided about."""
    post = Post()
    model = scripted(post)
    with pytest.raises(ConfigurationError, match=named if isinstance(decisions, dict) and decisions else "there are none"):
        model.resume(history, decisions)
    assert (post.sent, model.requests) == ([], [])


def test_the_model_is_told_what_an_edited_call_ran_with() -> None:
    """The history says the model's arguments, so the result says the others; where they are the same there is nothing to say."""
    post = Post()
    model = scripted(post)
    new = new_messages(model.resume(HISTORY, {"call_anna": {"to": "eve"}, "call_ben": {"to": "ben"}}))
    assert sorted(post.sent) == ["ben", "eve"]  # side by side
    assert new[0].text == 'The arguments of this call were changed before it ran. It ran with: {"to": "eve"}\n\nSent to eve.'
    assert new[1].text == "Sent to ben."
    assert model.requests[0].messages[-2:] == tuple(new[:2])


def test_the_model_is_not_told_that_a_refused_edit_ran() -> None:
    """Arguments of a decision that the tool does not take run nothing, and the result says that."""
    post = Post()
    new = new_messages(scripted(post).resume(HISTORY, {"call_anna": {"whom": "eve"}, "call_ben": False}))
    assert post.sent == []
    assert new[0].text.startswith(
        'The arguments of this call were changed, and it did not run. They were changed to: {"whom": "eve"}\n\n{"error": '
    )


def test_the_blocks_of_an_edited_call_say_it_too() -> None:
    """Whatever the result is made of; and so does an error."""

    def show(what: str) -> list[dict[str, Any]]:
        """Show."""
        if what == "nothing":
            raise ValueError("Nothing to see.")
        return [{"type": "text", "text": f"a {what}"}]

    call = {"name": "show", "args": {"what": "cat"}, "id": "1"}
    model = ScriptedChatModel(tools=[show], replies=["Done."] * 2)
    result = new_messages(model.resume(asked(call), {"1": {"what": "dog"}}))[0]
    assert [block["text"] for block in result.content][1:] == ["a dog"]  # type: ignore[index]
    assert 'ran with: {"what": "dog"}' in result.content[0]["text"]  # type: ignore[index]
    failed = new_messages(model.resume(asked(call), {"1": {"what": "nothing"}}))[0]
    assert 'ran with: {"what": "nothing"}' in failed.text
    assert "Nothing to see." in failed.text


@pytest.mark.parametrize("decisions", [True, {"call_1": True}])
def test_what_was_changed_since_the_model_wrote_it_is_not_approved_by_true(decisions: Any) -> None:
    """The recorded text says other arguments than the call, so nobody knows which were meant; given outright, they run."""
    post = Post()
    script = [Turn(calls=[Call("send", {"to": "anna"}, id="call_1")]), Turn("Done.")]
    with OpenAIServer(script) as server:
        from tests.laws.ways import chat

        model = chat(server, tools=[post.send])
        answer = model.bind_tools([post.send]).invoke([QUESTION])
        for changed in (new_messages(answer)[0], answer):
            message = changed.model_copy(deep=True)
            message.tool_calls[0]["args"]["to"] = "eve"  # type: ignore[attr-defined]
            with pytest.raises(ConfigurationError, match="'call_1' has other arguments than the model wrote"):
                model.resume([QUESTION, message], decisions)
        assert post.sent == []
        model.resume([QUESTION, message], {"call_1": {"to": "anna"}})
    assert post.sent == ["anna"]


@pytest.mark.parametrize("bound", ["bind_tools", "with_config", "bind"])
def test_resume_on_a_binding_leaves_further_calls_to_the_caller(bound: str) -> None:
    """What is bound holds for the resumed run too: the call that was approved runs, the next one waits."""
    post = Post()
    model = scripted(post, AIMessage("", tool_calls=[mail("eve")]))
    declared = model.bind_tools([post.send])
    asking: Any = {
        "bind_tools": lambda: declared,
        "with_config": lambda: model.with_config(tags=["a"]).bind(tools=declared.kwargs["tools"]),  # type: ignore[attr-defined]
        "bind": lambda: declared.bind(stop=["x"]).with_config(tags=["a"]),
    }[bound]()
    assert isinstance(asking, RunnableBinding)
    answer = asking.resume(asked(mail("anna")), {"call_anna": True})
    assert post.sent == ["anna"]
    assert [call["id"] for call in answer.tool_calls] == ["call_eve"]
    answer = asyncio.run(asking.aresume(asked(mail("ben")), {"call_ben": True}))
    assert (post.sent, answer.text) == (["anna", "ben"], "Done.")


def test_a_call_of_a_tool_that_was_only_declared_cannot_be_approved() -> None:
    """There is nothing to run it with: the caller runs it and appends the result; a refusal is fine."""
    post = Post()

    @tool
    def look(where: str) -> str:
        """Look."""
        return where

    asking: Any = scripted(post).bind_tools([look])
    history = asked({"name": "functions.look", "args": {"where": "here"}, "id": "call_1"})
    with pytest.raises(ConfigurationError, match="'look' was only declared"):
        asking.resume(history, True)
    assert new_messages(asking.resume(history, {"call_1": False}))[-1].text == "Done."


def test_limits_and_choices_hold_for_resumed_calls() -> None:
    """Two approved calls with one left: the first runs. A tool that the choice forbids does not."""
    post = Post()
    model = scripted(post)
    new = new_messages(model.resume(HISTORY, True, max_tool_calls=1))
    assert post.sent == ["anna"]
    assert "the limit of tool calls" in json.loads(new[1].text)["error"]
    assert model.requests[0].tool_choice == "none"
    new = new_messages(scripted(post).resume(asked(mail("ben")), True, tool_choice="none"))
    assert post.sent == ["anna"]
    assert "is not allowed here" in json.loads(new[0].text)["error"]


def test_a_direct_result_ends_a_resumed_run() -> None:
    """As it ends any other: nobody is asked."""

    @tool(return_direct=True)
    def tell(what: str) -> str:
        """Tell."""
        return f"I tell you: {what}."

    model = ScriptedChatModel(tools=[tell], replies=[])
    answer = model.resume(asked({"name": "tell", "args": {"what": "all"}, "id": "1"}), {"1": True})
    assert (answer.text, answer.response_metadata[KEY]["stop_reason"]) == ("I tell you: all.", "return_direct")


def test_the_example_sends_only_what_was_approved(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The other tool runs unasked; a model that writes a second mail after the first is asked about that one too."""
    mails = [Call("send_mail", {"to": to, "text": "Eight."}) for to in ("Anna", "Eve")]
    shown: list[str] = []
    weather = Call("get_weather", {"city": "Paris"})
    with OpenAIServer([Turn(calls=[mails[0], weather]), Turn(calls=mails[1:]), Turn("Done.")]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setattr("builtins.input", lambda prompt: shown.append(prompt) or ("y" if "Anna" in prompt else "n"))
        runpy.run_path(str(EXAMPLE), run_name="__main__")
        last = server.requests[-1]["messages"]
    assert [prompt.split("(")[0] for prompt in shown] == ["send_mail", "send_mail"]
    results = [message["content"] for message in last if message["role"] == "tool"]
    assert results == ["Sent to Anna.", "21 °C", '{"error": "The user said no."}']
    assert capsys.readouterr().out == "Done.\n"


@pytest.mark.parametrize("bound", [False, True])
def test_none_decides_nothing(bound: bool) -> None:
    """None is no decision: it would answer the calls as interrupted, and ask the model."""
    post = Post()
    model: Any = scripted(post)
    with pytest.raises(ConfigurationError, match="not None"):
        (model.bind_tools([post.send]) if bound else model).resume(HISTORY, None)
    assert (post.sent, model.requests) == ([], [])


def test_a_turn_that_no_run_has_asked_for_resumes_nothing() -> None:
    """`generate` makes one turn, and says that it executes no calls."""
    with pytest.raises(ConfigurationError, match="resume is for invoke, stream"):
        ScriptedChatModel(replies=["Done."], tools=[]).generate([[HumanMessage("Hi")]], resume=True)
