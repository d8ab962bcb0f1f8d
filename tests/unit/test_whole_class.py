"""The mixin before a whole chat model class of somebody else's, and `with_tools` of an instance of one."""

import asyncio
import pickle
from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, ChatMessageChunk, HumanMessage, HumanMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from pydantic import BaseModel, SecretStr

from langchain_autotools import (
    Agent,
    ConfigurationError,
    ToolsAndMessagesMixin,
    events,
    new_messages,
    pending_calls,
    run_usage,
    stop_reason,
    with_tools,
)
from langchain_autotools.event_types import MessageDone
from langchain_autotools.mixin import ToolRunningModel
from langchain_autotools.testing import ScriptedChatModel
from tests.support.pairwise import by_turns
from tests.support.whole_classes import ChatHouse, ChatStreams, ChatStreamsBoth, call_of

WAYS = ("invoke", "stream", "ainvoke", "astream")


def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


class House(ToolsAndMessagesMixin, ChatHouse):
    """Without a stream."""


class Streams(ToolsAndMessagesMixin, ChatStreams):
    """With a stream."""


class StreamsBoth(ToolsAndMessagesMixin, ChatStreamsBoth):
    """With everything."""


class Changes(ToolsAndMessagesMixin, ChatStreams):
    """Changes what the class behind it does."""

    def _reply(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        reply = super()._reply(messages, kwargs)
        return reply.model_copy(update={"content": reply.text.replace("look", "look!")})

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """With a keyword more."""
        return super().bind_tools(tools, more=1, **kwargs)


JOINED = [House, Streams, StreamsBoth]


def _parts(model: Any, way: str, question: Any = "hi", **kwargs: Any) -> list[Any]:
    async def waited() -> list[Any]:
        if way == "ainvoke":
            return [await model.ainvoke(question, **kwargs)]
        return [chunk async for chunk in model.astream(question, **kwargs)]

    if way.startswith("a"):
        return asyncio.run(waited())
    return [model.invoke(question, **kwargs)] if way == "invoke" else list(model.stream(question, **kwargs))


def _kinds(parts: list[Any]) -> list[str]:
    return [message.type for part in parts for message in new_messages(part)]


# ---------------------------------------------------------------------------------------------- runs


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", [*JOINED, Changes])
def test_tools_run(cls: Any, way: str) -> None:
    """In every way, with what the partner's `bind_tools` made of the tools in each request, once per turn."""
    model = cls(tools=[shout])
    parts = _parts(model, way)
    whole = reduce(add, parts)
    text = "look!\ndone X" if cls is Changes else "look\ndone X"
    assert (whole.text, _kinds(parts), stop_reason(whole)) == (text, ["ai", "tool", "ai"], "complete")
    assert [kwargs["tools"] for _, kwargs in model.sent] == [[{"toolSpec": {"name": "shout"}}]] * 2
    assert (run_usage(whole) or {})["total_tokens"] == 3
    assert [message.type for message in model.sent[1][0]] == ["human", "ai", "tool"]


@pytest.mark.parametrize("cls", [Streams, StreamsBoth])
def test_text_leaves_as_the_partner_streams_it(cls: Any) -> None:
    """Letter by letter."""
    for way in ("stream", "astream"):
        assert [part.text for part in _parts(cls(tools=[shout]), way) if part.text][:4] == list("look")


def test_a_model_without_a_stream_has_none() -> None:
    """As core knows it: its stream is one message."""
    assert len([part for part in House(tools=[shout]).stream("hi") if part.text]) == 3  # two texts and what is between
    assert [type(part) for part in House().stream("hi")] == [AIMessage] == [type(part) for part in ChatHouse().stream("hi")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("reason", [{"finish_reason": "length"}, {"stop_reason": "max_tokens"}, {"done_reason": "length"}])
def test_a_call_of_a_reply_that_was_cut_does_not_run(reason: dict[str, Any], way: str) -> None:
    """In whatever words a partner says so, and though its arguments are whole."""
    ran: list[str] = []

    def shout(text: str) -> str:
        """Say it louder."""
        ran.append(text)
        return text

    cut = AIMessage("look", tool_calls=[call_of()], response_metadata=reason)
    (first, *_), last = _whole(Streams(tools=[shout], script=[cut, AIMessage("done")]), way)
    assert not ran and not first.tool_calls and first.invalid_tool_calls and last.text == "done"
    run = reduce(add, _parts(Streams(tools=[shout], script=[AIMessage("lo", response_metadata=reason)]), way))
    assert stop_reason(run) == "length"
    run = reduce(add, _parts(Streams(tools=[shout], script=[AIMessage("no", response_metadata={"stopReason": "content_filtered"})]), way))
    assert stop_reason(run) == "refused"


def _whole(model: Any, way: str) -> tuple[list[Any], Any]:
    messages = [message for part in _parts(model, way) for message in new_messages(part)]
    return messages, messages[-1]


@pytest.mark.parametrize("way", WAYS)
def test_a_call_that_cannot_be_read_is_answered_and_sent_as_a_valid_one(way: str) -> None:
    """Partners that send no invalid calls would send its result alone."""
    bad = {"name": "shout", "args": '{"text": "x', "id": "call_1", "error": None, "type": "invalid_tool_call"}
    model = Streams(tools=[shout], script=[AIMessage("", invalid_tool_calls=[bad]), AIMessage("done")])  # type: ignore[list-item]
    messages, _ = _whole(model, way)
    assert [message.type for message in messages] == ["ai", "tool", "ai"] and "error" in messages[1].text
    _, sent, answer = model.sent[1][0]
    assert sent.tool_calls == [{**call_of(), "args": {"invalid_arguments": '{"text": "x'}}] and answer.tool_call_id == "call_1"
    assert messages[0].invalid_tool_calls[0]["args"] == '{"text": "x'


def test_calls_wait_for_approval_and_run_once_approved() -> None:
    """And the run that goes on sends what the first one would have."""
    model = Streams(tools=[shout], requires_approval=True)
    run = model.invoke("hi")
    (call,) = pending_calls(run)
    assert stop_reason(run) == "calls_pending" and len(model.sent) == 1
    history = [HumanMessage("hi"), *new_messages(run)]
    assert model.resume(history, [call.approve()]).text == "done X"
    plain = Streams(tools=[shout])
    plain.invoke("hi")
    assert [[one.content for one in messages] for messages, _ in model.sent] == [
        [one.content for one in messages] for messages, _ in plain.sent
    ]


def test_events_agents_and_bound_tools() -> None:
    """A run is told of, an agent keeps its history, and what is bound is left to the caller."""
    kinds = {type(event).__name__ for event in events(Streams(tools=[shout]).stream("hi"))}
    assert {"RunStarted", "TextDelta", "CallReady", "CallResult", "RunEnded"} <= kinds
    agent = Agent(Streams(), tools=[shout])
    assert agent.run("hi").text == "look\ndone X"

    @tool
    def ask(text: str) -> str:
        """Ask the user."""
        return text

    model = Streams(tools=[shout], script=[AIMessage("", tool_calls=[call_of("ask")])])
    run = model.bind_tools([ask]).invoke("hi")
    assert [call["name"] for call in run.tool_calls] == ["ask"] and stop_reason(run) == "calls_pending"
    assert [one["toolSpec"]["name"] for one in model.sent[0][1]["tools"]] == ["shout", "ask"]


# ---------------------------------------------------------------------------------------------- choices


@pytest.mark.parametrize("choice", ["any", "shout"])
def test_a_choice_that_asks_is_the_partners_for_the_first_request(choice: str) -> None:
    """And left out afterwards."""
    model = Streams(tools=[shout])
    model.invoke("hi", tool_choice=choice)
    wanted = {"what": "any"} if choice == "any" else {"tool": "shout"}
    assert [kwargs.get("pick") for _, kwargs in model.sent] == [wanted, None]


def test_none_is_not_said_where_the_partner_would_read_it_as_a_name() -> None:
    """It is held to here instead."""
    model = Streams(tools=[shout], script=[AIMessage("", tool_calls=[call_of()]), AIMessage("done")])
    messages = new_messages(model.invoke("hi", tool_choice="none"))
    assert [kwargs.get("pick") for _, kwargs in model.sent] == [None, None]
    assert "error" in messages[1].text and messages[-1].text == "done"


@pytest.mark.further
def test_a_choice_that_is_a_mapping_with_one_key_holds() -> None:
    """After `{"none": {}}` no tool runs, whatever the model says; after `{"auto": {}}` any may."""
    for choice, text in (({"none": {}}, "error"), ({"auto": {}}, "X")):
        model = Streams(tools=[shout], script=[AIMessage("", tool_calls=[call_of()]), AIMessage("done")])
        assert text in new_messages(model.invoke("hi", tool_choice=choice))[1].text


def test_none_is_said_where_the_partner_knows_it() -> None:
    """In its own words."""

    class Knows(ChatStreams):
        def bind_tools(self, tools: Any, *, tool_choice: Any = None, **kwargs: Any) -> Any:
            if tool_choice == "none":
                return super().bind_tools(tools, pick="nothing", **kwargs)
            return super().bind_tools(tools, tool_choice=tool_choice, **kwargs)

    model: Any = with_tools(Knows(), [shout])
    model.invoke("hi", tool_choice="none")
    assert model.sent[0][1]["pick"] == "nothing"


def test_allowed_names_are_all_that_is_declared_and_all_that_runs() -> None:
    """Whatever the partner thinks of it."""
    ran: list[str] = []

    def delete(text: str) -> str:
        """Delete it."""
        ran.append(text)
        return text

    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "shout"}]}
    model = Streams(tools=[shout, delete], script=[AIMessage("", tool_calls=[call_of("delete")]), AIMessage("done")])
    messages = new_messages(model.invoke("hi", tool_choice=choice))
    assert [[one["toolSpec"]["name"] for one in kwargs["tools"]] for _, kwargs in model.sent] == [["shout"], ["shout"]]
    assert [kwargs.get("pick") for _, kwargs in model.sent] == [{"what": "any"}, None]
    assert not ran and "error" in messages[1].text


def test_declarations_are_made_once() -> None:
    """For each choice of a model; a copy with another field makes its own."""
    made: list[Any] = []

    class Counts(ChatStreams):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            made.append(kwargs)
            return super().bind_tools(tools, **kwargs)

    model: Any = with_tools(Counts(), [shout])
    for _ in range(3):
        model.invoke("hi")
    assert made == [{}]
    model.model_copy(update={"temperature": 0.0}).invoke("hi")
    assert made == [{}, {}]


# ---------------------------------------------------------------------------------------------- without tools


@pytest.mark.parametrize("way", WAYS)
def test_without_tools_it_is_the_class_itself(way: str) -> None:
    """The same parts, but for ids; its own declarations, and its own repr."""
    pairs = [(House, ChatHouse), (Streams, ChatStreams), (StreamsBoth, ChatStreamsBoth)]
    for joined, plain in pairs:
        mine, theirs = ([_shape(part) for part in _parts(cls(), way)] for cls in (joined, plain))
        assert mine == theirs
        assert repr(joined(temperature=1.0)) == repr(plain(temperature=1.0)).replace(plain.__name__, joined.__name__, 1)
        bound, other = joined().bind_tools([shout], tool_choice="any"), plain().bind_tools([shout], tool_choice="any")
        assert bound.kwargs == other.kwargs  # type: ignore[attr-defined]
        called, wanted = (reduce(add, _parts(one, way)) for one in (bound, other))
        assert called.tool_calls == wanted.tool_calls == [call_of()] and called.text == wanted.text


class ChatOther(ChatHouse):
    """Replies that are no AI messages, as some classes of LangChain's community give them."""

    kind: Any = ChatMessage

    def _made(self, chunk: bool, content: str) -> Any:
        if self.kind is ChatMessage:
            return (ChatMessageChunk if chunk else ChatMessage)(role="bot", content=content)
        return (HumanMessageChunk if chunk else HumanMessage)(content)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._made(False, "Hello"))])


class ChatOtherStreams(ChatOther):
    """The same, streamed."""

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        for text in ("Hel", "lo"):
            yield ChatGenerationChunk(message=self._made(True, text))


@pytest.mark.parametrize(("way", "cls", "kind"), by_turns(WAYS, [ChatOther, ChatOtherStreams], [ChatMessage, HumanMessage]))
def test_a_reply_of_another_kind_is_handed_out(kind: Any, cls: Any, way: str) -> None:
    """As it is, as LangChain does; a run, with tools or for a hook alone, reads it as an AI message of the same content."""
    model = with_tools(cls(kind=kind), [])
    runs: list[dict[str, Any]] = [{"tools": [shout]}, {"before_turn": lambda turn: None}]
    if (cls, kind) == (ChatOtherStreams, ChatMessage):
        runs = runs[:1]  # LangChain's core cannot add up chunks of this kind
    else:
        assert [_shape(part) for part in _parts(model, way)] == [_shape(part) for part in _parts(cls(kind=kind), way)]
        assert [event.message.text for event in events(model.stream("hi")) if isinstance(event, MessageDone)] == ["Hello"]
    for fields in runs:
        parts = _parts(model.model_copy(update=fields), way)
        whole = reduce(add, parts)
        assert (isinstance(whole, AIMessage), whole.text, stop_reason(whole)) == (True, "Hello", "complete")
        assert [(type(one), one.text) for part in parts for one in new_messages(part)] == [(AIMessage, "Hello")]


def _shape(part: Any) -> Any:
    return type(part), {name: value for name, value in part.model_dump().items() if name != "id"}


def test_structured_output_is_the_partners_own() -> None:
    """With constructor tools the schema is one tool more, whose call ends the run."""

    class Weather(BaseModel):
        """The weather."""

        text: str

    class Own(ChatStreams):
        def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
            return RunnableLambda(lambda _: "its own")

    joined: Any = with_tools(Own(), [])
    assert joined.with_structured_output(Weather).invoke("hi") == "its own"
    script = [AIMessage("", tool_calls=[call_of()]), AIMessage("", tool_calls=[{**call_of("Weather", text="fine"), "id": "call_2"}])]
    model: Any = with_tools(Own(script=script), [shout])
    assert model.with_structured_output(Weather).invoke("hi") == Weather(text="fine")
    assert [kwargs.get("pick") for _, kwargs in model.sent] == [{"what": "any"}] * 2
    with pytest.raises(ConfigurationError, match="function_calling"):
        model.with_structured_output(Weather, method="json_schema")


# ---------------------------------------------------------------------------------------------- classes


def test_a_class_is_told_what_it_cannot_be() -> None:
    """When it is made."""

    class Takes(ChatHouse):
        max_turns: int = 3

    with pytest.raises(ConfigurationError, match="put ToolsAndMessagesMixin before ChatHouse"):
        type(ChatHouse)("Wrong", (ChatHouse, ToolsAndMessagesMixin), {"__module__": __name__})
    with pytest.raises(ConfigurationError, match="field 'max_turns'"):
        type(ChatHouse)("Both", (ToolsAndMessagesMixin, Takes), {"__module__": __name__})


def test_fields_are_the_partners() -> None:
    """Also those of core's that it defines anew; and it sees to names that it does not know, but for what is nearly ours."""

    class Other(ChatHouse):
        output_version: str | None = "v1"
        disable_streaming: bool | str = True

    joined = with_tools(Other(), [shout])
    made = type(joined)(unknown=1)
    assert (made.output_version, made.disable_streaming, joined.output_version) == ("v1", True, "v1")
    with pytest.raises(ConfigurationError, match="max_turns"):
        House(max_turn=3)  # type: ignore[call-arg]


def test_core_fakes_with_tools() -> None:
    """A fake that declares nothing plays calls, which run."""

    class Plays(ToolsAndMessagesMixin, GenericFakeChatModel):
        pass

    replies: list[Any] = [AIMessage("", tool_calls=[call_of()]), AIMessage("done")]
    assert Plays(messages=iter(replies), tools=[shout]).invoke("hi").text == "done"

    class Lists(ToolsAndMessagesMixin, FakeListChatModel):
        pass

    assert [part.text for part in Lists(responses=["abc"]).stream("hi")] == ["a", "b", "c"]


# ---------------------------------------------------------------------------------------------- with_tools


def test_with_tools_keeps_the_model_and_leaves_it_alone() -> None:
    """Its class, settings, secrets and connections; of the given model nothing changes."""
    given = ChatStreams(model="house-2", temperature=0.1, key=SecretStr("hidden"))
    before, held = dict(given.__dict__), repr(given)
    model = with_tools(given, [shout], max_turns=3)
    assert isinstance(model, ChatStreams) and isinstance(model, ToolsAndMessagesMixin) and isinstance(model, ToolRunningModel)
    assert (model.model, model.temperature, model.max_turns, model.key.get_secret_value()) == ("house-2", 0.1, 3, "hidden")
    assert model.sent is given.sent and model.model_fields_set >= {"model", "temperature", "key"}
    assert model.invoke("hi").text == "look\ndone X"
    assert (given.__dict__, repr(given), type(given)) == (before, held, ChatStreams)
    assert repr(model).startswith("ChatStreams(") and "hidden" not in repr(model) and "tools=['shout']" in repr(model)


def test_with_tools_travels_in_a_pickle() -> None:
    """And comes back as it was."""
    model = with_tools(ChatStreams(temperature=0.1), [shout], max_turns=4)
    again = pickle.loads(pickle.dumps(model))
    assert (type(again), again.max_turns, again.temperature) == (type(model), 4, 0.1)
    assert again.invoke("hi").text == "look\ndone X"


def test_with_tools_of_our_own_models() -> None:
    """What is bound stays."""
    given = ScriptedChatModel(replies=[AIMessage("", tool_calls=[call_of()]), "done"])
    assert with_tools(given, [shout]).invoke("hi").text == "done"
    bound = with_tools(given.bind(max_turns=2), [shout], max_tool_calls=1)
    assert (bound.kwargs, bound.bound.max_tool_calls) == ({"max_turns": 2}, 1)


def test_with_tools_refuses_what_is_no_model() -> None:
    """And says what to do."""
    house = ChatHouse()
    for given, words in [
        (house.bind(stop=["x"]), r"with_tools\(model, tools\)\.bind"),
        (house | RunnableLambda(str), "RunnableSequence"),
        (ChatHouse, "class ChatHouseWithTools"),
        ("gpt-5", "not str"),
    ]:
        with pytest.raises(ConfigurationError, match=words):
            with_tools(given, [shout])
    with pytest.raises(ConfigurationError, match="did you mean 'max_turns'"):
        with_tools(house, [shout], max_turn=3)
    with pytest.raises(ConfigurationError, match="max_turns"):
        with_tools(house, [shout], max_turns=-1)
