"""The mixin before langchain-openai's and langchain-anthropic's whole classes, over HTTP: what is sent is what these classes send."""

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import langchain_anthropic
import langchain_openai
import pytest
from langchain_core.messages import HumanMessage
from pydantic import BaseModel

from langchain_autotools import Handler, ToolsAndMessagesMixin, new_messages, pending_calls, run_usage, stop_reason, with_tools
from tests.support.anthropic_server import AnthropicServer
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

pytestmark = pytest.mark.compat

WAYS = ("invoke", "stream", "ainvoke", "astream")
LOOK = Turn("look", calls=[Call("shout", {"text": "x"}), Call("shout", {"text": "y"})])


class OpenAI(ToolsAndMessagesMixin, langchain_openai.ChatOpenAI):
    """langchain-openai's."""


class Anthropic(ToolsAndMessagesMixin, langchain_anthropic.ChatAnthropic):
    """langchain-anthropic's."""


def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


def _openai(url: str, cls: Any = OpenAI, **fields: Any) -> Any:
    return cls(model="any", base_url=url, api_key="key", max_retries=0, stream_usage=True, **fields)


def _anthropic(url: str, cls: Any = Anthropic, **fields: Any) -> Any:
    return cls(model="claude-any", base_url=url, api_key="key", max_retries=0, max_tokens=100, **fields)


WIRES: Any = pytest.mark.parametrize(
    ("serve", "make", "plain"),
    [(OpenAIServer, _openai, langchain_openai.ChatOpenAI), (AnthropicServer, _anthropic, langchain_anthropic.ChatAnthropic)],
    ids=["openai", "anthropic"],
)


async def _run_of(model: Any, way: str, question: Any = "hi", **kwargs: Any) -> Any:
    if way == "ainvoke":
        return await model.ainvoke(question, **kwargs)
    if way == "astream":
        return reduce(add, [chunk async for chunk in model.astream(question, **kwargs)])
    return model.invoke(question, **kwargs) if way == "invoke" else reduce(add, model.stream(question, **kwargs))


@WIRES
@pytest.mark.parametrize("way", WAYS)
async def test_tools_run_and_the_server_takes_the_history(serve: Any, make: Callable[..., Any], plain: Any, way: str) -> None:
    """In every way; what was said before begins each request that follows, and a new run."""
    with serve([LOOK, Turn("done"), Turn("again")]) as server:
        model = make(server.url, tools=[shout])
        run = await _run_of(model, way)
        assert (run.text, stop_reason(run)) == ("look\ndone", "complete")
        assert [message.type for message in new_messages(run)] == ["ai", "tool", "tool", "ai"]
        assert [message.text for message in new_messages(run)[1:3]] == ["X", "Y"]
        assert (run_usage(run) or {})["total_tokens"] > (run.usage_metadata or {})["total_tokens"]
        await _run_of(model, way, [HumanMessage("hi"), *new_messages(run), HumanMessage("more")])
        assert server.rejections == []
        first, second, third = (request["messages"] for request in server.requests)
        assert second[: len(first)] == first and third[: len(second)] == second
        assert len({str(request["tools"]) for request in server.requests}) == 1


@WIRES
@pytest.mark.parametrize("way", WAYS)
async def test_without_tools_the_requests_are_the_classes_own(serve: Any, make: Callable[..., Any], plain: Any, way: str) -> None:
    """Byte for byte, also with declared tools and a choice; so is the reply, but for ids."""
    bodies, replies = [], []
    for cls in (None, plain):
        with serve([Turn("done"), LOOK]) as server:
            model = make(server.url, **({} if cls is None else {"cls": cls}))
            replies.append([await _run_of(one, way) for one in (model, model.bind_tools([shout], tool_choice="any"))])
            bodies.append([exchange.body for exchange in server.exchanges])
    assert bodies[0] == bodies[1]
    (text, called), (wanted, other) = replies
    assert text.model_dump(exclude={"id"}) == wanted.model_dump(exclude={"id"})
    assert (called.text, called.tool_calls, called.usage_metadata) == (other.text, other.tool_calls, other.usage_metadata)


@WIRES
@pytest.mark.parametrize("way", WAYS)
async def test_a_cut_reply_runs_nothing(serve: Any, make: Callable[..., Any], plain: Any, way: str) -> None:
    """Nor does it count as complete."""
    ran: list[str] = []

    def shout(text: str) -> str:
        """Say it louder."""
        ran.append(text)
        return text

    with serve([Turn("look", calls=[Call("shout", {"text": "x"})], finish="length"), Turn("done")]) as server:
        run = await _run_of(make(server.url, tools=[shout]), way)
        assert not ran and run.text == "look\ndone" and server.rejections == []
    with serve([Turn("lo", finish="length")]) as server:
        assert stop_reason(await _run_of(make(server.url, tools=[shout]), way)) == "length"


@WIRES
def test_approvals_and_resume(serve: Any, make: Callable[..., Any], plain: Any) -> None:
    """One call is approved and one rejected; the model reads both."""
    with serve([LOOK, Turn("done")]) as server:
        model = make(server.url, tools=[shout], requires_approval=True)
        run = model.invoke("hi")
        one, other = pending_calls(run)
        end = model.resume([HumanMessage("hi"), *new_messages(run)], [one.approve(), other.reject("no")])
        assert (end.text, new_messages(end)[0].text) == ("done", "X") and "no" in new_messages(end)[1].text
        assert server.rejections == []


@WIRES
def test_choices(serve: Any, make: Callable[..., Any], plain: Any) -> None:
    """A forced one holds for the first request; at the limit none is asked for, and none runs."""
    with serve([LOOK, LOOK, LOOK]) as server:
        run = make(server.url, tools=[shout]).invoke("hi", tool_choice="any", max_turns=1)
        assert stop_reason(run) == "max_turns" and server.rejections == []
        first, last = server.requests
        assert first["tool_choice"] in ("required", {"type": "any"})
        assert last.get("tool_choice") in ("none", None)
        assert sum(message.type == "tool" and "error" not in message.text for message in new_messages(run)) == 2


@WIRES
def test_structured_output(serve: Any, make: Callable[..., Any], plain: Any) -> None:
    """Beside constructor tools."""

    class Weather(BaseModel):
        """The weather."""

        text: str

    with serve([LOOK, Turn(calls=[Call("Weather", {"text": "fine"})])]) as server:
        model = make(server.url, tools=[shout]).with_structured_output(Weather)
        assert model.invoke("hi") == Weather(text="fine") and server.rejections == []


@WIRES
def test_with_tools(serve: Any, make: Callable[..., Any], plain: Any) -> None:
    """The client is the given model's, and its key stays hidden."""
    with serve([LOOK, Turn("done")]) as server:
        given = make(server.url, cls=plain)
        held = repr(given)
        model = with_tools(given, [shout])
        assert model.invoke("hi").text == "look\ndone" and isinstance(model, plain)
        assert "'key'" not in repr(model)
        assert type(given) is plain and repr(given) == held


@pytest.mark.parametrize("way", WAYS)
async def test_a_call_of_a_toolset_is_not_the_tools_of_its_name(way: str) -> None:
    """A handler answers it, and the server gets the toolset back with the call and with its result."""
    asked = [Call("shout", {"text": "x"}, "toolu_1", {"toolset_name": "computer"}), Call("shout", {"text": "y"}, "toolu_2")]
    handler = Handler(lambda arguments: f"a picture of {arguments['text']}", requires_approval=False)
    with AnthropicServer([Turn("look", asked), Turn("done")]) as server:
        model = _anthropic(server.url, tools=[shout, {"type": "computer_toolset_20260801"}], handlers={("computer", "shout"): handler})
        run = await _run_of(model, way)
        assert (run.text, server.rejections) == ("look\ndone", [])
        assert {one.tool_call_id: one.text for one in new_messages(run)[1:3]} == {"toolu_1": "a picture of x", "toolu_2": "Y"}  # type: ignore[attr-defined]
        _, calls, results = (message["content"] for message in server.messages[1])
        known = {block.get("id") or block["tool_use_id"]: block.get("toolset_name") for block in (*calls[1:], *results)}
        assert known == {"toolu_1": "computer", "toolu_2": None}
