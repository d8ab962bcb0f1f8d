"""LangChain's middleware around calls, and the middleware that is refused."""

import asyncio
import threading
import time
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

pytest.importorskip("langchain.agents.middleware", reason="needs LangChain")
from langchain.agents.middleware import (
    AgentMiddleware,
    FilesystemFileSearchMiddleware,
    HumanInTheLoopMiddleware,
    LLMToolEmulator,
    ModelCallLimitMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_autotools import ConfigurationError, ToolCallResult, ToolPolicy, new_messages, pending_calls, stop_reason, with_tools
from langchain_autotools.testing import ScriptedChatModel
from tests.support.at_once import at_once
from tests.support.endless_chat import Way, ainvoke, every_way, invoke
from tests.support.middleware import Around, call, look, model_of


@every_way
def test_a_call_is_retried_answered_and_emulated(way: Way) -> None:
    """LangChain's own: a tool's exception is raised inside, and what the middleware returns is the result."""
    tries: list[str] = []

    def flaky(at: str) -> str:
        """Fail once."""
        tries.append(at)
        if len(tries) == 1:
            raise ConnectionError("lost")
        return f"seen {at}"

    emulator = LLMToolEmulator(tools=["look"], model=ScriptedChatModel(replies=lambda messages, **keywords: "emulated"))
    retry = ToolRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
    model = model_of(call(name="flaky"), call("Oslo"), "Fine.", middleware=[retry, emulator], tools=[flaky, look])
    assert [one.text for one in way(model)[1]] == ["", "seen Rome", "", "emulated", "Fine."]
    assert tries == ["Rome", "Rome"]


@every_way
def test_an_exception_that_is_let_through_is_the_models_to_read(way: Way) -> None:
    """A tool's exception stays a result with an error; an exception of the middleware's own ends the run."""

    def fails(at: str) -> str:
        """Fail."""
        raise ConnectionError("lost")

    model = model_of(call(name="fails"), "Fine.", middleware=[Around()], tools=[fails])
    _, result, _ = way(model)[1]
    assert (result.status, "lost" in result.text) == ("error", True)

    def broken(request: Any) -> Any:
        raise ZeroDivisionError
        yield

    with pytest.raises(ZeroDivisionError):
        way(model_of(call(), middleware=[Around(tool=broken)]))


def other_place(request: Any) -> Any:
    """Change a call's arguments."""
    return (yield request.override(tool_call={**request.tool_call, "args": {"at": "Oslo"}}))


@every_way
def test_arguments_may_be_changed_and_not_the_tool(way: Way) -> None:
    """The tool gets the changed ones; another tool or another id is refused by name."""
    assert way(model_of(call(), "Fine.", middleware=[Around(tool=other_place)]))[1][1].text == "seen Oslo"

    def other_tool(request: Any) -> Any:
        return (yield request.override(tool_call={**request.tool_call, "name": "listen"}))

    with pytest.raises(ConfigurationError, match="Around makes another call of 'look'"):
        way(model_of(call(), middleware=[Around(tool=other_tool)]))


def twice(request: Any) -> Any:
    """Call the handler twice, the second time whatever came of the first."""
    with suppress(ConnectionError):
        yield request
    return (yield request)


@pytest.mark.parametrize("decided", [True, False])
@pytest.mark.parametrize("fails", [True, False])
@every_way
def test_an_approved_call_runs_once_where_middleware_calls_its_handler_twice(way: Way, fails: bool, decided: bool) -> None:
    """What has returned is returned again, and what has raised is tried again; a call that needs no approval runs as often as asked."""
    tries: list[str] = []

    def act(at: str) -> str:
        """Act."""
        tries.append(at)
        if fails and len(tries) == 1:
            raise ConnectionError("lost")
        return f"did {len(tries)}"

    approve = (lambda pending: pending.approve()) if decided else None
    told: list[ToolCallResult] = []
    model = model_of(call(name="act"), "Fine.", middleware=[Around(tool=twice)], tools=[act], approve=approve, on_executed=told.append)
    result = way(model)[1][1]
    assert (result.text, tries) == (f"did {len(tries)}", ["Rome"] * (1 if decided and not fails else 2))
    assert [one.attempts for one in told] == [len(tries)]


def test_an_approved_call_whose_outcome_is_not_known_is_not_tried_again() -> None:
    """Its time was over while the tool ran: the second call of the handler raises the same."""
    tries, released = list[str](), threading.Event()

    def act(at: str) -> str:
        """Act for too long."""
        tries.append(at)
        released.wait(30)
        return "did"

    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
    fields: dict[str, Any] = {"default_policy": ToolPolicy(timeout=0.05), "approve": lambda pending: pending.approve()}
    model = model_of(call(name="act"), "Fine.", middleware=[retry], tools=[act], **fields)
    result = new_messages(model.invoke("Hi"))[1]
    released.set()
    assert ("timed out" in result.text, tries) == (True, ["Rome"])


def test_a_result_in_place_of_the_tools_is_the_answer_of_the_call() -> None:
    """Whatever id it bears; the tool does not run."""

    def answer(request: Any) -> Any:
        return ToolMessage("answered", tool_call_id="another")
        yield

    model = model_of(call(), "Fine.", middleware=[Around(tool=answer)])
    _, result, _ = new_messages(model.invoke("Hi"))
    assert (result.text, result.tool_call_id) == ("answered", "call Rome")


def test_a_deadline_ends_a_middleware_around_a_call() -> None:
    """The call is answered, and the run ends."""
    at_once({way.__name__: partial(ends_a_middleware_around_a_call, way) for way in (invoke, ainvoke)})


def ends_a_middleware_around_a_call(way: Way) -> None:
    """A run whose middleware waits."""
    released = threading.Event()

    class Blocking(AgentMiddleware[Any, Any]):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            released.wait(30)
            return handler(request)

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            await asyncio.Event().wait()

    begun = time.monotonic()
    try:
        run, messages = way(model_of(call(), middleware=[Blocking()], deadline=0.2))
    finally:
        released.set()
    assert (stop_reason(run), [one.type for one in messages], time.monotonic() - begun < 15) == ("deadline", ["ai", "tool"], True)


def test_policies_hold_inside_of_the_middleware() -> None:
    """It sees one call, however often the policy tries it, and the result as it is stored."""
    seen: list[str] = []

    def noting(request: Any) -> Any:
        message = yield request
        seen.append(message.text)
        return message

    def long() -> str:
        """Say much."""
        return "x" * 1000

    reply = AIMessage("", tool_calls=[{"name": "long", "args": {}, "id": "1"}])
    model = model_of(reply, "Fine.", middleware=[Around(tool=noting)], tools=[long], default_policy=ToolPolicy(max_output=300))
    _, result, _ = new_messages(model.invoke("Hi"))
    assert seen == [result.text] and len(result.text) <= 300


# ---------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("middleware", "error"),
    [
        (TodoListMiddleware(), "TodoListMiddleware needs .*the state todos"),
        (ModelCallLimitMiddleware(run_limit=1), "ModelCallLimitMiddleware needs .*before_model"),
        (SummarizationMiddleware(FakeMessagesListChatModel(responses=[])), "SummarizationMiddleware needs before_model"),
        (HumanInTheLoopMiddleware({"look": True}), "HumanInTheLoopMiddleware needs"),
        (AgentMiddleware(), "AgentMiddleware has neither"),
        (look, "function has neither"),
        (Around, "the class Around has neither"),
    ],
    ids=lambda one: type(one).__name__ if not isinstance(one, str) else "",
)
def test_what_needs_more_is_refused_by_name(middleware: Any, error: str) -> None:
    """Where the model is made, also of another package's."""
    with pytest.raises(ValueError, match=error):
        model_of(middleware=[middleware])
    with pytest.raises(ConfigurationError, match=error):
        with_tools(FakeMessagesListChatModel(responses=[]), [look], middleware=[middleware])
    with pytest.raises(ValueError, match="must be a list"):
        model_of(middleware=3)


def test_middleware_is_the_models_alone() -> None:
    """As a keyword of a call it is refused."""
    with pytest.raises(ConfigurationError, match="middleware is set where the model is made"):
        ScriptedChatModel(tools=[look], replies=["."]).invoke("Hi", middleware=[Around()])


class OneSided(AgentMiddleware[Any, Any]):
    """Middleware for synchronous runs."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Around a turn."""
        return handler(request)


def test_a_missing_twin_is_named() -> None:
    """Middleware that has one of the two kinds serves runs of that kind."""
    assert model_of("Fine.", middleware=[OneSided()]).invoke("Hi").text == "Fine."
    with pytest.raises(ConfigurationError, match="OneSided has wrap_model_call and no awrap_model_call: asynchronous runs need it"):
        asyncio.run(model_of("Fine.", middleware=[OneSided()]).ainvoke("Hi"))


@pytest.mark.parametrize("change", [{"response_format": dict}, {"tools": [{"type": "function", "function": {"name": "listen"}}]}])
def test_what_a_request_cannot_have_is_refused(change: dict[str, Any]) -> None:
    """Before it is made, also where a middleware catches every error."""

    def ask(request: Any) -> Any:
        return (yield request.override(**change))

    retry = ModelRetryMiddleware(max_retries=5, initial_delay=60)
    model = model_of("Never.", middleware=[retry, Around(ask)])
    with pytest.raises(ConfigurationError):
        model.invoke("Hi")
    assert model.requests == []


def test_tools_of_a_middleware_join_the_models(tmp_path: Any) -> None:
    """They run beside its own, and a copy of the model has them once; a copy with other tools has them beside those."""

    def listen() -> str:
        """Listen."""
        return "heard"

    (tmp_path / "one.txt").write_text("needle")
    search = FilesystemFileSearchMiddleware(root_path=str(tmp_path), use_ripgrep=False)
    reply = AIMessage("", tool_calls=[{"name": "grep_search", "args": {"pattern": "needle"}, "id": "1"}])
    model = model_of(reply, "Fine.", middleware=[search])
    _, result, _ = new_messages(model.invoke("Hi"))
    assert "one.txt" in result.text
    assert [tool["function"]["name"] for tool in model.requests[0].tools] == ["look", "glob_search", "grep_search"]
    other = model_of("Fine.", middleware=[search]).with_tools([listen])
    other.invoke("Hi")
    assert [tool["function"]["name"] for tool in other.requests[-1].tools] == ["listen", "glob_search", "grep_search"]


# ---------------------------------------------------------------------------------------------- approvals


@every_way
def test_a_call_waits_before_any_middleware_sees_it(way: Way) -> None:
    """What a human has not approved does not come to middleware."""
    seen: list[Any] = []

    def note(request: Any) -> Any:
        seen.append(request)
        return (yield request)

    run = way(model_of(call(), middleware=[Around(tool=note)], requires_approval=["look"]))[0]
    assert ([one.name for one in pending_calls(run)], seen) == (["look"], [])


@pytest.mark.parametrize("rule", [True, lambda record: record.args["at"] == "Oslo"], ids=["approved before", "not asked before"])
@every_way
def test_a_change_comes_under_the_rule_again(way: Way, rule: Any) -> None:
    """A call whose arguments are changed after its approval, or so that it needs one, pends with them, and runs as it is approved."""
    ran: list[str] = []

    def look(at: str) -> str:
        """Look."""
        ran.append(at)
        return "seen"

    fields = {"tools": [look], "requires_approval": rule, "approve": lambda pending: pending.approve()}
    model = model_of(call(), "Fine.", middleware=[Around(), Around(tool=other_place)], **fields)
    run, messages = way(model)
    assert (stop_reason(run), ran, messages[1].status) == ("calls_pending", [], "error")
    (pending,) = pending_calls(run)
    assert (pending.args, pending.changed) == ({"at": "Oslo"}, True)
    done = model.resume([HumanMessage("Hi"), *messages], [pending.approve()])
    assert (stop_reason(done), ran) == ("complete", ["Oslo"])
    assert new_messages(done)[0].response_metadata["autotools"]["edited_arguments"] == {"at": "Oslo"}


def test_an_approved_call_runs_inside_of_the_middleware() -> None:
    """Unchanged, after its run was resumed."""
    model = model_of(call(), "Fine.", middleware=[Around()], requires_approval=True)
    history: list[Any] = [HumanMessage("Hi")]
    history += new_messages(model.invoke(history))
    run = model.resume(history, [one.approve() for one in pending_calls(history)])
    assert [one.text for one in new_messages(run)] == ["seen Rome", "Fine."]


def deeper(request: Any) -> Any:
    """Change a call's arguments in place, below their first level."""
    request.tool_call["args"]["at"]["city"] += "!"
    return (yield request)


@every_way
def test_a_change_in_place_is_a_change(way: Way) -> None:
    """Nested arguments belong to the middleware's request: the call waits with the changed ones, the history keeps the model's."""
    ran: list[Any] = []

    def look(at: dict[str, str]) -> str:
        """Look."""
        ran.append(at)
        return "seen"

    asked = AIMessage("", tool_calls=[{"name": "look", "args": {"at": {"city": "Rome"}}, "id": "1"}])
    fields = {"tools": [look], "requires_approval": True, "approve": lambda pending: pending.approve()}
    model = model_of(asked, "Fine.", middleware=[Around(tool=deeper)], **fields)
    run, messages = way(model)
    assert (ran, [one.args for one in pending_calls(run)]) == ([], [{"at": {"city": "Rome!"}}])
    assert messages[0].tool_calls[0]["args"] == {"at": {"city": "Rome"}}
    model.resume([HumanMessage("Hi"), *messages], [one.approve() for one in pending_calls(run)])
    assert ran == [{"city": "Rome!"}]


def test_other_middleware_than_before_changes_a_call_again() -> None:
    """What it makes is not what was approved: the call waits again; without any, what was approved runs."""
    ran: list[str] = []

    def look(at: str) -> str:
        """Look."""
        ran.append(at)
        return "seen"

    def changing(text: str) -> Any:
        def change(request: Any) -> Any:
            return (yield request.override(tool_call={**request.tool_call, "args": {"at": text}}))

        return [Around(tool=change)]

    def model(middleware: Any) -> ScriptedChatModel:
        return model_of(call(), "Fine.", middleware=middleware, tools=[look], requires_approval=True)

    history: list[Any] = [HumanMessage("Hi")]
    history += new_messages(model(()).invoke(history))
    for middleware, expected in ((changing("Oslo"), "Oslo"), (changing("Bern"), "Bern"), (changing("Oslo"), "Oslo")):
        run = model(middleware).resume(history, [one.approve() for one in pending_calls(history)])
        history += new_messages(run)
        assert ([one.args for one in pending_calls(run)], ran) == ([{"at": expected}], [])
    run = model_of("Fine.", middleware=(), tools=[look], requires_approval=True).resume(
        history, [one.approve() for one in pending_calls(history)]
    )
    assert (ran, stop_reason(run)) == (["Oslo"], "complete")


def test_a_second_call_with_other_arguments_is_answered() -> None:
    """A call that has run cannot wait: the middleware gets an error for what it changes then."""
    ran: list[str] = []
    answers: list[str] = []

    def look(at: str) -> str:
        """Look."""
        ran.append(at)
        return "seen"

    def twice(request: Any) -> Any:
        first = yield request
        answers.append((yield request.override(tool_call={**request.tool_call, "args": {"at": "Oslo"}})).text)
        return first

    fields = {"tools": [look], "requires_approval": True, "approve": lambda pending: pending.approve()}
    run = model_of(call(), "Fine.", middleware=[Around(tool=twice)], **fields).invoke("Hi")
    assert (stop_reason(run), ran, new_messages(run)[1].text) == ("complete", ["Rome"], "seen")
    assert "needs an approval" in answers[0]


@every_way
def test_calls_behind_a_changed_one_wait_for_it(way: Way) -> None:
    """Where calls run one after another, none runs before one that waits again."""
    ran: list[str] = []

    def look(at: str) -> str:
        """Look."""
        ran.append(at)
        return "seen"

    def first(request: Any) -> Any:
        asked = request.tool_call
        return (yield request.override(tool_call={**asked, "args": {"at": "Oslo"}}) if asked["args"]["at"] == "Rome" else request)

    asked = AIMessage("", tool_calls=[*call("Rome").tool_calls, *call("Bern").tool_calls])
    model = model_of(asked, "Fine.", middleware=[Around(tool=first)], tools=[look], requires_approval=True, parallel=False)
    history: list[Any] = [HumanMessage("Hi"), *way(model)[1]]
    for expected in ([("Bern", False), ("Oslo", True)], []):
        run = model.resume(history, [one.approve() for one in pending_calls(history)])
        history += new_messages(run)
        assert [(one.args["at"], one.changed) for one in pending_calls(run)] == expected
    assert ran == ["Oslo", "Bern"]
