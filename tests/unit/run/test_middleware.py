"""LangChain's middleware around turns: what it gets, what it may do, and what holds all the same."""

import asyncio
import threading
import time
from functools import partial
from typing import Any

import pytest

pytest.importorskip("langchain.agents.middleware", reason="needs LangChain")
from langchain.agents.middleware import (
    AgentMiddleware,
    ContextEditingMiddleware,
    LLMToolSelectorMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
)
from langchain.agents.middleware.context_editing import ClearToolUsesEdit
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from langchain_autotools import ConfigurationError, new_messages, stop_reason
from langchain_autotools.testing import ScriptedChatModel
from tests.support.at_once import at_once
from tests.support.endless_chat import Way, ainvoke, astream, every_way, invoke, stream
from tests.support.middleware import Around, call, look, model_of

streams = pytest.mark.parametrize("way", [stream, astream])


@every_way
def test_each_turn_and_each_call_passes_the_middleware_outermost_first(way: Way) -> None:
    """In the order in which they are given, in every way to run a model."""
    log: list[str] = []

    def noting(name: str) -> Around:
        def model(request: Any) -> Any:
            log.append(f"{name}: turn")
            response = yield request
            log.append(f"{name}: {response.result[0].text}")
            return response

        def tool(request: Any) -> Any:
            log.append(f"{name}: {request.tool.name} {request.tool_call['args']['at']}")
            message = yield request
            log.append(f"{name}: {message.text}")
            return message

        return Around(model, tool)

    model = model_of(call(text="Let me look."), "Fine.", middleware=[noting("outer"), noting("inner")])
    assert [one.text for one in way(model)[1]] == ["Let me look.", "seen Rome", "Fine."]
    turns = [["outer: turn", "inner: turn", f"inner: {text}", f"outer: {text}"] for text in ("Let me look.", "Fine.")]
    assert log == [*turns[0], "outer: look Rome", "inner: look Rome", "inner: seen Rome", "outer: seen Rome", *turns[1]]


@every_way
def test_the_request_is_the_turns_and_a_change_is_sent(way: Way) -> None:
    """Messages without the system message, tools as objects, the state, and a model that makes single turns alone."""
    seen: list[Any] = []

    def change(request: Any) -> Any:
        seen.append(request)
        return (yield request.override(system_message=SystemMessage("Be brief."), tool_choice="any", model_settings={"seed": 7}))

    model = model_of("Fine.", middleware=[Around(change)])
    way(model)
    (request,) = seen
    assert ([one.type for one in request.messages], request.system_message, request.tool_choice) == (["human"], None, None)
    assert ([one.name for one in request.tools], request.state["messages"]) == (["look"], request.messages)
    assert (list(request.model.tools), request.model.middleware, type(request.model)) == ([], (), ScriptedChatModel)
    (sent,) = model.requests
    assert ([one.type for one in sent.messages], sent.tool_choice, dict(sent.kwargs)) == (["system", "human"], "any", {"seed": 7})


@streams
def test_text_leaves_before_the_middleware_returns(way: Way) -> None:
    """A wrapper that waits for the whole reply does not hold back its text, nor change the order."""
    log: list[str] = []

    def wait(request: Any) -> Any:
        response = yield request
        log.append("whole")
        return response

    def reply(messages: Any, **keywords: Any) -> Any:
        for text in ("Fi", "ne."):
            log.append(text)
            yield AIMessageChunk(text)

    def shown(chunk: Any) -> None:
        if chunk.text:
            log.append(f"shown {chunk.text}")

    model = model_of(middleware=[Around(wait)], replies=reply)

    async def read() -> None:
        async for chunk in model.astream("Hi"):
            shown(chunk)

    if way is astream:
        asyncio.run(read())
    else:
        for chunk in model.stream("Hi"):
            shown(chunk)
    assert log == ["Fi", "shown Fi", "ne.", "shown ne.", "whole"]


@every_way
def test_a_turn_that_failed_before_its_text_is_made_again(way: Way) -> None:
    """What it had begun is forgotten."""
    retry = ModelRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
    model = model_of(ConnectionError("lost"), call(), "Fine.", middleware=[retry])
    run, messages = way(model)
    assert ([one.text for one in messages], len(model.requests)) == (["", "seen Rome", "Fine."], 3)
    assert stop_reason(run) == "complete"


def broken_off(messages: Any, **keywords: Any) -> Any:
    """A reply that fails after its first text."""
    yield AIMessageChunk("Let me")
    raise ConnectionError("lost")


@streams
def test_after_text_the_first_error_is_raised(way: Way) -> None:
    """Neither another attempt nor a message in its place can unsay what was shown: the error is that of the reply, in every case."""
    retry = ModelRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
    model = model_of(middleware=[retry], replies=broken_off)
    with pytest.raises(ConnectionError, match="lost"):
        way(model)
    assert len(model.requests) == 1


def replace_answer(request: Any) -> Any:
    """Answer otherwise than the model."""
    yield request
    return AIMessage("Changed.")


def ask_again(request: Any) -> Any:
    """Ask for the turn twice."""
    yield request
    return (yield request)


@streams
@pytest.mark.parametrize(("steps", "error"), [(replace_answer, "Around answers otherwise"), (ask_again, "Around asks for the turn again")])
def test_what_has_left_is_not_replaced(way: Way, steps: Any, error: str) -> None:
    """The error names the middleware and what to do."""
    with pytest.raises(ConfigurationError, match=f"{error}.*disable_streaming=True"):
        way(model_of("One.", "Two.", middleware=[Around(), Around(steps)]))


@pytest.mark.parametrize("way", [invoke, ainvoke, "held", "aheld"])
@pytest.mark.parametrize(("steps", "text"), [(replace_answer, "Changed."), (ask_again, "Two.")])
def test_a_turn_that_is_held_back_may_be_replaced(way: Any, steps: Any, text: str) -> None:
    """Where nothing leaves before the whole reply, in `invoke` and with `disable_streaming=True`, the answer is the middleware's."""
    held = {"disable_streaming": True} if isinstance(way, str) else {}
    run = {"held": stream, "aheld": astream}.get(way, way)(model_of("One.", "Two.", middleware=[Around(steps)], **held))
    assert ([one.text for one in run[1]], stop_reason(run[0])) == ([text], "complete")


@every_way
def test_calls_of_a_middlewares_own_answer_run(way: Way) -> None:
    """They come under the same rules as a model's."""

    def answer(request: Any) -> Any:
        if len(request.messages) == 1:
            return call("Oslo")
        return (yield request)

    model = model_of("Fine.", middleware=[Around(answer)])
    assert [one.text for one in way(model)[1]] == ["", "seen Oslo", "Fine."]


class Foreign(BaseChatModel):
    """A model of another package, which declares tools in a way of its own."""

    declared: list[Any] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "foreign"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Declare tools by their names."""
        return self.bind(names=[convert_to_openai_tool(tool)["function"]["name"] for tool in tools])

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self.declared.append(kwargs.get("names"))
        answer = AIMessage("Fine.") if messages[-1].type == "tool" else call("Oslo")
        return ChatResult(generations=[ChatGeneration(message=answer)])


@every_way
def test_another_model_makes_the_turn(way: Way) -> None:
    """LangChain's own fallback, with a model of another package: the run's tools go on."""
    other = Foreign()
    model = model_of(ConnectionError(), ConnectionError(), middleware=[ModelFallbackMiddleware(other)])
    assert [one.text for one in way(model)[1]] == ["", "seen Oslo", "Fine."]
    assert other.declared == [["look"], ["look"]]


def test_tools_that_a_middleware_leaves_out_do_not_run() -> None:
    """The selected tools alone are declared; a call of another one is answered with an error."""

    def listen() -> str:
        """Listen."""
        return "heard"

    chooser = ScriptedChatModel(replies=lambda messages, **keywords: AIMessage("", tool_calls=[tool_selection()]))
    selector = LLMToolSelectorMiddleware(model=chooser, max_tools=1)
    model = model_of(call(name="listen"), "Fine.", middleware=[selector], tools=[look, listen])
    _, result, _ = new_messages(model.invoke("Hi"))
    assert "not allowed here" in result.text
    assert [[tool["function"]["name"] for tool in request.tools] for request in model.requests] == [["look"], ["look"]]


def tool_selection() -> Any:
    """The call by which a model selects tools."""
    return {"name": "ToolSelectionResponse", "args": {"tools": ["look"]}, "id": "s"}


def test_edited_context_is_sent_and_not_kept() -> None:
    """Old results are cleared in the request alone."""
    edit = ClearToolUsesEdit(trigger=0, keep=0)
    model = model_of(call(), "Fine.", middleware=[ContextEditingMiddleware(edits=[edit])])
    messages = new_messages(model.invoke("Hi"))
    assert (messages[1].text, model.requests[1].messages[-1].text) == ("seen Rome", "[cleared]")


def test_a_deadline_ends_a_middleware_that_waits() -> None:
    """A blocking function is not waited for."""
    at_once({way.__name__: partial(ends_a_middleware_that_waits, way) for way in (invoke, stream)})


def ends_a_middleware_that_waits(way: Way) -> None:
    """A run whose middleware waits."""
    released = threading.Event()

    def block(request: Any) -> Any:
        released.wait(30)
        return (yield request)

    model = model_of("Never.", middleware=[Around(block)], deadline=0.05)
    begun = time.monotonic()
    try:
        assert stop_reason(way(model)[0]) == "deadline"
    finally:
        released.set()
    assert (time.monotonic() - begun < 15, model.requests) == (True, [])


@pytest.mark.parametrize("way", [ainvoke, astream])
def test_a_deadline_ends_an_asynchronous_middleware_that_waits(way: Way) -> None:
    """Its task is cancelled."""
    cancelled: list[bool] = []

    class Blocking(AgentMiddleware[Any, Any]):
        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.append(True)

    assert stop_reason(way(model_of("Never.", middleware=[Blocking()], deadline=0.05))[0]) == "deadline"
    assert cancelled == [True]


def test_nothing_is_left_when_a_stream_is_closed() -> None:
    """The function that waits for its reply is ended, and its request closed."""
    ended: list[str] = []

    def reply(messages: Any, **keywords: Any) -> Any:
        try:
            while True:
                yield AIMessageChunk("more ")
        finally:
            ended.append("request")

    class Waiting(AgentMiddleware[Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            try:
                return handler(request)
            except Exception:
                ended.append("swallowed")
                raise
            finally:
                ended.append("middleware")

    chunks = model_of(middleware=[Waiting()], replies=reply).stream("Hi")
    assert next(one for one in chunks if one.text).text == "more "
    chunks.close()  # type: ignore[attr-defined]
    assert sorted(ended) == ["middleware", "request"]
