"""A subclass overrides one of LangChain's own methods: what it gives is heard on every way, whoever listens."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from langchain_autotools import ChatOpenAI, ToolsAndMessagesMixin, new_messages, run_usage, stop_reason
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.ways import LISTENERS
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

Model = type[Any]
WAYS = ("invoke", "stream", "ainvoke", "astream")


def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


def _parts_of(way: str, model: Any, listeners: str = "nobody") -> list[Any]:
    """What a way of calling gives: chunks, or the message."""
    config = {"callbacks": LISTENERS[listeners]()}

    async def waited() -> list[Any]:
        return [await model.ainvoke("hi", config)] if way == "ainvoke" else [chunk async for chunk in model.astream("hi", config)]

    if way.startswith("a"):
        return asyncio.run(waited())
    return [model.invoke("hi", config)] if way == "invoke" else list(model.stream("hi", config))


def _run_of(way: str, model: Any) -> Any:
    """The answer as one message."""
    return reduce(add, _parts_of(way, model))


def _used(tokens: int) -> Any:
    """The usage of a reply of so many tokens."""
    return {"input_tokens": 1, "output_tokens": tokens, "total_tokens": 1 + tokens}


def _said(way: str, model: Any, listeners: str = "nobody") -> tuple[str, list[str]]:
    """The text of an answer, and the kinds of its new messages."""
    parts = _parts_of(way, model, listeners)
    kinds = [message.type for part in parts for message in new_messages(part)]
    return reduce(add, parts).text, kinds


def _louder(chunk: ChatGenerationChunk) -> ChatGenerationChunk:
    message = chunk.message
    return ChatGenerationChunk(message=message.model_copy(update={"content": message.text.upper()})) if message.content else chunk


class Filters(ChatOpenAI):
    """Changes what the inherited stream gives."""

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        return map(_louder, super()._stream(*args, **kwargs))


class FiltersBoth(Filters):
    """Changes the asynchronous stream by itself, once more below an override."""

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        async for chunk in super()._astream(*args, **kwargs):
            yield _louder(chunk)


class _Plain:
    """No model: what comes before a model's class."""

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        return map(_louder, super()._stream(*args, **kwargs))  # type: ignore[misc]


class MixesIn(_Plain, ChatOpenAI):
    """Gets its override from a class that is no model."""


@pytest.mark.parametrize("listeners", ["nobody", "a tap", "an event tap"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tools", [[], [shout]], ids=["no tools", "tools"])
def test_a_stream_that_is_changed(way: str, tools: list[Any], listeners: str) -> None:
    """Every turn passes the override once, tools run, and every way and listener gets the same."""
    script = [Turn("look", calls=[Call("shout", {"text": "x"})]), Turn("done")] if tools else [Turn("done")]
    for cls in (Filters, FiltersBoth, MixesIn):
        with OpenAIServer(script) as server:
            said = _said(way, cls(model="any", base_url=server.url, api_key="key", tools=tools), listeners)
            assert len(server.exchanges) == len(script)
        assert said == (("LOOK\nDONE", ["ai", "tool", "ai"]) if tools else ("DONE", ["ai"]))


def _fragment(**fields: Any) -> AIMessageChunk:
    return AIMessageChunk(content="", tool_call_chunks=[{"name": None, "args": "", "id": None, "index": 0, **fields}])  # type: ignore[list-item]


class Streams(ToolsAndMessagesMixin):
    """Its own `_stream` and nothing else, as a model that was written for LangChain has it."""

    cut: bool = False

    @property
    def _llm_type(self) -> str:
        return "streams"

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        if kwargs.get("tools") and isinstance(messages[-1], HumanMessage):
            fragments = [_fragment(name="shout", id="a"), _fragment(args='{"text":'), _fragment(args=' "x"}')]
            chunks = [AIMessageChunk(content="look"), *(fragments[:2] if self.cut else fragments)]
        else:
            chunks = [AIMessageChunk(content="done "), AIMessageChunk(content=messages[-1].text)]
        yield from (ChatGenerationChunk(message=chunk) for chunk in chunks)


class Generates(ToolsAndMessagesMixin):
    """Its own `_generate` and nothing else."""

    @property
    def _llm_type(self) -> str:
        return "generates"

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        (last,) = messages[-1:]
        calls = [{"name": "shout", "args": {"text": "x"}, "id": "a"}]
        asks = kwargs.get("tools") and isinstance(last, HumanMessage)
        message = AIMessage("look", tool_calls=calls) if asks else AIMessage(f"done {last.text}")
        return ChatResult(generations=[ChatGeneration(message=message)])


@pytest.mark.parametrize("listeners", ["nobody", "a tap"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", [Streams, Generates])
def test_a_method_that_gives_everything_itself(cls: Model, way: str, listeners: str) -> None:
    """A model written for LangChain's own base class runs its tools; the method that is missing is made of the one that is there."""
    assert _said(way, cls(), listeners) == ("done hi", ["ai"])
    assert _said(way, cls(tools=[shout]), listeners) == ("look\ndone X", ["ai", "tool", "ai"])


@pytest.mark.parametrize("listeners", ["nobody", "a tap"])
@pytest.mark.parametrize("way", WAYS)
def test_a_call_that_an_override_cuts_short_does_not_run(way: str, listeners: str) -> None:
    """What an override streams is decided as a model's own fragments are: half a call is answered with an error."""
    ran: list[str] = []

    def shout(text: str = "") -> str:
        """Say it louder."""
        ran.append(text)
        return text

    text, kinds = _said(way, Streams(tools=[shout], cut=True), listeners)
    assert kinds == ["ai", "tool", "ai"] and "error" in text and not ran


def test_a_reply_that_is_not_streamed() -> None:
    """`_generate` alone changes what `invoke` and `ainvoke` give; `stream` goes on streaming, as in LangChain."""

    class Counts(ScriptedChatModel):
        def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
            result = super()._generate(*args, **kwargs)
            result.generations[0].message.content += "!"  # type: ignore[operator]
            return result

    assert [_said(way, Counts(replies=["so be it"]))[0] for way in WAYS] == ["so be it!", "so be it", "so be it!", "so be it"]
    assert len(list(Counts(replies=["so be it"]).stream("hi"))) > 2


def test_a_method_replaced_on_an_instance_is_heard() -> None:
    """What it gives is what the caller gets, whether or not anybody watches."""
    model = ScriptedChatModel(replies=["done"])
    replaced: Callable[..., Any] = lambda *args, **kwargs: iter([ChatGenerationChunk(message=AIMessageChunk(content="else"))])  # noqa: E731
    object.__setattr__(model, "_stream", replaced)
    assert next(model.stream("hi")).text == "else"
    assert next(model.stream("hi", {"callbacks": [BaseCallbackHandler()]})).text == "else"


class Silent(ScriptedChatModel):
    """Streams nothing."""

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        return iter(())


class RawSilent(ToolsAndMessagesMixin, BaseChatModel):
    """The same below core's method."""

    @property
    def _llm_type(self) -> str:
        return "silent"

    def raw_stream(self, messages: Any, stop: Any = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """Nothing."""
        return iter(())


def reply_of(model: Any, way: str) -> Any:
    """The reply in one way of calling."""
    if way.startswith("a"):
        parts = asyncio.run(_all(model)) if way == "astream" else [asyncio.run(model.ainvoke("hi"))]
    else:
        parts = list(model.stream("hi")) if way == "stream" else [model.invoke("hi")]
    return reduce(add, parts)


@pytest.mark.parametrize("way", WAYS)
def test_a_raw_stream_that_gives_nothing_is_incomplete(way: str) -> None:
    """It is no answer, on any way, and the run says so."""
    whole = reply_of(RawSilent(tools=[shout]), way)
    assert (whole.text, whole.response_metadata["autotools"]["stop_reason"]) == ("", "incomplete")


@pytest.mark.parametrize("tools", [[], [shout]], ids=["one turn", "a run"])
@pytest.mark.parametrize("way", WAYS)
def test_a_ported_stream_that_gives_nothing_is_langchains_error(way: str, tools: list[Any]) -> None:
    """In core's words, on any way."""
    with pytest.raises(ValueError, match="No generation chunks were returned"):
        reply_of(Silent(tools=tools, replies=["Never."]), way)


async def _all(model: Any) -> list[Any]:
    return [chunk async for chunk in model.astream("hi")]


class TellsUsageInParts(ToolsAndMessagesMixin, BaseChatModel):
    """A stream of LangChain's: the input tokens in its first chunk, the output tokens in its last."""

    @property
    def _llm_type(self) -> str:
        return "parts"

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        put: Any = {"input_tokens": 100, "output_tokens": 0, "total_tokens": 100, "input_token_details": {"cache_read": 80}}
        out: Any = {"input_tokens": 0, "output_tokens": 5, "total_tokens": 5, "output_token_details": {"reasoning": 2}}
        yield ChatGenerationChunk(message=AIMessageChunk(content="", usage_metadata=put))
        if kwargs.get("tools") and messages[-1].type != "tool":
            piece = tool_call_chunk(name="shout", args='{"text":"a"}', id="call", index=0)
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[piece]))
        yield ChatGenerationChunk(message=AIMessageChunk(content="Yes.", usage_metadata=out))


class TellsItAsynchronously(TellsUsageInParts):
    """The same with an asynchronous stream of its own."""

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in TellsUsageInParts._stream(self, *args, **kwargs):
            yield chunk


WHOLE = {
    "input_tokens": 100,
    "output_tokens": 5,
    "total_tokens": 105,
    "input_token_details": {"cache_read": 80},
    "output_token_details": {"reasoning": 2},
}


@pytest.mark.parametrize("model", [TellsUsageInParts, TellsItAsynchronously])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tools", [[], [shout]], ids=["no tools", "tools"])
def test_usage_in_parts_is_added_up(way: str, tools: list[Any], model: Model) -> None:
    """In every way of calling, with tools and without, as LangChain adds it up."""
    run = _run_of(way, model(tools=tools))
    assert run.usage_metadata == WHOLE
    assert (run_usage(run) or {}).get("total_tokens") == (210 if tools else 105)


def test_a_token_budget_counts_all_parts() -> None:
    """The input tokens too."""
    run = TellsUsageInParts(tools=[shout], token_budget=100, on_limit="return").invoke("hi")
    assert (stop_reason(run), (run_usage(run) or {})["total_tokens"]) == ("token_budget", 105)


def test_usage_of_raw_stream_counts_as_it_came_last() -> None:
    """Servers repeat it, and count upwards."""
    pieces = [AIMessageChunk("a", usage_metadata=_used(3)), AIMessageChunk("b", usage_metadata=_used(7))]
    assert ScriptedChatModel(replies=[pieces]).invoke("hi").usage_metadata == _used(7)
