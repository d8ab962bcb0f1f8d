"""What no model could ever call is refused where it is given; what is wrapped around a tool leaves it the tool that it is."""

import functools
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, tool

from langchain_autotools import ChatOpenAI, ConfigurationError, ToolExecutor, ToolsAndMessagesMixin
from langchain_autotools.testing import ScriptedChatModel


def every(*args: int) -> int:
    """Takes what has no name."""
    return sum(args)


def named(args: list[int]) -> int:
    """Takes a name that LangChain drops."""
    return sum(args)


def keywords(kwargs: dict[str, int]) -> int:
    """Takes another one."""
    return sum(kwargs.values())


def first(a: int, /, b: int) -> int:
    """Takes its first argument by position only."""
    return a + b


class Thing:
    """An object with methods."""

    def own(self, city: str) -> str:
        """A method."""
        return f"{city}: 21 °C"

    @classmethod
    def shared(cls, city: str) -> str:
        """A method of the class."""
        return f"{city}: 22 °C"

    @staticmethod
    def free(cls: str) -> str:
        """A function that is in a class, with a parameter of a usual name."""
        return cls


def label(cls: str) -> str:
    """A function with the same."""
    return cls


@functools.wraps(label)
def around(*args: Any, **kwargs: Any) -> Any:
    """A wrapper that says what it is around."""
    return label(*args, **kwargs)


UNCALLABLE: list[tuple[Any, str]] = [
    (every, r"\*args takes none"),
    (print, r"\*args takes none"),
    (first, "'a' cannot be given by name"),
    (len, "'obj' cannot be given by name"),
    (Thing.own, "a method without its object"),
    (tool(every), r"\*args takes none"),
    (tool(every).with_retry(), r"\*args takes none"),
]


@pytest.mark.parametrize(("given", "why"), UNCALLABLE, ids=[str(getattr(given, "__name__", given))[:20] for given, _ in UNCALLABLE])
def test_what_cannot_be_called_by_name_is_refused(given: Any, why: str) -> None:
    """By the executor, the constructor, and where a call or `bind_tools` declares it."""
    model: Any = ScriptedChatModel(replies=["hello"])
    ways: list[Callable[[], Any]] = [
        lambda: ToolExecutor([given]),
        lambda: ToolExecutor({"mine": given}),
        lambda: ChatOpenAI(model="any", api_key="key", tools=[given]),
        lambda: model.bind_tools([given]),
        lambda: model.invoke("x", tools=[given]),
    ]
    for way in ways:
        with pytest.raises(ConfigurationError, match=f"cannot be called as a tool: .*{why}"):
            way()


@pytest.mark.parametrize(
    ("given", "args"),
    [
        (Thing().own, {"city": "Rome"}), (Thing.shared, {"city": "Rome"}), (label, {"cls": "x"}), (around, {"cls": "x"}),
        (functools.partial(first, 1), {"b": 2}), ("abc".upper, {}), (named, {"args": [1]}), (keywords, {"kwargs": {"a": 1}}),
        (tool(named), {"args": [1]}), (tool(keywords).with_retry(), {"kwargs": {"a": 1}}),
        (StructuredTool.from_function(named, args_schema={"type": "object", "properties": {"args": {"type": "array"}}}), {"args": [1]}),
    ],
)  # fmt: skip
def test_what_can_be_called_is_taken(given: Any, args: dict[str, Any]) -> None:
    """Bound methods, wrappers that say what they wrap, partials, and names that a schema of the user's own allows."""
    executor = ToolExecutor([given])
    [name] = executor.tools
    [result] = executor.execute_all([{"name": name, "args": args, "id": "1"}])
    assert result.status == "success", result.content


# ---------------------------------------------------------------------------------------------- around a tool


attempts: list[str] = []


@tool
def flaky(city: str, call_id: Annotated[str, InjectedToolCallId]) -> str:
    """Current temperature of a city, at the second attempt."""
    attempts.append(call_id)
    if len(attempts) % 2:
        raise ConnectionError("try again")
    return f"{city}: 21 °C"


@tool
async def aflaky(city: str) -> str:
    """The same, for asynchronous callers only."""
    attempts.append(city)
    if len(attempts) % 2:
        raise ConnectionError("try again")
    return f"{city}: 21 °C"


async def test_a_tool_with_retry_is_declared_as_the_tool_inside() -> None:
    """Name, description, arguments and injected arguments are its own; it is tried again, synchronously and not, by both kinds of tools."""
    attempts.clear()
    retried: Any = [one.with_retry(wait_exponential_jitter=False) for one in (flaky, aflaky)]
    calls = [{"name": name, "args": {"city": "Rome"}, "id": name} for name in ("flaky", "aflaky")]
    for asynchronous in (False, True):
        model = ScriptedChatModel(tools=retried, replies=[AIMessage("", tool_calls=calls), "done"], parallel=False)
        result = await model.ainvoke("x") if asynchronous else model.invoke("x")
        assert [one.content for one in model.requests[1].messages if one.type == "tool"] == ["Rome: 21 °C"] * 2
        assert result.text == "done"
    plain = ScriptedChatModel(tools=[flaky, aflaky], replies=["x"])
    plain.invoke("x")
    bound = ScriptedChatModel(replies=["x"])
    bound.bind_tools(retried).invoke("x")
    assert model.requests[0].tools == plain.requests[0].tools == bound.requests[0].tools
    assert len(attempts) == 8


def test_a_tool_with_fallbacks_and_under_another_name() -> None:
    """Whatever is around it: the first tool is the one that is declared, and a mapping names it."""

    @tool
    def broken(city: str) -> str:
        """Fails."""
        raise ConnectionError("down")

    @tool
    def working(city: str) -> str:
        """Works."""
        return "21 °C"

    executor = ToolExecutor({"weather": broken.with_fallbacks([working]).with_config(tags=["x"])})
    [result] = executor.execute_all([{"name": "weather", "args": {"city": "Rome"}, "id": "1"}])
    assert (result.content, result.status, executor.tools["weather"].description) == ("21 °C", "success", "Fails.")


# ---------------------------------------------------------------------------------------------- what tools raise


def test_a_group_of_errors_tells_what_is_inside() -> None:
    """A dead MCP server ends in groups of groups; the model is told the errors themselves, each once."""

    def look_up() -> str:
        """Look something up."""
        refused = ConnectionError("All connection attempts failed")
        raise ExceptionGroup("unhandled errors in a TaskGroup", [ExceptionGroup("inner", [refused]), refused, ValueError("bad reply")])

    [result] = ToolExecutor([look_up]).execute_all([{"name": "look_up", "args": {}, "id": "1"}])
    assert result.content == '{"error": "ConnectionError: All connection attempts failed; ValueError: bad reply"}'


def test_a_tool_that_needs_a_graph_says_so() -> None:
    """`get_stream_writer` outside a graph raises a bare KeyError of LangGraph's; the model is told what it means."""
    from langgraph.config import get_stream_writer

    def report() -> str:
        """Reports progress."""
        get_stream_writer()("half done")
        return "done"

    [result] = ToolExecutor([report]).execute_all([{"name": "report", "args": {}, "id": "1"}])
    assert "the tool cannot run here: it asks for the graph around it" in str(result.content)
    assert "__pregel" not in str(result.content)


# ---------------------------------------------------------------------------------------------- a model of one's own


class Ported(ToolsAndMessagesMixin, BaseChatModel):
    """A model whose `raw_stream` yields what is given."""

    pieces: list[Any]

    @property
    def _llm_type(self) -> str:
        return "ported"

    def raw_stream(self, messages: Any, stop: Any = None, **kwargs: Any) -> Iterator[Any]:
        """Yield them."""
        yield from self.pieces


async def test_raw_stream_may_yield_texts_and_what_stream_methods_of_langchain_yield() -> None:
    """A ported `_stream` yields ChatGenerationChunks, whose info says how the reply ended; texts are chunks of text."""
    ended = ChatGenerationChunk(message=AIMessageChunk(content=""), generation_info={"finish_reason": "stop"})
    for pieces in (["It is ", "warm."], [ChatGenerationChunk(message=AIMessageChunk(content="It is ")), AIMessageChunk("warm."), ended]):
        model = Ported(pieces=pieces)
        assert model.invoke("x").text == "It is warm."
        assert [chunk.text async for chunk in model.astream("x") if chunk.text] == ["It is ", "warm."]
    assert model.invoke("x").response_metadata["finish_reason"] == "stop"
    whole = ChatResult(generations=[ChatGeneration(message=AIMessage(text)) for text in ("whole", "another")])
    assert type("Whole", (Ported,), {"raw_invoke": lambda *args, **kwargs: whole})(pieces=[]).invoke("x").text == "whole"
    with pytest.raises(ConfigurationError, match="raw_stream yields AIMessageChunks .* not int"):
        Ported(pieces=[1]).invoke("x")


# ---------------------------------------------------------------------------------------------- signatures that are odd


@functools.singledispatch
def doubled(value: int, times: int = 2) -> str:
    """Repeat a value; texts and numbers have implementations of their own."""
    return f"{value * times}"


def typed(city: str) -> str:
    """Its result has a type that only type checkers know."""
    return city


typed.__annotations__["return"] = "OnlyForTypeCheckers"


class Later(BaseTool):
    """A tool whose synchronous method is there only for its name."""

    name: str = "later"
    description: str = "Later."

    def _run(self, *args: Any, **kwargs: Any) -> str:
        raise NotImplementedError

    async def _arun(self, city: str, config: dict[str, int]) -> str:
        return f"{city} {config}"


@pytest.mark.parametrize(
    ("given", "args", "declared", "content"),
    [
        (doubled, {"value": 4, "times": 3}, ["value", "times"], "12"),
        (typed, {"city": "Rome"}, ["city"], "Rome"),
        (Later(), {"city": "Rome", "config": {"a": 1}}, ["city", "config"], "Rome {'a': 1}"),
    ],
)
def test_an_odd_signature_is_read_where_the_arguments_go(given: Any, args: dict[str, Any], declared: list[str], content: str) -> None:
    """Functions that dispatch by their first argument, types that cannot be resolved and are no argument's, a placeholder for `_run`."""
    executor = ToolExecutor([given])
    [(name, made)] = executor.tools.items()
    [bound] = ScriptedChatModel(replies=[]).bind_tools([given]).kwargs["tools"]  # type: ignore[attr-defined]
    assert (list(made.args), list(bound["function"]["parameters"]["properties"])) == (declared, declared)
    [result] = executor.execute_all([{"name": name, "args": args, "id": "1"}])
    assert (result.status, result.content) == ("success", content)
